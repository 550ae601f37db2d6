//! Tidy: reads the workspace once, holds it against every rule of the house, and lists all
//! complaints at once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{arrows, licences, metadata, packages, promises, rules, sizes, sources};

/// Applies all rules to the repository in this folder; returns what was looked at.
///
/// Errors: the complaints, one a line, or why the repository cannot be read.
pub fn check(root: &Path) -> Result<String, String> {
    let graph = metadata::read(root)?;
    let sources = sources::read(root)?;
    let list = fs::read_to_string(root.join(sizes::LIST))
        .map_err(|error| format!("{} cannot be read: {error}", sizes::LIST))?;
    let promised = fs::read_to_string(root.join(promises::DOCUMENT))
        .map_err(|error| format!("{} cannot be read: {error}", promises::DOCUMENT))?;
    let crate_roots: BTreeSet<String> = graph
        .packages
        .iter()
        .filter(|package| package.is_member)
        .flat_map(|package| &package.crate_roots)
        .map(|path| sources::relative(root, path))
        .collect();
    let package_count = packages::default_build(&graph).len();

    let mut complaints = arrows::complaints(&graph.packages);
    complaints.extend(licences::complaints(&graph.packages));
    complaints.extend(packages::complaint(package_count));
    complaints.extend(promises::complaints(&promised, &sources));
    complaints.extend(sizes::complaints(&sources, &sizes::parse(&list)?));
    complaints.extend(sources.iter().flat_map(|source| rules::complaints(source, &crate_roots)));

    if complaints.is_empty() {
        return Ok(format!(
            "{} files, {package_count} packages in the default build, {} in all",
            sources.len(),
            graph.packages.len()
        ));
    }
    Err(format!("tidy: {} complaints\n{}", complaints.len(), complaints.join("\n")))
}
