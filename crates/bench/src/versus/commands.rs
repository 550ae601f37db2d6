//! Commands of the user's, each raced against the first.
//!
//! They run as they are, by `sh -c` where one of them needs a shell, so that all of them pay for it.
//! What they leave is not looked at: that a command fails is all that can be known of its work.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use flatout_measure::{Facts, Parameters};
use flatout_sys::process::Account;

use crate::Error;
use crate::versus::Ground;
use crate::versus::printed::wrong;
use crate::versus::race::{Argv, Checked, Contestant, Race, Run, Workload};
use crate::versus::rival::find;
use crate::versus::run::{Runner, SystemRunner, quoted, run_in_time};

/// The rows of their times are called so.
const TEST: &str = "command";

/// A command, and what it is called in tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Of letters, digits, dots, hyphens and underscores.
    pub name: String,
    /// What a shell would be given.
    pub text: OsString,
}

impl Command {
    /// Of `NAME=COMMAND`.
    ///
    /// Errors: it has no name, or nothing behind it.
    pub fn named(text: OsString) -> Result<Self, String> {
        let bytes = text.into_vec();
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let end = bytes.iter().position(|byte| !is_letter(byte)).unwrap_or(bytes.len());
        let (name, rest) = bytes.split_at(end);
        match rest.split_first() {
            Some((b'=', command)) if end > 0 && !command.trim_ascii().is_empty() => Ok(Self {
                name: String::from_utf8_lossy(name).into_owned(),
                text: OsString::from_vec(command.to_vec()),
            }),
            _ => Err("it is to be NAME=COMMAND, as in new='./sort -n numbers'".to_owned()),
        }
    }

    /// Its words, where a shell would do nothing but find the program and start it.
    fn words(&self) -> Option<Argv> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let words = self.text.as_bytes().split(is_blank).filter(|word| !word.is_empty());
        let words: Argv = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
        let program = words.first()?.as_bytes();
        let is_file = program.contains(&b'/') || find(words[0].to_str()?, &path()).is_some();
        let is_plain = !program.contains(&b'=') && words.iter().all(|word| quoted(word) == *word);
        (is_file && is_plain).then_some(words)
    }
}

/// Where a shell looks for programs.
fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// What is raced instead of rivals.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    /// Who takes part; nobody: rivals do.
    pub commands: Vec<Command>,
    /// What a shell does before each run.
    pub before: Option<OsString>,
    /// Seconds that a run is expected to take, with what is done before it.
    pub expected_s: f64,
}

impl Commands {
    /// How each is called.
    fn argvs(&self) -> Vec<Argv> {
        let words: Option<Vec<Argv>> = self.commands.iter().map(Command::words).collect();
        words.unwrap_or_else(|| self.commands.iter().map(|one| by_shell(&one.text)).collect())
    }

    /// Runs each once, the plan of the time being based on what the slowest takes; the caches are as
    /// their work leaves them then. A command that fails is found in the race.
    pub fn tried(self, runner: &mut dyn Runner, limit_ns: u64) -> Self {
        let before = self.before.as_deref().map(by_shell);
        let mut took_s = |argv: &Argv| {
            let runs = before.iter().chain([argv]);
            let spent = runs.filter_map(|argv| runner.run(argv, limit_ns).ok());
            spent.map(|account| account.elapsed_ns as f64 / 1e9).sum::<f64>()
        };
        let expected_s = self.argvs().iter().map(&mut took_s).fold(0.0, f64::max);
        Self { expected_s, ..self }
    }
}

fn by_shell(text: &OsStr) -> Argv {
    vec!["sh".into(), "-c".into(), text.to_owned()]
}

/// The race of the commands, where there are some.
pub(super) fn race(ground: &Ground) -> Option<Race<'static>> {
    let Commands { commands, before, expected_s } = &ground.commands;
    let contestant = |command: &Command| Contestant {
        name: command.name.clone(),
        version: String::new(),
        program: PathBuf::new(),
    };
    (!commands.is_empty()).then(|| Race {
        test: TEST,
        parameters: Parameters::default(),
        printed: None,
        bytes: 0,
        made: None,
        written_bytes: 0,
        contestants: commands.iter().map(contestant).collect(),
        expected_s: *expected_s,
        workload: Box::new(CommandWorkload {
            argvs: ground.commands.argvs(),
            before: before.as_deref().map(by_shell),
            expected_s: *expected_s,
            runner: SystemRunner { cancel: ground.cancel },
        }),
    })
}

/// Runs what is to be done before, and says how each is called.
struct CommandWorkload {
    argvs: Vec<Argv>,
    before: Option<Argv>,
    expected_s: f64,
    runner: SystemRunner,
}

impl Workload for CommandWorkload {
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error> {
        if let Some(before) = &self.before {
            let left_ns = run.ends_ns.saturating_sub(flatout_sys::clock::monotonic_ns());
            let named = ("what is done before", before.as_slice());
            let ran = run_in_time(&mut self.runner, named, self.expected_s, left_ns);
            ran.map_err(|error| wrong(error.to_string()))?;
        }
        Ok(Facts::default())
    }

    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        Ok(self.argvs[run.index].clone())
    }

    fn check(&mut self, _run: &Run<'_>, _account: &Account) -> Result<Checked, Error> {
        Ok(Checked::default())
    }

    fn is_checked(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Command {
        Command::named(text.into()).unwrap()
    }

    fn of(texts: &[&str]) -> Commands {
        Commands {
            commands: texts.iter().map(|text| command(text)).collect(),
            ..Commands::default()
        }
    }

    #[test]
    fn a_command_has_a_name_before_it() {
        let Command { name, text } = command("new-1.2_b=FOO=1 ./sort -n 'a b'");
        assert_eq!((name.as_str(), text.to_str()), ("new-1.2_b", Some("FOO=1 ./sort -n 'a b'")));
        for text in ["", "sort -n x", "=true", "a=", "a= ", "a b=true", "ä=true", "name"] {
            assert!(Command::named(text.into()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn either_all_commands_get_a_shell_or_none() {
        let called = |texts: &[&str]| -> Vec<String> {
            let argvs = of(texts).argvs();
            argvs.iter().map(|argv| argv.join(OsStr::new("|")).into_string().unwrap()).collect()
        };
        assert_eq!(called(&["a=true  -x", "b=/bin/true"]), ["true|-x", "/bin/true"]);
        for text in ["b=true; true", "b=A=1 true", "b=exit 0", "b=true 'x'", "b=true *", "b=~/x"] {
            let shell = text.strip_prefix("b=").unwrap();
            let expected = ["sh|-c|true -x".to_owned(), format!("sh|-c|{shell}")];
            assert_eq!(called(&["a=true -x", text]), expected);
        }
    }
}
