//! Deny: `cargo deny`, which holds licences, bans and origins of all packages against `deny.toml`.
//!
//! Debian has no package of it, so as root on Debian it is compiled from the registry, once per
//! machine: a minute of two CPUs, and beside the tests, which mostly wait. Elsewhere it is asked for.

use std::process::Command;
use std::thread::JoinHandle;

use crate::debian::Place;
use crate::steps::{Steps, answer, cargo};

/// What `deny.toml` is written for. What it resolves to is fixed by its own lock file.
const VERSION: &str = "0.20.2";

/// Without the parts that fetch advisories, and without optimisation: it runs for a second.
const INSTALL: &str = "install cargo-deny --locked --debug --no-default-features --quiet --version";

/// The program, or its installation under way.
pub enum Deny {
    Installed,
    Missing,
    Installing(JoinHandle<Result<(), String>>),
}

impl Deny {
    /// Begins to install it where that is allowed and needed.
    pub fn prepare(steps: &Steps, place: Place) -> Self {
        if steps.has_subcommand("deny") {
            return Self::Installed;
        }
        match place {
            Place::Elsewhere => Self::Missing,
            Place::RootOnDebian => {
                println!("==> deny: cargo-deny {VERSION} is installed beside the tests");
                Self::Installing(std::thread::spawn(install))
            }
        }
    }

    /// Runs the check; where the program cannot be had, a visible skip.
    pub fn check(self, steps: &mut Steps) -> Result<(), String> {
        match self {
            Self::Installed => {}
            Self::Installing(thread) => {
                steps.inside("deny-install", || {
                    let installed = thread.join().map_err(|_| "its thread panicked".to_owned())?;
                    installed.map(|()| "the wait for what the tests had not covered".to_owned())
                })?;
            }
            Self::Missing => {
                println!("==> deny: skipped, run `cargo install cargo-deny --locked`");
                return Ok(());
            }
        }
        steps.cargo("deny", &["deny", "--all-features", "check", "licenses", "bans", "sources"])
    }
}

fn install() -> Result<(), String> {
    let mut command = Command::new("nice");
    command
        .arg(cargo())
        .args(INSTALL.split(' '))
        .arg(VERSION)
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        // A folder that the tests build into would be locked by them.
        .env_remove("CARGO_TARGET_DIR");
    answer(&mut command, "cargo install of cargo-deny").map(drop)
}
