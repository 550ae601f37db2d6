//! Steps: one check after another, each named and timed; the first failure is the last step.
//!
//! What a step prints goes straight to the terminal. Nothing is run in parallel, so that the
//! last lines on the screen belong to the step that failed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The row of checks of one run.
pub struct Steps {
    root: PathBuf,
    cargo: OsString,
    environment: Vec<(OsString, OsString)>,
    begun: Instant,
    /// Name and seconds of each step that passed.
    passed: Vec<(String, f64)>,
}

impl Steps {
    /// Starts the clock; nothing is run yet.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            cargo: cargo(),
            environment: Vec::new(),
            begun: Instant::now(),
            passed: Vec::new(),
        }
    }

    /// Sets a variable for all later cargo steps.
    pub fn set_env(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.environment.push((name.into(), value.as_ref().into()));
    }

    /// Fails when a part of the toolchain is missing that a later step needs.
    pub fn require_components(&self) -> Result<(), String> {
        let missing: Vec<&str> = [("fmt", "rustfmt"), ("clippy", "clippy")]
            .into_iter()
            .filter(|(command, _)| !self.has_subcommand(command))
            .map(|(_, component)| component)
            .collect();
        missing_components(&missing).map_or(Ok(()), Err)
    }

    /// Runs cargo with these arguments in the root of the repository.
    pub fn cargo(&mut self, name: &str, arguments: &[&str]) -> Result<(), String> {
        let said = format!("cargo {}", arguments.join(" "));
        let mut command = Command::new(&self.cargo);
        command.args(arguments).current_dir(&self.root);
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        self.inside(&format!("{name}: {said}"), || match command.status() {
            Ok(status) if status.success() => Ok(String::new()),
            Ok(status) => Err(format!("`{said}`: {status}")),
            Err(error) => Err(format!("`{said}` cannot be started: {error}")),
        })
        .map_err(|why| format!("{name} failed: {why}"))
    }

    /// Runs a check of this program itself and prints the summary that it returns.
    pub fn inside(
        &mut self,
        name: &str,
        check: impl FnOnce() -> Result<String, String>,
    ) -> Result<(), String> {
        println!("==> {name}");
        let begun = Instant::now();
        let outcome = check();
        let word = name.split(':').next().unwrap_or(name);
        let seconds = begun.elapsed().as_secs_f64();
        match outcome {
            Ok(summary) if summary.is_empty() => println!("<== {word}: ok, {seconds:.1} s"),
            Ok(summary) => println!("<== {word}: ok, {seconds:.1} s; {summary}"),
            Err(why) => {
                println!("<== {word}: FAILED, {seconds:.1} s");
                return Err(why);
            }
        }
        self.passed.push((word.to_owned(), seconds));
        Ok(())
    }

    /// Says how long each step took, and all together.
    pub fn finish(self) {
        let each: Vec<String> =
            self.passed.iter().map(|(name, seconds)| format!("{name} {seconds:.1}")).collect();
        let seconds = self.begun.elapsed().as_secs_f64();
        println!("xtask: all steps passed in {seconds:.1} s: {}", each.join(", "));
    }

    /// Whether cargo has such a subcommand.
    pub fn has_subcommand(&self, name: &str) -> bool {
        Command::new(&self.cargo)
            .args([name, "--version"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// The cargo that runs this program, so that all steps share one toolchain.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The complaint about missing components, with the command that brings them.
fn missing_components(missing: &[&str]) -> Option<String> {
    if missing.is_empty() {
        return None;
    }
    let names = missing.join(" ");
    Some(format!(
        "this toolchain has no {}: run `rustup component add {names}`",
        missing.join(" and no ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_component_is_named_with_its_remedy() {
        assert_eq!(missing_components(&[]), None);
        assert_eq!(
            missing_components(&["rustfmt", "clippy"]).unwrap(),
            "this toolchain has no rustfmt and no clippy: run `rustup component add rustfmt clippy`"
        );
    }

    #[test]
    fn a_failing_check_ends_with_its_reason() {
        let mut steps = Steps::new(Path::new("/"));
        assert_eq!(steps.inside("good", || Ok(String::new())), Ok(()));
        assert_eq!(steps.inside("bad", || Err("why".into())), Err("why".into()));
        assert_eq!(steps.passed.len(), 1);
    }

    #[test]
    fn a_failing_command_is_named() {
        let mut steps = Steps::new(Path::new("/"));
        steps.cargo = "false".into();
        let why = steps.cargo("fmt", &["fmt", "--check"]).unwrap_err();
        assert!(why.starts_with("fmt failed: `cargo fmt --check`: exit status: 1"), "{why}");
        steps.cargo = "/nonexistent/cargo".into();
        let why = steps.cargo("fmt", &["fmt"]).unwrap_err();
        assert!(why.contains("cannot be started"), "{why}");
        assert!(!steps.has_subcommand("deny"));
    }
}
