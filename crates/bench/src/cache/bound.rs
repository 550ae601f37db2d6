//! What the rows of the page cache area are held against, and what limits them.

use flatout_io::Engine;
use flatout_io::operations::Direction;
use flatout_measure::{Ceiling, Measured, ceiling};
use flatout_sys::storage::IoLimit;

use super::row::{Row, State, Test};
use crate::counted;
use crate::file_trial::group_limit;

/// Blocks so small that copying them takes no time beside the call.
const BARE_CALL_BYTES: u64 = 256;
/// Share of the time of a call from which on it is what a call takes that copies next to nothing.
const MOSTLY: f64 = 0.5;
/// Share of the bound from which on the bound itself is the limit.
const AT_THE_LIMIT: f64 = 0.9;

/// Gives each row its bound: memory for hot rows, for cold ones the tightest of these limits on the devices;
/// where there is none, what the device gave stands beside them.
pub(super) fn apply(rows: &mut [Measured<Row>], limits: &[IoLimit]) {
    let memory = rates(rows, Test::MemoryRead);
    let device = rates(rows, Test::DeviceRead).into_iter().map(|row| row.1).reduce(f64::max);
    let calls = bare_calls(rows);
    for Measured { row, outcome, facts, .. } in rows {
        let threads = row.tuning.threads;
        let limits = if row.state == State::Cold { limits } else { &[] };
        let group = group_limit::of(outcome, limits, facts, Direction::Read);
        let bound = match (row.test, row.state, group) {
            (_, _, Some(group)) => group,
            (Test::MemoryRead, ..) => Ceiling::unknown("memory bandwidth").limited_by("memory"),
            (Test::DeviceRead, ..) => {
                Ceiling::unknown("the device").limited_by("the device, or what lies before it")
            }
            (_, State::Hot, _) => {
                // The fastest way with as many threads. More than were tried on memory cannot bring
                // more than those did.
                let faster = |one: &&(u32, f64), other: &&(u32, f64)| one.1.total_cmp(&other.1);
                let at = memory.iter().filter(|row| row.0 == threads).max_by(faster);
                let held = at.or(memory.iter().max_by(faster));
                let count = held.map_or(threads, |row| row.0);
                let name = format!("bare memory read, {}", counted(count, "thread"));
                Ceiling::measured(name, held.map(|row| row.1))
            }
            // The best row of a run is no bound: a device is faster a moment later.
            _ => Ceiling::best_seen("direct device read, depth 16", device),
        };
        let share = bound.value.zip(outcome.median).map(|(value, median)| median / value);
        ceiling::apply(outcome, bound);
        let bound = outcome.ceiling.as_mut().filter(|bound| bound.limiter.is_empty());
        if let Some(bound) = bound {
            let own_s = outcome.median.map(|median| call_s(row, median));
            let bare = calls.iter().find(|bare| (bare.0, bare.1) == (row.tuning.engine, threads));
            let bare_share = bare.zip(own_s).map_or(0.0, |(bare, own_s)| bare.2 / own_s);
            bound.limiter = limiter(row, share, bare_share).to_owned();
        }
    }
}

/// The time of a call that fetches a block.
fn call_s(row: &Row, median: f64) -> f64 {
    row.tuning.block_bytes as f64 / median
}

/// Engine, threads and least time of hot calls that copy next to nothing.
fn bare_calls(rows: &[Measured<Row>]) -> Vec<(Engine, u32, f64)> {
    let bare = rows.iter().filter(|Measured { row, .. }| {
        row.state == State::Hot && row.tuning.block_bytes <= BARE_CALL_BYTES
    });
    let mut calls: Vec<_> = bare
        .filter_map(|Measured { row, outcome, .. }| {
            Some((row.tuning.engine, row.tuning.threads, call_s(row, outcome.median?)))
        })
        .collect();
    calls.sort_by(|one, other| one.2.total_cmp(&other.2));
    calls
}

/// Threads and rate of each row of a test.
fn rates(rows: &[Measured<Row>], test: Test) -> Vec<(u32, f64)> {
    let of_test = rows.iter().filter(|measured| measured.row.test == test);
    of_test
        .filter_map(|measured| Some((measured.row.tuning.threads, measured.outcome.median?)))
        .collect()
}

/// What most likely limits the figure.
fn limiter(row: &Row, share: Option<f64>, bare_share: f64) -> &'static str {
    let block_bytes = row.tuning.block_bytes;
    let is_at_the_limit = share.is_some_and(|share| share >= AT_THE_LIMIT);
    match (row.state, row.tuning.engine) {
        (State::Hot, _) if is_at_the_limit => "memory",
        (_, _) if is_at_the_limit => "the device",
        (State::Hot, Engine::Mmap) if block_bytes < 4096 => "the loop over blocks",
        (State::Hot, Engine::Mmap) => "page faults",
        (State::Hot, _) if bare_share >= MOSTLY => "the system call, and finding the page",
        (State::Hot, _) => "copying out of the page cache",
        (_, _) if block_bytes < 4096 => "readahead and system calls",
        (_, _) => "readahead depth",
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::blank;
    use flatout_measure::{Facts, warning};

    use super::*;
    use crate::file_trial::accounting::{DISK_READ_BYTES, DISK_READ_REQUESTS};

    fn measured(test: Test, state: State, block_bytes: u64, median: f64) -> Measured<Row> {
        let row = Row::new(test, state, Engine::Sync, block_bytes, 1);
        let mut outcome = blank(&row);
        outcome.median = Some(median);
        Measured { row, outcome, facts: Facts::default(), further: Vec::new() }
    }

    #[test]
    fn a_bound_is_called_after_the_threads_that_gave_it() {
        let of = |test, threads, median| {
            let row = Row::new(test, State::Hot, Engine::Sync, 1 << 20, threads);
            let outcome = flatout_measure::record::Outcome { median: Some(median), ..blank(&row) };
            Measured { row, outcome, facts: Facts::default(), further: Vec::new() }
        };
        let mut rows = [
            of(Test::MemoryRead, 1, 20e9),
            of(Test::MemoryRead, 2, 28e9),
            of(Test::MemoryRead, 2, 30e9),
            of(Test::ThreadSweep, 2, 9e9),
            of(Test::ThreadSweep, 8, 9e9),
        ];
        apply(&mut rows, &[]);
        for row in &rows[3..] {
            let bound = row.outcome.ceiling.as_ref().unwrap();
            assert_eq!((&*bound.name, bound.value), ("bare memory read, 2 threads", Some(30e9)));
        }
    }

    #[test]
    fn a_call_is_the_limit_where_it_takes_most_of_the_time_and_copying_where_that_does() {
        // Times of a call: 300, 320 and 650 ns.
        let hot = |bytes, rate| measured(Test::BlockSweep, State::Hot, bytes, rate);
        let mut rows = [hot(1, 1e9 / 300.0), hot(256, 256e9 / 320.0), hot(4096, 4096e9 / 650.0)];
        apply(&mut rows, &[]);
        let limiters = rows.each_ref().map(|row| &*row.outcome.ceiling.as_ref().unwrap().limiter);
        let call = "the system call, and finding the page";
        assert_eq!(limiters, [call, call, "copying out of the page cache"]);
    }

    #[test]
    fn cold_rows_are_held_against_a_limit_of_the_control_group_and_hot_ones_are_not() {
        let device = "8:0".parse().unwrap();
        let limit = |read_bytes_per_s| IoLimit {
            group: "/a".to_owned(),
            device,
            read_bytes_per_s,
            write_bytes_per_s: Some(1),
            read_operations_per_s: None,
            write_operations_per_s: None,
        };
        let mut rows = [
            measured(Test::DeviceRead, State::Cold, 1 << 20, 20.1e6),
            measured(Test::BlockSweep, State::Cold, 4096, 5e6),
            measured(Test::BlockSweep, State::Hot, 1 << 20, 19e9),
        ];
        apply(&mut rows, &[limit(None), limit(Some(30_000_000)), limit(Some(20_000_000))]);
        let held = |row: &Measured<Row>| {
            let bound = row.outcome.ceiling.as_ref().unwrap();
            let is_said = warning::has(&row.outcome.warnings, warning::IO_LIMIT);
            (bound.value, bound.limiter.clone(), is_said)
        };
        let group = "the control group's limit".to_owned();
        assert_eq!(held(&rows[0]), (Some(20e6), group, true));
        assert_eq!(held(&rows[1]), (Some(20e6), "readahead depth".to_owned(), true));
        assert!(!held(&rows[2]).2);
    }

    #[test]
    fn a_limit_of_requests_bounds_cold_rows_by_how_long_their_requests_are() {
        let limit = IoLimit {
            group: "/a".to_owned(),
            device: "8:0".parse().unwrap(),
            read_bytes_per_s: Some(50_000_000),
            write_bytes_per_s: None,
            read_operations_per_s: Some(100),
            write_operations_per_s: None,
        };
        let of = |requests: u64| {
            let mut row = measured(Test::DeviceRead, State::Cold, 1 << 20, 9e6);
            row.facts.set(DISK_READ_BYTES, 1_000_000_u64);
            row.facts.set(DISK_READ_REQUESTS, requests);
            let mut rows = [row];
            apply(&mut rows, std::slice::from_ref(&limit));
            let text = rows[0].outcome.warnings[0].text.clone();
            (rows[0].outcome.ceiling.as_ref().unwrap().value, text)
        };
        let (value, text) = of(10);
        assert_eq!(value, Some(10_000_000.0));
        assert!(text.ends_with("allows 100 requests/s, here of 100000 bytes"), "{text}");
        assert_eq!(of(1).0, Some(50_000_000.0), "longer requests meet the limit of bytes first");
    }

    #[test]
    fn hot_rows_are_held_against_memory_and_cold_ones_stand_beside_the_device() {
        let mut rows = [
            measured(Test::MemoryRead, State::Apart, 1, 20e9),
            measured(Test::DeviceRead, State::Cold, 1, 2e9),
            measured(Test::BlockSweep, State::Hot, 1, 1e9),
            measured(Test::BlockSweep, State::Hot, 1 << 20, 19e9),
            measured(Test::BlockSweep, State::Cold, 1 << 20, 1e9),
            measured(Test::First, State::Cold, 1 << 20, 2.3e9),
        ];
        apply(&mut rows, &[]);
        let limits: Vec<_> = rows
            .iter()
            .map(|measured| measured.outcome.ceiling.as_ref().unwrap())
            .map(|bound| (bound.ratio, bound.limiter.as_str()))
            .collect();
        assert_eq!(limits[0], (None, "memory"));
        assert_eq!(limits[2], (Some(0.05), "the system call, and finding the page"));
        assert_eq!(limits[3], (Some(0.95), "memory"));
        assert_eq!(limits[4], (None, "readahead depth"));
        assert_eq!(limits[5], (None, "the device"), "faster than the direct row a moment before");
        assert!(rows[5].outcome.warnings.is_empty());
    }
}
