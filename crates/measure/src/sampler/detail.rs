//! What trials bring besides their figure: latencies, curves, further figures; and how those of
//! several trials become one.

use crate::case::Latencies;
use crate::record::Series;

/// Moves the latencies of a trial to those of all trials that count so far.
pub(super) fn pool(into: &mut Option<Latencies>, more: Option<Latencies>) {
    match (into, more) {
        (Some(pool), Some(more)) => pool.histogram.merge(&more.histogram),
        (pool @ None, more) => *pool = more,
        (Some(_), None) => {}
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

    fn timed(durations: &[u64]) -> Option<Latencies> {
        let mut histogram = Histogram::new();
        durations.iter().for_each(|&duration| histogram.record(duration));
        Some(Latencies { histogram, loop_kind: LoopKind::Open })
    }

    #[test]
    fn latencies_of_trials_are_pooled_and_moved_once() {
        let mut pooled = None;
        let mut first = timed(&[10, 30]);
        pool(&mut pooled, first.take());
        pool(&mut pooled, first.take());
        pool(&mut pooled, timed(&[20]));
        let latency = pooled.unwrap().latency().unwrap();
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
