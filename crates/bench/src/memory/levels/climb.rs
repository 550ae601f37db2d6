//! Where a latency curve climbs from one level to the next.
//!
//! A climb is a run of points each of which is clearly higher than the one before. A slow creep
//! (address translation, a cache whose slices lie at different distances) is none.

use super::Point;

/// Rise of log2(latency) per power of two of the working set above which a step belongs to a
/// climb. Recorded curves creep by up to 0.25 within a level, and climb by 0.5 and more between
/// levels (see the tests).
const STEEP: f64 = 0.27;
/// Latency at the end of a climb over that at its start, below which it is a ripple. The nearest
/// pairs of levels known are the last cache and memory of a server in a virtual machine, at 1.7;
/// address translation adds up to 1.4 within a level.
const RISE_LEAST: f64 = 1.5;
/// Flat powers of two between two climbs, below which they are one: no cache is less than twice
/// as large as the one before it and worth having.
const FLAT_LEAST: f64 = 0.99;

/// A climb, by the indices of its points: `first` is the last one of the stretch below, `last` the
/// first one of the stretch above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Climb {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// The climbs of a curve, ascending.
pub(super) fn find(curve: &[Point]) -> Vec<Climb> {
    let octaves = |a: usize, b: usize| {
        (curve[b].working_set_bytes as f64 / curve[a].working_set_bytes as f64).log2()
    };
    let rise = |a: usize, b: usize| curve[b].latency_ns / curve[a].latency_ns;
    let mut climbs: Vec<Climb> = Vec::new();
    for index in 1..curve.len() {
        if rise(index - 1, index).log2() < STEEP * octaves(index - 1, index) {
            continue;
        }
        match climbs.last_mut().filter(|last| octaves(last.last, index - 1) < FLAT_LEAST) {
            Some(last) => last.last = index,
            None => climbs.push(Climb { first: index - 1, last: index }),
        }
    }
    climbs.retain(|climb| rise(climb.first, climb.last) >= RISE_LEAST);
    climbs
}
