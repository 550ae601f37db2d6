//! The first process and those that follow it: commands and replies, each within a limit of time.

use std::collections::BTreeSet;
use std::time::Duration;

use flatout_measure::TrialError;
use flatout_sys::{CancelToken, monotonic_ns};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::clocks::{self, Offset};
use super::{Shared, Wire, disk, network};
use crate::go_on;

/// Between two looks at what has come, when there was nothing.
const PAUSE: Duration = Duration::from_micros(50);
/// A process that has not answered for so long does not answer.
const SILENCE_NS: u64 = 120_000_000_000;
/// The first one, which waits for others, is waited for longer.
const FIRST_SILENCE_NS: u64 = 2 * SILENCE_NS;
/// After a signal that all get, the others end so soon. Open MPI kills those that have not ended after
/// a second.
const ORDERLY_NS: u64 = 300_000_000;
/// What the first one waits for the others then, before it removes what they made.
const LAST_WAIT_NS: u64 = 50_000_000;
/// Exchanges of which the fastest tells how far two clocks lie apart.
const CLOCK_TRIES: u32 = 50;

/// What a process does at the word of the first one.
pub(super) trait Work {
    /// What it is told.
    type Command;
    /// What it answers.
    type Reply: Serialize + DeserializeOwned;
    /// What it is told, among all that is said.
    const WORD: fn(Self::Command) -> Word;

    /// Does it.
    ///
    /// # Errors
    /// What went wrong, for people.
    fn run(&mut self, wire: &mut dyn Wire, command: Self::Command) -> Result<Self::Reply, String>;
}

/// What the first one says to another.
#[derive(Serialize, Deserialize)]
pub(super) enum Word {
    Disk(disk::Command),
    Network(network::Command),
    /// Answer so many readings of the clock.
    Clock(u32),
    Over,
}

/// All processes, as the first one leads them.
pub(super) struct Team<W: Work> {
    wire: Shared,
    own: W,
    cancel: CancelToken,
    /// Commands that were given: one who was too late answers an earlier one.
    given: u64,
    /// What the longest command may take.
    pub(super) patience_ns: u64,
    /// The host of each.
    pub(super) hosts: Vec<String>,
    /// The clock of each against that of the first one.
    pub(super) offsets: Vec<Offset>,
}

impl<W: Work> Team<W> {
    pub(super) fn new(wire: Shared, own: W, hosts: Vec<String>, cancel: CancelToken) -> Self {
        let offsets = vec![Offset::default(); hosts.len()];
        Self { wire, own, cancel, given: 0, patience_ns: 0, hosts, offsets }
    }

    pub(super) fn size(&self) -> usize {
        self.hosts.len()
    }

    /// How a process is called.
    pub(super) fn name(&self, rank: usize) -> String {
        format!("{rank} {}", self.hosts[rank])
    }

    /// Has each do what it is told, at one time; what they answer, in the order of their ranks.
    ///
    /// Errors: the first that one of them reports; [`TrialError::Interrupted`].
    pub(super) fn all(
        &mut self,
        command: impl Fn(usize) -> W::Command,
    ) -> Result<Vec<W::Reply>, TrialError> {
        let wire = &mut *self.wire.borrow_mut();
        self.given += 1;
        for rank in 1..self.hosts.len() {
            say(wire, rank, &(self.given, W::WORD(command(rank))));
        }
        let own = self.own.run(wire, command(0));
        let mut replies: Vec<Option<Result<W::Reply, String>>> = Vec::new();
        replies.resize_with(self.hosts.len(), || None);
        replies[0] = Some(own);
        let begun_ns = monotonic_ns();
        while let Some(silent) = replies.iter().position(Option::is_none) {
            match wire.receive() {
                Some((from, message)) => {
                    let (of, reply): (u64, _) = heard(&message)?;
                    replies[from] = (of == self.given).then_some(reply);
                }
                // All have got the signal, and the launcher does not wait for long.
                None if self.cancel.is_cancelled() && monotonic_ns() - begun_ns > LAST_WAIT_NS => {
                    return Err(TrialError::Interrupted);
                }
                None if monotonic_ns() - begun_ns > SILENCE_NS + self.patience_ns => {
                    let seconds = (SILENCE_NS + self.patience_ns) / 1_000_000_000;
                    let name = format!("{silent} on {}", self.hosts[silent]);
                    let text = format!("process {name} has not answered for {seconds} s");
                    return Err(TrialError::Failed(text));
                }
                None => flatout_sys::thread::sleep(PAUSE),
            }
        }
        go_on(self.cancel)?;
        let replies = replies.into_iter().flatten().enumerate();
        let named = replies.map(|(rank, reply)| {
            let host = &self.hosts[rank];
            reply.map_err(|why| TrialError::Failed(format!("process {rank} on {host}: {why}")))
        });
        named.collect()
    }

    /// Compares the clock of each with this one's.
    pub(super) fn compare_clocks(&mut self) {
        let wire = &mut *self.wire.borrow_mut();
        for rank in 1..self.hosts.len() {
            say(wire, rank, &(self.given, Word::Clock(CLOCK_TRIES)));
            self.offsets[rank] = clocks::ask(wire, rank, CLOCK_TRIES);
        }
    }

    /// What is told of an error of all.
    pub(super) fn clock_error_ns(&self) -> u64 {
        self.offsets.iter().map(|offset| offset.error_ns).max().unwrap_or(0)
    }
}

/// Different hosts among these.
pub(super) fn host_count(hosts: &[String]) -> usize {
    hosts.iter().collect::<BTreeSet<_>>().len()
}

/// Tells the others that all is over when it is dropped, whatever came of it.
pub struct Dismissal(pub Shared);

impl Drop for Dismissal {
    fn drop(&mut self) {
        if let Ok(mut wire) = self.0.try_borrow_mut() {
            for rank in 1..wire.seat().size {
                say(&mut *wire, rank, &(0, Word::Over));
            }
        }
    }
}

fn say<M: Serialize>(wire: &mut dyn Wire, to: usize, word: &M) {
    let message = serde_json::to_vec(word).expect("its parts are numbers, words and lists");
    wire.send(to, &message);
}

fn heard<T: DeserializeOwned>(message: &[u8]) -> Result<T, TrialError> {
    serde_json::from_slice(message).map_err(|error| TrialError::Failed(error.to_string()))
}

/// What another process does than the first one, until that says that it is over; `beat` is called
/// for each word of it. After a signal it stays for a moment, for what the first one has to say, and
/// removes what that left if it is gone.
///
/// # Errors
/// The first one is gone, or cannot be understood.
pub fn follow(wire: &Shared, cancel: CancelToken, beat: impl Fn()) -> Result<(), String> {
    let wire = &mut *wire.borrow_mut();
    let mut worker = disk::Worker::new(wire.seat(), cancel)?;
    let mut member = network::Member::new(wire.seat())?;
    let mut last_ns = monotonic_ns();
    let mut cancelled_ns = None;
    loop {
        let Some((_, message)) = wire.receive() else {
            let now_ns = monotonic_ns();
            if cancel.is_cancelled() {
                // As long as the first one lives it has the directory locked, and removes it.
                worker.abandon();
                if now_ns - *cancelled_ns.get_or_insert(now_ns) > ORDERLY_NS {
                    return Ok(());
                }
            }
            if now_ns - last_ns > FIRST_SILENCE_NS + 2 * worker.patience_ns() {
                worker.abandon();
                return Err("the first process says nothing any more".to_owned());
            }
            flatout_sys::thread::sleep(PAUSE);
            continue;
        };
        beat();
        let (number, word): (u64, _) = heard(&message).map_err(|error| error.to_string())?;
        match word {
            Word::Over => return Ok(()),
            Word::Clock(tries) => clocks::answer(wire, tries),
            Word::Disk(_) | Word::Network(_) if cancel.is_cancelled() => {
                let reply = Err::<(), _>("it was interrupted");
                say(wire, 0, &(number, reply));
            }
            Word::Disk(command) => {
                let reply = worker.run(wire, command);
                say(wire, 0, &(number, reply));
            }
            Word::Network(command) => {
                let reply = member.run(wire, command);
                say(wire, 0, &(number, reply));
            }
        }
        last_ns = monotonic_ns();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use flatout_tree::copy::Post;
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::threads::threads;

    #[test]
    fn an_answer_to_an_earlier_command_is_none_to_this_one() {
        let mut all = threads(2);
        let (mut other, first) = (all.pop().unwrap(), all.pop().unwrap());
        let seat = first.seat();
        let answered = std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..2 {
                    let message = loop {
                        if let Some((_, message)) = other.receive() {
                            break message;
                        }
                    };
                    let (number, _): (u64, Value) = serde_json::from_slice(&message).unwrap();
                    for (number, trips) in [(number - 1, 1000), (number, number)] {
                        let reply =
                            json!({"elapsed_ns": 1, "trips": trips, "sent": 0, "received": 0});
                        say(&mut other, 0, &(number, json!({ "Ok": reply })));
                    }
                }
            });
            let own = network::Member::new(seat).unwrap();
            let wire: Shared = Rc::new(RefCell::new(first));
            let hosts = vec!["h".to_owned(); 2];
            let mut team = Team::new(wire, own, hosts, CancelToken::manual());
            [(); 2].map(|()| {
                let rest = json!({"setting": "Rest", "bytes": 1, "window": 1, "count": 1});
                let command = |_| serde_json::from_value(rest.clone()).unwrap();
                let replies = team.all(command).unwrap();
                serde_json::to_value(replies[1]).unwrap()["trips"].clone()
            })
        });
        assert_eq!(answered, [1, 2]);
    }
}
