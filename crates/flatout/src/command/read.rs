//! `flatout read`: each file is a row.

use std::path::Path;

use flatout_bench::Error;
use flatout_bench::read::outcome::ID;
use flatout_bench::read::{Job, Measured, Reader};
use flatout_io::escape;
use flatout_measure::case::{Case, Plan, TrialError, record};
use flatout_measure::clock::SystemClock;
use flatout_measure::guard::{SystemWitness, UseOfCpus, Witness};
use flatout_measure::record::{Outcome, Status};
use flatout_measure::sampler::Sampler;
use flatout_measure::units::counted;
use flatout_measure::warning::{self, Warning};
use flatout_sys::cancel::CancelToken;

use crate::arguments::read::Read;
use crate::conclusion::{Conclusion, Draft, FAILED, INTERRUPTED, NO_SEED, WRONG_USE};
use crate::profile;

/// Reads all the files. One that cannot be read does not stop the others.
pub fn run(arguments: &Read, cancel: CancelToken) -> Conclusion {
    let mut draft = Draft::begin(NO_SEED);
    let profile = profile::load();
    for file in &arguments.files {
        match read_file(arguments, arguments.job(file, profile.clone(), cancel)) {
            Ok(outcome) => draft.add(outcome),
            Err(error) if cancel.is_cancelled() => draft.fail(INTERRUPTED, error.to_string()),
            Err(error @ Error::Usage(_)) => {
                draft.fail(WRONG_USE, error.to_string());
                break;
            }
            Err(error) => {
                draft.add(failed(file, &error));
                draft.fail(FAILED, error.to_string());
            }
        }
        if cancel.is_cancelled() {
            draft.fail(INTERRUPTED, "interrupted".to_owned());
            break;
        }
    }
    draft.conclude()
}

/// The row of a file that could not be read.
fn failed(file: &Path, error: &Error) -> Outcome {
    let code = match error {
        Error::Io(flatout_io::Error::Truncated { .. }) => warning::TRUNCATED,
        _ => warning::FAILED,
    };
    let why = Warning::new(code, error.to_string());
    let mut outcome = Outcome::without_figure(ID, Status::Failed, why);
    outcome.unit = "bytes/s".to_owned();
    outcome.parameters.insert("file".to_owned(), escape(file.as_os_str()).into());
    outcome
}

fn read_file(arguments: &Read, job: Job) -> Result<Outcome, Error> {
    let (path, cancel) = (job.path.clone(), job.cancel);
    let reader = Reader::open(job)?;
    if arguments.trials == 1 {
        return single_trial(&reader);
    }
    several_trials((&path, &reader), arguments.trials, cancel)
}

/// One trial, of which it is said who had the CPUs meanwhile.
fn single_trial(reader: &Reader) -> Result<Outcome, Error> {
    let mut witness = match reader.is_brief {
        true => SystemWitness::brief(),
        false => SystemWitness::default(),
    };
    let before = witness.read();
    let measured = reader.trial()?;
    let use_of_cpus = UseOfCpus::between(&before, &witness.read());
    Ok(reader.single(&measured, use_of_cpus, witness.cpus()))
}

/// Exactly as many trials as asked for, under the eyes of the guard.
fn several_trials(
    (path, reader): (&Path, &Reader),
    trials: u32,
    cancel: CancelToken,
) -> Result<Outcome, Error> {
    let mut last: Option<Measured> = None;
    let mut failure = None;
    let is_read_out = |measured: &Measured, last: &Option<Measured>| {
        measured.bytes == 0 && !measured.stopped && last.as_ref().is_some_and(|last| last.bytes > 0)
    };
    let case = Case {
        row: reader.row(),
        trial: Box::new(|_| match reader.trial() {
            Ok(measured) if cancel.is_cancelled() => {
                last = Some(measured);
                Err(TrialError::Interrupted)
            }
            Ok(measured) if is_read_out(&measured, &last) => {
                let text = format!("{path:?} is read out: nothing is left for {trials} trials");
                Err(TrialError::NoMore(Warning::new(warning::FEW_TRIALS, text)))
            }
            Ok(measured) => Ok(reader.sample(last.insert(measured))),
            Err(error) => {
                let refusal = TrialError::Failed(error.to_string());
                failure = Some(error);
                Err(refusal)
            }
        }),
    };
    let plan = Plan {
        min_trials: trials,
        max_trials: trials,
        budget_ns: u64::MAX / 4,
        seed: NO_SEED,
        ..Plan::default()
    };
    let mut sampler = Sampler {
        plan,
        clock: &SystemClock,
        witness: &mut SystemWitness::default(),
        events: &mut |_| {},
        cancelled: &|| cancel.is_cancelled(),
    };
    let mut rows = sampler.run(vec![case]);
    if let Some(error) = failure {
        return Err(error);
    }
    for row in &mut rows {
        if let Some(measured) = &last {
            reader.describe(measured, row);
            reader.bound(measured, row);
        }
        let outcome = &mut row.outcome;
        if outcome.status == Status::Interrupted && outcome.n > 0 {
            let text = format!("interrupted after {} of {}", outcome.n, counted(trials, "trial"));
            outcome.warnings.push(Warning::new(warning::FEW_TRIALS, text));
        }
    }
    Ok(record(rows).pop().unwrap_or_default())
}
