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
    // The loops are timed before, since the time of the workers would include them.
    let (took, wall_ns) = workers::run(
        threads,
        |index| {
            let work = work::of(row, &target, sources[index as usize], site.block_bytes)?;
            let mut calls = work.prepare().map_err(failed)?;
            calls(warm_up(count)).map_err(failed)?;
            Ok::<_, TrialError>((calls, call::empty_loop_time(count)))
        },
        |_, (calls, empty_loop)| {
            let start = Instant::now();
            calls(count).map_err(failed)?;
            Ok([start.elapsed(), *empty_loop])
        },
    )?;
    let [own, empty_loops] = [0, 1].map(|which| took.iter().map(move |one| one[which]));
    let mut timing = Timing { wall: Duration::from_nanos(wall_ns), ..Timing::default() };
    timing.empty_loop = empty_loops.min().unwrap_or_default();
    timing.facts.set_known(fact::FASTEST_THREAD_NS, own.clone().min().map(nanoseconds));
    timing.facts.set_known(fact::SLOWEST_THREAD_NS, own.max().map(nanoseconds));
    Ok(timing)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::syscall::row::{Call, Variant};

    #[test]
    fn the_slowest_thread_is_done_when_all_are() {
        let variant = Variant::Threads(3, None);
        let row = Row { call: Call::Getppid, variant, block_bytes: 1 };
        let timing = run(&row, &Site::new(Path::new("/"), 1), 1000).unwrap();
        let ns = [fact::FASTEST_THREAD_NS, fact::SLOWEST_THREAD_NS]
            .map(|key| timing.facts.count(key).unwrap());
        assert!(0 < ns[0] && ns[0] <= ns[1] && ns[1] <= nanoseconds(timing.wall), "{timing:?}");
    }
}
