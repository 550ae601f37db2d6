//! What is measured now and how long it still takes, on standard error, for people only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use flatout_measure::progress::Event;
use flatout_report::text;

/// Ticks of the bar from empty to full.
const TICKS: u64 = 1000;

/// A progress bar; nothing at all where standard error is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar on standard error.
    pub fn begin() -> Self {
        let bar = ProgressBar::with_draw_target(Some(TICKS), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}") {
            bar.set_style(style.progress_chars("█▌░"));
        }
        Self(bar)
    }

    /// Shows an event.
    pub fn show(&self, event: &Event) {
        match event {
            Event::Preparing { what, done, total } => {
                self.0.set_message(text::visible(what));
                if let Some(ticks) = (done * TICKS).checked_div(*total) {
                    self.0.set_position(ticks);
                }
            }
            Event::Trial { id, parameters, progress }
            | Event::Closed { id, parameters, progress } => {
                let left = progress
                    .left_ns
                    .map_or(String::new(), |ns| format!("{} s left, ", ns.div_ceil(1_000_000_000)));
                let row = flatout_report::parameters_text(parameters);
                let done = format!("{} of {} rows", progress.cases_done, progress.cases_total);
                let message = format!("{left}{done}: {id} {row}");
                self.0.set_message(text::visible(&message));
                self.0.set_position((progress.share() * TICKS as f64) as u64);
            }
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}
