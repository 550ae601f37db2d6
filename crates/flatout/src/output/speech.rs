//! What is said a line at a time: on standard error, under which name, and on standard output.

use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::sync::OnceLock;

use flatout_report::Style;
use flatout_report::text::{self, Joined};
use flatout_sys::cancel::CancelToken;
use flatout_sys::input;

use super::{exit, held, is_unicode, to_standard_output};
use crate::conclusion;

/// The name under which complaints are made.
static SPEAKER: OnceLock<&str> = OnceLock::new();

/// Why a line of standard output was lost; the first one.
static UNSAID: OnceLock<String> = OnceLock::new();

/// Takes over another name for complaints; once, at the beginning.
pub fn speak_as(name: &'static str) {
    // Nobody else does it.
    let _ = SPEAKER.set(name);
}

/// One line on standard error; where a view has the whole screen, when that is given back.
pub fn complain(line: &str) {
    if held::keeps(line) {
        return;
    }
    // Whoever closed standard error does not want to hear it.
    let _ = writeln!(io::stderr().lock(), "{}", spoken(line));
}

/// One line on standard error that is no complaint: where that is a terminal, by whole words.
pub(super) fn announce(line: &str) {
    if held::keeps(line) {
        return;
    }
    let mut lines = vec![spoken(line)];
    if let Some(columns) = flatout_sys::terminal::width_columns(&io::stderr()) {
        lines = text::wrap(&lines[0], columns.into());
    }
    let _ = writeln!(io::stderr().lock(), "{}", lines.join("\n"));
}

/// One line on standard error about a fault of this program, past all views: whoever has their locks
/// may be who failed.
pub fn complain_of_fault(panic: &PanicHookInfo<'_>) {
    let said = panic.to_string();
    let said = text::visible(&said.trim_start_matches("panicked ").replace('\n', " "));
    let _ = writeln!(io::stderr().lock(), "flatout: a fault of this program, {said}");
}

/// Prints a help.
pub fn show_help(help: &str) -> ExitCode {
    super::deliver(None, readable(help, &io::stdout()).as_bytes(), conclusion::DONE)
}

/// Lines of our own text, made safe, as they can be shown here.
pub(super) fn readable(text: &str, place: &impl IsTerminal) -> String {
    let style = Style { unicode: !place.is_terminal() || is_unicode(), ..Style::default() };
    text.split('\n').map(|line| text::shown(line, &style)).joined("\n")
}

/// A line as standard error can show it, and who says it; a line feed in it is none.
fn spoken(line: &str) -> String {
    let line = readable(&text::visible(line), &io::stderr());
    format!("{}: {line}", SPEAKER.get().unwrap_or(&"flatout"))
}

/// One line on standard output, at once. That it could not be written, [`finish`] says.
pub fn say(line: &str) {
    if let Err(error) = to_standard_output(format!("{}\n", text::visible(line)).as_bytes()) {
        // The first is the one that counts.
        let _ = UNSAID.set(error);
    }
}

/// Says that lines were lost, which makes a success a failure.
pub fn finish(code: ExitCode) -> ExitCode {
    let Some(error) = UNSAID.get() else { return code };
    complain(error);
    if code == ExitCode::SUCCESS { exit(conclusion::FAILED) } else { code }
}

/// Asks whether something may be overwritten; the answer is typed behind the question. No answer is
/// none, and one that is no text, or comes behind a signal that asks for the end, is no consent.
pub fn consents(question: &str) -> bool {
    let _ = write!(io::stderr().lock(), "{}", spoken(question));
    let Ok(input) = input::open("-".as_ref(), CancelToken::signals()) else { return false };
    // What follows the line is the answer to another question.
    let (mut input, mut answer) = (BufReader::with_capacity(1, input.into_inner()), String::new());
    input.read_line(&mut answer).is_ok_and(|_| answer.starts_with(['y', 'Y']))
}
