//! A heat: one work in one state of the cache, and those that take part.

use std::ffi::OsString;
use std::path::PathBuf;

use flatout_measure::fact::Facts;
use flatout_measure::record::Warning;
use flatout_measure::row::{Parameters, Unit};

use crate::error::Error;

/// One who takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contestant {
    /// `flatout`, or the name of a rival.
    pub name: String,
    /// Its version, as its program says it; empty where it says none.
    pub version: String,
}

impl Contestant {
    /// Ourselves.
    pub fn flatout() -> Self {
        let version = concat!("flatout ", env!("CARGO_PKG_VERSION")).to_owned();
        Self { name: "flatout".to_owned(), version }
    }
}

/// How a program is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Program and arguments. A pipeline is `sh -c TEXT`.
    pub argv: Vec<OsString>,
    /// Where it runs; `None`: where flatout runs.
    pub directory: Option<PathBuf>,
}

/// One run of one contestant.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Who runs.
    pub contestant: &'a Contestant,
    /// Its place in [`Heat::contestants`].
    pub index: usize,
    /// The round, from 0 on.
    pub round: u32,
    /// A number that no other run of this heat has, for fresh names.
    pub number: u64,
}

/// What a process left behind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finished {
    /// What it wrote to standard output, up to a limit.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, up to a limit.
    pub stderr: Vec<u8>,
    /// Exit code; 128 + number for a signal.
    pub exit_code: i32,
}

/// What came of checking a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// The figure that the program printed, in the unit of the heat, where that is what counts
    /// instead of the time.
    pub figure: Option<f64>,
    /// Doubts about the run, for example what a copy lacks.
    pub warnings: Vec<Warning>,
    /// What else is known of it.
    pub facts: Facts,
}

/// What is raced. Everything but the process and [`Course::complete`] lies outside of the clock.
pub trait Course {
    /// Brings the cache into the state of the heat and proves it; what is returned belongs to the
    /// facts of the row.
    ///
    /// Errors: the state cannot be had, which ends the heat.
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error>;

    /// How the contestant is called for this run.
    fn invocation(&mut self, run: &Run<'_>) -> Result<Invocation, Error>;

    /// What belongs to the work though the program does not do it, such as making a copy durable.
    /// Timed.
    fn complete(&mut self, _run: &Run<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Looks whether the run did its work.
    ///
    /// Errors: what it left is wrong, which fails the contestant's row; the text says what.
    fn check(&mut self, run: &Run<'_>, finished: &Finished) -> Result<Checked, Error>;

    /// Removes all that the runs of the heat left. Called once, whatever happened.
    fn clean(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// What the figure of a heat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The time of a run, in nanoseconds.
    Time,
    /// What the program prints ([`Checked::figure`]), in this unit.
    Printed(Unit),
}

/// One work in one state, and those that take part.
pub struct Heat<'a> {
    /// The rows are called `versus/TEST`.
    pub test: &'static str,
    /// What tells this heat from others of the same test; base units (`bytes`, `files`,
    /// `block_bytes`, `cache_state`, `corpus`, …).
    pub parameters: Parameters,
    /// What is compared.
    pub figure: Figure,
    /// Bytes that each run moves; 0 where there is no such number.
    pub bytes: u64,
    /// Whether the row of a speed (`versus/TEST-speed`, bytes/s) stands beside that of the time.
    pub with_speed: bool,
    /// Who takes part. The first is held against all others where it is flatout; else all others
    /// are held against it.
    pub contestants: Vec<Contestant>,
    /// Seconds that one run is expected to take, with its preparation; for the plan of the time.
    pub expected_s: f64,
    /// The work.
    pub course: Box<dyn Course + 'a>,
}

impl Figure {
    /// Its unit.
    pub fn unit(self) -> Unit {
        match self {
            Self::Time => Unit::Nanoseconds,
            Self::Printed(unit) => unit,
        }
    }
}
