//! `bench --live`: the rows as they converge, on the whole screen of the terminal behind standard
//! error. What is known: `live/board.rs`; how it looks: `live/view.rs`.
//!
//! It is drawn between trials, by the thread that measures, so that drawing takes no CPU from a
//! trial. A thread of its own waits for keys, and draws only during a trial that takes long, once
//! a second. `q` does what Ctrl-C does.

mod board;
mod view;

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use flatout_measure::progress::Event;
use flatout_report::Style;
use flatout_sys::cancel::{self, CancelToken};
use flatout_sys::lock::lock;
use flatout_sys::screen::{self, Input, Screen};
use rustix::process::Signal;

use crate::output::{self, held};
use board::Board;

pub use board::Eta;

/// The screen is drawn at most this often between trials.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// A screen on which nothing happened is drawn after so long.
const TICK: Duration = Duration::from_secs(1);
/// A terminal that does not say how large it is.
const USUAL_SIZE: (u16, u16) = (80, 24);
/// What Ctrl-L sends.
const CTRL_L: u8 = 0x0c;

/// Why the view is impossible here.
///
/// Errors: what there has to be.
pub fn check() -> Result<(), String> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if !io::stderr().is_terminal() || is_dumb {
        return Err("--live needs a terminal on standard error, and its name in TERM; without \
                    --live there is a progress bar on a terminal and silence elsewhere"
            .to_owned());
    }
    Ok(())
}

/// The view, until it is dropped.
pub struct Live {
    shared: Arc<Shared>,
    keys: Option<JoinHandle<()>>,
}

struct Shared {
    screen: Screen,
    drawing: Mutex<Drawing>,
}

struct Drawing {
    board: Board,
    /// What stands on the screen, of this size.
    shown: Vec<String>,
    size: (u16, u16),
    drawn: Option<Instant>,
}

impl Live {
    /// Takes the screen of the terminal.
    ///
    /// Errors: standard error is none.
    pub fn begin(cpus: u32) -> io::Result<Self> {
        let screen = Screen::take(io::stderr(), io::stdin())?;
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            screen::give_back();
            before(panic);
        }));
        held::begin();
        let board = Board::new(cpus);
        let drawing = Drawing { board, shown: Vec::new(), size: (0, 0), drawn: None };
        let shared = Arc::new(Shared { screen, drawing: Mutex::new(drawing) });
        let own = Arc::clone(&shared);
        // Without a thread to spare there are no keys, and the run is as good.
        let keys = Builder::new().name("keys".to_owned()).spawn(move || own.wait_for_keys());
        Ok(Self { shared, keys: keys.ok() })
    }

    /// Shows what happened.
    pub fn take(&self, event: &Event, eta: Option<Eta>) {
        let mut drawing = lock(&self.shared.drawing);
        drawing.board.take(event, eta);
        self.shared.draw(&mut drawing, DRAW_EVERY);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.screen.close();
        if let Some(keys) = self.keys.take() {
            // It does not panic; if it did, the run would be as good.
            let _ = keys.join();
        }
        screen::give_back();
        held::end();
    }
}

impl Shared {
    fn wait_for_keys(&self) {
        let mut has_asked = false;
        loop {
            match self.screen.wait(TICK.as_nanos() as u64) {
                Input::Over => return,
                // Once: a second signal would end the run at once.
                Input::Key(b'q' | b'Q') if !has_asked => {
                    has_asked = true;
                    // That this process cannot be told leaves it as it was.
                    let _ = cancel::end_by(Signal::INT);
                    self.draw(&mut lock(&self.drawing), Duration::ZERO);
                }
                Input::Key(CTRL_L) | Input::Resumed => {
                    let mut drawing = lock(&self.drawing);
                    drawing.size = (0, 0);
                    self.draw(&mut drawing, Duration::ZERO);
                }
                Input::Key(_) => {}
                Input::Nothing => self.draw(&mut lock(&self.drawing), TICK),
            }
        }
    }

    /// Draws what changed, unless that was done less than `after` ago.
    fn draw(&self, drawing: &mut Drawing, after: Duration) {
        if drawing.drawn.is_some_and(|drawn| drawn.elapsed() < after) {
            return;
        }
        let waiting = held::last();
        let foot = match (waiting.as_deref(), CancelToken::signals().is_cancelled()) {
            (_, true) => "stopping in order; Ctrl-C stops at once",
            (Some(line), false) => line,
            (None, false) if self.screen.has_keys() => "q stops and shows what there is",
            (None, false) => "Ctrl-C stops and shows what there is",
        };
        let terminal = Style {
            color: output::is_colored(),
            unicode: output::is_unicode(),
            ..Style::default()
        };
        let size = self.screen.size().unwrap_or(USUAL_SIZE);
        let next = view::lines(&drawing.board, &terminal, foot, size);
        // What is too long for its line is cut off there.
        let mut out = "\x1b[?7l".to_owned();
        if std::mem::replace(&mut drawing.size, size) != size {
            out += "\x1b[2J";
            drawing.shown.clear();
        }
        for (y, line) in next.iter().enumerate() {
            if drawing.shown.get(y) != Some(line) {
                out += &format!("\x1b[{};1H\x1b[K{line}", y + 1);
            }
        }
        // A terminal that is gone ends the run by a signal.
        let _ = self.screen.write((out + "\x1b[?7h").as_bytes());
        drawing.shown = next;
        drawing.drawn = Some(Instant::now());
    }
}
