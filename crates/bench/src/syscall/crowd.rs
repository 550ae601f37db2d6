//! Several threads that make the same calls at the same time.
//!
//! All are started and set up first, and then let go together. The time runs from the first start
//! to the last finish, so a thread that came late or was held up counts against the figure.

use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flatout_measure::case::TrialError;

use super::row::{Descriptor, Row};
use super::site::Site;
use super::trial::{Timing, empty_loop, nanoseconds, warm_up};
use super::work::{self, Source};

/// Who calls what, how often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowd {
    pub(super) threads: u32,
    pub(super) descriptor: Option<Descriptor>,
    /// Calls of each thread.
    pub(super) calls: u64,
}

/// When one thread ran.
struct Stretch {
    start: Instant,
    end: Instant,
    empty_loop: Duration,
}

/// Holds threads back until all are there, or sends them home if one could not be started.
#[derive(Default)]
struct StartLine {
    state: Mutex<StartState>,
    changed: Condvar,
}

#[derive(Default)]
struct StartState {
    ready: u32,
    go: Option<Go>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    Run,
    Home,
}

impl StartLine {
    /// Says that this thread is ready, and waits for the word.
    fn wait(&self) -> Go {
        let mut state = self.lock();
        state.ready += 1;
        self.changed.notify_all();
        loop {
            if let Some(go) = state.go {
                return go;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets everybody go once `threads` of them are ready.
    fn release(&self, threads: u32) {
        let mut state = self.lock();
        while state.ready < threads {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.go = Some(Go::Run);
        self.changed.notify_all();
    }

    /// Sends home who is there and who will come.
    fn send_home(&self) {
        self.lock().go = Some(Go::Home);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, StartState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the calls of all threads.
pub(super) fn run(row: &Row, site: &Site, crowd: Crowd) -> Result<Timing, TrialError> {
    let failed = |error| work::refusal(row.call.id(), &error);
    let common = match crowd.descriptor {
        Some(Descriptor::Shared) => Some(site.common()?.open().map_err(failed)?),
        _ => None,
    };
    let mut sources = Vec::new();
    for thread in 0..crowd.threads as usize {
        sources.push(match (crowd.descriptor, &common) {
            (None, _) => Source::None,
            (Some(Descriptor::OwnFile), _) => Source::Open(site.own(thread)?),
            (_, Some(file)) => Source::Shared {
                file: file.as_fd(),
                length_bytes: site.common()?.length_bytes,
                threads: u64::from(crowd.threads),
            },
            (_, None) => Source::Open(site.common()?),
        });
    }
    let line = &StartLine::default();
    let stretches = thread::scope(|scope| {
        let mut threads = Vec::new();
        for source in sources {
            let body = move || stretch(row, source, site.block_bytes, crowd.calls, line);
            match thread::Builder::new().spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    line.send_home();
                    return Err(work::refusal("thread", &error));
                }
            }
        }
        line.release(crowd.threads);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(merge(&stretches))
}

/// What one thread does.
fn stretch(
    row: &Row,
    source: Source<'_>,
    block_bytes: u64,
    calls: u64,
    line: &StartLine,
) -> Result<Stretch, TrialError> {
    let prepared = work::prepare(row, source, block_bytes).and_then(|mut work| {
        work(warm_up(calls))?;
        Ok(work)
    });
    // Everybody comes to the line, also who cannot run: the others wait there.
    let go = line.wait();
    let mut work = prepared?;
    if go == Go::Home {
        return Err(TrialError::Failed("another thread could not be started".to_owned()));
    }
    let start = Instant::now();
    work(calls)?;
    let end = Instant::now();
    Ok(Stretch { start, end, empty_loop: empty_loop(calls) })
}

fn merge(stretches: &[Stretch]) -> Timing {
    let starts = stretches.iter().map(|one| one.start).min();
    let ends = stretches.iter().map(|one| one.end).max();
    let (Some(first), Some(last)) = (starts, ends) else { return Timing::default() };
    let lengths = || stretches.iter().map(|one| one.end - one.start);
    let mut timing = Timing { wall: last - first, ..Timing::default() };
    timing.empty_loop = stretches.iter().map(|one| one.empty_loop).min().unwrap_or_default();
    let mut set = |key: &str, time: Option<Duration>| {
        timing.audit.insert(key.to_owned(), nanoseconds(time.unwrap_or_default()).into())
    };
    set("fastest_thread_ns", lengths().min());
    set("slowest_thread_ns", lengths().max());
    timing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_from_the_first_start_to_the_last_finish() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let stretch = |start, end, empty| Stretch {
            start: at(start),
            end: at(end),
            empty_loop: Duration::from_nanos(empty),
        };
        let timing = merge(&[stretch(1, 5, 20), stretch(3, 9, 10)]);
        assert_eq!(timing.wall, Duration::from_millis(8));
        assert_eq!(timing.empty_loop, Duration::from_nanos(10));
        assert_eq!(timing.audit["fastest_thread_ns"], 4_000_000);
        assert_eq!(timing.audit["slowest_thread_ns"], 6_000_000);
    }

    #[test]
    fn threads_that_are_sent_home_do_not_wait() {
        let line = StartLine::default();
        thread::scope(|scope| {
            let early = scope.spawn(|| line.wait());
            line.send_home();
            let late = scope.spawn(|| line.wait());
            assert_eq!((early.join().unwrap(), late.join().unwrap()), (Go::Home, Go::Home));
        });
    }
}
