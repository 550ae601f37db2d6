//! One run of one program: called, timed and accounted for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use flatout_io::{cause_text, escape};
use flatout_measure::{TrialError, warning};
use flatout_sys::CancelToken;
use flatout_sys::process::{self, Account, End, Limits, Program};

/// Runs programs.
pub trait Runner {
    /// Runs one to its end, at most `limit_ns`.
    ///
    /// Errors: it cannot be started. A program that fails, or was ended ([`Account::end`]), is a
    /// result.
    fn run(&mut self, argv: &[OsString], limit_ns: u64) -> Result<Account, String>;
}

/// Bytes of standard output that are kept: the digests of a few hundred thousand files.
const STDOUT_BYTES: usize = 64 << 20;

/// The real machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemRunner {
    /// Whether the user wants to stop.
    pub cancel: CancelToken,
}

impl Runner for SystemRunner {
    fn run(&mut self, argv: &[OsString], limit_ns: u64) -> Result<Account, String> {
        let program = Program { argv, stdout_bytes: STDOUT_BYTES };
        let limits = Limits { time_ns: Some(limit_ns), cancel: self.cancel };
        process::run(&program, &limits).map_err(|error| {
            let name = argv.first().map_or("", |name| name.to_str().unwrap_or("?"));
            format!("cannot start {name:?}: {}", cause_text(&error))
        })
    }
}

/// `if=PATH` and the like, as dd takes them.
pub(super) fn operand(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut text = OsString::from(name);
    text.push(value);
    text
}

/// A word as a shell takes it back whole.
pub fn quoted(word: &OsStr) -> OsString {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(byte);
    let bytes = word.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return word.to_owned();
    }
    let mut text = vec![b'\''];
    for &byte in bytes {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            _ => text.push(byte),
        }
    }
    text.push(b'\'');
    OsString::from_vec(text)
}

/// A command as one types it, for the audit.
pub fn command_text(argv: &[OsString]) -> String {
    let words: Vec<_> = argv.iter().map(|word| escape(quoted(word))).collect();
    words.join(" ")
}

/// How many times as long as expected a run may take, and this long in any case.
const RUN_STRETCH: f64 = 20.0;
const RUN_LEAST_NS: u64 = 60_000_000_000;
/// How much later than its time a run may end before it is ended.
const GRACE_NS: u64 = 500_000_000;

/// Runs a program that is expected to take so long, and for which so much time is left.
///
/// Errors: it failed, the user wants to stop, or the time was over
/// ([`TrialError::NoMore`]).
pub(crate) fn run_in_time(
    runner: &mut dyn Runner,
    (name, argv): (&str, &[OsString]),
    expected_s: f64,
    left_ns: u64,
) -> Result<Account, TrialError> {
    let usual_ns = RUN_LEAST_NS.saturating_add((expected_s * RUN_STRETCH * 1e9) as u64);
    let limit_ns = usual_ns.min(left_ns.saturating_add(GRACE_NS));
    let command = || command_text(argv);
    let spent = runner.run(argv, limit_ns);
    let spent = spent.map_err(|text| TrialError::Failed(format!("{name}: {text}")))?;
    Err(match spent.end {
        End::Itself if spent.exit_code == 0 => return Ok(spent),
        End::Itself => TrialError::Failed(complaint(name, &command(), &spent)),
        End::Cancelled => TrialError::Interrupted,
        End::TimeOver if limit_ns < usual_ns => TrialError::NoMore(warning::no_time()),
        End::TimeOver => {
            let seconds = limit_ns / 1_000_000_000;
            TrialError::Failed(format!("{name} was ended after {seconds} s: {}", command()))
        }
    })
}

/// Letters of a complaint that are passed on.
const COMPLAINT_LETTERS: usize = 200;

/// One line about a program that failed: who, how, the last that it said, and its command.
fn complaint(name: &str, command: &str, account: &Account) -> String {
    let end = match account.exit_code {
        code @ 129..=192 => format!("was killed by signal {}", code - 128),
        code => format!("failed with exit code {code}"),
    };
    let said = String::from_utf8_lossy(&account.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let last = last.map_or_else(
        || "it said nothing".to_owned(),
        |line| {
            let letters = line.chars().filter(|letter| !letter.is_control());
            letters.take(COMPLAINT_LETTERS).collect()
        },
    );
    format!("{name} {end}: {last} ({command})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_whole_from_a_shell() {
        let odd = OsString::from_vec(b"it's \"odd\"\n$HOME \xff".to_vec());
        let mut text = OsString::from("printf %s ");
        text.push(quoted(&odd));
        let argv = vec!["sh".into(), "-c".into(), text];
        let mut runner = SystemRunner { cancel: CancelToken::manual() };
        let spent = runner.run(&argv, 1 << 40).unwrap();
        assert_eq!(spent.stdout, odd.as_bytes());
        assert_eq!(quoted(OsStr::new("plain-1.txt")), "plain-1.txt");
        assert_eq!(quoted(OsStr::new("")), "''");
    }
}
