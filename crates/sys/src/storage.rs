//! The chain from an open file to the disks that hold it: mount, layers of block devices, disks.
//!
//! Everything is read below a root (`/` for the real one) from `/proc/self/mountinfo` and `/sys`.
//! What cannot be read ends the chain early or is `None`; it is never guessed. In a container the
//! chain may end at an overlay whose upper directory the container does not see.
//!
//! Read next: `stack`, which walks downwards.

mod device;
mod disk;
mod limit;
mod link;
mod location;
mod mount;
mod stack;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, StatxFlags, statat, statx};
use rustix::io::Errno;

pub use device::DeviceNumber;
pub use disk::Disk;
pub use limit::{IoLimit, limits};
pub use link::Link;
pub(crate) use link::controllers;
pub use location::Location;
pub use mount::{Mount, MountTable, fstab_places};

use crate::filesystem::{self, Nature};

/// What lies between a file and its disks, from the top down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// What kind of place the topmost filesystem is; a block device is a disk.
    pub nature: Nature,
    /// The kernel's name of the topmost filesystem; `none` for a block device.
    pub filesystem: String,
    /// The layers, each above those that it rests on. One that rests on several devices is
    /// followed by all of them, each with what lies below it; a device appears only once.
    pub layers: Vec<Layer>,
    /// The block devices with nothing known below them, whose accounts tell what really moved; empty
    /// where no block device is known. One of them may be a loop device whose file lies in memory.
    pub disks: Vec<DeviceNumber>,
    /// What kind of place each branch ends in; `None` where that cannot be seen.
    pub grounds: Vec<Option<Nature>>,
}

/// One step of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// A mounted filesystem.
    Mount(Mount),
    /// The filesystem above takes writes into a directory of another one.
    Overlay {
        /// That directory; `None` for an overlay that is only read.
        upper: Option<PathBuf>,
        /// The directory that has the file, where that is not the upper one.
        lower: Option<PathBuf>,
        /// Whether neither can be seen from here, and what follows is the only filesystem that has
        /// the size which the overlay tells of the one below it.
        by_size: bool,
    },
    /// A block device made of a file.
    Loop {
        /// The kernel's name.
        name: String,
        /// Its number.
        device: DeviceNumber,
        /// The file.
        backing: PathBuf,
        /// Whether it goes around the page cache; else all I/O is cached twice.
        direct_io: Option<bool>,
    },
    /// A part of a disk.
    Partition {
        /// The kernel's name.
        name: String,
        /// Its number.
        device: DeviceNumber,
    },
    /// A device of the device mapper.
    Mapper {
        /// The name that its maker gave it.
        name: String,
        /// Its number.
        device: DeviceNumber,
        /// What made it, from its UUID: `crypt`, `lvm`, `mpath`, …; `unknown` without one.
        kind: String,
    },
    /// An array of the `md` driver.
    Raid {
        /// The kernel's name.
        name: String,
        /// Its number.
        device: DeviceNumber,
        /// For example `raid1`.
        level: Option<String>,
        /// The kernel's names of the devices in it.
        members: Vec<String>,
    },
    /// Any other block device that rests on others, for example bcache.
    Stacked {
        /// The kernel's name.
        name: String,
        /// Its number.
        device: DeviceNumber,
    },
    /// A block device with nothing below it that the kernel shows.
    Disk(Disk),
}

impl Layer {
    /// The number of the block device that this layer is.
    pub fn device(&self) -> Option<DeviceNumber> {
        match self {
            Self::Mount(_) | Self::Overlay { .. } => None,
            Self::Loop { device, .. }
            | Self::Partition { device, .. }
            | Self::Mapper { device, .. }
            | Self::Raid { device, .. }
            | Self::Stacked { device, .. } => Some(*device),
            Self::Disk(disk) => Some(disk.device),
        }
    }
}

impl Chain {
    /// What kind of place the bytes lie in at the bottom: memory where any of them do, whatever
    /// devices and filesystems lie above it; `None` where that cannot be seen.
    pub fn ground(&self) -> Option<Nature> {
        if self.grounds.contains(&Some(Nature::Memory)) {
            return Some(Nature::Memory);
        }
        let first = *self.grounds.first()?;
        first.filter(|_| self.grounds.iter().all(|ground| *ground == first))
    }

    /// The option of a filesystem of the chain by which fsync(2) returns before storage has the bytes for
    /// good: of an overlay that makes nothing of it, or of a filesystem that flushes no device's cache.
    pub fn unsynced(&self) -> Option<&'static str> {
        let of = |mount: &Mount| {
            ["volatile", "fsync=volatile", "nobarrier"]
                .into_iter()
                .find(|word| mount.has_option(word))
        };
        self.mounts().find_map(of)
    }

    /// Whether what is written, and each change of a name, is durable when the call returns: the topmost
    /// filesystem is mounted so.
    pub fn is_synchronous(&self) -> bool {
        self.mounts().next().is_some_and(|mount| mount.has_option("sync"))
    }

    fn mounts(&self) -> impl Iterator<Item = &Mount> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Mount(mount) => Some(mount),
            _ => None,
        })
    }

    /// All block devices of the chain, from the top down.
    pub fn devices(&self) -> Vec<DeviceNumber> {
        self.layers.iter().filter_map(Layer::device).collect()
    }
}

/// Where a file lies, as far as a call on it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Origin {
    /// The mount, since Linux 5.8.
    mount_id: Option<u64>,
    /// The device of its filesystem, which need not be one of blocks.
    filesystem_device: DeviceNumber,
    /// The device that the file is, when it is the node of a block device.
    node: Option<DeviceNumber>,
}

/// The chain below the open file, or below the block device whose node it is.
///
/// `path` is the file's place, or its directory's for a file without a name; it only counts on
/// kernels before 5.8, which do not tell the mount of an open file.
///
/// Errors: those of statx, else fstatat, and fstatfs on the descriptor. What cannot be found out is left out.
/// Cost: two system calls, the mount table, and some 15 small files per block device.
pub fn chain(root: &Path, descriptor: BorrowedFd<'_>, path: &Path) -> io::Result<Chain> {
    let origin = origin(descriptor, Path::new(""), AtFlags::EMPTY_PATH)?;
    let name = filesystem::of(descriptor)?.name;
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mounts = MountTable::read(root);
    Ok(build(root, &mounts, LOOK, origin, &path, name))
}

fn build(
    root: &Path,
    mounts: &MountTable,
    look: stack::Look,
    origin: Origin,
    path: &Path,
    fallback_name: &str,
) -> Chain {
    let mut walk = stack::Walk::new(root, mounts, look);
    let filesystem = match origin.node {
        Some(device) => {
            walk.device(device);
            "none".to_owned()
        }
        None => walk.filesystem(&origin, path).unwrap_or_else(|| fallback_name.to_owned()),
    };
    let nature = if origin.node.is_some() { Nature::Disk } else { Nature::named(&filesystem) };
    let stack::Walk { layers, disks, grounds, .. } = walk;
    Chain { nature, filesystem, layers, disks, grounds }
}

/// How this machine is asked.
const LOOK: stack::Look = stack::Look { locate: origin_of_path, size_bytes };

fn origin(directory: BorrowedFd<'_>, path: &Path, flags: AtFlags) -> io::Result<Origin> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let (mount_id, mode, filesystem_device, itself) = match statx(directory, path, flags, wanted) {
        // No such call before Linux 4.11, nor where an old container's filter knows none.
        Err(Errno::NOSYS | Errno::PERM) => {
            let facts = statat(directory, path, flags)?;
            let [device, itself] = [facts.st_dev, facts.st_rdev].map(DeviceNumber::of);
            (None, facts.st_mode, device, itself)
        }
        looked => {
            let facts = looked?;
            let is_told = facts.stx_mask & StatxFlags::MNT_ID.bits() != 0;
            let number = |major, minor| DeviceNumber { major, minor };
            let device = number(facts.stx_dev_major, facts.stx_dev_minor);
            let itself = number(facts.stx_rdev_major, facts.stx_rdev_minor);
            (is_told.then_some(facts.stx_mnt_id), facts.stx_mode.into(), device, itself)
        }
    };
    let is_block = FileType::from_raw_mode(mode) == FileType::BlockDevice;
    Ok(Origin { mount_id, filesystem_device, node: is_block.then_some(itself) })
}

fn origin_of_path(root: &Path, _: &MountTable, path: &Path) -> Option<Origin> {
    let inside = root.join(path.strip_prefix("/").unwrap_or(path));
    origin(rustix::fs::CWD, &inside, AtFlags::empty()).ok()
}

fn size_bytes(root: &Path, path: &Path) -> Option<u64> {
    let facts = rustix::fs::statfs(root.join(path.strip_prefix("/").unwrap_or(path))).ok()?;
    Some(facts.f_blocks.saturating_mul(facts.f_frsize as u64))
}

#[cfg(test)]
mod tests;
