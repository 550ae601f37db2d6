//! What every area of `flatout bench` is: a plan that is announced, then rows that are measured.
//!
//! A new area is a type for its rows, a trial, a bound for each row, and an [`Area`]; the program
//! knows areas by this trait alone.

use std::path::PathBuf;

use flatout_measure::{Chart, Outcome, Sampler, TrialError, warning};
use flatout_sys::CancelToken;
use serde_json::Value;

use crate::Error;
use crate::roofline::Part;
use crate::workers;

/// One limit of the machine, with all that can be measured of it.
pub trait Area {
    /// Looks at the place and at what was asked for, and takes over what it needs of the run.
    /// Nothing is written.
    ///
    /// # Errors
    /// What was asked for cannot be done.
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error>;

    /// Measures what was planned, in the time that the plan of the sampler allows.
    ///
    /// # Errors
    /// Nothing can be measured; what goes wrong with a row is the row's.
    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error>;
}

/// What all areas of a run have in common.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Which rows.
    pub extent: Extent,
    /// Whether they get enough time for a look alone.
    pub is_quick: bool,
    /// Trials that every row gets at least.
    pub least_trials: u32,
    /// What the disk area measures, and where the copy area works.
    pub place: PathBuf,
    /// The program of flatout.
    pub flatout: PathBuf,
    /// Never write more than this, for an area that has the choice.
    pub max_write_bytes: Option<u64>,
    /// The area's part of the time, where one was asked for; the area makes do with it.
    pub time_ns: Option<u64>,
    /// Trials of each row, where a number was asked for.
    pub rounds: Option<u32>,
    /// Seed of orders and data.
    pub seed: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
    /// Hears what the user should know at once.
    pub notice: Option<fn(&str)>,
}

/// What measuring an area takes, said before anything is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Where files are made or read; none where none are.
    pub place: Option<PathBuf>,
    /// Bytes that are written, as far as can be said beforehand.
    pub write_bytes: u64,
    /// Bytes that are written at most.
    pub most_write_bytes: u64,
    /// Whether they are written over a file of the user's.
    pub writes_over: bool,
    /// Time that it takes from making the first file to removing the last, as far as can be said
    /// beforehand. It gets no more, unless a number of trials was asked for.
    pub usual_ns: u64,
    /// Whether that is not known, because it follows from a number of trials that was asked for.
    pub is_time_open: bool,
    /// What is left out, and why; a line each.
    pub notices: Vec<String>,
}

/// How much of an area is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extent {
    /// A few rows, as part of bare `flatout bench`.
    #[default]
    Few,
    /// A coarse grid.
    Quick,
    /// All of them.
    Full,
}

/// The usual time of an area in seconds, by what is measured.
#[derive(Debug, Clone, Copy)]
pub struct Seconds {
    /// A few rows, for a look.
    pub few_quick: u64,
    /// A few rows.
    pub few: u64,
    /// A coarse grid.
    pub quick: u64,
    /// All rows.
    pub full: u64,
}

impl Seconds {
    /// What the area takes that writes nothing.
    pub fn estimate(&self, run: &Run) -> Estimate {
        let seconds = match (run.extent, run.is_quick) {
            (Extent::Few, true) => self.few_quick,
            (Extent::Few, false) => self.few,
            (Extent::Quick, _) => self.quick,
            (Extent::Full, _) => self.full,
        };
        let usual_ns = run.time_ns.unwrap_or(seconds * 1_000_000_000);
        let is_time_open = run.time_ns.is_none() && run.rounds.is_some();
        Estimate { usual_ns, is_time_open, ..Estimate::default() }
    }
}

/// What an area found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Its rows.
    pub outcomes: Vec<Outcome>,
    /// Which of them make a picture.
    pub charts: Vec<Chart>,
    /// What a roofline can be made of.
    pub roofline: Vec<Part>,
    /// What lies between the place and its disks: an entry of `start.environment.storage`.
    pub storage: Option<Value>,
}

impl Found {
    /// Says of each row whose threads have their place where they could not be tied to it.
    pub fn check_places(&mut self) {
        let Some(why) = workers::untied() else { return };
        for outcome in self.outcomes.iter_mut().filter(|outcome| outcome.median.is_some()) {
            // A place that was chosen stands among the facts.
            let placement = outcome.fact_text("placement").or(outcome.parameter_text("placement"));
            let is_placed = placement.is_some_and(|place| place != "free");
            let is_pinned = outcome.parameters.get("pinned").is_some_and(|pinned| pinned == true);
            if is_placed || is_pinned || outcome.id.starts_with("memory/") {
                outcome.warn(warning::CPUS_CHANGED, why.clone());
            }
        }
    }
}

/// Errors: [`TrialError::Interrupted`] where somebody asked to stop.
pub(crate) fn go_on(cancel: CancelToken) -> Result<(), TrialError> {
    if cancel.is_cancelled() { Err(TrialError::Interrupted) } else { Ok(()) }
}
