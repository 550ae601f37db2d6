//! How much memory a program may still take, and how much of it waits for storage.

use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

use crate::attribute::{kib_after, whole};
use crate::numa;
use crate::quota::Groups;
use crate::resource_limit::{Resource, soft_limit};

/// Bytes that this process can have without swapping and without meeting the limit of a control
/// group, which ends processes; `None` if unknown.
///
/// Cost: some small files of /proc and of the control groups are read.
pub fn available_bytes() -> Option<u64> {
    let group_bytes = Groups::discover(Path::new("/")).memory_left_bytes();
    [machine_available_bytes(), group_bytes].into_iter().flatten().min()
}

/// Bytes that the machine has without swapping (`MemAvailable` of /proc/meminfo, or less: what nobody
/// uses at all, or what the nodes have that this process may use); `None` if unknown.
pub fn machine_available_bytes() -> Option<u64> {
    let meminfo = whole(Path::new("/proc/meminfo"));
    let available = meminfo.and_then(|text| kib_after(&text, "MemAvailable:"));
    let available = available.or_else(|| unused_bytes(&Groups::discover(Path::new("/"))));
    available.into_iter().chain(numa::allowed_free_bytes(Path::new("/"))).min()
}

/// What sysinfo(2) says where /proc is hidden; `None` where a limit of the control group may be hidden, too,
/// which ends who exceeds it.
fn unused_bytes(groups: &Groups) -> Option<u64> {
    let mut system = MaybeUninit::<libc::sysinfo>::uninit();
    // SAFETY: the call writes a whole `sysinfo`, or fails.
    let is_told = unsafe { libc::sysinfo(system.as_mut_ptr()) } == 0;
    // SAFETY: a call that returned 0 has written it.
    let system = is_told.then(|| unsafe { system.assume_init() })?;
    groups.tell_memory().then(|| system.freeram.saturating_mul(u64::from(system.mem_unit)))
}

/// The limits on what a process may map (`ulimit -v`, `ulimit -d`), and which number of
/// /proc/self/statm says how many pages count towards each: all; what is private and can be written,
/// the stack included.
const MAPPING_LIMITS: [(Resource, usize); 2] = [(Resource::As, 0), (Resource::Data, 5)];

/// Bytes that this process may still map (`RLIMIT_AS`, `RLIMIT_DATA`); `None` without a limit, or
/// where it is not known what is mapped.
pub fn address_space_left_bytes() -> Option<u64> {
    let limits =
        MAPPING_LIMITS.map(|(resource, member)| soft_limit(resource).map(|most| (most, member)));
    limits.iter().flatten().next()?;
    let statm = whole(Path::new("/proc/self/statm"))?;
    let page_bytes = rustix::param::page_size() as u64;
    let left = |(most, member): (u64, usize)| {
        Some(most.saturating_sub(mapped_pages(&statm, member)?.saturating_mul(page_bytes)))
    };
    limits.into_iter().flatten().filter_map(left).min()
}

/// What a new thread takes of the addresses of its process: its stack, and some for what it and the others
/// allocate before it is known whether there is more. Where that is not there, the standard library aborts.
const THREAD_BYTES: u64 = 4 << 20;

/// Whether there are addresses for another thread; asked by whoever starts one.
///
/// # Errors
/// There are too few (`ulimit -v`, `ulimit -d`).
pub fn room_for_thread() -> io::Result<()> {
    room_for(THREAD_BYTES, address_space_left_bytes())
}

/// What rows need of the addresses beside their threads, for buffers, histograms and their record: with 9 MiB
/// `bench disk` was aborted for want of 264 KiB, with 15 `bench cpu` for want of 1.2 MiB, with 25 neither (Linux
/// 6.18, x86-64, 2026-11-28).
const MEASURING_BYTES: u64 = 24 << 20;

/// Whether there are addresses for measuring; asked once, before it begins.
///
/// # Errors
/// There are too few (`ulimit -v`, `ulimit -d`).
pub fn room_to_measure() -> io::Result<()> {
    room_for(MEASURING_BYTES, address_space_left_bytes())
}

fn room_for(needed_bytes: u64, left_bytes: Option<u64>) -> io::Result<()> {
    match left_bytes.filter(|left_bytes| *left_bytes < needed_bytes) {
        None => Ok(()),
        Some(left_bytes) => Err(io::Error::other(format!(
            "{} KiB of addresses are needed, and ulimit leaves {}",
            needed_bytes >> 10,
            left_bytes >> 10
        ))),
    }
}

/// Keeps threads that allocate from now on from reserving addresses of their own, where addresses
/// are limited. glibc reserves 64 MiB for each thread, and 128 MiB for a moment, which count
/// towards `RLIMIT_AS` though nothing lies there (malloc/arena.c of glibc 2.41, `HEAP_MAX_SIZE`).
pub fn share_addresses_of_threads() {
    #[cfg(target_env = "gnu")]
    if address_space_left_bytes().is_some() {
        // SAFETY: mallopt(3) may be called at any time, by any thread; a refusal changes nothing.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// A number of /proc/self/statm.
fn mapped_pages(statm: &str, member: usize) -> Option<u64> {
    statm.split_whitespace().nth(member)?.parse().ok()
}

/// Bytes of files, of all programs together, that storage does not have yet (`Dirty` and
/// `Writeback` of /proc/meminfo); `None` if unknown.
pub fn unwritten_bytes() -> Option<u64> {
    unwritten(&whole(Path::new("/proc/meminfo"))?)
}

/// What `/proc/PROCESS/status` says of the memory of a process, a number or `self`, for example
/// `VmRSS:`; `None` if unknown.
pub fn process_bytes(process: &str, member: &str) -> Option<u64> {
    kib_after(&whole(format!("/proc/{process}/status").as_ref())?, member)
}

fn unwritten(meminfo: &str) -> Option<u64> {
    kib_after(meminfo, "Dirty:")?.checked_add(kib_after(meminfo, "Writeback:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_refused_where_addresses_are_short() {
        assert!(room_for(4 << 20, None).is_ok() && room_for(4 << 20, Some(4 << 20)).is_ok());
        let why = room_for(4 << 20, Some(800 << 10)).unwrap_err().to_string();
        assert_eq!(why, "4096 KiB of addresses are needed, and ulimit leaves 800");
    }

    #[test]
    fn all_that_is_mapped_comes_first_and_what_can_be_written_last_but_one() {
        let pages = |statm| MAPPING_LIMITS.map(|(_, member)| mapped_pages(statm, member));
        assert_eq!(pages("2189 480 448 9 0 154 0\n"), [Some(2189), Some(154)]);
        assert_eq!(pages(""), [None, None]);
    }

    #[test]
    fn unused_memory_is_told_where_a_limit_on_it_would_be_seen() {
        assert_eq!(unused_bytes(&Groups::default()), None);
        let groups = Groups::discover(Path::new("/"));
        let unused = unused_bytes(&groups);
        assert_eq!(unused.is_some(), groups.tell_memory());
        assert!(unused.is_none_or(|bytes| bytes < 1 << 50), "{unused:?}");
    }

    #[test]
    fn our_own_status_can_be_read() {
        assert!(process_bytes("self", "VmHWM:").is_some_and(|bytes| bytes > 0));
        assert_eq!(process_bytes("self", "NoSuchMember:"), None);
    }

    #[test]
    fn the_line_is_found() {
        let text = "MemTotal:       24684084 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(kib_after(text, "MemAvailable:"), Some(20_480_000_000));
        assert_eq!(kib_after("MemTotal: 1 kB\n", "MemAvailable:"), None);
        let text = "Dirty:  3 kB\nWriteback:   2 kB\nWritebackTmp:  9 kB\n";
        assert_eq!(unwritten(text), Some(5 * 1024));
        assert_eq!(unwritten("Dirty:  3 kB\n"), None);
    }
}
