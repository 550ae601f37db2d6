//! Digests of many files at once, in the order in which they were asked for.
//!
//! The thread that has the files calls [`Sum::feed`] and gets the answers back in order; the
//! threads that it hires call [`Sum::work`]. Files go to them in batches; a large one that the
//! page cache holds is shared out among all of them. More threads than there are CPUs are hired
//! only when files turn out to make their readers wait. Read next: `sum/reader.rs`, what is done
//! with one file.

mod lanes;
mod large;
mod opened;
mod queue;
mod reader;

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flatout_io::digest::Digest;
use flatout_io::{MachineProfile, cause_text};
use flatout_sys::cancel::CancelToken;
use flatout_sys::{affinity, usage};

use crate::item::Item;
use crate::wire::{goes_by_fields, goes_by_variants};

use lanes::Permits;
use queue::{Batch, Queue, Task, Watch};
use reader::Reader;

/// Most threads that are worth having where none is asked for: readers of cold small files, which
/// wait nearly all of the time. Figure: 20,000 files of 4 KiB, contents cold, 2 CPUs, virtio disk,
/// 2026-11-22: 8 threads 0.41 s, 32 0.34, 64 0.34; names cold, too: 0.49, 0.37, 0.39.
const MOST_THREADS: u32 = 32;

/// How many threads, and when to stop.
#[derive(Debug, Clone)]
pub struct SumOptions {
    /// Threads that the caller will run; 0: as many as turn out to be useful.
    pub threads: u32,
    /// What was measured on this machine, for large files that are not cached.
    pub profile: Option<Arc<MachineProfile>>,
    /// The wish to stop.
    pub cancel: CancelToken,
}

/// What was found out about one file.
#[derive(Debug)]
pub struct Summed {
    /// The name under which it is shown.
    pub shown: OsString,
    /// Digest and size, or why there is none.
    pub result: Result<Found, Failure>,
}

/// A file that was read from front to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The digest that was asked for. For a file to be checked: the one that matches, else that of
    /// the first algorithm.
    pub digest: Digest,
    /// Whether it is the digest expected; true where none was.
    pub matches: bool,
    /// Bytes read.
    pub length_bytes: u64,
    /// From opening it to knowing the digest.
    pub elapsed_ns: u64,
}

/// Why there is no digest.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kernel said no.
    #[error("cannot {operation} {shown:?}: {cause}", cause = cause_text(source))]
    System {
        /// What was tried.
        operation: &'static str,
        /// The file.
        shown: OsString,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody wrote it meanwhile: no digest would be that of any state of it.
    #[error("{shown:?} changed while it was read")]
    Changed {
        /// The file.
        shown: OsString,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

goes_by_fields!(Summed { shown, result });
goes_by_fields!(Found { digest, matches, length_bytes, elapsed_ns });
goes_by_variants!(Failure {
    1 => System { operation, shown, source },
    2 => Changed { shown },
    3 => Interrupted,
});

impl Failure {
    /// Whether it is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::System { operation: "open", source, .. }
            if source.kind() == std::io::ErrorKind::NotFound)
    }
}

/// Many files to be read, by the threads of the caller.
pub struct Sum {
    options: SumOptions,
    queue: Queue,
    /// Files read around the page cache at a time.
    rings: Permits,
    /// Not all threads came: a ring, whose threads in the kernel the same limit counts, has none.
    lacks_threads: AtomicBool,
    /// Nobody takes answers any more.
    is_left: AtomicBool,
    /// Segments mapped at a time.
    windows: Permits,
}

impl Sum {
    /// Nothing to do yet.
    pub fn new(options: SumOptions) -> Self {
        let usual = match options.threads {
            0 => affinity::allowed_cpu_count(),
            threads => threads,
        };
        let rings = Permits::new(lanes::MOST_RINGS);
        let windows = Permits::new(usual);
        let [lacks_threads, is_left] = [false; 2].map(AtomicBool::new);
        Self { options, queue: Queue::new(usual), rings, lacks_threads, is_left, windows }
    }

    /// Reads files until all are read. To be called once by each thread that is hired.
    ///
    /// Cost: memory for one buffer, once there is something to read.
    pub fn work(&self) {
        let _watch = Watch(&self.queue);
        let mut reader = Reader::new(self);
        while let Some(job) = self.queue.next() {
            match job {
                Task::Large(large) => large.help(&mut reader),
                Task::Batch(batch) => self.read(batch, &mut reader),
            }
        }
    }

    fn read(&self, mut batch: Batch, reader: &mut Reader<'_>) {
        let before = usage::thread().voluntary_switches;
        reader.waits_over_large = 0;
        let files = batch.entries.len() as u64;
        let answers = std::mem::take(&mut batch.entries).into_iter().map(|entry| match entry {
            Ok(item) => reader.read(item),
            Err(known) => known,
        });
        let answers: Vec<Summed> = answers.collect();
        // A reader that had to wait for most of its files is not held up by the CPUs.
        let waits = usage::thread().voluntary_switches.saturating_sub(before);
        let waits = waits.saturating_sub(reader.waits_over_large);
        if waits > files / 2 && self.options.threads == 0 {
            self.queue.want_more(MOST_THREADS.max(affinity::allowed_cpu_count()));
        }
        self.queue.finish(&batch, answers);
    }

    /// Hands the files to the threads, and what they find to `sink`, in the order of `items`.
    /// Returns when all is done, or `sink` breaks off; the threads are free then, or soon. An item that
    /// cannot even be named (a directory that cannot be read) comes as an error, and goes to
    /// `sink` at its place.
    ///
    /// `hire` is called with a number of threads that would be of use from now on, at first with
    /// one or more: it starts them, each calls [`Sum::work`], and it returns how many came. As long
    /// as none has, the calling thread reads the files itself.
    ///
    /// Panics: when a thread that reads panicked.
    pub fn feed(
        &self,
        items: impl Iterator<Item = Result<Item, (OsString, Failure)>>,
        mut hire: impl FnMut(u32) -> u32,
        mut sink: impl FnMut(Summed) -> ControlFlow<()>,
    ) {
        let mut entries = items
            .map(|item| item.map_err(|(shown, failure)| Summed { shown, result: Err(failure) }));
        let mut more = true;
        let mut hired = 0;
        let mut reader = Reader::new(self);
        loop {
            while more && self.queue.has_room() {
                more = self.queue.add(&mut entries);
            }
            let wanted = self.queue.to_hire();
            if wanted > 0 {
                let came = hire(wanted);
                hired += came;
                self.lacks_threads.fetch_or(came < wanted, Ordering::Relaxed);
            }
            if hired == 0
                && let Some(batch) = self.queue.next_batch()
            {
                self.read(batch, &mut reader);
            }
            let Some(answers) = self.queue.answers(more) else { break };
            for answer in answers {
                if sink(answer).is_break() {
                    self.is_left.store(true, Ordering::Relaxed);
                    return self.queue.close();
                }
            }
        }
        self.queue.close();
    }
}

#[cfg(test)]
mod tests;
