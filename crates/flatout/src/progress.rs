//! What is measured now and how long it still takes, on standard error, for people only.

use std::time::{Duration, Instant};

use flatout_measure::case::Plan;
use flatout_measure::clock::SystemClock;
use flatout_measure::guard::SystemWitness;
use flatout_measure::progress::Event;
use flatout_measure::sampler::Sampler;
use flatout_report::text;
use flatout_sys::cancel::CancelToken;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
        Self {
            bar: bar("{bar:20} {percent:>3} %  {wide_msg}"),
            begun: Instant::now(),
            later_ns: expected_ns,
            ticks: 0,
            watchdog: Watchdog::over(Duration::from_nanos(expected_ns)),
        }
    }

    fn show(&mut self, event: &Event) {
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

    /// Measures an area that takes `expected_ns`, and shows how far it is.
    pub fn measure<T>(
        &mut self,
        expected_ns: u64,
        plan: Plan,
        cancel: CancelToken,
        work: impl FnOnce(&mut Sampler<'_>) -> T,
    ) -> T {
        self.later_ns = self.later_ns.saturating_sub(expected_ns);
        let mut witness = SystemWitness::new();
        work(&mut Sampler {
            plan,
            clock: &SystemClock,
            witness: &mut witness,
            events: &mut |event| self.show(&event),
            cancelled: &|| cancel.is_cancelled(),
        })
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
