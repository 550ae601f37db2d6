//! Lines of an inventory that later ones replace: of sources that go to one place, the last line of
//! each name counts.

use std::collections::HashMap;

use super::{Record, key};
use crate::copy::failure::Refusal;
use crate::spool::Spool;

/// What may stay in memory of the lines; the rest goes to a file without a name.
const MEMORY_BYTES: usize = 1 << 20;
/// Before each line: its length, and the number that stands for its name.
const HEAD_BYTES: usize = 4 + 16;

/// Lines in the order in which they came. Some 40 to 75 bytes of memory for each name, as full as the table is.
#[derive(Debug)]
pub struct LastLines {
    spool: Spool,
    last: HashMap<u128, u64>,
}

impl Default for LastLines {
    fn default() -> Self {
        Self { spool: Spool::new(MEMORY_BYTES), last: HashMap::new() }
    }
}

impl LastLines {
    /// Takes in an entry.
    ///
    /// Errors: no file can be made for what memory does not take, or it is full.
    pub fn add(&mut self, record: &Record) -> Result<(), Refusal> {
        let mut line = Vec::new();
        record.append(&mut line);
        let key = key(std::os::unix::ffi::OsStrExt::as_bytes(record.name.as_os_str()));
        // A name has some thousand bytes at most.
        let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
        let parts: [&[u8]; 3] = [&length.to_le_bytes(), &key.to_le_bytes(), &line];
        self.last.insert(key, self.spool.append(&parts)?);
        Ok(())
    }

    /// Hands out the line of each name; tells how many there are.
    ///
    /// Errors: the file cannot be read.
    pub fn each(self, mut take: impl FnMut(&[u8])) -> Result<u64, Refusal> {
        let (mut offset, mut line) = (0, Vec::new());
        while offset < self.spool.length_bytes() {
            let mut head = [0; HEAD_BYTES];
            self.spool.read(offset, &mut head)?;
            let (length, key) = head.split_at(4);
            let length = length.iter().rev().fold(0, |length, &byte| length << 8 | u32::from(byte));
            let key = key.iter().rev().fold(0, |key, &byte| key << 8 | u128::from(byte));
            if self.last.get(&key) == Some(&offset) {
                line.resize(length as usize, 0);
                self.spool.read(offset + HEAD_BYTES as u64, &mut line)?;
                take(&line);
            }
            offset += HEAD_BYTES as u64 + u64::from(length);
        }
        Ok(self.last.len() as u64)
    }
}
