//! Accesses of 8 bytes over the whole of the memory: the finest blocks, in nanoseconds each.
//!
//! They do not wait for one another, so the figure is how often a thread finishes one, which is
//! less than what one takes: that is what a chase finds (`memory/latency.rs`).

use std::sync::Mutex;

use flatout_measure::case::{Sample, TrialError};
use flatout_sys::stream::access::{self, Pattern, Walk};
use serde_json::json;

use super::site::{Lane, Site, take};

/// Accesses of a trial, all threads together: what a trial takes is some 20 to 30 ms, in order and
/// out of order (two virtual CPUs of a Sapphire Rapids server, 2026-11-22).
const IN_ORDER: u64 = 1 << 24;
const OUT_OF_ORDER: u64 = 1 << 20;
/// How many of them many threads are at most: each has a part that is long against its start.
const MOST_PARTS: u64 = 8;
/// Cells that are looked at afterwards.
const LOOKED_AT: u64 = 4096;

/// Bytes of an access.
pub(super) const BYTES: u64 = 8;

pub(super) const ALL: [Pattern; 3] =
    [Pattern::SequentialCopy, Pattern::SequentialWrite, Pattern::RandomWrite];

/// The name in records.
pub(super) fn name(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::SequentialCopy => "sequential-copy",
        Pattern::SequentialWrite => "sequential-write",
        Pattern::RandomWrite => "random-write",
    }
}

/// Runs one trial: every thread goes through its part of `share_bytes`.
///
/// # Errors
/// As those of `memory/trial.rs`.
pub(super) fn run(
    site: &Site,
    pattern: Pattern,
    threads: u32,
    share_bytes: u64,
    seed: u64,
) -> Result<Sample, TrialError> {
    if site.cancel.is_cancelled() {
        return Err(TrialError::Interrupted);
    }
    let no_room = || TrialError::Unsupported("there is not enough free memory".to_owned());
    let share = (share_bytes / BYTES) as usize;
    let parts = u64::from(threads).clamp(1, MOST_PARTS);
    let count = match pattern {
        Pattern::SequentialCopy | Pattern::SequentialWrite => (IN_ORDER / parts).min(share as u64),
        Pattern::RandomWrite => (OUT_OF_ORDER / parts).min(access::span_cells(share) as u64),
    };
    let mut memory = site.memory();
    let lanes = memory.lanes(threads, share, 1).filter(|_| share > 0).ok_or_else(no_room)?;
    let slots: Vec<_> = lanes.into_iter().map(|lane| Mutex::new(Some(lane))).collect();
    let crewed = site.crew(
        threads,
        |index| {
            let lane = take(&slots[index as usize]).ok_or_else(no_room)?;
            if pattern == Pattern::SequentialCopy {
                // What an earlier trial copied must not pass for this one's.
                looked_at(pattern, share, count, seed).for_each(|cell| lane.target[cell] = 0.0);
            }
            Ok::<_, TrialError>(lane)
        },
        |_, lane| Ok(access::run(pattern, lane.target, lane.first, count, seed)),
    );
    drop(slots);
    crewed.results.into_iter().collect::<Result<Vec<_>, _>>()?;
    for lane in memory.lanes(threads, share, 1).ok_or_else(no_room)? {
        check(pattern, &lane, count, seed)?;
    }
    let mut sample = Sample {
        amount: count as f64,
        elapsed_ns: crewed.elapsed_ns,
        warnings: site.doubt_of_cpus().into_iter().collect(),
        ..Sample::default()
    };
    sample.audit.insert("accesses".to_owned(), json!(count * u64::from(threads)));
    sample.audit.insert("elapsed_ns".to_owned(), json!(crewed.elapsed_ns));
    Ok(sample)
}

/// Cells that were written and are looked at: spread over those in order, the first ones of a
/// walk.
fn looked_at(
    pattern: Pattern,
    cells: usize,
    count: u64,
    seed: u64,
) -> Box<dyn Iterator<Item = usize>> {
    let few = count.min(LOOKED_AT);
    match pattern {
        Pattern::SequentialCopy | Pattern::SequentialWrite => {
            Box::new((0..few).map(move |index| (index * (count / few.max(1))) as usize))
        }
        Pattern::RandomWrite => {
            let mut walk = Walk::new(cells, seed);
            Box::new((0..few).map(move |_| walk.step()))
        }
    }
}

fn check(pattern: Pattern, lane: &Lane<'_>, count: u64, seed: u64) -> Result<(), TrialError> {
    for cell in looked_at(pattern, lane.target.len(), count, seed) {
        let expected = match pattern {
            Pattern::SequentialCopy => lane.first[cell].to_bits(),
            Pattern::SequentialWrite | Pattern::RandomWrite => access::word_at(cell, seed),
        };
        if lane.target[cell].to_bits() != expected {
            let name = name(pattern);
            return Err(TrialError::Failed(format!("{name} left something else at cell {cell}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use flatout_sys::cancel::CancelToken;

    use super::super::site::Extents;
    use super::*;

    #[test]
    fn each_pattern_gives_a_sample_and_is_checked() {
        let extents = Extents::of(3, 1 << 16, 1);
        let site = Site::new(extents, 2, 3, CancelToken::manual()).unwrap();
        for pattern in ALL {
            let sample = run(&site, pattern, 3, 50_176, 7).unwrap();
            let cells = if pattern == Pattern::RandomWrite { 4096 } else { 50_176 / 8 };
            assert_eq!(sample.amount, f64::from(cells), "{pattern:?}");
            assert_eq!(sample.audit["accesses"], json!(3 * cells));
            let mut memory = site.memory();
            let mut lanes = memory.lanes(3, 6272, 1).unwrap();
            assert_eq!(check(pattern, &lanes[2], cells as u64, 7), Ok(()));
            lanes[2].target.fill(0.0);
            assert!(check(pattern, &lanes[2], cells as u64, 7).is_err(), "{pattern:?}");
        }
    }
}
