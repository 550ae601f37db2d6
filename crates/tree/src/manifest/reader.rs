//! A manifest from front to end, with the memory of one line.

use std::io::{self, BufRead, Read};

use flatout_io::digest::Algorithm;

use super::LineEnd;
use super::line::{Entry, Fault, parse};

/// The longest line that is read: any path that the kernel takes and one of a very deep tree.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// What editors of other systems put before a text of UTF-8. No line begins so by itself.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line that says something, or fails to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the manifest; the first is 1.
    pub number: u64,
    /// What it says.
    pub content: Result<Entry, Fault>,
}

/// The lines of a manifest, without comments and empty ones.
///
/// Whether a carriage return belongs to the end of the lines is decided by the first of them: b3sum
/// and xxhsum have written names as they are, and one may end so in a manifest of line feeds.
///
/// Memory: one line. Errors: those of the input; none are yielded after one.
pub struct Reader<R> {
    input: R,
    end: LineEnd,
    asked: Option<Algorithm>,
    pub(super) line: Vec<u8>,
    number: u64,
    /// Whether a carriage return before the end of a line is a part of the end: the first line tells.
    ends_with_return: bool,
    is_done: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads lines with this end. With `asked`, only digests of that algorithm count.
    pub fn new(input: R, end: LineEnd, asked: Option<Algorithm>) -> Self {
        let line = Vec::new();
        Self { input, end, asked, line, number: 0, ends_with_return: false, is_done: false }
    }

    /// Reads one line into `line`, without its end. `None`: there is none.
    fn step(&mut self) -> io::Result<Option<Result<(), Fault>>> {
        self.line.clear();
        let end = self.end.byte();
        let mut limited = (&mut self.input).take(MAX_LINE_BYTES as u64 + 1);
        if limited.read_until(end, &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        if self.line.last() == Some(&end) {
            self.line.pop();
        } else if self.line.len() > MAX_LINE_BYTES {
            self.input.skip_until(end)?;
            return Ok(Some(Err(Fault::TooLong)));
        }
        if self.end != LineEnd::Zero && self.line.last() == Some(&b'\r') {
            self.ends_with_return |= self.number == 1;
            if self.ends_with_return {
                self.line.pop();
            }
        }
        Ok(Some(Ok(())))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<io::Result<Line>> {
        while !self.is_done {
            let content = match self.step() {
                Ok(Some(Ok(()))) => parse(&self.line, self.end, self.asked),
                Ok(Some(Err(fault))) => Some(Err(fault)),
                Ok(None) => {
                    self.is_done = true;
                    None
                }
                Err(error) => {
                    self.is_done = true;
                    return Some(Err(error));
                }
            };
            if let Some(content) = content {
                return Some(Ok(Line { number: self.number, content }));
            }
        }
        None
    }
}
