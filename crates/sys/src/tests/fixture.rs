//! What tests of this room share: recorded trees of /proc and /sys, and real mounts.
//!
//! Mounting needs root; what cannot be had here is printed as a skip.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

/// A folder tree that is removed when the test ends.
pub struct Tree(TempDir);

impl Tree {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            tree.file(path, text.as_bytes());
        }
        tree
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, path: &str, bytes: &[u8]) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// A symbolic link at `path`.
    pub fn link(&self, path: &str, target: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// A block device: its folder below `sys/devices`, with its number and a link by number.
    pub fn device(&self, folder: &str, number: &str) {
        self.file(&format!("sys/devices/{folder}/dev"), format!("{number}\n").as_bytes());
        self.link(&format!("sys/dev/block/{number}"), &format!("../../devices/{folder}"));
        let name = folder.rsplit('/').next().unwrap();
        self.link(&format!("sys/class/block/{name}"), &format!("../../devices/{folder}"));
    }

    /// Says that the device of the first folder rests on the other one.
    pub fn slave(&self, folder: &str, below: &str) {
        let name = below.rsplit('/').next().unwrap();
        let up = "../".repeat(folder.split('/').count() + 1);
        self.link(&format!("sys/devices/{folder}/slaves/{name}"), &format!("{up}{below}"));
    }
}

/// Something mounted, until it is dropped.
pub struct Mounted {
    home: TempDir,
    point: PathBuf,
}

/// Large enough for the smallest xfs and btrfs; the images are sparse.
const IMAGE_BYTES: u64 = 320 << 20;

impl Mounted {
    /// A filesystem on a loop device, or in memory for `tmpfs`; else `None`, and the reason is
    /// printed.
    pub fn new(kind: &str) -> Option<Self> {
        let home = home()?;
        let image = home.path().join("image");
        match kind {
            "tmpfs" => Self::at(home, &["-t", "tmpfs", "none"]),
            _ => {
                fs::File::create_new(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
                let force = if kind == "ext4" { "-F" } else { "-f" };
                run(&format!("mkfs.{kind}"), &["-q", force, image.to_str().unwrap()])?;
                Self::at(home, &["-t", kind, "-o", "loop", image.to_str().unwrap()])
            }
        }
    }

    /// An overlay whose upper directory is in the given one.
    pub fn overlay(upper: &Path) -> Option<Self> {
        let home = home()?;
        for name in ["upper,with comma", "lower", "work"] {
            fs::create_dir(upper.join(name)).unwrap();
        }
        let upper = upper.to_str().unwrap();
        let options = format!(
            "lowerdir={upper}/lower,upperdir={upper}/upper\\,with comma,workdir={upper}/work"
        );
        Self::at(home, &["-t", "overlay", "-o", &options, "overlay"])
    }

    fn at(home: TempDir, arguments: &[&str]) -> Option<Self> {
        let point = home.path().join("a place");
        fs::create_dir(&point).unwrap();
        run("mount", &[arguments, &[point.to_str().unwrap()]].concat())?;
        Some(Self { home, point })
    }

    pub fn path(&self) -> &Path {
        &self.point
    }

    /// The file that the filesystem lives in.
    pub fn image(&self) -> PathBuf {
        self.home.path().join("image")
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

fn home() -> Option<TempDir> {
    if !is_root() {
        eprintln!("skipped: mounting needs root");
        return None;
    }
    // As the kernel names it.
    let place = env::temp_dir().canonicalize().unwrap();
    Some(tempfile::Builder::new().prefix("flatout-sys-").tempdir_in(place).unwrap())
}

pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// What a program printed; `None` when it is missing or failed, and the reason is printed.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let folders = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    match Command::new(program).args(arguments).env("PATH", folders).output() {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
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
