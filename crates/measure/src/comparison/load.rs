//! Whether others were more at work beside one side than beside the other: then what differs may be
//! theirs, and no row is called better or worse.

use jiff::Timestamp;

use super::SIGNIFICANCE;
use super::noise::Learned;
use crate::random::SplitMix64;
use crate::record::Record;
use crate::statistics::compare::{combinations, divisions};

/// Chance of loads so far apart below which it is the sides that had them, and not the runs: twice
/// what a row needs, because what a row shows may be this. Up to twice its inverse divisions cannot
/// show it: then any difference counts.
const BY_CHANCE: f64 = 2.0 * SIGNIFICANCE;
/// Share of the machine's CPUs that others may have untold: the difference that a default comparison
/// can show.
const BUSY_SHARE: f64 = 0.05;
/// Divisions that are looked at, at most.
const MOST_DIVISIONS: usize = 1_000;

/// The share of the machine's CPUs that others had beside a run, on it or on its host.
pub(super) fn share(record: &Record) -> Option<f64> {
    let load = record.end.load.as_ref()?;
    let share = load.others_cpus? / f64::from(load.cpus.max(1)) + load.stolen_ratio;
    share.is_finite().then_some(share)
}

/// The mean shares of both sides where what differs may be the work of others: where the shares are
/// apart by more than makes a machine busy and by more than runs in any order would have them, or
/// where a busy machine changes slowly and the sides did not take turns. `None` where a run does not
/// say.
pub(super) fn in_the_way(old: &[Record], new: &[Record]) -> Option<[f64; 2]> {
    let shares: Vec<f64> = old.iter().chain(new).map(share).collect::<Option<_>>()?;
    let sizes = [old.len(), new.len()];
    let means = |is_new: &[bool]| {
        [false, true].map(|side| {
            let of_side = shares.iter().zip(is_new).filter(|(_, is_new)| **is_new == side);
            of_side.map(|(share, _)| share).sum::<f64>() / sizes[usize::from(side)] as f64
        })
    };
    let distance = |[old, new]: [f64; 2]| (old - new).abs();
    let mut all = divisions(sizes, MOST_DIVISIONS, &mut SplitMix64::new(1)).into_iter();
    let made = means(&all.next()?);
    let is_as_far = |is_new: &Vec<bool>| distance(means(is_new)) >= distance(made) * (1.0 - 1e-9);
    let chance = (1 + all.clone().filter(is_as_far).count()) as f64 / (1 + all.len()) as f64;
    let is_too_few = combinations(sizes[0] + sizes[1], sizes[0]) * BY_CHANCE <= 2.0;
    let is_apart = distance(made) > BUSY_SHARE && (is_too_few || chance < BY_CHANCE);
    let is_busy = shares.iter().any(|share| *share > BUSY_SHARE);
    (is_apart || is_busy && !took_turns(old, new)).then_some(made)
}

/// Whether the sides were measured in turn, or in an order as chance would have it: then their runs
/// change sides about as often as the smaller one has runs.
fn took_turns(old: &[Record], new: &[Record]) -> bool {
    // Clocks of several zones, or before and after the hour changed, do not sort as text.
    let of = |records: &[Record], is_new| -> Vec<(Option<Timestamp>, bool)> {
        records.iter().map(|record| (record.start.time.parse().ok(), is_new)).collect()
    };
    let mut order = [of(old, false), of(new, true)].concat();
    order.sort();
    let changes = order.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    changes + 1 >= old.len().min(new.len())
}

impl Learned {
    /// The share of the CPUs that others had, where that is what runs differ by: intervals of a
    /// quiet machine are not to be as wide.
    pub fn busy_share(&self) -> Option<f64> {
        self.load_share.filter(|share| *share > BUSY_SHARE)
    }

    /// Whether what was learned holds beside the load of these runs: noise of a quiet machine says
    /// nothing of a busy one. Without a word of the load it does.
    pub fn holds_beside<'a>(&self, mut records: impl Iterator<Item = &'a Record>) -> bool {
        let known = self.load_share;
        let is_more = |record| Some(share(record)? > known? + BUSY_SHARE);
        !records.any(|record| is_more(record).unwrap_or(false))
    }
}
