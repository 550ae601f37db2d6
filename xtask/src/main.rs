//! The house's own tool: `cargo xtask test` is what CI runs, `cargo xtask tidy` reads the sources.
//!
//! It needs the Rust toolchain and a C linker, nothing else, and works from any folder of the
//! repository. It never ships and uses no other room.

#![forbid(unsafe_code)]

mod arrows;
mod debian;
mod licences;
mod masked;
mod metadata;
mod packages;
mod promises;
mod rules;
mod sizes;
mod skips;
mod sources;
mod steps;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask test [--full]   every check that CI runs; --full: every combination, no sampling
       cargo xtask tidy            only the rules of the house: arrows, sizes, licences, sources";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = repository_root();
    let done = match words[..] {
        ["test"] => test(&root, Extent::Sampled),
        ["test", "--full"] => test(&root, Extent::Full),
        ["tidy"] => tidy::check(&root).map(|summary| println!("tidy: {summary}")),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::from(1)
        }
    }
}

/// How many combinations the tests go through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// A sample that covers every pair, from a printed seed.
    Sampled,
    /// All of them.
    Full,
}

/// Runs every check, the quick ones first; the first failure ends the run.
fn test(root: &Path, extent: Extent) -> Result<(), String> {
    let mut steps = steps::Steps::new(root);
    steps.require_components()?;
    let place = debian::prepare();

    steps.cargo("fmt", &["fmt", "--all", "--check"])?;
    steps.inside("tidy", || tidy::check(root))?;
    steps.cargo(
        "clippy",
        &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
    )?;

    let log = skips::fresh_log(&metadata::read(root)?.target_directory)?;
    steps.set_env("FLATOUT_SKIP_LOG", &log);
    if extent == Extent::Full {
        steps.set_env("FLATOUT_TEST_FULL", "1");
    }
    steps.cargo("test", &["test", "--workspace", "--all-features"])?;
    steps.inside("skips", || skips::check(root, &log, place))?;

    steps.set_env("RUSTDOCFLAGS", "-D warnings");
    steps.cargo("doc", &["doc", "--no-deps", "--workspace"])?;
    steps.cargo_if_installed("deny", &["deny", "check", "licenses", "bans"])?;
    steps.finish();
    Ok(())
}

/// The folder above this package, wherever the command was typed.
fn repository_root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
