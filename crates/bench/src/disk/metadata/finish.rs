//! What limits the metadata rows, as far as the rows themselves show it. Their ceiling is unknown.

use flatout_measure::ceiling;
use flatout_measure::record::{Ceiling, Outcome};
use flatout_measure::warning::{self, Warning};
use serde_json::Value;

use super::row::{Directories, Test};

/// Share of the threads' time that is CPU time from which on nothing else can be the limit.
const BUSY_SHARE: f64 = 0.9;
/// Below this share threads mostly sleep.
const ASLEEP_SHARE: f64 = 0.5;
/// Threads in one directory do at most this share of what they do in their own when its lock
/// holds them back,
const LOCKED_SHARE: f64 = 0.75;
/// and at most this many times what one thread does there.
const LOCKED_GAIN: f64 = 1.2;

/// Times by which creating may be slower than removing before it is a doubt.
const SLOW_CREATES: f64 = 8.0;

/// Gives each row a ceiling that nobody knows, and a limiter where the figures name one.
pub(super) fn finish(outcomes: &mut [Outcome]) {
    doubt_creates(outcomes);
    let limiters: Vec<&str> = outcomes.iter().map(|row| limiter(row, outcomes)).collect();
    for (outcome, limiter) in outcomes.iter_mut().zip(limiters) {
        let name = "what this filesystem can do".to_owned();
        ceiling::apply(
            outcome,
            Ceiling { name, limiter: limiter.to_owned(), ..Ceiling::default() },
        );
    }
}

/// Creating is hardly ever much slower than removing. Where it is, ext4 has most likely to skip the
/// inodes of files that were deleted within the last minute, one by one.
fn doubt_creates(outcomes: &mut [Outcome]) {
    let slowest_unlink = outcomes
        .iter()
        .filter(|row| row.id == Test::Unlink.id())
        .filter_map(|row| row.median)
        .reduce(f64::min);
    let Some(unlink) = slowest_unlink else { return };
    for row in outcomes.iter_mut().filter(|row| row.id == Test::Create.id()) {
        let Some(create) = row.median.filter(|create| create * SLOW_CREATES < unlink) else {
            continue;
        };
        let text = format!(
            "creating is {:.0} times slower than removing: most likely many files were deleted here \
             within the last minute, whose inodes are skipped one by one",
            unlink / create
        );
        warning::add(&mut row.warnings, Warning::new(warning::RECENT_DELETES, text));
    }
}

fn limiter(row: &Outcome, all: &[Outcome]) -> &'static str {
    let busy_share = busy_share(row);
    if is_locked(row, all).unwrap_or(false) {
        "the directory that the threads share"
    } else if busy_share.is_some_and(|share| share >= BUSY_SHARE) {
        "the kernel's own work (CPU)"
    } else if row.id == Test::Fsync.id() && busy_share.is_some_and(|share| share <= ASLEEP_SHARE) {
        "the journal, or the device below it"
    } else {
        "unknown"
    }
}

/// CPU time ÷ time of all threads.
fn busy_share(row: &Outcome) -> Option<f64> {
    let figure = |key| row.audit.get(key).and_then(Value::as_f64);
    let share = (figure("user_ns")? + figure("system_ns")?) / figure("threads_ns")?;
    share.is_finite().then_some(share)
}

/// Whether several threads in one directory gain little, and more in directories of their own.
fn is_locked(row: &Outcome, all: &[Outcome]) -> Option<bool> {
    let (spread, threads) = place(row)?;
    if threads == 1 || spread != Directories::One.word() {
        return None;
    }
    let rate_at = |place_wanted| {
        all.iter().find(|other| other.id == row.id && place(other) == Some(place_wanted))?.median
    };
    let (own, apart) = (row.median?, rate_at((Directories::Many.word(), threads))?);
    let alone = rate_at((Directories::One.word(), 1))?;
    Some(own <= LOCKED_SHARE * apart && own <= LOCKED_GAIN * alone)
}

/// Word for the spread of the files, and threads.
fn place(row: &Outcome) -> Option<(&str, u64)> {
    Some((row.parameters.get("directories")?.as_str()?, row.parameters.get("threads")?.as_u64()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(test: Test, spread: Directories, threads: u32, median: f64, busy_ns: u64) -> Outcome {
        let mut row =
            Outcome { id: test.id().to_owned(), median: Some(median), ..Outcome::default() };
        row.parameters.insert("directories".to_owned(), json!(spread.word()));
        row.parameters.insert("threads".to_owned(), json!(threads));
        row.audit.insert("user_ns".to_owned(), json!(busy_ns / 2));
        row.audit.insert("system_ns".to_owned(), json!(busy_ns / 2));
        row.audit.insert("threads_ns".to_owned(), json!(1000));
        row
    }

    #[test]
    fn a_limiter_is_named_only_where_the_figures_show_it() {
        let (one, many) = (Directories::One, Directories::Many);
        let mut rows = [
            row(Test::Create, one, 2, 50.0, 990),
            row(Test::Create, many, 2, 90.0, 990),
            row(Test::Create, one, 1, 50.0, 600),
            row(Test::Fsync, one, 1, 2.0, 100),
            row(Test::Stat, one, 2, 90.0, 950),
            row(Test::Stat, many, 2, 90.0, 950),
        ];
        rows[4].audit.remove("threads_ns");
        finish(&mut rows);
        let limiters: Vec<_> =
            rows.iter().map(|row| row.ceiling.as_ref().unwrap().limiter.as_str()).collect();
        assert_eq!(
            limiters,
            [
                "the directory that the threads share",
                "the kernel's own work (CPU)",
                "unknown",
                "the journal, or the device below it",
                "unknown",
                "the kernel's own work (CPU)"
            ]
        );
        assert!(rows.iter().all(|row| row.ceiling.as_ref().unwrap().ratio.is_none()));
    }

    #[test]
    fn creating_far_slower_than_removing_is_a_doubt() {
        for (create, is_doubted) in [(5_000.0, true), (50_000.0, false)] {
            let of = |test: Test, median| Outcome {
                id: test.id().to_owned(),
                median: Some(median),
                ..Outcome::default()
            };
            let mut rows = [of(Test::Create, create), of(Test::Unlink, 100_000.0)];
            finish(&mut rows);
            assert_eq!(warning::has(&rows[0].warnings, warning::RECENT_DELETES), is_doubted);
            assert!(rows[1].warnings.is_empty());
        }
    }
}
