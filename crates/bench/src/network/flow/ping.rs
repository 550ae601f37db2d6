//! Latency: a question goes out, the same bytes come back, the time in between is recorded. One
//! question per connection is on its way at a time.
//!
//! In a closed loop the next question follows the answer; at a rate each has its intended moment,
//! and counts from there even where the answer before came too late for it.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use flatout_measure::Histogram;
use flatout_sys::call::Window;
use flatout_sys::{issue_width, monotonic_ns, socket};

use super::bulk::{pace_until, random_block};
use super::datagrams::is_passing;
use super::{Test, WorkerEnd};
use crate::network::account::Account;
use crate::network::channel::ChannelError;
use crate::network::spec::{Flow, Placement, Protocol, Spec, Waiting};

/// How long an answer is waited for.
const ANSWER_NS: u64 = 1_000_000_000;
/// So many datagrams in a row that nobody answers are no losses: there is no way to go, or back.
const LOST_IN_A_ROW: u64 = 3;
/// A wait for an intended moment ends so long before it, and the rest is spent asking the clock:
/// the kernel wakes up to 50 µs late.
const SPIN_NS: u64 = 80_000;

/// Round trips of so long, in all, lie between two probes of the core, or longer ones of a long test.
const WATCH_NS: u64 = 1_000_000;
const MOST_WINDOWS: u64 = 1 << 12;

/// Windows of round trips, with a probe of the core after each, outside of their time.
#[derive(Default)]
struct Watch {
    windows: Vec<Window>,
    trips: u64,
    elapsed_ns: u64,
}

impl Watch {
    /// Whether a probe on the client's CPU tells what all of a round trip has of its core: both ends are
    /// there, and nothing else of the test is.
    fn applies(spec: &Spec) -> bool {
        let is_one_cpu = spec.placement == Placement::Together && spec.shares_cpus;
        is_one_cpu && spec.flows().len() == 1 && spec.rate_per_s == 0
    }

    fn take(&mut self, trip_ns: u64, window_ns: u64) {
        self.trips += 1;
        self.elapsed_ns += trip_ns;
        if self.elapsed_ns >= window_ns {
            let (calls, elapsed) = (self.trips, Duration::from_nanos(self.elapsed_ns));
            let issued_per_cycle = issue_width::measure();
            self.windows.push(Window { calls, elapsed, issued_per_cycle });
            (self.trips, self.elapsed_ns) = (0, 0);
        }
    }
}

/// Only a network card has a queue to poll, and only root may ask for it: the loop does not depend on it.
fn poll(test: &Test, socket: BorrowedFd<'_>) {
    if test.spec.waiting == Waiting::Spinning {
        let _ = socket::set_busy_poll(socket, 50);
    }
}

/// Receives a message that fills the buffer. False where the other end or the test has ended.
fn receive(
    test: &Test,
    (socket, flow): (BorrowedFd<'_>, Flow),
    buffer: &mut [u8],
    deadline_ns: u64,
) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() && !test.is_over() {
        let rest = &mut buffer[filled..];
        let received = match test.spec.waiting {
            Waiting::Blocking => socket::receive(socket, rest),
            Waiting::Spinning => socket::receive_now(socket, rest),
        };
        match received {
            Ok(0) => return Ok(false),
            Ok(length) => filled += length,
            Err(error) if is_passing(&error) => {
                if monotonic_ns() > deadline_ns {
                    return Ok(false);
                }
                std::hint::spin_loop();
            }
            Err(error) => return Err(error),
        }
        if flow.protocol == Protocol::Udp && filled < buffer.len() {
            // A datagram of another length is none of ours.
            filled = 0;
        }
    }
    Ok(filled == buffer.len())
}

fn send(socket: BorrowedFd<'_>, message: &[u8]) -> io::Result<()> {
    let mut sent = 0;
    while sent < message.len() {
        match socket::send(socket, &message[sent..]) {
            Ok(length) => sent += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The client's side.
pub(super) fn ask(
    test: &Test,
    socket: BorrowedFd<'_>,
    flow: Flow,
    end: &mut WorkerEnd,
) -> io::Result<()> {
    let spec = &test.spec;
    poll(test, socket);
    let mut question = random_block(spec.block_bytes as usize)?;
    let mut answer = random_block(spec.block_bytes as usize)?;
    let mut histogram = Histogram::default();
    let mut watch = Watch::applies(spec).then(Watch::default);
    let watch_ns = WATCH_NS.max(spec.window_ns / MOST_WINDOWS);
    let step_ns = step_ns(spec);
    let end_ns = spec.warm_ns.saturating_add(spec.window_ns);
    if !test.wait() {
        return Ok(());
    }
    let start_ns = test.start_ns();
    let (mut asked, mut lost, mut lost_in_a_row) = (0_u64, 0, 0);
    'questions: loop {
        let intended_ns = asked.saturating_mul(step_ns);
        if step_ns > 0 {
            wait_for(test, intended_ns.min(end_ns));
        }
        let now_ns = monotonic_ns();
        let from_ns = if step_ns > 0 { start_ns + intended_ns } else { now_ns };
        if now_ns - start_ns >= end_ns || test.is_over() {
            break;
        }
        number(question.as_mut_slice(), asked);
        send(socket, question.as_slice())?;
        loop {
            if !receive(test, (socket, flow), answer.as_mut_slice(), now_ns + ANSWER_NS)? {
                asked += 1;
                lost += 1;
                lost_in_a_row += 1;
                // A datagram may be lost. With a rate those that are due meanwhile would count the wait,
                // which no loss causes.
                let may_lose = spec.protocol == Protocol::Udp && spec.rate_per_s == 0;
                if may_lose && lost_in_a_row < LOST_IN_A_ROW && !test.is_over() {
                    continue 'questions;
                }
                if !test.is_over() {
                    let text = format!("no answer to question {asked}");
                    end.failure = Some(ChannelError::Failed(text));
                }
                return Ok(());
            }
            // The answer to an earlier question, which was thought lost, does not count.
            if answer.as_slice() == question.as_slice() || flow.protocol == Protocol::Tcp {
                break;
            }
        }
        if answer.as_slice() != question.as_slice() {
            let text = format!("the answer to question {asked} is another one");
            end.failure = Some(ChannelError::Failed(text));
            return Ok(());
        }
        let done_ns = monotonic_ns();
        asked += 1;
        lost_in_a_row = 0;
        if from_ns - start_ns >= spec.warm_ns {
            let trip_ns = done_ns.saturating_sub(from_ns);
            histogram.record(trip_ns);
            if let Some(watch) = &mut watch {
                watch.take(trip_ns, watch_ns);
            }
        }
    }
    end.report.total_bytes = asked * u64::from(spec.block_bytes);
    end.report.calls = asked;
    let unique = asked - lost;
    end.report.account =
        Account { sent: asked, received: unique, unique, lost, ..Account::default() };
    end.latencies = Some(histogram);
    end.windows = watch.map_or_else(Vec::new, |watch| watch.windows);
    Ok(())
}

/// From one question of a stream to its next one, where all streams together keep a rate; else 0.
fn step_ns(spec: &Spec) -> u64 {
    let all_ns = u64::from(spec.streams) * 1_000_000_000;
    all_ns.checked_div(spec.rate_per_s).map_or(0, |step_ns| step_ns.max(1))
}

/// Waits until so long after the beginning, the last bit of it awake.
fn wait_for(test: &Test, due_ns: u64) {
    pace_until(test, due_ns.saturating_sub(SPIN_NS));
    while test.elapsed_ns() < due_ns && !test.is_over() {
        std::hint::spin_loop();
    }
}

/// Tells one question from the next, as far as it is long enough.
fn number(message: &mut [u8], number: u64) {
    let bytes = number.to_le_bytes();
    let length = message.len().min(bytes.len());
    message[..length].copy_from_slice(&bytes[..length]);
}

/// The server's side: what comes goes back.
pub(super) fn answer(test: &Test, socket: BorrowedFd<'_>, flow: Flow) -> io::Result<()> {
    poll(test, socket);
    let mut message = random_block(test.spec.block_bytes as usize)?;
    if !test.wait() {
        return Ok(());
    }
    while !test.is_over() {
        if !receive(test, (socket, flow), message.as_mut_slice(), u64::MAX)? {
            break;
        }
        send(socket, message.as_slice())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::Work;

    #[test]
    fn round_trips_on_one_cpu_are_watched_in_windows() {
        let on_one_cpu = Spec {
            work: Work::Latency,
            placement: Placement::Together,
            shares_cpus: true,
            ..Spec::one_stream()
        };
        assert!(Watch::applies(&on_one_cpu));
        let others = [
            Spec { placement: Placement::Apart, ..on_one_cpu },
            Spec { shares_cpus: false, ..on_one_cpu },
            Spec { streams: 2, ..on_one_cpu },
            Spec { rate_per_s: 100, ..on_one_cpu },
        ];
        assert!(others.iter().all(|spec| !Watch::applies(spec)));
        let mut watch = Watch::default();
        (0..5).for_each(|_| watch.take(400_000, WATCH_NS));
        let [window] = &watch.windows[..] else { panic!("{:?}", watch.windows) };
        assert_eq!((window.calls, window.elapsed), (3, Duration::from_micros(1200)));
        assert_eq!((watch.trips, watch.elapsed_ns), (2, 800_000), "the next one");
    }

    #[test]
    fn streams_ask_as_many_questions_as_were_asked_for_and_no_more() {
        let step_ns =
            |streams, rate_per_s| step_ns(&Spec { streams, rate_per_s, ..Spec::one_stream() });
        assert_eq!([step_ns(1, 0), step_ns(1, 2_000)], [0, 500_000]);
        // Not two of each of the four, which would be eight.
        assert_eq!(step_ns(4, 5), 800_000_000);
        assert_eq!(step_ns(64, u64::MAX), 1);
    }

    #[test]
    fn questions_differ_as_far_as_they_are_long() {
        let mut message = [9; 3];
        number(&mut message, 0x0102_0304);
        assert_eq!(message, [4, 3, 2]);
        number(&mut message[..1], 300);
        assert_eq!(message[0], 44);
    }
}
