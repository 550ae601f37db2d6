//! What is measured now and how long it still takes, on standard error, for people only: a bar, or
//! the whole screen (`live.rs`).

use std::io;
use std::time::{Duration, Instant};

use flatout_measure::case::Plan;
use flatout_measure::clock::SystemClock;
use flatout_measure::guard::{SystemWitness, Witness};
use flatout_measure::progress::Event;
use flatout_measure::sampler::Sampler;
use flatout_report::text;
use flatout_sys::cancel::CancelToken;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::live::{Eta, Live};
use crate::output;
use crate::watchdog::Watchdog;

/// Ticks of a bar from empty to full.
const TICKS: u64 = 1000;
/// Where a bar stops while something is still to be done.
pub const LAST_TICK: f64 = 990.0;
const SECOND_NS: u64 = 1_000_000_000;

/// A bar on standard error.
pub fn bar(template: &str) -> ProgressBar {
    let target = match output::is_quiet() {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(TICKS), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        let chars = if output::is_unicode() { "█▌░" } else { "#>-" };
        bar.set_style(style.progress_chars(chars));
    }
    bar
}

/// How far all areas are; it ends when it is dropped.
pub struct Progress {
    shown: Shown,
    begun: Instant,
    /// Time that areas which have not begun will take.
    later_ns: u64,
    watchdog: Watchdog,
}

enum Shown {
    /// A bar over all areas; nothing at all where standard error is no terminal.
    Bar(ProgressBar),
    /// The whole screen.
    Live(Live),
}

impl Progress {
    /// A bar for areas that take `expected_ns` together, and a watchdog over them.
    pub fn begin(expected_ns: u64) -> Self {
        let bar = bar("{bar:20} {percent:>3} %  {wide_msg}");
        Self::over(expected_ns, Shown::Bar(bar))
    }

    /// The same on the whole screen.
    ///
    /// Errors: standard error is no terminal.
    pub fn live(expected_ns: u64) -> io::Result<Self> {
        let live = Live::begin(SystemWitness::default().cpus())?;
        Ok(Self::over(expected_ns, Shown::Live(live)))
    }

    fn over(expected_ns: u64, shown: Shown) -> Self {
        Self {
            shown,
            begun: Instant::now(),
            later_ns: expected_ns,
            watchdog: Watchdog::over(Duration::from_nanos(expected_ns)),
        }
    }

    fn show(&self, event: &Event) {
        let eta = match event {
            Event::Trial { left_ns, .. } | Event::Closed { left_ns, .. } => {
                let left_ns = left_ns.unwrap_or(0).saturating_add(self.later_ns);
                let elapsed_ns = self.begun.elapsed().as_nanos() as u64;
                let all_ns = elapsed_ns.saturating_add(left_ns).max(1);
                Some(Eta { left_ns, share: elapsed_ns as f64 / all_ns as f64 })
            }
            Event::Preparing { .. } | Event::Ended { .. } => None,
        };
        let what = match event {
            Event::Preparing { what } => what.clone(),
            Event::Trial { row, .. } | Event::Ended { row, .. } | Event::Closed { row, .. } => {
                format!("{} {}", row.id, flatout_report::parameters_text(&row.parameters))
            }
        };
        self.watchdog.beat(&what);
        match (&self.shown, eta) {
            (Shown::Live(live), eta) => live.take(event, eta),
            (Shown::Bar(bar), Some(eta)) => {
                let seconds = eta.left_ns.div_ceil(SECOND_NS);
                bar.set_message(text::visible(&format!("{seconds} s left: {what}")));
                // The bar never goes back.
                bar.set_position(bar.position().max((eta.share * LAST_TICK) as u64));
            }
            (Shown::Bar(bar), None) if matches!(event, Event::Preparing { .. }) => {
                bar.set_message(text::visible(&what));
            }
            (Shown::Bar(_), None) => {}
        }
    }

    /// Measures an area that takes `expected_ns`, and shows how far it is.
    pub fn measure<T>(
        &mut self,
        expected_ns: u64,
        plan: Plan,
        cancel: CancelToken,
        work: impl FnOnce(&mut Sampler<'_>) -> T,
    ) -> T {
        self.later_ns = self.later_ns.saturating_sub(expected_ns);
        let mut witness = SystemWitness::default();
        work(&mut Sampler {
            plan,
            clock: &SystemClock,
            witness: &mut witness,
            events: &mut |event| self.show(&event),
            cancelled: &|| cancel.is_cancelled(),
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}
