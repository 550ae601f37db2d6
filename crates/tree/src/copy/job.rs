//! A copy as a whole: what it is asked, who does it, what came of it.

mod hiring;
mod threads;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use flatout_io::Engine;
use flatout_io::transfer::Method;
use flatout_sys::{affinity, occupation};
use rustix::fs::Stat;

use super::attributes::Attributes;
use super::backup::Backups;
use super::content::Methods;
use super::descriptors::Descriptors;
use super::directory::Held;
use super::dispatch::Dispatch;
use super::event::Watch;
use super::evidence::{Evidence, Reached};
use super::granularity::Granularity;
use super::inventory::Digests;
use super::links::{Links, Taken};
use super::mirror::Mirror;
use super::parents::Parents;
use super::peculiar::Peculiarities;
use super::reference::References;
use super::rules::opening;
use super::sequence::Later;
use super::shared::Shared;
use super::standing::{Brought, Turns};
use super::stop::Stop;
use super::tally::{Snapshot, Tally};
use super::targets::Targets;
use super::temporary::Temporaries;
use super::{CopyOptions, Durability, Failure, Lane, Refusal, Unchanged, Work, kind_of};
use crate::lock::lock;
use crate::selection::Selection;
pub use hiring::{Hire, Hiring};

/// The part of the memory that may be taken for files of the target that are taken.
const TAKEN_SHARE: u64 = 4;

/// A source, and the very name that its copy gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// What is copied. A symlink is copied as one, unless a slash follows it.
    pub source: PathBuf,
    /// Where to. What lies above it is there already; a directory of this name is merged into.
    pub target: PathBuf,
}

/// What came of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// The user stopped it.
    pub interrupted: bool,
    /// It ended because the target has no room.
    pub out_of_space: bool,
    /// How much was done.
    pub totals: Snapshot,
}

/// A copy, done by the threads of the caller. What is public may be given before it begins.
pub struct Copy<'a> {
    pub(super) options: CopyOptions,
    /// What of the sources is copied.
    pub selection: Selection,
    pub(super) mirror: Mirror,
    pub(super) watch: &'a dyn Watch,
    pub(super) stop: Arc<Stop>,
    /// Who copies.
    pub(super) user: u32,
    pub(super) dispatch: Dispatch,
    /// Sources with several names.
    pub(super) links: Links,
    pub(super) attributes: Attributes<'a>,
    pub(super) methods: Methods,
    pub(super) held: Held,
    pub(super) tally: Tally,
    pub(super) temporaries: Temporaries,
    pub(super) granularity: Granularity,
    pub(super) targets: Targets,
    /// What earlier runs made, and what this one does.
    pub evidence: Evidence,
    /// Files of the target with several names, by the source for which they stand.
    pub(super) taken: Taken,
    /// What is overwritten is kept by another name.
    pub backups: Option<Backups>,
    /// Earlier snapshots, whose unchanged files are not copied again.
    pub references: Option<References>,
    /// What was made under names that the user gave.
    pub(super) brought: Brought,
    /// Files that are being written in place.
    pub(super) turns: Turns,
    /// Directories that are made because those of the sources are.
    pub(super) parents: Parents,
    /// Names that need care.
    pub(super) peculiarities: Peculiarities,
    /// Operands that wait until those before them are done ([`super::sequence`]).
    pub(super) later: Mutex<Later>,
    /// Of files with several names, for the inventory.
    pub(super) digests: Digests,
    /// Other processes that do parts of it.
    pub(super) shared: Option<Shared>,
    /// Held while a symlink takes the place of something.
    symlinks: Mutex<()>,
    /// Other operands were copied before: what lies in the target may come from them.
    pub(super) has_run: AtomicBool,
    workers: Mutex<Workers>,
    /// There may be fewer threads than are wanted.
    may_hire: AtomicBool,
    /// A thread has left.
    left: Condvar,
    /// Small files come from storage and not from the page cache.
    pub(super) fetches: AtomicBool,
}

/// Threads at work.
#[derive(Debug, Default)]
struct Workers {
    /// So many as long as the CPUs are what limits, and so many when it turns out that they wait.
    usual: u32,
    most: u32,
    wanted: u32,
    /// Those that were started and have not left.
    hired: u32,
    /// Those among them that have not taken a piece yet.
    starting: u32,
    /// Those that work, as the kernel numbers them.
    threads: Vec<i32>,
    panicked: bool,
    /// Descriptors for those that have several files open.
    spare: usize,
}

impl<'a> Copy<'a> {
    /// Nothing to do yet. `watch` is told what happens.
    pub fn new(options: CopyOptions, watch: &'a dyn Watch) -> Self {
        let stop = Arc::new(Stop::new(options.cancel));
        let (usual, most) = threads::of(&options, affinity::allowed_cpu_count());
        let descriptors = Descriptors::plan(options.max_fds, most);
        let workers = Workers {
            usual: usual.min(descriptors.threads),
            most: descriptors.threads,
            spare: descriptors.spare,
            ..Workers::default()
        };
        Self {
            options,
            selection: Selection::default(),
            mirror: Mirror::default(),
            watch,
            dispatch: Dispatch::new(Arc::clone(&stop)),
            links: Links::new(options.max_memory_bytes / 3, options.cancel),
            stop,
            user: rustix::process::geteuid().as_raw(),
            attributes: Attributes::of(&options, watch),
            methods: Methods::default(),
            held: Held::new(descriptors.pairs, opening(&options), options.effect),
            tally: Tally::default(),
            temporaries: Temporaries::default(),
            granularity: Granularity::default(),
            targets: Targets::new(options.durability),
            evidence: Evidence::none(),
            taken: Taken::new(options.max_memory_bytes / TAKEN_SHARE),
            backups: None,
            references: None,
            brought: Brought::default(),
            turns: std::array::from_fn(|_| Mutex::default()),
            parents: Parents::default(),
            peculiarities: Peculiarities::default(),
            later: Mutex::default(),
            digests: Digests::default(),
            shared: None,
            symlinks: Mutex::default(),
            has_run: AtomicBool::new(false),
            workers: Mutex::new(workers),
            may_hire: AtomicBool::new(true),
            left: Condvar::new(),
            fetches: AtomicBool::new(false),
        }
    }

    /// Copies all operands; returns when everything is done, or the copy was stopped. May be called
    /// again with others, when all threads have left [`Copy::work`]: they may bring other things to
    /// the same places, and what both have links to stays one file.
    ///
    /// This thread copies, too. `hire` is called, by any of the threads, when another one would be of
    /// use: for one file none is started.
    ///
    /// Panics: when a thread that copies panicked.
    pub fn run(&self, operands: Vec<Operand>, hire: Hire<'_>) -> Ended {
        self.begin(operands);
        // Only a thread that cannot be started tells that the kernel has none for a ring, either.
        if !self.may_use_ring() || !self.hire_one(hire) {
            let mut workers = lock(&self.workers);
            (workers.hired, workers.starting) = (workers.hired + 1, workers.starting + 1);
            drop(workers);
            self.work(hire);
        }
        let left = self.left.wait_while(lock(&self.workers), |workers| workers.hired > 0);
        drop(left.unwrap_or_else(PoisonError::into_inner));
        self.end()
    }

    /// Offers the operands of a round.
    pub(super) fn begin(&self, operands: Vec<Operand>) {
        self.targets.begin_round();
        let first = self.in_turn(operands);
        self.dispatch.offer(first.into_iter().map(Work::Operand));
        let mut workers = lock(&self.workers);
        (workers.hired, workers.wanted) = (0, workers.usual);
        self.may_hire.store(true, Ordering::Relaxed);
    }

    /// Whether threads of the round are at work.
    pub(super) fn has_workers(&self) -> bool {
        lock(&self.workers).hired > 0
    }

    /// All threads of a round have left.
    pub(super) fn end(&self) -> Ended {
        assert!(!lock(&self.workers).panicked, "a thread that copies panicked");
        self.finish_parents();
        self.settle();
        self.has_run.store(true, Ordering::Relaxed);
        Ended {
            interrupted: self.stop.is_cancelled(),
            out_of_space: self.stop.has_full(),
            totals: self.progress(),
        }
    }

    /// Nothing more will be copied: what was noted of this run becomes what the next one knows.
    pub fn finish(self) {
        let totals = self.progress();
        self.attributes.remarks.sum_up(&totals.losses);
        let is_whole = totals.failed == 0 && !self.stop.is_cancelled() && !self.stop.has_full();
        self.evidence.finish(if is_whole { Reached::Everything } else { Reached::Part });
    }

    /// Which files of the target count as done. Where other operands were copied before, size and
    /// time say nothing at all: those, too, may have had them.
    pub(super) fn unchanged(&self) -> Unchanged {
        match self.options.unchanged {
            Unchanged::SizeAndTime if self.has_run.load(Ordering::Relaxed) => Unchanged::Content,
            unchanged => unchanged,
        }
    }

    /// Does pieces of the work until there are none. To be called once by each thread that is
    /// hired; `hire` is that of [`Copy::run`].
    ///
    /// Cost: memory for its buffers, once there is something to copy.
    pub fn work(&self, hire: Hire<'_>) {
        let thread = occupation::this_thread();
        lock(&self.workers).threads.push(thread);
        let _watch = AtWork { copy: self, thread };
        Lane::new(self, hire).run();
    }

    /// This thread has taken a piece, or found that there is none.
    pub(super) fn has_started(&self) {
        lock(&self.workers).starting -= 1;
    }

    /// Starts threads for pieces that wait while nobody is free to take them.
    pub(super) fn find_hands(&self, hire: Hire<'_>) {
        let lacks_some = || self.dispatch.waiting() > lock(&self.workers).starting as usize;
        while self.may_hire.load(Ordering::Relaxed) && lacks_some() {
            self.hire_one(hire);
        }
    }

    /// Starts a thread, unless there are as many as are wanted.
    pub(super) fn hire_one(&self, hire: Hire<'_>) -> bool {
        let number = {
            let mut workers = lock(&self.workers);
            if workers.hired >= workers.wanted {
                self.may_hire.store(false, Ordering::Relaxed);
                return false;
            }
            workers.hired += 1;
            workers.starting += 1;
            workers.hired - 1
        };
        let is_hired = hire.hire(number);
        if !is_hired {
            let mut workers = lock(&self.workers);
            workers.hired -= 1;
            workers.starting -= 1;
            // With fewer threads than are useful it takes longer, no more.
            (workers.wanted, workers.most) = (0, 0);
            drop(workers);
            // The kernel starts none for a ring then, either, and its requests would wait for ever.
            self.methods.refuse_ring();
            self.left.notify_all();
        }
        is_hired
    }

    fn may_use_ring(&self) -> bool {
        let tuned = self.options.tuned.large.is_some_and(|large| large.engine == Engine::Uring);
        self.options.method.map_or(tuned, |method| method == Method::Uring)
    }

    /// How much was done so far, and what is waited for just now.
    ///
    /// Cost: a small file of /proc for each thread.
    pub fn progress(&self) -> Snapshot {
        let own = self.own_progress();
        self.shared.as_ref().map_or(own, |shared| shared.with_others(own))
    }

    /// What this process alone did.
    pub(super) fn own_progress(&self) -> Snapshot {
        let threads = lock(&self.workers).threads.clone();
        let occupations = threads.into_iter().filter_map(occupation::of_thread);
        Snapshot {
            deleted: self.mirror.deleted.load(Ordering::Relaxed),
            spared: self.mirror.spared.load(Ordering::Relaxed),
            incomplete: self.attributes.incomplete(),
            losses: self.attributes.losses(),
            ..self.tally.snapshot(occupations)
        }
    }

    /// What the filesystems can do that were met, and what they refused.
    pub fn methods(&self) -> &Methods {
        &self.methods
    }

    /// If this is a symlink: until it is dropped, no other one takes the place of anything.
    pub(super) fn one_symlink(&self, facts: &Stat) -> Option<MutexGuard<'_, ()>> {
        let is_symlink = kind_of(facts).is_symlink();
        is_symlink.then(|| lock(&self.symlinks))
    }

    /// So many threads would be of use, or as many as may be had: those that there are wait for the
    /// source.
    pub(super) fn want_threads(&self, threads: u32) {
        let mut workers = lock(&self.workers);
        workers.wanted = workers.wanted.max(threads.min(workers.most));
        self.may_hire.store(true, Ordering::Relaxed);
    }

    /// Waits until storage has everything, where that is asked for.
    fn settle(&self) {
        let is_cached = self.options.durability == Durability::Cached || self.is_plan();
        if is_cached || self.stop.is_cancelled() {
            return;
        }
        self.tally.waits_for_device.store(true, Ordering::Relaxed);
        // Storage without room (a thin volume) ends no copy: all is done, and none of it counts.
        self.targets.sync(|errno| {
            self.evidence.forget();
            let refusal = Refusal::of("write to storage")(errno);
            self.fail(Failure::of(refusal, "the filesystem of the target".into()));
        });
    }
}

/// A thread at work. Where it panics, nobody waits for it.
struct AtWork<'c> {
    copy: &'c Copy<'c>,
    thread: i32,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut workers = lock(&self.copy.workers);
        workers.hired -= 1;
        workers.threads.retain(|&thread| thread != self.thread);
        workers.panicked |= std::thread::panicking();
        if workers.panicked {
            self.copy.stop.break_off();
        }
        drop(workers);
        self.copy.left.notify_all();
    }
}
