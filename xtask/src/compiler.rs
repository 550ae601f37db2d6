//! Compiler: this program in place of rustc, for the packages of this repository. It runs clippy's
//! driver, which is the compiler with more lints, and then rustdoc over what was compiled.
//!
//! A `cargo clippy` and a `cargo doc` of their own each go through all dependencies once more: of
//! the 115 CPU seconds of the latter that were 95. Libraries are compiled twice, for others and with
//! their tests; the lints are for the second time, in which all of it is.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::sources::cannot_be;

/// Where clippy's driver is, by which this program knows that cargo calls it.
const DRIVER: &str = "FLATOUT_XTASK_DRIVER";

/// The variables by which cargo compiles with a copy of this program, warnings denied. It builds
/// this program too, and so the original may go at any time.
pub fn environment(cargo: &OsStr, target: &Path) -> Result<Vec<(&'static str, OsString)>, String> {
    let copy = target.join("xtask-compiler");
    let made = || -> std::io::Result<()> {
        fs::create_dir_all(target)?;
        fs::remove_file(&copy).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        fs::copy(std::env::current_exe()?, &copy).map(drop)
    };
    made().map_err(cannot_be("made", &copy))?;
    Ok(vec![
        ("RUSTC_WORKSPACE_WRAPPER", copy.into()),
        (DRIVER, Path::new(cargo).with_file_name("clippy-driver").into()),
        // As `cargo clippy -- -D warnings` hands it over.
        ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__".into()),
    ])
}

/// Compiles, if that is what this program was called for: by cargo, with rustc and its words.
pub fn stand_in() -> Option<ExitCode> {
    let driver = std::env::var_os(DRIVER)?;
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let is_done =
        |program: &OsStr, words: &[OsString]| match Command::new(program).args(words).status() {
            Ok(status) => status.success(),
            Err(error) => {
                eprintln!("{} cannot be started: {error}", Path::new(program).display());
                false
            }
        };
    let rustc = words.first().map(Path::new)?;
    let linted = is_linted_with_tests(&words);
    let compiled = match linted {
        true => {
            is_done(rustc.as_os_str(), &[&words[1..], &["-D".into(), "warnings".into()]].concat())
        }
        false => is_done(&driver, &words),
    };
    let rustdoc = rustc.with_file_name("rustdoc");
    let is_good =
        compiled && documented(&words).is_none_or(|words| is_done(rustdoc.as_os_str(), &words));
    Some(if is_good { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Whether this is a library for others: it is compiled with its tests as well.
fn is_linted_with_tests(words: &[OsString]) -> bool {
    let is_for_others = |pair: &[OsString]| pair[0] == "--crate-type" && pair[1] == "lib";
    words.windows(2).any(is_for_others) && !words.iter().any(|word| word == "--test")
}

/// The words for rustdoc out of those for rustc; `None` where nothing is documented: tests, examples,
/// benches, build scripts, and what cargo only asks.
fn documented(words: &[OsString]) -> Option<Vec<OsString>> {
    const WITH_VALUE: [&str; 7] =
        ["--crate-name", "--crate-type", "--extern", "-L", "--cfg", "--check-cfg", "--cap-lints"];
    let behind = |name: &str| words.iter().skip_while(|word| *word != name).nth(1);
    let is_product = |word: &OsString| {
        let path = word.to_string_lossy();
        path.ends_with(".rs") && path.contains("/src/")
    };
    if !words.iter().any(is_product) || words.iter().any(|word| word == "--test") {
        return None;
    }
    // Cargo builds into TARGET/PROFILE/deps.
    let output = behind("--out-dir").map(PathBuf::from)?.ancestors().nth(2)?.join("doc");
    let mut kept = vec!["-D".into(), "warnings".into(), "--out-dir".into(), output.into()];
    if behind("--crate-type").is_some_and(|kind| kind == "bin") {
        kept.push("--document-private-items".into());
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if WITH_VALUE.contains(&&*text) {
            kept.extend([word.clone(), words.next()?.clone()]);
        } else if text.starts_with("--edition=") || text.ends_with(".rs") {
            kept.push(word.clone());
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_is_built_is_documented_and_tests_and_questions_are_not() {
        let line = "rustc --crate-name a --edition=2024 crates/a/src/lib.rs --error-format=json \
                    --crate-type lib --emit=dep-info,link -C debuginfo=0 --cfg x=\"y\" \
                    --out-dir /t/debug/deps -L dependency=/t/debug/deps --extern b=/t/b.rmeta";
        let expected = "-D warnings --out-dir /t/doc --crate-name a --edition=2024 \
                        crates/a/src/lib.rs --crate-type lib --cfg x=\"y\" \
                        -L dependency=/t/debug/deps --extern b=/t/b.rmeta";
        assert_eq!(documented(&words(line)).unwrap(), words(expected));
        let bin =
            documented(&words(&line.replace("--crate-type lib", "--crate-type bin"))).unwrap();
        assert!(bin.contains(&"--document-private-items".into()));
        assert!(is_linted_with_tests(&words(line)));
        assert!(!is_linted_with_tests(&words(&format!("{line} --test"))));
        assert!(!is_linted_with_tests(&words(
            &line.replace("--crate-type lib", "--crate-type bin")
        )));
        for other in [
            "rustc -vV".to_owned(),
            format!("{line} --test"),
            line.replace("src/lib.rs", "build.rs"),
            line.replace("src/lib.rs", "examples/b.rs"),
        ] {
            assert_eq!(documented(&words(&other)), None, "{other}");
        }
    }
}
