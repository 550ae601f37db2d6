//! Where the sources go, and how what is there is kept.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use flatout_tree::copy::backup::Backups;
use flatout_tree::copy::operand::{Destination, without_slashes};

use super::{Cp, words};

impl Cp {
    /// The sources.
    pub fn sources(&self) -> Cow<'_, [PathBuf]> {
        let sources = match (self.target_directories.is_empty(), self.paths.split_last()) {
            (true, Some((_, sources))) => sources,
            _ => self.paths.as_slice(),
        };
        // As cp, which does it where there is a directory to copy into.
        let is_into = matches!(self.destination(), Destination::Into(_));
        match self.strips_slashes && is_into {
            true => sources.iter().map(|path| without_slashes(path).to_owned()).collect(),
            false => sources.into(),
        }
    }

    /// Where they go. A last operand that is a directory is that of all sources.
    pub fn destination(&self) -> Destination {
        match (self.target_directories.first(), self.paths.last()) {
            (Some(directory), _) => Destination::Into(directory.clone()),
            (None, Some(target)) if self.no_target_directory => {
                Destination::Exactly(target.clone())
            }
            (None, Some(target)) if target.is_dir() => Destination::Into(target.clone()),
            (None, target) => Destination::Named(target.cloned().unwrap_or_default()),
        }
    }

    /// What is overwritten is kept so.
    ///
    /// Errors: a word that means no kind of backup.
    pub fn backups(&self) -> Result<Option<Backups>, String> {
        words::backups(self.backup.as_deref(), self.suffix.as_ref())
    }

    /// `cp -fb FILE FILE` makes a backup of this file and no more.
    pub fn backed_up_itself(&self) -> Option<&Path> {
        let [source, target] = self.paths.as_slice() else { return None };
        let is_one = self.clearing[0] && self.target_directories.is_empty() && source == target;
        (is_one && target.is_file()).then_some(target)
    }
}
