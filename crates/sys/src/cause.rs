//! Why the kernel said no, in its own words.

use std::io;

use rustix::io::Errno;

/// The kernel's words without Rust's "(os error 2)": the shape of every message.
pub fn cause_text(source: &io::Error) -> String {
    let text = source.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// What the kernel said; an error of ours is one of input and output.
pub fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// What a system call returned, or its error where that is negative.
pub(crate) fn answered(returned: impl TryInto<usize>) -> io::Result<usize> {
    returned.try_into().map_err(|_| io::Error::last_os_error())
}
