//! Several threads that make the same calls at the same time.
//!
//! All are started and set up first, and then let go together ([`workers`]). The time runs from the
//! first start to the last finish, so a thread that came late or was held up counts against the
//! figure.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use flatout_measure::TrialError;
use flatout_sys::call::{self, Subject};

use super::fact;
use super::row::{Descriptor, Row};
use super::site::Site;
use super::trial::{Timing, nanoseconds, warm_up};
use super::work::{self, Source};
use crate::workers;

/// When one thread ran.
struct Stretch {
    start: Instant,
    end: Instant,
    empty_loop: Duration,
}

/// Makes `count` calls in each of the threads.
pub(super) fn run(row: &Row, site: &Site, count: u64) -> Result<Timing, TrialError> {
    let failed = |error| work::refusal(row.call, &error);
    let (threads, descriptor) = (row.threads(), row.descriptor());
    let common = match descriptor {
        Some(Descriptor::Shared) => Some(site.common()?.open().map_err(failed)?),
        _ => None,
    };
    let mut sources = Vec::new();
    for thread in 0..threads as usize {
        sources.push(match (descriptor, &common) {
            (None, _) => Source::None,
            (Some(Descriptor::OwnFile), _) => Source::of(site.own(thread)?),
            // Each thread goes back after its share, so the position never passes the end.
            (_, Some(file)) => Source::File {
                subject: Subject::Shared(file.as_fd()),
                span_bytes: site.common()?.scratch.length_bytes() / u64::from(threads),
            },
            (_, None) => Source::of(site.common()?),
        });
    }
    let target = work::Target::of(row)?;
    let (stretches, _) = workers::run(
        threads,
        |index| {
            let work = work::of(row, &target, sources[index as usize], site.block_bytes)?;
            let mut calls = work.prepare().map_err(failed)?;
            calls(warm_up(count)).map_err(failed)?;
            Ok::<_, TrialError>(calls)
        },
        // The time of the workers would include the empty loops.
        |_, calls| {
            let start = Instant::now();
            calls(count).map_err(failed)?;
            let end = Instant::now();
            Ok(Stretch { start, end, empty_loop: call::empty_loop_time(count) })
        },
    )?;
    Ok(merge(&stretches))
}

fn merge(stretches: &[Stretch]) -> Timing {
    let starts = stretches.iter().map(|one| one.start).min();
    let ends = stretches.iter().map(|one| one.end).max();
    let (Some(first), Some(last)) = (starts, ends) else { return Timing::default() };
    let lengths = || stretches.iter().map(|one| one.end - one.start);
    let mut timing = Timing { wall: last - first, ..Timing::default() };
    timing.empty_loop = stretches.iter().map(|one| one.empty_loop).min().unwrap_or_default();
    timing.facts.set_known(fact::FASTEST_THREAD_NS, lengths().min().map(nanoseconds));
    timing.facts.set_known(fact::SLOWEST_THREAD_NS, lengths().max().map(nanoseconds));
    timing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_from_the_first_start_to_the_last_finish() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let stretch = |start, end, empty| Stretch {
            start: at(start),
            end: at(end),
            empty_loop: Duration::from_nanos(empty),
        };
        let timing = merge(&[stretch(1, 5, 20), stretch(3, 9, 10)]);
        assert_eq!(timing.wall, Duration::from_millis(8));
        assert_eq!(timing.empty_loop, Duration::from_nanos(10));
        assert_eq!(timing.facts.count(fact::FASTEST_THREAD_NS), Some(4_000_000));
        assert_eq!(timing.facts.count(fact::SLOWEST_THREAD_NS), Some(6_000_000));
    }
}
