//! Promises: the tests that a document names, for a guarantee that they hold, and its source files exist.

use std::collections::BTreeSet;
use std::path::Path;

use crate::sources::Source;

/// Shorter names in backquotes are options, programs, members of a record.
const LEAST_WORDS: usize = 4;

/// The tests, members of records with as long a name, and source files that documents name and nobody has.
pub fn complaints(documents: &[Source], sources: &[Source]) -> Vec<String> {
    let known: BTreeSet<&str> = sources.iter().flat_map(identifiers).collect();
    let is_gone = |word: &&str| match word.ends_with(".rs") {
        true => !sources.iter().any(|source| Path::new(&source.path).ends_with(word)),
        false => is_test(word) && !known.contains(word),
    };
    let of_one = |Source { path, text }: &Source| {
        let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let gone = quoted.filter(is_gone).map(|word| format!("{path}: there is no `{word}`"));
        gone.collect::<Vec<_>>()
    };
    documents.iter().flat_map(of_one).collect()
}

/// Names that are as long as that of a test.
fn is_test(word: &str) -> bool {
    word.chars().all(is_of_name) && word.split('_').count() >= LEAST_WORDS
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
    fn a_test_or_a_file_that_does_not_exist_is_found() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let sources = [source("crates/io/src/scan.rs", "#[test]\nfn it_holds_a_file() {}\n")];
        let document = "| `--x` | `it_holds_a_file`, `it_flies_over_files` |\n\nand (`it_sinks_as_well`) \
                        `cpu_s`, `scan.rs`, `io/src/scan.rs`, `cpu/scan.rs`, `can.rs`\n";
        let complaints = complaints(&[source("a.md", document)], &sources);
        let missing = ["it_flies_over_files", "it_sinks_as_well", "cpu/scan.rs", "can.rs"];
        assert_eq!(complaints, missing.map(|word| format!("a.md: there is no `{word}`")));
    }
}
