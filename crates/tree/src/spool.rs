//! Spool: bytes that are appended and read again. The last ones are in memory, and when they get
//! too many, they go to a file without a name.
//!
//! It knows nothing of what the bytes mean; [`names`] is what directories are listed into.

use crate::copy::failure::Refusal;

pub(crate) mod names;
#[cfg(test)]
mod tests;
pub(crate) mod unnamed;

use unnamed::{READ, Unnamed};

/// Bytes of a record before its own.
pub(crate) const LENGTH_BYTES: u64 = size_of::<u32>() as u64;
/// Bytes that are read of a record in one go, with its length; most need no more.
const USUAL_RECORD_BYTES: usize = 128;

/// Appended bytes. Nothing is allocated and no file is made before they are needed.
#[derive(Debug)]
pub(crate) struct Spool {
    /// Bytes that the tail may have.
    memory_bytes: usize,
    /// Bytes that are in the file; the tail comes after them.
    written_bytes: u64,
    tail: Vec<u8>,
    file: Option<Unnamed>,
}

impl Spool {
    /// Nothing yet; `memory_bytes` may stay in memory, the rest goes to a file.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        Self { memory_bytes, written_bytes: 0, tail: Vec::new(), file: None }
    }

    /// All bytes there are.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.written_bytes + self.tail.len() as u64
    }

    /// Appends all `parts`, or nothing. Returns where the first one begins.
    ///
    /// Errors: no file can be made, or the file cannot take the bytes.
    pub(crate) fn append(&mut self, parts: &[&[u8]]) -> Result<u64, Refusal> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let offset = self.length_bytes();
        if self.tail.len() + length > self.memory_bytes {
            self.write_out()?;
        }
        if length > self.memory_bytes {
            self.write(&parts.concat())?;
            return Ok(offset);
        }
        self.make_room(length);
        for part in parts {
            self.tail.extend_from_slice(part);
        }
        Ok(offset)
    }

    /// Appends all `parts` as one record, which knows its length, or nothing. Returns where it begins.
    ///
    /// Errors: as [`Spool::append`]; it has more than 4 GiB.
    pub(crate) fn append_record(&mut self, parts: &[&[u8]]) -> Result<u64, Refusal> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let length = u32::try_from(length);
        let length = length.map_err(|_| Refusal::because(READ, "it would be too long"))?;
        self.append(&[&[&length.to_ne_bytes()[..]], parts].concat())
    }

    /// Reads the record that begins at `offset`.
    ///
    /// Errors: the file cannot be read; there is no record.
    pub(crate) fn record(&self, offset: u64) -> Result<Vec<u8>, Refusal> {
        let damaged = || Refusal::because(READ, "it is damaged");
        let mut start = [0; USUAL_RECORD_BYTES];
        let count = self.read(offset, &mut start)?;
        let (length, rest) = start[..count].split_first_chunk().ok_or_else(damaged)?;
        let (begin, length) = (offset + LENGTH_BYTES, u32::from_ne_bytes(*length));
        if begin + u64::from(length) > self.length_bytes() {
            return Err(damaged());
        }
        if let Some(record) = rest.get(..length as usize) {
            return Ok(record.to_vec());
        }
        let mut record = vec![0; length as usize];
        let count = self.read(begin, &mut record)?;
        if count == record.len() { Ok(record) } else { Err(damaged()) }
    }

    /// Reads what begins at `offset`, as much as there is and fits. Returns how much that was.
    ///
    /// Errors: the file cannot be read.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, Refusal> {
        let mut filled = 0;
        if let Some(file) = &self.file
            && offset < self.written_bytes
        {
            let rest = usize::try_from(self.written_bytes - offset).unwrap_or(usize::MAX);
            filled = rest.min(into.len());
            file.read(offset, &mut into[..filled])?;
        }
        let into = &mut into[filled..];
        let begin = (offset + filled as u64).saturating_sub(self.written_bytes);
        let begin = usize::try_from(begin).unwrap_or(usize::MAX);
        let rest = self.tail.get(begin..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(filled + count)
    }

    /// Forgets what is behind the first `length_bytes`. Memory and file stay, for what comes.
    pub(crate) fn cut(&mut self, length_bytes: u64) {
        let kept = length_bytes.saturating_sub(self.written_bytes);
        self.tail.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.written_bytes = self.written_bytes.min(length_bytes);
    }

    /// Forgets everything, and gives memory and file back.
    pub(crate) fn clear(&mut self) {
        self.written_bytes = 0;
        self.tail = Vec::new();
        self.file = None;
    }

    /// Grows the tail in steps that never go beyond the limit, as doubling would.
    fn make_room(&mut self, more: usize) {
        let needed = self.tail.len() + more;
        if needed > self.tail.capacity() {
            let wanted = (2 * self.tail.capacity()).min(self.memory_bytes).max(needed);
            self.tail.reserve_exact(wanted - self.tail.len());
        }
    }

    fn write_out(&mut self) -> Result<(), Refusal> {
        if self.tail.is_empty() {
            return Ok(());
        }
        let mut tail = std::mem::take(&mut self.tail);
        let result = self.write(&tail);
        if result.is_ok() {
            tail.clear();
        }
        self.tail = tail;
        result
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if self.file.is_none() {
            self.file = Some(Unnamed::new()?);
        }
        if let Some(file) = &self.file {
            file.write(self.written_bytes, bytes)?;
        }
        self.written_bytes += bytes.len() as u64;
        Ok(())
    }
}
