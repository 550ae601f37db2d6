//! Promises: a document that says which tests hold a guarantee names tests that exist.

use std::collections::BTreeSet;

use crate::sources::Source;

/// The document that promises.
pub const DOCUMENT: &str = "docs/copying.md";

/// The tests that the last column of a table names and no source has.
pub fn complaints(document: &str, sources: &[Source]) -> Vec<String> {
    let known: BTreeSet<&str> = sources.iter().flat_map(functions).collect();
    tests(document)
        .filter(|name| !known.contains(name))
        .map(|name| format!("{DOCUMENT}: there is no test `{name}`"))
        .collect()
}

/// Names in backquotes in the last column of a table.
fn tests(document: &str) -> impl Iterator<Item = &str> {
    let rows = document.lines().filter(|line| line.starts_with('|'));
    let columns = rows.filter_map(|row| row.trim_end_matches([' ', '|']).rsplit('|').next());
    columns.flat_map(|column| column.split('`').skip(1).step_by(2))
}

/// Names of the functions of a file.
fn functions(source: &Source) -> impl Iterator<Item = &str> {
    source.text.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix("fn ")?;
        name.split_once('(').map(|(name, _)| name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let source = Source { path: "a.rs".into(), text: "#[test]\nfn it_holds() {}\n".into() };
        let document = "| promised | held by |\n|---|---|\n| `x` | `it_holds`, `it_flies` |\n";
        let complaints = complaints(document, &[source]);
        assert_eq!(complaints, ["docs/copying.md: there is no test `it_flies`"]);
    }
}
