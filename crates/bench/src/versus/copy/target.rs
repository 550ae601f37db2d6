//! Where copies go: fresh names, kept until whoever has the place leaves it.
//!
//! Deleting a large tree makes the next creation on ext4 10 to 40 times slower for a minute, so it
//! must not happen between runs: they are emptied when they were compared. Where room is short it must:
//! then all that lie there go at once, before a round begins rather than within it, and the rows say so.

use std::fs;
use std::path::{Path, PathBuf};

use flatout_tree::remove::remove_tree;

use crate::{Error, IoError, place, scratch};

/// What copies take, or may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Entries.
    pub inodes: u64,
}

impl Amount {
    /// So many times as much.
    pub fn times(self, count: u64) -> Self {
        Self { bytes: self.bytes.saturating_mul(count), inodes: self.inodes.saturating_mul(count) }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }
}

/// The targets of all races.
pub struct Targets {
    folder: PathBuf,
    room: Amount,
    taken: Amount,
    live: Vec<PathBuf>,
}

impl Targets {
    /// Targets in `folder`, which is made when it is needed.
    pub fn new(folder: PathBuf, room_bytes: u64) -> Self {
        let room = Amount { bytes: room_bytes, inodes: u64::MAX };
        Self { folder, room, taken: Amount::default(), live: Vec::new() }
    }

    /// A name that no copy has had, for one that takes `takes`, with room for all that are `wanted` from
    /// now on; and whether earlier ones were removed for that.
    ///
    /// Errors: those of making the folder, and of removing.
    pub fn fresh(&mut self, takes: Amount, wanted: Amount) -> Result<(PathBuf, bool), Error> {
        let folder = &self.folder;
        fs::create_dir_all(folder).map_err(IoError::system("make the directory", folder))?;
        place::spread_directories_of(folder);
        if self.live.is_empty() {
            self.room.inodes = scratch::inodes_part(folder).unwrap_or(u64::MAX);
        }
        let has_removed = self.make_room(wanted)?;
        let path = self.folder.join(place::unused_name("copy"));
        self.taken = self.taken.plus(takes);
        self.live.push(path.clone());
        Ok((path, has_removed))
    }

    /// Makes room for copies that take `wanted` together: nothing happens where there is.
    /// Tells whether something was removed.
    fn make_room(&mut self, wanted: Amount) -> Result<bool, Error> {
        let then = self.taken.plus(wanted);
        let fits = then.bytes <= self.room.bytes && then.inodes <= self.room.inodes;
        if fits || self.live.is_empty() {
            return Ok(false);
        }
        for path in std::mem::take(&mut self.live) {
            // A copier that was given a tree may have left a file.
            let removed = remove_tree(&path).or_else(|_| fs::remove_file(&path));
            removed.map_err(IoError::system("remove", &path))?;
        }
        self.taken = Amount::default();
        Ok(true)
    }

    /// Takes the bytes out of a copy that nobody will read: they are not written to the disk, and take no
    /// time from what comes next nor from the removing in the end.
    ///
    /// Errors: those of the kernel.
    pub fn empty(&mut self, path: &Path, takes: Amount) -> Result<(), Error> {
        place::empty(path).map_err(IoError::system("empty", path))?;
        self.taken.bytes = self.taken.bytes.saturating_sub(takes.bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Amount = Amount { bytes: 100, inodes: 1 };

    #[test]
    fn targets_stay_until_room_is_short() {
        let place = tempfile::tempdir().unwrap();
        let mut targets = Targets::new(place.path().join("targets"), 350);
        for _ in 0..3 {
            let (fresh, has_removed) = targets.fresh(ONE, ONE).unwrap();
            assert!(!has_removed);
            fs::create_dir(fresh).unwrap();
        }
        assert_eq!(targets.live.len(), 3);
        let last = targets.live[2].clone();
        fs::write(last.join("file"), "bytes").unwrap();
        targets.empty(&last, ONE).unwrap();
        assert_eq!(fs::metadata(last.join("file")).unwrap().len(), 0);
        assert!(!targets.make_room(ONE).unwrap(), "what is emptied takes no room");
        targets.fresh(ONE, ONE).unwrap();
        assert!(targets.make_room(ONE).unwrap());
        assert_eq!(fs::read_dir(place.path().join("targets")).unwrap().count(), 0);
        assert!(!targets.make_room(ONE.times(9)).unwrap(), "nothing is there to be removed");
    }
}
