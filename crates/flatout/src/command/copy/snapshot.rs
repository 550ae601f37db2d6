//! Snapshots of earlier copies, opened before anything is copied: one that is missing or cannot
//! serve would be noticed only when everything was copied again.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use flatout_io::{cause_text, quote};
use flatout_tree::copy::operand::{Destination, parent};
use flatout_tree::copy::reference::References;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::arguments::copy::Copy as Arguments;

const LINK: &str = "--link-dest";
const CLONE: &str = "--reflink-dest";

/// Opens the snapshots that are named; `None`: none is.
///
/// Errors: a line that says which of them cannot serve, and why.
pub fn open(arguments: &Arguments) -> Result<Option<References>, String> {
    let Arguments { link_dest, reflink_dest, .. } = arguments;
    if link_dest.is_empty() && reflink_dest.is_empty() {
        return Ok(None);
    }
    let (sources, destination) = arguments.operands();
    let (target, becomes) = match &destination {
        Destination::Into(path) => (path, false),
        Destination::Exactly(path) => (path, true),
        Destination::Named(path) => (path, !path.is_dir()),
    };
    let target = Target { target, found: target_or_parent(target) };
    let all = |option, directories: &[PathBuf]| {
        directories.iter().map(|path| target.open(option, path)).collect::<Result<Vec<_>, _>>()
    };
    let is_directory = |path: &PathBuf| path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
    let (link, clone) = (all(LINK, link_dest)?, all(CLONE, reflink_dest)?);
    Ok(Some(References::new(link, clone, becomes && sources.iter().all(is_directory))))
}

/// Where copies go.
struct Target<'a> {
    target: &'a Path,
    found: Option<Stat>,
}

fn target_or_parent(target: &Path) -> Option<Stat> {
    let directory = |path: &Path| {
        let facts = rustix::fs::stat(path).ok();
        facts.filter(|facts| FileType::from_raw_mode(facts.st_mode).is_dir())
    };
    directory(target).or_else(|| directory(&parent(target)))
}

impl Target<'_> {
    fn open(&self, option: &str, path: &Path) -> Result<OwnedFd, String> {
        let shown = quote(path);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty())
            .and_then(|directory| rustix::fs::fstat(&directory).map(|facts| (directory, facts)));
        let (directory, facts) = opened.map_err(|errno| {
            let cause = cause_text(&errno.into());
            let is_known = errno == Errno::NOENT && path.is_relative();
            let as_rsync = Some(self.target.join(path)).filter(|path| is_known && path.is_dir());
            let hint = as_rsync.map_or_else(String::new, |path| {
                format!("; below the target there is {}, which rsync would take", quote(path))
            });
            format!("{option} {shown}: {cause}{hint}")
        })?;
        let Some(found) = &self.found else { return Ok(directory) };
        if (facts.st_dev, facts.st_ino) == (found.st_dev, found.st_ino) && self.target.is_dir() {
            return Err(format!("{option} {shown}: it is the target itself"));
        }
        // Subvolumes of one btrfs have numbers of their own, and may share extents.
        let filesystem = flatout_sys::filesystem::of(directory.as_fd());
        let is_btrfs = filesystem.is_ok_and(|found| found.name == "btrfs");
        let could_share = option == CLONE && is_btrfs;
        if facts.st_dev != found.st_dev && !could_share {
            return Err(format!("{option} {shown}: it lies on another filesystem than the target"));
        }
        Ok(directory)
    }
}
