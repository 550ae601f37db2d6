//! Two threads that hand a turn back and forth.
//!
//! One call of these rows is one round trip: the asker wakes the answerer and sleeps, the answerer
//! wakes the asker and sleeps. Both threads are bound: to one CPU, where each hand-over is a
//! context switch, or to two, where it also wakes an idle CPU.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use flatout_measure::TrialError;
use flatout_sys::call::{self, Turn};
use flatout_sys::clock::process_cpu_ns;
use flatout_sys::thread::{self, Side};
use flatout_sys::{affinity, run_queue};

use super::row::Call;
use super::trial::{Timing, warm_up};
use super::{fact, work};
use crate::cores;
use crate::fact::CPUS_SHARE_CORE;
use crate::workers::can_tie;

/// Runs `rounds` round trips on so many CPUs.
pub(super) fn run(which: Call, count: u32, rounds: u64) -> Result<Timing, TrialError> {
    can_tie()?;
    let failed = |error| work::refusal(which, &error);
    let cpus = choose(count, &cores::in_order().map_err(failed)?)?;
    let wall = match which {
        Call::FutexPingPong => futex(cpus, rounds),
        _ => pipe(cpus, rounds),
    };
    let mut timing = Timing {
        wall: wall.map_err(failed)?,
        empty_loop: call::empty_loop_time(rounds),
        ..Timing::default()
    };
    if cpus.0 == cpus.1 {
        timing.facts.set(fact::CPU_NUMBERS, cpus.0.to_string());
    } else {
        timing.facts.set(fact::CPU_NUMBERS, format!("{},{}", cpus.0, cpus.1));
        timing.facts.set_known(CPUS_SHARE_CORE, cores::share_core(cpus.0, cpus.1));
    }
    Ok(timing)
}

/// The CPUs of asker and answerer.
type Cpus = (usize, usize);

/// The first ones of those that are allowed, of which each has a core of its own as long as there are any.
fn choose(count: u32, order: &[usize]) -> Result<Cpus, TrialError> {
    match (count, order) {
        (1, [one, ..]) => Ok((*one, *one)),
        (2, [one, other, ..]) => Ok((*one, *other)),
        _ => Err(TrialError::Unsupported("two CPUs are needed, one is allowed".to_owned())),
    }
}

fn futex(cpus: Cpus, rounds: u64) -> io::Result<Duration> {
    let turn = &Turn::default();
    both(cpus, rounds, |rounds| turn.ask(rounds), |rounds| turn.answer(rounds), || turn.give_up())
}

fn pipe(cpus: Cpus, rounds: u64) -> io::Result<Duration> {
    let (questions_out, questions_in) = io::pipe()?;
    let (answers_out, answers_in) = io::pipe()?;
    // Each side owns its ends, so that the other sees the end of file if it goes early.
    both(
        cpus,
        rounds,
        move |rounds| call::pipe_ask(questions_in.as_fd(), answers_out.as_fd(), rounds),
        move |rounds| call::pipe_answer(questions_out.as_fd(), answers_in.as_fd(), rounds),
        || (),
    )
}

/// The asker's time for `rounds`, after a warm-up that also waits for the answerer's start.
///
/// Of two threads on one CPU each waits for the other by nature, and one of them always wants it:
/// what they waited for others is the time in which neither had it.
fn timed(cpus: Cpus, rounds: u64, ask: impl Fn(u64) -> io::Result<()>) -> io::Result<Duration> {
    ask(warm_up(rounds))?;
    let cpu_ns = process_cpu_ns();
    let start = Instant::now();
    ask(rounds)?;
    let wall = start.elapsed();
    if cpus.0 == cpus.1 {
        let had_ns = process_cpu_ns() - cpu_ns;
        run_queue::add((wall.as_nanos() as u64).saturating_sub(had_ns));
    }
    Ok(wall)
}

/// Runs both sides on threads of their own and returns the asker's time.
fn both(
    cpus: Cpus,
    rounds: u64,
    ask: impl Fn(u64) -> io::Result<()> + Send,
    answer: impl FnOnce(u64) -> io::Result<()> + Send,
    give_up: impl Fn() + Sync,
) -> io::Result<Duration> {
    let asked = Box::new(move || timed(cpus, rounds, ask));
    let answered = Box::new(move || answer(warm_up(rounds) + rounds).map(|()| Duration::ZERO));
    let sides: [Side<'_, _, _>; 2] = [asked, answered];
    let [asked, answered] = thread::both(cpus.into(), affinity::pin_to, sides, give_up)?;
    answered.and(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_serves_both_and_two_are_not_made_up() {
        assert_eq!(choose(1, &[3]), Ok((3, 3)));
        assert_eq!(choose(2, &[3, 5, 7]), Ok((3, 5)));
        assert!(matches!(choose(2, &[3]), Err(TrialError::Unsupported(_))));
    }

    #[test]
    fn a_side_that_cannot_run_does_not_hang_the_other() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        for cpus in [(cpu, usize::MAX), (usize::MAX, cpu)] {
            assert!(futex(cpus, 10).is_err());
            assert!(pipe(cpus, 10).is_err());
        }
    }
}
