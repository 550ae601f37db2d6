//! Who takes part: the rivals asked for, those of them that are there, and those that are not.

use flatout_bench::Error;
use flatout_bench::option::distinct;
use flatout_bench::versus::rival::{self, Discipline, Found, Rival};
use flatout_bench::versus::run::SystemRunner;
use flatout_measure::record::{Outcome, Status};
use flatout_measure::warning::{self, Warning};
use flatout_report::text::Joined;
use flatout_sys::cancel::CancelToken;
use serde_json::Value;

use crate::arguments::similar::similar;
use crate::arguments::versus::Versus as Arguments;

/// Who was asked for, and who is there.
#[derive(Default)]
pub(super) struct Field {
    /// Those that can be raced.
    pub(super) found: Vec<Found>,
    /// Those whose program is not there.
    pub(super) missing: Vec<&'static Rival>,
    /// Those that flatout has no work for yet.
    pub(super) to_come: Vec<&'static Rival>,
    /// Whether they were asked for by name, so that it is an error when one cannot be raced.
    pub(super) is_named: bool,
}

/// Looks for the rivals that are named; without names for all that race flatout, unless commands race.
///
/// Errors: nobody is called so.
pub(super) fn gather(arguments: &Arguments, cancel: CancelToken) -> Result<Field, Error> {
    if !arguments.commands.is_empty() {
        return Ok(Field { is_named: true, ..Field::default() });
    }
    let names = &arguments.rivals[..];
    let is_named = !names.is_empty();
    let mut rivals: Vec<&'static Rival> = distinct(named(names)?, PartialEq::eq);
    if !is_named {
        // Libraries and streams are raced where they are named.
        let is_left = [Discipline::Matrix, Discipline::Stream, Discipline::ToCome];
        rivals.extend(rival::ALL.iter().filter(|rival| !is_left.contains(&rival.discipline)));
    }
    let (to_come, rivals): (Vec<_>, Vec<_>) =
        rivals.into_iter().partition(|rival| rival.discipline == Discipline::ToCome);
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    let (path, mut runner) = (rival::path(), SystemRunner { cancel });
    for rival in rivals {
        match rival::look(rival, &path, &mut runner) {
            Some(there) => found.push(there),
            None => missing.push(rival),
        }
    }
    Ok(Field { found, missing, to_come, is_named })
}

/// Whether somebody who copies trees is named, or nobody, which means all.
///
/// Errors: nobody is called so.
pub(super) fn has_copier(names: &[String]) -> Result<bool, Error> {
    let rivals = named(names)?;
    Ok(names.is_empty() || rivals.iter().any(|rival| rival.discipline == Discipline::Copy))
}

/// The rivals that names mean.
///
/// Errors: nobody is called so.
fn named(names: &[String]) -> Result<Vec<&'static Rival>, Error> {
    let one = |name: &String| {
        let similar = || similar(name, rival::ALL.iter().map(|one| one.name));
        rival::named(name).map_err(|error| match similar() {
            Some(meant) => {
                Error::Usage(format!("there is no rival '{name}'; did you mean '{meant}'?"))
            }
            None => error,
        })
    };
    Ok(names.iter().map(one).collect::<Result<Vec<_>, _>>()?.concat())
}

impl Field {
    /// What is said about those that are not raced, a line each kind.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.missing.is_empty() {
            let missing = self.missing.iter().map(|rival| absence(rival)).joined("; ");
            lines.push(format!("not installed: {missing}"));
        }
        lines.extend(self.to_come.iter().map(|rival| refusal(rival)));
        if !self.is_named {
            let is_to_come = |rival: &&Rival| rival.discipline == Discipline::ToCome;
            let to_come = rival::ALL.iter().filter(is_to_come).map(|rival| rival.name);
            lines.push(format!("not raced yet: {}", to_come.joined(", ")));
        }
        lines
    }

    /// The rows of those that are not raced.
    pub(super) fn rows(&self) -> Vec<Outcome> {
        let missing = |rival: &&Rival| row(rival, warning::MISSING_RIVAL, absence(rival));
        let to_come = |rival: &&Rival| row(rival, warning::UNSUPPORTED, refusal(rival));
        self.missing.iter().map(missing).chain(self.to_come.iter().map(to_come)).collect()
    }
}

/// The row of what is not raced.
pub(super) fn missing(code: &'static str, text: String) -> Outcome {
    Outcome::without_figure("versus/missing", Status::Unsupported, Warning::new(code, text))
}

fn row(rival: &Rival, code: &'static str, text: String) -> Outcome {
    let mut row = missing(code, text);
    row.parameters.insert("rival".to_owned(), rival.name.into());
    row.audit.insert("package".to_owned(), rival.package.into());
    row
}

fn absence(rival: &Rival) -> String {
    let Rival { name, package, .. } = rival;
    match package.starts_with("cargo ") {
        true => format!("{name} ({package})"),
        false => format!("{name} (package {package})"),
    }
}

/// Why a rival is not raced.
fn refusal(rival: &Rival) -> String {
    let why = rival.counterpart.trim_start_matches("cannot be raced: ");
    format!("{} is not raced: {why}", rival.name)
}

/// These rivals, or all, as rows.
///
/// Errors: nobody is called so.
pub(super) fn listed(names: &[String], cancel: CancelToken) -> Result<Vec<Outcome>, Error> {
    let (path, mut runner) = (rival::path(), SystemRunner { cancel });
    let row = |rival: &'static Rival| {
        let found = rival::look(rival, &path, &mut runner);
        let mut row = Outcome { id: "versus/rival".to_owned(), ..Outcome::default() };
        row.status = if found.is_some() { Status::Ok } else { Status::Unsupported };
        row.parameters.insert("rival".to_owned(), rival.name.into());
        row.audit.insert("package".to_owned(), rival.package.into());
        row.audit.insert("counterpart".to_owned(), rival.counterpart.into());
        let version = found.map(|found| found.version).filter(|version| !version.is_empty());
        row.audit.extend(version.map(|version| ("version".to_owned(), version.into())));
        row
    };
    let rivals = named(names)?;
    let is_listed = |rival: &&Rival| rivals.is_empty() || rivals.contains(rival);
    Ok(rival::ALL.iter().filter(is_listed).map(row).collect())
}

/// The same as a table: name, version or package, what they are raced against.
pub(super) fn list(rows: &[Outcome]) -> String {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let line = |row: &Outcome| {
        let state = match row.audit.get("version") {
            Some(version) => short(&text(Some(version))),
            None if row.status == Status::Ok => "installed".to_owned(),
            None => format!("- {}", text(row.audit.get("package"))),
        };
        [text(row.parameters.get("rival")), state, text(row.audit.get("counterpart"))]
    };
    let heading = ["rival", "version, or - its package", "raced against"].map(str::to_owned);
    let lines: Vec<_> = std::iter::once(heading).chain(rows.iter().map(line)).collect();
    let wide = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let [first, second] = [wide(0), wide(1)];
    lines
        .iter()
        .map(|[name, state, other]| format!("{name:first$} {state:second$} {other}\n"))
        .collect()
}

/// What a program says of itself, up to the number of its version.
fn short(version: &str) -> String {
    let words: Vec<&str> = version.split_whitespace().collect();
    let is_number =
        |word: &&str| word.contains(|letter: char| letter.is_ascii_digit()) && word.contains('.');
    let end = words.iter().position(is_number).map_or(words.len(), |at| at + 1);
    words[..end].join(" ")
}
