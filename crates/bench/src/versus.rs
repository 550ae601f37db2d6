//! Rivals raced in one run: the same work, the same state of the cache, rounds in random order.
//!
//! A [`rival`] says how it is called; a [`heat`] is one work in one state, with those that take
//! part; [`race`] runs the rounds; [`finish`] makes rows of them. What can be raced: [`dd`] and
//! [`digest`].

pub mod copy;
pub mod corpus;
pub mod finish;
pub mod heat;
pub mod race;
pub mod rival;
pub mod run;
pub mod state;

use std::path::{Path, PathBuf};

use flatout_sys::cancel::CancelToken;

use rival::{Discipline, Found};

/// The folder below the directory of a race; everything that a race makes lies there.
pub const FOLDER: &str = ".flatout-versus";

/// How much is raced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Small sizes, few rounds.
    Quick,
    /// What the help says.
    Full,
}

/// What every discipline needs to make its heats.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The rivals that are raced and were found.
    pub found: Vec<Found>,
    /// The directory that was asked for; files are made below its [`FOLDER`].
    pub directory: PathBuf,
    /// The program of flatout.
    pub flatout: PathBuf,
    /// How much is raced.
    pub extent: Extent,
    /// Bytes that may lie there at once, corpora and targets together.
    pub room_bytes: u64,
    /// Seed of contents and orders.
    pub seed: u64,
    /// Whether the user wants to stop.
    pub cancel: CancelToken,
}

impl Ground {
    /// Where corpora lie; they are kept.
    pub fn corpora(&self) -> PathBuf {
        corpora(&self.directory)
    }

    /// Where targets lie; they are removed.
    pub fn targets(&self) -> PathBuf {
        targets(&self.directory)
    }

    /// The rivals of one discipline.
    pub fn of(&self, discipline: Discipline) -> impl Iterator<Item = &Found> {
        self.found.iter().filter(move |found| found.rival.discipline == discipline)
    }
}

/// Where the corpora of a directory lie.
pub fn corpora(directory: &Path) -> PathBuf {
    directory.join(FOLDER).join("corpora")
}

/// Where the targets of a directory lie.
pub fn targets(directory: &Path) -> PathBuf {
    directory.join(FOLDER).join("targets")
}
