//! What an open file holds: its bytes at a place, and where they are.

use std::borrow::Borrow;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flatout_io::unless_interrupted;
pub(crate) use flatout_sys::cause::errno_of;
pub(crate) use flatout_sys::descriptor::itself;
use flatout_sys::filesystem::{self, Filesystem, Nature};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, SeekFrom, Stat, StatxAttributes, StatxFlags, seek,
};
use rustix::io::Errno;
use rustix::path::Arg;

/// What lseek(2) says where a filesystem does not know of holes.
const NO_HOLES: [Errno; 3] = [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS];

/// Why there are fewer bytes of a file than there must be ([`has_whole_files`]).
pub(crate) const ENDED_EARLY: &str = "it ended before the end that its length tells";

/// Whether this kernel keeps the files in its page cache, writes into it what comes out of a pipe, takes
/// what lies behind the end as well as what comes next, and alone knows how long a file is.
pub(crate) fn is_paged(side: &Filesystem) -> bool {
    matches!(side.name, "ext4" | "xfs" | "btrfs" | "tmpfs")
}

/// Whether a file that ends before its length was cut off on its way here, maybe below an overlay. Files that
/// the kernel makes up (/proc, /sys) say how long they might be.
pub(crate) fn has_whole_files(side: &Filesystem) -> bool {
    is_paged(side) || side.nature != Nature::Memory
}

/// Room that a file has; `st_blocks` counts in such units, whatever the block size of the filesystem.
pub(crate) fn room_bytes(facts: &Stat) -> u64 {
    (facts.st_blocks as u64).saturating_mul(512)
}

/// Whether a file takes less room than its length, so that it may have holes.
pub(crate) fn is_sparse(facts: &Stat) -> bool {
    room_bytes(facts) < facts.st_size as u64
}

/// Whether there are no data where a filesystem says that there are none. Programs that serve files are wrong
/// about that, and the kernel asks them before they have got what it was given to write (`fuse_lseek`, Linux 6.18).
pub(crate) fn tells_holes(side: &Filesystem) -> bool {
    side.nature != Nature::Userspace && side.name != "unknown"
}

/// Whether an open file may have holes, and shows where.
///
/// Cost: none for most files; else an fstatfs.
pub(crate) fn shows_its_holes(file: BorrowedFd<'_>, facts: &Stat) -> bool {
    is_sparse(facts) && filesystem::of(file).is_ok_and(|side| tells_holes(&side))
}

/// What something is, by what the kernel says of it.
pub(crate) fn kind_of(facts: impl Borrow<Stat>) -> FileType {
    FileType::from_raw_mode(facts.borrow().st_mode)
}

/// What is new and nobody else has opened, for its maker to write and read.
pub(crate) const NEW: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What bears a name; of a symlink, not of what it leads to.
pub(crate) fn look(directory: impl AsFd, name: impl Arg) -> Result<Stat, Errno> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The same; `None`: nothing bears it.
pub(crate) fn find(directory: impl AsFd, name: impl Arg) -> Result<Option<Stat>, Errno> {
    match look(directory, name) {
        Err(Errno::NOENT) => Ok(None),
        found => found.map(Some),
    }
}

/// Whether an open file has an attribute of which statx(2) tells.
pub(crate) fn has_attribute(file: BorrowedFd<'_>, attribute: StatxAttributes) -> bool {
    rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|facts| facts.stx_attributes.contains(attribute))
}

/// The absolute path of an open file, as far as the kernel knows it. Without /proc there is none.
pub(crate) fn path_of(file: impl AsFd) -> Option<Vec<u8>> {
    rustix::fs::readlink(itself(file), Vec::new()).ok().map(CString::into_bytes)
}

/// Opens what bears a name for reading, be it a FIFO, which does not block; a symlink is not followed.
pub(crate) fn open(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open_unseen(directory, name, flags | OFlags::NOATIME)
}

/// Opens something; where it is somebody else's, its access time may change (open(2)).
pub(crate) fn open_unseen(
    at: BorrowedFd<'_>,
    name: impl Arg + Copy,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat(at, name, flags, Mode::empty()) {
        Err(Errno::PERM) if flags.contains(OFlags::NOATIME) => {
            rustix::fs::openat(at, name, flags - OFlags::NOATIME, Mode::empty())
        }
        opened => opened,
    }
}

/// Whether an open directory has no name any more, so that it cannot be listed.
pub(crate) fn is_removed(directory: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(directory).is_ok_and(|facts| facts.st_nlink == 0)
}

/// Opens an open file once more, in another way: the link of /proc leads to the inode, not to its name.
pub(crate) fn reopen(file: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(itself(file), flags | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Cuts an open file off, or makes it longer by a hole.
pub(crate) fn set_length(file: BorrowedFd<'_>, length_bytes: u64) -> Result<(), Errno> {
    unless_interrupted(|| rustix::fs::ftruncate(file, length_bytes))
}

/// Where data begins at or after `place`, and where it ends; `None`: nowhere before `length`. Where the filesystem
/// does not tell, everything is data.
pub(crate) fn next_extent(
    file: BorrowedFd<'_>,
    place: u64,
    length: u64,
) -> Result<Option<(u64, u64)>, Errno> {
    let data = match seek(file, SeekFrom::Data(place)) {
        Err(Errno::NXIO) => length,
        Err(errno) if NO_HOLES.contains(&errno) => place,
        found => found?.max(place),
    };
    if data >= length {
        return Ok(None);
    }
    let hole = match seek(file, SeekFrom::Hole(data)) {
        // It became shorter between the two calls, or nobody knows; reading finds out where it ends.
        Err(errno) if errno == Errno::NXIO || NO_HOLES.contains(&errno) => length,
        found => found?.min(length),
    };
    Ok(Some((data, if hole > data { hole } else { length })))
}

/// When something was looked at, by the clock of the filesystems.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// How long after that time it is.
    pub(crate) fn since(self, time: Duration) -> Duration {
        self.0.saturating_sub(time)
    }

    /// Whether it is so early after the last change of a file that the next one may have the same time.
    fn is_within_a_step(self, facts: &Stat) -> bool {
        /// The longest tick, and another one that came late.
        const TICKS: Duration = Duration::from_millis(20);
        if facts.st_ctime_nsec == 0 {
            return !self.is_after(facts.st_ctime, Duration::from_secs(1));
        }
        let second = Duration::from_secs(u64::try_from(facts.st_ctime).unwrap_or(0));
        self.0 <= second + Duration::from_nanos(facts.st_ctime_nsec) + TICKS
    }

    /// Whether it is later than a time by more than this.
    fn is_after(self, second: i64, more: Duration) -> bool {
        let before = Duration::from_secs(u64::try_from(second).unwrap_or(0));
        self.0 > before + Duration::from_secs(1) + more
    }
}

/// Whether an open file that was looked at in a moment may be changed after it and have the same times: its
/// filesystem counts in seconds, in steps of two, or in ticks of the kernel's clock.
pub(crate) fn may_change_unseen(file: &OwnedFd, facts: &Stat, moment: Moment) -> bool {
    let may = moment.is_within_a_step(facts);
    let times_each = || filesystem::of(file.as_fd()).is_ok_and(|home| home.times_each_change());
    may && (facts.st_ctime_nsec == 0 || !times_each())
}

/// What an open file is now; a look at a short file spares other hosts and programs the question.
pub(crate) fn look_again(file: &OwnedFd, before: &Stat) -> Result<Stat, Errno> {
    const LONG_BYTES: i64 = 64 << 10;
    if rustix::fs::major(before.st_dev) != 0 || before.st_size < LONG_BYTES {
        return rustix::fs::fstat(file);
    }
    ask_again(file, before)
}

/// What an open file is now. Of what other hosts and programs serve the kernel may remember what it was
/// some time ago.
pub(crate) fn ask_again(file: &OwnedFd, before: &Stat) -> Result<Stat, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let now = rustix::fs::statx(file, c"", flags, StatxFlags::BASIC_STATS)?;
    let mut after = *before;
    after.st_size = now.stx_size as _;
    (after.st_mtime, after.st_mtime_nsec) = (now.stx_mtime.tv_sec as _, now.stx_mtime.tv_nsec as _);
    (after.st_ctime, after.st_ctime_nsec) = (now.stx_ctime.tv_sec as _, now.stx_ctime.tv_nsec as _);
    Ok(after)
}

/// Waits until a write(2) is over that was under way when a source was looked at. It has set the times
/// before its bytes, so that no later look tells what was read in between. ext4, btrfs and tmpfs take the lock
/// that a writer holds to answer where data begins (`ext4_llseek`, Linux 6.18); xfs takes it to read. One call
/// takes at most 2 GiB, and is over soon where it takes less than this.
pub(crate) fn wait_for_a_write(file: &OwnedFd, facts: &Stat, moment: Moment) {
    const SOON_BYTES: i64 = 64 << 10;
    const SOON: Duration = Duration::from_secs(2);
    if facts.st_size < SOON_BYTES && moment.is_after(facts.st_ctime, SOON) {
        return;
    }
    // What is read and written without an offset begins where this leaves the file.
    if seek(file, SeekFrom::Data(0)).is_ok_and(|data| data > 0) {
        let _it_can_be_sought_in = seek(file, SeekFrom::Start(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_tell_no_change_within_them() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut facts = rustix::fs::fstat(file.as_file()).unwrap();
        (facts.st_ctime, facts.st_ctime_nsec) = (1_000, 0);
        let at = |second| Moment(Duration::from_secs(second) + Duration::from_millis(1));
        let told = [999, 1_000, 1_001, 1_002].map(|second| !at(second).is_within_a_step(&facts));
        assert_eq!(told, [false, false, false, true]);
    }

    #[test]
    fn no_files_but_those_of_the_kernel_end_before_their_length() {
        let has_whole = |name| {
            let (nature, in_memory) = (Nature::named(name), false);
            let [free_bytes, size_bytes, used_bytes] = [0; 3];
            let facts = Filesystem { name, nature, in_memory, free_bytes, size_bytes, used_bytes };
            has_whole_files(&facts)
        };
        for name in ["ext4", "tmpfs", "overlay", "vfat", "nfs", "fuse"] {
            assert!(has_whole(name), "{name}");
        }
        assert!(!has_whole("proc") && !has_whole("sysfs"));
    }

    #[test]
    fn a_tick_of_the_clock_tells_no_change_within_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut facts = rustix::fs::fstat(file.as_file()).unwrap();
        (facts.st_ctime, facts.st_ctime_nsec) = (1_000, 5_000_000);
        let at = |ms: u64| Moment(Duration::from_millis(1_000_000 + ms));
        let told = [0, 5, 9, 25, 26].map(|ms| !at(ms).is_within_a_step(&facts));
        assert_eq!(told, [false, false, false, false, true]);
    }
}
