//! Why the kernel said no, in its own words.

use std::io;

use rustix::io::Errno;

use crate::resource_limit::{Resource, soft_limit};

/// The kernel's words without Rust's "(os error 2)": the shape of every message. With those about the
/// length of a file, the limit on it that whoever started this process set (setrlimit(2)).
pub fn cause_text(source: &io::Error) -> String {
    let mut text = source.to_string();
    text.truncate(text.rfind(" (os error ").unwrap_or(text.len()));
    let is_long = source.raw_os_error() == Some(libc::EFBIG);
    if let Some(bytes) = is_long.then(|| soft_limit(Resource::Fsize)).flatten() {
        text.push_str(&format!(" (ulimit -f: {bytes} bytes)"));
    }
    text
}

/// What the kernel said; an error of ours is one of input and output.
pub fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// What a system call returned, or its error where that is negative.
pub(crate) fn answered(returned: impl TryInto<usize>) -> io::Result<usize> {
    returned.try_into().map_err(|_| io::Error::last_os_error())
}
