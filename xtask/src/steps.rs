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

    /// Runs cargo with these arguments in the root of the repository.
    pub fn cargo(&mut self, name: &str, arguments: &[&str]) -> Result<(), String> {
        let mut command = self.command(arguments);
        let said = words(&command);
        self.inside(&format!("{name}: {said}"), || succeeded(command.status(), &said))
            .map_err(|why| format!("{name} failed: {why}"))
    }

    /// Builds with cargo, and says where the executable of the target with this name is.
    pub fn built(
        &mut self,
        name: &str,
        arguments: &[&str],
        variable: (&str, &Path),
        target: &str,
    ) -> Result<PathBuf, String> {
        let mut command = self.command(arguments);
        let said = words(&command);
        command.arg("--message-format=json-render-diagnostics").env(variable.0, variable.1);
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let mut found = None;
        self.inside(&format!("{name}: {said}"), || {
            let output = command.output();
            let messages = output.as_ref().map(|output| output.stdout.clone()).unwrap_or_default();
            found = executable(&String::from_utf8_lossy(&messages), target);
            succeeded(output.map(|output| output.status), &said)
        })
        .map_err(|why| format!("{name} failed: {why}"))?;
        found.ok_or_else(|| format!("`{said}` names no executable of {target}"))
    }

    /// A step of cargo, to be run beside another.
    pub fn beside<'a>(&self, name: &'a str, arguments: &[&str]) -> (&'a str, Command) {
        (name, self.command(arguments))
    }

    /// The tests of a package in an executable, to be run beside another step.
    pub fn tests<'a>(
        &self,
        name: &'a str,
        executable: &Path,
        package: &Path,
    ) -> (&'a str, Command) {
        let mut command = Command::new(executable);
        command.current_dir(package);
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        (name, command)
    }

    /// Runs the first of these, and beside it the others, one after the other, whose output and failure
    /// are told when the first has ended.
    pub fn run_beside(
        &mut self,
        (name, command): (&str, Command),
        others: Vec<(&str, Command)>,
    ) -> Result<(), String> {
        std::thread::scope(|scope| {
            let others = others.into_iter().map(|(name, command)| captured(command, name));
            let others = scope.spawn(|| others.collect::<Vec<_>>());
            let (mut failed, said) = (Vec::new(), words(&command));
            let first = self.inside(&format!("{name}: {said}"), || {
                let mut output = Vec::new();
                let outcome = succeeded(run_into(command, &mut output, true), &said);
                if outcome.is_err() {
                    failed.push(failures(&String::from_utf8_lossy(&output)));
                }
                outcome
            });
            let mut outcome = first.map_err(|why| format!("{name} failed: {why}"));
            let others =
                others.join().map_err(|_| "a thread of this program panicked".to_owned())?;
            for other in others {
                if other.outcome.is_err() {
                    failed.push(failures(&other.output));
                }
                let shown = self.show(other);
                outcome = outcome.and(shown);
            }
            // The last lines are those of what failed.
            failed.iter().for_each(|failures| println!("{failures}"));
            outcome
        })
    }

    /// Shows what a step printed that has run beside another.
    fn show(&mut self, ran: Captured) -> Result<(), String> {
        println!("==> {}: {}, beside\n{}", ran.name, ran.said, ran.output.trim_end());
        let told = self.ended(&ran.name, ran.seconds, ran.outcome);
        told.map_err(|why| format!("{} failed: {why}", ran.name))
    }

    /// Says how a step ended, with the summary that it has.
    fn ended(
        &mut self,
        name: &str,
        seconds: f64,
        outcome: Result<String, String>,
    ) -> Result<(), String> {
        match outcome {
            Ok(summary) if summary.is_empty() => println!("<== {name}: ok, {seconds:.1} s"),
            Ok(summary) => println!("<== {name}: ok, {seconds:.1} s; {summary}"),
            Err(why) => {
                println!("<== {name}: FAILED, {seconds:.1} s");
                return Err(why);
            }
        }
        self.passed.push((name.to_owned(), seconds));
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
        self.ended(word, begun.elapsed().as_secs_f64(), outcome)
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
        let told =
            Command::new(&self.cargo).args([name, "--version"]).stdin(Stdio::null()).output();
        told.is_ok_and(|output| output.status.success())
    }
}

/// A step that ran beside another.
struct Captured {
    name: String,
    /// The command.
    said: String,
    output: String,
    seconds: f64,
    outcome: Result<String, String>,
}

/// The words of a command, its program without the folder.
fn words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words: Vec<_> =
        [program].into_iter().chain(command.get_args()).map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

/// The executable of a target in cargo's messages.
fn executable(messages: &str, target: &str) -> Option<PathBuf> {
    messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_it = message["target"]["name"] == target;
        is_it.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
    })
}

/// Nothing, where a command succeeded.
pub fn succeeded(status: io::Result<ExitStatus>, said: &str) -> Result<String, String> {
    match status {
        Ok(status) if status.success() => Ok(String::new()),
        Ok(status) => Err(format!("`{said}`: {status}")),
        Err(error) => Err(format!("`{said}` cannot be started: {error}")),
    }
}

/// What a command prints, or its complaint.
pub fn answer(command: &mut Command, said: &str) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{said} cannot be started: {error}"))?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|error| format!("{said}: {error}")),
        false => Err(format!("{said}: {}", String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}

/// What the tests that failed have printed, without all the lines of those that passed.
fn failures(output: &str) -> String {
    let lines = output.lines().skip_while(|line| *line != "failures:");
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("test result:")).collect();
    lines.join("\n")
}

/// Runs a command and keeps what it prints, in order.
fn captured(command: Command, name: &str) -> Captured {
    let (begun, said) = (Instant::now(), words(&command));
    let mut output = Vec::new();
    let status = run_into(command, &mut output, false);
    Captured {
        name: name.to_owned(),
        said: said.clone(),
        output: String::from_utf8_lossy(&output).into_owned(),
        seconds: begun.elapsed().as_secs_f64(),
        outcome: succeeded(status, &said),
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let step = |steps: &Steps, name, words| steps.beside(name, words);
        let [a, b, c] = ["a", "b", "c"].map(|name| step(&steps, name, &good));
        assert_eq!(steps.run_beside(a, vec![b, c]), Ok(()));
        let names: Vec<&str> = steps.passed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let others = vec![step(&steps, "b", &bad), step(&steps, "c", &good)];
        let a = step(&steps, "a", &good);
        let why = steps.run_beside(a, others).unwrap_err();
        assert!(why.starts_with("b failed") && why.ends_with("exit status: 3"), "{why}");
        let ran = captured(step(&steps, "b", &good).1, "b");
        assert_eq!(ran.output, "out\nerr\n");
    }

    #[test]
    fn an_executable_is_found_in_the_messages_of_cargo() {
        let messages = "nothing\n{\"target\":{\"name\":\"a\"},\"executable\":null}\n\
                        {\"target\":{\"name\":\"a\"},\"executable\":\"/x/a-1\"}\n";
        assert_eq!(executable(messages, "a"), Some(PathBuf::from("/x/a-1")));
        assert_eq!(executable(messages, "b"), None);
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
        assert!(why.starts_with("fmt failed: `false fmt --check`: exit status: 1"), "{why}");
        steps.cargo = "/nonexistent/cargo".into();
        let why = steps.cargo("fmt", &["fmt"]).unwrap_err();
        assert!(why.contains("cannot be started"), "{why}");
        assert!(!steps.has_subcommand("deny"));
    }
}
