//! Standard output as it was when the program began, for results that must not be lost in silence.
//!
//! The runtime of Rust opens `/dev/null` where a standard descriptor is closed, and its own standard
//! output takes EBADF for success. Both are failures here, as in coreutils.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks before the runtime does: it is called ahead of `main`, as any constructor.
// SAFETY: the section holds addresses of functions that the C runtime calls with the C convention
// and ignorable arguments, once, before other threads are; `look` is such a function. It uses
// nothing of the runtime of Rust, which does not stand yet.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: fcntl(2) with F_GETFD takes any number for a descriptor and no pointer.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// The descriptor.
///
/// Errors: EBADF where it was closed when the program began.
pub fn descriptor() -> io::Result<impl AsFd> {
    match WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(Errno::BADF.into()),
        false => Ok(io::stdout()),
    }
}

/// Writes all bytes at once; no other thread writes in between. No bytes need no standard output.
///
/// Errors: those of write(2).
pub fn write_all(bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let turn = io::stdout().lock();
    descriptor()?;
    Unbuffered(turn.as_fd()).write_all(bytes)
}

struct Unbuffered<'a>(BorrowedFd<'a>);

impl Write for Unbuffered<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
