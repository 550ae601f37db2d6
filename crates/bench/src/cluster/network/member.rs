//! One process of the network area: it sends and receives what it is told, and times it.

use flatout_sys::{AlignedBuffer, monotonic_ns};
use serde::{Deserialize, Serialize};

use super::super::team::{Word, Work};
use super::super::{Seat, Window, Wire};

/// What is done before the clock starts: one part in so many, and at least so often.
const SKIPPED_PART: u64 = 10;
const LEAST_SKIPPED: u64 = 2;
/// The answer to a window.
const ANSWER: [u8; 4] = [0; 4];

/// What a process does in a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum Setting {
    /// Nothing.
    Rest,
    /// Round trips with another one, which this one begins or answers.
    Ping { with: usize, begins: bool },
    /// Windows of messages.
    Stream { to: Vec<usize>, from: Vec<usize> },
}

/// What it is told.
#[derive(Debug, Serialize, Deserialize)]
pub(in super::super) struct Command {
    pub(super) setting: Setting,
    /// Length of a message, messages of a window, round trips or windows.
    pub(super) bytes: usize,
    pub(super) window: usize,
    pub(super) count: u64,
}

/// What it answers.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(in super::super) struct Reply {
    /// The time of all round trips, or windows.
    pub(super) elapsed_ns: u64,
    /// Round trips that it began; messages that it sent, and that it received.
    pub(super) trips: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// A process.
pub(in super::super) struct Member {
    seat: Seat,
    out: AlignedBuffer,
    into: AlignedBuffer,
}

impl Member {
    /// A process that has not begun.
    ///
    /// # Errors
    /// There is no memory.
    pub(in super::super) fn new(seat: Seat) -> Result<Self, String> {
        Ok(Self { seat, out: buffer(1)?, into: buffer(1)? })
    }
}

/// The time of so many turns, after some that do not count.
fn timed(turns: u64, mut turn: impl FnMut()) -> u64 {
    (0..(turns / SKIPPED_PART).max(LEAST_SKIPPED)).for_each(|_| turn());
    let begun_ns = monotonic_ns();
    (0..turns).for_each(|_| turn());
    monotonic_ns() - begun_ns
}

impl Work for Member {
    type Command = Command;
    type Reply = Reply;
    const WORD: fn(Command) -> Word = Word::Network;

    fn run(&mut self, wire: &mut dyn Wire, command: Command) -> Result<Reply, String> {
        let Command { setting, bytes, window, count } = command;
        let known = |rank: &usize| *rank < self.seat.size && *rank != self.seat.rank;
        match setting {
            Setting::Rest => Ok(Reply::default()),
            Setting::Ping { with, begins } if known(&with) => {
                // Buffers are as long as the messages.
                (self.out, self.into) = (buffer(bytes)?, buffer(bytes)?);
                let (out, into) = (self.out.as_slice(), self.into.as_mut_slice());
                let elapsed_ns = timed(count, || {
                    if begins {
                        wire.put(with, out);
                    }
                    wire.take(with, into);
                    if !begins {
                        wire.put(with, out);
                    }
                });
                let trips = if begins { count } else { 0 };
                Ok(Reply { elapsed_ns, trips, ..Reply::default() })
            }
            Setting::Stream { to, from } if to.iter().chain(&from).all(known) => {
                self.out = buffer(bytes)?;
                let into_bytes = bytes * window * from.len();
                if self.into.as_slice().len() < into_bytes {
                    self.into = buffer(into_bytes)?;
                }
                let (message, into) = (self.out.as_slice(), self.into.as_mut_slice());
                let mut answer = ANSWER;
                let elapsed_ns = timed(count, || {
                    wire.window(Window { to: &to, from: &from, count: window, message, into });
                    from.iter().for_each(|&from| wire.put(from, &ANSWER));
                    to.iter().for_each(|&to| wire.take(to, &mut answer));
                });
                let messages = |peers: &[usize]| count * (window * peers.len()) as u64;
                let (sent, received) = (messages(&to), messages(&from));
                Ok(Reply { elapsed_ns, sent, received, ..Reply::default() })
            }
            setting => Err(format!("there is no such process: {setting:?}")),
        }
    }
}

/// Memory that was touched: the first touch is no part of a message.
fn buffer(bytes: usize) -> Result<AlignedBuffer, String> {
    let mut buffer = AlignedBuffer::new(bytes).map_err(|error| error.to_string())?;
    buffer.as_mut_slice().fill(1);
    Ok(buffer)
}
