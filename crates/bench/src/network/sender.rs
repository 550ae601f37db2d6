//! Which way of sending TCP is the fastest here: measured, before the rows.

use flatout_measure::case::TrialError;
use flatout_measure::statistics;

use super::Times;
use super::client::Client;
use super::row::Row;
use super::sample::{Ends, sample};
use super::spec::{Sender, Spec};
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
    /// What was measured.
    pub reason: String,
}

/// Measures all ways, in turn, if a row wants the best one.
///
/// Errors: the session is over. A way that this machine cannot go is left out.
pub fn choose(rows: &[Row], client: &mut Client, times: Times) -> Result<Best, Error> {
    let nothing = Best { sender: Sender::Write, reason: "nothing was measured".to_owned() };
    let Some(row) = rows.iter().find(|row| row.is_best_sender) else { return Ok(nothing) };
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
    let mut rates: Vec<(Sender, Vec<f64>)> =
        Sender::ALL.iter().map(|&sender| (sender, Vec::new())).collect();
    for _ in 0..ROUNDS {
        for (sender, rates) in &mut rates {
            let run = client.run(Spec { sender: *sender, ..spec });
            match run.and_then(|report| sample(&report, ends)) {
                Ok(sample) => rates.push(sample.amount * 1e9 / sample.elapsed_ns as f64),
                // The rows will say that the user wants to stop, or that the server has gone.
                Err(TrialError::Interrupted) => return Ok(nothing),
                Err(_) => {}
            }
        }
    }
    let medians: Vec<(Sender, f64)> = rates
        .iter()
        .filter_map(|(sender, rates)| Some((*sender, statistics::median(rates)?)))
        .collect();
    let best = medians.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((sender, _)) = best else { return Ok(nothing) };
    let figures: Vec<String> = medians
        .iter()
        .map(|(sender, rate)| format!("{} {:.2} GB/s", sender.name(), rate / 1e9))
        .collect();
    Ok(Best { sender, reason: format!("median of {ROUNDS} short runs: {}", figures.join(", ")) })
}
