//! Commands of the user's, each raced against the first.
//!
//! They run as they are, by `sh -c` where one of them needs a shell, so that all of them pay for it.
//! What they leave is not looked at: that a command fails is all that can be known of its work.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use flatout_measure::{Facts, Parameters};
use flatout_sys::process::{Account, End};

use crate::Error;
use crate::versus::Ground;
use crate::versus::printed::wrong;
use crate::versus::race::{Argv, Checked, Contestant, Race, Run, Workload};
use crate::versus::rival::{find, path};
use crate::versus::run::{Runner, SystemRunner, quoted, run_in_time};

/// The rows of their times are called so.
pub(super) const TEST: &str = "command";

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
    /// their work leaves them then. A command that fails is found in the race. Once all of them together
    /// have taken `limit_ns`, or the user wants to stop, no other one is started.
    pub fn tried(self, runner: &mut dyn Runner, limit_ns: u64) -> Self {
        let before = self.before.as_deref().map(by_shell);
        let mut left_ns = limit_ns;
        let mut took_ns = |argv: &Argv| {
            let ran = (left_ns > 0).then(|| runner.run(argv, left_ns).ok());
            let Account { elapsed_ns, end, .. } = ran.flatten().unwrap_or_default();
            left_ns = if end == End::Itself { left_ns.saturating_sub(elapsed_ns) } else { 0 };
            elapsed_ns
        };
        let argvs = self.argvs();
        let each =
            argvs.iter().map(|argv| before.iter().chain([argv]).map(&mut took_ns).sum::<u64>());
        let expected_ns = each.max().unwrap_or(0);
        Self { expected_s: expected_ns as f64 / 1e9, ..self }
    }
}

fn by_shell(text: &OsStr) -> Argv {
    vec!["sh".into(), "-c".into(), text.to_owned()]
}

/// The race of the commands, where there are some.
pub(super) fn race(ground: &Ground) -> Option<Race<'static>> {
    let Commands { commands, before, expected_s } = &ground.commands;
    let contestant =
        |command: &Command| Contestant { name: command.name.clone(), ..Contestant::default() };
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

    /// Each run takes 3 ns, and ends so; what they were limited to is remembered.
    struct Slow(Vec<u64>, End);

    impl Runner for Slow {
        fn run(&mut self, _: &[OsString], limit_ns: u64) -> Result<Account, String> {
            self.0.push(limit_ns);
            Ok(Account { elapsed_ns: limit_ns.min(3), end: self.1, ..Account::default() })
        }
    }

    #[test]
    fn commands_are_tried_in_the_time_that_all_have_and_not_after_a_wish_to_stop() {
        let tried = |limit_ns, end| {
            let mut slow = Slow(Vec::new(), end);
            let commands = Commands { before: Some("exit".into()), ..of(&["a=true", "b=true -x"]) };
            let took_s = commands.tried(&mut slow, limit_ns).expected_s;
            (slow.0, took_s)
        };
        assert_eq!(tried(u64::MAX, End::Itself).0.len(), 4, "each with what is done before it");
        assert_eq!(tried(u64::MAX, End::Itself).1, 6e-9);
        assert_eq!(tried(8, End::Itself), (vec![8, 5, 2], 6e-9));
        assert_eq!(tried(100, End::Cancelled), (vec![100], 3e-9));
        assert_eq!(tried(100, End::TimeOver).0, [100]);
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
