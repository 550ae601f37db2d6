//! What is measured now and how long it still takes, on standard error, for people only.

use std::time::{Duration, Instant};

use flatout_measure::progress::Event;
use flatout_report::text;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::watchdog::Watchdog;

/// Ticks of the bar from empty to full.
const TICKS: u64 = 1000;
/// Where the bar stops while something is still measured.
const LAST_TICK: f64 = 990.0;
const SECOND_NS: u64 = 1_000_000_000;

/// A progress bar over all areas; nothing at all where standard error is no terminal.
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    /// Time that areas which have not begun will take.
    later_ns: u64,
    /// Ticks shown so far: the bar never goes back.
    ticks: u64,
    watchdog: Watchdog,
}

impl Progress {
    /// A bar on standard error for areas that take `expected_ns` together, and a watchdog over them.
    pub fn begin(expected_ns: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(TICKS), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {percent:>3} %  {wide_msg}") {
            bar.set_style(style.progress_chars("█▌░"));
        }
        let watchdog = Watchdog::over(Duration::from_nanos(expected_ns));
        Self { bar, begun: Instant::now(), later_ns: expected_ns, ticks: 0, watchdog }
    }

    /// An area begins that takes `expected_ns`.
    pub fn area(&mut self, expected_ns: u64) {
        self.later_ns = self.later_ns.saturating_sub(expected_ns);
    }

    /// Shows an event.
    pub fn show(&mut self, event: &Event) {
        match event {
            Event::Preparing { what, .. } => {
                self.watchdog.beat(what);
                self.bar.set_message(text::visible(what));
            }
            Event::Trial { id, parameters, progress }
            | Event::Closed { id, parameters, progress } => {
                let left_ns = progress.left_ns.unwrap_or(0).saturating_add(self.later_ns);
                let elapsed_ns = self.begun.elapsed().as_nanos() as u64;
                let share = elapsed_ns as f64 / elapsed_ns.saturating_add(left_ns).max(1) as f64;
                self.ticks = self.ticks.max((share * LAST_TICK) as u64);
                let row = flatout_report::parameters_text(parameters);
                self.watchdog.beat(&format!("{id} {row}"));
                let seconds = left_ns.div_ceil(SECOND_NS);
                let message = format!("{seconds} s left: {id} {row}");
                self.bar.set_message(text::visible(&message));
                self.bar.set_position(self.ticks);
            }
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
