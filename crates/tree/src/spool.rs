//! Spool: bytes that are appended and read again. The last ones are in memory, and when they get
//! too many, they go to a file without a name.
//!
//! It knows nothing of what the bytes mean; [`names`] is what directories are listed into.

use crate::copy::failure::Refusal;

pub mod home;
pub mod names;
#[cfg(test)]
mod tests;

pub use home::Home;
pub use names::{Batch, Names};

use home::Unnamed;

/// Bytes that a [`Reader`] asks for at a time.
const WINDOW_BYTES: usize = 32 << 10;

/// Appended bytes. Nothing is allocated and no file is made before they are needed.
#[derive(Debug)]
pub struct Spool {
    home: Home,
    /// Bytes that the tail may have.
    memory_bytes: usize,
    /// Bytes that are in the file; the tail comes after them.
    written_bytes: u64,
    tail: Vec<u8>,
    file: Option<Unnamed>,
}

impl Spool {
    /// Nothing yet; `memory_bytes` may stay in memory, the rest goes to a file of `home`.
    pub fn new(home: Home, memory_bytes: usize) -> Self {
        Self { home, memory_bytes, written_bytes: 0, tail: Vec::new(), file: None }
    }

    /// All bytes there are.
    pub fn length_bytes(&self) -> u64 {
        self.written_bytes + self.tail.len() as u64
    }

    /// Bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.tail.capacity()
    }

    /// Whether anything went to a file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Appends all `parts`, or nothing. Returns where the first one begins.
    ///
    /// Errors: no file can be made, or the file cannot take the bytes.
    pub fn append(&mut self, parts: &[&[u8]]) -> Result<u64, Refusal> {
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
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, Refusal> {
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

    /// Reads records one after the other, from `offset` on.
    pub fn reader(&self, offset: u64) -> Reader<'_> {
        Reader { spool: self, next: offset, window: Vec::new(), used: 0 }
    }

    /// Forgets what is behind the first `length_bytes`. Memory and file stay, for what comes.
    pub fn cut(&mut self, length_bytes: u64) {
        let kept = length_bytes.saturating_sub(self.written_bytes);
        self.tail.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.written_bytes = self.written_bytes.min(length_bytes);
    }

    /// Forgets everything, and gives memory and file back.
    pub fn clear(&mut self) {
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
        let file = match self.file.take() {
            Some(file) => file,
            None => self.home.file()?,
        };
        let result = file.write(self.written_bytes, bytes);
        self.file = Some(file);
        result.map(|()| self.written_bytes += bytes.len() as u64)
    }
}

/// Records of a [`Spool`], from the first to the last.
#[derive(Debug)]
pub struct Reader<'a> {
    spool: &'a Spool,
    /// Where the spool goes on behind the window.
    next: u64,
    window: Vec<u8>,
    /// Bytes of the window that were handed out.
    used: usize,
}

impl Reader<'_> {
    /// The next record with the byte that ends it; the last one may lack it. `None` at the end.
    ///
    /// Errors: the file cannot be read.
    pub fn until(&mut self, end: u8) -> Result<Option<&[u8]>, Refusal> {
        let mut searched = self.used;
        loop {
            if let Some(found) = self.window[searched..].iter().position(|&byte| byte == end) {
                return Ok(Some(self.hand_out(searched + found + 1)));
            }
            searched = self.window.len() - self.used;
            if !self.fill()? {
                break;
            }
        }
        let last = self.window.len();
        Ok(if self.used < last { Some(self.hand_out(last)) } else { None })
    }

    fn hand_out(&mut self, end: usize) -> &[u8] {
        let begin = std::mem::replace(&mut self.used, end);
        &self.window[begin..end]
    }

    /// Moves what is left to the front and reads on; says whether there was more.
    fn fill(&mut self) -> Result<bool, Refusal> {
        self.window.drain(..self.used);
        self.used = 0;
        let kept = self.window.len();
        self.window.resize(kept + WINDOW_BYTES, 0);
        let count = self.spool.read(self.next, &mut self.window[kept..]);
        self.window.truncate(kept + count.as_ref().map_or(0, |&count| count));
        let count = count?;
        self.next += count as u64;
        Ok(count > 0)
    }
}
