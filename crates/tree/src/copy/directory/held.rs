//! The directories whose pairs are open: how many may be, which are let go, and how one comes back.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::parking::{Parked, Parking};
use super::{Access, Directory, GO_BACK, Identity, Kept, Known, Pair, State, identity, open};
use crate::copy::failure::Refusal;

/// The directories whose pairs are open, and how many may be.
pub(in crate::copy) struct Held {
    most: usize,
    open: Mutex<BTreeMap<u64, Weak<Directory>>>,
    numbers: AtomicUsize,
    pub(super) parking: Arc<Parking>,
}

impl Held {
    /// So many pairs at most. More only where each of them is needed at once.
    pub(in crate::copy) fn new(most: usize) -> Self {
        let (numbers, parking) = (AtomicUsize::new(1), Arc::new(Parking::new()));
        Self { most: most.max(1), open: Mutex::default(), numbers, parking }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<Directory>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory begins. Its listing counts as a thing to be done.
    pub(in crate::copy) fn enter(&self, parent: &Arc<Directory>, pair: Pair) -> Arc<Directory> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) as u64;
        let directory = Arc::new(Directory {
            parent: Some(Arc::clone(parent)),
            number,
            pending: AtomicUsize::new(1),
            state: Mutex::new(State::open(Arc::new(pair))),
            parking: Arc::clone(&self.parking),
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
            directory.park(&mut state);
            waiting -= 1;
            false
        });
    }

    /// The pair of a directory, opened again if it was let go: by names from the nearest one above
    /// that is open, each of which must lead where it led before.
    ///
    /// Errors: something on the way was moved.
    pub(in crate::copy) fn pair(&self, directory: &Arc<Directory>) -> Result<Arc<Pair>, Refusal> {
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
            pair = match below.known()? {
                Known::Open(pair) => pair,
                Known::Parked(parked) => {
                    let source = open(pair.source(), &parked.named.source);
                    let target = open(pair.target(), &parked.named.target);
                    Arc::new(reopened(parked, source, target)?)
                }
            };
        }
        Ok(self.keep(directory, pair))
    }

    /// Gives a directory its pair back, unless another thread has done it.
    fn keep(&self, directory: &Arc<Directory>, pair: Arc<Pair>) -> Arc<Pair> {
        let pair = {
            let mut state = directory.state();
            match &state.kept {
                Kept::Open(other) => Arc::clone(other),
                Kept::Nothing => pair,
                Kept::Parked(_) | Kept::Here(_) => {
                    let parked = std::mem::replace(&mut state.kept, Kept::Open(Arc::clone(&pair)));
                    if let Kept::Parked(slot) = parked {
                        directory.parking.free(slot);
                    }
                    pair
                }
            }
        };
        if directory.parent().is_some() {
            let mut open = self.open();
            open.insert(directory.number, Arc::downgrade(directory));
            self.let_go(&mut open);
        }
        pair
    }

    /// A directory is finished, or given up. The one above it has its pair again, if that is easy:
    /// through `..`, which leads there from however deep.
    pub(in crate::copy) fn leave(&self, directory: &Arc<Directory>) {
        self.open().remove(&directory.number);
        let kept = std::mem::replace(&mut directory.state().kept, Kept::Nothing);
        if let Kept::Parked(slot) = kept {
            directory.parking.free(slot);
        }
        let (Some(parent), Kept::Open(pair)) = (directory.parent(), kept) else { return };
        // Where that fails, whoever needs it will look for it by names, and say what is wrong.
        let Ok(Known::Parked(parked)) = parent.known() else { return };
        let up = |below| open(below, c"..");
        if let Ok(above) = reopened(parked, up(pair.source()), up(pair.target())) {
            self.keep(parent, Arc::new(above));
        }
    }
}

/// A directory that was let go, opened again. Both sides must be what they were.
fn reopened(
    parked: Parked,
    source: Result<(OwnedFd, Access), Errno>,
    target: Result<(OwnedFd, Access), Errno>,
) -> Result<Pair, Refusal> {
    let (source, now) = expect(source, parked.source)?;
    let (target, _) = expect(target, parked.target)?;
    Ok(Pair { source, target, found: parked.found(now) })
}

/// What was opened again must be what it was.
fn expect(
    opened: Result<(OwnedFd, Access), Errno>,
    expected: Identity,
) -> Result<(OwnedFd, Stat), Refusal> {
    let (opened, _) = opened.map_err(Refusal::of(GO_BACK))?;
    let facts = rustix::fs::fstat(&opened).map_err(Refusal::of(GO_BACK))?;
    if identity(&facts) != expected {
        return Err(Refusal::because(GO_BACK, "it was moved meanwhile"));
    }
    Ok((opened, facts))
}
