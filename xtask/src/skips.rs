//! Skips: tests that could not run where they were started.
//!
//! Such a test appends `name: reason` to the file that `FLATOUT_SKIP_LOG` names. They are shown;
//! where every test has what it needs, one that is skipped is a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::sources::cannot_be;

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

/// Shows what was skipped, and why; fails for it where every test has what it needs.
pub fn check(log: &Path, lacks_nothing: bool) -> Result<String, String> {
    let log = match fs::read_to_string(log) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(cannot_be("read", log)(error)),
    };
    let skips = parse_log(&log);
    for (name, reasons) in &skips {
        let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
        println!("skipped {name}: {}", reasons.join("; "));
    }
    match format!("{} tests skipped", skips.len()) {
        text if lacks_nothing && !skips.is_empty() => {
            Err(format!("{text}, of which none had to be"))
        }
        text => Ok(text),
    }
}

fn parse_log(log: &str) -> Skips {
    let mut skips = Skips::new();
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let (name, reason) = line.split_once(": ").unwrap_or((line, "no reason given"));
        skips.entry(name.to_owned()).or_default().insert(reason.to_owned());
    }
    skips
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
    fn each_test_that_was_skipped_counts_once() {
        let folder = std::env::temp_dir().join(format!("xtask-skips-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let log = fresh_log(&folder).unwrap();
        assert_eq!(check(&log, true).unwrap(), "0 tests skipped");
        fs::write(&log, "a: why\na: why not\n").unwrap();
        assert_eq!(check(&log, false).unwrap(), "1 tests skipped");
        assert!(check(&log, true).unwrap_err().starts_with("1 tests skipped"));
        assert!(!fresh_log(&folder).unwrap().exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
