//! One trial of a setting: the state of the page cache is set and proved, then the work is done by
//! the code that does it for `flatout read`, `write` and `copy`.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use flatout_io::{Existing, Tuning, Work};
use flatout_measure::case::{Case, Sample, TrialError};
use flatout_measure::warning::{self, Warning};

use super::Options;
use super::copying;
use super::group::{Group, Setting};
use crate::choice::{REFUSALS, Wishes};
use crate::error::Error;
use crate::fact;
use crate::read::{CacheStart, DigestKind, Job, Limit, Reader};
use crate::residency;
use crate::write;

/// The setting as a case for the sampler.
pub(super) fn case<'a>(
    group: &'a Group<'a>,
    tuning: Tuning,
    options: &'a Options,
) -> Case<'a, Setting<'a>> {
    Case {
        row: group.setting(tuning),
        trial: Box::new(move |seed| {
            let sample = match group.work {
                Work::Read => read(group, &tuning, options),
                Work::Write => written(group, &tuning, options, seed),
                Work::Copy => copying::copy(group, &tuning, options),
            };
            // What was cut off counts for nothing, whatever it says.
            if options.cancel.is_cancelled() { Err(TrialError::Interrupted) } else { sample }
        }),
    }
}

fn read(group: &Group<'_>, tuning: &Tuning, options: &Options) -> Result<Sample, TrialError> {
    let path = group.source.large_file();
    if group.cached {
        warm(&path, group, options)?;
    }
    let reader = Reader::open(Job {
        path,
        wishes: Wishes::exactly(tuning),
        block_count: None,
        limit: Limit::Blocks,
        state: if group.cached { CacheStart::AsItIs } else { CacheStart::Cold },
        digest: DigestKind::Xor32,
        profile: None,
        cancel: options.cancel,
    })?;
    let measured = reader.trial()?;
    refuse(reader.warnings())?;
    refuse(&measured.warnings)?;
    let before = measured.cached_before_bytes;
    if group.cached && before.is_some_and(|bytes| bytes < group.file_bytes()) {
        let text = "the file did not stay in the page cache: memory is short";
        return Err(TrialError::Failed(text.to_owned()));
    }
    let mut sample = Reader::sample(&measured);
    sample.facts.set(fact::BYTES, measured.bytes);
    sample.facts.set_known(fact::DEVICE_READ_BYTES, measured.device_read_bytes);
    Ok(sample)
}

/// Settings that were not to be had, and states that were not, have no figure.
fn refuse(warnings: &[Warning]) -> Result<(), TrialError> {
    let is_refusal = |code: &str| REFUSALS.contains(&code) || code == warning::NOT_COLD;
    match warnings.iter().find(|warning| is_refusal(&warning.code)) {
        Some(refusal) => Err(TrialError::Unsupported(refusal.text.clone())),
        None => Ok(()),
    }
}

fn warm(path: &Path, group: &Group<'_>, options: &Options) -> Result<(), TrialError> {
    let file = File::open(path).map_err(flatout_io::Error::system("open", path));
    let file = file.map_err(Error::from)?;
    residency::warm(file.as_fd(), group.file_bytes(), options.cancel).map_err(|error| {
        TrialError::Failed(format!("cannot bring {path:?} into the page cache: {error}"))
    })
}

/// Writes a new file until it is durable; it is gone afterwards.
fn written(
    group: &Group<'_>,
    tuning: &Tuning,
    options: &Options,
    seed: u64,
) -> Result<Sample, TrialError> {
    group.target.settle()?;
    let path = group.target.fresh();
    let writer = write::Writer::open(write::Job {
        path: path.clone(),
        wishes: Wishes::exactly(tuning),
        block_count: Some(group.file_bytes().div_ceil(tuning.block_bytes)),
        data: write::Data::Random,
        sync: write::Sync::End,
        existing: Existing::Refuse,
        seed,
        cancel: options.cancel,
    })?;
    let measured = writer.run();
    drop(writer);
    let removed = fs::remove_file(&path).map_err(flatout_io::Error::system("remove", &path));
    let measured = measured?;
    removed.map_err(Error::from)?;
    refuse(&measured.warnings)?;
    let Some(elapsed_ns) = measured.to_durable_ns else {
        return Err(TrialError::Interrupted);
    };
    let mut sample = Sample { amount: measured.bytes as f64, elapsed_ns, ..Sample::default() };
    sample.facts.set(fact::BYTES, measured.bytes);
    sample.facts.set_known(fact::DEVICE_WRITE_BYTES, measured.device_write_bytes);
    sample.warnings = measured.warnings;
    Ok(sample)
}
