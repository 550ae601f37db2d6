//! Tidy: reads the workspace once, holds it against every rule of the house, and lists all
//! complaints at once.

use std::fs;
use std::path::Path;

use crate::{arrows, links, promises, rules, sources, workspace};

/// Applies all rules to the repository in this folder; returns what was looked at.
///
/// Errors: the complaints, one a line, or why the repository cannot be read.
pub fn check(root: &Path) -> Result<String, String> {
    let read =
        |path: &Path| fs::read_to_string(root.join(path)).map_err(sources::cannot_be("read", path));
    let workspace = workspace::read(root)?;
    let sources = sources::read(root, ".rs")?;

    let mut complaints = arrows::complaints(&workspace.rooms);
    for room in &workspace.rooms {
        let path = room.manifest.strip_prefix(root).unwrap_or(&room.manifest);
        complaints.extend(rules::missing_lints(&path.to_string_lossy(), &read(path)?));
    }
    let documents = sources::read(root, ".md")?;
    complaints.extend(promises::complaints(&documents, &sources));
    complaints.extend(links::complaints(&documents, |path| root.join(path).exists()));
    complaints.extend(sources.iter().flat_map(rules::complaints));
    let packages = workspace::default_packages(root).unwrap_or_else(|why| {
        complaints.push(why);
        0
    });

    if complaints.is_empty() {
        let files = sources.len();
        return Ok(format!("{files} files, {packages} packages in the default build"));
    }
    Err(format!("tidy: {} complaints\n{}", complaints.len(), complaints.join("\n")))
}
