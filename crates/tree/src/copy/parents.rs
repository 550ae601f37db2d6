//! Directories of the target that get their attributes when everything is copied: those that are made because
//! a source lies in such ones (`--parents`), and what is filled with what is in a source (`DIR/.`), where other
//! operands go, too.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes;
use super::directory::{self, DIRECTORY, moved};
use super::operand::failed;
use super::{
    Copy, Directory, Event, Failure, Identity, Inheritance, Made, Operand, Preserve, identity,
    visit,
};
use crate::lock::lock;

const MAKE: &str = "make the directory";

/// Directories above operands.
#[derive(Default)]
pub(super) struct Parents {
    /// What lies below it in the target lies there as it does for the source.
    below: Option<PathBuf>,
    met: Mutex<BTreeMap<PathBuf, Parent>>,
    /// All is copied that is in these.
    filled: Mutex<Vec<Arc<Directory>>>,
}

/// One of them, which is opened again in the end: there may be more than descriptors.
struct Parent {
    source: PathBuf,
    copy: Identity,
    facts: Stat,
    made: Made,
}

impl Parents {
    /// The directory in which all of them are made.
    pub(super) fn below(&self) -> Option<&Path> {
        self.below.as_deref()
    }
}

impl Copy<'_> {
    /// The same copy, of operands that go to the same paths below this directory; those above them
    /// are made like those of the sources (`--parents`).
    pub fn with_parents(mut self, below: Option<PathBuf>) -> Self {
        self.parents.below = below;
        self
    }

    /// Makes the directories above the copy of an operand, as far as they are not there.
    pub(super) fn make_parents(&self, operand: &Operand) -> Result<(), Failure> {
        let Some(below) = &self.parents.below else { return Ok(()) };
        // `a/.` is filled itself.
        let is_filled = operand.target.as_os_str().as_bytes().ends_with(b"/.");
        let mut ways = [&operand.source, &operand.target]
            .map(|path| path.components().as_path().ancestors().skip(usize::from(!is_filled)));
        let [sources, targets] = &mut ways;
        let mut targets = targets.take_while(|path| path != below).peekable();
        // Where all of them are there, cp leaves them alone.
        if targets.peek().is_none_or(|parent| parent.is_dir()) {
            return Ok(());
        }
        let pairs: Vec<(&Path, &Path)> = sources.zip(targets).collect();
        let mut met = lock(&self.parents.met);
        for (source, target) in pairs.into_iter().rev() {
            if !met.contains_key(target) {
                let parent = self.make_parent(source, target)?;
                met.insert(target.to_owned(), parent);
            }
        }
        Ok(())
    }

    fn make_parent(&self, source: &Path, target: &Path) -> Result<Parent, Failure> {
        let (_, mut facts) = open(source)?;
        // As cp, which asks for it when it makes them, unless modes are to be those of new ones.
        if self.options.preserve.has(Preserve::PLAIN_MODE) {
            facts.st_mode &= !Mode::SVTX.bits();
        }
        let (above, _) = open(target.parent().unwrap_or(target))?;
        let above = Inheritance::of(above.as_fd());
        let is_new = match rustix::fs::mkdir(target, visit::mode(self, above, || Ok(facts))) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(failed(MAKE, target)(errno)),
        };
        let (opened, found) = open(target)?;
        if is_new {
            attributes::open_up(opened.as_fd(), &found);
        }
        if is_new && self.watch.wants_each() {
            let (source, target) = (source.as_os_str().to_owned(), target.as_os_str().to_owned());
            self.watch.event(&Event::Making { source, target, backup: None });
        }
        let made = match is_new {
            true => Made::seen(above, &found),
            false => Made::found(&found),
        };
        Ok(Parent { source: source.to_owned(), copy: identity(&found), facts, made })
    }

    /// Whether a directory, of which all is copied, waits until the other operands are. cp takes them in turn.
    pub(super) fn waits_for_others(&self, directory: &Arc<Directory>) -> bool {
        let waits = self.rules().is_none() && directory.is_target_itself();
        if waits {
            lock(&self.parents.filled).push(Arc::clone(directory));
        }
        waits
    }

    /// Gives them their attributes, the innermost first.
    pub(super) fn finish_parents(&self) {
        let filled = std::mem::take(&mut *lock(&self.parents.filled));
        filled.iter().for_each(|directory| visit::complete(self, directory));
        let met = std::mem::take(&mut *lock(&self.parents.met));
        for (path, parent) in met.into_iter().rev() {
            if let Err(failure) = self.finish_parent(&path, &parent) {
                self.fail(failure);
            }
        }
    }

    fn finish_parent(&self, path: &Path, parent: &Parent) -> Result<(), Failure> {
        let from = open_again(&parent.source, identity(&parent.facts))?;
        let to = open_again(path, parent.copy)?;
        let set = self.attributes.directory(from.as_fd(), to.as_fd(), &parent.facts, parent.made);
        set.map_err(|refusal| Failure::of(refusal, path.as_os_str().to_owned()))
    }
}

/// Opens a directory, and looks at it. It is enough if it may be searched.
fn open(path: &Path) -> Result<(OwnedFd, Stat), Failure> {
    let opened = directory::open(CWD, path, DIRECTORY - OFlags::NOFOLLOW);
    let (opened, _) = opened.map_err(failed("open the directory", path))?;
    let facts = rustix::fs::fstat(&opened).map_err(failed("examine", path))?;
    Ok((opened, facts))
}

/// Opens one that must be what it was.
fn open_again(path: &Path, expected: Identity) -> Result<OwnedFd, Failure> {
    match open(path)? {
        (opened, facts) if identity(&facts) == expected => Ok(opened),
        _ => Err(Failure::of(moved(), path.as_os_str().to_owned())),
    }
}
