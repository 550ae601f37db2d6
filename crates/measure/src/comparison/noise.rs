//! How far runs of one machine lie apart when nothing has changed: its A/A noise.
//!
//! Trials of one run share its state: where memory lies, who the neighbours are, how warm it is.
//! So the samples of a run say little of how far the next run will be off; only runs do. What is
//! learned is, per row, the variance of the logarithm of the run's median. Few runs know it badly,
//! so each row is helped by its kin. The file in which it is kept is the program's affair.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::judgement::usable_median;
use super::matching::{self, Group};
use super::surroundings;
use super::{ThresholdSource, matching::whole_key};
use crate::record::{Outcome, Record};
use crate::statistics::compare::LEAST_SAMPLES;
use crate::statistics::student::{student_quantile, student_two_sided};

/// The name of this schema version.
pub const SCHEMA: &str = "flatout-noise/1";

/// Share of pairs of equal runs that a threshold holds. Learned from two bare runs of
/// `flatout bench`, held against two others of the same day with nothing changed, 95 % left 39 % of
/// the rows unclear, and 99 % left 17 % (2 vCPUs of Sapphire Rapids with busy neighbours, 2026-11-22).
const BAND: f64 = 0.99;

/// Runs' worth of weight that the kin of a row have: degrees of freedom of the prior.
const KIN_FREEDOM: f64 = 4.0;

/// Rows of one test from which on they are kin enough; below, the area is asked.
const LEAST_KIN: usize = 3;

/// No threshold is below this: rows are measured to a half-width of 2 %, no finer.
const LEAST_THRESHOLD_RATIO: f64 = 0.02;

/// Largest logarithm of a threshold, so that it stays a number.
const MOST_LOG: f64 = 20.0;

/// What runs of one machine say of its noise, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// Members of the environment that tell the machine from others.
    pub machine: Map<String, Value>,
    /// Program and version of the runs.
    pub tool: String,
    /// Start of the last run.
    pub time: String,
    /// Number of runs.
    pub runs: u64,
    /// Rows that at least two runs have.
    pub rows: Vec<RowNoise>,
}

/// The noise of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowNoise {
    /// `area/test`.
    pub id: String,
    /// What makes it differ from others of the same id.
    pub parameters: Map<String, Value>,
    /// Runs that have it.
    pub runs: u64,
    /// Variance of the natural logarithm of a run's median, with runs − 1 below the line.
    pub log_variance: f64,
}

/// Why noise cannot be learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unlearned {
    /// One run, or none.
    #[error("noise is learned from at least two runs, better from three or more")]
    FewRuns,
    /// The environments differ.
    #[error("the runs are not of one machine")]
    Machines,
    /// The environments do not say.
    #[error("the runs do not say of which machine they are")]
    Nameless,
    /// No row has six samples in two runs.
    #[error("no row has a figure of six samples or more in two of the runs")]
    NoRows,
}

/// Learns from runs of one machine in which nothing was changed.
///
/// # Errors
///
/// See [`Unlearned`].
pub fn learn(records: &[Record]) -> Result<Learned, Unlearned> {
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Err(Unlearned::FewRuns);
    };
    if records.len() < 2 {
        return Err(Unlearned::FewRuns);
    }
    let environment = &first.start.environment;
    let is_other = |record: &Record| {
        surroundings::are_one_machine(environment, &record.start.environment) == Some(false)
    };
    if records.iter().any(is_other) {
        return Err(Unlearned::Machines);
    }
    if surroundings::are_one_machine(environment, environment).is_none() {
        return Err(Unlearned::Nameless);
    }
    let rows: Vec<RowNoise> = matching::gather(records).iter().filter_map(row_noise).collect();
    if rows.is_empty() {
        return Err(Unlearned::NoRows);
    }
    Ok(Learned {
        machine: surroundings::machine(environment),
        tool: first.start.tool.clone(),
        time: last.start.time.clone(),
        runs: records.len() as u64,
        rows,
    })
}

fn row_noise(group: &Group<'_>) -> Option<RowNoise> {
    let enough = |row: &&&Outcome| row.samples.len() >= LEAST_SAMPLES;
    let medians = group.outcomes.iter().filter(enough).filter_map(|row| usable_median(row));
    let logs: Vec<f64> = medians.map(f64::ln).collect();
    if logs.len() < 2 {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let name = group.name();
    Some(RowNoise {
        id: name.id,
        parameters: name.parameters,
        runs: logs.len() as u64,
        log_variance: squares / (logs.len() - 1) as f64,
    })
}

/// Noise that can be asked.
#[derive(Debug, Clone)]
pub struct Noise {
    runs: u64,
    rows: HashMap<String, Pool>,
    tests: HashMap<String, Pool>,
    areas: HashMap<String, Pool>,
}

/// Sum of squares and degrees of freedom of some rows.
#[derive(Debug, Clone, Copy, Default)]
struct Pool {
    squares: f64,
    freedom: f64,
    rows: usize,
}

impl Pool {
    fn add(&mut self, row: &RowNoise) {
        let freedom = row.runs.saturating_sub(1) as f64;
        self.squares += row.log_variance * freedom;
        self.freedom += freedom;
        self.rows += 1;
    }

    fn variance(&self) -> f64 {
        self.squares / self.freedom
    }
}

/// What is known of the variance of a row between runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Of the logarithm of a run's median.
    pub log_variance: f64,
    /// Degrees of freedom with which it is known.
    pub freedom: f64,
    /// Whose it is.
    pub source: ThresholdSource,
}

impl Noise {
    /// Makes what was kept askable. Rows with numbers that cannot be are passed over.
    pub fn of(learned: &Learned) -> Self {
        let mut noise = Self {
            runs: learned.runs,
            rows: HashMap::new(),
            tests: HashMap::new(),
            areas: HashMap::new(),
        };
        let can_be = |row: &&RowNoise| {
            row.log_variance.is_finite() && row.log_variance >= 0.0 && row.runs >= 2
        };
        for row in learned.rows.iter().filter(can_be) {
            let keys = [
                (&mut noise.rows, whole_key(&row.id, &row.parameters)),
                (&mut noise.tests, row.id.clone()),
                (&mut noise.areas, area(&row.id).to_owned()),
            ];
            for (pools, key) in keys {
                pools.entry(key).or_default().add(row);
            }
        }
        noise
    }

    /// Runs that it was learned from.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// What is known of a row: its own variance, weighed with that of the rows of the same test,
    /// or of the same area where these are few. `None` if nothing of the area is known.
    ///
    /// Source: the moderated variance of Smyth, "Linear models and empirical Bayes methods", 2004,
    /// with a fixed weight of the prior.
    pub fn spread(&self, id: &str, parameters: &Map<String, Value>) -> Option<Spread> {
        let test = self.tests.get(id).filter(|pool| pool.rows >= LEAST_KIN);
        let (kin, source) = match test {
            Some(pool) => (pool, ThresholdSource::NoiseOfTest),
            None => (self.areas.get(area(id))?, ThresholdSource::NoiseOfArea),
        };
        let Some(own) = self.rows.get(&whole_key(id, parameters)) else {
            return Some(Spread { log_variance: kin.variance(), freedom: KIN_FREEDOM, source });
        };
        let freedom = own.freedom + KIN_FREEDOM;
        Some(Spread {
            log_variance: (own.squares + KIN_FREEDOM * kin.variance()) / freedom,
            freedom,
            source: ThresholdSource::NoiseOfRow,
        })
    }
}

impl Spread {
    /// Standard deviation of the logarithm of a ratio of so many runs to so many.
    fn log_deviation(&self, runs: [u64; 2]) -> f64 {
        let shares: f64 = runs.iter().map(|runs| 1.0 / (*runs).max(1) as f64).sum();
        (self.log_variance * shares).sqrt()
    }

    /// The difference, as a share, that 99 % of pairs with nothing changed do not exceed.
    pub fn threshold_ratio(&self, runs: [u64; 2]) -> f64 {
        let quantile = student_quantile(0.5 + BAND / 2.0, self.freedom);
        let log = (quantile * self.log_deviation(runs)).min(MOST_LOG);
        log.exp_m1().max(LEAST_THRESHOLD_RATIO)
    }

    /// Two-sided probability that runs with nothing changed have a ratio so far from 1.
    pub fn p(&self, ratio: f64, runs: [u64; 2]) -> f64 {
        let deviation = self.log_deviation(runs);
        if deviation == 0.0 {
            return if ratio == 1.0 { 1.0 } else { 0.0 };
        }
        student_two_sided(ratio.ln() / deviation, self.freedom)
    }
}

impl Learned {
    /// Whether these runs are of the machine on which the noise was learned.
    pub fn is_of(&self, environment: &Value) -> bool {
        let own = Value::Object(self.machine.clone());
        surroundings::are_one_machine(&own, environment) == Some(true)
    }
}

fn area(id: &str) -> &str {
    id.split_once('/').map_or(id, |(area, _)| area)
}
