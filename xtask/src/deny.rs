//! Deny: `cargo deny`, which holds licences, bans and origins of all packages against `deny.toml`.
//!
//! Debian has no package of it, so as root on Debian it is compiled from the registry, once per
//! machine: a minute of two CPUs, and beside the tests, which mostly wait. Elsewhere it is asked for.

use std::process::Command;

use crate::debian::Place;
use crate::steps::{Steps, cargo};

/// What `deny.toml` is written for. What it resolves to is fixed by its own lock file.
const VERSION: &str = "0.20.2";

/// Without the parts that fetch advisories, and without optimisation: it runs for a second.
const INSTALL: &str = "install cargo-deny --locked --debug --no-default-features --quiet --version";

/// The step that installs it, where that is allowed and needed, to be run beside the tests.
pub fn installation(steps: &Steps, place: Place) -> Option<(&'static str, Command)> {
    let mut command = Command::new("nice");
    command
        .arg(cargo())
        .args(INSTALL.split(' '))
        .arg(VERSION)
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        // A folder that the tests build into would be locked by them.
        .env_remove("CARGO_TARGET_DIR");
    let is_wanted = place == Place::RootOnDebian && !steps.has_subcommand("deny");
    is_wanted.then_some(("deny-install", command))
}

/// Runs the check; where the program cannot be had, a visible skip.
pub fn check(steps: &mut Steps) -> Result<(), String> {
    if !steps.has_subcommand("deny") {
        println!("==> deny: skipped, run `cargo install cargo-deny --locked`");
        return Ok(());
    }
    steps.cargo("deny", &["deny", "--all-features", "check", "licenses", "bans", "sources"])
}
