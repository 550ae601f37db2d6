//! Promises: a document that says which tests hold a guarantee names tests that exist.

use std::collections::BTreeSet;

use crate::sources::Source;

/// The documents that promise.
pub const DOCUMENTS: [&str; 6] = [
    "docs/copying.md",
    "docs/cp.md",
    "docs/measuring.md",
    "docs/mirror.md",
    "docs/sum.md",
    "docs/tune.md",
];
/// Shorter names in backquotes are options, programs, members of a record.
const LEAST_WORDS: usize = 4;

/// The tests, and members of records with as long a name, that a document names and no source has.
pub fn complaints(name: &str, document: &str, sources: &[Source]) -> Vec<String> {
    let known: BTreeSet<&str> = sources.iter().flat_map(identifiers).collect();
    tests(document)
        .filter(|test| !known.contains(test))
        .map(|test| format!("{name}: there is no test `{test}`"))
        .collect()
}

/// Names in backquotes that are as long as that of a test.
fn tests(document: &str) -> impl Iterator<Item = &str> {
    let quoted = document.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(|word| {
        word.bytes().all(|byte| is_of_name(byte.into())) && word.split('_').count() >= LEAST_WORDS
    })
}

/// Tests that a macro makes are named like any other word.
fn identifiers(source: &Source) -> impl Iterator<Item = &str> {
    source.text.split(|letter| !is_of_name(letter)).filter(|word| word.contains('_'))
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let source =
            Source { path: "a.rs".into(), text: "#[test]\nfn it_holds_a_file() {}\n".into() };
        let document = "| `--x` | `it_holds_a_file`, `it_flies_over_files` |\n\nand (`it_sinks_as_well`) `cpu_s`\n";
        let complaints = complaints("a.md", document, &[source]);
        let missing = ["it_flies_over_files", "it_sinks_as_well"];
        assert_eq!(complaints, missing.map(|test| format!("a.md: there is no test `{test}`")));
    }
}
