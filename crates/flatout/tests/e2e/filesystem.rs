//! Filesystems to test on: ext4, xfs and btrfs on loop images, tmpfs and ramfs in memory.
//!
//! Mounting needs root. Whatever cannot be had here is returned as a reason to skip. A mount is
//! undone by `finish`, whose failure fails the test; dropping it is the last resort of a test
//! that has failed already.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Large enough for the smallest xfs and btrfs; the images are sparse.
const IMAGE_BYTES: u64 = 512 << 20;

/// How long a filesystem may stay busy after the last process has left it.
const PATIENCE: Duration = Duration::from_secs(10);

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
    home: TempDir,
    is_mounted: bool,
}

impl Mounted {
    /// Makes and mounts it, or says why that cannot be done here.
    pub fn new(kind: Kind) -> Result<Self, String> {
        needs_root("mounts a filesystem")?;
        let home = tempfile::Builder::new().prefix("flatout-mount-").tempdir().unwrap();
        let point = home.path().join("mounted");
        std::fs::create_dir(&point).unwrap();
        let mut mount = tool("mount");
        match (kind, kind.maker()) {
            (_, Some(maker)) => {
                let image = home.path().join("image");
                File::create_new(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
                succeed(tool(maker[0]).args(&maker[1..]).arg(&image))?;
                mount.args(["-t", kind.name(), "-o", "loop"]).arg(&image);
            }
            (Kind::Tmpfs(bytes), None) => {
                mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"]);
            }
            (_, None) => {
                mount.args(["-t", kind.name(), "none"]);
            }
        }
        succeed(mount.arg(&point))?;
        Ok(Self { home, is_mounted: true })
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.home.path().join("mounted")
    }

    /// Unmounts it. Fails the test when something still holds on to it.
    ///
    /// The kernel takes a ring apart after its process has ended, and holds its files until then:
    /// hence the patience.
    pub fn finish(mut self) {
        let begun = Instant::now();
        let mut done = succeed(tool("umount").arg(self.path()));
        while done.is_err() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
            done = succeed(tool("umount").arg(self.path()));
        }
        self.is_mounted = done.is_err();
        done.unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = succeed(tool("umount").arg("--lazy").arg(self.path()));
        }
    }
}

/// A block device backed by a file, until `finish`.
pub struct LoopDevice {
    home: TempDir,
    device: PathBuf,
    is_attached: bool,
}

impl LoopDevice {
    /// Attaches a device with this content, or says why that cannot be done here.
    pub fn new(content: &[u8]) -> Result<Self, String> {
        needs_root("attaches a loop device")?;
        let home = tempfile::Builder::new().prefix("flatout-loop-").tempdir().unwrap();
        let image = home.path().join("image");
        std::fs::write(&image, content).unwrap();
        let device = succeed(tool("losetup").args(["--find", "--show"]).arg(&image))?;
        Ok(Self { home, device: device.trim().into(), is_attached: true })
    }

    pub fn path(&self) -> &Path {
        &self.device
    }

    /// Detaches it and returns what the device holds.
    pub fn finish(mut self) -> Vec<u8> {
        let done = succeed(tool("losetup").arg("--detach").arg(&self.device));
        self.is_attached = done.is_err();
        done.unwrap();
        std::fs::read(self.home.path().join("image")).unwrap()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if self.is_attached {
            let _ = succeed(tool("losetup").arg("--detach").arg(&self.device));
        }
    }
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A reason to skip, unless the tests run as root.
pub fn needs_root(purpose: &str) -> Result<(), String> {
    if is_root() { Ok(()) } else { Err(format!("{purpose}, which needs root")) }
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

/// A reason to skip, unless this program is installed.
pub fn needs_program(name: &str) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let found = path.split(':').any(|folder| Path::new(folder).join(name).is_file());
    if found { Ok(()) } else { Err(format!("{name} is not installed")) }
}

/// A program of the administrator, also where the search path is a user's.
fn tool(name: &str) -> Command {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let found =
        folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    Command::new(found.unwrap_or_else(|| name.into()))
}

/// What it printed, or how it failed.
fn succeed(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{name}: {}: {why}", output.status))
}
