//! Filesystems to test on: ext4, xfs and btrfs on loop images, tmpfs and ramfs in memory, and one
//! laid over another or shown a second time.
//!
//! Mounting needs root. Whatever cannot be had here is returned as a reason to skip. A mount is
//! undone by `finish`, whose failure fails the test; dropping it is the last resort of a test
//! that has failed already.

mod device;
mod point;
mod tool;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use device::{Backing, LoopDevice, moved_bytes};
pub use point::MountPoint;

use device::{attach, detach};
use tool::{succeed, tool};

/// Large enough for the smallest xfs and btrfs; the images are sparse.
const IMAGE_BYTES: u64 = 512 << 20;

/// A filesystem that can be made here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ext4,
    Xfs,
    Btrfs,
    /// In memory, of this many bytes.
    Tmpfs(u64),
    /// In memory, and refuses `O_DIRECT`.
    Ramfs,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs(_) => "tmpfs",
            Self::Ramfs => "ramfs",
        }
    }

    fn maker(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Ext4 => Some(&["mkfs.ext4", "-q", "-F"]),
            Self::Xfs => Some(&["mkfs.xfs", "-q", "-f"]),
            Self::Btrfs => Some(&["mkfs.btrfs", "-q", "-f"]),
            Self::Tmpfs(_) | Self::Ramfs => None,
        }
    }
}

/// A filesystem, mounted until `finish`.
pub struct Mounted {
    point: MountPoint,
    node: Option<PathBuf>,
}

impl Mounted {
    /// Makes and mounts it, or says why that cannot be done here.
    pub fn new(kind: Kind) -> Result<Self, String> {
        match (kind, kind.maker()) {
            (_, Some(_)) => Self::on_image(kind, IMAGE_BYTES, Backing::Cached),
            (Kind::Tmpfs(bytes), None) => {
                Self::plain(&["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"])
            }
            (_, None) => Self::plain(&["-t", kind.name(), "none"]),
        }
    }

    /// Makes and mounts a filesystem of storage on an image of this length.
    pub fn on_image(kind: Kind, bytes: u64, backing: Backing) -> Result<Self, String> {
        needs_root("mounts a filesystem")?;
        let point = MountPoint::new();
        let image = point.beside("image");
        File::create_new(&image).unwrap().set_len(bytes).unwrap();
        let maker = kind.maker().expect("this kind lives on an image");
        succeed(tool(maker[0]).args(&maker[1..]).arg(&image))?;
        Self::of_image(point, &["-t", kind.name()], backing)
    }

    /// Mounts what lies beside a mount point.
    fn of_image(mut point: MountPoint, how: &[&str], backing: Backing) -> Result<Self, String> {
        let node = attach(&point.beside("image"), backing)?;
        let mounted = point.mount(&[how, &[node.to_str().unwrap()]].concat());
        // From now on the mount alone holds the device, which goes when it goes.
        detach(&node)?;
        mounted?;
        Ok(Self { point, node: Some(node) })
    }

    /// What a power cut would leave just now: the device as it is, without what the kernel has not sent to it,
    /// mounted as another one.
    pub fn after_a_power_cut(&self, kind: Kind) -> Result<Self, String> {
        let point = MountPoint::new();
        let images = [&self.point, &point].map(|point| point.beside("image"));
        succeed(tool("cp").arg("--sparse=always").args(images))?;
        let options = if kind == Kind::Xfs { "nouuid" } else { "relatime" };
        Self::of_image(point, &["-t", kind.name(), "-o", options], Backing::Cached)
    }

    /// An empty directory of memory laid over `lower`.
    pub fn overlay(lower: &Path, upper: &Path) -> Result<Self, String> {
        for name in ["upper", "work"] {
            std::fs::create_dir(upper.join(name)).unwrap();
        }
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.join("upper").display(),
            upper.join("work").display()
        );
        Self::plain(&["-t", "overlay", "-o", &options, "none"])
    }

    /// A directory shown a second time, where it cannot be changed.
    pub fn read_only(directory: &Path) -> Result<Self, String> {
        let mounted = Self::shown_again(directory)?;
        succeed(tool("mount").args(["-o", "remount,bind,ro"]).arg(mounted.path()))?;
        Ok(mounted)
    }

    /// A directory shown a second time.
    pub fn shown_again(directory: &Path) -> Result<Self, String> {
        Self::plain(&["--bind", directory.to_str().unwrap()])
    }

    fn plain(arguments: &[&str]) -> Result<Self, String> {
        needs_root("mounts a filesystem")?;
        let mut point = MountPoint::new();
        point.mount(arguments)?;
        Ok(Self { point, node: None })
    }

    /// Changes how it is mounted.
    pub fn remount(&self, options: &str) -> Result<(), String> {
        succeed(tool("mount").args(["-o", &format!("remount,{options}")]).arg(self.path()))
            .map(drop)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.point.path().to_owned()
    }

    /// The device below it, of a filesystem on an image.
    pub fn node(&self) -> &Path {
        self.node.as_deref().expect("there is an image")
    }

    /// Unmounts it. Fails the test when something still holds on to it.
    pub fn finish(self) {
        self.point.finish();
    }
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A reason to skip, unless the tests run as root, and not as that of a container, which may not mount.
pub fn needs_root(purpose: &str) -> Result<(), String> {
    const SYS_ADMIN: u64 = 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    match is_root() && mask & SYS_ADMIN != 0 {
        true => Ok(()),
        false => Err(format!("{purpose}, which needs root with all capabilities")),
    }
}

/// A reason to skip, unless the kernel and whoever guards it allow io_uring.
pub fn needs_uring() -> Result<(), String> {
    flatout_sys::ring::probe()
}

/// A reason to skip, unless the folder of temporary files lies on storage.
pub fn needs_storage(folder: &Path) -> Result<(), String> {
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let magic = rustix::fs::statfs(folder).unwrap().f_type as u64 & 0xffff_ffff;
    if IN_MEMORY.contains(&magic) {
        return Err(format!("{} lives in memory, a file there cannot be cold", folder.display()));
    }
    Ok(())
}

/// A reason to skip on kernels older than this one, which has something.
pub fn needs_kernel(version: (u32, u32), what: &str) -> Result<(), String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    let own = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let why = || format!("{what} in Linux {version:?}, and this is {}", release.trim());
    if own >= version { Ok(()) } else { Err(why()) }
}

/// A reason to skip, unless this program is installed.
pub fn needs_program(name: &str) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let found = path.split(':').any(|folder| Path::new(folder).join(name).is_file());
    if found { Ok(()) } else { Err(format!("{name} is not installed")) }
}

#[test]
fn an_overlay_shows_both_of_its_layers() {
    use crate::skip::needs;
    let lower = tempfile::tempdir().unwrap();
    std::fs::write(lower.path().join("below"), "old").unwrap();
    let upper = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    let overlay = needs!(Mounted::overlay(lower.path(), &upper.path()));
    std::fs::write(overlay.path().join("above"), "new").unwrap();
    assert_eq!(std::fs::read(overlay.path().join("below")).unwrap(), b"old");
    assert_eq!(std::fs::read(upper.path().join("upper/above")).unwrap(), b"new");
    overlay.finish();
    upper.finish();
}

#[test]
fn a_directory_shown_read_only_takes_no_file() {
    use crate::skip::needs;
    let directory = tempfile::tempdir().unwrap();
    let mounted = needs!(Mounted::read_only(directory.path()));
    let error = std::fs::write(mounted.path().join("new"), "").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    mounted.finish();
}

#[test]
fn the_device_of_an_image_counts_what_is_written() {
    use crate::skip::needs;
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 16 << 20, Backing::Direct));
    let before = moved_bytes(mounted.node());
    let path = mounted.path().join("data");
    std::fs::write(&path, [7; 1 << 20]).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    let written = moved_bytes(mounted.node()).1 - before.1;
    assert!((1 << 20..2 << 20).contains(&written), "{written}");
    mounted.finish();
}
