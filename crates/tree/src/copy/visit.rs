//! A directory: opened on both sides, listed, and its entries made pieces of work.
//!
//! The directories in it are made before its files, which lets ext4 spread them over the disk. A
//! directory with more names than are kept in memory is listed a second time for its files, piece
//! by piece.

mod unfinished;

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;

use super::attributes::{self, Attributes, Made};
use super::directory::{
    self, Access, Directory, Found, Identity, Named, Origin, Pair, Side, identity,
};
use super::dispatch::Work;
use super::entry::{Entry, Outcome, Trouble, attribute, source, target};
use super::event::{Action, Event};
use super::failure::{Failure, Refusal};
use super::job::Targets;
use super::lane::Lane;
use super::listing::{each, once};
use super::options::{Preserve, Reach};
use super::peculiar::{self, ONE_NAME};
use super::tally::count;
use super::temporary::is_temporary;
use crate::spool::home::Home;
use crate::spool::names::{Batch, Names};
use unfinished::{UNFINISHED, is_unfinished, take_back};

/// Names of files that one listing keeps in memory; what is more is listed a second time.
const MOST_NAMES_BYTES: usize = 128 << 10;
/// Names of directories that are kept in memory for later; what is more lies in a file.
const MOST_BELOW_BYTES: usize = 64 << 10;
/// Entries of a batch. A lock costs less than one file; larger batches end unevenly.
const BATCH_ENTRIES: usize = 32;

/// What a listing found.
struct Listed {
    files: Vec<Batch>,
    fresh: Names,
    existing: Names,
    below: usize,
    is_large: bool,
    names: peculiar::Names,
}

impl Lane<'_, '_> {
    /// Begins with a directory that the user named. Its copy may be there.
    pub(super) fn begin(&mut self, base: &Arc<Directory>, pair: &Pair, named: Named) {
        let origin = match rustix::fs::mkdirat(pair.target(), &named.target, UNFINISHED) {
            Ok(()) => Origin::Fresh,
            Err(Errno::EXIST) => Origin::Existing,
            Err(errno) => {
                let path = base.path(Side::Target, Some(&named.target));
                let refusal = Refusal::of("make the directory")(errno);
                let device = pair.found().target.0;
                return self.copy.fail_on(device, &Failure { refusal, path });
            }
        };
        self.visit(base, pair, named, origin);
    }

    /// Opens a directory whose copy is there, lists it, and does the first of what is in it.
    /// Returns it; `None`: it could not be opened.
    pub(super) fn visit(
        &mut self,
        parent: &Arc<Directory>,
        pair: &Pair,
        named: Named,
        origin: Origin,
    ) -> Option<Arc<Directory>> {
        if origin == Origin::Fresh && self.copy.stop.is_full(pair.found().target.0) {
            self.piece_done(parent);
            return None;
        }
        let entry = Entry { directory: parent, pair, source: &named.source, target: &named.target };
        let opened = self.open(entry, origin);
        let (below, access) = match opened {
            Ok(opened) => opened,
            Err(trouble) => {
                if origin == Origin::Fresh && matches!(trouble, Trouble::Source(_)) {
                    take_back(entry);
                }
                self.report(entry, trouble);
                self.piece_done(parent);
                return None;
            }
        };
        let is_mount = below.found().facts.st_dev != pair.found().facts.st_dev;
        let stays_out = is_mount
            && self.copy.options.reach == Reach::OneFilesystem
            && parent.parent().is_some();
        let is_full = self.copy.stop.is_full(below.found().target.0);
        let directory = self.copy.held.enter(parent, below);
        match access {
            _ if stays_out || is_full => {}
            Access::Full => self.list(&directory, origin),
            // Its attributes are copied all the same, as cp does.
            Access::SearchOnly => {
                let path = directory.path(Side::Source, None);
                let refusal = Refusal::of("open")(Errno::ACCESS);
                self.copy.fail_one(&Failure { refusal, path });
            }
        }
        directory.end_use();
        self.piece_done(&directory);
        Some(directory)
    }

    /// Opens both sides. Also tells what may be done with the source.
    fn open(&self, entry: Entry<'_>, origin: Origin) -> Result<(Pair, Access), Trouble> {
        let opened = directory::open(entry.pair.source(), entry.source);
        let (from, access) = opened.map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => {
                let reason = "it is no directory any more";
                Trouble::Source(Refusal::because("open", reason))
            }
            errno => source("open")(errno),
        })?;
        let facts = rustix::fs::fstat(&from).map_err(source("examine"))?;
        if has(&self.copy.targets.own, identity(&facts)) {
            let reason = "it is the copy itself";
            return Err(Trouble::Source(Refusal::because("copy", reason)));
        }
        let to = open_target(entry)?;
        let found = rustix::fs::fstat(&to).map_err(target("examine"))?;
        if identity(&found) == identity(&facts) {
            let reason = "it is the same directory as the source";
            return Err(Trouble::Target(Refusal::because("copy to", reason)));
        }
        if has(&self.copy.targets.sources, identity(&found)) {
            let reason = "it is the source itself";
            return Err(Trouble::Target(Refusal::because("copy to", reason)));
        }
        let above = entry.pair.found().inheritance;
        let is_ours = origin == Origin::Fresh || is_unfinished(entry, &found, &facts);
        if is_ours {
            attributes::open_up(to.as_fd(), &found);
        }
        let (inheritance, made) = match origin {
            Origin::Fresh => {
                self.copy.attributes.bare(to.as_fd(), above).map_err(Trouble::Target)?;
                let keeps_modes = self.copy.options.preserve.has(Preserve::MODE);
                let inside = if keeps_modes { above.inside_new() } else { above };
                // Its owner was seen: somebody may have put a directory of his own there.
                (inside, Made::seen(above, &found))
            }
            Origin::Existing if is_ours => {
                (Attributes::inherits(to.as_fd()), Made::unfinished(above, &found))
            }
            Origin::Existing => {
                self.copy.attributes.narrow(to.as_fd(), &facts, &found);
                (Attributes::inherits(to.as_fd()), Made::found(&found))
            }
        };
        if found.st_dev != entry.pair.found().target.0 || entry.directory.parent().is_none() {
            self.will_sync(to.as_fd(), found.st_dev).map_err(target("hold"))?;
        }
        if entry.directory.parent().is_none() {
            let Targets { own, sources, .. } = &self.copy.targets;
            own.lock().unwrap_or_else(PoisonError::into_inner).push(identity(&found));
            sources.lock().unwrap_or_else(PoisonError::into_inner).push(identity(&facts));
        }
        let named = Named { source: entry.source.to_owned(), target: entry.target.to_owned() };
        let found = Found { named, facts, target: identity(&found), inheritance, made };
        Ok((Pair::new(from, to, found), access))
    }

    /// Lists a directory and makes pieces of its entries; does the first one at once.
    fn list(&mut self, directory: &Arc<Directory>, origin: Origin) {
        let Some(pair) = self.pair(directory) else { return };
        let mut listed = match self.survey(directory, &pair) {
            Ok(listed) => listed,
            // Why it stops is said elsewhere.
            Err(refusal) if refusal.is_interruption() => return,
            Err(refusal) => {
                let path = directory.path(Side::Source, None);
                return self.copy.fail_one(&Failure { refusal, path });
            }
        };
        let peculiar = std::mem::take(&mut listed.names).finish();
        self.copy.peculiarities.remember(directory.number(), peculiar);
        if origin == Origin::Existing {
            self.remove_leftovers(pair.target());
        }
        directory.expect(listed.below);
        directory.leave_for_later(listed.fresh, listed.existing);
        let mut found = Vec::new();
        let first = if listed.is_large {
            directory.expect(1);
            // How far it is listed is known to the descriptor only.
            directory.begin_use();
            found.push(Work::Listing(Arc::clone(directory)));
            None
        } else if listed.files.is_empty() {
            None
        } else {
            Some(listed.files.remove(0))
        };
        for names in listed.files {
            directory.expect(1);
            found.push(Work::Entries(Arc::clone(directory), names));
        }
        if listed.below > 0 {
            found.push(Work::Below(Arc::clone(directory)));
        }
        self.copy.dispatch.offer(found);
        if let Some(names) = first {
            directory.expect(1);
            self.entries(directory, &names);
        }
    }

    /// Reads all names, and makes the directories among them.
    fn survey(&mut self, directory: &Arc<Directory>, pair: &Pair) -> Result<Listed, Refusal> {
        let names = || Names::new(Home::temporary(), MOST_BELOW_BYTES);
        let (fresh, existing) = (names(), names());
        let mut listed = Listed {
            files: Vec::new(),
            fresh,
            existing,
            below: 0,
            is_large: false,
            names: peculiar::Names::default(),
        };
        let mut bytes = 0;
        let mut space = self.take_listing();
        let result = each(pair.source(), &mut space, |name, kind| {
            if self.copy.stop.is_due() {
                return Err(Refusal::interrupted("list"));
            }
            let device = pair.found().target.0;
            listed.names.add(name, kind);
            if kind.is_dir() {
                match rustix::fs::mkdirat(pair.target(), name, UNFINISHED) {
                    Ok(()) => listed.fresh.push(name, kind)?,
                    Err(Errno::EXIST) if listed.names.is_taken(name, pair) => {
                        let path = directory.path(Side::Target, Some(name));
                        let refusal = Refusal::because("make the directory", ONE_NAME);
                        self.copy.fail_one(&Failure { refusal, path });
                        return Ok(());
                    }
                    Err(Errno::EXIST) => listed.existing.push(name, kind)?,
                    // That there is no room was said.
                    Err(_) if self.copy.stop.is_full(device) => return Ok(()),
                    Err(errno) => {
                        let path = directory.path(Side::Target, Some(name));
                        let refusal = Refusal::of("make the directory")(errno);
                        self.copy.fail_on(device, &Failure { refusal, path });
                        return Ok(());
                    }
                }
                listed.below += 1;
            } else if !listed.is_large {
                bytes += name.to_bytes().len() + 2;
                listed.is_large = bytes > MOST_NAMES_BYTES;
                add(&mut listed.files, name, kind)?;
            }
            Ok(())
        });
        self.listing = space;
        if listed.is_large {
            listed.files.clear();
            rustix::fs::seek(pair.source(), SeekFrom::Start(0)).map_err(Refusal::of("list"))?;
        }
        result.map(|()| listed)
    }

    /// Takes the next names of a large directory.
    pub(super) fn go_on_listing(&mut self, directory: &Arc<Directory>) {
        let mut found = Vec::new();
        let mut is_over = true;
        if let Some(pair) = self.pair(directory) {
            let mut files = Vec::new();
            let mut space = self.take_listing();
            let result = once(pair.source(), &mut space, |name, kind| {
                if kind.is_dir() { Ok(()) } else { add(&mut files, name, kind) }
            });
            self.listing = space;
            match result {
                Ok(more) => is_over = !more,
                Err(refusal) => {
                    let path = directory.path(Side::Source, None);
                    self.copy.fail_one(&Failure { refusal, path });
                }
            }
            for names in files {
                directory.expect(1);
                found.push(Work::Entries(Arc::clone(directory), names));
            }
        }
        if !is_over {
            found.push(Work::Listing(Arc::clone(directory)));
            return self.copy.dispatch.offer(found);
        }
        self.copy.dispatch.offer(found);
        directory.end_use();
        self.piece_done(directory);
    }

    /// Removes what a copy left that is gone.
    pub(super) fn remove_leftovers(&mut self, target: BorrowedFd<'_>) {
        let mut space = self.take_listing();
        let _unread = each(target, &mut space, |name, _| {
            if self.copy.stop.is_due() {
                return Err(Refusal::interrupted("list"));
            }
            if is_temporary(name) {
                let _stays_or_goes = self.copy.temporaries.remove_leftover(target, name);
            }
            Ok(())
        });
        self.listing = space;
    }

    /// Gives a directory its attributes.
    pub(super) fn complete(&self, directory: &Arc<Directory>) {
        self.copy.peculiarities.forget(directory.number());
        if self.copy.stop.is_due() {
            return;
        }
        let Some(pair) = self.pair(directory) else { return };
        let Found { facts, made, target: (device, _), .. } = pair.found();
        if self.copy.stop.is_full(*device) {
            return;
        }
        let result = self.copy.attributes.directory(pair.source(), pair.target(), facts, *made);
        match result.map_err(attribute) {
            Err(Trouble::Source(refusal)) => {
                let path = directory.path(Side::Source, None);
                return self.copy.fail_one(&Failure { refusal, path });
            }
            Err(Trouble::Target(refusal)) => {
                let path = directory.path(Side::Target, None);
                return self.copy.fail_on(*device, &Failure { refusal, path });
            }
            Err(Trouble::Became) | Ok(()) => {}
        }
        count(&self.copy.tally.directories);
        if self.copy.watch.wants_each() {
            let Outcome { action, bytes, method, .. } = Outcome::of(Action::Directory);
            let source = directory.path(Side::Source, None);
            self.copy.watch.event(&Event::Done { action, source, bytes, method, elapsed_ns: 0 });
        }
    }
}

/// Whether a directory is one of those at the top of this copy.
fn has(known: &Mutex<Vec<Identity>>, directory: Identity) -> bool {
    known.lock().unwrap_or_else(PoisonError::into_inner).contains(&directory)
}

/// Opens a directory of the target. It is enough if it may be searched.
fn open_target(entry: Entry<'_>) -> Result<OwnedFd, Trouble> {
    match directory::open(entry.pair.target(), entry.target) {
        Ok((opened, _)) => Ok(opened),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let reason = "it is no directory, the source is one";
            Err(Trouble::Target(Refusal::because("overwrite", reason)))
        }
        Err(errno) => Err(target("open")(errno)),
    }
}

/// Adds a name to the last batch, or begins another.
fn add(batches: &mut Vec<Batch>, name: &CStr, kind: FileType) -> Result<(), Refusal> {
    match batches.last_mut() {
        Some(last) if last.count() < BATCH_ENTRIES => last.push(name, kind),
        _ => {
            let mut batch = Batch::default();
            batch.push(name, kind)?;
            batches.push(batch);
            Ok(())
        }
    }
}
