//! Rows that are raced: whole rounds, of which each counts for all rows or for none, until the
//! ratios of the pairs are precise.
//!
//! The ratio of a pair is taken round by round, so that what drifts hits both figures alike; a
//! round that something outside spoiled is spoiled for everybody.

use super::row::least;
use super::{Attempt, Closed, Run, Sampled, Sampler, of_rows};
use crate::case::{Case, Measured, Plan, TrialError, WhenPrecise};
use crate::guard::Spoil;
use crate::random::SplitMix64;
use crate::record::{Better, Outcome, Status};
use crate::row::Row;
use crate::statistics;
use crate::warning::{self, Warning};

/// Two rows that are held against each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair<P> {
    /// The row of their ratio.
    pub row: P,
    /// The place of the row that is judged.
    pub subject: usize,
    /// The place of the row that it is held against.
    pub against: usize,
}

impl Sampler<'_> {
    /// Runs all cases once per round, in a new random order, until the ratio of each pair is as
    /// precise as the plan asks where that is its end, or its trials or time are over. Returns the rows in the order of
    /// the cases, and those of the ratios in the order of the pairs.
    ///
    /// A ratio says how many times as good the subject is. A row that fails is out; the others go
    /// on. [`TrialError::NoMore`] of one ends the race for all.
    pub fn race<R: Row, P: Row>(
        &mut self,
        cases: Vec<Case<'_, R>>,
        pairs: Vec<Pair<P>>,
    ) -> (Vec<Measured<R>>, Vec<Measured<P>>) {
        let untyped = pairs.iter().map(|Pair { row, subject, against }| Pair {
            row: row as &dyn Row,
            subject: *subject,
            against: *against,
        });
        let (untyped, mut ratios) = (untyped.collect(), Vec::new());
        let rows = of_rows(cases, |cases| {
            let rows;
            (rows, ratios) = self.in_rounds(cases, untyped);
            rows
        });
        (rows, pairs.into_iter().zip(ratios).map(|(pair, ratio)| ratio.of(pair.row)).collect())
    }

    /// Runs all cases once per round in their own order, as steps of which each needs what those
    /// before it left, until trials or time are over; a round counts as a whole. What ends one step
    /// for want of another is [`TrialError::NoMore`].
    pub fn sequence<R: Row>(&mut self, cases: Vec<Case<'_, R>>) -> Vec<Measured<R>> {
        of_rows(cases, |cases| self.in_rounds(cases, Vec::new()).0)
    }

    /// In random order where there are pairs, else in that of the cases.
    fn in_rounds(
        &mut self,
        cases: Vec<Case<'_, &dyn Row>>,
        pairs: Vec<Pair<&dyn Row>>,
    ) -> (Vec<Measured<()>>, Vec<Measured<()>>) {
        let overhead = super::calibrate(self.clock);
        let started_ns = self.clock.now_ns();
        let rows = cases.into_iter().map(|case| Sampled::in_rounds(case, &self.plan)).collect();
        let mut run = Run { rows, sampler: self, started_ns };
        let mut random = SplitMix64::new(run.sampler.plan.seed);
        let mut order: Vec<usize> = (0..run.rows.len()).collect();
        while run.wants_round(&pairs) {
            if !pairs.is_empty() {
                random.shuffle(&mut order);
            }
            run.round(&order);
        }
        for row in &mut run.rows {
            if row.is_open() {
                row.closed = Some(row.done());
            }
            row.keep_what_there_is(&run.sampler.plan);
        }
        let ratios = pairs.iter().map(|pair| run.ratio(pair)).collect();
        (run.finish(&overhead), ratios)
    }
}

impl Run<'_, '_, '_> {
    fn wants_round(&self, pairs: &[Pair<&dyn Row>]) -> bool {
        let plan = &self.sampler.plan;
        let open = || self.rows.iter().filter(|row| row.is_open());
        let Some(row) = open().next() else { return false };
        if !self.is_in_time(open().map(|row| self.expected_ns(row)).sum()) {
            return false;
        }
        if !row.has_least(plan) {
            return true;
        }
        row.taken_figures().count() < plan.max_trials as usize
            && self.elapsed_ns() < plan.budget_ns
            && (plan.when_precise == WhenPrecise::Thin
                || !pairs.iter().all(|pair| self.has_precise_ratio(pair)))
    }

    /// Whether a pair needs no more rounds, or will have none.
    fn has_precise_ratio(&self, pair: &Pair<&dyn Row>) -> bool {
        let is_over = [pair.subject, pair.against].iter().any(|&at| !self.rows[at].is_open());
        is_over || is_settled(&self.ratios(pair), &self.sampler.plan)
    }

    /// How many times as good the subject was, round by round.
    fn ratios(&self, pair: &Pair<&dyn Row>) -> Vec<f64> {
        let [subject, against] = [pair.subject, pair.against].map(|at| &self.rows[at]);
        let both = subject.taken_figures().zip(against.taken_figures());
        both.map(|(subject_figure, against_figure)| match subject.case.row.unit().better() {
            Better::Higher => subject_figure / against_figure,
            Better::Lower => against_figure / subject_figure,
        })
        .collect()
    }

    /// One round. It counts when all have run: those of an interrupted one do not.
    fn round(&mut self, order: &[usize]) {
        let mut attempts: Vec<(usize, Attempt)> = Vec::new();
        let mut spoil: Option<Spoil> = None;
        for &index in order {
            if !self.rows[index].is_open() {
                continue;
            }
            if (self.sampler.cancelled)() {
                return self.interrupt();
            }
            let attempt = self.attempt(index);
            match &attempt.result {
                Err(TrialError::Interrupted) => return self.interrupt(),
                Err(TrialError::NoMore(why)) => return self.close_all(why),
                Err(_) | Ok(_) => {}
            }
            let own = attempt.result.as_ref().ok().and_then(|sample| sample.spoil);
            spoil = spoil.or(attempt.spoil).or(own);
            attempts.push((index, attempt));
        }
        for (index, attempt) in attempts {
            let attempt = Attempt { spoil, ..attempt };
            if let Some(reason) = self.take(index, attempt) {
                self.close(index, reason);
            }
        }
    }

    /// Ends all rows: with the rounds that they have where time or bytes were short, else as failed.
    fn close_all(&mut self, why: &Warning) {
        for row in self.rows.iter_mut().filter(|row| row.is_open()) {
            row.closed = Some(match is_short(&why.code) {
                true => row.ends(why.clone()),
                false => Closed::Failed(why.text.clone()),
            });
        }
    }

    fn ratio(&self, pair: &Pair<&dyn Row>) -> Measured<()> {
        let ratios = self.ratios(pair);
        let rows = [pair.subject, pair.against].map(|at| &self.rows[at]);
        let mut measured = rows[0].ratio(pair.row, ratios);
        // What failed is said before what there was no time for.
        let refused = rows.iter().rev().filter_map(|row| row.refused());
        if let Some((status, code, _)) = refused.max_by_key(|refused| refused.0 == Status::Failed) {
            let is_short = is_short(code);
            let (status, code) =
                if is_short { (status, code) } else { (Status::Failed, warning::FAILED) };
            let mut outcome = Outcome { status, ..crate::case::blank(pair.row) };
            outcome.warn(code, "no ratio: one of the two has no figure");
            measured =
                Measured { row: (), outcome, facts: Default::default(), further: Vec::new() };
        }
        measured
    }
}

/// Whether the ratios of so many rounds are precise. Those that are not with the least rounds must be so
/// in two rounds running: else the race would end just when rounds agree by chance, and of its 95 %
/// intervals 92.6 % hold the ratio (docs/versus.md).
fn is_settled(ratios: &[f64], plan: &Plan) -> bool {
    let is_precise = |ratios: &[f64]| {
        statistics::relative_half_width(ratios).is_some_and(|width| width <= plan.half_width)
    };
    let before = &ratios[..ratios.len().saturating_sub(1)];
    is_precise(ratios) && (before.len() < least(plan) || is_precise(before))
}

/// Whether nothing failed: there was no more time, or no more to be written.
fn is_short(code: &str) -> bool {
    [warning::TIME_SHORT, warning::WRITE_LIMIT].contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draw;

    /// Races of two who are equally fast, whose rounds differ by so much.
    #[test]
    fn intervals_hold_the_ratio_though_races_end_when_they_are_narrow() {
        const RACES: usize = 3_000;
        let plan = Plan::default();
        let mut random = SplitMix64::new(5);
        for deviation in [0.01, 0.02, 0.03, 0.04, 0.05] {
            let holds = |_: &usize| {
                let mut ratios: Vec<f64> = Vec::new();
                let is_over = |ratios: &[f64]| ratios.len() >= 60 || is_settled(ratios, &plan);
                while ratios.len() < least(&plan) || !is_over(&ratios) {
                    ratios.push((deviation * random.normal()).exp());
                }
                let [low, high] = statistics::median_interval(&ratios).unwrap();
                (low..=high).contains(&1.0)
            };
            let held = (0..RACES).filter(holds).count() as f64 / RACES as f64;
            assert!((0.942..0.98).contains(&held), "{deviation}: {held}");
        }
    }
}
