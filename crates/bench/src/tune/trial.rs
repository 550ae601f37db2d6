//! One trial of a setting: the state of the page cache is set and proved, then the work is done by
//! the code that does it for `flatout read`, `write` and `copy`.

use std::fs;
use std::path::Path;

use flatout_io::{Existing, Tuning, Work};
use flatout_measure::{Case, Label, Sample, TrialError, Warning, warning};
use flatout_sys::{Groups, affinity};

use super::Options;
use super::copying;
use super::group::Group;
use super::tuned_place::TunedPlace;
use crate::choice::Wishes;
use crate::read::Job;
use crate::{CacheStart, Clearing, Error, WriteLimit, file_trial, limits, workers, write};

/// The setting as a case for the sampler.
///
/// Cost: a look at the control groups.
pub(super) fn case<'a>(
    group: &'a Group,
    places: &'a [TunedPlace],
    tuning: Tuning,
    (options, limit): (&'a Options, &'a WriteLimit),
) -> Case<'a, Label> {
    let quota_cpus = Groups::discover(Path::new("/")).cpu_quota_cpus();
    let contained = workers::contained(tuning.threads, affinity::allowed_cpu_count(), quota_cpus);
    Case {
        row: group.row(&tuning),
        trial: Box::new(move |seed| {
            limits::check_trial(&tuning)?;
            limit.take(group.written_bytes())?;
            let sample = match group.work {
                Work::Read => read((group, places), &tuning, options),
                Work::Write => written((group, places), &tuning, options, seed),
                Work::Copy => copying::copy((group, places), &tuning, options),
            };
            // What was cut off counts for nothing, whatever it says.
            if options.cancel.is_cancelled() {
                return Err(TrialError::Interrupted);
            }
            let mut sample = sample?;
            sample.warnings.extend(contained.clone());
            // Threads on all CPUs are preempted by the kernel's own writing back, one thread is not: if
            // such trials were thrown away, the settings with more threads would be left with few.
            Ok(Sample { is_sustained: true, ..sample })
        }),
    }
}

/// A state that was not to be had has no figure here.
fn read(
    (group, places): (&Group, &[TunedPlace]),
    tuning: &Tuning,
    options: &Options,
) -> Result<Sample, TrialError> {
    let state = if group.cached { CacheStart::Hot } else { CacheStart::Cold(Clearing::File) };
    let file = places[group.source].large_file();
    let sample = Job::exactly(file, tuning, state, options.cancel).sample()?;
    let is_other = |why: &&Warning| [warning::NOT_COLD, warning::NOT_HOT].contains(&&*why.code);
    match sample.warnings.iter().find(is_other) {
        Some(why) => Err(TrialError::NoMore(why.clone())),
        None => Ok(sample),
    }
}

/// Writes a new file until it is durable; it is gone afterwards.
fn written(
    (group, places): (&Group, &[TunedPlace]),
    tuning: &Tuning,
    options: &Options,
    seed: u64,
) -> Result<Sample, TrialError> {
    places[group.target].settle()?;
    let path = places[group.target].fresh();
    let writer = write::Writer::open(write::Job {
        path: path.clone(),
        wishes: Wishes::exactly(tuning),
        block_count: Some(group.file_bytes().div_ceil(tuning.block_bytes)),
        data: write::Data::Random,
        sync: write::Sync::End,
        existing: Existing::Refuse,
        seed,
        profile: None,
        cancel: options.cancel,
    })?;
    let measured = writer.run();
    drop(writer);
    let removed = fs::remove_file(&path).map_err(flatout_io::Error::system("remove", &path));
    let measured = measured?;
    removed.map_err(Error::from)?;
    file_trial::refuse(&measured.warnings)?;
    if measured.stopped {
        return Err(TrialError::Interrupted);
    }
    let elapsed_ns = measured.fsynced_ns.unwrap_or(measured.elapsed_ns);
    Ok(Sample { elapsed_ns, ..measured.sample() })
}
