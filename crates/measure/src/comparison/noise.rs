//! How far runs of one machine lie apart when nothing has changed: its A/A noise.
//!
//! Trials of one run share its state: where memory lies, who else is at work, how warm it is.
//! So the samples of a run say little of how far the next run will be off; only runs do. What is
//! learned is, per row, the variance of the logarithm of the run's median. Few runs know it badly,
//! so each row is helped by its kin. The file in which it is kept is the program's affair.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::judgement::usable_median;
use super::matching::{self, Group, whole_key};
use super::{load, plan, surroundings};
use crate::record::Record;
use crate::statistics::interval::BetweenRuns;
use crate::statistics::pool::{KIN_FREEDOM, LEAST_KIN, Pool, Prior};
use crate::statistics::student::student_quantile;

/// The name of this schema version.
pub const SCHEMA: &str = "flatout-noise/1";

/// Share of pairs of equal runs that do not differ by more than is shown.
const HELD: f64 = 0.95;

/// Variance of the logarithm of a figure between runs where nothing is known of it. Of the pairs of
/// runs in docs/compare.md 46, 67 and 92 % of the rows were within 5, 10 and 20 %; Student's t with
/// four degrees of freedom and twice this variance has 40, 68 and 90 % there.
pub(super) const ASSUMED_VARIANCE: f64 = 0.06 * 0.06;

/// Degrees of freedom from which on a row without kin is known by its own runs alone.
const LEAST_OWN_FREEDOM: f64 = 4.0;

/// What runs of one machine say of its noise, as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// The largest share of the machine's CPUs that others had beside a run.
    #[serde(default)]
    pub load_share: Option<f64>,
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

#[cfg(test)]
impl RowNoise {
    /// A row without parameters.
    pub(crate) fn of_runs(id: &str, runs: u64, log_variance: f64) -> Self {
        Self { id: id.to_owned(), parameters: Map::new(), runs, log_variance }
    }
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
    /// No row has samples in two runs.
    #[error("no row has a figure with samples in two of the runs")]
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
        load_share: records.iter().filter_map(load::share).reduce(f64::max),
        rows,
    })
}

fn row_noise(group: &Group<'_>) -> Option<RowNoise> {
    let medians = group.outcomes.iter().filter_map(|(_, row)| usable_median(row));
    let pool = Pool::of(medians.map(f64::ln));
    let name = group.name();
    (pool.freedom > 0.0).then(|| RowNoise {
        id: name.id,
        parameters: name.parameters,
        runs: pool.freedom as u64 + 1,
        log_variance: pool.variance(),
    })
}

/// Noise that can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    runs: u64,
    rows: HashMap<String, Pool>,
    /// The rows of a test, or of an area, by its name.
    kin: HashMap<String, Kin>,
}

/// What rows say that are kin.
#[derive(Debug, Clone, PartialEq)]
struct Kin {
    /// All together.
    pool: Pool,
    /// Of one of them.
    prior: Option<Prior>,
}

/// The variance of a row and with how many degrees of freedom it is known: its own, weighed with
/// that of its kin; without kin with what is assumed, if it has few runs of its own. `None` if
/// nothing is known of either.
pub(super) fn moderated(own: Pool, kin: Option<Pool>) -> Option<(f64, f64)> {
    let kin = kin.filter(|kin| kin.freedom > 0.0).map(|kin| kin.variance());
    if kin.is_none() && own.freedom == 0.0 {
        return None;
    }
    if kin.is_none() && own.freedom >= LEAST_OWN_FREEDOM {
        return Some((own.variance(), own.freedom));
    }
    Some((own.weighed(kin.unwrap_or(ASSUMED_VARIANCE)), own.freedom + KIN_FREEDOM))
}

impl Noise {
    /// Makes what was kept askable. Rows with numbers that cannot be are passed over.
    pub fn of(learned: &Learned) -> Self {
        let mut rows: HashMap<String, Pool> = HashMap::new();
        let mut kin: HashMap<String, Vec<Pool>> = HashMap::new();
        let can_be = |row: &&RowNoise| {
            row.log_variance.is_finite() && row.log_variance >= 0.0 && row.runs >= 2
        };
        for row in learned.rows.iter().filter(can_be) {
            let freedom = (row.runs - 1) as f64;
            let own = Pool { squares: row.log_variance * freedom, freedom, rows: 1 };
            let known = rows.entry(whole_key(&row.id, &row.parameters)).or_default();
            *known = known.with(own);
            for name in [&*row.id, area(&row.id)] {
                kin.entry(name.to_owned()).or_default().push(own);
            }
        }
        let together = |(name, rows): (String, Vec<Pool>)| {
            let pool = rows.iter().copied().fold(Pool::default(), Pool::with);
            (name, Kin { pool, prior: Prior::of(&rows) })
        };
        Self { runs: learned.runs, rows, kin: kin.into_iter().map(together).collect() }
    }

    /// Runs that it was learned from.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    pub(super) fn row(&self, id: &str, parameters: &Map<String, Value>) -> Pool {
        self.rows.get(&whole_key(id, parameters)).copied().unwrap_or_default()
    }

    /// What the rows of a test, or of an area, have together.
    pub(super) fn kin(&self, name: &str) -> Pool {
        self.kin.get(name).map(|kin| kin.pool).unwrap_or_default()
    }

    /// Variance of the logarithm of a row's figure, and its degrees of freedom.
    fn spread(&self, id: &str, parameters: &Map<String, Value>) -> Option<(f64, f64)> {
        let kin = [id, area(id)].map(|name| self.kin(name));
        let kin = kin.into_iter().find(|pool| pool.rows >= LEAST_KIN);
        moderated(self.row(id, parameters), kin)
    }

    /// What runs of a row differ by, if it is one of those that were learned from.
    pub fn between_runs(&self, id: &str, parameters: &Map<String, Value>) -> Option<BetweenRuns> {
        let own = Some(self.row(id, parameters)).filter(|own| own.freedom > 0.0)?;
        let prior = [id, area(id)].into_iter().find_map(|name| self.kin.get(name)?.prior);
        let (variance, freedom) = match prior {
            Some(prior) => prior.with(own),
            None => moderated(own, None)?,
        };
        Some(BetweenRuns { variance, freedom, runs: own.freedom as u64 + 1 })
    }

    /// By how much two runs with nothing changed differ at most in 95 % of cases, as a share.
    pub fn difference_ratio(&self, row: &RowNoise) -> Option<f64> {
        let (variance, freedom) = self.spread(&row.id, &row.parameters)?;
        let quantile = student_quantile(0.5 + HELD / 2.0, freedom);
        let ratio = (quantile * (2.0 * variance).sqrt()).exp_m1();
        ratio.is_finite().then_some(ratio)
    }

    /// Runs a side with which a comparison of these rows finds a change of this share in four of
    /// five of them; `None` where that many are no advice.
    pub fn runs_recommended(&self, learned: &Learned, change_ratio: f64) -> Option<u64> {
        let spreads = learned.rows.iter().filter_map(|row| self.spread(&row.id, &row.parameters));
        let deviations: Vec<f64> = spreads.map(|(variance, _)| variance.sqrt()).collect();
        plan::Plan::new(deviations.len(), change_ratio).runs_for_most(&deviations)
    }
}

impl Learned {
    /// Whether these runs are of the machine on which the noise was learned.
    pub fn is_of(&self, environment: &Value) -> bool {
        let own = Value::Object(self.machine.clone());
        surroundings::are_one_machine(&own, environment) == Some(true)
    }
}

/// The first part of an id.
pub fn area(id: &str) -> &str {
    id.split_once('/').map_or(id, |(area, _)| area)
}
