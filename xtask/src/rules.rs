//! Rules about one file that no lint has: it says what it is for, is not long, and its name says something.
//!
//! Each takes a file and returns a complaint as `path:line: text`. What clippy and rustc can check
//! stands in the lints of the workspace, thresholds in `clippy.toml`.

use std::path::Path;

use crate::sources::Source;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "misc", "types"];

/// No file is longer. Lines without the tests inside the file.
const MOST_LINES: usize = 400;

/// The only package with unsafe code, and so with lints of its own.
const UNSAFE_MANIFEST: &str = "crates/sys/Cargo.toml";

/// All rules over one file.
pub fn complaints(source: &Source) -> impl Iterator<Item = String> {
    let more = empty_name(&source.path).into_iter().chain(uncounted_threads(source));
    missing_module_doc(source).into_iter().chain(too_long(source)).chain(more)
}

fn too_long(source: &Source) -> Option<String> {
    let (path, lines) = (&source.path, source.counted_lines());
    (lines > MOST_LINES)
        .then(|| format!("{path}:1: {lines} lines, {MOST_LINES} are allowed: split it"))
}

/// A package that does not inherit the lints is held to none, `unsafe_code` included.
pub fn missing_lints(path: &str, manifest: &str) -> Option<String> {
    let inherits = manifest.contains("[lints]\nworkspace = true\n");
    (!inherits && path != UNSAFE_MANIFEST)
        .then(|| format!("{path}:1: the lints of the workspace are not inherited"))
}

/// A file opens with what it is for.
fn missing_module_doc(source: &Source) -> Option<String> {
    let mut lines = source.text.lines().map(str::trim);
    let opening = lines.find(|line| !line.is_empty() && !line.starts_with("#!["));
    (!opening.is_some_and(|line| line.starts_with("//!")))
        .then(|| format!("{}:1: no `//!` at the top that says what it is for", source.path))
}

/// A folder is a thing, a file is the noun that it defines.
fn empty_name(path: &str) -> Option<String> {
    let parts = Path::new(path).with_extension("");
    let name = EMPTY_NAMES.into_iter().find(|&name| parts.iter().any(|part| part == name))?;
    Some(format!("{path}:1: `{name}` says nothing about what is inside"))
}

/// A thread that does work of a trial is started by `sys::run_queue::spawn`, which counts what it waits
/// for a CPU; one that does none says so in a comment above: `Not counted: why`.
fn uncounted_threads(source: &Source) -> Vec<String> {
    let rooms = ["crates/bench/src/", "crates/sys/src/call/"];
    if !rooms.iter().any(|room| source.path.starts_with(room)) {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().take(source.counted_lines()).collect();
    let starts = |line: &str| {
        let calls = ["spawn_scoped(", ".spawn(", "thread::spawn("];
        !line.contains("run_queue::spawn(") && calls.iter().any(|call| line.contains(call))
    };
    let is_excused = |at: usize| {
        lines[at.saturating_sub(4)..at].iter().any(|line| line.contains("// Not counted: "))
    };
    let complaint = |at: usize| {
        let path = &source.path;
        format!("{path}:{}: a thread that `run_queue::spawn` did not start", at + 1)
    };
    let bad = (0..lines.len()).filter(|&at| starts(lines[at]) && !is_excused(at));
    bad.map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn files_open_with_their_purpose() {
        let missing = |text| missing_module_doc(&source("crates/io/src/a.rs", text));
        assert_eq!(missing("//! A.\n"), None);
        assert_eq!(missing("#![forbid(unsafe_code)]\n\n//! A.\n"), None);
        for bad in ["", "// A.\n", "/// A.\nfn a() {}\n", "use b;\n//! A.\n"] {
            assert!(missing(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn names_say_what_is_inside() {
        for good in ["crates/io/src/engine.rs", "crates/io/src/utility.rs", "xtask/src/main.rs"] {
            assert_eq!(empty_name(good), None);
        }
        for bad in ["crates/common/src/lib.rs", "crates/io/src/util.rs", "a/tests/helpers/mod.rs"] {
            assert!(empty_name(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn threads_of_trials_are_counted_or_excused() {
        let found = |path: &str, text: &str| uncounted_threads(&source(path, text)).len();
        let bench = "crates/bench/src/a.rs";
        for bad in ["scope.spawn(a);", "b\n.spawn_scoped(scope, a)?;", "thread::spawn(a);"] {
            assert_eq!((found(bench, bad), found("crates/tree/src/a.rs", bad)), (1, 0), "{bad}");
            let tests = format!("//! A.\n#[cfg(test)]\nmod tests {{\n{bad}\n}}\n");
            assert_eq!(found(bench, &format!("// Not counted: it sleeps.\n{bad}")), 0);
            assert_eq!(found(bench, &tests), 0);
        }
        assert_eq!(found(bench, "run_queue::spawn(scope, Builder::new(), a)?;"), 0);
    }

    #[test]
    fn only_the_package_with_unsafe_code_has_lints_of_its_own() {
        let good = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";
        let own = "[package]\nname = \"a\"\n\n[lints.rust]\nmissing_docs = \"warn\"\n";
        assert_eq!(missing_lints("crates/io/Cargo.toml", good), None);
        assert_eq!(missing_lints("crates/sys/Cargo.toml", own), None);
        assert!(missing_lints("crates/io/Cargo.toml", own).is_some());
    }

    #[test]
    fn all_rules_are_applied() {
        let long = "fn a() {}\n".repeat(401);
        assert_eq!(complaints(&source("crates/io/src/misc.rs", &long)).count(), 3);
    }
}
