//! What limits the metadata rows, as far as the rows themselves show it. Their bound is unknown.

use flatout_measure::{Ceiling, Measured, Warning, ceiling, warning};

use super::row::{Directories, MetadataRow, Test};
use crate::disk::fact;

/// Share of the threads' time that is CPU time from which on nothing else can be the limit.
const BUSY_SHARE: f64 = 0.9;
/// Below this share threads mostly sleep.
const ASLEEP_SHARE: f64 = 0.5;
/// Threads in one directory do at most this share of what they do in their own when its lock
/// holds them back,
const LOCKED_SHARE: f64 = 0.75;
/// and at most this many times what one thread does there.
const LOCKED_GAIN: f64 = 1.2;

/// Creating this many times slower than removing is hardly ever the filesystem's usual way.
const SLOW_CREATES: f64 = 8.0;

/// Gives each row a bound that nobody knows, and a bottleneck where the figures name one.
pub(super) fn apply(rows: &mut [Measured<MetadataRow>]) {
    warn_of_slow_creates(rows);
    let limiters: Vec<&str> = rows.iter().map(|measured| limiter(measured, rows)).collect();
    for (measured, limiter) in rows.iter_mut().zip(limiters) {
        let bound = Ceiling::unknown("what this filesystem can do").limited_by(limiter);
        ceiling::apply(&mut measured.outcome, bound);
    }
}

fn warn_of_slow_creates(rows: &mut [Measured<MetadataRow>]) {
    let unlinks = rows.iter().filter(|measured| measured.row.test == Test::Unlink);
    let slowest = unlinks.filter_map(|measured| measured.outcome.median).reduce(f64::min);
    for Measured { outcome, .. } in rows.iter_mut().filter(|it| it.row.test == Test::Create) {
        let slow = slow_creates(outcome.median, slowest, "many files were deleted here");
        warning::add_all(&mut outcome.warnings, slow);
    }
}

/// What creating most likely is that is far slower than removing: ext4 skips the inodes of files that were
/// deleted within the last minute.
pub(crate) fn slow_creates(
    create: Option<f64>,
    remove: Option<f64>,
    what_was: &str,
) -> Option<Warning> {
    let times = remove? / create?;
    let text = format!(
        "creating is {times:.0} times slower than removing: most likely {what_was} within the last \
         minute, whose inodes are skipped one by one"
    );
    (times > SLOW_CREATES).then(|| Warning::new(warning::RECENT_DELETES, text))
}

fn limiter(measured: &Measured<MetadataRow>, all: &[Measured<MetadataRow>]) -> &'static str {
    let busy_share = busy_share(measured);
    let is_fsync = measured.row.test == Test::Fsync;
    if is_locked(measured, all).unwrap_or(false) {
        "the directory that the threads share"
    } else if busy_share.is_some_and(|share| share >= BUSY_SHARE) {
        "the kernel's own work (CPU)"
    } else if is_fsync && busy_share.is_some_and(|share| share <= ASLEEP_SHARE) {
        "the journal, or the device below it"
    } else {
        "unknown"
    }
}

/// CPU time ÷ time of all threads.
fn busy_share(measured: &Measured<MetadataRow>) -> Option<f64> {
    let figure = |key| measured.facts.number(key);
    let share = (figure(fact::USER_NS)? + figure(fact::SYSTEM_NS)?) / figure(fact::THREADS_NS)?;
    share.is_finite().then_some(share)
}

/// Whether several threads in one directory gain little, and more in directories of their own.
fn is_locked(measured: &Measured<MetadataRow>, all: &[Measured<MetadataRow>]) -> Option<bool> {
    let row = measured.row;
    if row.threads == 1 || row.directories != Directories::One {
        return None;
    }
    let rate_of = |row: MetadataRow| all.iter().find(|other| other.row == row)?.outcome.median;
    let apart = rate_of(MetadataRow { directories: Directories::Many, ..row })?;
    let alone = rate_of(MetadataRow { threads: 1, ..row })?;
    let own = measured.outcome.median?;
    Some(own <= LOCKED_SHARE * apart && own <= LOCKED_GAIN * alone)
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::blank;
    use flatout_measure::fact::Facts;

    use super::*;

    fn measured(
        test: Test,
        directories: Directories,
        threads: u32,
        median: f64,
    ) -> Measured<MetadataRow> {
        let row = MetadataRow { test, directories, threads };
        let mut outcome = blank(&row);
        outcome.median = Some(median);
        Measured { row, outcome, facts: Facts::default(), further: Vec::new() }
    }

    fn busy(mut measured: Measured<MetadataRow>, busy_ns: u64) -> Measured<MetadataRow> {
        measured.facts.set(fact::USER_NS, busy_ns / 2);
        measured.facts.set(fact::SYSTEM_NS, busy_ns / 2);
        measured.facts.set(fact::THREADS_NS, 1000_u64);
        measured
    }

    #[test]
    fn a_limiter_is_named_only_where_the_figures_show_it() {
        let (one, many) = (Directories::One, Directories::Many);
        let mut rows = [
            busy(measured(Test::Create, one, 2, 50.0), 990),
            busy(measured(Test::Create, many, 2, 90.0), 990),
            busy(measured(Test::Create, one, 1, 50.0), 600),
            busy(measured(Test::Fsync, one, 1, 2.0), 100),
            measured(Test::Stat, one, 2, 90.0),
            busy(measured(Test::Stat, many, 2, 90.0), 950),
        ];
        apply(&mut rows);
        let bounds: Vec<_> =
            rows.iter().map(|measured| measured.outcome.ceiling.as_ref().unwrap()).collect();
        let limiters: Vec<_> = bounds.iter().map(|bound| bound.limiter.as_str()).collect();
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
        assert!(bounds.iter().all(|bound| bound.ratio.is_none()));
    }

    #[test]
    fn creating_far_slower_than_removing_is_said() {
        for (create, is_said) in [(5_000.0, true), (50_000.0, false)] {
            let of = |test, median| measured(test, Directories::One, 1, median);
            let mut rows = [of(Test::Create, create), of(Test::Unlink, 100_000.0)];
            apply(&mut rows);
            let warnings = &rows[0].outcome.warnings;
            assert_eq!(warning::has(warnings, warning::RECENT_DELETES), is_said);
            assert!(rows[1].outcome.warnings.is_empty());
        }
    }
}
