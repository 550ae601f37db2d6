//! A parcel: work that one process gives to another, in a form that means the same there.
//!
//! Directories are named by the way to them: the paths of the operand's directories, then name by
//! name, each with what the giver knows of it. The taker opens them one after the other without
//! following a symlink, and each must have the inode number that the giver saw. Device numbers are
//! those of a host, and are not compared.

use std::ffi::CString;

use flatout_io::transfer::Method;

use super::super::content::Ranges;
use super::super::directory::{Closed, Origin};
use crate::spool::names::Batch;
use crate::wire::{goes_by_fields, goes_by_variants};

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

/// A large file by its names in one directory, which must lead to it in any process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::copy) struct Sides {
    pub(in crate::copy) source: CString,
    /// The name that it has now, which may be a temporary one.
    pub(in crate::copy) target: CString,
    /// Inode numbers of both.
    pub(in crate::copy) inodes: (u64, u64),
    pub(in crate::copy) length_bytes: u64,
}

/// Ranges of a large file that another process copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::copy) struct Part {
    pub(in crate::copy) sides: Sides,
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

goes_by_variants!(Origin { 1 => Fresh, 2 => Existing });
goes_by_fields!(Sides { source, target, inodes, length_bytes });
goes_by_fields!(Part { sides, ranges, method });
goes_by_variants!(Piece { 1 => Entries(names), 2 => Visit(name, origin), 3 => Part(part) });
goes_by_fields!(Parcel { number, is_bound, way, pieces });

#[cfg(test)]
mod tests {
    use rustix::fs::FileType;

    use super::*;
    use crate::copy::directory::closed_of_tests;
    use crate::wire::Wire;

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
                sides: Sides {
                    source: c"large".to_owned(),
                    target: c".other".to_owned(),
                    inodes: (1 << 50, 7),
                    length_bytes: 1 << 60,
                },
                ranges: (3, u32::MAX),
                method: Method::Mmap,
            }),
        ];
        let parcel = Parcel { number: 1 << 40, is_bound: true, way, pieces };
        let mut bytes = Vec::new();
        parcel.put(&mut bytes);
        parcel.put(&mut bytes);
        let mut rest = bytes.as_slice();
        for _ in 0..2 {
            assert_eq!(format!("{:?}", Parcel::take(&mut rest).unwrap()), format!("{parcel:?}"));
        }
        assert!(rest.is_empty());
        for length in 0..bytes.len() / 2 {
            assert!(Parcel::take(&mut &bytes[..length]).is_none(), "cut at {length}");
        }
    }
}
