//! Which way of sending TCP is the fastest here, and where its threads run: measured, before the rows.

use flatout_measure::case::TrialError;
use flatout_measure::statistics;

use super::Times;
use super::client::Client;
use super::row::Row;
use super::sample::{Ends, sample};
use super::spec::{Placement, Sender, Spec};
use crate::error::Error;

/// Rounds in which each way runs once.
const ROUNDS: usize = 3;
/// Length of a run before and within its window. Short: the rows themselves say it more exactly.
const WARM_NS: u64 = 8_000_000;
const WINDOW_NS: u64 = 20_000_000;

/// The choice.
#[derive(Debug, Clone)]
pub struct Best {
    /// The fastest.
    pub sender: Sender,
    /// Where the threads of a stream ran then.
    pub placement: Placement,
    /// What was measured.
    pub reason: String,
}

/// Measures all ways, in turn, if a row wants the best one.
///
/// Errors: the session is over. A way that this machine cannot go is left out.
pub fn choose(rows: &[Row], client: &mut Client, times: Times) -> Result<Best, Error> {
    let Some(row) = rows.iter().find(|row| row.is_best_sender) else {
        return Ok(Best::unmeasured(Placement::Apart));
    };
    let nothing = Best::unmeasured(row.spec.placement);
    let long = times.of(row.spec);
    let spec = Spec {
        streams: 1,
        bytes: 0,
        rate_per_s: 0,
        warm_ns: WARM_NS.max(long.warm_ns / 2),
        window_ns: WINDOW_NS.max(long.window_ns / 3).min(long.window_ns),
        tail_ns: long.tail_ns,
        ..row.spec
    };
    let ends = Ends { is_one_machine: true, near_cpus: u32::MAX };
    let placements = match (row.is_best_placement, client.shares_machine) {
        (true, true) => &[Placement::Apart, Placement::Together][..],
        _ => &[row.spec.placement],
    };
    let ways =
        placements.iter().flat_map(|&place| Sender::ALL.iter().map(move |&way| (way, place)));
    let mut rates: Vec<((Sender, Placement), Vec<f64>)> =
        ways.map(|way| (way, Vec::new())).collect();
    for _ in 0..ROUNDS {
        for (way, rates) in &mut rates {
            let run = client.run(Spec { sender: way.0, placement: way.1, ..spec });
            match run.and_then(|report| sample(&report, ends)) {
                Ok(sample) => rates.push(sample.amount * 1e9 / sample.elapsed_ns as f64),
                // The rows will say that the user wants to stop, or that the server has gone.
                Err(TrialError::Interrupted) => return Ok(nothing),
                Err(_) => {}
            }
        }
    }
    let medians: Vec<((Sender, Placement), f64)> =
        rates.iter().filter_map(|(way, rates)| Some((*way, statistics::median(rates)?))).collect();
    let best = medians.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some(((sender, placement), _)) = best else { return Ok(nothing) };
    let figures: Vec<String> = medians
        .iter()
        .map(|((way, place), rate)| {
            format!("{} {} {:.2} GB/s", way.name(), place.name(), rate / 1e9)
        })
        .collect();
    let reason = format!("median of {ROUNDS} short runs: {}", figures.join(", "));
    Ok(Best { sender, placement, reason })
}

impl Best {
    /// What is taken where nothing could be measured.
    fn unmeasured(placement: Placement) -> Self {
        let reason = "nothing was measured".to_owned();
        Self { sender: Sender::Write, placement, reason }
    }
}
