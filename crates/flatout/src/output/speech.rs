//! What is said on standard error, and under which name.

use std::io::{self, Write};
use std::sync::OnceLock;

use flatout_report::text;

use super::held;

/// The name under which complaints are made.
static SPEAKER: OnceLock<&str> = OnceLock::new();

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
    let _ = writeln!(
        io::stderr().lock(),
        "{}: {}",
        SPEAKER.get().unwrap_or(&"flatout"),
        text::visible(line)
    );
}

/// Asks whether something may be overwritten. No answer is none, and one that is no text is no consent.
pub fn consents(question: &str) -> bool {
    ask(question);
    let mut answer = String::new();
    let _end = io::stdin().read_line(&mut answer);
    answer.starts_with(['y', 'Y'])
}

/// A question on standard error; the answer is typed behind it.
fn ask(question: &str) {
    let _ = write!(
        io::stderr().lock(),
        "{}: {}",
        SPEAKER.get().unwrap_or(&"flatout"),
        text::visible(question)
    );
}
