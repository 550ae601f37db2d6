//! Whether a file that has no room beside the one that is there has it in its place.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FallocateFlags, Mode, Stat};
use rustix::io::Errno;

use super::source::Opened;
use crate::copy::{Entry, attributes, kind_of};
use crate::file_data::{self, room_bytes};

/// Reserves the blocks that a file without holes needs to become the source; where that cannot be, it
/// stays as it was.
pub(super) fn has_reserved(file: &OwnedFd, facts: &Stat, opened: &Opened<'_>) -> bool {
    let (held, needed) = (facts.st_size as u64, opened.facts.st_size as u64);
    if held > 0 && file_data::next_extent(file.as_fd(), 0, held) != Ok(Some((0, held))) {
        return false;
    }
    let mut place = held;
    while place < needed {
        let reserved = match file_data::next_extent(opened.file.as_fd(), place, needed) {
            Ok(None) => break,
            Ok(Some((data, hole))) => {
                place = hole;
                rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, data, hole - data)
            }
            Err(errno) => Err(errno),
        };
        if reserved.is_err() {
            let _given_back = rustix::fs::ftruncate(file, held);
            let _as_it_was = rustix::fs::futimens(file, &attributes::timestamps(facts));
            if facts.st_mode & 0o6000 != 0 {
                let _ours_or_not = rustix::fs::fchmod(file, Mode::from_raw_mode(facts.st_mode));
            }
            return false;
        }
    }
    true
}

/// Whether a file that has no room beside the old one may have it in its place: a guess, until its
/// blocks are reserved ([`has_reserved`]).
pub(super) fn has_room_in_place(
    entry: Entry<'_>,
    source: &Stat,
    found: &Stat,
    errno: Errno,
) -> bool {
    let free_bytes = match errno {
        Errno::NOSPC => rustix::fs::fstatvfs(entry.pair.target())
            .map_or(0, |facts| facts.f_bavail.saturating_mul(facts.f_frsize)),
        Errno::DQUOT => 0,
        _ => return false,
    };
    // What is cut off comes free at once where no other file can have it, too.
    let filesystem = flatout_sys::filesystem::of(entry.pair.target());
    let is_own = filesystem.is_ok_and(|found| matches!(found.name, "ext4" | "tmpfs" | "f2fs"));
    let is_regular = kind_of(found).is_file();
    let needed = source.st_size as u64;
    // Where there was room enough, and yet there was none, nobody knows.
    let is_clear = is_own && (errno == Errno::DQUOT || free_bytes < needed);
    is_regular
        && is_clear
        && found.st_nlink == 1
        && needed <= room_bytes(found).saturating_add(free_bytes)
}
