//! What a run tells while it works. A sink takes [`Event`]s and shows them or not; nothing is
//! printed here.

use serde_json::{Map, Value};

use crate::guard::UseOfCpus;
use crate::record::Status;

/// Something that the user may want to see happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Work outside the trials moved on, for example a test file being written.
    Preparing {
        /// What is being done, for example `writing the test file`.
        what: String,
        /// How much is done, in the unit of `total`.
        done: u64,
        /// How much there is; 0 when nobody knows.
        total: u64,
    },
    /// A trial of this row is about to run.
    Trial {
        /// `area/test`.
        id: String,
        /// What tells the row from others with the same id.
        parameters: Map<String, Value>,
        /// How far the whole run is.
        progress: Progress,
    },
    /// A trial of this row ended.
    Ended {
        /// `area/test`.
        id: String,
        /// What tells the row from others with the same id.
        parameters: Map<String, Value>,
        /// What the row says by now.
        standing: Standing,
        /// Who had the CPUs meanwhile.
        use_of_cpus: UseOfCpus,
    },
    /// This row is complete, for better or worse.
    Closed {
        /// `area/test`.
        id: String,
        /// What tells the row from others with the same id.
        parameters: Map<String, Value>,
        /// What the row says.
        standing: Standing,
        /// How far the whole run is.
        progress: Progress,
    },
}

/// What a row says while it is measured. In the end its interval may be wider: rows of the same
/// test then say how far trials lie apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The unit of its figure.
    pub unit: &'static str,
    /// Trials that count.
    pub trials: u64,
    /// Trials that were thrown away because others disturbed them.
    pub discarded: u64,
    /// The median of those that count.
    pub median: Option<f64>,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// Why the row has no figure, in the end.
    pub refused: Option<(Status, String)>,
}

/// How far a run of the sampler is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows that need no more trials.
    pub cases_done: u64,
    /// Rows in this run.
    pub cases_total: u64,
    /// Trials that ran, also those that do not count.
    pub trials_done: u64,
    /// Trials that will have run at the end, as far as can be seen now.
    pub trials_expected: u64,
    /// Time since the first trial began.
    pub elapsed_ns: u64,
    /// Time that the plan allows.
    pub budget_ns: u64,
    /// Estimate of the time left; `None` before the first trial ended.
    pub left_ns: Option<u64>,
}

impl Progress {
    /// Share of the expected time that has passed, 0 to 1.
    pub fn share(&self) -> f64 {
        match self.left_ns {
            Some(left) if self.elapsed_ns > 0 => {
                self.elapsed_ns as f64 / (self.elapsed_ns as f64 + left as f64)
            }
            Some(_) => 1.0,
            None => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_time_passed_over_time_expected() {
        let progress = |elapsed_ns, left_ns| Progress { elapsed_ns, left_ns, ..Default::default() };
        assert_eq!(progress(0, None).share(), 0.0);
        assert_eq!(progress(30, Some(90)).share(), 0.25);
        assert_eq!(progress(30, Some(0)).share(), 1.0);
    }
}
