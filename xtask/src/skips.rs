//! Skips: tests that could not run where they were started, and whether that was expected.
//!
//! Such a test appends `name: reason` to the file that `FLATOUT_SKIP_LOG` names. As root on
//! Debian everything that tests need can be had, so there the names must equal `skips.txt`;
//! elsewhere they are shown and nothing more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::debian::Place;
use crate::sources::{cannot_be, listed};

/// The names that are expected as root on Debian, one a line, `#` begins a comment.
const LIST: &str = "xtask/skips.txt";

/// Test name to the reasons that it gave.
type Skips = BTreeMap<String, BTreeSet<String>>;

/// Makes sure that no earlier run has left a log, and returns where this one's will be.
pub fn fresh_log(target_directory: &Path) -> Result<PathBuf, String> {
    let path = target_directory.join("xtask-skips.log");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(cannot_be("removed", &path)(error))
        }
        _ => Ok(path),
    }
}

/// Shows what was skipped; where the list applies, fails when it says something else.
pub fn check(root: &Path, log: &Path, place: Place) -> Result<String, String> {
    let log = match fs::read_to_string(log) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(cannot_be("read", log)(error)),
    };
    let skips = parse_log(&log);
    for (name, reasons) in &skips {
        println!("skipped {name}: {}", said(reasons));
    }
    if place == Place::RootOnDebian {
        let list = fs::read_to_string(root.join(LIST)).map_err(cannot_be("read", LIST.as_ref()))?;
        if let Some(difference) = difference(&skips, &parse_list(&list)) {
            return Err(difference);
        }
    }
    Ok(format!("{} tests skipped", skips.len()))
}

fn parse_log(log: &str) -> Skips {
    let mut skips = Skips::new();
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let (name, reason) = line.split_once(": ").unwrap_or((line, "no reason given"));
        skips.entry(name.to_owned()).or_default().insert(reason.to_owned());
    }
    skips
}

fn parse_list(list: &str) -> BTreeSet<String> {
    listed(list).map(str::to_owned).collect()
}

fn said(reasons: &BTreeSet<String>) -> String {
    reasons.iter().map(String::as_str).collect::<Vec<_>>().join("; ")
}

/// What the run and the list disagree about.
fn difference(skips: &Skips, expected: &BTreeSet<String>) -> Option<String> {
    let unexpected = skips
        .iter()
        .filter(|(name, _)| !expected.contains(*name))
        .map(|(name, reasons)| format!("\n  + {name} was skipped: {}", said(reasons)));
    let missing = expected
        .iter()
        .filter(|name| !skips.contains_key(*name))
        .map(|name| format!("\n  - {name} ran, or no longer exists"));
    let lines: String = unexpected.chain(missing).collect();
    (!lines.is_empty()).then(|| format!("the skipped tests differ from {LIST}:{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read() {
        let skips = parse_log("read::xfs: no mkfs.xfs\nread::xfs: no loop device\nodd\n\n");
        assert_eq!(skips["read::xfs"].len(), 2);
        assert!(skips["odd"].contains("no reason given"));
    }

    #[test]
    fn a_run_that_equals_the_list_passes() {
        let list = parse_list("# why\nread::xfs # no device\n\n");
        assert_eq!(difference(&parse_log("read::xfs: no mkfs.xfs\n"), &list), None);
        assert_eq!(difference(&Skips::new(), &BTreeSet::new()), None);
    }

    #[test]
    fn a_difference_names_both_sides() {
        let found = difference(&parse_log("a: why\n"), &parse_list("b\n")).unwrap();
        assert_eq!(
            found,
            "the skipped tests differ from xtask/skips.txt:\
             \n  + a was skipped: why\n  - b ran, or no longer exists"
        );
    }

    #[test]
    fn elsewhere_skips_are_only_shown() {
        let folder = std::env::temp_dir().join(format!("xtask-skips-{}", std::process::id()));
        fs::create_dir_all(folder.join("xtask")).unwrap();
        let log = fresh_log(&folder).unwrap();
        assert_eq!(check(&folder, &log, Place::Elsewhere).unwrap(), "0 tests skipped");
        fs::write(&log, "a: why\n").unwrap();
        fs::write(folder.join(LIST), "").unwrap();
        assert_eq!(check(&folder, &log, Place::Elsewhere).unwrap(), "1 tests skipped");
        assert!(check(&folder, &log, Place::RootOnDebian).unwrap_err().contains("+ a"));
        assert!(!fresh_log(&folder).unwrap().exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
