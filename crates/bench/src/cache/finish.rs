//! What the rows of the page cache area are held against, and what limits them.

use flatout_io::Engine;
use flatout_measure::ceiling;
use flatout_measure::record::{Ceiling, Outcome, Provenance};

use super::row::{State, Test};
use super::{number, text};

/// Blocks below this are bound by the call that fetches them.
const CALL_BOUND_BYTES: u64 = 16 << 10;
/// Share of the ceiling from which on the ceiling itself is the limit.
const AT_THE_LIMIT: f64 = 0.9;

/// Gives each row its ceiling: memory for hot rows, the device for cold ones.
pub(super) fn finish(outcomes: &mut [Outcome]) {
    let memory: Vec<(u64, f64)> = rates(outcomes, Test::MemoryRead);
    let device = rates(outcomes, Test::DeviceRead).into_iter().map(|row| row.1).reduce(f64::max);
    for outcome in outcomes {
        let threads = number(outcome, "threads").unwrap_or(1);
        let hot = text(outcome, "cache_state") == Some(State::Hot.word());
        let limit = if outcome.id == Test::MemoryRead.id() {
            unknown("memory bandwidth", "memory")
        } else if outcome.id == Test::DeviceRead.id() {
            unknown("the device", "the device, or what lies before it")
        } else if hot {
            // More threads than were tried on memory cannot bring more than those did.
            let at = memory.iter().find(|row| row.0 == threads);
            let best = memory.iter().map(|row| row.1).reduce(f64::max);
            let value = at.map(|row| row.1).or(best);
            let noun = if threads == 1 { "thread" } else { "threads" };
            measured(format!("bare memory read, {threads} {noun}"), value)
        } else {
            measured("direct device read, depth 16".to_owned(), device)
        };
        ceiling::apply(outcome, limit);
        name_limiter(outcome, hot);
    }
}

fn rates(outcomes: &[Outcome], test: Test) -> Vec<(u64, f64)> {
    outcomes
        .iter()
        .filter(|outcome| outcome.id == test.id())
        .filter_map(|outcome| Some((number(outcome, "threads")?, outcome.median?)))
        .collect()
}

fn unknown(name: &str, limiter: &str) -> Ceiling {
    let (name, limiter) = (name.to_owned(), limiter.to_owned());
    Ceiling { name, limiter, ..Ceiling::default() }
}

fn measured(name: String, value: Option<f64>) -> Ceiling {
    let provenance = value.map_or(Provenance::Unknown, |_| Provenance::Measured);
    Ceiling { name, value, provenance, ..Ceiling::default() }
}

/// Says what most likely limits the figure.
fn name_limiter(outcome: &mut Outcome, hot: bool) {
    let block_bytes = number(outcome, "block_bytes").unwrap_or(0);
    let engine = text(outcome, "engine").and_then(|word| word.parse::<Engine>().ok());
    let Some(ceiling) = outcome.ceiling.as_mut().filter(|ceiling| ceiling.limiter.is_empty())
    else {
        return;
    };
    let at_the_limit = ceiling.ratio.is_some_and(|ratio| ratio >= AT_THE_LIMIT);
    let limiter = match (hot, engine) {
        (true, _) if at_the_limit => "memory",
        (false, _) if at_the_limit => "the device",
        (true, Some(Engine::Mmap)) if block_bytes < 4096 => "the loop over blocks",
        (true, Some(Engine::Mmap)) => "page faults",
        (true, _) if block_bytes < CALL_BOUND_BYTES => "system call entry",
        (true, _) => "copying out of the page cache",
        (false, _) if block_bytes < 4096 => "readahead and system calls",
        (false, _) => "readahead depth",
    };
    limiter.clone_into(&mut ceiling.limiter);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(test: Test, state: &str, block_bytes: u64, median: f64) -> Outcome {
        let mut outcome = Outcome {
            id: test.id().to_owned(),
            unit: "bytes/s".to_owned(),
            median: Some(median),
            ..Outcome::default()
        };
        for (key, value) in [
            ("engine", json!("sync")),
            ("cache_state", json!(state)),
            ("block_bytes", json!(block_bytes)),
            ("threads", json!(1)),
        ] {
            outcome.parameters.insert(key.to_owned(), value);
        }
        outcome
    }

    #[test]
    fn hot_rows_are_held_against_memory_and_cold_ones_against_the_device() {
        let mut rows = [
            row(Test::MemoryRead, "none", 1, 20e9),
            row(Test::DeviceRead, "cold", 1, 2e9),
            row(Test::BlockSweep, "hot", 1, 1e9),
            row(Test::BlockSweep, "hot", 1 << 20, 19e9),
            row(Test::BlockSweep, "cold", 1 << 20, 1e9),
        ];
        finish(&mut rows);
        let limits: Vec<_> = rows
            .iter()
            .map(|row| row.ceiling.as_ref().unwrap())
            .map(|ceiling| (ceiling.ratio, ceiling.limiter.as_str()))
            .collect();
        assert_eq!(limits[0], (None, "memory"));
        assert_eq!(limits[2], (Some(0.05), "system call entry"));
        assert_eq!(limits[3], (Some(0.95), "memory"));
        assert_eq!(limits[4], (Some(0.5), "readahead depth"));
    }
}
