//! A board as the lines of a screen: how far the run is, its rows, the load. Narrow screens lose
//! columns from the right, low ones rows.

use std::ops::Range;

use flatout_measure::record::Status;
use flatout_measure::sampler::NOISY;
use flatout_report::{Style as Terminal, quantity, sparkline, text};

use super::board::{Board, Line};

/// Columns of the figure, of the half-width, of its curve and of the number of trials.
const FIGURE: usize = 12;
const HALF_WIDTH: usize = 8;
const CURVE: usize = 10;
const TRIALS: usize = 7;
/// Columns of the screen from which on the latter two are shown.
const WITH_CURVE: usize = 64;
const WITH_TRIALS: usize = 76;
/// Lines of the screen from which on there are gaps.
const WITH_GAPS: usize = 16;

/// Columns that the board takes at most.
const WIDEST: usize = 120;

/// How text is emphasised, and its colours, where the terminal has these (SGR).
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const BLUE: &str = "34";
const CYAN: &str = "36";

/// The lines of a screen of this size, in the colours and characters of this terminal; `foot` is said at
/// its end. On a screen too narrow for figures they are longer than it is wide.
pub fn lines(
    board: &Board,
    terminal: &Terminal,
    foot: &str,
    (width, height): (u16, u16),
) -> Vec<String> {
    // A figure far from its name is hard to read.
    let (width, height) = (usize::from(width).min(WIDEST), usize::from(height));
    let view = View { terminal, width };
    let gap = (height >= WITH_GAPS).then(String::new);
    let mut head = vec![view.title(board), view.bar(board), view.now(board)];
    head.extend(gap.clone());
    head.push(view.heading());
    let mut below = Vec::from_iter(gap);
    below.extend([view.load(board), styled(DIM, &view.clip(foot, view.width))]);
    let room = height.saturating_sub(head.len() + below.len());
    let shown = shown(board, room);
    let rows = shown.clone().map(|at| view.row(&board.lines[at], board.current == Some(at)));
    let blank = vec![String::new(); room - shown.len()];
    head.into_iter().chain(rows).chain(blank).chain(below).take(height).collect()
}

fn styled(code: &str, text: &str) -> String {
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// The rows that there is room for: those that are done make room for those that are not. In the
/// end the last.
fn shown(board: &Board, room: usize) -> Range<usize> {
    let all = board.lines.len();
    let open = board.lines.iter().position(|line| !line.is_closed).unwrap_or(all);
    let first = open.saturating_sub(room / 3).min(all.saturating_sub(room));
    first..all.min(first + room)
}

struct View<'a> {
    terminal: &'a Terminal,
    width: usize,
}

impl View<'_> {
    /// The text as this terminal shows it.
    fn text(&self, text: &str) -> String {
        text::shown(text, self.terminal)
    }

    /// The same in one line of so many columns.
    fn clip(&self, text: &str, columns: usize) -> String {
        text::clip(&self.text(text), columns, self.terminal)
    }

    fn colored(&self, color: &str, text: &str) -> String {
        if self.terminal.color { styled(color, text) } else { text.to_owned() }
    }

    fn title(&self, board: &Board) -> String {
        let done = quantity::counted(board.done(), "row");
        let left = format!("{} s left", board.eta.left_ns.div_ceil(1_000_000_000));
        let gap = self.width.saturating_sub(left.len());
        let name = self.clip(&format!("flatout bench: {done} done"), gap);
        styled(BOLD, &format!("{}{left}", text::pad_right(&name, gap)))
    }

    fn bar(&self, board: &Board) -> String {
        let share = board.eta.share.clamp(0.0, 1.0);
        let percent = format!(" {:>3.0} %", share * 100.0);
        let room = self.width.saturating_sub(percent.len());
        let full = (share * room as f64) as usize;
        let [done, open] = if self.terminal.unicode { ["█", "░"] } else { ["#", "-"] };
        self.colored(BLUE, &done.repeat(full)) + &open.repeat(room - full) + &percent
    }

    fn now(&self, board: &Board) -> String {
        let now = match board.current {
            Some(at) => &board.lines[at].name,
            None => &board.preparing,
        };
        self.clip(&format!("now {now}"), self.width)
    }

    /// Columns of the name, and which other columns there are.
    fn columns(&self) -> (usize, bool, bool) {
        let (has_curve, has_trials) = (self.width >= WITH_CURVE, self.width >= WITH_TRIALS);
        let curve = if has_curve { CURVE } else { 0 };
        let trials = if has_trials { TRIALS } else { 0 };
        let name = self.width.saturating_sub(2 + FIGURE + HALF_WIDTH + curve + trials);
        (name, has_curve, has_trials)
    }

    fn heading(&self) -> String {
        let (name, has_curve, has_trials) = self.columns();
        let mut heading = text::pad_right("  row", name + 2);
        heading += &text::pad_left("figure", FIGURE);
        heading += &text::pad_left(&self.text("±"), HALF_WIDTH);
        if has_curve {
            heading += &format!("  {}", text::pad_right(&self.text("± so far"), CURVE - 2));
        }
        if has_trials {
            heading += &text::pad_left("trials", TRIALS);
        }
        styled(DIM, &heading)
    }

    fn row(&self, line: &Line, is_current: bool) -> String {
        let (name, has_curve, has_trials) = self.columns();
        let [now, done] = if self.terminal.unicode { ["▸ ", "✓ "] } else { ["> ", "+ "] };
        let refused = line.standing.as_ref().and_then(|standing| standing.refused.as_ref());
        let mark = match (is_current, line.is_closed, refused) {
            (true, _, _) => self.colored(CYAN, now),
            (false, true, None) => self.colored(GREEN, done),
            (false, true, Some(_)) => "- ".to_owned(),
            (false, false, _) => "  ".to_owned(),
        };
        let weighty = |text: String| if is_current { styled(BOLD, &text) } else { text };
        let named = text::pad_right(&self.clip(&line.name, name.saturating_sub(1)), name);
        let mut row = mark + &weighty(named);
        let Some(standing) = &line.standing else { return row };
        if let Some((status, why)) = refused {
            let color = if *status == Status::Failed { RED } else { YELLOW };
            let why = self.clip(why, self.width.saturating_sub(2 + name + 1));
            return row + " " + &self.colored(color, &why);
        }
        let figure = self.text(&line.figure().unwrap_or_default());
        row += &weighty(text::pad_left(&figure, FIGURE));
        row += &self.half_width(line);
        if has_curve {
            let curve = sparkline(&line.half_widths, CURVE - 2, self.terminal);
            row += &format!("  {}", text::pad_right(&curve, CURVE - 2));
        }
        if has_trials {
            row += &text::pad_left(&quantity::count(standing.trials), TRIALS);
        }
        row
    }

    fn half_width(&self, line: &Line) -> String {
        let half = line.half_width();
        let is_noisy = line.is_closed && half.is_none_or(|half| half > NOISY);
        let told = text::pad_left(&half.map(quantity::half).unwrap_or_default(), HALF_WIDTH);
        if is_noisy { self.colored(YELLOW, &told) } else { told }
    }

    fn load(&self, board: &Board) -> String {
        let mut said = match board.load {
            Some(load) => {
                let in_cpus = |ns: u64| ns as f64 / load.elapsed_ns.max(1) as f64;
                let stolen = in_cpus(load.stolen_ns) / f64::from(board.cpus.max(1));
                let (others, cpus) = (load.others_cpus(), board.cpus);
                format!("load: others {others:.1} of {cpus} CPUs, steal {:.1} %", stolen * 100.0)
            }
            None => "load: not known yet".to_owned(),
        };
        said += &match board.discarded() {
            0 => String::new(),
            trials => format!(", {} discarded", quantity::counted(trials as usize, "trial")),
        };
        self.clip(&said, self.width)
    }
}

#[cfg(test)]
mod tests;
