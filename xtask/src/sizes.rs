//! Sizes: a ratchet for the length of files. `sizes.txt` lists the long ones; a number in it may
//! only become smaller, and at the limit there is no list.

use std::collections::BTreeMap;

use crate::sources::{Source, listed};

/// Longer files must be listed. Lines without the tests inside the file.
const LISTED_ABOVE_LINES: usize = 400;

/// No file may be longer, listed or not.
const LIMIT_LINES: usize = 600;

/// Where the list stands.
pub const LIST: &str = "xtask/sizes.txt";

/// Path and allowed length of the long files.
pub type Allowance = BTreeMap<String, usize>;

/// Reads the list: one `path lines` per line, `#` begins a comment.
pub fn parse(list: &str) -> Result<Allowance, String> {
    let mut allowance = Allowance::new();
    for line in listed(list) {
        let (path, lines) = line
            .rsplit_once(' ')
            .and_then(|(path, lines)| Some((path.trim(), lines.parse().ok()?)))
            .ok_or_else(|| format!("{LIST}: `{line}` is not a path and a number of lines"))?;
        allowance.insert(path.to_owned(), lines);
    }
    Ok(allowance)
}

/// One complaint per file that is too long, and per line of the list that no longer fits.
pub fn complaints(sources: &[Source], allowance: &Allowance) -> Vec<String> {
    let lengths: BTreeMap<&str, usize> =
        sources.iter().map(|source| (source.path.as_str(), source.counted_lines())).collect();
    let mut found: Vec<String> = lengths
        .iter()
        .filter_map(|(&path, &lines)| complaint(path, lines, allowance.get(path).copied()))
        .collect();
    let gone = allowance.keys().filter(|path| !lengths.contains_key(path.as_str()));
    found.extend(gone.map(|path| format!("{LIST}: {path} is gone, remove its line")));
    found
}

fn complaint(path: &str, lines: usize, allowed: Option<usize>) -> Option<String> {
    if lines > LIMIT_LINES {
        return Some(format!("{path}:1: {lines} lines, {LIMIT_LINES} are the limit: split it"));
    }
    match allowed {
        None if lines > LISTED_ABOVE_LINES => Some(format!(
            "{path}:1: {lines} lines, {LISTED_ABOVE_LINES} are allowed: split it, or list it in {LIST}"
        )),
        Some(allowed) if lines > allowed => Some(format!(
            "{path}:1: {lines} lines, {allowed} are allowed by {LIST}, where numbers only shrink"
        )),
        Some(_) if lines <= LISTED_ABOVE_LINES => {
            Some(format!("{LIST}: {path} has shrunk to {lines} lines, remove its line"))
        }
        Some(allowed) if lines < allowed => {
            Some(format!("{LIST}: {path} has shrunk to {lines} lines, write that"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        let allowance = parse("# long files\ncrates/a.rs 450\n\ncrates/b.rs  500 # why\n").unwrap();
        assert_eq!(allowance["crates/a.rs"], 450);
        assert_eq!(allowance["crates/b.rs"], 500);
        assert!(parse("crates/a.rs many").unwrap_err().contains("`crates/a.rs many`"));
    }

    #[test]
    fn short_and_listed_files_pass() {
        assert_eq!(complaint("a.rs", 400, None), None);
        assert_eq!(complaint("a.rs", 450, Some(450)), None);
        assert_eq!(complaint("a.rs", 600, Some(600)), None);
    }

    #[test]
    fn long_files_are_named() {
        assert!(complaint("a.rs", 401, None).unwrap().contains("400 are allowed: split it"));
        assert!(complaint("a.rs", 451, Some(450)).unwrap().contains("numbers only shrink"));
        assert!(complaint("a.rs", 601, Some(700)).unwrap().contains("600 are the limit"));
    }

    #[test]
    fn the_list_must_follow_when_a_file_shrinks() {
        assert!(complaint("a.rs", 449, Some(450)).unwrap().contains("write that"));
        assert!(complaint("a.rs", 400, Some(450)).unwrap().contains("remove its line"));
        let gone = complaints(&[], &parse("a.rs 450").unwrap());
        assert_eq!(gone, ["xtask/sizes.txt: a.rs is gone, remove its line"]);
    }
}
