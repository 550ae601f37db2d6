//! Windows on a file: mapped memory that survives the file being cut short.
//!
//! Reading a page that the file no longer has raises SIGBUS. A handler puts zeroed memory under
//! the rest of the window and marks it; the reader goes on over zeros, asks at the end of the
//! window, and turns the mark into an error. So no reader ever dies, and no wrong digest gets
//! out. See mmap(2), "SIGBUS", and signal-safety(7).

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::{io, mem, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::cause::answered;
use crate::occupation::this_thread;
use crate::view::ByteView;

/// Windows that may be open at once in a process; one per reading thread is needed.
pub const MAX_WINDOWS: usize = 1024;

/// Alignment at which a window can be mapped by 2 MiB entries where the page cache allows it.
pub const WINDOW_ALIGNMENT_BYTES: u64 = 2 << 20;

/// A place in the table that the handler looks windows up in. A fault comes in the thread that
/// reads, and a window cannot leave its thread; so each thread looks at its own slots only, which
/// nobody changes meanwhile.
struct Slot {
    taken: AtomicBool,
    owner: AtomicI32,
    start: AtomicUsize,
    length: AtomicUsize,
    faulted: AtomicBool,
}

static SLOTS: [Slot; MAX_WINDOWS] = [const {
    Slot {
        taken: AtomicBool::new(false),
        owner: AtomicI32::new(0),
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        faulted: AtomicBool::new(false),
    }
}; MAX_WINDOWS];

/// A mapped range of a file, read through [`ByteView`]s.
pub struct Window {
    start: *mut u8,
    offset_bytes: u64,
    length_bytes: usize,
    slot: usize,
}

impl Window {
    /// Maps `length_bytes` of a file from `offset_bytes`, a multiple of the page size, on.
    ///
    /// Errors: `ENODEV` when the file cannot be mapped, `ENOMEM` without room, or when
    /// [`MAX_WINDOWS`] are open.
    /// Cost: one mmap; pages come in by faults, 16 or more at a time where they are cached.
    pub fn map(file: BorrowedFd<'_>, offset_bytes: u64, length_bytes: usize) -> io::Result<Self> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(install_handler);
        let slot = SLOTS
            .iter()
            .position(|slot| !slot.taken.swap(true, Ordering::AcqRel))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: a new shared read-only mapping at an address of the kernel's choice. Nobody
        // gets a reference into it, only raw-pointer views.
        let start = unsafe {
            let (access, flags) = (ProtFlags::READ, MapFlags::SHARED);
            mmap(ptr::null_mut(), length_bytes, access, flags, file, offset_bytes)
        };
        let start = start.inspect_err(|_| SLOTS[slot].taken.store(false, Ordering::Release))?;
        SLOTS[slot].faulted.store(false, Ordering::Relaxed);
        SLOTS[slot].length.store(length_bytes, Ordering::Relaxed);
        SLOTS[slot].owner.store(this_thread(), Ordering::Relaxed);
        SLOTS[slot].start.store(start as usize, Ordering::Release);
        Ok(Self { start: start.cast(), offset_bytes, length_bytes, slot })
    }

    /// Whether the window shows all of `length_bytes` from `offset_bytes` of the file.
    #[inline]
    pub fn covers(&self, offset_bytes: u64, length_bytes: usize) -> bool {
        let skip = offset_bytes.checked_sub(self.offset_bytes);
        let end = skip.and_then(|skip| skip.checked_add(length_bytes as u64));
        end.is_some_and(|end| end <= self.length_bytes as u64)
    }

    /// The bytes of a part of the file.
    ///
    /// Panics: when the window does not cover it.
    #[inline]
    pub fn view(&self, offset_bytes: u64, length_bytes: usize) -> ByteView<'_> {
        assert!(self.covers(offset_bytes, length_bytes), "the window does not show that part");
        let skip = (offset_bytes - self.offset_bytes) as usize;
        // SAFETY: covers() says that skip + length lies inside the mapping.
        ByteView::of_mapping(unsafe { self.start.add(skip) }, length_bytes)
    }

    /// Writes a part of the file to the same place of another one, straight out of the window
    /// (pwrite(2)), and tells how many bytes were taken.
    ///
    /// Errors: those of pwrite(2); `EFAULT` when the kernel finds no page there, because the file
    /// was cut short or cannot be read.
    /// Panics: when the window does not cover the part.
    pub fn write_to(
        &self,
        target: BorrowedFd<'_>,
        offset_bytes: u64,
        length_bytes: usize,
    ) -> io::Result<usize> {
        assert!(self.covers(offset_bytes, length_bytes), "the window does not show that part");
        let skip = (offset_bytes - self.offset_bytes) as usize;
        // SAFETY: covers() says that skip + length lies inside the mapping, which the kernel only
        // reads, and checks itself: a page that is missing is its EFAULT, not our signal.
        answered(unsafe {
            libc::pwrite64(
                target.as_raw_fd(),
                self.start.add(skip).cast(),
                length_bytes,
                offset_bytes as libc::off64_t,
            )
        })
    }

    /// Whether a page was missing since the window was mapped: what was read is not the file.
    pub fn was_cut_short(&self) -> bool {
        SLOTS[self.slot].faulted.load(Ordering::Acquire)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        SLOTS[self.slot].start.store(0, Ordering::Release);
        // SAFETY: the range is the mapping made in `map` (or the zeroed memory that the handler
        // put in its place); views borrow the window, so none is left.
        let _ = unsafe { munmap(self.start.cast(), self.length_bytes) };
        SLOTS[self.slot].taken.store(false, Ordering::Release);
    }
}

static PREVIOUS: AtomicUsize = AtomicUsize::new(0);
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

fn install_handler() {
    PAGE_BYTES.store(rustix::param::page_size(), Ordering::Release);
    // SAFETY: zeroed sigactions are valid values. The handler uses atomics, gettid, mmap and
    // sigaction only; mmap is a plain system call without a lock in every libc that runs on Linux. The
    // previous action is leaked on purpose: a handler may need it until the process ends.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_bus_error as Handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut action.sa_mask);
        let previous = Box::into_raw(Box::new(mem::zeroed::<libc::sigaction>()));
        libc::sigaction(libc::SIGBUS, &action, previous);
        PREVIOUS.store(previous as usize, Ordering::Release);
    }
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

extern "C" fn on_bus_error(
    signal: libc::c_int,
    information: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler. The memory that is
    // replaced belongs to a window of ours, which only raw-pointer kernels read.
    unsafe {
        let address = (*information).si_addr() as usize;
        let (thread, page_bytes) = (this_thread(), PAGE_BYTES.load(Ordering::Acquire));
        for slot in &SLOTS {
            let start = slot.start.load(Ordering::Acquire);
            let length = slot.length.load(Ordering::Relaxed);
            if slot.owner.load(Ordering::Relaxed) != thread
                || start == 0
                || address < start
                || address >= start + length
            {
                continue;
            }
            slot.faulted.store(true, Ordering::Release);
            let page = address & !(page_bytes - 1);
            let errno = *libc::__errno_location();
            let replaced = libc::mmap(
                page as *mut libc::c_void,
                (start + length - page).next_multiple_of(page_bytes),
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            );
            *libc::__errno_location() = errno;
            if replaced != libc::MAP_FAILED {
                return;
            }
        }
        // Not ours: the action that was there before us gets the fault when it happens again.
        let previous = PREVIOUS.load(Ordering::Acquire) as *const libc::sigaction;
        if previous.is_null() {
            libc::signal(signal, libc::SIG_DFL);
        } else {
            libc::sigaction(signal, previous, ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    fn written(name: &str, bytes: &[u8]) -> File {
        let path =
            std::env::temp_dir().join(format!("flatout-mapping-{}-{name}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_window_shows_the_file() {
        let page = rustix::param::page_size() as u64;
        let bytes: Vec<u8> = (0..page as u32 + 15_904).map(|i| ((i * 7) >> 2) as u8).collect();
        let file = written("shows", &bytes);
        let window = Window::map(file.as_fd(), page, 15_904).unwrap();
        let view = window.view(page + 904, 15_000);
        assert_eq!(view.xor32(), crate::xor::xor32(&bytes[page as usize + 904..]));
        assert!(view.as_slice().is_none(), "no reference may point into a mapping");
        assert!(!window.covers(page - 1, 1) && !window.covers(page, 15_905));
        assert!(!window.covers(u64::MAX, 4097) && !window.covers(page + 1, usize::MAX));
        assert!(!window.was_cut_short());
    }

    #[test]
    fn truncation_is_seen_and_nobody_dies() {
        let file = written("cut", &vec![255; 1 << 20]);
        let window = Window::map(file.as_fd(), 0, 1 << 20).unwrap();
        assert_ne!(window.view(0, 4).xor32(), 0);
        file.set_len(8192).unwrap();
        window.view(0, 1 << 20).touch();
        assert!(window.was_cut_short());
        drop(window);
        let again = Window::map(file.as_fd(), 0, 8192).unwrap();
        again.view(0, 8192).touch();
        assert!(!again.was_cut_short());
    }
}
