//! The directories whose pairs are open: how many may be, which are let go, and how one comes back.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use super::closed::{Closed, Record, Records};
use super::{Access, DIRECTORY, Directory, GO_BACK, Guest, Identity, Kept, Pair, identity, open};
use crate::copy::{Effect, Made, Refusal, Trouble, plan};
use crate::lock::lock;

/// The directories whose pairs are open, and how many may be.
pub(in crate::copy) struct Held {
    most: usize,
    open: Mutex<BTreeMap<u64, Weak<Directory>>>,
    numbers: AtomicUsize,
    records: Arc<Records>,
    /// How directories of the source are opened, and those of the target.
    flags: (OFlags, OFlags),
    /// New directories of the target are there, or would be.
    effect: Effect,
}

impl Held {
    /// So many pairs at most. More only where each of them is needed at once.
    /// Those of the source and those of the target are opened so: symlinks among them are followed, or
    /// not.
    pub(in crate::copy) fn new(most: usize, flags: (OFlags, OFlags), effect: Effect) -> Self {
        let (numbers, records) = (AtomicUsize::new(1), Arc::new(Records::new()));
        let (most, open) = (most.max(1), Mutex::default());
        Self { most, open, numbers, records, flags, effect }
    }

    /// A directory begins.
    pub(in crate::copy) fn enter(
        &self,
        parent: &Arc<Directory>,
        pair: Arc<Pair>,
        begun_ns: u64,
        guest: Option<Guest>,
    ) -> Arc<Directory> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) as u64;
        let parent = Some(Arc::clone(parent));
        let directory = Arc::new(Directory::open(parent, (number, begun_ns), pair, guest));
        let mut open = lock(&self.open);
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
            let mut state = lock(&directory.state);
            if state.users > 0 {
                return true;
            }
            if let Kept::Open(pair) = &state.kept {
                let closed = Closed::of(&pair.found);
                state.kept = match Record::of(&closed, &self.records) {
                    Ok(record) => Kept::Recorded(record),
                    Err(_) => Kept::Here(Box::new(closed)),
                };
            }
            waiting -= 1;
            false
        });
    }

    /// The pair of a directory, opened again if it was let go: by names from the nearest one above
    /// that is open, each of which must lead where it led before.
    ///
    /// Errors: something on the way was moved.
    pub(in crate::copy) fn pair(&self, directory: &Arc<Directory>) -> Result<Arc<Pair>, Trouble> {
        if let Some(pair) = directory.pair() {
            return Ok(pair);
        }
        let mut closed = Vec::new();
        let mut here = directory;
        let mut pair = loop {
            if let Some(pair) = here.pair() {
                break pair;
            }
            closed.push(here);
            here = here.parent.as_ref().expect("the directory of an operand stays open");
        };
        while let Some(below) = closed.pop() {
            pair = match below.pair() {
                Some(pair) => pair,
                None => {
                    let closed = below.known().map_err(Trouble::Source)?;
                    let named = &closed.named;
                    let source = open(pair.source(), &*named.source, self.flags.0);
                    let target = match self.is_stood_in_for(&closed.made) {
                        true => plan::stand_in(pair.target()),
                        false => open(pair.target(), &*named.target, self.flags.1),
                    };
                    Arc::new(reopened(closed, source, target)?)
                }
            };
        }
        Ok(self.keep(directory, pair))
    }

    /// Gives a directory its pair back, unless another thread has done it.
    fn keep(&self, directory: &Arc<Directory>, pair: Arc<Pair>) -> Arc<Pair> {
        let pair = {
            let mut state = lock(&directory.state);
            match &state.kept {
                Kept::Open(other) => Arc::clone(other),
                Kept::Nothing => pair,
                Kept::Recorded(_) | Kept::Here(_) => {
                    state.kept = Kept::Open(Arc::clone(&pair));
                    pair
                }
            }
        };
        if directory.parent.is_some() {
            let mut open = lock(&self.open);
            open.insert(directory.number, Arc::downgrade(directory));
            self.let_go(&mut open);
        }
        pair
    }

    /// Whether a directory is not there, and one above it stands in for it.
    fn is_stood_in_for(&self, made: &Made) -> bool {
        self.effect == Effect::Planned && made.is_new()
    }

    /// A directory is finished, or given up. The one above it has its pair again, if that is easy:
    /// through `..`, which leads there from however deep.
    pub(in crate::copy) fn leave(&self, directory: &Arc<Directory>) {
        lock(&self.open).remove(&directory.number);
        let kept = std::mem::replace(&mut lock(&directory.state).kept, Kept::Nothing);
        let (Some(parent), Kept::Open(pair)) = (&directory.parent, kept) else { return };
        // Where that fails, whoever needs it will look for it by names, and say what is wrong.
        let known = if parent.pair().is_none() { parent.known().ok() } else { None };
        let Some(closed) = known else { return };
        let target = match self.is_stood_in_for(&pair.found.made) {
            true => plan::stand_in(pair.target()),
            false => open(pair.target(), c"..", DIRECTORY),
        };
        let source = open(pair.source(), c"..", self.flags.0);
        if let Ok(above) = reopened(closed, source, target) {
            self.keep(parent, Arc::new(above));
        }
    }
}

/// A directory that was let go, opened again. Both sides must be what they were.
fn reopened(
    closed: Closed,
    source: Result<(OwnedFd, Access), Errno>,
    target: Result<(OwnedFd, Access), Errno>,
) -> Result<Pair, Trouble> {
    let (source, now) = expect(source, closed.source).map_err(Trouble::Source)?;
    let (target, _) = expect(target, closed.target).map_err(Trouble::Target)?;
    Ok(Pair { source, target, found: closed.found(now) })
}

/// What was opened again must be what it was.
fn expect(
    opened: Result<(OwnedFd, Access), Errno>,
    expected: Identity,
) -> Result<(OwnedFd, Stat), Refusal> {
    let (opened, _) = opened.map_err(Refusal::of(GO_BACK))?;
    let facts = rustix::fs::fstat(&opened).map_err(Refusal::of(GO_BACK))?;
    if identity(&facts) != expected {
        return Err(moved());
    }
    Ok((opened, facts))
}

/// Something else bears the name of a directory by now.
pub(in crate::copy) fn moved() -> Refusal {
    Refusal::because(GO_BACK, "it was moved meanwhile")
}
