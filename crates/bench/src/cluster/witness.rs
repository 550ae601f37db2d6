//! What disturbs a job of many processes: not the other processes of the job.

use flatout_measure::guard::{Reading, Witness};

/// A witness that does not take work on this machine for that of others: it is that of processes of
/// the job, or nobody can tell. Stolen time, throttling and clocks are looked at.
pub(super) struct OfTheJob<'w>(pub(super) &'w mut dyn Witness);

impl Witness for OfTheJob<'_> {
    fn read(&mut self) -> Reading {
        let waited_ns = None;
        Reading {
            waited_ns,
            others_running: 0,
            others_busy_ns: 0,
            involuntary_switches: 0,
            ..self.0.read()
        }
    }

    fn cpus(&self) -> u32 {
        self.0.cpus()
    }
}
