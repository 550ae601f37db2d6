//! Real filesystems for tests, where they can be had; else the reason is printed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Something mounted, until it is dropped.
pub struct Mounted {
    _home: TempDir,
    point: PathBuf,
}

impl Mounted {
    /// A tmpfs, or an ext4, xfs or btrfs on a loop device, of this size.
    pub fn new(kind: &str, size_bytes: u64) -> Option<Self> {
        if !is_root() {
            eprintln!("skipped: {kind}: mounting needs root");
            return None;
        }
        let home = tempfile::Builder::new().prefix("flatout-content-").tempdir().unwrap();
        let (point, image) = (home.path().join("point"), home.path().join("image"));
        std::fs::create_dir(&point).unwrap();
        let (point_text, image_text) = (point.to_str().unwrap(), image.to_str().unwrap());
        if kind == "tmpfs" {
            let size = format!("size={size_bytes}");
            run("mount", &["-t", "tmpfs", "-o", &size, "none", point_text])?;
        } else {
            File::create_new(&image).unwrap().set_len(size_bytes).unwrap();
            let force = if kind == "ext4" { "-F" } else { "-f" };
            run(&format!("mkfs.{kind}"), &["-q", force, image_text])?;
            run("mount", &["-t", kind, "-o", "loop", image_text, point_text])?;
        }
        Some(Self { _home: home, point })
    }

    pub fn path(&self) -> &Path {
        &self.point
    }

    /// A file without a name.
    pub fn file(&self) -> File {
        tempfile::tempfile_in(&self.point).unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let point = self.point.to_str().unwrap();
        if run("umount", &[point]).is_none() {
            run("umount", &["--lazy", point]);
        }
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Runs a program; `None` when it is missing or fails, and the reason is printed.
pub fn run(program: &str, arguments: &[&str]) -> Option<()> {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    match Command::new(program).args(arguments).env("PATH", folders).output() {
        Ok(output) if output.status.success() => Some(()),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            eprintln!("skipped: {program} {arguments:?}: {why}");
            None
        }
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}
