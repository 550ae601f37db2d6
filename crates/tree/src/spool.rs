//! Spool: bytes that are appended and read again. The last ones are in memory, and when they get
//! too many, they go to a file without a name.
//!
//! It knows nothing of what the bytes mean; [`names`] is what directories are listed into.

use crate::copy::failure::Refusal;

pub(crate) mod names;
#[cfg(test)]
mod tests;
pub(crate) mod unnamed;

use unnamed::Unnamed;

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

    /// Bytes of memory in use.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tail.capacity()
    }

    /// Whether anything went to a file.
    #[cfg(test)]
    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
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
