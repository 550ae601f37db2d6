//! The figures of a copy as a record: one row for all of it.

use flatout_measure::record::{Outcome, Record, Status};
use flatout_measure::warning::{self, Warning};
use flatout_report::{Format, Style};
use serde_json::{Map, Value};

use super::account::Account;
use super::limit::Share;
use crate::arguments::copy::CopyFormat;
use crate::conclusion::{Draft, FAILED, NO_SEED, members, total};
use crate::output::{self, place::Place};

/// Figures in the making.
pub struct Document {
    draft: Draft,
    format: CopyFormat,
}

impl Document {
    /// Begins now: describing the machine is no part of copying.
    pub fn begin(format: CopyFormat) -> Self {
        Self { draft: Draft::begin(NO_SEED), format }
    }

    /// Writes the figures where they are wanted.
    pub fn end(
        mut self,
        account: &Account,
        errors: Vec<String>,
        exit_code: i32,
        place: Option<&Place>,
    ) -> Result<(), String> {
        self.draft.record.results.push(row(account));
        let mut record = self.draft.conclude().record;
        (record.end.exit_code, record.end.errors) = (exit_code, errors);
        let shown = |record: &Record| match self.format {
            CopyFormat::Table => record.results.iter().map(flatout_report::summary).collect(),
            CopyFormat::Json => flatout_report::render(record, Format::Json, &Style::default()),
        };
        let text = shown(&record);
        match place {
            None => output::to_standard_output(text.as_bytes()),
            Some(place) => place.write(text.as_bytes()).inspect_err(|error| {
                // What was measured is not lost: it goes where it can still be seen.
                record.end.fail(FAILED, error.clone());
                let _ = output::to_standard_output(shown(&record).as_bytes());
            }),
        }
    }
}

fn row(account: &Account) -> Outcome {
    let totals = &account.totals;
    let deleted = account.deletes.then_some(totals.deleted);
    let mut outcome = total("copy/total", account.rate());
    outcome.audit = members([
        ("files", totals.files.into()),
        ("directories", totals.directories.into()),
        ("others", totals.others.into()),
        ("linked", totals.linked.into()),
        ("unchanged", totals.unchanged.into()),
        ("failed", account.failed().into()),
        ("incomplete", totals.incomplete.into()),
        ("retried", totals.retried.into()),
        ("verified", account.is_verified.then_some(true).into()),
        ("dry_run", account.is_plan.then_some(true).into()),
        ("overwritten", account.is_plan.then_some(totals.overwritten).into()),
        ("deleted", deleted.into()),
        ("not_deleted", deleted.map(|_| totals.spared).into()),
        ("bytes", account.bytes().into()),
        ("unwritten_bytes", account.unwritten_bytes.into()),
        ("elapsed_ns", account.elapsed_ns.into()),
        ("limit", account.share.as_ref().map_or(Value::Null, Share::document)),
        ("files_by_method", by_method(account, |(name, files, _)| (name, files))),
        ("bytes_by_method", by_method(account, |(name, _, bytes)| (name, bytes))),
    ]);
    let mut note = |status, code, text| {
        outcome.status = status;
        outcome.warnings.push(Warning::new(code, text));
    };
    if account.failed() > 0 {
        let text = format!("entries that were not copied: {}", account.failed());
        note(Status::Degraded, warning::FAILED, text);
    }
    if totals.incomplete > 0 {
        let why =
            "without their owner, access control list, mode, times or links, or while they changed";
        let text = format!("entries that were copied {why}: {}", totals.incomplete);
        note(Status::Degraded, warning::FAILED, text);
    }
    if let Some(text) = account.spared_text() {
        note(Status::Degraded, warning::FAILED, text);
    }
    if account.is_out_of_space {
        let text = "the copy ended because there was no room left".to_owned();
        note(Status::Failed, warning::FAILED, text);
    }
    if account.is_interrupted {
        let text = "the copy was interrupted before everything was copied".to_owned();
        note(Status::Interrupted, warning::INTERRUPTED, text);
    }
    outcome
}

fn by_method(
    account: &Account,
    figure: impl Fn((&'static str, u64, u64)) -> (&'static str, u64),
) -> Value {
    let figures = account.methods().map(figure);
    let figures: Map<_, _> = figures.map(|(name, count)| (name.to_owned(), count.into())).collect();
    if figures.is_empty() { Value::Null } else { Value::Object(figures) }
}
