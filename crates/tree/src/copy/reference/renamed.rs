//! Files of snapshots by what they keep when they get another name: size and time. What is found by
//! these is compared byte for byte: they are a hint, no proof.
//!
//! The snapshots are walked once, when the first file is not found under its path.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{OFlags, Stat};

use crate::directory_stack::{DIRECTORY, DirectoryStack};
use crate::file_data::open_unseen;
use crate::selection::Selection;
use crate::spool::Spool;
use crate::visit::climb;

/// Shorter files are copied: to read two costs as much.
const LEAST_BYTES: u64 = 16 << 10;
/// Files of one size and time that are compared at most.
const MOST_COMPARED: usize = 8;
/// Memory of one file that is known; its path goes to a file when there are many.
const ENTRY_BYTES: u64 = 16;
const SPOOL_BYTES: usize = 64 << 10;

/// What is known of all snapshots, once it is needed.
#[derive(Debug, Default)]
pub(super) struct Renamed(OnceLock<Index>);

#[derive(Debug)]
struct Index {
    /// A key, and where the path begins; sorted.
    files: Vec<(u64, u64)>,
    /// For each: the number of its snapshot, and its path.
    paths: Spool,
}

/// Size and second, which all filesystems keep.
fn key(facts: &Stat) -> u64 {
    (facts.st_size as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ facts.st_mtime as u64
}

impl Renamed {
    /// Paths of files that may be this one, each with the number of its snapshot. `go_on` is asked
    /// while the snapshots are walked.
    pub(super) fn candidates<'r>(
        &self,
        facts: &Stat,
        roots: impl Iterator<Item = &'r OwnedFd>,
        memory_bytes: u64,
        go_on: impl Fn() -> bool,
    ) -> Vec<(usize, Vec<u8>)> {
        if (facts.st_size as u64) < LEAST_BYTES {
            return Vec::new();
        }
        let index = self.0.get_or_init(|| Index::of(roots, memory_bytes / ENTRY_BYTES, go_on));
        let key = key(facts);
        let first = index.files.partition_point(|(known, _)| *known < key);
        let alike = index.files[first..].iter().take_while(|(known, _)| *known == key);
        alike.take(MOST_COMPARED).filter_map(|(_, offset)| index.path(*offset)).collect()
    }
}

impl Index {
    /// What cannot be looked at is not in it, and neither is what is too much for memory: such files
    /// are copied.
    fn of<'r>(
        roots: impl Iterator<Item = &'r OwnedFd>,
        most_files: u64,
        go_on: impl Fn() -> bool,
    ) -> Self {
        let mut index = Self { files: Vec::new(), paths: Spool::new(SPOOL_BYTES) };
        for (number, root) in roots.enumerate() {
            let root = open_unseen(root.as_fd(), c".", DIRECTORY | OFlags::NOATIME);
            let Ok(stack) = root.map_err(Into::into).and_then(DirectoryStack::at) else { continue };
            let _ended_early = climb(stack, &Selection::default(), |entry| {
                if !go_on() || index.files.len() as u64 >= most_files {
                    return Err(std::io::ErrorKind::Interrupted.into());
                }
                if !entry.is_file() || (entry.facts.st_size as u64) < LEAST_BYTES {
                    return Ok(());
                }
                let name = entry.name.to_bytes();
                let between: &[u8] = if entry.above.is_empty() { b"" } else { b"/" };
                let number = (number as u32).to_le_bytes();
                let appended = index.paths.append_record(&[&number, entry.above, between, name]);
                let offset = appended.map_err(|_| std::io::Error::other("no room"))?;
                index.files.push((key(&entry.facts), offset));
                Ok(())
            });
        }
        index.files.sort_unstable();
        index
    }

    fn path(&self, offset: u64) -> Option<(usize, Vec<u8>)> {
        let record = self.paths.record(offset).ok()?;
        let (number, path) = record.split_first_chunk()?;
        Some((u32::from_le_bytes(*number) as usize, path.to_vec()))
    }
}
