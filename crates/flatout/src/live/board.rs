//! What is known of a run while it goes on: its rows, the one at work, the time left, the load.
//! Taken from events; shown by `live/view.rs`.

use flatout_measure::comparison::RowName;
use flatout_measure::guard::UseOfCpus;
use flatout_measure::progress::{Event, Standing};
use flatout_measure::record::Series;
use flatout_measure::statistics;
use flatout_report::quantity;

/// Load is told over at least so long: the kernel counts it in ticks of 10 ms.
const LOAD_OVER_NS: u64 = 1_000_000_000;

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Eta {
    /// Time that it still takes.
    pub left_ns: u64,
    /// Share of its time that has passed, 0 to 1.
    pub share: f64,
}

/// One row.
#[derive(Debug, Default)]
pub struct Line {
    id: String,
    /// Its id and its parameters.
    pub name: String,
    /// What it says by now.
    pub standing: Option<Standing>,
    /// Half the width of its interval after each trial, as a share of the median.
    pub half_widths: Series,
    /// Whether it needs no more trials.
    pub is_closed: bool,
}

impl Line {
    /// Its figure by now, in the unit that people say.
    pub fn figure(&self) -> Option<String> {
        let standing = self.standing.as_ref()?;
        let (unit, factor) = flatout_report::unit(&self.id, standing.unit);
        Some(quantity::value(unit, standing.median? * factor))
    }

    /// Half the width of its interval by now.
    pub fn half_width(&self) -> Option<f64> {
        let standing = self.standing.as_ref()?;
        statistics::half_width(standing.median?, standing.ci95?)
    }
}

/// The run.
#[derive(Debug, Default)]
pub struct Board {
    /// The rows, in the order in which they began.
    pub lines: Vec<Line>,
    /// Which of them is at work.
    pub current: Option<usize>,
    /// What is done where none is.
    pub preparing: String,
    /// How far it is.
    pub eta: Eta,
    /// Who had the CPUs lately, once that is known.
    pub load: Option<UseOfCpus>,
    /// CPUs of the machine.
    pub cpus: u32,
    counting: UseOfCpus,
}

impl Board {
    /// A run on so many CPUs of which nothing is known yet.
    pub fn new(cpus: u32) -> Self {
        Self { cpus, ..Self::default() }
    }

    /// Takes in what happened.
    pub fn take(&mut self, event: &Event, eta: Option<Eta>) {
        self.eta = eta.unwrap_or(self.eta);
        match event {
            Event::Preparing { what } => {
                self.current = None;
                self.preparing.clone_from(what);
            }
            Event::Trial { row, .. } => self.current = Some(self.place(row)),
            Event::Ended { row, standing, use_of_cpus } => {
                self.count(*use_of_cpus);
                let line = self.line(row);
                line.standing = Some(standing.clone());
                if let Some(half) = line.half_width() {
                    let trial = line.half_widths.points.len() as f64;
                    line.half_widths.points.push([trial, half]);
                }
            }
            Event::Closed { row, standing, .. } => {
                let line = self.line(row);
                line.standing = Some(standing.clone());
                line.is_closed = true;
            }
        }
    }

    /// Rows that need no more trials.
    pub fn done(&self) -> usize {
        self.lines.iter().filter(|line| line.is_closed).count()
    }

    /// Trials that others disturbed so much that they do not count.
    pub fn discarded(&self) -> u64 {
        self.lines.iter().filter_map(|line| line.standing.as_ref()).map(|row| row.discarded).sum()
    }

    fn count(&mut self, use_of_cpus: UseOfCpus) {
        self.counting = self.counting.and(use_of_cpus);
        if self.counting.elapsed_ns >= LOAD_OVER_NS {
            self.load = Some(std::mem::take(&mut self.counting));
        }
    }

    fn line(&mut self, row: &RowName) -> &mut Line {
        let place = self.place(row);
        &mut self.lines[place]
    }

    /// Where a row stands; one that is new comes last.
    fn place(&mut self, row: &RowName) -> usize {
        let name = format!("{} {}", row.id, flatout_report::parameters_text(&row.parameters));
        let name = name.trim_end();
        self.lines.iter().rposition(|line| line.name == name).unwrap_or_else(|| {
            let (id, name) = (row.id.clone(), name.to_owned());
            self.lines.push(Line { id, name, ..Line::default() });
            self.lines.len() - 1
        })
    }
}
