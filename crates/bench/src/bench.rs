//! What every bench is handed to measure with.

use flatout_measure::clock::Clock;
use flatout_measure::guard::Witness;
use flatout_measure::progress::Event;
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
