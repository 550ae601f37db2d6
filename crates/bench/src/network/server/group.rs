//! Clients that are measured together: each of their tests begins when all of them are ready for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flatout_sys::monotonic_ns;

use crate::network::channel::ChannelError;
use crate::network::flow::round::Round;
use crate::network::spec::{MAX_TEST_NS, Placement, Sender, Spec};
use crate::workers;

/// How often one that waits for the others looks whether its client is still there.
const LOOK: Duration = Duration::from_millis(10);
/// How long the others may take: the longest test, and what lies between two.
pub const PATIENCE_NS: u64 = MAX_TEST_NS + 5_000_000_000;

/// So many clients.
pub struct Group {
    /// How many clients.
    pub clients: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The tests of those that wait.
    ready: Vec<Spec>,
    /// The round that began last.
    round: Option<Arc<Round>>,
    /// There is no round any more: a client has gone, or, and why, they do not fit together.
    over: Option<Result<(), String>>,
}

/// What has to be the same in all tests of a round: all but how each client sends, where its threads
/// run, and how long it takes.
fn alike(spec: &Spec) -> Spec {
    Spec {
        test: 0,
        sender: Sender::default(),
        placement: Placement::default(),
        shares_cpus: false,
        turn: 0,
        warm_ns: 0,
        window_ns: 0,
        tail_ns: 0,
        ..*spec
    }
}

impl Group {
    /// One of so many clients.
    pub fn new(clients: u16) -> Self {
        Self { clients, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until all clients are ready for a test like this one. `look` is asked meanwhile whether
    /// to go on.
    ///
    /// Errors: `OthersLeft`, `Refused`; those of `look`.
    pub fn ready(
        &self,
        spec: &Spec,
        mut look: impl FnMut() -> Result<(), ChannelError>,
    ) -> Result<Arc<Round>, ChannelError> {
        let deadline_ns = monotonic_ns().saturating_add(PATIENCE_NS);
        let mut state = workers::lock(&self.state);
        let before = state.round.clone();
        state.ready.push(alike(spec));
        if state.over.is_none() && state.ready.len() == usize::from(self.clients) {
            self.begin(&mut state, spec);
        }
        loop {
            if let Some(round) = &state.round
                && before.as_ref().is_none_or(|before| !Arc::ptr_eq(before, round))
            {
                return Ok(round.clone());
            }
            if let Some(over) = state.over.clone() {
                return Err(over.map_or_else(ChannelError::Refused, |()| ChannelError::OthersLeft));
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            look()?;
            state = workers::lock(&self.state);
            if monotonic_ns() > deadline_ns {
                let text = "the other clients of the group did not come to their next test";
                state.over.get_or_insert(Err(text.to_owned()));
            }
        }
    }

    fn begin(&self, state: &mut MutexGuard<'_, State>, spec: &Spec) {
        let ready = std::mem::take(&mut state.ready);
        if ready.iter().all(|other| *other == ready[0]) {
            state.round = Some(Arc::new(Round::new(spec, self.clients)));
        } else {
            let text = "the clients of the group do not measure the same: give all of them the same options";
            state.over = Some(Err(text.to_owned()));
        }
        self.changed.notify_all();
    }

    /// A client has gone: no further round begins.
    pub fn leave(&self) {
        workers::lock(&self.state).over.get_or_insert(Ok(()));
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::network::spec::Direction;

    fn ready(group: &Group, spec: &Spec) -> Result<Arc<Round>, ChannelError> {
        group.ready(spec, || Ok(()))
    }

    #[test]
    fn a_round_begins_when_all_are_ready_and_is_the_same_for_all() {
        let group = &Group::new(3);
        let long = Spec { window_ns: 9, test: 4, ..Spec::one_stream() };
        let rounds = thread::scope(|scope| {
            let run = |spec: Spec| move || [(); 5].map(|()| ready(group, &spec).unwrap());
            let all =
                [Spec::one_stream(), long, Spec::one_stream()].map(|spec| scope.spawn(run(spec)));
            all.map(|one| one.join().unwrap())
        });
        for number in 0..5 {
            let [first, second, third] = rounds.each_ref().map(|of| &of[number]);
            assert!(Arc::ptr_eq(first, second) && Arc::ptr_eq(second, third));
            assert!(number == 0 || !Arc::ptr_eq(first, &rounds[0][number - 1]));
        }
    }

    #[test]
    fn who_leaves_ends_the_group_for_those_that_wait_and_those_that_come() {
        let group = &Group::new(2);
        thread::scope(|scope| {
            let waits = scope.spawn(move || ready(group, &Spec::one_stream()).unwrap_err());
            group.leave();
            assert!(matches!(waits.join().unwrap(), ChannelError::OthersLeft));
        });
        let late = ready(group, &Spec::one_stream()).unwrap_err();
        assert!(matches!(late, ChannelError::OthersLeft));
    }

    #[test]
    fn different_tests_are_refused_to_all() {
        let group = &Group::new(2);
        let down = Spec { direction: Direction::Down, ..Spec::one_stream() };
        thread::scope(|scope| {
            let all = [Spec::one_stream(), down]
                .map(|spec| scope.spawn(move || ready(group, &spec).unwrap_err()));
            for one in all {
                let ChannelError::Refused(text) = one.join().unwrap() else { panic!() };
                assert!(text.contains("same options"), "{text}");
            }
        });
    }

    #[test]
    fn who_waits_looks_whether_its_client_is_there() {
        let group = Group::new(2);
        let error = group.ready(&Spec::one_stream(), || Err(ChannelError::Closed)).unwrap_err();
        assert!(matches!(error, ChannelError::Closed));
    }
}
