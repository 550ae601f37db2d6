//! A parcel: work that one process gives to another, in a form that means the same there.
//!
//! Directories are named by the way to them: the paths of the operand's directories, then name by
//! name, each with what the giver knows of it. The taker opens them one after the other without
//! following a symlink, and each must have the inode number that the giver saw. Device numbers are
//! those of a host, and are not compared.

use std::ffi::{CStr, CString};

use flatout_io::transfer::Method;

use super::super::content::Ranges;
use super::super::directory::{Closed, Origin};
use crate::spool::names::Batch;

/// A piece of work in a directory of the parcel.
#[derive(Debug, Clone)]
pub(in crate::copy) enum Piece {
    /// Names, none of them a directory.
    Entries(Batch),
    /// A directory to begin with, which has been made already.
    Visit(CString, Origin),
    /// Ranges of a large file, alone in its parcel.
    Part(Part),
}

/// Ranges of a large file that another process copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::copy) struct Part {
    pub(in crate::copy) source: CString,
    /// The name that it has now, which may be a temporary one.
    pub(in crate::copy) target: CString,
    /// Inode numbers of both.
    pub(in crate::copy) inodes: (u64, u64),
    pub(in crate::copy) length_bytes: u64,
    pub(in crate::copy) ranges: Ranges,
    pub(in crate::copy) method: Method,
}

/// Pieces of one directory.
#[derive(Debug, Clone)]
pub(in crate::copy) struct Parcel {
    /// By it the giver knows it again.
    pub(in crate::copy) number: u64,
    /// The taker does it all, and gives nothing of it away.
    pub(in crate::copy) is_bound: bool,
    /// What is known of the directories on the way, the operand's first.
    pub(in crate::copy) way: Vec<Closed>,
    pub(in crate::copy) pieces: Vec<Piece>,
}

const ENTRIES: u8 = 1;
const FRESH: u8 = 2;
const EXISTING: u8 = 3;
const PART: u8 = 4;

impl Parcel {
    /// Adds the parcel to a message.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put(out, self.number);
        out.push(u8::from(self.is_bound));
        put(out, self.way.len() as u64);
        for directory in &self.way {
            put_bytes(out, &directory.packed());
        }
        put(out, self.pieces.len() as u64);
        for piece in &self.pieces {
            match piece {
                Piece::Entries(names) => {
                    out.push(ENTRIES);
                    put_bytes(out, names.packed());
                }
                Piece::Visit(name, origin) => {
                    out.push(if *origin == Origin::Fresh { FRESH } else { EXISTING });
                    put_bytes(out, name.as_bytes_with_nul());
                }
                Piece::Part(part) => {
                    out.push(PART);
                    put_bytes(out, &part.packed());
                }
            }
        }
    }

    /// Takes a parcel from the front of a message; `None`: there is none.
    pub(super) fn read(from: &mut &[u8]) -> Option<Self> {
        let number = take(from)?;
        let is_bound = take_byte(from)? != 0;
        let way = (0..take(from)?)
            .map(|_| Closed::unpacked(take_bytes(from)?))
            .collect::<Option<Vec<_>>>()?;
        let piece = |from: &mut &[u8]| {
            let kind = take_byte(from)?;
            let bytes = take_bytes(from)?;
            let name = || Some(CStr::from_bytes_with_nul(bytes).ok()?.to_owned());
            Some(match kind {
                ENTRIES => Piece::Entries(Batch::unpacked(bytes)?),
                FRESH => Piece::Visit(name()?, Origin::Fresh),
                EXISTING => Piece::Visit(name()?, Origin::Existing),
                PART => Piece::Part(Part::unpacked(bytes)?),
                _ => return None,
            })
        };
        let pieces = (0..take(from)?).map(|_| piece(from)).collect::<Option<Vec<_>>>()?;
        (!way.is_empty()).then_some(Self { number, is_bound, way, pieces })
    }
}

impl Part {
    fn packed(&self) -> Vec<u8> {
        let Self { source, target, inodes, length_bytes, ranges, method } = self;
        let mut bytes = vec![method.index() as u8];
        let numbers = [inodes.0, inodes.1, *length_bytes, ranges.0.into(), ranges.1.into()];
        numbers.into_iter().for_each(|number| put(&mut bytes, number));
        put_bytes(&mut bytes, source.as_bytes_with_nul());
        put_bytes(&mut bytes, target.as_bytes_with_nul());
        bytes
    }

    fn unpacked(mut bytes: &[u8]) -> Option<Self> {
        let from = &mut bytes;
        let method = *Method::ALL.get(usize::from(take_byte(from)?))?;
        let (inodes, length_bytes) = ((take(from)?, take(from)?), take(from)?);
        let mut range = || u32::try_from(take(from)?).ok();
        let ranges = (range()?, range()?);
        let mut name = || Some(CStr::from_bytes_with_nul(take_bytes(from)?).ok()?.to_owned());
        let (source, target) = (name()?, name()?);
        Some(Self { source, target, inodes, length_bytes, ranges, method })
    }
}

/// Adds a number to a message, eight bytes, the lowest first.
pub(super) fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Adds bytes to a message, behind their number.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes one byte from the front of a message.
pub(super) fn take_byte(from: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = from.split_first()?;
    *from = rest;
    Some(first)
}

/// Takes a number from the front of a message.
pub(super) fn take(from: &mut &[u8]) -> Option<u64> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*first))
}

/// Takes bytes from the front of a message.
pub(super) fn take_bytes<'m>(from: &mut &'m [u8]) -> Option<&'m [u8]> {
    let length = usize::try_from(take(from)?).ok()?;
    let (first, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use rustix::fs::FileType;

    use super::*;
    use crate::copy::directory::closed_of_tests;

    #[test]
    fn a_parcel_arrives_as_it_was_sent() {
        let mut names = Batch::default();
        names.push(c"a\xff", FileType::RegularFile).unwrap();
        names.push(c"b", FileType::Fifo).unwrap();
        let way = vec![closed_of_tests("/some/where"), closed_of_tests("x")];
        let pieces = vec![
            Piece::Entries(names),
            Piece::Visit(c"d".to_owned(), Origin::Fresh),
            Piece::Visit(c"e".to_owned(), Origin::Existing),
            Piece::Part(Part {
                source: c"large".to_owned(),
                target: c".other".to_owned(),
                inodes: (1 << 50, 7),
                length_bytes: 1 << 60,
                ranges: (3, u32::MAX),
                method: Method::Mmap,
            }),
        ];
        let parcel = Parcel { number: 1 << 40, is_bound: true, way, pieces };
        let mut bytes = Vec::new();
        parcel.write(&mut bytes);
        parcel.write(&mut bytes);
        let mut rest = bytes.as_slice();
        for _ in 0..2 {
            assert_eq!(format!("{:?}", Parcel::read(&mut rest).unwrap()), format!("{parcel:?}"));
        }
        assert!(rest.is_empty());
        for length in 0..bytes.len() / 2 {
            assert!(Parcel::read(&mut &bytes[..length]).is_none(), "cut at {length}");
        }
    }
}
