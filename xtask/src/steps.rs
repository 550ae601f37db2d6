//! Steps: one check after another, each named and timed; the first failure is the last step.
//!
//! What a step prints goes straight to the terminal. Steps that run beside another, because that
//! one mostly waits, show theirs when it has ended. The last lines on the screen are those of the
//! tests that failed.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
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
        let said = said(arguments);
        let mut command = self.command(arguments);
        self.inside(&format!("{name}: {said}"), || succeeded(command.status(), &said))
            .map_err(|why| format!("{name} failed: {why}"))
    }

    /// Runs the first of these with cargo, and the other beside it, whose output and failure are told
    /// when the first has ended.
    pub fn cargo_beside(
        &mut self,
        (name, arguments): (&str, &[&str]),
        (other_name, other_arguments): (&str, &[&str]),
    ) -> Result<(), String> {
        let beside = self.command(other_arguments);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| captured(beside, other_name, other_arguments));
            let (mut failed, command, said) =
                (Vec::new(), self.command(arguments), said(arguments));
            let first = self.inside(&format!("{name}: {said}"), || {
                let mut output = Vec::new();
                let outcome = succeeded(run_into(command, &mut output, true), &said);
                if outcome.is_err() {
                    failed.push(failures(&String::from_utf8_lossy(&output)));
                }
                outcome
            });
            let first = first.map_err(|why| format!("{name} failed: {why}"));
            let other = other.join().map_err(|_| "a thread of this program panicked".to_owned())?;
            if other.outcome.is_err() {
                failed.push(failures(&other.output));
            }
            let other = self.show(other);
            // The last lines are those of what failed.
            failed.iter().for_each(|failures| println!("{failures}"));
            first.and(other)
        })
    }

    /// Shows what a step printed that has run beside another.
    fn show(&mut self, ran: Captured) -> Result<(), String> {
        println!("==> {}, beside the last\n{}", ran.said, ran.output.trim_end());
        match ran.outcome {
            Ok(()) => println!("<== {}: ok, {:.1} s", ran.name, ran.seconds),
            Err(why) => {
                println!("<== {}: FAILED, {:.1} s", ran.name, ran.seconds);
                return Err(format!("{} failed: {why}", ran.name));
            }
        }
        self.passed.push((ran.name, ran.seconds));
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.cargo);
        command.args(arguments).current_dir(&self.root);
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        command
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

/// A step that ran beside another.
struct Captured {
    name: String,
    /// Its name and the command.
    said: String,
    output: String,
    seconds: f64,
    outcome: Result<(), String>,
}

fn said(arguments: &[&str]) -> String {
    format!("cargo {}", arguments.join(" "))
}

fn succeeded(status: io::Result<ExitStatus>, said: &str) -> Result<String, String> {
    match status {
        Ok(status) if status.success() => Ok(String::new()),
        Ok(status) => Err(format!("`{said}`: {status}")),
        Err(error) => Err(format!("`{said}` cannot be started: {error}")),
    }
}

/// What the tests that failed have printed, without all the lines of those that passed.
fn failures(output: &str) -> String {
    let lines = output.lines().skip_while(|line| *line != "failures:");
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("test result:")).collect();
    lines.join("\n")
}

/// Runs a command and keeps what it prints, in order.
fn captured(command: Command, name: &str, arguments: &[&str]) -> Captured {
    let (begun, said) = (Instant::now(), said(arguments));
    let mut output = Vec::new();
    let status = run_into(command, &mut output, false);
    Captured {
        name: name.to_owned(),
        said: format!("{name}: {said}"),
        output: String::from_utf8_lossy(&output).into_owned(),
        seconds: begun.elapsed().as_secs_f64(),
        outcome: succeeded(status, &said).map(|_| ()),
    }
}

/// Both streams of a command through one pipe, each line shown as it comes where that is wanted.
fn run_into(mut command: Command, output: &mut Vec<u8>, shows: bool) -> io::Result<ExitStatus> {
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds the ends that are written to; with it they close.
    drop(command);
    let mut reader = BufReader::new(reader);
    let mut start = 0;
    while reader.read_until(b'\n', output)? > 0 {
        if shows {
            io::stdout().write_all(&output[start..])?;
        }
        start = output.len();
    }
    child.wait()
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
    fn steps_beside_another_are_told_after_it_with_what_they_printed() {
        let mut steps = Steps::new(Path::new("/"));
        steps.cargo = "sh".into();
        let (good, bad) = (["-c", "echo out; echo err >&2"], ["-c", "exit 3"]);
        assert_eq!(steps.cargo_beside(("a", &good), ("b", &good)), Ok(()));
        let names: Vec<&str> = steps.passed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let why = steps.cargo_beside(("a", &good), ("b", &bad)).unwrap_err();
        assert!(why.starts_with("b failed") && why.ends_with("exit status: 3"), "{why}");
        let ran = captured(steps.command(&good), "b", &good);
        assert_eq!(ran.output, "out\nerr\n");
    }

    #[test]
    fn what_failed_is_said_again() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b ----\nwhy\n\nfailures:\n    b\n\ntest result: FAILED.\nmore";
        assert_eq!(failures(output), "failures:\n\n---- b ----\nwhy\n\nfailures:\n    b\n");
        assert_eq!(failures("test a ... ok\n\ntest result: ok."), "");
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
