//! What trials saw of an SMT sibling on their core: what is said of it, and how far the interval of a row
//! reaches where the sibling was there, because the next run may be without it, or beside it all the time.

use super::super::fact::{
    CONTENDED_NS, CONTENTION_RATIO, FIGURE_ALONE, FIGURE_CONTENDED, WATCHED_NS,
};
use super::Sampled;
use crate::fact::Facts;
use crate::record::{Better, Outcome};
use crate::statistics::interval::{self, Knowledge};
use crate::warning;

/// Share of the time watched by all rows of a phase with contention above which runs have two levels. Of
/// twenty runs on an Emerald Rapids (2 vCPUs, 2026-11-28) the quietest two had 0.06 and 0.09, and were below
/// the middle by 8 and 9 %.
const SEEN: f64 = 0.05;
/// How much dearer work is assumed to be beside a busy sibling at the least, whatever the trials saw: where
/// it comes and goes within a window, both of their levels lie between those of other runs. Calls were 1.1
/// (a clock read in user space) to 1.7 times (mmap) as dear in those runs.
const DEARER: f64 = 1.3;

/// For which share of the time that these trials watched the sibling used the core; `None` where none did.
pub(in crate::sampler) fn ratio<'f>(trials: impl Iterator<Item = &'f Facts>) -> Option<f64> {
    let times =
        |facts: &Facts| [CONTENDED_NS, WATCHED_NS].map(|key| facts.number(key).unwrap_or(0.0));
    let [contended_ns, watched_ns] =
        trials.map(times).fold([0.0; 2], |[one, other], [more, all]| [one + more, other + all]);
    (watched_ns > 0.0).then_some(contended_ns / watched_ns)
}

/// Says how much that was. Of a row of disturbed trials it is said already.
pub(super) fn note(outcome: &mut Outcome, facts: &mut Facts, ratio: Option<f64>) {
    facts.set_known(CONTENTION_RATIO, ratio);
    let is_apart = !warning::has(&outcome.warnings, warning::DISTURBED);
    let notable = ratio.filter(|&ratio| is_apart && ratio > warning::NOTABLE_CONTENTION);
    if let Some(ratio) = notable {
        let percent = ratio * 100.0;
        let text = format!(
            "an SMT sibling used the core for {percent:.0} % of the time: quiet moments count, as far \
             as there were some"
        );
        outcome.warn(warning::SMT_CONTENTION, text);
    }
}

impl Sampled<'_> {
    /// The interval with what the row takes alone on the core and what it takes beside a busy sibling,
    /// where all rows of the phase together saw contention for such a share of the time.
    pub(super) fn with_both_levels(
        &self,
        ends: [f64; 2],
        facts: &Facts,
        seen_ratio: Option<f64>,
        known: &Knowledge,
    ) -> [f64; 2] {
        let dearer = match self.case.row.unit().better() {
            Better::Lower => DEARER,
            Better::Higher => DEARER.recip(),
        };
        let [alone, contended] = match [FIGURE_ALONE, FIGURE_CONTENDED].map(|key| facts.number(key))
        {
            _ if seen_ratio.is_none_or(|ratio| ratio <= SEEN) => return ends,
            [None, None] => return ends,
            [Some(alone), contended] => [alone, contended.unwrap_or(alone * dearer)],
            [None, Some(contended)] => [contended / dearer, contended],
        };
        let levels = [alone, contended, alone * dearer, contended / dearer];
        interval::reaching(ends, levels, known)
    }
}
