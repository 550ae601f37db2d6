//! Names as a filesystem has them that takes no notice of case, and keeps the case that it was given.

use std::ffi::OsString;

use super::server::State;

/// A directory and a name in it.
pub type Place = (u64, OsString);

impl State {
    /// The place that is meant: where names fold, one that is there under another spelling.
    pub fn meant(&self, place: Place) -> Place {
        let is_one = |known: &&Place| known.0 == place.0 && known.1.eq_ignore_ascii_case(&place.1);
        let mut known = self.names.keys().filter(|_| self.faults.folds);
        known.find(is_one).cloned().unwrap_or(place)
    }
}
