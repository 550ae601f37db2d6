//! The document of `--format json`: a row per file, written as it comes, and one for all.

use std::ffi::OsStr;

use flatout_io::digest::Algorithm;
use flatout_io::escape;
use flatout_measure::record::{Outcome, Status};
use flatout_measure::warning::{self, Warning};
use flatout_report::json;
use flatout_tree::sum::{Failure, Found, Summed};
use serde_json::Value;

use super::account::Account;
use crate::arguments::sum::Sum;
use crate::conclusion::{Draft, Errors, INTERRUPTED, NO_SEED, members, total};

/// A document whose rows are not kept.
pub struct Document {
    draft: Draft,
    rows: u64,
    /// Those that the end lists; the rows have them all.
    errors: Errors,
    /// The algorithm that is asked for; a check finds out for each file.
    algorithm: Option<Algorithm>,
}

impl Document {
    /// Begins a document; returns its first lines too.
    pub fn begin(arguments: &Sum) -> (Self, String) {
        let draft = Draft::begin(NO_SEED);
        let start = json::streamed_start(&draft.record.start);
        let default = (!arguments.check).then_some(Algorithm::Blake3);
        let algorithm = arguments.digest.or(default);
        (Self { draft, rows: 0, errors: Errors::default(), algorithm }, start)
    }

    /// Notes an error.
    pub fn fail(&mut self, text: String) {
        self.errors.keep(text);
    }

    fn write(&mut self, outcome: &Outcome) -> String {
        let row = json::streamed_row(outcome, self.rows);
        self.rows += 1;
        row
    }

    /// The row of a file.
    pub fn row(&mut self, Summed { shown, result }: &Summed) -> String {
        let mut outcome =
            Outcome { id: "sum/file".to_owned(), unit: "bytes/s".to_owned(), ..Outcome::default() };
        let mut algorithm = self.algorithm;
        if let Ok(found) = result {
            algorithm = Some(found.digest.algorithm());
            outcome.audit = members([
                ("digest", found.digest.to_string().into()),
                ("bytes", found.length_bytes.into()),
                ("elapsed_ns", found.elapsed_ns.into()),
            ]);
        }
        outcome.warnings = warning_of(shown, result).into_iter().collect();
        if !outcome.warnings.is_empty() {
            outcome.status = Status::Failed;
        }
        let digest = algorithm.map_or(Value::Null, |algorithm| algorithm.name().into());
        outcome.parameters = members([("file", escape(shown).into()), ("digest", digest)]);
        self.write(&outcome)
    }

    /// The last row and the end.
    pub fn end(mut self, account: &Account, elapsed_ns: u64, exit_code: i32) -> String {
        let mut outcome = total("sum/total", account.rate(elapsed_ns));
        let digest = self.algorithm.map_or(Value::Null, |algorithm| algorithm.name().into());
        outcome.parameters = members([("digest", digest)]);
        outcome.audit = members([
            ("files", account.files.into()),
            ("failed", account.failed.into()),
            ("matched", account.matched.into()),
            ("mismatched", account.mismatched.into()),
            ("missing", account.missing.into()),
            ("bytes", account.bytes.into()),
            ("elapsed_ns", elapsed_ns.into()),
        ]);
        if account.failed > 0 {
            let text = format!("{} of the files failed; their rows say why", account.failed);
            outcome.status = Status::Degraded;
            outcome.warnings.push(Warning::new(warning::FAILED, text));
        }
        if exit_code == INTERRUPTED {
            let text = "the run was interrupted before all files were read";
            outcome.status = Status::Interrupted;
            outcome.warnings.push(Warning::new(warning::INTERRUPTED, text));
        }
        let row = self.write(&outcome);
        let mut end = self.draft.conclude().record.end;
        (end.exit_code, end.errors) = (exit_code, self.errors.into_list());
        format!("{row}{}", json::streamed_end(&end))
    }
}

fn warning_of(shown: &OsStr, result: &Result<Found, Failure>) -> Option<Warning> {
    match result {
        Ok(found) if found.matches => None,
        Ok(_) => {
            let text = format!("{shown:?} has another digest than the one listed");
            Some(Warning::new(warning::MISMATCH, text))
        }
        Err(failure) => {
            let code = match failure {
                failure if failure.is_missing() => warning::MISSING,
                Failure::Changed { .. } => warning::CHANGED,
                _ => warning::FAILED,
            };
            Some(Warning::new(code, failure.to_string()))
        }
    }
}
