//! Scratch: the folder in which tests make their own, away from each other on the disk.
//!
//! ext4 passes over inodes that were deleted within the last minutes, one by one, for each file
//! that it makes in the same block group, and all folders below /tmp begin in one group. Below a
//! folder with the attribute T (chattr(1)) each begins in a group of its own, so that a test waits
//! for what it deleted itself, and not for what all others did.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::sources::cannot_be;

/// The folders' names, before the number of the process.
const PREFIX: &str = "flatout-tests-";

/// Ends what still runs with such a folder, takes away what is mounted and attached in there, and
/// removes it.
const REMOVE: &str = r#"
PATH=$PATH:/usr/sbin:/sbin
for process in /proc/[0-9]*; do
    grep -Eqz "^TMPDIR=$1(/|$)" "$process/environ" && kill -KILL "${process#/proc/}"
done
awk -v top="$1/" 'index($2, top) == 1 { print $2 }' /proc/self/mounts | sort -r | xargs -r umount --lazy
losetup --noheadings --output NAME,BACK-FILE | awk -v top="$1/" 'index($2, top) == 1 { print $1 }' |
    xargs -r losetup --detach
chattr -Rf -ia "$1"
rm -rf --one-file-system "$1"
"#;

/// A folder that is there until [`Scratch::remove`], locked as long as this process runs.
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes the folder, for everybody, as /tmp is. Where the filesystem or the system knows no
    /// attribute T it is a folder like any other. Those of runs that were killed go.
    pub fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir();
        remove_left(&folder);
        let path = folder.join(format!("{PREFIX}{}", std::process::id()));
        let made = || -> io::Result<File> {
            fs::create_dir(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o1777))?;
            let file = File::open(&path)?;
            file.lock()?;
            Ok(file)
        };
        let file = made().map_err(cannot_be("made", &path))?;
        let mut chattr = Command::new("chattr");
        chattr.arg("+T").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
        let _without_it_tests_are_slower = chattr.status();
        Ok(Self { path, _lock: file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, with what tests may have left.
    pub fn remove(self) -> Result<(), String> {
        fs::remove_dir_all(&self.path).map_err(cannot_be("removed", &self.path))
    }
}

/// Removes the folders of runs that are no more.
fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(process) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        // The lock tells runs in other containers, and the number one that has not locked yet.
        let is_over = !Path::new("/proc").join(process).exists()
            && File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if is_over {
            println!("==> {} is left of a run that was killed, and removed", path.display());
            let mut sh = Command::new("sh");
            sh.args(["-c", REMOVE, "sh"]).arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
            let _what_cannot_be_removed_stays = sh.status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_may_write_to_it_and_it_goes() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("f"), "x").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o1777);
        let there = Path::new(&path).parent().unwrap();
        remove_left(there);
        assert!(path.exists(), "it is in use");
        scratch.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_run_left_goes_with_its_processes() {
        let folder = std::env::temp_dir().join(format!("xtask-left-{}", std::process::id()));
        // No process has this number.
        let left = folder.join(format!("{PREFIX}4294967295"));
        fs::create_dir_all(left.join("d")).unwrap();
        let sleeps = |within: &Path| {
            let mut sleep = Command::new("sleep");
            sleep.arg("3600").env("TMPDIR", within).stdout(Stdio::null()).stderr(Stdio::null());
            sleep.spawn().unwrap()
        };
        let mut child = sleeps(&left.join("d"));
        // Of a run whose number begins like that one.
        let mut other = sleeps(&folder.join(format!("{PREFIX}42949672950")));
        let held = File::open(&left).unwrap();
        held.lock().unwrap();
        remove_left(&folder);
        assert!(left.exists() && child.try_wait().unwrap().is_none(), "another container's");
        drop(held);
        // A program that another test starts just now holds the lock until it is there.
        for _ in 0..1000 {
            remove_left(&folder);
            if !left.exists() && child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let goes_on = [&mut child, &mut other].map(|sleep| sleep.try_wait().unwrap().is_none());
        let _may_be_gone = (child.kill(), other.kill());
        assert_eq!((left.exists(), goes_on), (false, [false, true]));
        for mut sleep in [child, other] {
            sleep.wait().unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
