//! Hard links: which files have been copied already under another name, and where.
//!
//! A source is known by (device, inode), and by its times, for an inode that comes free is soon that
//! of another file. Whoever comes first copies it; the others wait for that, and then make their names
//! links of the copy. What is remembered has a limit in memory; beyond it,
//! it is in a file without a name (`table`). How a link is made without following anything that was
//! swapped meanwhile stands in [`mod@path`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::BorrowedFd;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use flatout_sys::cancel::CancelToken;
use rustix::fs::Stat;

use super::{Identity, Refusal, identity};
use crate::lock::lock;
use crate::wire::{goes_by_fields, message, take};

mod path;
mod slots;
mod table;
mod taken;
#[cfg(test)]
mod tests;

pub(super) use path::{Linking, handle, link, open_below, open_copy, pin_copy};

use table::Table;
pub(in crate::copy) use taken::Taken;

/// How often one who waits asks whether the copy was cancelled.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Tells a copy from what takes its place: its device, and in one number its inode, size and
/// modification time. The inode alone says little: the next file may get that of one that is gone.
pub(super) fn mark(facts: &Stat) -> Identity {
    let mut hasher = DefaultHasher::new();
    (facts.st_ino, facts.st_size, facts.st_mtime, facts.st_mtime_nsec).hash(&mut hasher);
    (facts.st_dev, hasher.finish())
}

/// What a source was when its first name was met, in numbers that the next file with its inode has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Met {
    /// When it was changed last, in nanoseconds.
    pub(super) changed_ns: i64,
    /// As [`mark`] has it.
    pub(super) mark: u64,
}

goes_by_fields!(Met { changed_ns, mark });

/// One name of a source that may have others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) identity: Identity,
    /// How many it has, this one counted.
    pub(super) names: u64,
    pub(super) met: Met,
    pub(super) was_there: bool,
}

impl Source {
    pub(super) fn of(facts: &Stat) -> Self {
        let changed_ns = nanoseconds(facts.st_ctime, facts.st_ctime_nsec as i64);
        let met = Met { changed_ns, mark: mark(facts).1 };
        Self { identity: identity(facts), names: facts.st_nlink as _, met, was_there: false }
    }

    /// The path of its copy, as the table has it: behind what was met.
    fn path(&self, path: &[u8]) -> Vec<u8> {
        [&message(&[&self.met, &self.was_there]), path].concat()
    }
}

/// A moment as a number.
pub(super) fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// A copy that may get another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copy {
    /// Where it is, from the root of the target on.
    pub(super) path: Vec<u8>,
    /// What must be there, as [`mark`] has it.
    pub(super) mark: Identity,
    /// It was not made by this copy, but stands for its source.
    pub(super) was_there: bool,
}

impl Copy {
    /// What the table knows under a path of [`Source::path`].
    fn split(self) -> Option<(Self, Met)> {
        let path = &mut &self.path[..];
        let (met, was_there) = take(path)?;
        Some((Self { path: path.to_vec(), was_there, ..self }, met))
    }
}

/// A copy, and the directory from which its path counts: the target, or a snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'k> {
    pub(super) root: BorrowedFd<'k>,
    pub(super) copy: &'k Copy,
    /// It, where it is open.
    pub(super) file: Option<BorrowedFd<'k>>,
}

/// The answer to [`Links::claim`].
#[derive(Debug)]
pub(super) enum Claim<'a> {
    /// Nobody has copied it, or all who tried failed: the caller is to do it.
    First(Ticket<'a>),
    /// It was copied: the caller is to link it ([`link`]), or to copy it once more where it takes no
    /// more links.
    Known(Copy),
}

/// Sources with several names, shared by all threads.
#[derive(Debug)]
pub(super) struct Links {
    state: Mutex<State>,
    /// A first copy was done, or failed.
    ended: Condvar,
    /// A source is forgotten when it was seen as often as it has names.
    forgets: bool,
    cancel: CancelToken,
}

#[derive(Debug)]
struct State {
    /// Being copied just now: as many per thread as are copied together at most.
    begun: Vec<Identity>,
    /// Threads that wait for one of them. Mostly none: then nobody is woken, which would cost a
    /// system call per file.
    waiting: u32,
    table: Table,
}

impl Links {
    /// None known yet. What is remembered takes `memory_bytes` at most (some KiB at least); what is
    /// more goes to files.
    pub(super) fn new(memory_bytes: u64, cancel: CancelToken) -> Self {
        let table = Table::new(usize::try_from(memory_bytes).unwrap_or(usize::MAX));
        let state = Mutex::new(State { begun: Vec::new(), waiting: 0, table });
        Self { state, ended: Condvar::new(), forgets: true, cancel }
    }

    /// The same for names that may be seen more than once: nothing is forgotten.
    pub(super) fn for_repeated_names(self) -> Self {
        Self { forgets: false, ..self }
    }

    /// Asks about a source that has several names. While another thread copies it, this waits: a thread
    /// must end its ticket before it claims again. `is_still`: whether it is the one that was met like
    /// this, where it was changed since; otherwise that one is gone, and this one has its inode.
    ///
    /// When all its names were seen, a source is forgotten.
    ///
    /// Errors: the copy was cancelled; the temporary file cannot be read or written.
    pub(super) fn claim(
        &self,
        source: Source,
        is_still: impl FnOnce(Met) -> bool,
    ) -> Result<Claim<'_>, Refusal> {
        let mut state = lock(&self.state);
        while state.begun.contains(&source.identity) {
            if self.cancel.is_cancelled() {
                return Err(Refusal::interrupted("link"));
            }
            state.waiting += 1;
            let waited = self.ended.wait_timeout(state, ASK_AGAIN);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
        if let Some((copy, met)) = state.table.see(source.identity)?.and_then(Copy::split)
            && (met == source.met || is_still(met))
        {
            return Ok(Claim::Known(copy));
        }
        state.begun.push(source.identity);
        Ok(Claim::First(Ticket { links: self, source }))
    }

    /// Claims a source that nobody has begun with, and waits for nobody: a thread may have several such
    /// tickets at a time. `None`: [`Links::claim`] is to be asked, once these tickets are ended.
    pub(super) fn claim_first(&self, source: Source) -> Option<Ticket<'_>> {
        let mut state = lock(&self.state);
        if state.begun.contains(&source.identity) || state.table.has(source.identity) != Ok(false) {
            return None;
        }
        state.begun.push(source.identity);
        Some(Ticket { links: self, source })
    }

    /// Says that a source whose copy takes no more links was copied once more: the names to come are
    /// links of that.
    ///
    /// Errors: the temporary file cannot be read or written.
    pub(super) fn copied_again(
        &self,
        source: Source,
        path: &[u8],
        target: Identity,
    ) -> Result<(), Refusal> {
        lock(&self.state).table.replace(source.identity, &source.path(path), target)
    }
}

/// The task to make the first copy of a source. One that is dropped has failed: another thread that
/// has a name of this source is to try, and nobody waits for a thread that is gone.
#[derive(Debug)]
#[must_use]
pub(super) struct Ticket<'a> {
    links: &'a Links,
    source: Source,
}

impl Ticket<'_> {
    /// What stands for the source was not made by this copy.
    pub(super) fn of_what_was_there(mut self) -> Self {
        self.source.was_there = true;
        self
    }

    /// The copy is complete, at `path` from the root of the target on.
    ///
    /// Errors: it cannot be remembered, for the temporary file cannot be written; then another name
    /// of this source will be copied, not linked.
    pub(super) fn done(self, path: &[u8], target: Identity) -> Result<(), Refusal> {
        let others = match self.links.forgets {
            true => u32::try_from(self.source.names.saturating_sub(1)).unwrap_or(u32::MAX),
            false => u32::MAX,
        };
        if others == 0 {
            return Ok(());
        }
        // Those who wait are woken when the ticket is dropped, behind the lock.
        let (identity, path) = (self.source.identity, self.source.path(path));
        lock(&self.links.state).table.insert(identity, others, &path, target)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.links.state);
        state.begun.retain(|&begun| begun != self.source.identity);
        if state.waiting > 0 {
            self.links.ended.notify_all();
        }
    }
}
