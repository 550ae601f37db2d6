//! What was tried and refused, for each pair of filesystems, by all threads.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use flatout_io::transfer::Method;
use flatout_sys::filesystem::{self, Filesystem, Nature};
use rustix::io::Errno;

use super::around::Blocks;
use super::choice::PairFacts;
use super::{READ, WRITE};
use crate::copy::Refusal;
use crate::copy::limits::Limits;
use crate::file_data::errno_of;
use crate::lock::lock;

/// `st_dev` of a source and of a target.
pub type Devices = (u64, u64);

/// Pairs that are remembered. More would be a tree of very many mounts; these are asked anew.
const MAX_PAIRS: usize = 1024;

/// Threads with long buffers: where storage is waited for there are up to 32 threads.
const MOST_LONG_BUFFERS: usize = 4;

/// What all threads know of the methods. One per copy.
#[derive(Debug, Default)]
pub struct Methods {
    pairs: Mutex<Vec<Arc<Pair>>>,
    /// The kernel has no threads for a ring.
    lacks_threads: AtomicBool,
    /// For reading around the page cache.
    pub(super) blocks: Blocks,
    /// How fast bytes may be moved.
    pub(in crate::copy) limits: Limits,
    /// Each thread has a clone.
    threads: Arc<()>,
}

/// Two filesystems, and what they refused.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) devices: Devices,
    pub(super) facts: PairFacts,
    /// The errno for each of [`Method::ALL`]; 0 while it is not known to fail.
    refused: [AtomicI32; Method::ALL.len()],
}

impl Methods {
    /// Counts a thread as long as it keeps what is returned, and tells whether its buffer is to be short,
    /// for there are many.
    pub(super) fn count_thread(&self) -> (Arc<()>, bool) {
        let counted = Arc::clone(&self.threads);
        let threads = Arc::strong_count(&counted) - 1;
        (counted, threads > MOST_LONG_BUFFERS)
    }

    /// What was refused, with the errno that said so.
    pub fn refused(&self) -> Vec<(Devices, Method, Errno)> {
        let pairs = lock(&self.pairs);
        let of_pair = |pair: &Arc<Pair>| {
            let pair = Arc::clone(pair);
            Method::ALL.into_iter().filter_map(move |method| {
                let errno = pair.refused[method.index()].load(Ordering::Relaxed);
                (errno != 0).then(|| (pair.devices, method, Errno::from_raw_os_error(errno)))
            })
        };
        pairs.iter().flat_map(of_pair).collect()
    }

    /// Methods that filesystems refused, with a line for each.
    pub fn refused_lines(&self) -> Vec<(Method, String)> {
        let shown = |device| format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let line = |((source, target), method, errno): (Devices, Method, Errno)| {
            let (source, target) = (shown(source), shown(target));
            let cause = flatout_io::cause_text(&errno.into());
            (method, format!("{method} from {source} to {target} is not possible: {cause}"))
        };
        self.refused().into_iter().map(line).collect()
    }

    /// No ring is used from now on.
    pub(in crate::copy) fn refuse_ring(&self) {
        self.lacks_threads.store(true, Ordering::Relaxed);
        let pairs = lock(&self.pairs);
        pairs.iter().for_each(|pair| pair.refuse_ring());
    }

    /// Pairs that were met, as far as they are remembered.
    pub fn pairs(&self) -> usize {
        lock(&self.pairs).len()
    }

    /// Whether both filesystems of a pair that was met keep inode numbers, and note each change with
    /// a time that nobody can set. Others may do so as well; these are known to.
    pub(in crate::copy) fn keep_change_times(&self, devices: Devices) -> bool {
        const KNOWN: [&str; 8] =
            ["ext4", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs", "zfs", "overlay"];
        let pairs = lock(&self.pairs);
        let pair = pairs.iter().find(|pair| pair.devices == devices);
        pair.is_some_and(|pair| {
            [pair.facts.source, pair.facts.target].iter().all(|side| KNOWN.contains(&side.name))
        })
    }

    /// Whether a file of one of both may be one of the other under another number: a server shows files of
    /// other filesystems, and an overlay those of its layers, but none under two numbers.
    ///
    /// Errors: as [`Methods::pair`].
    pub(in crate::copy) fn may_show_one_file(
        &self,
        devices: Devices,
        (source, target): (BorrowedFd<'_>, BorrowedFd<'_>),
    ) -> Result<bool, Refusal> {
        let PairFacts { source, target, .. } = self.pair(devices, source, target)?.facts;
        let is_overlay = |side: Filesystem| side.nature == Nature::Overlay;
        let shows =
            |side: Filesystem| side.is_served() || is_overlay(side) && devices.0 != devices.1;
        Ok(shows(source) || shows(target))
    }

    /// Whether a target that was met lives in memory.
    pub fn fills_memory(&self) -> bool {
        let pairs = lock(&self.pairs);
        pairs.iter().any(|pair| pair.facts.target.in_memory)
    }

    /// Whether every target that was met lives in memory.
    pub fn fills_memory_only(&self) -> bool {
        let pairs = lock(&self.pairs);
        !pairs.is_empty() && pairs.iter().all(|pair| pair.facts.target.in_memory)
    }

    /// What is known of a pair. Cost: two fstatfs when it is met first.
    pub(super) fn pair(
        &self,
        devices: Devices,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
    ) -> Result<Arc<Pair>, Refusal> {
        let find =
            |pairs: &[Arc<Pair>]| pairs.iter().find(|pair| pair.devices == devices).map(Arc::clone);
        if let Some(pair) = find(&lock(&self.pairs)) {
            return Ok(pair);
        }
        let facts = PairFacts {
            source: examine(source, READ)?,
            target: examine(target, WRITE)?,
            is_one: devices.0 == devices.1,
        };
        let pair = Arc::new(Pair { devices, facts, refused: Default::default() });
        if facts.source.may_answer_short() || facts.target.may_answer_short() {
            pair.refuse(Method::Uring, Errno::OPNOTSUPP);
        }
        if self.lacks_threads.load(Ordering::Relaxed) {
            pair.refuse_ring();
        }
        let mut pairs = lock(&self.pairs);
        if let Some(known) = find(&pairs) {
            return Ok(known);
        }
        if pairs.len() < MAX_PAIRS {
            pairs.push(Arc::clone(&pair));
        }
        Ok(pair)
    }
}

fn examine(file: BorrowedFd<'_>, operation: &'static str) -> Result<Filesystem, Refusal> {
    filesystem::of(file).map_err(|error| Refusal::of(operation)(errno_of(&error)))
}

impl Pair {
    /// Whether the method was not refused yet.
    pub(super) fn may(&self, method: Method) -> bool {
        self.refused[method.index()].load(Ordering::Relaxed) == 0
    }

    /// Whether it is worth asking for shared extents: within a filesystem, or between the
    /// subvolumes of one, which have numbers of their own.
    pub(super) fn could_share(&self) -> bool {
        let is_kin = self.facts.is_one || self.facts.source.name == self.facts.target.name;
        is_kin && self.may(Method::Reflink)
    }

    fn refuse_ring(&self) {
        let errno = Errno::AGAIN.raw_os_error();
        self.refused[Method::Uring.index()].store(errno, Ordering::Relaxed);
    }

    /// Remembers a refusal, if it is one of the filesystems or the kernel and not of one file.
    pub(super) fn refuse(&self, method: Method, errno: Errno) {
        const LASTING: [Errno; 4] = [Errno::NOSYS, Errno::XDEV, Errno::OPNOTSUPP, Errno::NOTTY];
        // Whoever may not have a ring may not have one for the next file either.
        let lasts = LASTING.contains(&errno) || (method == Method::Uring && errno == Errno::PERM);
        if lasts && method != Method::Sync {
            self.refused[method.index()].store(errno.raw_os_error(), Ordering::Relaxed);
        }
    }
}
