//! Names as a filesystem has them that takes no notice of case, nor of how é is written, and keeps the spelling
//! that it was given.

use std::ffi::{OsStr, OsString};

use super::server::State;

/// A directory and a name in it.
pub type Place = (u64, OsString);

impl State {
    /// The place that is meant: where names fold, one that is there under another spelling.
    pub fn meant(&self, place: Place) -> Place {
        let plain = |name: &OsStr| {
            name.to_string_lossy().replace("e\u{301}", "\u{e9}").to_ascii_lowercase()
        };
        let is_one = |known: &&Place| known.0 == place.0 && plain(&known.1) == plain(&place.1);
        let mut known = self.names.keys().filter(|_| self.faults.folds);
        known.find(is_one).cloned().unwrap_or(place)
    }
}
