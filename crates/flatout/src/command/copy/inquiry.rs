//! SIGUSR1: a line on standard error that says where the copy is.

use std::time::Instant;

use flatout_io::escape;
use flatout_sys::inquiry::{self, Inquiries};
use flatout_tree::copy::{Copy, Operand};

use super::pace::{Moment, Pace};
use super::resume::is_small;
use super::witness::Witness;

/// A file below this size is copied before anybody asks: no thread is started for it, which would
/// take a tenth of the time that a whole run takes for one of 1 MiB. The second one where a rate is
/// to be kept.
const SMALL_BYTES: u64 = 16 << 20;
const SMALL_LIMITED_BYTES: u64 = 1 << 20;

/// Listens where there is so much to copy that somebody may ask. Where nobody can be heard, the copy
/// goes on without.
pub fn listen(copy: &Copy<'_>, operands: &[Operand]) -> Option<Inquiries> {
    let small_bytes = if copy.is_limited() { SMALL_LIMITED_BYTES } else { SMALL_BYTES };
    if !matches!(operands, [one] if is_small(one, small_bytes)) {
        return inquiry::listen().ok().flatten();
    }
    let _or_it_ends_the_copy = inquiry::ignore();
    None
}

/// Answers while `work` goes on, if a thread can be had for that.
pub fn answering<T>(
    copy: &Copy<'_>,
    inquiries: Option<&Inquiries>,
    witness: &Witness<'_>,
    work: impl FnOnce() -> T,
) -> T {
    let Some(inquiries) = inquiries else { return work() };
    std::thread::scope(|scope| {
        let _until_here = End(inquiries);
        let answering = std::thread::Builder::new().name("inquiry".to_owned());
        let _none = answering.spawn_scoped(scope, || answer(copy, witness, inquiries));
        work()
    })
}

/// Ends the answers when it is dropped, also where the work panics.
struct End<'i>(&'i Inquiries);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn answer(copy: &Copy<'_>, witness: &Witness<'_>, inquiries: &Inquiries) {
    let (begun, mut pace) = (Instant::now(), Pace::default());
    pace.rate(0, copy.progress().bytes_accepted);
    while inquiries.wait() {
        let snapshot = copy.progress();
        let elapsed_ns = begun.elapsed().as_nanos() as u64;
        let moment = Moment { elapsed_ns, snapshot: &snapshot, whole: None, unwritten_bytes: None };
        let rate = pace.rate(elapsed_ns, snapshot.bytes_accepted);
        let at = copy.at_work().map(|path| format!("; at {}", escape(path))).unwrap_or_default();
        witness.remark(&(moment.line(rate) + &at));
    }
}
