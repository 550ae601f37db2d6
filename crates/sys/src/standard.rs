//! Standard input and output as they were when the program began, for what must not be lost in silence.
//!
//! A standard descriptor that is closed would become that of the next file: `/dev/null` is opened in its
//! place. The standard input and output of Rust take EBADF for the end and for success. Both are failures here,
//! as in coreutils: a list that nobody gave would be an empty one.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::descriptor;

static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks and acts before Rust does: it is called ahead of `main`, as any constructor.
// SAFETY: the section holds addresses of functions that the C runtime calls with the C convention
// and ignorable arguments, once, before other threads are; `look` is such a function. It uses
// nothing of the runtime of Rust, which does not stand yet.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let standard = [
        (libc::STDIN_FILENO, libc::O_WRONLY),
        (libc::STDOUT_FILENO, libc::O_RDWR),
        (libc::STDERR_FILENO, libc::O_RDWR),
    ];
    for (number, way) in standard {
        // SAFETY: fcntl(2) with F_GETFD takes any number for a descriptor and no pointer. open(2) gets a
        // path that ends with NUL and lives as long as the program; it takes the lowest free descriptor.
        let is_closed = unsafe {
            let is_closed = libc::fcntl(number, libc::F_GETFD) < 0;
            if is_closed {
                libc::open(c"/dev/null".as_ptr(), way);
            }
            is_closed
        };
        if number == libc::STDOUT_FILENO {
            OUTPUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
        }
    }
}

/// Another descriptor of standard input, without a buffer.
///
/// Errors: none is free. Its reads give EBADF where it was closed when the program began.
pub fn input() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// The descriptor of standard output.
///
/// Errors: EBADF where it was closed when the program began.
pub fn output() -> io::Result<impl AsFd> {
    match OUTPUT_WAS_CLOSED.load(Ordering::Relaxed) {
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
    output()?;
    Unbuffered(turn.as_fd()).write_all(bytes)
}

/// Hears what the filesystem says last of what was written: NFS, FUSE and quotas refuse bytes as late as close(2),
/// be it of another descriptor. No bytes need no standard output.
///
/// Errors: those of close(2).
pub fn settle() -> io::Result<()> {
    output().map_or(Ok(()), |output| descriptor::close(output.as_fd().try_clone_to_owned()?))
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
