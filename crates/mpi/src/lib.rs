//! Processes that mpirun or srun started together: which one this is, and messages between them.
//!
//! Rule: the only room that knows MPI, and outside the default build. One thread of a process
//! speaks MPI, the one that called [`World::join`]; nothing here waits for a message, but
//! [`World::tell_all`] and [`World::gather`], which all processes call together and which end the job
//! where one does not come, and the messages that are measured ([`Wire`]), which have a tag of their own.

#![forbid(unsafe_code)]

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use flatout_bench::cluster::{Seat, Window, Wire};
use flatout_tree::copy::Post;
use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec;
use mpi::request::{Request, Scope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

/// Bytes that may be on their way from one process: a message is copied there, and whoever sends it
/// does not wait. A process has one account and some parcels of at most 16 pieces on their way.
const UNDERWAY_BYTES: usize = 64 << 20;
/// What tells messages apart that are measured.
const MEASURED: i32 = 1;
const GATHERED: i32 = 2;
/// A process for which the others have waited so long does not come any more. The first one has more to do,
/// and may have to wait for a user who has stopped the terminal.
const PATIENCE: Duration = Duration::from_secs(120);
const PATIENCE_AT_FIRST: Duration = Duration::from_secs(600);
const PATIENCE_WITH_FIRST: Duration = Duration::from_secs(3600);
/// Between two looks; who has not looked for longer than the second was stopped itself.
const PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The process that tells the user.
const FIRST: i32 = 0;

/// All processes of the program.
pub struct World {
    all: SimpleCommunicator,
    /// Tells the user.
    complain: fn(&str),
    /// Dropped last: MPI ends then.
    _universe: Universe,
}

impl World {
    /// Begins to speak with the other processes; `None`: there are none. Who does not answer any more is
    /// told by `complain` before all end; where that begins already, by the first one if it can.
    ///
    /// Errors: MPI was begun before.
    pub fn join(complain: fn(&str), is_first: bool) -> Result<Option<Self>, String> {
        let (begun, waiting) = channel::<()>();
        thread::spawn(move || {
            let more = if is_first { Duration::ZERO } else { LONGEST_PAUSE };
            if waiting.recv_timeout(PATIENCE_AT_FIRST + more) == Err(RecvTimeoutError::Timeout) {
                complain("a process does not begin: given up");
                std::process::exit(1);
            }
        });
        let Some((mut universe, _)) = mpi::initialize_with_threading(mpi::Threading::Funneled)
        else {
            return Err("MPI was begun before".to_owned());
        };
        drop(begun);
        universe.set_buffer_size(UNDERWAY_BYTES);
        let all = universe.world();
        Ok((all.size() > 1).then_some(Self { all, complain, _universe: universe }))
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.all.rank() as usize
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.all.size() as usize
    }

    /// The name of the machine that this process runs on.
    pub fn host() -> String {
        mpi::environment::processor_name().unwrap_or_else(|_| "?".to_owned())
    }

    /// What the first process says, to all; waits until it has said it.
    pub fn tell_all(&self, message: &mut Vec<u8>) {
        let first = self.all.process_at_rank(FIRST);
        let mut length = message.len() as u64;
        scope(|scope| self.wait(first.immediate_broadcast_into(scope, &mut length)));
        message.resize(length as usize, 0);
        // Open MPI takes no empty buffer.
        if length > 0 {
            scope(|scope| self.wait(first.immediate_broadcast_into(scope, &mut message[..])));
        }
    }

    /// What each process says, in the order of their ranks; empty but in the first one. Waits for
    /// all, that long more than for any other answer.
    pub fn gather(&self, message: &[u8], more: Duration) -> Vec<Vec<u8>> {
        let first = self.all.process_at_rank(FIRST);
        if self.all.rank() != FIRST {
            scope(|scope| self.wait(first.immediate_send_with_tag(scope, message, GATHERED)));
            return Vec::new();
        }
        let theirs = (1..self.all.size()).map(|rank| {
            let other = self.all.process_at_rank(rank);
            let look = || other.immediate_matched_probe_with_tag(GATHERED);
            self.until(Some(rank), PATIENCE + more, look).matched_receive_vec().0
        });
        std::iter::once(message.to_vec()).chain(theirs).collect()
    }

    /// Waits for what all do together.
    fn wait<'a, D: ?Sized, S: Scope<'a>>(&self, request: Request<'a, D, S>) {
        let mut request = Some(request);
        let look = || match request.take()?.test() {
            Ok(_) => Some(()),
            Err(pending) => {
                request = Some(pending);
                None
            }
        };
        match self.all.rank() {
            FIRST => self.until(None, PATIENCE, look),
            _ => self.until(Some(FIRST), PATIENCE_WITH_FIRST, look),
        }
    }

    /// Looks until something is there, without a busy loop: others may be measuring. Ends all processes
    /// when it does not come.
    fn until<T>(
        &self,
        whom: Option<i32>,
        patience: Duration,
        mut look: impl FnMut() -> Option<T>,
    ) -> T {
        let (mut waited, mut looked) = (Duration::ZERO, Instant::now());
        loop {
            if let Some(found) = look() {
                return found;
            }
            let now = Instant::now();
            waited += now.duration_since(looked).min(LONGEST_PAUSE);
            looked = now;
            if waited > patience {
                let whom =
                    whom.map_or_else(|| "a process".to_owned(), |rank| format!("process {rank}"));
                (self.complain)(&format!("{whom} does not answer any more: given up"));
                self.abort(1);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Ends all processes at once: this one cannot go on, and the others would wait for it.
    pub fn abort(&self, code: i32) -> ! {
        self.all.abort(code)
    }
}

impl Post for World {
    fn send(&mut self, to: usize, message: &[u8]) {
        self.all.process_at_rank(to as i32).buffered_send(message);
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        let found = self.all.any_process().immediate_matched_probe_with_tag(0)?;
        let (message, status) = found.matched_receive_vec();
        Some((status.source_rank() as usize, message))
    }
}

impl Wire for World {
    fn seat(&self) -> Seat {
        Seat { rank: self.rank(), size: self.size() }
    }

    fn put(&mut self, to: usize, message: &[u8]) {
        self.all.process_at_rank(to as i32).send_with_tag(message, MEASURED);
    }

    fn take(&mut self, from: usize, into: &mut [u8]) {
        self.all.process_at_rank(from as i32).receive_into_with_tag(into, MEASURED);
    }

    fn window(&mut self, window: Window<'_>) {
        let Window { to, from, count, message, into } = window;
        let mut done = Vec::with_capacity(count * (to.len() + from.len()));
        mpi::request::multiple_scope(done.capacity(), |scope, requests| {
            let mut places = into.chunks_mut(message.len().max(1));
            for &from in from {
                let from = self.all.process_at_rank(from as i32);
                for place in places.by_ref().take(count) {
                    let request = from.immediate_receive_into_with_tag(scope, place, MEASURED);
                    requests.add(request);
                }
            }
            for &to in to {
                let to = self.all.process_at_rank(to as i32);
                for _ in 0..count {
                    requests.add(to.immediate_send_with_tag(scope, message, MEASURED));
                }
            }
            requests.wait_all(&mut done);
        });
    }
}
