//! What a run tells while it works. A sink takes [`Event`]s and shows them or not; nothing is
//! printed here.

use crate::comparison::RowName;
use crate::guard::UseOfCpus;
use crate::record::Status;

/// Something that the user may want to see happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Work outside the trials moved on, for example a test file being written.
    Preparing {
        /// What is being done, for example `writing the test file`.
        what: String,
    },
    /// A trial of this row is about to run.
    Trial {
        /// Which row.
        row: RowName,
        /// Estimate of the time that the whole run has left; `None` before its first trial ended.
        left_ns: Option<u64>,
    },
    /// A trial of this row ended.
    Ended {
        /// Which row.
        row: RowName,
        /// What the row says by now.
        standing: Standing,
        /// Who had the CPUs meanwhile.
        use_of_cpus: UseOfCpus,
    },
    /// This row is complete, for better or worse.
    Closed {
        /// Which row.
        row: RowName,
        /// What the row says.
        standing: Standing,
        /// Estimate of the time that the whole run has left; `None` before its first trial ended.
        left_ns: Option<u64>,
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
