//! How fast trees are made, copied, compared and removed here: a little of each is done with files
//! without a name, for what is announced. What becomes of it: `choose.rs`.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flatout_sys::{fill_random, monotonic_ns};

use crate::scratch;
use crate::tried::Tried;

/// Bytes of the file that is copied, and of each piece of it.
const FILE_BYTES: u64 = 8 << 20;
const PIECE_BYTES: usize = 1 << 20;
/// Small files that are made, read and emptied, and their length.
const FILES: u32 = 48;
const SMALL_BYTES: usize = 4 << 10;
/// How often each is done: the fastest shows what the place does, undisturbed.
const TURNS: u32 = 3;
/// A turn that took so long is the last.
const LONG_NS: u64 = 50_000_000;
/// Starting the program, beside what a copy of nothing waits for storage: 2.2 ms on 2 vCPUs of an Emerald
/// Rapids, 2026-11-28.
const START_S: f64 = 2.2e-3;

/// What is done here for a byte, for an entry, and in any case, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// A copy with all around it: the state of the cache, the comparison, the emptying.
    pub(super) byte_s: f64,
    /// A byte of a copy that shares the extents of its source.
    pub(super) shared_byte_s: f64,
    pub(super) entry_s: f64,
    pub(super) trial_s: f64,
    /// Making a tree, until storage has it.
    pub(super) make_byte_s: f64,
    pub(super) make_entry_s: f64,
    /// Removing a file of a tree, and an emptied one of a copy.
    pub(super) remove_file_s: f64,
    pub(super) remove_entry_s: f64,
    /// How many times slower than when it was tried all is.
    pub(super) slowdown: f64,
}

impl Pace {
    /// Where nothing is tried. On a virtual machine with 2 CPUs of a Xeon, ext4, 2026-11-22, a round of 16
    /// trees with 1.2 GiB in 5,100 files took 1.3 s, on 2 vCPUs of an AMD EPYC 0.9 to 1.0 s (2026-11-26);
    /// this says 1.1 s.
    pub(super) const USUAL: Self = Self {
        byte_s: 0.58e-9,
        shared_byte_s: 0.58e-9,
        entry_s: 43e-6,
        trial_s: 5.8e-3,
        make_byte_s: 1.05e-9,
        make_entry_s: 42e-6,
        remove_file_s: 15e-6,
        remove_entry_s: 15e-6,
        slowdown: 1.0,
    };

    /// The same on a machine that is as busy as it is now.
    pub(super) fn usual() -> Self {
        Self { slowdown: Tried::nothing().waiting_slowdown(), ..Self::USUAL }
    }

    /// What a little of the work takes in this directory; the usual where that cannot be done.
    ///
    /// Cost: 0.3 s as a rule; 100 MiB written at most.
    pub(super) fn of(directory: &Path) -> Self {
        Self::tried(directory).unwrap_or_else(Self::usual)
    }

    fn tried(directory: &Path) -> Option<Self> {
        let mut piece = vec![0; PIECE_BYTES];
        fill_random(&mut piece, 1, 0);
        let open = || scratch::open_unnamed(directory).ok();
        // What others have left to be written is not this work's: copies wait for it before they begin.
        let tried = Tried::of(directory, None);
        let source = open()?;
        for at in 0..FILE_BYTES / PIECE_BYTES as u64 {
            source.write_all_at(&piece, at * PIECE_BYTES as u64).ok()?;
        }
        let (mut from, mut to) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
        let mut copied = |copy: fn(&File, &File, &mut [u8]) -> io::Result<()>| {
            fastest(|| {
                let target = open().ok_or(io::ErrorKind::Other)?;
                copy(&source, &target, &mut from)?;
                compare(&source, &target, (&mut from, &mut to))?;
                target.set_len(0)
            })
        };
        let copy_s = copied(copy)?;
        let share = |source: &File, target: &File, _: &mut [u8]| {
            rustix::fs::ioctl_ficlone(target, source).map_err(io::Error::from)
        };
        let shared_s = copied(share).unwrap_or(copy_s);
        let small_s = fastest(|| {
            for _ in 0..FILES {
                let mut file = open().ok_or(io::ErrorKind::Other)?;
                file.write_all(&piece[..SMALL_BYTES])?;
                file.read_exact_at(&mut to[..SMALL_BYTES], 0)?;
                file.set_len(0)?;
            }
            Ok(())
        })?;
        let entry_s = small_s / f64::from(FILES);
        Some(Self {
            byte_s: copy_s / FILE_BYTES as f64,
            shared_byte_s: shared_s / FILE_BYTES as f64,
            entry_s,
            trial_s: START_S + tried.settle_ns / 1e9,
            // Trees are written for longer than what is tried: storage that is quick for a moment is as usual.
            make_byte_s: (tried.making_byte_ns / 1e9).max(Self::USUAL.make_byte_s),
            make_entry_s: entry_s,
            remove_file_s: tried.removing_file_ns / 1e9,
            remove_entry_s: Self::USUAL.remove_entry_s,
            slowdown: tried.waiting_slowdown(),
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

fn compare(one: &File, other: &File, (from, to): (&mut [u8], &mut [u8])) -> io::Result<()> {
    for at in 0..FILE_BYTES / PIECE_BYTES as u64 {
        one.read_exact_at(from, at * PIECE_BYTES as u64)?;
        other.read_exact_at(to, at * PIECE_BYTES as u64)?;
        if from != to {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}

/// The time of the fastest turn of some work.
fn fastest(mut work: impl FnMut() -> io::Result<()>) -> Option<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..TURNS {
        least = least.min(seconds(&mut work)?);
        if least * 1e9 > LONG_NS as f64 {
            break;
        }
    }
    Some(least)
}

fn seconds(work: impl FnOnce() -> io::Result<()>) -> Option<f64> {
    let begun_ns = monotonic_ns();
    work().ok()?;
    Some((monotonic_ns() - begun_ns) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_leaves_nothing_and_takes_time_for_everything() {
        let directory = tempfile::tempdir().unwrap();
        let pace = Pace::tried(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let Pace { byte_s, shared_byte_s, entry_s, trial_s, make_byte_s, .. } = pace;
        let all = [byte_s, shared_byte_s, entry_s, trial_s - START_S, make_byte_s];
        assert!(all.iter().all(|&seconds| seconds > 0.0 && seconds < 60.0), "{pace:?}");
        let nowhere = Pace::of(&directory.path().join("missing"));
        assert_eq!(Pace { slowdown: 1.0, ..nowhere }, Pace::USUAL);
    }
}
