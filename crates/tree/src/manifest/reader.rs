//! A manifest from front to end, with the memory of one line.

use std::io::{self, BufRead};

use flatout_io::digest::Algorithm;

use super::LineEnd;
use super::line::{Entry, Fault, parse};

/// The longest line that is read: any path that the kernel takes and one of a very deep tree.
pub const MAX_LINE_BYTES: usize = 1 << 20;

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
/// Memory: one line. Errors: those of the input; none are yielded after one.
pub struct Reader<R> {
    input: R,
    end: LineEnd,
    asked: Option<Algorithm>,
    pub(super) line: Vec<u8>,
    number: u64,
    is_done: bool,
}

/// What was found up to the end of a line.
#[derive(PartialEq, Eq)]
enum Step {
    Line,
    TooLong,
    End,
}

impl<R: BufRead> Reader<R> {
    /// Reads lines with this end. With `asked`, only digests of that algorithm count.
    pub fn new(input: R, end: LineEnd, asked: Option<Algorithm>) -> Self {
        Self { input, end, asked, line: Vec::new(), number: 0, is_done: false }
    }

    /// Reads one line into `line`, without its end.
    fn step(&mut self) -> io::Result<Step> {
        self.line.clear();
        let (mut step, mut seen_bytes) = (Step::Line, 0_usize);
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = available.iter().position(|&byte| byte == self.end.byte());
            let piece = &available[..end.unwrap_or(available.len())];
            if available.is_empty() && seen_bytes == 0 {
                return Ok(Step::End);
            }
            if self.line.len() + piece.len() > MAX_LINE_BYTES {
                step = Step::TooLong;
            }
            if step == Step::Line {
                self.line.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            let is_over = end.is_some() || used == 0;
            seen_bytes = seen_bytes.saturating_add(used);
            self.input.consume(used);
            if is_over {
                self.number += 1;
                return Ok(step);
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<io::Result<Line>> {
        while !self.is_done {
            let content = match self.step() {
                Ok(Step::Line) => parse(&self.line, self.end, self.asked),
                Ok(Step::TooLong) => Some(Err(Fault::TooLong)),
                Ok(Step::End) => {
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
