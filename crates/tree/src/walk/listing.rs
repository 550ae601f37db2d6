//! What is in a directory: its names in one piece of memory, sorted by their bytes.

use std::io;

use rustix::fs::FileType;

use crate::directory_stack::DirectoryStack;

/// An entry whose name lies in [`Listing::names`].
#[derive(Clone, Copy)]
struct Entry {
    /// The first bytes of the name, so that most comparisons stay in this table.
    key: u64,
    start: usize,
    inode: u64,
    length: u16,
    kind: FileType,
}

/// The entries of a directory that have not been taken yet.
#[derive(Default)]
pub struct Listing {
    names: Vec<u8>,
    /// The last one is taken first.
    entries: Vec<Entry>,
}

impl Listing {
    /// Reads a directory to its end. With an error come the entries that were read before it.
    pub fn of(directory: &DirectoryStack) -> (Self, io::Result<()>) {
        let mut listing = Self::default();
        let result = directory.entries(|name, kind, inode| {
            listing.add(name.to_bytes(), kind, inode);
            Ok(())
        });
        listing.sort();
        (listing, result)
    }

    /// Takes the next entry: its name, its kind, its inode number.
    pub fn next(&mut self) -> Option<(&[u8], FileType, u64)> {
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

    fn add(&mut self, name: &[u8], kind: FileType, inode: u64) {
        let is_wanted =
            matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Unknown);
        if !is_wanted {
            return;
        }
        let length = u16::try_from(name.len()).expect("a name has at most 255 bytes");
        self.entries.push(Entry { key: key(name), start: self.names.len(), inode, length, kind });
        self.names.extend_from_slice(name);
    }

    fn sort(&mut self) {
        let names = &self.names;
        self.entries.sort_unstable_by(|one, other| {
            let by_key = other.key.cmp(&one.key);
            by_key.then_with(|| name_of(names, other).cmp(name_of(names, one)))
        });
        // Servers may list a name twice, and others where it is taken by another file meanwhile.
        self.entries.dedup_by(|one, other| {
            one.key == other.key && name_of(names, one) == name_of(names, other)
        });
    }
}

/// The first eight bytes as a number that sorts as they do; no name holds the zero byte that fills
/// short ones up.
fn key(name: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = name.len().min(first.len());
    first[..length].copy_from_slice(&name[..length]);
    u64::from_be_bytes(first)
}

fn name_of<'a>(names: &'a [u8], entry: &Entry) -> &'a [u8] {
    &names[entry.start..entry.start + usize::from(entry.length)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_by_their_bytes() {
        let mut listing = Listing::default();
        for name in [
            "b",
            "a.b",
            "a",
            "b",
            "a/",
            "B",
            "\u{e9}",
            "pipe",
            "12345678b",
            "12345678",
            "12345678a",
        ] {
            let kind = if name == "pipe" { FileType::Fifo } else { FileType::RegularFile };
            listing.add(name.as_bytes(), kind, 1);
        }
        listing.sort();
        let mut sorted = Vec::new();
        while let Some((name, _, _)) = listing.next() {
            sorted.push(String::from_utf8(name.to_vec()).unwrap());
        }
        assert_eq!(
            sorted,
            ["12345678", "12345678a", "12345678b", "B", "a", "a.b", "a/", "b", "\u{e9}"]
        );
        assert!(listing.is_used_up());
    }
}
