//! The house's own tool: `cargo xtask test` is what CI runs, `cargo xtask tidy` reads the sources.
//!
//! It needs the Rust toolchain and a C linker, nothing else, and works from any folder of the
//! repository. It never ships and uses no other room.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

mod arrows;
mod compiler;
mod coverage;
mod debian;
mod deny;
mod links;
mod part;
mod promises;
mod rules;
mod scratch;
mod skips;
mod sources;
mod steps;
mod tidy;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask test               every check that CI runs
       cargo xtask test --full        every combination instead of a sample, and the benches
       cargo xtask test --area NAME   the tests of a crate (tree) or of an area (copy) alone
       cargo xtask tidy               only the rules of the house: arrows, sizes, sources
       cargo xtask coverage RUNS [ARGUMENTS of flatout bench]
       cargo xtask coverage RECORD...   each against those of other folders, if there are any
                                      which share of its intervals holds what other runs find";

fn main() -> ExitCode {
    if let Some(code) = compiler::stand_in() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = repository_root();
    let done = match words[..] {
        ["test"] => test(&root, Extent::Sampled),
        ["test", "--full"] => test(&root, Extent::Full),
        ["test", "--area", name] => part::test(&root, name),
        ["tidy"] => tidy::check(&root).map(|summary| println!("tidy: {summary}")),
        ["coverage", first, ref others @ ..] => coverage::measure(&root, first, others),
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

/// How much the tests go through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// A sample of the combinations that covers every pair, from a printed seed; no benches.
    Sampled,
    /// Everything.
    Full,
}

/// What tests need.
const FEATURES: [&str; 2] = ["--features", "flatout-measure/validator,flatout-sys/launcher"];
/// What of flatout needs MPI.
const WITH_MPI: [&str; 2] = ["--features", "flatout/mpi"];

/// All rooms but the one of MPI where that cannot be built, and the benches in the full set alone.
fn rooms(extent: Extent) -> Vec<&'static str> {
    let mut rooms = vec!["--workspace"];
    if extent == Extent::Sampled {
        rooms.extend(["--exclude", "flatout-benches"]);
    }
    if !debian::can_build_mpi() {
        rooms.extend(["--exclude", "flatout-mpi"]);
    }
    rooms
}

/// The tests of whole programs. They take longest and mostly wait: all others run beside them.
const PROGRAMS: &str = "e2e";

/// Tests that run at once on each CPU.
const TESTS_PER_CPU: usize = 5;

/// Runs every check, the quick ones first; the first failure ends the run.
fn test(root: &Path, extent: Extent) -> Result<(), String> {
    let mut steps = steps::Steps::new(root);
    let place = debian::prepare(extent);

    steps.cargo("fmt", &["fmt", "--all", "--check"])?;
    steps.inside("tidy", || tidy::check(root))?;

    let workspace = workspace::read(root)?;
    let target = workspace.target_directory;
    if is_fresh(&target) {
        steps.set_env("CARGO_INCREMENTAL", "0");
        // Where a test fails it says without them.
        steps.set_env("CARGO_PROFILE_DEV_DEBUG", "false");
    }
    let rooms = rooms(extent);
    let everything = [&rooms[..], &FEATURES].concat();
    for (name, value) in compiler::environment(&steps::cargo(), &target)? {
        steps.set_env(name, value);
    }
    // Benches are no part of the tests, but of what is linted.
    let targets: &[&str] = if extent == Extent::Full { &["--all-targets"] } else { &[] };
    steps.cargo("build", &[&["test", "--no-run"], targets, &everything[..]].concat())?;
    let mpi = match debian::can_build_mpi() {
        true => Some(built_with_mpi(&mut steps, &target, &everything)?),
        false => None,
    };
    // Of a program without tests of its own the tests are built alone.
    steps.cargo("xtask", &["build", "--package", "xtask"])?;

    let log = skips::fresh_log(&target)?;
    steps.set_env("FLATOUT_SKIP_LOG", &log);
    let scratch = scratch::Scratch::new()?;
    steps.set_env("TMPDIR", &scratch.path);
    // Most of the time tests wait, for programs, disks and clocks; none asks for a CPU of its own.
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    steps.set_env("RUST_TEST_THREADS", (TESTS_PER_CPU * cpus).to_string());
    if extent == Extent::Full {
        steps.set_env("FLATOUT_TEST_FULL", "1");
    }
    let programs = [&["test"], &everything[..], &["--test", PROGRAMS]].concat();
    let own = ["--no-fail-fast", "--lib", "--bins"];
    let mut others = [&["test"], &everything[..], &own].concat();
    let tests = workspace.rooms.iter().flat_map(|room| &room.tests);
    tests.filter(|test| *test != PROGRAMS).for_each(|test| others.extend(["--test", test]));
    let programs = steps.beside("programs", &programs);
    // The others keep busy what the tests of programs leave idle.
    let mut beside = vec![steps.beside("others", &others)];
    match mpi {
        Some(tests) => beside.push(steps.tests("mpi", &tests, &root.join("crates/flatout"))),
        None => println!("==> mpi: skipped: mpicc or libclang is not installed"),
    }
    beside.extend(deny::installation(&steps, place));
    let mut ran = steps.run_beside(programs, beside);
    if extent == Extent::Full {
        if debian::can_build_mpi() {
            let bins = [&["test"], &everything[..], &WITH_MPI, &["--bins"]].concat();
            ran = ran.and_then(|()| steps.cargo("mpi-bins", &bins));
        }
        ran = ran.and_then(|()| with_mpich(&mut steps, &target, &everything));
    }
    ran.and(scratch.remove())?;
    steps.inside("skips", || skips::check(&log, debian::lacks_nothing(place, extent)))?;
    deny::check(&mut steps)?;
    steps.finish();
    Ok(())
}

/// Builds the program with MPI and its tests, and returns where these are. They start it by another
/// name, and so they may run beside the tests of the usual one.
fn built_with_mpi(
    steps: &mut steps::Steps,
    target: &Path,
    everything: &[&str],
) -> Result<PathBuf, String> {
    let (usual, program) = (target.join("debug/flatout"), target.join("debug/flatout-mpi"));
    let tests = [&["test", "--no-run"], everything, &WITH_MPI, &["--test", "mpi"]].concat();
    let tests = steps.built("mpi-build", &tests, ("FLATOUT_TEST_PROGRAM", &program), "mpi")?;
    std::fs::rename(&usual, &program).map_err(sources::cannot_be("renamed", &usual))?;
    Ok(tests)
}

/// The tests of several processes once more, with the other MPI library of Debian.
fn with_mpich(steps: &mut steps::Steps, target: &Path, everything: &[&str]) -> Result<(), String> {
    if !debian::can_build_mpich() {
        println!("==> mpich: skipped: it is not installed");
        return Ok(());
    }
    steps.set_env("MPICC", debian::MPICH);
    steps.set_env("FLATOUT_TEST_MPIRUN", debian::MPICH_RUN);
    // What was built with one library does not speak with the other.
    steps.set_env("CARGO_TARGET_DIR", target.join("mpich"));
    steps.cargo("mpich", &[&["test"], everything, &WITH_MPI, &["--test", "mpi"]].concat())
}

/// Whether nothing but this program was built here in a way that makes the next build quicker. Then
/// nothing is lost by leaving that out, which takes a tenth of the time of a build.
fn is_fresh(target: &Path) -> bool {
    let entries = std::fs::read_dir(target.join("debug/incremental"));
    let mut names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.all(|name| name.to_string_lossy().starts_with("xtask-"))
}

/// The folder above this package, wherever the command was typed.
fn repository_root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
