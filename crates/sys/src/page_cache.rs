//! What of a file the page cache holds, and making it let go.
//!
//! cachestat(2) answers since Linux 6.5; before that, and on overlays, mincore(2) on a mapping does,
//! which knows nothing of dirty pages. `POSIX_FADV_DONTNEED` leaves dirty pages where they are: hence the
//! write-back first, and the proof after.

use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::{io, ptr};

use rustix::fs::{Advice, Mode, OFlags, SeekFrom, fadvise, fdatasync, fstat, open, seek};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use crate::attribute;
use crate::cause::answered;
use crate::descriptor::itself;
use crate::filesystem::{self, Nature};
use crate::region::huge_page_bytes;

/// The number of cachestat(2): one for all architectures, as every call since Linux 5.1.
const SYS_CACHESTAT: libc::c_long = 451;

/// What the page cache holds of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheState {
    /// Bytes in the cache, in whole pages.
    pub cached_bytes: u64,
    /// Bytes of these that wait to be written; `None` when only mincore could be asked.
    pub dirty_bytes: Option<u64>,
}

#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Answer {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// What the page cache holds of `length_bytes` from `offset_bytes` on.
///
/// Errors: `EPERM` or `ENOSYS` when neither call tells this process the truth about the file.
/// Cost: one cachestat, which walks the range's folios; else mmap, mincore and munmap.
pub fn state(
    descriptor: BorrowedFd<'_>,
    offset_bytes: u64,
    length_bytes: u64,
) -> io::Result<CacheState> {
    if length_bytes == 0 {
        return Ok(CacheState { cached_bytes: 0, dirty_bytes: Some(0) });
    }
    let range = CachestatRange { offset: offset_bytes, length: length_bytes };
    let mut answer = Answer::default();
    // SAFETY: both pointers are to live values laid out as cachestat(2) defines them.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, descriptor.as_raw_fd(), &raw const range, &raw mut answer, 0)
    };
    let is_overlay =
        || filesystem::of(descriptor).is_ok_and(|found| found.nature == Nature::Overlay);
    if result == 0 && answer.cached == 0 && is_overlay() {
        // cachestat(2) knows none of an overlay (Linux 6.18): they are of the file below, to which only a
        // mapping leads.
        return match mincore_is_true(descriptor) {
            true => resident(descriptor, offset_bytes, length_bytes),
            false => Err(io::Error::from_raw_os_error(libc::EPERM)),
        };
    }
    if result == 0 {
        let page = page_size() as u64;
        return Ok(CacheState {
            cached_bytes: answer.cached * page,
            dirty_bytes: Some((answer.dirty + answer.writeback) * page),
        });
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP) if mincore_is_true(descriptor) => {
            resident(descriptor, offset_bytes, length_bytes)
        }
        _ => Err(error),
    }
}

/// What the page cache holds of `SAMPLES` pieces that are spread over a long file, where it holds
/// all of each: enough to choose how to read, and no proof. None where it does not, the file is
/// short or nobody tells.
///
/// Cost: that of [`state`] for 2 MiB. One of 1 GiB in folios of 4 KiB takes 6 ms.
pub fn all_samples(descriptor: BorrowedFd<'_>, length_bytes: u64) -> Option<CacheState> {
    const SAMPLES: u64 = 32;
    const SAMPLE_BYTES: u64 = 64 << 10;
    let step = length_bytes / SAMPLES;
    let mut all = CacheState { cached_bytes: 0, dirty_bytes: Some(0) };
    for index in (0..SAMPLES).filter(|_| step >= 16 * SAMPLE_BYTES) {
        let offset = index * step / SAMPLE_BYTES * SAMPLE_BYTES;
        let sample = state(descriptor, offset, SAMPLE_BYTES).ok()?;
        if sample.cached_bytes < SAMPLE_BYTES {
            return None;
        }
        all.cached_bytes += sample.cached_bytes;
        all.dirty_bytes = all.dirty_bytes.zip(sample.dirty_bytes).map(|(all, more)| all + more);
    }
    (all.cached_bytes > 0).then_some(all)
}

/// Whether mincore(2) tells the truth about a file: since Linux 5.2 it calls every page resident
/// for those who neither own the file nor may write to it.
fn mincore_is_true(descriptor: BorrowedFd<'_>) -> bool {
    let owned =
        fstat(descriptor).is_ok_and(|facts| facts.st_uid == rustix::process::geteuid().as_raw());
    owned || rustix::fs::access(itself(descriptor), rustix::fs::Access::WRITE_OK).is_ok()
}

/// The same file with a position of its own, which looking for holes moves.
fn opened_again(descriptor: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    open(itself(descriptor), OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
}

/// Bytes asked of mincore at a time, so that its answer vector stays small.
const MINCORE_WINDOW_BYTES: u64 = 1 << 30;

/// What mincore(2) tells of a range. Holes are passed over: the kernel would look for each of their
/// pages, for seconds where it is 1 TiB.
fn resident(descriptor: BorrowedFd<'_>, offset: u64, length: u64) -> io::Result<CacheState> {
    let page = page_size() as u64;
    let mut cached_bytes = 0;
    let end = offset.saturating_add(length);
    let mut start = offset - offset % page;
    let holes = fstat(descriptor)
        .is_ok_and(|facts| facts.st_blocks.saturating_mul(512) < facts.st_size)
        .then(|| opened_again(descriptor).ok())
        .flatten();
    while start < end {
        let mut until = end;
        if let Some(file) = &holes {
            match pages_of_data(file, start, page) {
                Ok(pages) => (start, until) = (pages.start, until.min(pages.end)),
                Err(Errno::NXIO) => break,
                Err(_) => {}
            }
            if start >= until {
                break;
            }
        }
        let window = (until - start).min(MINCORE_WINDOW_BYTES);
        let mut pages = vec![0_u8; window.div_ceil(page) as usize];
        let length = window as usize;
        // SAFETY: a new mapping at an address of the kernel's choice is asked about, never read,
        // and removed; the vector has one byte per page.
        let answer = unsafe {
            // FUSE refuses shared mappings of files that it reads around the cache. What cannot be mapped
            // at all tells nothing.
            let (access, flags) = (ProtFlags::READ, MapFlags::PRIVATE);
            let address = mmap(ptr::null_mut(), length, access, flags, descriptor, start)
                .map_err(|_| Errno::OPNOTSUPP)?;
            let answer = answered(libc::mincore(address, length, pages.as_mut_ptr()));
            munmap(address, length)?;
            answer
        };
        answer?;
        cached_bytes += pages.iter().filter(|&&page| page & 1 == 1).count() as u64 * page;
        start += window;
    }
    Ok(CacheState { cached_bytes, dirty_bytes: None })
}

/// The next pages with data, from the beginning of a page on. Where blocks are smaller than pages, the
/// first of them may begin with a hole.
fn pages_of_data(file: &OwnedFd, start: u64, page: u64) -> rustix::io::Result<Range<u64>> {
    let data = seek(file, SeekFrom::Data(start))?;
    let hole = seek(file, SeekFrom::Hole(data))?;
    Ok(data - data % page..hole.next_multiple_of(page))
}

/// Pages that the readahead of an earlier read is still filling cannot be dropped; a moment later
/// they can.
const MAX_ATTEMPTS: u32 = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Waits until storage has what is dirty of a file.
pub fn write_back(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    match fdatasync(descriptor) {
        // Special files that cannot be synced have nothing to write back.
        Ok(()) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes back and drops the cached pages of the first `length_bytes` (0: of all) and a little beyond them,
/// and tells what is still there of them afterwards. Files on memory filesystems keep all their pages.
///
/// Cost: fdatasync, posix_fadvise, cachestat; up to five times the last two where pages stay.
pub fn evict(descriptor: BorrowedFd<'_>, length_bytes: u64) -> io::Result<CacheState> {
    write_back(descriptor)?;
    // Pages lie in folios of up to a huge page; one that reaches beyond a range is not dropped with it.
    let whole = length_bytes.checked_next_multiple_of(huge_page_bytes() as u64);
    let length = whole.filter(|&bytes| bytes < 1 << 62).and_then(std::num::NonZeroU64::new);
    let end = if length_bytes == 0 { fstat(descriptor)?.st_size as u64 } else { length_bytes };
    let mut attempt = 0;
    loop {
        fadvise(descriptor, 0, length, Advice::DontNeed)?;
        let left = state(descriptor, 0, end)?;
        attempt += 1;
        if left.cached_bytes == 0 || attempt == MAX_ATTEMPTS {
            return Ok(left);
        }
        crate::thread::sleep(PAUSE);
    }
}

/// Has the kernel begin to write what is dirty of a range (`length_bytes` 0: to the end), and does
/// not wait for it.
///
/// Errors: those of sync_file_range(2); the end of the writing is reported by fsync, syncfs and [`written_back`].
pub fn begin_writeback(
    file: BorrowedFd<'_>,
    offset_bytes: u64,
    length_bytes: u64,
) -> io::Result<()> {
    let range = (offset_bytes as libc::off64_t, length_bytes as libc::off64_t);
    sync_range(file, range, libc::SYNC_FILE_RANGE_WRITE)
}

/// Hears whether storage refused what the kernel has written of a file since it was opened. Waits for
/// nothing: the range that is named lies behind the end.
///
/// Errors: what storage said (Linux 4.13).
pub fn written_back(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let answer = sync_range(file, (i64::MAX, 0), libc::SYNC_FILE_RANGE_WAIT_BEFORE);
    let errno = answer.err().and_then(|error| Errno::from_io_error(&error));
    // No such call, or none for such a file.
    let says_nothing = [Errno::NOSYS, Errno::PERM, Errno::INVAL, Errno::SPIPE];
    errno.filter(|errno| !says_nothing.contains(errno)).map_or(Ok(()), Err)
}

fn sync_range(
    file: BorrowedFd<'_>,
    (offset, length): (libc::off64_t, libc::off64_t),
    flags: libc::c_uint,
) -> io::Result<()> {
    // SAFETY: plain numbers and an open descriptor; no memory is handed over.
    answered(unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, flags) }).map(drop)
}

/// Bytes that all of the machine made dirty in the page cache since it was started (`nr_dirtied` of
/// `/proc/vmstat`); no process dirtied more.
///
/// Cost: a file of some 200 lines.
pub fn dirtied_bytes(root: &Path) -> Option<u64> {
    let pages = attribute::number_after(&attribute::text(root, "proc/vmstat")?, "nr_dirtied ")?;
    pages.checked_mul(page_size() as u64)
}

/// Pages that all of the machine has written back since it was started (`nr_written` of `/proc/vmstat`).
///
/// Cost: as [`dirtied_bytes`].
pub fn written_pages() -> Option<u64> {
    attribute::number_after(&attribute::text(Path::new("/proc"), "vmstat")?, "nr_written ")
}

/// Drops clean caches of the whole system (`/proc/sys/vm/drop_caches`): 1 page cache, 2 dentries
/// and inodes, 3 both. Needs root; disturbs everybody else on the machine.
pub fn drop_system_caches(mode: u8) -> io::Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", format!("{mode}\n"))
}

/// Whether this process may drop the system's caches. Nothing is dropped by asking.
pub fn may_drop_system_caches() -> bool {
    std::fs::OpenOptions::new().write(true).open("/proc/sys/vm/drop_caches").is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Seek, Write};
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    fn written(length: usize) -> File {
        let name = format!("flatout-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(&vec![1; length]).unwrap();
        file
    }

    #[test]
    fn a_written_file_is_cached_and_mincore_agrees() {
        let file = written(1 << 20);
        let state = state(file.as_fd(), 0, 1 << 20).unwrap();
        assert_eq!(state.cached_bytes, 1 << 20);
        assert_eq!(resident(file.as_fd(), 0, 1 << 20).unwrap().cached_bytes, 1 << 20);
    }

    #[test]
    fn mincore_passes_over_holes_and_moves_no_position() {
        let mut file = written(1 << 20);
        file.set_len(1 << 43).unwrap();
        let (at, page) = (1 << 42, page_size() as u64);
        file.write_all_at(&vec![1; 2 * page as usize + 1], at).unwrap();
        // Minutes, if each page was looked for.
        let held = resident(file.as_fd(), 0, 1 << 43).unwrap().cached_bytes;
        assert_eq!(held, (1 << 20) + 3 * page);
        let held = resident(file.as_fd(), at + page, 1 << 42).unwrap().cached_bytes;
        assert_eq!(held, 2 * page);
        assert_eq!(file.stream_position().unwrap(), 1 << 20);
    }

    #[test]
    fn a_page_that_begins_with_a_hole_is_one_with_data() {
        const PAGE: u64 = 64 << 10;
        let file = written(0);
        file.set_len(4 * PAGE).unwrap();
        file.write_all_at(&[1; 4096], PAGE + 8192).unwrap();
        if seek(&file, SeekFrom::Data(0)) != Ok(PAGE + 8192) {
            return eprintln!("skipped: blocks here are larger");
        }
        let file = OwnedFd::from(file);
        for start in [0, PAGE] {
            assert_eq!(pages_of_data(&file, start, PAGE), Ok(PAGE..2 * PAGE), "from {start} on");
        }
        assert_eq!(pages_of_data(&file, 2 * PAGE, PAGE), Err(Errno::NXIO));
    }

    #[test]
    fn samples_of_a_long_file_are_all_there_or_none() {
        let file = written(32 << 20);
        let all = all_samples(file.as_fd(), 32 << 20).unwrap();
        assert_eq!(all.cached_bytes, 2 << 20);
        assert_eq!(
            all_samples(file.as_fd(), (32 << 20) - 32),
            None,
            "short: it is asked as a whole"
        );
        assert_eq!(all_samples(file.as_fd(), 64 << 20), None, "half of it is not there");
    }

    #[test]
    fn of_a_range_only_that_is_written_back() {
        let file = written(2 << 20);
        if filesystem::of(file.as_fd()).unwrap().in_memory {
            return eprintln!("skipped: memory is not written back");
        }
        begin_writeback(file.as_fd(), 0, 1 << 20).unwrap();
        // Nobody waits here: others may write the rest back at any time, but nothing is lost.
        assert_eq!(state(file.as_fd(), 0, 2 << 20).unwrap().cached_bytes, 2 << 20);
        assert!(begin_writeback(file.as_fd(), u64::MAX, 1).is_err());
    }

    #[test]
    fn what_was_dirtied_is_a_counter_of_pages() {
        let tree = crate::fixture::Tree::new(&[("proc/vmstat", "nr_dirty 5\nnr_dirtied 7\n")]);
        assert_eq!(dirtied_bytes(tree.root()), Some(7 * page_size() as u64));
        assert_eq!(dirtied_bytes(Path::new("/nonexistent")), None);
    }

    #[test]
    fn eviction_of_a_part_that_ends_within_a_page_or_a_folio_leaves_nothing_of_it() {
        let file = written(6 << 20);
        if filesystem::of(file.as_fd()).unwrap().in_memory {
            return eprintln!("skipped: memory keeps its pages");
        }
        for length_bytes in [1, 4096, 1_000_000, 3 << 20] {
            file.write_all_at(&vec![2; 6 << 20], 0).unwrap();
            let left = evict(file.as_fd(), length_bytes).unwrap();
            assert_eq!(left.cached_bytes, 0, "of {length_bytes} bytes");
        }
    }

    #[test]
    fn eviction_writes_back_first_and_says_what_is_left() {
        let file = written(2 << 20);
        let left = evict(file.as_fd(), 2 << 20).unwrap();
        let kind = filesystem::of(file.as_fd()).unwrap();
        let expected = if kind.in_memory { 2 << 20 } else { 0 };
        assert_eq!(left.cached_bytes, expected, "on {}", kind.name);
    }
}
