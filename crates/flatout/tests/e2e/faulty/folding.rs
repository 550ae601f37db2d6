//! Names as a filesystem has them that takes no notice of case, nor of how é is written, keeps the spelling
//! that it was given, and makes up a short name for each long one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fuser::Errno;

use super::state::State;

/// A directory and a name in it.
pub type Place = (u64, OsString);

/// Where the number of a spelling begins.
const SPELLING_SHIFT: u32 = 32;

/// The number of a file, by whatever spelling it was found.
pub fn plain(number: u64) -> u64 {
    number & ((1 << SPELLING_SHIFT) - 1)
}

/// Eight letters of a name, and three.
fn cut(name: &OsStr) -> OsString {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let mut parts = name.split('.');
    let base = format!("{:.8}", parts.next().unwrap_or_default());
    parts.next().map_or(base.clone(), |ending| format!("{base}.{ending:.3}")).into()
}

/// The name that a long one has besides.
fn made_up(name: &str) -> Option<String> {
    let (base, ending) = name.rsplit_once('.')?;
    (base.len() > 8 && ending.len() == 3).then(|| format!("{:.6}~1.{ending}", base))
}

impl State {
    /// The place that is meant: where names fold, one that is there under another spelling.
    pub fn meant(&self, place: Place) -> Place {
        if self.faults.cuts {
            return (place.0, cut(&place.1));
        }
        let plain = |name: &OsStr| {
            name.to_string_lossy().replace("e\u{301}", "\u{e9}").to_ascii_lowercase()
        };
        let is_one = |known: &&Place| {
            let (known, name) = ((known.0, plain(&known.1)), plain(&place.1));
            known.0 == place.0 && (known.1 == name || made_up(&known.1) == Some(name))
        };
        let mut known = self.names.keys().filter(|_| self.faults.folds);
        known.find(is_one).cloned().unwrap_or(place)
    }
    /// The number under which something is found: where spellings are numbered, one for each.
    pub fn number(&self, place: Place) -> Result<u64, Errno> {
        let meant = self.meant(place.clone());
        let number = *self.names.get(&meant).ok_or(Errno::ENOENT)?;
        if !self.faults.numbers_spellings || meant == place {
            return Ok(number);
        }
        let spelling: u64 = place.1.as_bytes().iter().map(|&byte| u64::from(byte)).sum();
        Ok(number | spelling << SPELLING_SHIFT)
    }
}
