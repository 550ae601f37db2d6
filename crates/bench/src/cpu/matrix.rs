//! The rows of matrices, Linpack and DGEMM, in the time that the loops of the units have left.
//!
//! Each row has a run of the sampler to itself: its trials take seconds, and how large its matrices
//! are follows from its share of the time.

use flatout_measure::case::{Case, Plain, TrialError};
use flatout_measure::record::Outcome;
use flatout_measure::row::Unit;
use flatout_measure::sampler::Sampler;
use flatout_sys::affinity;
use serde_json::json;

use super::site::Site;
use super::{Options, dgemm, finish, linpack};
use crate::area::Extent;
use crate::memory::room::Room;

/// What makes the case of a row.
type Maker = fn(&linpack::Options) -> Result<Vec<Case<'static, Plain>>, TrialError>;

const ROWS: [(&str, Maker); 2] = [("cpu/dgemm", dgemm::cases), ("cpu/linpack", linpack::cases)];

/// Part of its share of the time that a row is told of, in percent: of 10 trials that were wanted 16
/// were made, 2 vCPUs beside neighbours, 2026-11-22.
const TOLD_PERCENT: u64 = 60;

/// Refuses an order for which there is not the memory, in one line.
pub(super) fn check(options: &Options) -> Result<(), String> {
    match options.order {
        Some(_) => linpack::check(&terms(options, 1, 0)),
        None => Ok(()),
    }
}

/// The rows, each held against the peak of its number of threads among the rows of the `units`.
pub(super) fn outcomes(
    options: &Options,
    units: &[Outcome],
    site: &Site,
    sampler: &mut Sampler<'_>,
) -> Vec<Outcome> {
    let counts = threads(options);
    // Equal shares, of which each row is told less: the guard throws trials out, and the sampler
    // makes others for them.
    let share_ns = sampler.plan.budget_ns / (counts.len() * ROWS.len()).max(1) as u64;
    let told_ns = share_ns / 100 * TOLD_PERCENT;
    let mut outcomes = Vec::new();
    for &threads in &counts {
        for (id, make) in ROWS {
            if (sampler.cancelled)() {
                return outcomes;
            }
            let terms = terms(options, threads, told_ns);
            let cases = make(&terms).unwrap_or_else(|error| vec![refusing(id, threads, error)]);
            let before = site.neighbour_ratio();
            let mut row = sampler.with(linpack::plan(&terms, &sampler.plan)).run_recorded(cases);
            linpack::finish(&mut row);
            // The short set of all areas has room for no further row.
            if options.extent != Extent::Few {
                let best: Vec<Outcome> = row.iter().filter_map(linpack::best).collect();
                row.extend(best);
            }
            let peak = finish::double_peak(units, threads);
            let after = site.neighbour_ratio();
            let neighbour = before.zip(after).map(|(before, after)| f64::midpoint(before, after));
            for row in &mut row {
                linpack::against_peak(row, peak.clone());
                linpack::note_neighbour(row, neighbour);
            }
            outcomes.extend(row);
        }
    }
    outcomes
}

/// One thread and one per CPU, unless the user chose; short runs have the latter alone.
fn threads(options: &Options) -> Vec<u32> {
    let all = affinity::allowed_cpu_count();
    let mut counts = match (options.threads.is_empty(), options.extent) {
        (false, _) => options.threads.clone(),
        (true, Extent::Full) => vec![1, all],
        (true, Extent::Few | Extent::Quick) => vec![all],
    };
    // The whole machine first: it needs the largest matrices to show what it can.
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts.dedup();
    counts
}

fn terms(options: &Options, threads: u32, time_ns: u64) -> linpack::Options {
    linpack::Options {
        order: options.order,
        trials: options.trials.unwrap_or(linpack::TRIALS),
        threads,
        time_ns,
        free_bytes: Room::now().free_bytes(),
        seed: options.seed,
    }
}

/// The case of a row that could not be begun with: it says why.
fn refusing(id: &'static str, threads: u32, error: TrialError) -> Case<'static, Plain> {
    let parameters = [("threads".to_owned(), json!(threads)), ("type".to_owned(), json!("f64"))];
    Case {
        row: Plain { id, parameters: parameters.into_iter().collect(), unit: Unit::FlopPerSecond },
        trial: Box::new(move |_| Err(error.clone())),
    }
}
