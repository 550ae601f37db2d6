//! What every bench is handed to measure with, how much of it, and what it hands back.

use flatout_measure::clock::Clock;
use flatout_measure::guard::Witness;
use flatout_measure::progress::Event;
use flatout_measure::record::{Chart, Outcome};
use flatout_measure::sampler::Tools;

/// Clock, witness, progress and the wish to stop, for as many runs of the sampler as a bench
/// needs.
pub struct Bench<'a> {
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Sees what else happens on the machine.
    pub witness: &'a mut dyn Witness,
    /// Is told about progress.
    pub events: &'a mut dyn FnMut(Event),
    /// Whether the user wants to stop.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl Bench<'_> {
    /// The tools for one run of the sampler.
    pub fn tools(&mut self) -> Tools<'_> {
        Tools {
            clock: self.clock,
            witness: &mut *self.witness,
            events: &mut *self.events,
            cancelled: self.cancelled,
        }
    }
}

/// Which rows of an area are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// A few rows, as part of bare `flatout bench`.
    Few,
    /// A coarse grid.
    Quick,
    /// All of them.
    Full,
}

/// What an area found.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Its rows.
    pub outcomes: Vec<Outcome>,
    /// Which of them make a picture.
    pub charts: Vec<Chart>,
}
