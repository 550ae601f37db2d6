//! What processes of one launcher measure together: a filesystem that all of them see
//! ([`disk`]), and the network between them ([`network`]).
//!
//! The first process decides and tells; the others do what it says and answer with what
//! they saw (team.rs). How messages travel is the [`Wire`]'s affair; nothing here waits for one
//! without a limit. docs/cluster.md explains each figure.

mod clocks;
pub mod disk;
mod fact;
pub mod network;
mod outlying;
mod team;
mod window;

use std::cell::RefCell;
use std::rc::Rc;

use flatout_measure::guard::{Reading, Witness};
use flatout_measure::{Plan, Sampler};
use flatout_tree::copy::Post;

pub use team::{Dismissal, follow};

/// The processes that were started together, as one of them reaches the others.
pub trait Wire: Post {
    /// The number of this process, and how many there are.
    fn seat(&self) -> Seat;
    /// Sends a message of the measured kind, and waits until it may be forgotten (MPI_Send).
    fn put(&mut self, to: usize, message: &[u8]);
    /// Waits for such a message, of this very length (MPI_Recv).
    fn take(&mut self, from: usize, into: &mut [u8]);
    /// Begins all messages of a window at once, and waits for all (MPI_Isend, MPI_Irecv,
    /// MPI_Waitall).
    fn window(&mut self, window: Window<'_>);
}

/// Messages that are on their way at one time.
pub struct Window<'a> {
    /// Who gets `count` messages each.
    pub to: &'a [usize],
    /// Who sends as many.
    pub from: &'a [usize],
    /// Messages from one to another.
    pub count: usize,
    /// What each message says.
    pub message: &'a [u8],
    /// Where those that come are put, one after the other.
    pub into: &'a mut [u8],
}

/// Which one of several processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// Its number, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
}

/// A way to the others that an area and whoever made it share.
pub type Shared = Rc<RefCell<dyn Wire>>;

/// A witness that does not take work on this machine for that of others: it is that of processes of
/// the job, or nobody can tell. Stolen time, throttling and clocks are looked at.
struct OfTheJob<'w>(&'w mut dyn Witness);

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

/// Measures with so many trials at most, and such a witness.
fn of_the_job<T>(
    sampler: &mut Sampler<'_>,
    max_trials: u32,
    measure: impl FnOnce(&mut Sampler<'_>) -> T,
) -> T {
    let mut witness = OfTheJob(&mut *sampler.witness);
    let plan = Plan { max_trials, ..sampler.plan.clone() };
    measure(&mut Sampler { plan, witness: &mut witness, events: &mut *sampler.events, ..*sampler })
}
