//! How far the copy is, on standard error, for people only: a bar that is drawn anew a few times a
//! second by a thread of its own, so that the copy never waits for a terminal.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use flatout_report::text;
use flatout_sys::thread::spawn;
use flatout_tree::copy::Copy;
use indicatif::ProgressBar;

use super::account::unwritten_bytes;
use super::pace::{Moment, Pace};
use super::survey::Survey;
use crate::progress::{LAST_TICK, bar};

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A terminal that somebody looks at.
pub struct Terminal {
    /// What is drawn there.
    pub bar: ProgressBar,
    begun: Instant,
}

impl Terminal {
    /// The terminal on standard error, if it is one.
    pub fn find() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        Some(Self { bar: bar("{bar:10} {percent:>3} %  {wide_msg}"), begun: Instant::now() })
    }

    /// Shows how far the copy is while `work` goes on. Without threads to spare it is not shown.
    pub fn during<T>(&self, copy: &Copy<'_>, paths: &[PathBuf], work: impl FnOnce() -> T) -> T {
        let survey = &Survey::default();
        std::thread::scope(|scope| {
            let (end, is_over) = channel();
            let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
            let shown = move || self.show(copy, survey, &is_over);
            if spawn(scope, named("progress"), shown).is_ok() {
                let _none = spawn(scope, named("survey"), || survey.count(paths, &copy.selection));
            }
            let done = work();
            survey.abandon();
            drop::<std::sync::mpsc::Sender<()>>(end);
            done
        })
    }

    fn show(&self, copy: &Copy<'_>, survey: &Survey, is_over: &Receiver<()>) {
        let mut pace = Pace::default();
        while is_over.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            let snapshot = copy.progress();
            let elapsed_ns = self.begun.elapsed().as_nanos() as u64;
            let moment = Moment {
                elapsed_ns,
                snapshot: &snapshot,
                whole: survey.whole(),
                // The memory of other machines is not looked at, and what stays in memory has no storage.
                unwritten_bytes: (!copy.is_shared() && !copy.methods().fills_memory())
                    .then(|| unwritten_bytes(snapshot.bytes_accepted))
                    .flatten(),
            };
            let rate = pace.rate(elapsed_ns, snapshot.bytes_accepted);
            self.bar.set_message(text::visible(&moment.line(rate)));
            let ticks = (moment.share().unwrap_or(0.0) * LAST_TICK) as u64;
            // The bar never goes back.
            self.bar.set_position(ticks.max(self.bar.position()));
        }
    }
}
