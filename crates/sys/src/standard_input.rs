//! Standard input, whose reads fail where it was closed when the program began.
//!
//! The runtime of Rust opens `/dev/null` where a standard descriptor is closed, and its own standard
//! input takes EBADF for the end: a list that nobody gave would be an empty one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Acts before the runtime does: it is called ahead of `main`, as any constructor.
// SAFETY: the section holds addresses of functions that the C runtime calls with the C convention
// and ignorable arguments, once, before other threads are; `fill` is such a function. It uses
// nothing of the runtime of Rust, which does not stand yet.
#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C" fn() = fill;

extern "C" fn fill() {
    // SAFETY: fcntl(2) with F_GETFD takes any number for a descriptor and no pointer. open(2) gets a
    // path that ends with NUL and lives as long as the program; it takes the lowest free descriptor.
    unsafe {
        if libc::fcntl(libc::STDIN_FILENO, libc::F_GETFD) < 0 {
            libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY);
        }
    }
}

/// Another descriptor of it, without a buffer.
///
/// Errors: none is free. Its reads give EBADF where it was closed when the program began.
pub fn open() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}
