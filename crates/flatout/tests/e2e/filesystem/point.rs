//! A mount point: a directory of its own, unmounted by `finish`, or on dropping as a last resort.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, Filesystem, MountOption, Session};
use tempfile::TempDir;

use super::tool::{succeed, tool};
use super::{needs_program, needs_root};

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

    /// With a filesystem mounted that a thread of the tests serves over FUSE.
    pub fn served(
        server: impl Filesystem,
        name: &str,
        options: impl IntoIterator<Item = MountOption>,
    ) -> Result<(Self, BackgroundSession), String> {
        needs_root("mounts a filesystem")?;
        let mut point = Self::new();
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(name.into()), MountOption::NoAtime];
        config.mount_options.extend(options);
        let session = Session::new(server, point.path(), &config)
            .and_then(Session::spawn)
            .map_err(|error| format!("FUSE cannot be had: {error}"))?;
        point.is_mounted = true;
        Ok((point, session))
    }

    /// With an ext4 mounted that keeps no parts of seconds, and no time after 2038: its inodes have 128
    /// bytes.
    pub fn with_coarse_times() -> Result<Self, String> {
        needs_root("mounts a filesystem")?;
        needs_program("mkfs.ext4")?;
        let mut point = Self::new();
        let image = point.beside("image");
        std::fs::File::create_new(&image).unwrap().set_len(32 << 20).unwrap();
        succeed(tool("mkfs.ext4").args(["-q", "-F", "-I", "128"]).arg(&image)).unwrap();
        point.mount(&["-t", "ext4", "-o", "loop", image.to_str().unwrap()])?;
        Ok(point)
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
