//! What trials bring besides their figure: latencies, curves, further figures; and how those of
//! several trials become one.

use crate::case::{Further, Latencies};
use crate::record::{Latency, Series};

/// What one trial brought besides its figure.
#[derive(Debug, Default)]
pub(super) struct Details {
    pub(super) latencies: Option<Latencies>,
    pub(super) series: Vec<Series>,
    pub(super) further: Vec<Further>,
}

/// The latencies of all trials that count so far.
#[derive(Debug, Default)]
pub(super) struct LatencyPool(Option<Latencies>);

impl LatencyPool {
    /// Moves the latencies of a trial in here.
    pub(super) fn take(&mut self, details: &mut Details) {
        match (&mut self.0, details.latencies.take()) {
            (Some(pool), Some(more)) => pool.histogram.merge(&more.histogram),
            (pool @ None, more) => *pool = more,
            (Some(_), None) => {}
        }
    }

    /// Whether nothing was moved in here.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// What goes into the record.
    pub(super) fn latency(&self) -> Option<Latency> {
        let Latencies { histogram, loop_kind } = self.0.as_ref()?;
        histogram.latency(*loop_kind)
    }
}

/// Appends the curves of a trial to those of the same name.
pub(super) fn join_series(into: &mut Vec<Series>, from: &[Series]) {
    for series in from {
        match into.iter_mut().find(|known| known.name == series.name) {
            Some(known) => known.points.extend_from_slice(&series.points),
            None => into.push(series.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{Histogram, LoopKind};

    fn timed(durations: &[u64]) -> Details {
        let mut histogram = Histogram::new();
        durations.iter().for_each(|&duration| histogram.record(duration));
        let latencies = Some(Latencies { histogram, loop_kind: LoopKind::Open });
        Details { latencies, ..Details::default() }
    }

    #[test]
    fn latencies_of_trials_are_pooled_and_moved_once() {
        let mut pool = LatencyPool::default();
        let mut first = timed(&[10, 30]);
        pool.take(&mut first);
        pool.take(&mut first);
        pool.take(&mut timed(&[20]));
        let latency = pool.latency().unwrap();
        assert_eq!((latency.operations, latency.min_ns, latency.max_ns), (3, 10.0, 30.0));
        assert_eq!(latency.loop_kind, "open");
    }

    #[test]
    fn curves_of_one_name_are_joined() {
        let curve = |name: &str, x: f64| Series {
            name: name.to_owned(),
            points: vec![[x, 1.0]],
            ..Series::default()
        };
        let mut joined = Vec::new();
        join_series(&mut joined, &[curve("a", 1.0), curve("b", 1.0)]);
        join_series(&mut joined, &[curve("a", 2.0)]);
        assert_eq!(joined[0].points, [[1.0, 1.0], [2.0, 1.0]]);
        assert_eq!(joined.len(), 2);
    }
}
