//! Where results and complaints go: standard output or a file, and standard error.

pub mod held;
pub mod place;
mod speech;
pub mod stream;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::error::ErrorKind;
use flatout_io::cause_text;
use flatout_measure::record::{Record, Status};
use flatout_report::text::{self, Joined};
use flatout_report::{Extent, Format, Identity, Style};
use flatout_sys::standard;

use crate::arguments::help;
use crate::arguments::refusal::Refusal;
use crate::arguments::shared::{Color, Output, Talk};
use crate::conclusion::{self, Conclusion, Keep, Refused};

use place::Place;
pub use speech::{complain, complain_of_fault, consents, finish, say, show_help, speak_as};

/// What the command line says of talking; none where the command has no such options.
static TALK: OnceLock<Talk> = OnceLock::new();

/// Refuses a place for the results, a file or standard output, that cannot be written, or that is one of the `inputs`, before
/// anything is measured.
pub fn check(output: Option<&Path>, inputs: &[PathBuf]) -> Result<(), String> {
    let Some(path) = output else {
        return standard::output().map(drop).map_err(unwritten);
    };
    let place = Place::find(path)?;
    let is_it = |input: &PathBuf| {
        let is_standard = input == Path::new("-");
        let input = if is_standard { Path::new("/proc/self/fd/0") } else { input };
        Place::find(input).is_ok_and(|input| place.is_same(&input))
    };
    // Devices and pipes can be read from and written to at once.
    if !place.is_special() && inputs.iter().any(is_it) {
        return Err(format!("cannot write {path:?}: it is the file that is worked on"));
    }
    place.check()
}

/// Refuses a current directory in which nothing can be left, before anything is measured.
pub fn check_current_directory() -> Result<(), String> {
    let checked = Place::find(Path::new("flatout-DATE.json")).and_then(|place| place.check());
    checked.map_err(|why| format!("{why}; --output FILE names another place for results"))
}

/// Shows a finished command and returns its exit code.
pub fn conclude(mut conclusion: Conclusion, output: &Output) -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    for error in &conclusion.record.end.errors {
        match conclusion.record.end.exit_code {
            conclusion::WRONG_USE => complain_of_use(error, &argv),
            _ => complain(error),
        }
    }
    let left = left(&conclusion);
    let stem = left.as_ref().ok().and_then(Option::as_deref);
    let whole = |Conclusion { record, earlier, .. }: &Conclusion, output: &Output| {
        format!("{}{}", shown(record, earlier, output), more(record, stem, output))
    };
    let text = match is_all_told(&conclusion.record, output) {
        true => String::new(),
        false => whole(&conclusion, output),
    };
    let written = put(output.output.as_deref(), text.as_bytes());
    let kept = match &left {
        Ok(Some(stem)) => keep(&conclusion, stem, output.identity()),
        Ok(None) => Ok(()),
        Err(error) => Err(error.clone()),
    };
    let is_lost = written.is_err() && output.output.is_some();
    for error in [written, kept].into_iter().filter_map(Result::err) {
        // That standard output is closed may have ended it already.
        if !conclusion.record.end.errors.contains(&error) {
            complain(&error);
        }
        conclusion.record.end.fail(conclusion::FAILED, error);
    }
    if is_lost {
        // What was measured is not lost: it goes where it can still be seen, and on a terminal be read.
        let wanted = if io::stdout().is_terminal() { Format::Table } else { output.format() };
        let rescue = Output { wanted: Some(wanted), output: None, ..output.clone() };
        let _ = to_standard_output(whole(&conclusion, &rescue).as_bytes());
    }
    exit(conclusion.record.end.exit_code)
}

/// Whether a summary on standard output would say no more than the errors, which stand on standard error.
fn is_all_told(record: &Record, output: &Output) -> bool {
    let is_summary = output.output.is_none() && output.format() == Format::Table && !output.verbose;
    is_summary
        && !record.end.errors.is_empty()
        && record.results.iter().all(|outcome| outcome.median.is_none())
}

/// Puts what is shown where it is wanted: into a file, or on standard output.
pub fn put(place: Option<&Path>, shown: &[u8]) -> Result<(), String> {
    place.map_or_else(|| to_standard_output(shown), |path| replace(path, shown))
}

/// The same; returns the exit code.
pub fn deliver(place: Option<&Path>, shown: &[u8], code: i32) -> ExitCode {
    match put(place, shown) {
        Ok(()) => exit(code),
        Err(error) => give_up(conclusion::FAILED, &error),
    }
}

/// Says why there is nothing to show; returns the exit code.
pub fn give_up(code: i32, why: &str) -> ExitCode {
    complain(why);
    exit(code)
}

/// The record as it was asked for.
pub fn shown(record: &Record, earlier: &[Record], output: &Output) -> String {
    let style = style(output.output.as_deref(), output.verbose);
    match output.format() {
        Format::Table if is_in_pairs(record) => pairs(record, &style),
        format => flatout_report::render_beside(record, earlier, format, &style, output.identity()),
    }
}

/// Whether a record is shown as pairs of key and value: that of a file read or written, or of a copy; and
/// that of what could not begin, of which nothing is shown.
pub fn is_in_pairs(record: &Record) -> bool {
    let moves_files =
        |id: &str| id.starts_with("read/") || id.starts_with("write/") || id == "copy/total";
    record.end.verdict.is_empty() && record.results.iter().all(|outcome| moves_files(&outcome.id))
}

/// What there is to be seen, in words.
pub fn all_rows(record: &Record) -> String {
    match record.results.len() {
        1 => "The one row".to_owned(),
        rows => format!("All {rows} rows"),
    }
}

/// Where record and page lie, or will lie, and how to see everything.
fn more(record: &Record, left: Option<&str>, output: &Output) -> String {
    if output.format() != Format::Table || is_in_pairs(record) || record.results.is_empty() {
        return String::new();
    }
    let rows = all_rows(record);
    match (left, output.verbose) {
        (Some(stem), true) => format!("\nRecord and page: {stem}.json, {stem}.html\n"),
        (Some(stem), false) => {
            format!("\n{rows}: flatout report --verbose {stem}.json\nPage: {stem}.html\n")
        }
        (None, true) => String::new(),
        (None, false) => {
            format!("\n{rows}: --verbose; -o FILE.json keeps the record\n")
        }
    }
}

/// The name, without its ending, of what is left in the current directory; one that was free.
fn left(conclusion: &Conclusion) -> Result<Option<String>, String> {
    let record = &conclusion.record;
    if conclusion.keep == Keep::Nothing || record.results.is_empty() {
        return Ok(None);
    }
    // 2026-11-21T21:34:33+00:00 → 2026-11-21T213433
    let date: String = record.start.time.chars().take(19).filter(|&c| c != ':').collect();
    let free = |number: u32| {
        let stem = match number {
            0 => format!("flatout-{date}"),
            _ => format!("flatout-{date}-{number}"),
        };
        let taken = |ending: &str| Path::new(&format!("{stem}.{ending}")).exists();
        (!taken("json") && !taken("html")).then_some(stem)
    };
    (0..100).find_map(free).map(Some).ok_or_else(|| "no free name for flatout-DATE.json".to_owned())
}

/// Leaves the record and its page in the current directory.
fn keep(conclusion: &Conclusion, stem: &str, identity: Identity) -> Result<(), String> {
    let Conclusion { record, earlier, .. } = conclusion;
    for format in [Format::Json, Format::Html] {
        let name = format!("{stem}.{}", format.name());
        let style = Style::default();
        let shown = flatout_report::render_beside(record, earlier, format, &style, identity);
        replace(Path::new(&name), shown.as_bytes())?;
    }
    Ok(())
}

/// Says why a command cannot begin, and returns the exit code; who asked for JSON gets a document.
pub fn cannot_begin(Refused { code, text }: Refused, wants_json: bool) -> ExitCode {
    match wants_json {
        false => give_up(code, &text),
        true => conclude(conclusion::ended(code, text), &Output::json()),
    }
}

/// Shows why a command line is refused (or its help) and returns the exit code.
pub fn refuse(refusal: &Refusal) -> ExitCode {
    match refusal.error.kind() {
        ErrorKind::DisplayHelp => return show_help(&refusal.help()),
        ErrorKind::DisplayVersion => {
            return deliver(None, refusal.error.render().to_string().as_bytes(), conclusion::DONE);
        }
        // No command at all: the help is the answer, but it was no use of the program.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let help = speech::readable(&refusal.help(), &io::stderr());
            let _ = io::stderr().lock().write_all(help.as_bytes());
            return exit(conclusion::WRONG_USE);
        }
        _ => {}
    }
    let line = refusal.line();
    if refusal.is_of_cp() {
        complain(&line);
        let help = format!("Try '{}' for more information.\n", help::pointer_of_cp());
        let _ = io::stderr().lock().write_all(help.as_bytes());
        return exit(conclusion::FAILED);
    }
    if refusal.wants_json() {
        return cannot_begin(Refused::wrong_use(line), true);
    }
    complain_of_use(&line, &refusal.argv);
    exit(conclusion::WRONG_USE)
}

/// One line on standard error about a wrong use, and where the right one stands.
fn complain_of_use(line: &str, argv: &[OsString]) {
    complain(&format!("{line} (see {})", help::pointer(argv)));
}

/// One line on standard error that nobody misses who asked for quiet.
pub fn notice(line: &str) {
    if !is_quiet() {
        speech::announce(line);
    }
}

/// Whether only what went wrong is said.
pub fn is_quiet() -> bool {
    TALK.get().is_some_and(|talk| talk.quiet)
}

/// Takes over how much is to be said, and how it is to look; once, at the beginning.
pub fn settle(talk: &Talk) {
    // Nobody else does it.
    let _ = TALK.set(talk.clone());
}

fn pairs(record: &Record, style: &Style) -> String {
    let done = record.results.iter().filter(|outcome| outcome.status != Status::Failed);
    let shown = done.map(flatout_report::summary).joined("\n");
    shown.lines().map(|line| text::shown(line, style) + "\n").collect()
}

/// Writes to standard output.
pub fn to_standard_output(bytes: &[u8]) -> Result<(), String> {
    match standard::write_all(bytes).and_then(|()| standard::settle()) {
        // Whoever closed the pipe has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(error)),
        _ => Ok(()),
    }
}

/// Why nothing goes to standard output.
pub fn unwritten(error: io::Error) -> String {
    cannot("write to standard output")(error)
}

/// Says what cannot be done, and why.
pub fn cannot(what: impl Display) -> impl FnOnce(io::Error) -> String {
    move |error| format!("cannot {what}: {}", cause_text(&error))
}

/// Writes a whole file, so that nobody sees half of it: see [`Place::write`].
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), String> {
    Place::find(path)?.write(bytes)
}

/// What a file can show, or standard output.
pub fn style(file: Option<&Path>, is_verbose: bool) -> Style {
    let extent = if is_verbose { Extent::Full } else { Extent::Summary };
    let out = io::stdout();
    if file.is_some() || !out.is_terminal() {
        return Style { color: color() == Color::Always, extent, ..Style::default() };
    }
    let size = flatout_sys::terminal::width_columns(&out);
    let width_columns = size.map_or(80, usize::from);
    Style { width_columns, color: is_colored(), unicode: is_unicode(), extent }
}

fn color() -> Color {
    TALK.get().map_or(Color::Auto, |talk| talk.color)
}

/// Whether the terminal of this user gets colours.
pub fn is_colored() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match color() {
        Color::Always => true,
        Color::Auto => !set("NO_COLOR") && !dumb,
        Color::Never => false,
    }
}

/// Whether the terminal of this user shows more than ASCII.
pub fn is_unicode() -> bool {
    speaks_unicode(|name| std::env::var(name).ok())
}

/// Whether the locale of the environment is one of UTF-8, by the first of these variables that is
/// not empty, as setlocale(3) has it. Without one it is `C`, which is ASCII.
fn speaks_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty())
        .unwrap_or_default();
    // language[_territory][.codeset][@modifier]
    let locale = locale.split('@').next().unwrap_or_default().to_ascii_lowercase();
    let codeset = locale.split_once('.').map_or("", |(_, codeset)| codeset);
    matches!(codeset, "utf-8" | "utf8")
}

/// The code as the system takes it.
pub fn exit(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_locale_of_utf_8_gets_more_than_ascii() {
        for (all, ctype, lang, expected) in [
            ("", "", "", false),
            ("", "", "C", false),
            ("", "", "POSIX", false),
            ("", "", "C.UTF-8", true),
            ("", "", "de_DE.utf8@euro", true),
            ("", "", "de_DE@euro", false),
            ("", "", "en_US.ISO-8859-1", false),
            ("", "en_US.UTF-8", "C", true),
            ("C", "en_US.UTF-8", "en_US.UTF-8", false),
        ] {
            let variable = |name: &str| {
                let value = [("LC_ALL", all), ("LC_CTYPE", ctype), ("LANG", lang)];
                value.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            };
            assert_eq!(speaks_unicode(variable), expected, "{all:?} {ctype:?} {lang:?}");
        }
    }
}
