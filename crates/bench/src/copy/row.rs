//! The rows of the copy area: trees that are copied, and what these are held against.

use std::borrow::Cow;

use flatout_measure::row::{Parameters, Row as Measurable, Unit};

use super::State;
use super::choose::Wanted;
use super::experiment::Experiment;
use crate::between_runs;

/// A row before and after it is measured.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) work: Work,
    /// What the page cache holds of the source.
    pub(super) state: State,
    /// The phase, where references of several phases have to be told apart.
    pub(super) phase: Option<usize>,
}

/// What is timed.
#[derive(Debug, Clone)]
pub(super) enum Work {
    /// The copy of a tree.
    Tree(Wanted),
    /// So many empty files are made by so many threads.
    BareCreate { files: u64, threads: u32 },
    /// So many bytes are written by so many threads.
    BareWrite { bytes: u64, threads: u32 },
    /// A file is read around the cache.
    BareRead { bytes: u64 },
}

impl Row {
    /// The tree, where one is copied.
    pub(super) fn tree(&self) -> Option<&Wanted> {
        if let Work::Tree(wanted) = &self.work { Some(wanted) } else { None }
    }

    /// Whether others are held against it; nobody asked for it.
    pub(super) fn is_reference(&self) -> bool {
        self.tree().is_none_or(|wanted| wanted.experiment == Experiment::Empty)
    }
}

impl Measurable for Row {
    fn id(&self) -> Cow<'static, str> {
        match &self.work {
            Work::Tree(wanted) => wanted.experiment.id(),
            Work::BareCreate { .. } => "copy/bare-create",
            Work::BareWrite { .. } => "copy/bare-write",
            Work::BareRead { .. } => "copy/bare-read",
        }
        .into()
    }

    fn parameters(&self) -> Parameters {
        let bare = |threads: u32| Parameters::default().with("threads", threads);
        let mut parameters = match &self.work {
            Work::Tree(wanted) => wanted.parameters(self.state),
            Work::BareCreate { files, threads } => {
                bare(*threads).with("until", "cache").with("files", *files)
            }
            Work::BareWrite { bytes, threads } => {
                bare(*threads).with("until", "cache").with("bytes", *bytes)
            }
            Work::BareRead { bytes } => bare(1).with("bytes", *bytes),
        };
        parameters.set_known("phase", self.phase.filter(|_| self.is_reference()));
        parameters
    }

    fn unit(&self) -> Unit {
        match self.work {
            Work::Tree(_) | Work::BareCreate { .. } => Unit::Nanoseconds,
            Work::BareWrite { .. } | Work::BareRead { .. } => Unit::BytesPerSecond,
        }
    }

    fn deviation_between_runs(&self) -> f64 {
        between_runs::COPY
    }
}
