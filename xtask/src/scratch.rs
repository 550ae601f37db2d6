//! Scratch: the folder in which tests make their own, away from each other on the disk.
//!
//! ext4 passes over inodes that were deleted within the last minutes, one by one, for each file
//! that it makes in the same block group, and all folders below /tmp begin in one group. Below a
//! folder with the attribute T (chattr(1)) each begins in a group of its own, so that a test waits
//! for what it deleted itself, and not for what all others did.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::sources::cannot_be;

/// A folder that is there until [`Scratch::remove`].
pub struct Scratch {
    /// Where it is.
    pub path: PathBuf,
}

impl Scratch {
    /// Makes the folder, for everybody, as /tmp is. Where the filesystem or the system knows no
    /// attribute T it is a folder like any other. That of a run that was killed stays.
    pub fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("flatout-tests-{}", std::process::id()));
        let made = fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o1777)));
        made.map_err(cannot_be("made", &path))?;
        let mut chattr = Command::new("chattr");
        chattr.arg("+T").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
        let _without_it_tests_are_slower = chattr.status();
        Ok(Self { path })
    }

    /// Removes it, with what tests may have left.
    pub fn remove(self) -> Result<(), String> {
        fs::remove_dir_all(&self.path).map_err(cannot_be("removed", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_may_write_to_it_and_it_goes() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path.clone();
        fs::write(path.join("f"), "x").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o1777);
        scratch.remove().unwrap();
        assert!(!path.exists());
    }
}
