//! Several chases of one thread at once: how many lines a core waits for, and so the most that it
//! takes from memory.
//!
//! In a wholly random ring each line is one that the program asked for. In a ring that goes through
//! whole pages before it jumps, prefetchers ask as well. The best of both is the ceiling of one
//! core.

use flatout_measure::case::{Case, Plain, Sample, TrialError};
use flatout_measure::ceiling;
use flatout_measure::record::{Ceiling, Chart, Outcome, Provenance};
use flatout_measure::row::Unit;
use flatout_sys::chase::{Chase, LINE_BYTES};
use serde_json::{Map, Value, json};

use super::latency::{Chases, RUN_BYTES};
use super::ring::{self, Shape};
use crate::area::Extent;

/// Id of the rows.
pub const ID: &str = "memory/parallel-chases";

/// The most that one thread took from memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SingleCore {
    /// Lines per second times their length.
    pub bytes_per_s: f64,
    /// The same for lines in random order, without the help of prefetchers; 0 if not measured.
    pub random_bytes_per_s: f64,
}

/// The rows; none where there is not the room for a working set in memory.
pub fn cases(chases: &Chases) -> Vec<Case<'static, Plain>> {
    if chases.memory_shapes(LINE_BYTES).is_empty() {
        return Vec::new();
    }
    let (random, runs): (&[usize], &[usize]) = match chases.extent {
        Extent::Full => (&[1, 2, 4, 8, 12, 16, 24, 32], &[1, 4, 16]),
        Extent::Quick => (&[1, 8, 16, 32], &[4]),
        Extent::Few => (&[16], &[]),
    };
    let all = random.iter().map(|&count| (count, LINE_BYTES));
    let all = all.chain(runs.iter().map(|&count| (count, RUN_BYTES)));
    all.map(|(count, run_bytes)| case(chases.clone(), count, run_bytes)).collect()
}

fn case(chases: Chases, count: usize, run_bytes: u64) -> Case<'static, Plain> {
    let mut parameters = Map::new();
    parameters.insert("chases".to_owned(), count.into());
    parameters.insert("run_bytes".to_owned(), run_bytes.into());
    let shapes = chases.memory_shapes(run_bytes);
    Case {
        row: Plain { id: ID, parameters, unit: Unit::BytesPerSecond },
        trial: Box::new(move |seed| trial(&chases, &shapes, count, seed)),
    }
}

fn trial(chases: &Chases, shapes: &[Shape], count: usize, seed: u64) -> Result<Sample, TrialError> {
    let cpu = ring::chase_cpu()?;
    let (shape, chase) = chases.rings.first(shapes, cpu, seed)?;
    let walk_ns = chases.walk_ns;
    let warm_nodes = ring::warm_nodes(shape, chases.cache_bytes);
    ring::on_cpu(cpu, || {
        let index = seed as usize % chase.places();
        chase.warm(index, warm_nodes);
        let mut sample = walk(&chase, Start { index, count }, walk_ns)?;
        ring::note_cpu(&mut sample, cpu);
        ring::note_ring(&mut sample, shape, shapes[0]);
        Ok(sample)
    })
}

/// How many chases there are, and the place of the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) index: usize,
    pub(super) count: usize,
}

/// Walks all chases at once for about `walk_ns`; the amount is the bytes of the lines.
pub(super) fn walk(chase: &Chase, start: Start, walk_ns: u64) -> Result<Sample, TrialError> {
    let mut places = chase.apart(start.index, start.count);
    let (steps, elapsed_ns) = ring::time_steps(walk_ns, |steps| {
        let Some(ends) = chase.walk_together(&places, steps) else { return false };
        let is_whole = places.iter().zip(&ends).all(|(&from, &to)| chase.is_after(from, steps, to));
        places = ends;
        is_whole
    })?;
    let lines = steps * start.count as u64;
    let mut sample =
        Sample { amount: (lines * LINE_BYTES) as f64, elapsed_ns, ..Sample::default() };
    sample.audit.insert("lines".to_owned(), json!(lines));
    sample.audit.insert("clock_reads".to_owned(), json!(2));
    Ok(sample)
}

/// What several rows say together: adds `lines_in_flight` to the rows of random order (how many
/// times the rate of a single chase it is), holds each against `peak`, the modules' rate, and
/// gives the ceiling of one core; none where no row has a figure.
pub fn finish(outcomes: &mut [Outcome], peak: &Ceiling) -> Option<SingleCore> {
    let number = |outcome: &Outcome, key: &str| outcome.parameters.get(key).and_then(Value::as_u64);
    let is_random = |outcome: &Outcome| number(outcome, "run_bytes") == Some(LINE_BYTES);
    let rows: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.id == ID).collect();
    let single = rows.iter().find(|row| is_random(row) && number(row, "chases") == Some(1));
    let single = single.and_then(|row| row.median);
    let best = |rows: &mut dyn Iterator<Item = &&Outcome>| {
        rows.filter_map(|row| row.median).fold(0.0, f64::max)
    };
    let random_bytes_per_s = best(&mut rows.iter().filter(|row| is_random(row)));
    let bytes_per_s = best(&mut rows.iter());
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.id == ID) {
        let lines = outcome.median.zip(single).map(|(rate, single)| rate / single);
        if let Some(lines) = lines.filter(|_| is_random(outcome)) {
            outcome.audit.insert("lines_in_flight".to_owned(), json!(lines));
        }
        let limiter = match number(outcome, "chases") {
            Some(1) => "latency of memory",
            _ => "lines that the core waits for at once, and their latency",
        };
        ceiling::apply(outcome, Ceiling { limiter: limiter.to_owned(), ..peak.clone() });
    }
    (bytes_per_s > 0.0).then_some(SingleCore { bytes_per_s, random_bytes_per_s })
}

impl SingleCore {
    /// The ceiling of a row of one thread that goes through memory in order.
    pub fn ceiling(&self) -> Ceiling {
        Ceiling {
            name: "parallel chases, one core".to_owned(),
            value: Some(self.bytes_per_s),
            provenance: Provenance::Measured,
            limiter: "lines that a core waits for at once".to_owned(),
            ..Ceiling::default()
        }
    }
}

/// The picture of the rows.
pub fn charts() -> Vec<Chart> {
    vec![Chart {
        title: "Rate of one core by parallel chases".to_owned(),
        id: ID.to_owned(),
        x_parameter: "chases".to_owned(),
        x_log2: false,
        line_parameters: vec!["run_bytes".to_owned()],
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_sys::chase::Pages;

    fn row(chases: u64, run_bytes: u64, rate: f64) -> Outcome {
        let mut outcome = Outcome { id: ID.to_owned(), median: Some(rate), ..Outcome::default() };
        outcome.parameters.insert("chases".to_owned(), chases.into());
        outcome.parameters.insert("run_bytes".to_owned(), run_bytes.into());
        outcome
    }

    #[test]
    fn lines_in_flight_follow_from_the_single_chase() {
        let mut rows = [row(1, 64, 0.5e9), row(16, 64, 6e9), row(4, 4096, 11e9)];
        let single = finish(&mut rows, &Ceiling::default()).unwrap();
        assert_eq!((single.bytes_per_s, single.random_bytes_per_s), (11e9, 6e9));
        assert_eq!(rows[1].audit["lines_in_flight"], json!(12.0));
        assert_eq!(rows[2].audit.get("lines_in_flight"), None, "prefetched lines are not counted");
        assert_eq!(single.ceiling().value, Some(11e9));
        assert_eq!(finish(&mut [], &Ceiling::default()), None);
    }

    #[test]
    fn more_than_the_modules_give_is_refused() {
        let peak = Ceiling {
            name: "two modules".to_owned(),
            value: Some(5e9),
            provenance: Provenance::Smbios,
            ..Ceiling::default()
        };
        let mut rows = [row(1, 64, 0.5e9), row(16, 64, 6e9)];
        finish(&mut rows, &peak);
        assert_eq!((rows[0].median, rows[1].median), (Some(0.5e9), None));
    }

    #[test]
    fn a_trial_counts_the_lines_of_all_chases() {
        let chases = Chases::hasty(1 << 20);
        for (count, run_bytes) in [(1, 64), (4, 4096), (32, 64)] {
            let shape = Shape { run_bytes, ..Shape::random(1 << 20, Pages::Base) };
            let sample = trial(&chases, &[shape], count, 3).unwrap();
            assert_eq!(sample.amount % (count as f64 * 64.0), 0.0);
            assert!(sample.elapsed_ns > 0);
        }
    }

    #[test]
    fn without_room_for_memory_there_are_no_rows() {
        let chases = Chases::new(Extent::Full, 1 << 20, &[]);
        assert!(cases(&chases).is_empty());
    }
}
