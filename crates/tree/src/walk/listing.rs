//! What is in a directory: its names in one piece of memory, sorted by their bytes.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;

/// Bytes asked of getdents64(2) at a time: some hundred entries, like glibc's readdir(3).
const BUFFER_BYTES: usize = 32 << 10;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink, a pipe, a socket or a device.
    Other,
    /// The filesystem does not say.
    Unknown,
}

/// An entry whose name lies in [`Listing::names`].
#[derive(Clone, Copy)]
struct Entry {
    start: usize,
    inode: u64,
    length: u16,
    kind: Kind,
}

/// The entries of a directory that have not been taken yet.
#[derive(Default)]
pub struct Listing {
    names: Vec<u8>,
    /// The last one is taken first.
    entries: Vec<Entry>,
}

impl Listing {
    /// Takes the next entry: its name, its kind, its inode number.
    pub fn next(&mut self) -> Option<(&[u8], Kind, u64)> {
        let entry = self.entries.pop()?;
        Some((name_of(&self.names, &entry), entry.kind, entry.inode))
    }

    /// Whether nothing is left.
    pub fn is_used_up(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets what is left.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    fn add(&mut self, name: &[u8], kind: Kind, inode: u64) {
        if name == b"." || name == b".." || kind == Kind::Other {
            return;
        }
        let length = u16::try_from(name.len()).expect("a name has at most 255 bytes");
        self.entries.push(Entry { start: self.names.len(), inode, length, kind });
        self.names.extend_from_slice(name);
    }

    fn sort(&mut self) {
        let names = &self.names;
        self.entries.sort_unstable_by(|one, other| name_of(names, other).cmp(name_of(names, one)));
    }
}

fn name_of<'a>(names: &'a [u8], entry: &Entry) -> &'a [u8] {
    &names[entry.start..entry.start + usize::from(entry.length)]
}

/// Reads directories, one after the other, into the same buffer.
#[derive(Default)]
pub struct Lister {
    buffer: Vec<MaybeUninit<u8>>,
}

impl Lister {
    /// Reads a directory to its end. With an error come the entries that were read before it.
    pub fn list(&mut self, directory: &OwnedFd) -> (Listing, Result<(), Errno>) {
        self.buffer.resize(BUFFER_BYTES, MaybeUninit::uninit());
        let mut listing = Listing::default();
        let mut entries = RawDir::new(directory, &mut self.buffer);
        let result = loop {
            match entries.next() {
                None => break Ok(()),
                Some(Err(error)) => break Err(error),
                Some(Ok(entry)) => {
                    let kind = match entry.file_type() {
                        FileType::RegularFile => Kind::File,
                        FileType::Directory => Kind::Directory,
                        FileType::Unknown => Kind::Unknown,
                        _ => Kind::Other,
                    };
                    listing.add(entry.file_name().to_bytes(), kind, entry.ino());
                }
            }
        };
        listing.sort();
        (listing, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_by_their_bytes() {
        let mut listing = Listing::default();
        for name in ["b", "a.b", ".", "a", "..", "a/", "B", "\u{e9}", "pipe"] {
            let kind = if name == "pipe" { Kind::Other } else { Kind::File };
            listing.add(name.as_bytes(), kind, 1);
        }
        listing.sort();
        let mut sorted = Vec::new();
        while let Some((name, _, _)) = listing.next() {
            sorted.push(String::from_utf8(name.to_vec()).unwrap());
        }
        assert_eq!(sorted, ["B", "a", "a.b", "a/", "b", "\u{e9}"]);
        assert!(listing.is_used_up());
    }
}
