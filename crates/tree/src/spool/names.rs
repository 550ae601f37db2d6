//! Names: what a directory has, packed as a byte for the type, the name, and its NUL.
//!
//! They are taken from the back in pieces that fit into memory, however many there are.

use std::ffi::CStr;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Spool;
use crate::copy::failure::Refusal;

/// Bytes of a piece at most.
const PIECE_BYTES: usize = 64 << 10;
/// What an entry may take: its type, a name as long as a path may be (FUSE allows that since Linux
/// 6.16; other filesystems end at 255 characters), and the NUL.
const LONGEST_BYTES: usize = 1 + 4095 + 1;
/// What an entry usually takes, generously: so much is read for each that is asked for.
const USUAL_BYTES: usize = 64;
/// What is read at least; where it turns out to be too little, as much as the longest entry takes is.
const LEAST_BYTES: usize = 128;
/// Room that a batch has from the start.
const BATCH_BYTES: usize = 256;

/// Where the kind stands in a mode (inode(7)).
const KIND_SHIFT: u32 = 12;

const LIST: &str = "list";

/// Names with their types, in any number.
#[derive(Debug)]
pub(crate) struct Names {
    pub(super) spool: Spool,
    count: u64,
}

impl Default for Names {
    /// None yet; as many as directories usually have may be in memory.
    fn default() -> Self {
        Self::new(PIECE_BYTES)
    }
}

impl Names {
    /// None yet; `memory_bytes` may be in memory, the rest goes to a file.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        Self { spool: Spool::new(memory_bytes), count: 0 }
    }

    /// Names that were not taken yet.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether all were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a name behind the others.
    ///
    /// Errors: it is longer than names are; those of [`Spool::append`].
    pub(crate) fn push(&mut self, name: &CStr, kind: FileType) -> Result<(), Refusal> {
        let name = fitting(name)?;
        self.spool.append(&[&[code(kind)], name])?;
        self.count += 1;
        Ok(())
    }

    /// Takes the last names, `most` of them, or fewer where they are long; none only if there
    /// are none. In the piece they stand as they came.
    ///
    /// Errors: those of [`Spool::read`]; then nothing was taken.
    pub(crate) fn take_back(&mut self, most: usize) -> Result<Batch, Refusal> {
        let there = self.spool.length_bytes();
        let mut wanted = most.saturating_mul(USUAL_BYTES).clamp(LEAST_BYTES, PIECE_BYTES);
        let (mut bytes, start, begin, count) = loop {
            let length = usize::try_from(there).map_or(wanted, |there| there.min(wanted));
            let start = there - length as u64;
            let mut bytes = vec![0; length];
            self.spool.read(start, &mut bytes)?;
            let (begin, count) = last(&bytes, most, start == 0);
            if count == most || start == 0 || wanted > LONGEST_BYTES {
                break (bytes, start, begin, count);
            }
            // One byte more than an entry: the NUL of the one before it.
            wanted = LONGEST_BYTES + 1;
        };
        bytes.drain(..begin);
        self.count -= count as u64;
        match self.count {
            0 => self.spool.clear(),
            _ => self.spool.cut(start + begin as u64),
        }
        Ok(Batch { bytes, count })
    }
}

/// Where the last entries begin in bytes that end with one, `most` of them, or fewer, and how many they are.
fn last(bytes: &[u8], most: usize, is_whole: bool) -> (usize, usize) {
    let (mut begin, mut count) = (bytes.len(), 0);
    while count < most && begin > 0 {
        // The byte before `begin` is the NUL of the entry that is looked for.
        begin = match bytes[..begin - 1].iter().rposition(|&byte| byte == 0) {
            Some(end_before) => end_before + 1,
            None if is_whole => 0,
            None => break,
        };
        count += 1;
    }
    (begin, count)
}

/// Some names in one piece of memory.
#[derive(Debug, Default, Clone)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    count: usize,
}

impl Batch {
    /// How many they are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Of its bytes; `None`: it is none.
    pub(crate) fn unpacked(bytes: &[u8]) -> Option<Self> {
        let mut batch = Self { bytes: bytes.to_vec(), count: 0 };
        let mut entries = batch.iter();
        let count = entries.by_ref().count();
        if !entries.rest.is_empty() {
            return None;
        }
        batch.count = count;
        Some(batch)
    }

    /// Adds a name behind the others.
    ///
    /// Errors: it is longer than names are.
    pub(crate) fn push(&mut self, name: &CStr, kind: FileType) -> Result<(), Refusal> {
        let name = fitting(name)?;
        if self.is_empty() {
            self.bytes.reserve(BATCH_BYTES);
        }
        self.bytes.push(code(kind));
        self.bytes.extend_from_slice(name);
        self.count += 1;
        Ok(())
    }

    /// Goes through them.
    pub(crate) fn iter(&self) -> BatchIter<'_> {
        BatchIter { rest: &self.bytes }
    }
}

/// See [`Batch::iter`].
#[derive(Debug, Clone)]
pub(crate) struct BatchIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for BatchIter<'a> {
    type Item = (&'a CStr, FileType);

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.rest.split_first()?;
        let name = CStr::from_bytes_until_nul(rest).ok()?;
        self.rest = &rest[name.to_bytes_with_nul().len()..];
        Some((name, kind_of(kind)))
    }
}

/// The name with its NUL.
fn fitting(name: &CStr) -> Result<&[u8], Refusal> {
    let name = name.to_bytes_with_nul();
    if name.len() < LONGEST_BYTES { Ok(name) } else { Err(Refusal::of(LIST)(Errno::NAMETOOLONG)) }
}

/// Never 0: an entry has one NUL, and that is its end.
fn code(kind: FileType) -> u8 {
    (kind.as_raw_mode() >> KIND_SHIFT) as u8
}

fn kind_of(code: u8) -> FileType {
    FileType::from_raw_mode(u32::from(code) << KIND_SHIFT)
}
