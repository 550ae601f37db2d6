//! A directory that is being copied: the pair of descriptors that is held, and what is still to
//! come before its attributes can be set.
//!
//! When many are open, those that nobody uses just now are let go, the outermost first. Whoever
//! finishes a directory opens the pair above it again through `..`; where that cannot be, it is
//! opened name by name from above. Either way it must be the one that it was: no path is ever put
//! together, and a tree may be deeper than any path.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes::{Inheritance, Made};
use super::failure::Refusal;
use crate::spool::names::Names;

/// How directories are opened.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const GO_BACK: &str = "go back to";

/// Device and inode number.
pub(super) type Identity = (u64, u64);

/// The identity in what the kernel says of a file.
pub(super) fn identity(facts: &Stat) -> Identity {
    (facts.st_dev, facts.st_ino)
}

/// A directory of the source and the one that becomes its copy.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) source: OwnedFd,
    pub(super) target: OwnedFd,
}

impl Pair {
    pub(super) fn source(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }

    pub(super) fn target(&self) -> BorrowedFd<'_> {
        self.target.as_fd()
    }
}

/// Names of both sides: they differ only for what the user named.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) source: CString,
    pub(super) target: CString,
}

impl Named {
    pub(super) fn alike(name: &CStr) -> Self {
        Self { source: name.to_owned(), target: name.to_owned() }
    }
}

/// Whether the target was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was made by this copy.
    Fresh,
    /// It was there.
    Existing,
}

/// What is known of a directory when it is opened.
pub(super) struct Found {
    pub(super) named: Named,
    /// What the source was when it was opened.
    pub(super) facts: Stat,
    pub(super) target: Identity,
    /// What the target hands on to what is made in it.
    pub(super) inheritance: Inheritance,
    /// How the target came to be there.
    pub(super) made: Made,
}

/// A directory on its way.
pub(super) struct Directory {
    /// `None`: what the user named lies in it; it is not copied itself.
    parent: Option<Arc<Directory>>,
    found: Found,
    number: u64,
    /// What must be done before it is finished: its listing, batches, directories below it.
    pending: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    pair: Option<Arc<Pair>>,
    /// Threads that work in it, and a listing that is to go on.
    users: usize,
    /// Directories below it that nobody has begun with: those made by us, those that were there.
    fresh: Option<Names>,
    existing: Option<Names>,
}

impl State {
    /// Of a directory that is open, and in use by whoever opened it.
    fn open(pair: Pair) -> Self {
        Self { pair: Some(Arc::new(pair)), users: 1, fresh: None, existing: None }
    }
}

impl Directory {
    /// The directory above an operand: held as long as the copy goes on, and never finished.
    pub(super) fn base(pair: Pair, found: Found) -> (Arc<Self>, Arc<Pair>) {
        let state = State::open(pair);
        let pair = state.pair.clone().expect("it is open");
        let pending = AtomicUsize::new(1);
        let state = Mutex::new(state);
        (Arc::new(Self { parent: None, found, number: 0, pending, state }), pair)
    }

    pub(super) fn found(&self) -> &Found {
        &self.found
    }

    pub(super) fn parent(&self) -> Option<&Arc<Directory>> {
        self.parent.as_ref()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pair, if it is not let go.
    fn pair(&self) -> Option<Arc<Pair>> {
        self.state().pair.clone()
    }

    /// The pair is needed until [`Directory::end_use`].
    pub(super) fn begin_use(&self) {
        self.state().users += 1;
    }

    /// The pair is not needed any more.
    pub(super) fn end_use(&self) {
        self.state().users -= 1;
    }

    /// More is to be done before it is finished.
    pub(super) fn expect(&self, more: usize) {
        self.pending.fetch_add(more, Ordering::Relaxed);
    }

    /// One thing is done; true when it was the last.
    pub(super) fn is_last(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Directories below it are to be visited.
    pub(super) fn leave_for_later(&self, fresh: Names, existing: Names) {
        let mut state = self.state();
        state.fresh = Some(fresh);
        state.existing = Some(existing);
    }

    /// One of the directories below it that nobody has begun with. It is in use then.
    ///
    /// Errors: the name lies in a file, which cannot be read.
    pub(super) fn take_below(&self) -> Result<Option<(CString, Origin)>, Refusal> {
        let mut state = self.state();
        let State { fresh, existing, users, .. } = &mut *state;
        for (names, origin) in [(fresh, Origin::Fresh), (existing, Origin::Existing)] {
            let Some(some) = names else { continue };
            let batch = some.take_back(1)?;
            if let Some((name, _)) = batch.iter().next() {
                *users += 1;
                return Ok(Some((name.to_owned(), origin)));
            }
            *names = None;
        }
        Ok(None)
    }

    /// The path below what the user named, for messages; from the operand on.
    pub(super) fn path(&self, side: Side, name: Option<&CStr>) -> OsString {
        let mut parts: Vec<&[u8]> = name.into_iter().map(CStr::to_bytes).collect();
        // An operand such as `a/` is the name `.` in itself.
        parts.retain(|part| *part != b".");
        let mut here = Some(self);
        while let Some(directory) = here {
            let named = &directory.found.named;
            let part = if side == Side::Source { &named.source } else { &named.target };
            parts.push(part.to_bytes());
            here = directory.parent.as_deref();
        }
        let mut path = Vec::new();
        for part in parts.into_iter().rev() {
            if part.is_empty() || part == b"." && !path.is_empty() {
                continue;
            }
            if !path.is_empty() && !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(part);
        }
        OsString::from_vec(path)
    }

    /// Whether it lies below this base, in the target.
    pub(super) fn is_below(&self, base: Identity) -> bool {
        let mut here = self;
        while let Some(parent) = here.parent.as_deref() {
            here = parent;
        }
        here.found.target == base
    }

    /// The path in the target below its base, for the table of links.
    pub(super) fn path_below_base(&self, name: &CStr) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = vec![name.to_bytes()];
        let mut here = self;
        while let Some(parent) = here.parent.as_deref() {
            parts.push(here.found.named.target.to_bytes());
            here = parent;
        }
        parts.reverse();
        parts.join(&b'/')
    }
}

/// Which of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// What is read.
    Source,
    /// What is written.
    Target,
}

impl Drop for Directory {
    /// One after the other: a chain may be deeper than the stack.
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(directory) = above {
            above = Arc::into_inner(directory).and_then(|mut directory| directory.parent.take());
        }
    }
}

/// The directories whose pairs are open, and how many may be.
pub(super) struct Held {
    most: usize,
    open: Mutex<BTreeMap<u64, Weak<Directory>>>,
    numbers: AtomicUsize,
}

impl Held {
    /// So many pairs at most. More only where each of them is needed at once.
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), open: Mutex::default(), numbers: AtomicUsize::new(1) }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<Directory>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory begins. Its listing counts as a thing to be done.
    pub(super) fn enter(
        &self,
        parent: &Arc<Directory>,
        pair: Pair,
        found: Found,
    ) -> Arc<Directory> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) as u64;
        let state = State::open(pair);
        let directory = Arc::new(Directory {
            parent: Some(Arc::clone(parent)),
            found,
            number,
            pending: AtomicUsize::new(1),
            state: Mutex::new(state),
        });
        let mut open = self.open();
        open.insert(number, Arc::downgrade(&directory));
        self.let_go(&mut open);
        directory
    }

    /// Closes pairs of directories that only wait, the outermost first.
    fn let_go(&self, open: &mut BTreeMap<u64, Weak<Directory>>) {
        let mut waiting = open.len().saturating_sub(self.most);
        if waiting == 0 {
            return;
        }
        open.retain(|_, directory| {
            if waiting == 0 {
                return true;
            }
            let Some(directory) = directory.upgrade() else { return false };
            let mut state = directory.state();
            if state.users > 0 {
                return true;
            }
            state.pair = None;
            waiting -= 1;
            false
        });
    }

    /// The pair of a directory, opened again if it was let go: by names from the nearest one above
    /// that is open, each of which must lead where it led before.
    ///
    /// Errors: something on the way was moved.
    pub(super) fn pair(&self, directory: &Arc<Directory>) -> Result<Arc<Pair>, Refusal> {
        let mut closed = Vec::new();
        let mut here = directory;
        let mut pair = loop {
            match (here.pair(), here.parent()) {
                (Some(pair), _) => break pair,
                (None, Some(parent)) => {
                    closed.push(here);
                    here = parent;
                }
                (None, None) => {
                    return Err(Refusal::because(GO_BACK, "its directory was closed"));
                }
            }
        };
        while let Some(below) = closed.pop() {
            let Found { named, facts, target, .. } = &below.found;
            let open = |at: BorrowedFd<'_>, name: &CStr, expected| {
                let opened = rustix::fs::openat(at, name, DIRECTORY, Mode::empty());
                expect(opened, expected)
            };
            pair = Arc::new(Pair {
                source: open(pair.source(), &named.source, identity(facts))?,
                target: open(pair.target(), &named.target, *target)?,
            });
        }
        Ok(self.keep(directory, pair))
    }

    /// Gives a directory its pair back, unless another thread has done it.
    fn keep(&self, directory: &Arc<Directory>, pair: Arc<Pair>) -> Arc<Pair> {
        let pair = Arc::clone(directory.state().pair.get_or_insert(pair));
        if directory.parent().is_some() {
            let mut open = self.open();
            open.insert(directory.number, Arc::downgrade(directory));
            self.let_go(&mut open);
        }
        pair
    }

    /// A directory is finished, or given up. The one above it has its pair again, if that is easy:
    /// through `..`, which leads there from however deep.
    pub(super) fn leave(&self, directory: &Arc<Directory>) {
        self.open().remove(&directory.number);
        let pair = directory.state().pair.take();
        let (Some(parent), Some(pair)) = (directory.parent(), pair) else { return };
        if parent.pair().is_some() {
            return;
        }
        let source = up(pair.source(), identity(&parent.found.facts));
        let target = up(pair.target(), parent.found.target);
        // Where that failed, whoever needs it will look for it by names, and say what is wrong.
        if let (Ok(source), Ok(target)) = (source, target) {
            self.keep(parent, Arc::new(Pair { source, target }));
        }
    }
}

/// The directory above, which must be the one that was come through.
fn up(below: BorrowedFd<'_>, expected: Identity) -> Result<OwnedFd, Refusal> {
    expect(rustix::fs::openat(below, c"..", DIRECTORY, Mode::empty()), expected)
}

/// What was opened again must be what it was.
fn expect(opened: Result<OwnedFd, Errno>, expected: Identity) -> Result<OwnedFd, Refusal> {
    let opened = opened.map_err(Refusal::of(GO_BACK))?;
    let facts = rustix::fs::fstat(&opened).map_err(Refusal::of(GO_BACK))?;
    if identity(&facts) != expected {
        return Err(Refusal::because(GO_BACK, "it was moved meanwhile"));
    }
    Ok(opened)
}
