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

/// What the trials of a row saw of a sibling.
pub(super) struct Contention {
    ratio: Option<f64>,
    /// Whether the figure has the time beside the sibling in it, and it is not known how much.
    is_in_figure: bool,
}

impl Contention {
    /// By what a row's trials found, and whether those that count are disturbed by a sibling.
    pub(super) fn of(facts: &Facts, watched_ratio: Option<f64>, is_disturbed: bool) -> Self {
        let of_all_time = facts.number(CONTENTION_RATIO);
        let is_in_figure = is_disturbed || of_all_time.is_some();
        Self { ratio: of_all_time.or(watched_ratio), is_in_figure }
    }

    /// Whether it is not known what the figure would be with another sibling, or with none.
    pub(super) fn is_in_figure(&self) -> bool {
        self.is_in_figure && self.ratio.is_some_and(|ratio| ratio > SEEN)
    }

    /// Says how much that was. Of a row of disturbed trials it is said already.
    pub(super) fn note(&self, outcome: &mut Outcome, facts: &mut Facts) {
        facts.set_known(CONTENTION_RATIO, self.ratio);
        // Probes see a core that a quota holds back as one that a sibling uses.
        let said = [warning::DISTURBED, warning::CPU_QUOTA];
        let is_apart = said.iter().all(|code| !warning::has(&outcome.warnings, code));
        let notable = self.ratio.filter(|&ratio| is_apart && ratio > warning::NOTABLE_CONTENTION);
        let Some(percent) = notable.map(|ratio| ratio * 100.0) else { return };
        let (share, counts) = match self.is_in_figure {
            true => ("probes", "what it took is in the figure"),
            false => ("time", "quiet moments count, as far as there were some"),
        };
        let text =
            format!("an SMT sibling used the core for {percent:.0} % of the {share}: {counts}");
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
        interval::reaching(ends, &levels, known)
    }
}
