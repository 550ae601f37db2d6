//! Where a latency curve climbs from one level to the next, and which cache each climb belongs to.
//!
//! A climb is a run of points each of which is clearly higher than the one before. A slow creep
//! (address translation, a cache whose slices lie at different distances) is none.

use super::Point;
use flatout_sys::cpu_cache::DataCache;

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

/// For each knee the index of the cache that it ends (0 is L1), ascending.
///
/// Where as many caches are declared as there are knees, or more, each knee gets one such that the
/// sizes agree best (least sum of squared powers of two). Otherwise knees are counted.
pub(super) fn matching(knees: &[u64], caches: &[DataCache]) -> Vec<usize> {
    if knees.len() > caches.len() {
        return (0..knees.len()).collect();
    }
    let mut best: (f64, Vec<usize>) = (f64::INFINITY, Vec::new());
    choose(knees, caches, &mut Vec::new(), &mut best);
    best.1.iter().map(|&index| caches[index].level as usize - 1).collect()
}

/// Tries all ascending choices; there are at most five caches.
fn choose(
    knees: &[u64],
    caches: &[DataCache],
    chosen: &mut Vec<usize>,
    best: &mut (f64, Vec<usize>),
) {
    if chosen.len() == knees.len() {
        let apart = |(&knee, &index): (&u64, &usize)| {
            (knee as f64 / caches[index].bytes as f64).log2().powi(2)
        };
        let cost: f64 = knees.iter().zip(chosen.iter()).map(apart).sum();
        if cost < best.0 {
            *best = (cost, chosen.clone());
        }
        return;
    }
    let start = chosen.last().map_or(0, |last| last + 1);
    for index in start..caches.len() {
        chosen.push(index);
        choose(knees, caches, chosen, best);
        chosen.pop();
    }
}
