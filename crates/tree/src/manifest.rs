//! The manifest: digests and names of files as lines of text, one format for all of flatout.
//!
//! [`Manifest`] writes what b3sum, xxhsum, sha256sum and cksum read, and [`Reader`] reads what
//! they write. Names are bytes, not text: what comes out is what went in. Pure: nothing here
//! opens a file.
//!
//! ```text
//! DIGEST  NAME          GNU; `*` instead of the second space reads the same
//! TAG (NAME) = DIGEST   BSD; TAG is that of `Algorithm::tag`
//! ```
//!
//! A name with a line feed, a carriage return or a backslash is written as `\n`, `\r`, `\\`, and
//! the line begins with a backslash. Where lines end in a zero byte, nothing is escaped.

mod digits;
mod escape;
mod line;
mod reader;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use flatout_io::digest::Digest;

pub(crate) use digits::parse as digest_of_digits;
pub use escape::shown;
pub use line::{Entry, Fault};
pub use reader::{Line, MAX_LINE_BYTES, Reader};

/// How the lines of a manifest look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Whether lines say of which algorithm their digests are.
    pub is_tagged: bool,
    /// How a line ends.
    pub end: LineEnd,
}

/// How a line ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineEnd {
    /// With a line feed; names are escaped where they must be.
    #[default]
    Feed,
    /// With a zero byte, which no name holds; names stand as they are.
    Zero,
}

impl LineEnd {
    /// The byte.
    pub fn byte(self) -> u8 {
        match self {
            Self::Feed => b'\n',
            Self::Zero => 0,
        }
    }
}

impl Manifest {
    /// Appends the line of a file.
    pub fn append(self, line: &mut Vec<u8>, digest: &Digest, name: &OsStr) {
        let name = match self.end {
            LineEnd::Feed => escape::escaped(name.as_bytes()),
            LineEnd::Zero => Cow::Borrowed(name.as_bytes()),
        };
        if let Cow::Owned(_) = name {
            line.push(b'\\');
        }
        let (digits, tag) = (digest.to_string(), digest.algorithm().tag());
        let parts: &[&[u8]] = match self.is_tagged {
            true => &[tag.as_bytes(), b" (", &name, b") = ", digits.as_bytes()],
            false => &[digits.as_bytes(), b"  ", &name],
        };
        parts.iter().for_each(|part| line.extend_from_slice(part));
        line.push(self.end.byte());
    }
}
