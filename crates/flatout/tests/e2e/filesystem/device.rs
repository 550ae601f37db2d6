//! Loop devices: a block device for each test, and the kernel's account of it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::needs_root;
use super::tool::{succeed, tool};

/// How a loop device reads and writes its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Through the page cache, the kernel's default.
    Cached,
    /// Around it.
    Direct,
}

/// Attaches an image and returns the device's node.
pub fn attach(image: &Path, backing: Backing) -> Result<PathBuf, String> {
    let mut losetup = tool("losetup");
    losetup.args(["--find", "--show"]);
    if backing == Backing::Direct {
        losetup.arg("--direct-io=on");
    }
    let node = succeed(losetup.arg(image))?;
    Ok(node.trim().into())
}

/// Detaches a device, or has the kernel do that when its last user goes.
pub fn detach(node: &Path) -> Result<(), String> {
    succeed(tool("losetup").arg("--detach").arg(node)).map(drop)
}

/// Bytes that a device has read and written, by its own account.
pub fn moved_bytes(node: &Path) -> (u64, u64) {
    const SECTOR_BYTES: u64 = 512;
    let name = node.file_name().unwrap().to_str().unwrap();
    let account = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let fields: Vec<u64> = account.split_whitespace().map(|n| n.parse().unwrap()).collect();
    (fields[2] * SECTOR_BYTES, fields[6] * SECTOR_BYTES)
}

/// A block device backed by a file, until `finish`.
pub struct LoopDevice {
    image: PathBuf,
    /// Where the image lies, unless somebody else removes it.
    home: Option<TempDir>,
    node: PathBuf,
    is_attached: bool,
}

impl LoopDevice {
    /// Attaches a device with this content, or says why that cannot be done here.
    pub fn new(content: &[u8]) -> Result<Self, String> {
        needs_root("attaches a loop device")?;
        let home = tempfile::Builder::new().prefix("flatout-loop-").tempdir().unwrap();
        let mut device = Self::of_image(home.path().join("image"), content, Backing::Cached)?;
        device.home = Some(home);
        Ok(device)
    }

    /// The same with the image in a folder.
    pub fn inside(folder: &Path, content: &[u8], backing: Backing) -> Result<Self, String> {
        needs_root("attaches a loop device")?;
        Self::of_image(folder.join("image"), content, backing)
    }

    fn of_image(image: PathBuf, content: &[u8], backing: Backing) -> Result<Self, String> {
        std::fs::write(&image, content).unwrap();
        let node = attach(&image, backing)?;
        Ok(Self { image, home: None, node, is_attached: true })
    }

    pub fn path(&self) -> &Path {
        &self.node
    }

    /// Detaches it and returns what the device holds.
    pub fn finish(mut self) -> Vec<u8> {
        let done = detach(&self.node);
        self.is_attached = done.is_err();
        done.unwrap();
        let content = std::fs::read(&self.image).unwrap();
        drop(self.home.take());
        content
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if self.is_attached {
            let _ = detach(&self.node);
        }
    }
}
