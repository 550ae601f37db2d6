//! Where a file lies inside its filesystem, whatever mounts lead there: a bind mount gives the same
//! directories other paths, and its root another parent.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;

use super::mount::{Mount, MountTable};
use super::{DeviceNumber, origin};
use crate::descriptor::itself;

/// A place inside a filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The filesystem's number in the mount table: one for all subvolumes of a btrfs.
    device: DeviceNumber,
    /// From the root of the filesystem.
    path: PathBuf,
}

impl Location {
    /// Where an open file is, which may have been opened with `O_PATH`; `None` where /proc does not
    /// tell, or the file has no name that this process could reach.
    ///
    /// Cost: the mount table and two system calls.
    pub fn of(file: impl AsFd) -> Option<Self> {
        found(&file, &MountTable::read(Path::new("/"))).map(|(location, _)| location)
    }

    /// Where an open directory is, and whatever is mounted below it.
    ///
    /// Cost: as [`Location::of`].
    pub fn of_tree(directory: impl AsFd) -> Vec<Self> {
        let mounts = MountTable::read(Path::new("/"));
        let Some((location, path)) = found(&directory, &mounts) else { return Vec::new() };
        let mounted = mounts.below(&path).map(|mount| inside(mount, &mount.mount_point));
        std::iter::once(Some(location)).chain(mounted).flatten().collect()
    }

    /// Whether it is `other`, or lies below it.
    pub fn is_in(&self, other: &Self) -> bool {
        self.device == other.device && self.path.starts_with(&other.path)
    }
}

fn found(file: &impl AsFd, mounts: &MountTable) -> Option<(Location, PathBuf)> {
    let file = file.as_fd();
    let path = std::fs::read_link(itself(file)).ok()?;
    let origin = origin(file, Path::new(""), AtFlags::EMPTY_PATH).ok()?;
    let location = inside(mounts.of(&origin, &path)?, &path)?;
    Some((location, path))
}

fn inside(mount: &Mount, path: &Path) -> Option<Location> {
    let below = path.strip_prefix(&mount.mount_point).ok()?;
    Some(Location { device: mount.device, path: mount.root.join(below) })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_lies_in_the_directories_above_it_and_in_no_others() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = place.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Location::of(File::open(&path).unwrap())
        };
        let (Some(one), Some(below), Some(other)) = (at("one"), at("one/below"), at("one2")) else {
            return eprintln!("skipped: /proc does not tell");
        };
        assert!(below.is_in(&one) && one.is_in(&one));
        assert!(!one.is_in(&below) && !other.is_in(&one));
        assert_eq!(Location::of_tree(File::open(place.path().join("one")).unwrap()), [one]);
    }

    #[test]
    fn a_mount_shows_a_part_of_a_filesystem_elsewhere() {
        let line = "40 27 8:1 /deep/inner /mnt rw - ext4 /dev/sda1 rw\n41 40 0:9 / /mnt/x/y rw - tmpfs t rw";
        let mounts = MountTable::parse(line.as_bytes());
        let mount = mounts.above(Path::new("/mnt/x"), |_| true).unwrap();
        let expected = Location { device: mount.device, path: "/deep/inner/x".into() };
        assert_eq!(inside(mount, Path::new("/mnt/x")), Some(expected));
        assert_eq!(mounts.below(Path::new("/mnt")).count(), 1);
        assert_eq!(mounts.below(Path::new("/mnt/x/y")).count(), 0);
    }
}
