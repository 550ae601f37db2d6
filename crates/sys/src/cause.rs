//! Why the kernel said no, in its own words.

use std::io;

use rustix::io::Errno;

use crate::resource_limit::{Resource, soft_limit};

/// The kernel's words without Rust's "(os error 2)": the shape of every message. With those about the
/// length of a file, or about too many of them, the limit that whoever started this process set
/// (setrlimit(2)).
pub fn cause_text(source: &io::Error) -> String {
    let mut text = source.to_string();
    text.truncate(text.rfind(" (os error ").unwrap_or(text.len()));
    let (resource, option, unit) = match source.raw_os_error() {
        Some(libc::EFBIG) => (Resource::Fsize, "-f", " bytes"),
        Some(libc::EMFILE) => (Resource::Nofile, "-n", ""),
        _ => return text,
    };
    let limit = soft_limit(resource).map(|most| format!(" (ulimit {option}: {most}{unit})"));
    text + &limit.unwrap_or_default()
}

/// What the kernel said; an error of ours is one of input and output.
pub fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// What a system call returned, or its error where that is negative.
pub(crate) fn answered(returned: impl TryInto<usize>) -> io::Result<usize> {
    returned.try_into().map_err(|_| io::Error::last_os_error())
}
