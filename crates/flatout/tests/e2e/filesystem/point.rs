//! A mount point: a directory of its own, unmounted by `finish`, or on dropping as a last resort.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::tool::{succeed, tool};

/// How long a filesystem may stay busy after the last process has left it.
const PATIENCE: Duration = crate::bin::LIMIT;

/// A directory to mount on, with room for an image beside it.
pub struct MountPoint {
    home: TempDir,
    path: PathBuf,
    is_mounted: bool,
}

impl MountPoint {
    /// A directory on which nothing is mounted yet.
    pub fn new() -> Self {
        let home = tempfile::Builder::new().prefix("flatout-mount-").tempdir().unwrap();
        let path = home.path().join("mounted");
        std::fs::create_dir(&path).unwrap();
        Self { home, path, is_mounted: false }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A name beside the mount point, for what belongs to it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Mounts with these arguments to `mount`, which is given the path as its last.
    pub fn mount(&mut self, arguments: &[&str]) -> Result<(), String> {
        succeed(tool("mount").args(arguments).arg(&self.path))?;
        self.is_mounted = true;
        Ok(())
    }

    /// Somebody else has mounted something here.
    pub fn is_mounted(&mut self) {
        self.is_mounted = true;
    }

    /// Unmounts. Fails the test when something still holds on to it.
    ///
    /// The kernel takes a ring apart after its process has ended, and holds its files until then:
    /// hence the patience.
    pub fn finish(mut self) {
        let begun = Instant::now();
        let mut done = succeed(tool("umount").arg(&self.path));
        while done.is_err() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
            done = succeed(tool("umount").arg(&self.path));
        }
        self.is_mounted = done.is_err();
        done.unwrap();
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = succeed(tool("umount").arg("--lazy").arg(&self.path));
        }
    }
}
