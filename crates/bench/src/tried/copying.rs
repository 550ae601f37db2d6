//! What copying, comparing and emptying take: of a large file without a name, and of small ones. Those have
//! names, in a folder that is gone afterwards: on overlays a file without a name takes ten times as long as
//! one with a name, and where ext4 has no journal, names are slow where many were removed.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use flatout_sys::{fill_random, monotonic_ns};

use super::nanoseconds;
use crate::{place, scratch};

/// Bytes of the file that is copied, and of each piece of it.
const FILE_BYTES: u64 = 8 << 20;
const PIECE_BYTES: usize = 1 << 20;
/// Small files that are made, compared and emptied, and their length.
const FILES: u32 = 48;
const SMALL_BYTES: usize = 4 << 10;
/// How often each is done: the fastest shows what the place does, undisturbed.
const TURNS: u32 = 3;
/// What took so long is not repeated.
const LONG_NS: f64 = 5e7;

/// The least of a few, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copying {
    /// A byte of a file that lies in memory is copied, and the copy is emptied.
    pub byte_ns: f64,
    /// The same where the copy shares the extents of its source, and it is compared: no page of it is in memory,
    /// so that it comes from the device.
    pub shared_byte_ns: f64,
    /// A small file that does is waited for besides.
    pub shared_entry_ns: f64,
    /// A byte of a copy that lies in memory is held against its source.
    pub compared_byte_ns: f64,
    /// A small file is made with its attributes, and emptied.
    pub made_ns: f64,
    /// The same, and it is compared.
    pub entry_ns: f64,
}

impl Copying {
    /// On a virtual machine with 2 CPUs of a Xeon, ext4, 2026-11-22, a round of 16 trees with 1.2 GiB in 5,100
    /// files took 1.3 s, on 2 vCPUs of an AMD EPYC 0.9 to 1.0 s (2026-11-26); this says 1.1 s.
    pub(super) const USUAL: Self = Self {
        byte_ns: 0.4,
        shared_byte_ns: 0.58,
        shared_entry_ns: 0.0,
        compared_byte_ns: 0.18,
        made_ns: 12e3,
        entry_ns: 21.5e3,
    };

    pub(super) fn of(directory: &Path) -> Option<Self> {
        let mut piece = vec![0; PIECE_BYTES];
        fill_random(&mut piece, 1, 0);
        let open = || scratch::open_unnamed(directory).ok();
        let (source, small) = (open()?, open()?);
        for at in 0..FILE_BYTES / PIECE_BYTES as u64 {
            source.write_all_at(&piece, at * PIECE_BYTES as u64).ok()?;
        }
        small.write_all_at(&piece[..SMALL_BYTES], 0).ok()?;
        let (mut from, mut to) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
        let copy_ns = fastest_ns(|| {
            let target = open().ok_or(io::ErrorKind::Other)?;
            copy(&source, &target, &mut from)?;
            target.set_len(0)
        })?;
        let compared_ns = fastest_ns(|| compare(&source, &source, (&mut from, &mut to)))?;
        let shared_ns = fastest_ns(|| {
            let target = open().ok_or(io::ErrorKind::Other)?;
            rustix::fs::ioctl_ficlone(&target, &source)?;
            compare(&source, &target, (&mut from, &mut to))?;
            target.set_len(0)
        });
        let shared_ns = shared_ns.unwrap_or(copy_ns + compared_ns);
        let shared_entry_ns = fastest_ns(|| {
            let target = open().ok_or(io::ErrorKind::Other)?;
            rustix::fs::ioctl_ficlone(&target, &small)?;
            target.read_exact_at(&mut from[..SMALL_BYTES], 0)
        });
        let folder = directory.join(place::unused_name(".flatout-tried"));
        let entry = in_folder(&folder, &piece[..SMALL_BYTES]);
        fs::remove_dir_all(&folder).ok()?;
        let (made_ns, entry_ns) = entry.ok()?;
        let of_byte = |ns: f64| ns / FILE_BYTES as f64;
        Some(Self {
            byte_ns: of_byte(copy_ns),
            shared_byte_ns: of_byte(shared_ns),
            shared_entry_ns: shared_entry_ns.unwrap_or(0.0),
            compared_byte_ns: of_byte(compared_ns),
            made_ns,
            entry_ns,
        })
    }
}

fn copy(source: &File, target: &File, piece: &mut [u8]) -> io::Result<()> {
    for at in 0..FILE_BYTES / PIECE_BYTES as u64 {
        source.read_exact_at(piece, at * PIECE_BYTES as u64)?;
        target.write_all_at(piece, at * PIECE_BYTES as u64)?;
    }
    Ok(())
}

/// Reads two files and holds the one against the other.
fn compare(source: &File, target: &File, (from, to): (&mut [u8], &mut [u8])) -> io::Result<()> {
    for at in 0..FILE_BYTES / PIECE_BYTES as u64 {
        source.read_exact_at(from, at * PIECE_BYTES as u64)?;
        target.read_exact_at(to, at * PIECE_BYTES as u64)?;
        if from != to {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}

/// Small files below a folder that lies as targets do: making and emptying one, and with the comparison.
fn in_folder(folder: &Path, content: &[u8]) -> io::Result<(f64, f64)> {
    fs::create_dir(folder)?;
    place::spread_directories_of(folder);
    let source = folder.join("source");
    fs::write(&source, content)?;
    let mut least = (f64::INFINITY, f64::INFINITY);
    for turn in 0..TURNS {
        // Each turn has a directory of its own, which may lie where many files were removed.
        let below = folder.join(format!("turn-{turn}"));
        fs::create_dir(&below)?;
        let (mut made_ns, mut entry_ns, mut files) = (0, 0, 0);
        while files < FILES && (entry_ns as f64) < LONG_NS {
            let path = below.join(format!("file-{files}"));
            let times =
                [monotonic_ns(), make(&path, content)?, look(&source, &path)?, empty(&path)?];
            made_ns += times[1] - times[0] + times[3] - times[2];
            entry_ns += times[3] - times[0];
            files += 1;
        }
        let of_file = |ns: u64| ns as f64 / f64::from(files);
        if of_file(entry_ns) < least.1 {
            least = (of_file(made_ns), of_file(entry_ns));
        }
        if files < FILES {
            break;
        }
    }
    Ok(least)
}

fn make(path: &Path, content: &[u8]) -> io::Result<u64> {
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.set_times(FileTimes::new().set_modified(SystemTime::now()))?;
    drop(file);
    Ok(monotonic_ns())
}

/// Holds a file against another, as far as it costs time.
fn look(source: &Path, path: &Path) -> io::Result<u64> {
    for path in [source, path] {
        fs::symlink_metadata(path)?;
        rustix::fs::llistxattr(path, &mut [0_u8; 0]).unwrap_or(0);
        File::open(path)?.read_exact(&mut [0; SMALL_BYTES])?;
    }
    Ok(monotonic_ns())
}

fn empty(path: &Path) -> io::Result<u64> {
    File::options().write(true).open(path)?.set_len(0)?;
    Ok(monotonic_ns())
}

/// The time of the fastest turn of some work.
fn fastest_ns(mut work: impl FnMut() -> io::Result<()>) -> Option<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..TURNS {
        least = least.min(nanoseconds(|| work().ok())?);
        if least > LONG_NS {
            break;
        }
    }
    Some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_leaves_nothing_and_takes_time_for_everything() {
        let directory = tempfile::tempdir().unwrap();
        let tried = Copying::of(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let Copying {
            byte_ns,
            shared_byte_ns,
            shared_entry_ns: _,
            compared_byte_ns,
            made_ns,
            entry_ns,
        } = tried;
        let all = [byte_ns, shared_byte_ns, compared_byte_ns, made_ns, entry_ns - made_ns];
        assert!(all.iter().all(|&ns| ns > 0.0 && ns < 60e9), "{tried:?}");
        assert_eq!(Copying::of(&directory.path().join("missing")), None);
    }
}
