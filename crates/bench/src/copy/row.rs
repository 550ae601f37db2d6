//! The rows of the copy area: trees that are copied, and what these are held against.

use flatout_measure::{Label, Parameters, Row as Measurable, Unit};

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
    fn label(&self) -> Label {
        use Unit::{BytesPerSecond, Nanoseconds};

        let bare = |threads: u32| Parameters::default().with("threads", threads);
        let (id, unit, parameters) = match &self.work {
            Work::Tree(wanted) => {
                (wanted.experiment.id(), Nanoseconds, wanted.parameters(self.state))
            }
            Work::BareCreate { files, threads } => {
                let parameters = bare(*threads).with("until", "cache").with("files", *files);
                ("copy/bare-create", Nanoseconds, parameters)
            }
            Work::BareWrite { bytes, threads } => {
                let parameters = bare(*threads).with("until", "cache").with("bytes", *bytes);
                ("copy/bare-write", BytesPerSecond, parameters)
            }
            Work::BareRead { bytes } => {
                ("copy/bare-read", BytesPerSecond, bare(1).with("bytes", *bytes))
            }
        };
        Label::new(id, unit)
            .of(parameters)
            .with_known("phase", self.phase.filter(|_| self.is_reference()))
            .deviating_by(between_runs::COPY)
    }
}
