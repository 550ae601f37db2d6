//! One thread of a copy: it takes pieces of work until there are none.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use flatout_sys::usage;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::attributes::{Attributes, Made};
use super::content::Content;
use super::directory::{DIRECTORY, Directory, Found, Identity, Named, Pair, Side, identity};
use super::dispatch::Work;
use super::entry::{Entry, look};
use super::failure::{Failure, Refusal};
use super::job::{Copy, Operand};
use super::options::Durability;
use crate::compare::content::Comparer;
use crate::spool::names::{Batch, BatchIter};

/// Bytes that getdents64(2) may fill at a time: some 1,500 names.
const LISTING_BYTES: usize = 64 << 10;

/// So many small files tell whether a thread waits for them.
const LOOK_FILES: u64 = 16;
/// Filesystems that are synced one by one at most: each costs a descriptor, and each subvolume of
/// btrfs looks like one.
const MOST_SYNCED: usize = 16;
/// A file of this size takes longer than giving away what comes after it.
pub(super) const MUCH_BYTES: u64 = 1 << 20;

/// A thread with its buffers.
pub(super) struct Lane<'c, 'a> {
    pub(super) copy: &'c Copy<'a>,
    pub(super) content: Content<'c>,
    /// For what getdents64(2) fills; made when there is a directory.
    pub(super) listing: Vec<MaybeUninit<u8>>,
    pub(super) comparer: Option<Comparer>,
    /// Small files since the thread was last asked whether it waits, and how often it waited.
    looked: (u64, u64),
}

impl<'c, 'a> Lane<'c, 'a> {
    pub(super) fn new(copy: &'c Copy<'a>) -> Self {
        let content = Content::new(&copy.options, &copy.methods);
        Self { copy, content, listing: Vec::new(), comparer: None, looked: (0, 0) }
    }

    /// Works until there is nothing to do.
    pub(super) fn run(&mut self) {
        let mut near = None;
        while let Some(work) = self.copy.dispatch.next_batch(near.as_ref()) {
            self.copy.evidence.look_at_the_clock();
            near = self.piece(work).or(near);
            self.copy.dispatch.finished();
        }
    }

    /// Does a piece of work; returns the directory in which it was done.
    fn piece(&mut self, work: Work) -> Option<Arc<Directory>> {
        match work {
            Work::Operand(operand) => self.operand(operand),
            Work::Entries(directory, names) => {
                self.entries(&directory, &names);
                return Some(directory);
            }
            Work::Listing(directory) => {
                self.go_on_listing(&directory);
                return Some(directory);
            }
            Work::Visit(directory, name, origin) => {
                let visited = match self.copy.held.pair(&directory) {
                    Ok(pair) => self.visit(&directory, &pair, Named::alike(&name), origin),
                    Err(refusal) => {
                        let path = directory.path(Side::Source, Some(&name));
                        self.copy.fail_one(&Failure { refusal, path });
                        self.piece_done(&directory);
                        None
                    }
                };
                directory.end_use();
                return visited;
            }
            Work::Below(directory) => self.copy.dispatch.offer(vec![Work::Below(directory)]),
            Work::Lost(directory, refusal) => {
                let path = directory.path(Side::Source, None);
                self.copy.fail_one(&Failure { refusal, path });
            }
            Work::Large(large) => large.help(&mut self.content),
        }
        None
    }

    /// Copies names of one directory.
    pub(super) fn entries(&mut self, directory: &Arc<Directory>, names: &Batch) {
        directory.begin_use();
        let before = usage::thread().voluntary_switches;
        let mut moved_much = false;
        if let Some(pair) = self.pair(directory) {
            let mut rest = names.iter();
            while let Some((name, kind)) = rest.next() {
                if self.copy.stop.is_due_on(pair.found().target.0) {
                    break;
                }
                let entry = Entry { directory, pair: &pair, source: name, target: name };
                let moved_bytes = self.entry(entry, kind);
                if moved_bytes >= MUCH_BYTES {
                    moved_much = true;
                    self.share(directory, rest);
                    break;
                }
            }
        }
        if moved_much {
            self.looked = (0, 0);
        } else {
            self.look_whether_it_waits(names.count() as u64, before);
        }
        directory.end_use();
        self.piece_done(directory);
    }

    /// A piece of a directory is done. After the last one it gets its attributes, and so does the
    /// one above it when that was its last, and so on.
    pub(super) fn piece_done(&self, directory: &Arc<Directory>) {
        let mut directory = Arc::clone(directory);
        while self.copy.dispatch.directory_done(&directory) {
            let Some(parent) = directory.parent().cloned() else { return };
            self.complete(&directory);
            self.copy.held.leave(&directory);
            directory = parent;
        }
    }

    /// A thread that has to wait for most of its small files is not held up by the CPUs: more of
    /// them are of use.
    fn look_whether_it_waits(&mut self, files: u64, switches_before: u64) {
        let (seen, waits) = &mut self.looked;
        *seen += files;
        *waits += usage::thread().voluntary_switches - switches_before;
        if *seen >= LOOK_FILES {
            if *waits > *seen / 2 {
                self.copy.want_more_threads();
            }
            self.looked = (0, 0);
        }
    }

    /// Leaves the rest of a batch to whoever has time: its files are large, and a batch of them would
    /// keep one thread busy long after the others are done.
    fn share(&self, directory: &Arc<Directory>, rest: BatchIter<'_>) {
        let mut halves = [Batch::default(), Batch::default()];
        let count = rest.clone().count();
        for (index, (name, kind)) in rest.enumerate() {
            // It came out of a batch, so it fits into one.
            let _fits = halves[usize::from(index >= count / 2)].push(name, kind);
        }
        let found = halves.into_iter().filter(|half| !half.is_empty()).map(|half| {
            directory.expect(1);
            Work::Entries(Arc::clone(directory), half)
        });
        self.copy.dispatch.offer(found.collect());
    }

    /// The pair of a directory that is in use; `None`: it cannot be found again, which is reported.
    pub(super) fn pair(&self, directory: &Arc<Directory>) -> Option<Arc<Pair>> {
        match self.copy.held.pair(directory) {
            Ok(pair) => Some(pair),
            Err(refusal) => {
                let path = directory.path(Side::Source, None);
                self.copy.fail_one(&Failure { refusal, path });
                None
            }
        }
    }

    /// Puts room for a listing at the lane's disposal.
    pub(super) fn take_listing(&mut self) -> Vec<MaybeUninit<u8>> {
        let mut listing = std::mem::take(&mut self.listing);
        listing.resize(LISTING_BYTES, MaybeUninit::uninit());
        listing
    }

    /// Begins with what the user named.
    fn operand(&mut self, operand: Operand) {
        let (source, target) = (split(&operand.source), split(&operand.target));
        let base = self.base(&operand);
        let (base, pair) = match base {
            Ok(base) => base,
            Err(failure) => return self.copy.fail_one(&failure),
        };
        let entry = Entry { directory: &base, pair: &pair, source: &source.1, target: &target.1 };
        let kind = match look(entry) {
            Ok(facts) => FileType::from_raw_mode(facts.st_mode),
            Err(trouble) => return self.report(entry, trouble),
        };
        if kind.is_dir() {
            base.expect(1);
            let named = Named { source: source.1.clone(), target: target.1.clone() };
            self.begin(&base, &pair, named);
        } else {
            self.entry(entry, kind);
        }
    }

    /// Opens the directories in which an operand and its copy lie. They need not be readable: what
    /// is named is looked up in them, no more.
    fn base(&self, operand: &Operand) -> Result<(Arc<Directory>, Arc<Pair>), Failure> {
        let [source, target] = [&operand.source, &operand.target].map(|path| split(path).0);
        let open = |path: &Path, operation| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let path_or_here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let opened = rustix::fs::open(path_or_here, flags, Mode::empty()).and_then(|file| {
                let facts = rustix::fs::fstat(&file)?;
                Ok((file, facts))
            });
            opened.map_err(|errno| Failure {
                refusal: Refusal::of(operation)(errno),
                path: path_or_here.as_os_str().to_owned(),
            })
        };
        let (from, facts) = open(&source, "open the directory")?;
        let (to, target_facts) = open(&target, "open the directory")?;
        let named = Named { source: path_text(&source), target: path_text(&target) };
        let found = Found {
            named,
            facts,
            target: identity(&target_facts),
            inheritance: Attributes::inherits(to.as_fd()),
            made: Made::found(&target_facts),
        };
        self.remember(&to, target_facts.st_dev, found.target).map_err(|errno| Failure {
            refusal: Refusal::of("hold the directory")(errno),
            path: target.clone().into_os_string(),
        })?;
        Ok(Directory::base(Pair::new(from, to, found), &self.copy.held))
    }

    /// Remembers where links are looked up, and what is to be synced in the end.
    fn remember(&self, directory: &OwnedFd, device: u64, base: Identity) -> Result<(), Errno> {
        let targets = &self.copy.targets;
        if targets.links_root.get().is_none() {
            let copy = rustix::io::fcntl_dupfd_cloexec(directory, 3)?;
            let _others_did = targets.links_root.set((copy, base));
        }
        self.will_sync(directory.as_fd(), device)
    }

    /// Notes that something is written to a filesystem, if that matters.
    ///
    /// Errors: no descriptor is left with which it could be synced in the end.
    pub(super) fn will_sync(&self, directory: BorrowedFd<'_>, device: u64) -> Result<(), Errno> {
        if self.copy.options.durability == Durability::Cached {
            return Ok(());
        }
        let filesystems = &self.copy.targets.filesystems;
        let mut known = filesystems.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&device).is_some_and(Option::is_some) {
            return Ok(());
        }
        // All filesystems are synced then.
        if known.values().flatten().count() >= MOST_SYNCED {
            known.insert(device, None);
            return Ok(());
        }
        // syncfs(2) takes no descriptor of `O_PATH`.
        match rustix::fs::openat(directory, c".", DIRECTORY, Mode::empty()) {
            Ok(opened) => known.insert(device, Some(opened)),
            Err(Errno::ACCESS) => {
                self.copy.targets.some_unreadable.store(true, Ordering::Relaxed);
                known.insert(device, None)
            }
            Err(errno) => return Err(errno),
        };
        Ok(())
    }

    /// Has the kernel begin to write a file to storage, if the copy ends only when it is there.
    pub(super) fn begin_writing(&self, file: BorrowedFd<'_>) {
        if self.copy.options.durability == Durability::Durable {
            let _told_by_syncfs = flatout_sys::page_cache::begin_writeback(file);
            if self.copy.targets.some_unreadable.load(Ordering::Relaxed) {
                self.sync_by_file(file);
            }
        }
    }

    /// Has a file stand for its filesystem, where no directory of it could be opened.
    fn sync_by_file(&self, file: BorrowedFd<'_>) {
        let Ok(facts) = rustix::fs::fstat(file) else { return };
        let filesystems = &self.copy.targets.filesystems;
        let mut known = filesystems.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(missing @ None) = known.get_mut(&facts.st_dev) {
            *missing = rustix::io::fcntl_dupfd_cloexec(file, 3).ok();
        }
    }
}

/// A path's directory, and its last name. A directory that is not named itself (`a/`, `.`, `..`,
/// `/`) is the name `.` in itself: the user wants it to be followed.
pub(super) fn split(path: &Path) -> (std::path::PathBuf, CString) {
    let bytes = path.as_os_str().as_bytes();
    let last = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let itself = matches!(last, b"" | b"." | b"..");
    let (above, name) = match path.parent() {
        Some(above) if !itself => (above.to_owned(), last),
        _ => (path.to_owned(), b".".as_slice()),
    };
    (above, CString::new(name).expect("paths have no NUL"))
}

fn path_text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("paths have no NUL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_itself_is_the_directory() {
        for (path, above, name) in [
            ("a/b", "a", "b"),
            ("b", "", "b"),
            ("/b", "/", "b"),
            ("a/b/", "a/b/", "."),
            ("a/.", "a/.", "."),
            (".", ".", "."),
            ("..", "..", "."),
            ("a/..", "a/..", "."),
            ("/", "/", "."),
        ] {
            let found = split(Path::new(path));
            assert_eq!((found.0.to_str().unwrap(), found.1.to_str().unwrap()), (above, name));
        }
    }
}
