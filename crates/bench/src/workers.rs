//! Worker threads that begin together and are timed from the first start to the last end.
//!
//! Either all of them work or none does: a thread that cannot be started (a limit of processes,
//! the pids of a control group, no memory for its stack) sends the others home.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, RwLock, mpsc};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

use crate::counted;
use crate::option::{chosen_or, each_once};
use flatout_io::cause_text;
use flatout_measure::{TrialError, Warning, warning};
use flatout_sys::clock::process_cpu_ns;
use flatout_sys::lock::unlocked;
use flatout_sys::{Groups, affinity, monotonic_ns, run_queue};

pub(crate) use flatout_sys::lock::lock;

/// Most threads that a bench or a read takes.
pub const MAX_THREADS: u32 = 1024;

/// A worker could not be started, so none of them worked.
#[derive(Debug, thiserror::Error)]
#[error("cannot start thread {number} of {count}: {}{}", cause_text(source), limits(source))]
pub struct ThreadError {
    /// Which one, from 1 on.
    pub number: u32,
    /// How many there should have been.
    pub count: u32,
    /// Why.
    pub source: io::Error,
}

/// What makes the kernel say "try again" to a thread.
fn limits(source: &io::Error) -> &'static str {
    let is_limit = source.kind() == io::ErrorKind::WouldBlock;
    if is_limit { " (ulimit -u, pids.max of a control group, or memory)" } else { "" }
}

impl ThreadError {
    /// Of a thread beside others.
    pub(crate) fn of_one(source: io::Error) -> Self {
        Self { number: 1, count: 1, source }
    }
}

/// Numbers of threads, ascending: those that were chosen, or else the usual ones.
pub(crate) fn counts(chosen: &[u32], usual: &[u32]) -> Vec<u32> {
    let mut counts = chosen_or(chosen, usual);
    each_once(&mut counts);
    counts
}

/// The warning of a row with more threads than CPUs.
pub fn oversubscribed(threads: u32, cpus: u32) -> Option<Warning> {
    let text = format!(
        "{} share {} and wait for each other's turns",
        counted(threads, "thread"),
        counted(cpus, "CPU")
    );
    (threads > cpus).then(|| Warning::new(warning::OVERSUBSCRIBED, text))
}

/// The warning of a file with fewer blocks than there are threads.
pub(crate) fn idle(threads: u32, blocks: u64) -> Option<Warning> {
    let blocks_text = counted(blocks, "block");
    let text =
        format!("the file has {blocks_text} for {threads} threads: the others have nothing to do");
    (blocks < u64::from(threads)).then(|| Warning::new(warning::THREADS_REDUCED, text))
}

/// The warning of a row whose control group has less CPU time than its threads could use.
pub fn contained(threads: u32, cpus: u32, quota_cpus: Option<f64>) -> Option<Warning> {
    let quota = quota_cpus.filter(|&quota| quota < f64::from(threads.min(cpus)))?;
    let text = format!(
        "the control group has a quota of {quota:.2} CPUs for {} on {}",
        counted(threads, "thread"),
        counted(cpus, "CPU")
    );
    Some(Warning::new(warning::CPU_QUOTA, text))
}

/// Why threads run where the scheduler has them: a sandbox refuses to tie them to CPUs.
pub(crate) fn untied() -> Option<String> {
    let why = affinity::refusal()?;
    Some(format!("threads cannot be tied to CPUs here: {}", cause_text(&why)))
}

/// Errors: `Unsupported`, for work that says nothing where threads run anywhere.
pub(crate) fn can_tie() -> Result<(), TrialError> {
    untied().map_or(Ok(()), |why| Err(TrialError::Unsupported(why)))
}

/// What a process has used of its quota so far, or what some work did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// CPU time of all threads.
    pub(crate) cpu_ns: u64,
    /// Time for which the quota held threads back, summed over the CPUs that they were on.
    pub(crate) throttled_ns: u64,
}

impl Spent {
    /// Up to now.
    ///
    /// Cost: a small file for each level of control groups.
    pub(crate) fn now() -> Self {
        static GROUPS: OnceLock<Groups> = OnceLock::new();
        let groups = GROUPS.get_or_init(|| Groups::discover(Path::new("/")));
        Self { cpu_ns: process_cpu_ns(), throttled_ns: groups.throttled_ns().unwrap_or(0) }
    }

    /// By what was done since `begun`.
    pub(crate) fn since(begun: Self) -> Self {
        let now = Self::now();
        Self {
            cpu_ns: now.cpu_ns.saturating_sub(begun.cpu_ns),
            throttled_ns: now.throttled_ns.saturating_sub(begun.throttled_ns),
        }
    }

    /// The time that work takes of a quota in the long run: its CPU time ÷ the quota, or longer where
    /// others kept it waiting. A trial may begin with all of a period's quota (0.1 s as a rule) or with
    /// what making its data left: by chance it is held back for much less than that, or for much more.
    pub(crate) fn charged_ns(self, elapsed_ns: u64, quota_cpus: Option<f64>) -> u64 {
        let own_ns = elapsed_ns.saturating_sub(self.throttled_ns);
        quota_cpus.map_or(elapsed_ns, |quota| own_ns.max((self.cpu_ns as f64 / quota) as u64))
    }
}

/// What the workers did, in order, and the nanoseconds from the first start to the last end.
pub type Finished<T> = (Vec<T>, u64);

/// Runs `prepare` and then `work` in `count` threads. The clock runs for `work` alone; all
/// workers start it together. A worker whose preparation fails hands its error on without
/// holding up the others. A single worker runs in the calling thread.
///
/// Errors: the first of a worker; where a thread cannot be started nobody works, and it is a
/// [`ThreadError`].
///
/// Panics: if a worker panics. One that does so while preparing sends the others home.
pub fn run<P, T: Send, E: Send + From<ThreadError>>(
    count: u32,
    prepare: impl Fn(u32) -> Result<P, E> + Sync,
    work: impl Fn(u32, &mut P) -> Result<T, E> + Sync,
) -> Result<Finished<T>, E> {
    run_watched(count, Watch::NOBODY, prepare, work)
}

/// Does `work` in a thread of its own, which may be tied to CPUs without the caller's being so.
///
/// Errors: it cannot be started.
pub(crate) fn in_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, ThreadError> {
    thread::scope(|scope| spawn(scope, work).map(join))
}

/// The same, tied to `cpu`.
pub(crate) fn on_cpu<T: Send>(
    cpu: usize,
    work: impl FnOnce() -> Result<T, TrialError> + Send,
) -> Result<T, TrialError> {
    in_own_thread(|| {
        tie_to(cpu)?;
        run_queue::restart();
        work()
    })?
}

/// Ties the calling thread to one of the CPUs that were allowed when the run began.
///
/// Errors: `NoMore`: it was unplugged, or taken from this process.
pub(crate) fn tie_to(cpu: usize) -> Result<(), TrialError> {
    affinity::pin_to(cpu).map_err(|error| {
        let why = cause_text(&error);
        let text = format!("no thread can be tied to CPU {cpu} any more ({why}): the set changed");
        TrialError::NoMore(Warning::new(warning::CPUS_CHANGED, text))
    })
}

/// Starts a thread of a trial beside this one.
///
/// Errors: it cannot be started.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, ThreadError> {
    run_queue::spawn(scope, Builder::new(), work).map_err(ThreadError::of_one)
}

/// Has so many workers do a piece of work each; what they bring, in order, and the time from the
/// first start to the last end.
///
/// Errors: a thread could not be started; then nothing is done.
pub(crate) fn each<T: Send>(
    count: u32,
    work: impl Fn(u32) -> T + Sync,
) -> Result<Finished<T>, ThreadError> {
    run(count, |_| Ok(()), |index, ()| Ok(work(index)))
}

/// Who wants to know when the work begins and ends: readings taken there hold neither what
/// the preparation costs nor what giving buffers back costs.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Called once when all workers are ready, before any of them works.
    pub begins: &'a (dyn Fn() + Sync),
    /// Called once when the last worker has ended its work, before any buffer is given back. Not
    /// called where a worker panics.
    pub ended: &'a (dyn Fn() + Sync),
}

impl Watch<'_> {
    /// Nobody.
    pub const NOBODY: Watch<'static> = Watch { begins: &|| (), ended: &|| () };
}

/// When a worker worked.
#[derive(Debug, Clone, Copy)]
struct Worked {
    start_ns: u64,
    end_ns: u64,
}

/// As [`run`], and tells `watch` when the work begins and has ended.
///
/// Only what prepares and works is compiled anew for each kind of work; the threads and their
/// start are `together`, once.
pub fn run_watched<P, T: Send, E: Send + From<ThreadError>>(
    count: u32,
    watch: Watch<'_>,
    prepare: impl Fn(u32) -> Result<P, E> + Sync,
    work: impl Fn(u32, &mut P) -> Result<T, E> + Sync,
) -> Result<Finished<T>, E> {
    let working = AtomicU32::new(count.max(1));
    let results: Vec<Mutex<Option<Result<T, E>>>> =
        (0..count.max(1)).map(|_| Mutex::default()).collect();
    let worker = |index: u32, start: Start<'_>| -> Option<Worked> {
        let prepared = prepare(index);
        if count <= 1 {
            (watch.begins)();
        }
        if !start.wait() {
            return None;
        }
        run_queue::restart();
        let start_ns = monotonic_ns();
        // Buffers are given back after the clock has stopped.
        let (result, _prepared) = match prepared {
            Ok(mut prepared) => (work(index, &mut prepared), Some(prepared)),
            Err(error) => (Err(error), None),
        };
        let end_ns = monotonic_ns();
        if working.fetch_sub(1, Ordering::AcqRel) == 1 {
            (watch.ended)();
        }
        *lock(&results[index as usize]) = Some(result);
        Some(Worked { start_ns, end_ns })
    };
    let elapsed_ns = together(&|_| Builder::new(), count, watch.begins, &worker)?;
    let results = results.into_iter().filter_map(unlocked);
    Ok((results.collect::<Result<_, _>>()?, elapsed_ns))
}

/// Runs `worker` in `count` threads, which `builder` describes, a single one in the calling thread, and
/// returns the time from the first start to the last end.
fn together(
    builder: &dyn Fn(u32) -> Builder,
    count: u32,
    begins: &dyn Fn(),
    worker: &(dyn Fn(u32, Start<'_>) -> Option<Worked> + Sync),
) -> Result<u64, ThreadError> {
    let go = &OnceLock::new();
    let (ready, arrivals) = mpsc::channel();
    let worked: Vec<Worked> = if count <= 1 {
        go.get_or_init(|| true);
        worker(0, Start { ready, go }).into_iter().collect()
    } else {
        // What one prepares (buffers, mappings) must not take the room for the stack of the next.
        let gate = RwLock::new(());
        thread::scope(|scope| {
            let mut threads = Vec::new();
            let closed = gate.write();
            for index in 0..count {
                let (gate, start) = (&gate, Start { ready: ready.clone(), go });
                let work = move || {
                    drop(gate.read());
                    worker(index, start)
                };
                match run_queue::spawn(scope, builder(index), work) {
                    Ok(thread) => threads.push(thread),
                    Err(source) => {
                        go.get_or_init(|| false);
                        return Err(ThreadError { number: index + 1, count, source });
                    }
                }
            }
            drop((closed, ready));
            // Ends when each of them is ready, or gone.
            let are_all_ready = arrivals.iter().count() == count as usize;
            if are_all_ready {
                begins();
            }
            go.get_or_init(|| are_all_ready);
            Ok(threads.into_iter().filter_map(join).collect())
        })?
    };
    let start_ns = worked.iter().map(|worked| worked.start_ns).min().unwrap_or(0);
    let end_ns = worked.iter().map(|worked| worked.end_ns).max().unwrap_or(0);
    Ok(end_ns.saturating_sub(start_ns))
}

pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A thread's place at the start.
struct Start<'s> {
    /// Dropped when the thread is ready, and where its preparation panics.
    ready: mpsc::Sender<()>,
    /// Whether all run; without one of them nobody does.
    go: &'s OnceLock<bool>,
}

impl Start<'_> {
    /// Says that this thread is ready, and waits for the word: whether it runs.
    fn wait(self) -> bool {
        let Self { ready, go } = self;
        let _a_single_thread_is_not_heard = ready.send(());
        drop(ready);
        *go.wait()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// An error that says no more than its text.
    #[derive(Debug, PartialEq)]
    struct Text(String);

    impl From<ThreadError> for Text {
        fn from(error: ThreadError) -> Self {
            Self(error.to_string())
        }
    }

    #[test]
    fn too_many_threads_and_too_small_a_quota_are_warnings() {
        assert_eq!(oversubscribed(2, 2), None);
        let crowd = oversubscribed(9, 2).unwrap();
        assert_eq!(crowd.code, warning::OVERSUBSCRIBED);
        assert_eq!(crowd.text, "9 threads share 2 CPUs and wait for each other's turns");
        assert_eq!((contained(4, 8, None), contained(4, 8, Some(4.0))), (None, None));
        assert_eq!(contained(4, 1, Some(1.5)), None, "the CPU is less than the quota");
        assert_eq!(contained(1, 8, Some(0.5)).unwrap().code, warning::CPU_QUOTA);
    }

    #[test]
    fn what_a_quota_held_back_by_chance_is_not_charged_and_what_others_did_is() {
        let charged = |elapsed_ns, throttled_ns, quota| {
            Spent { cpu_ns: 20, throttled_ns }.charged_ns(elapsed_ns, quota)
        };
        assert_eq!(charged(10, 0, None), 10);
        assert_eq!(charged(10, 0, Some(0.5)), 40, "within a period");
        assert_eq!(charged(90, 50, Some(0.5)), 40, "a period that was spent before it began");
        assert_eq!(charged(90, 150, Some(0.5)), 40, "on two CPUs");
        assert_eq!(charged(90, 0, Some(0.5)), 90, "others had the CPUs");
    }

    #[test]
    fn all_are_ready_before_anybody_works() {
        let ready = AtomicU32::new(0);
        let finished = run(
            4,
            |index| Ok::<_, Text>((ready.fetch_add(1, Ordering::SeqCst), index).1),
            |_, index| Ok((*index, ready.load(Ordering::SeqCst))),
        );
        let expected: Vec<_> = (0..4).map(|index| (index, 4)).collect();
        assert_eq!(finished.unwrap().0, expected);
    }

    #[test]
    fn a_watch_hears_of_the_beginning_and_the_end_once_and_in_order() {
        for count in [1, 3] {
            let steps = Mutex::new(Vec::new());
            let note = |step| {
                steps.lock().unwrap().push(step);
                step
            };
            let watch = Watch { begins: &|| _ = note("begins"), ended: &|| _ = note("ended") };
            let prepare = |_| Ok::<_, Text>(note("ready"));
            run_watched(count, watch, prepare, |_, _| Ok(note("works"))).unwrap();
            let all = ["ready", "begins", "works", "ended"];
            let times = [count as usize, 1, count as usize, 1];
            let expected: Vec<_> =
                all.iter().zip(times).flat_map(|(step, times)| vec![*step; times]).collect();
            assert_eq!(steps.into_inner().unwrap(), expected);
        }
    }

    #[test]
    fn a_failed_preparation_holds_nobody_up() {
        let no = || Text("no".to_owned());
        let worked = AtomicU32::new(0);
        let prepare = |index| if index == 1 { Err(no()) } else { Ok(()) };
        let finished = run(3, prepare, |_, ()| Ok(worked.fetch_add(1, Ordering::SeqCst)));
        assert_eq!((finished.err(), worked.into_inner()), (Some(no()), 2));
    }

    #[test]
    fn a_thread_that_cannot_be_started_sends_the_others_home() {
        // No address space holds such a stack: the kernel's answer is that of a limit, EAGAIN.
        let builder = |index| match index {
            2 => Builder::new().stack_size(1 << 50),
            _ => Builder::new(),
        };
        let worked = AtomicU32::new(0);
        let worker = |_, start: Start<'_>| {
            let is_first = start.wait() && worked.fetch_add(1, Ordering::SeqCst) == 0;
            is_first.then_some(Worked { start_ns: 0, end_ns: 0 })
        };
        let text = together(&builder, 4, &|| (), &worker).unwrap_err().to_string();
        assert!(text.starts_with("cannot start thread 3 of 4: "), "{text}");
        assert!(text.contains("(ulimit -u, pids.max of a control group, or"), "{text}");
        assert_eq!(worked.into_inner(), 0);
    }

    #[test]
    fn a_panic_while_preparing_sends_the_others_home_and_goes_on() {
        let worked = AtomicU32::new(0);
        let prepare = |index| if index == 1 { panic!("on purpose") } else { Ok::<_, Text>(()) };
        let work = |_, (): &mut ()| Ok(worked.fetch_add(1, Ordering::SeqCst));
        assert!(catch_unwind(AssertUnwindSafe(|| run(3, prepare, work))).is_err());
        assert_eq!(worked.into_inner(), 0);
    }

    #[test]
    fn a_single_worker_runs_in_the_calling_thread() {
        let own = thread::current().id();
        let finished = run(1, |_| Ok::<_, Text>(()), |_, ()| Ok(thread::current().id()));
        assert_eq!(finished.unwrap().0, [own]);
    }
}
