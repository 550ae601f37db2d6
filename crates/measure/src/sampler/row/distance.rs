//! Where the host moved CPUs between trials: what a row found while they were near each other, and what while
//! they were far apart, because the next run may be at either place.

use super::{Sampled, Taken};
use crate::fact::Facts;
use crate::guard::FAR;
use crate::record::Outcome;
use crate::statistics::{self, compare};
use crate::warning;

use super::super::fact::CPU_DISTANCE_NS;

/// Trials of a row that tell what it finds at either place.
const LEAST_TRIALS: usize = 3;
/// Those of either that are looked at, at most.
const MOST_TRIALS: usize = 40;
/// Levels that differ by less are not told apart.
const LEAST_DIFFERENCE: f64 = 0.1;
/// The chance at most that one row of many has two levels by luck.
const CHANCE: f64 = 0.005;

/// The least distance at which CPUs were in all trials of some rows.
pub(in crate::sampler) fn least<'a>(
    rows: impl IntoIterator<Item = &'a Sampled<'a>>,
) -> Option<u32> {
    let trials = rows.into_iter().flat_map(|row| &row.taken);
    trials.filter_map(|taken| taken.distance_ns).flatten().min()
}

/// Notes how far apart CPUs were, and says it where the figure depends on that: the figure near and far then.
pub(super) fn note(
    (outcome, facts): (&mut Outcome, &mut Facts),
    counted: &[Taken],
    least_ns: Option<u32>,
) -> Option<[f64; 2]> {
    let far_ns = f64::from(least_ns?) * FAR;
    let (mut distances, mut levels) = (Vec::new(), [vec![], vec![]]);
    for taken in counted {
        let Some(ends) = taken.distance_ns.map(|ends| ends.map(f64::from)) else { continue };
        distances.extend(ends);
        // Who moved within a trial says nothing of either place.
        let is_far = ends.map(|ns| ns > far_ns);
        if is_far[0] == is_far[1] {
            levels[usize::from(is_far[0])].push((f64::midpoint(ends[0], ends[1]), taken.figure));
        }
    }
    facts.set_known(CPU_DISTANCE_NS, statistics::median(&distances));
    let [near, far] = levels;
    if near.len().min(far.len()) < LEAST_TRIALS {
        return None;
    }
    let middles = |trials: Vec<(f64, f64)>| {
        let (ns, mut figures): (Vec<f64>, Vec<f64>) = trials.into_iter().unzip();
        let (count, middle) = (figures.len(), statistics::median(&figures)?);
        figures.truncate(MOST_TRIALS);
        Some((statistics::median(&ns)?, count, middle, figures))
    };
    let (near, far) = (middles(near)?, middles(far)?);
    let ratio = far.2 / near.2;
    let is_told = [(&near.3, &far.3), (&far.3, &near.3)]
        .into_iter()
        .any(|(high, low)| compare::above(high, low) <= CHANCE);
    if !is_told || ratio.ln().abs() < LEAST_DIFFERENCE.ln_1p() {
        return None;
    }
    let text = format!(
        "the host moved CPUs: in {} trials they were {:.0} ns from each other, in {} {:.0} ns, with {ratio:.2} \
         times the figure",
        near.1, near.0, far.1, far.0
    );
    outcome.warn(warning::CPUS_MOVED, text);
    Some([near.2, far.2])
}
