//! SIGUSR1: a line on standard error that says where the copy is.
//!
//! A thread answers, which takes a sixth of the time of a whole run that shares the extents of a file
//! (0.2 of 1.45 ms): where that may be all, it is started when it turns out not to be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope};
use std::time::Instant;

use flatout_io::escape;
use flatout_sys::inquiry::{self, Inquiries};
use flatout_sys::thread::spawn;
use flatout_tree::copy::{Copy, Operand};

use super::pace::{Moment, Pace};
use super::resume::file_bytes;
use super::witness::Witness;
use crate::arguments::copy::Copy as Arguments;

/// A file below this size is copied before anybody asks; the second one where a rate is to be kept.
const SMALL_BYTES: u64 = 16 << 20;
const SMALL_LIMITED_BYTES: u64 = 1 << 20;

/// Answers while operands are copied.
pub struct Answers<'e> {
    copy: &'e Copy<'e>,
    witness: &'e Witness<'e>,
    inquiries: Inquiries,
    begun: (Instant, u64),
    /// It is one file, and done when its extents are shared, if they can be.
    may_be_done_at_once: bool,
    /// A thread answers, or none is worth it.
    is_settled: AtomicBool,
}

impl<'e> Answers<'e> {
    /// Listens; `None`: nobody can be heard, and the copy goes on without.
    pub fn listen(
        (copy, operands): (&'e Copy<'e>, &[Operand]),
        witness: &'e Witness<'e>,
        arguments: &Arguments,
    ) -> Option<Self> {
        let inquiries = inquiry::listen().ok().flatten()?;
        let file_bytes = if let [one] = operands { file_bytes(one) } else { None };
        let small_bytes = if copy.is_limited() { SMALL_LIMITED_BYTES } else { SMALL_BYTES };
        let reads_or_waits = arguments.sync || arguments.verify || arguments.manifest.is_some();
        Some(Self {
            copy,
            witness,
            inquiries,
            begun: (Instant::now(), copy.progress().bytes_accepted),
            may_be_done_at_once: file_bytes.is_some() && !reads_or_waits,
            is_settled: AtomicBool::new(file_bytes.is_some_and(|bytes| bytes < small_bytes)),
        })
    }

    /// The copy begins.
    pub fn prepare<'scope>(&'e self, scope: &'scope Scope<'scope, 'e>) {
        if !self.may_be_done_at_once {
            self.begin(scope);
        }
    }

    /// Answers from now on, in a thread if one can be had.
    pub fn begin<'scope>(&'e self, scope: &'scope Scope<'scope, 'e>) {
        if !self.is_settled.swap(true, Ordering::Relaxed) {
            let answering = Builder::new().name("inquiry".to_owned());
            let _none = spawn(scope, answering, || self.answer_all());
        }
    }

    fn answer_all(&self) {
        let mut pace = self.pace();
        while self.inquiries.wait() {
            self.answer(&mut pace);
        }
    }

    fn pace(&self) -> Pace {
        let mut pace = Pace::default();
        pace.rate(0, self.begun.1);
        pace
    }

    fn answer(&self, pace: &mut Pace) {
        let snapshot = self.copy.progress();
        let elapsed_ns = self.begun.0.elapsed().as_nanos() as u64;
        let moment = Moment { elapsed_ns, snapshot: &snapshot, whole: None, unwritten_bytes: None };
        let rate = pace.rate(elapsed_ns, snapshot.bytes_accepted);
        let at =
            self.copy.at_work().map(|path| format!("; at {}", escape(path))).unwrap_or_default();
        self.witness.remark(&(moment.line(rate) + &at));
    }
}

/// Ends the answers when it is dropped, also where the work panics.
pub struct End<'i>(pub &'i Answers<'i>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let Self(answers) = self;
        if !answers.is_settled.swap(true, Ordering::Relaxed) && answers.inquiries.is_asked() {
            answers.answer(&mut answers.pace());
        }
        answers.inquiries.end();
    }
}
