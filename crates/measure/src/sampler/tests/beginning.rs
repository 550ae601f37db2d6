//! Which rows begin where time is too short for all of them.

use super::*;

/// A row that people compare, or one of many others.
#[derive(Clone, Copy)]
struct Ranked(&'static str, bool);

impl Row for Ranked {
    fn label(&self) -> Label {
        Label::new(self.0, Unit::OperationsPerSecond).headline_if(self.1)
    }
}

/// How many trials of 10 ms each of these rows has after so many milliseconds.
fn trials_in(ms: u64, rows: &[Ranked]) -> Vec<u64> {
    let clock = FakeClock::default();
    let case = |&row: &Ranked| Case {
        row,
        trial: Box::new(|_| {
            clock.advance(10 * MS);
            Ok(Sample { amount: 1_000.0, elapsed_ns: 10 * MS, ..Sample::default() })
        }),
    };
    let (budget_ns, ends_ns) = (ms * MS, ms * MS);
    let when_precise = WhenPrecise::Thin;
    let mut sampler = Sampler {
        plan: Plan { budget_ns, ends_ns, when_precise, max_trials: 1_000, ..Plan::default() },
        clock: &clock,
        witness: &mut FakeWitness::quiet(),
        events: &mut |_| {},
        cancelled: &|| false,
    };
    let outcomes = record(sampler.run(rows.iter().map(case).collect()));
    let late = outcomes.iter().filter(|outcome| outcome.n == 0);
    assert!(late.clone().all(|outcome| codes(outcome) == [warning::TIME_SHORT]));
    outcomes.iter().map(|outcome| outcome.n).collect()
}

#[test]
fn where_time_is_short_it_is_for_the_rows_that_people_compare() {
    let mut rows = [Ranked("a/b", false); 40];
    (rows[39].1, rows[20].1) = (true, true);
    // Three trials.
    let trials = trials_in(30, &rows);
    assert_eq!([trials[0], trials[1], trials[20], trials[39]], [1, 0, 1, 1], "{trials:?}");
}
