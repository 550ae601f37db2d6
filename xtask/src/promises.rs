//! Promises: a document that says which tests hold a guarantee names tests that exist.

use std::collections::BTreeSet;

use crate::sources::Source;

/// The documents that promise.
pub const DOCUMENTS: [&str; 2] = ["docs/copying.md", "docs/measuring.md"];

/// The tests that a table names and no source has.
pub fn complaints(name: &str, document: &str, sources: &[Source]) -> Vec<String> {
    let known: BTreeSet<&str> = sources.iter().flat_map(functions).collect();
    tests(document)
        .filter(|test| !known.contains(test))
        .map(|test| format!("{name}: there is no test `{test}`"))
        .collect()
}

/// Names in backquotes in the last column of the tables where that is headed "held by".
fn tests(document: &str) -> impl Iterator<Item = &str> {
    let mut held = false;
    let columns = document.lines().filter_map(move |line| {
        let row = line.strip_prefix('|').map(|row| row.trim_end_matches([' ', '|']));
        let column = row.and_then(|row| row.rsplit('|').next());
        held = column.is_some_and(|column| held || column.trim() == "held by");
        column.filter(|_| held)
    });
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
        let document = "| promised | held by |\n|---|---|\n| `x` | `it_holds`, `it_flies` |\n\n\
                        | option | default |\n|---|---|\n| `x` | `y` |\n";
        let complaints = complaints("a.md", document, &[source]);
        assert_eq!(complaints, ["a.md: there is no test `it_flies`"]);
    }
}
