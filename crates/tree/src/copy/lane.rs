//! One thread of a copy: it takes pieces of work until there are none.

mod looked;

use std::ffi::{CStr, CString, OsStr};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use flatout_sys::clock::monotonic_ns;
use flatout_sys::usage::{self, Usage};
use rustix::fs::{Advice, FileType, Mode, OFlags};

use self::looked::Looked;
use super::change::Before;
use super::content::Content;
use super::directory::{Found, Guest, Named};
use super::job::Hire;
use super::listing::Lister;
use super::plan::Room;
use super::reference::Near;
use super::{
    Copy, Directory, Entry, Failure, Inheritance, Made, Operand, Outcome, Pair, Refusal, Trouble,
    Work, file, identity, kind_of, mirror, plan, sequence, special, visit, written,
};
use crate::compare::content::Comparer;
use crate::spool::names::Batch;

/// An entry that turns out to be something else than a moment ago is looked at again so often.
const LOOKS: u32 = 3;
/// So many small files tell whether a thread waits for them.
const LOOK_FILES: u64 = 16;
/// What is asked for ahead of each small file, once it turns out that files come from storage.
const AHEAD_BYTES: u64 = 128 << 10;
/// A file of this size takes longer than giving away what comes after it.
pub(super) const MUCH_BYTES: u64 = 1 << 20;

/// A thread with its buffers, which are made when they are needed.
pub(super) struct Lane<'c> {
    pub(super) copy: &'c Copy<'c>,
    pub(super) hire: Hire<'c>,
    pub(super) content: Content<'c>,
    pub(super) comparer: Comparer,
    pub(super) lister: Lister,
    pub(super) apart: file::Apart,
    /// Where it looked last.
    pub(super) near_snapshot: Near,
    looked: Looked,
}

impl<'c> Lane<'c> {
    pub(super) fn new(copy: &'c Copy<'c>, hire: Hire<'c>) -> Self {
        let content = Content::new(&copy.options, &copy.methods);
        let (comparer, lister) = (Comparer::default(), Lister::default());
        let (apart, looked) = (file::Apart::of(copy), Looked::default());
        let near_snapshot = Near::default();
        Self { copy, hire, content, comparer, lister, apart, near_snapshot, looked }
    }

    /// Works until there is nothing to do.
    pub(super) fn run(&mut self) {
        let mut near = None;
        let mut next = self.copy.dispatch.first();
        self.copy.has_started();
        while let Some(work) = next {
            self.copy.evidence.look_at_the_clock();
            self.copy.find_hands(self.hire);
            near = self.piece(work).or(near);
            next = self.copy.dispatch.next(near.as_ref());
        }
    }

    /// Does a piece of work; returns the directory in which it was done.
    pub(super) fn piece(&mut self, work: Work) -> Option<Arc<Directory>> {
        let copy = self.copy;
        match work {
            Work::Operand(operand) => {
                let begun = self.operand(&operand).map_err(|failure| copy.fail(failure));
                if begun != Ok(true) {
                    copy.next_operand();
                }
            }
            Work::Entries(directory, names) => {
                self.entries(&directory, &names);
                return Some(directory);
            }
            Work::Looking(directory, names) => {
                visit::look_up(copy, &directory, names);
                return Some(directory);
            }
            Work::InTurn(directory) => {
                sequence::go_on(self, &directory);
                return Some(directory);
            }
            Work::Listing(directory) => {
                visit::go_on_listing(self, &directory);
                return Some(directory);
            }
            Work::Visit(directory, name, origin) => {
                let visited = match copy.held.pair(&directory) {
                    Ok(pair) => {
                        let (directory, name) = (&directory, name.as_c_str());
                        let entry =
                            Entry { copy, directory, pair: &pair, source: name, target: name };
                        visit::visit(self, entry, origin)
                    }
                    Err(trouble) => {
                        copy.fail_directory((&directory, 0), Some(&name), trouble);
                        visit::piece_done(copy, &directory);
                        None
                    }
                };
                directory.end_use();
                return visited;
            }
            Work::Below(directory) => copy.dispatch.offer(vec![Work::Below(directory)]),
            Work::Lost(directory, refusal, count) => {
                copy.fail_source(&directory, None, refusal);
                (0..count).for_each(|_| visit::piece_done(copy, &directory));
            }
            Work::Surplus(directory, surplus) => {
                mirror::delete(copy, &directory, &surplus);
                return Some(directory);
            }
            Work::Large(_) | Work::Part(..) | Work::Joined(_) => {
                copy.part(&mut self.content, work);
            }
            Work::Parcel(giver, parcel) => copy.unpack(giver, *parcel),
            Work::Returned(directory, pieces) => {
                (0..pieces).for_each(|_| visit::piece_done(copy, &directory));
            }
        }
        None
    }

    /// Copies the first names of a directory that was just listed.
    pub(super) fn visited(&mut self, directory: Arc<Directory>, first: &Batch) -> Arc<Directory> {
        self.copy.find_hands(self.hire);
        if first.is_empty() {
            directory.end_use();
        } else {
            directory.expect(1);
            self.entries_in_use(&directory, first);
        }
        visit::piece_done(self.copy, &directory);
        directory
    }

    /// Copies names of one directory.
    pub(super) fn entries(&mut self, directory: &Arc<Directory>, names: &Batch) {
        directory.begin_use();
        self.entries_in_use(directory, names);
    }

    /// The same where it is in use, up to then.
    fn entries_in_use(&mut self, directory: &Arc<Directory>, names: &Batch) {
        let copy = self.copy;
        let before = usage::thread();
        let mut moved_much = false;
        if let Some(pair) = visit::pair(copy, directory) {
            if copy.fetches.load(Ordering::Relaxed) {
                ask_ahead(copy, &pair, names);
            }
            let (mut rest, none) = (names.iter(), Batch::default());
            while let Some((name, kind)) = rest.next() {
                if copy.stop.is_due_on(pair.found.target.0) {
                    break;
                }
                self.let_others_go_first(directory);
                let entry = Entry { copy, directory, pair: &pair, source: name, target: name };
                if !moved_much && self.begins_much(entry, kind, names) {
                    moved_much = true;
                    self.share(directory, std::mem::replace(&mut rest, none.iter()));
                    copy.find_hands(self.hire);
                }
                let is_large = file::copy_next(self, (entry, kind), &mut rest) >= MUCH_BYTES;
                if is_large || copy.is_asked_for(&rest) {
                    moved_much = true;
                    self.share(directory, rest);
                    break;
                }
            }
        }
        if moved_much {
            self.looked = Looked::default();
        } else {
            self.look_whether_it_waits(names.count() as u64, &before);
        }
        directory.end_use();
        visit::piece_done(copy, directory);
    }

    /// Copies an entry that is no directory, and tells what came of it. Returns the bytes moved.
    pub(super) fn entry(&mut self, entry: Entry<'_>, kind: FileType) -> u64 {
        let copy = self.copy;
        let begun_ns = if copy.watch.wants_each() { monotonic_ns() } else { 0 };
        let copied = self.copied(entry, kind).transpose();
        copied.map_or(0, |copied| copy.tell(entry, copied, begun_ns))
    }

    /// Decides who copies an entry, by what it is now; `None`: it is not selected.
    fn copied(&mut self, entry: Entry<'_>, mut kind: FileType) -> Result<Option<Outcome>, Trouble> {
        let copy = self.copy;
        let is_plan = copy.is_plan();
        entry.refuse_made_up()?;
        let peculiar = copy.peculiarities.of(entry.directory);
        let care = peculiar.as_ref().map(|names| names.care(entry)).transpose()?;
        if copy.selection.has_limits() && !copy.selection.is_within(&entry.facts()?) {
            return Ok(None);
        }
        let before = Before::of(entry);
        let (rules, mut copied) = (copy.rules_in(entry.directory), Err(Trouble::Became));
        let mut room = Room::Unasked;
        for _ in 0..LOOKS {
            copied = match (kind, &rules) {
                (FileType::Directory, _) => {
                    let reason = "it became a directory while its names were read";
                    Err(Trouble::Source(Refusal::because("copy", reason)))
                }
                (_, Some(rules)) if is_plan => plan::by_rules::copy(self, entry, rules, room),
                (_, None) if is_plan => plan::copy(self, entry, kind, room),
                (_, Some(rules)) => written::copy(self, entry, rules, kind),
                (FileType::RegularFile, None) => file::copy(self, entry),
                _ => special::copy(entry),
            };
            match copied {
                Err(Trouble::Became) => kind = kind_of(entry.facts()?),
                Err(Trouble::Obstacle(_)) if is_plan && mirror::would_make_way(entry) => {
                    room = Room::Made;
                }
                _ => break,
            }
        }
        let outcome = copied?;
        // It looks at what was made.
        if let Some(care) = care.filter(|_| !is_plan) {
            care.copied(entry)?;
        }
        if let Some(before) = before.filter(|_| outcome.blemish.is_none()) {
            before.tell(entry, &outcome);
        }
        Ok(Some(outcome))
    }

    /// A thread that has to wait for most of its small files is not held up by the CPUs: more of
    /// them are of use.
    fn look_whether_it_waits(&mut self, files: u64, before: &Usage) {
        self.looked.add(files, before, &usage::thread());
        if self.looked.files >= LOOK_FILES {
            let lies_on_devices = self.content.lies_on_devices();
            if self.looked.waits_for_storage(lies_on_devices) {
                self.copy.want_threads(u32::MAX);
            }
            // Who asks ahead does not wait.
            self.copy.fetches.store(lies_on_devices && self.looked.fetches(), Ordering::Relaxed);
            self.looked = Looked::default();
        }
    }

    /// Whether this is the first of several names, and so large that the others are not to wait for it.
    ///
    /// Cost: one fstatat for a batch, where there is nothing else for others to do.
    fn begins_much(&self, entry: Entry<'_>, kind: FileType, names: &Batch) -> bool {
        let mut first = names.iter().map(|(name, _)| std::ptr::eq(name, entry.source));
        let is_first = first.next() == Some(true) && first.next().is_some();
        is_first
            && kind.is_file()
            && self.copy.options.threads != 1
            && self.copy.dispatch.waiting() == 0
            && entry.facts().is_ok_and(|facts| facts.st_size as u64 >= MUCH_BYTES)
    }

    /// Leaves the rest of a batch to whoever has time: its files are large, and a batch of them would
    /// keep one thread busy long after the others are done.
    pub(super) fn share<'n>(
        &self,
        directory: &Arc<Directory>,
        rest: impl Iterator<Item = (&'n CStr, FileType)> + Clone,
    ) {
        let mut halves = [Batch::default(), Batch::default()];
        let count = rest.clone().count();
        for (index, (name, kind)) in rest.enumerate() {
            // It came out of a batch, so it fits into one.
            let _fits = halves[usize::from(index >= count / 2)].push(name, kind);
        }
        let halves = halves.into_iter().filter(|half| !half.is_empty());
        self.copy.dispatch.offer(visit::offered(directory, halves));
    }

    /// Begins with what the user named; true where it is a directory, which is not done by then.
    fn operand(&mut self, operand: &Operand) -> Result<bool, Failure> {
        let copy = self.copy;
        let (source, target) = (split(&operand.source), split(&operand.target));
        copy.make_parents(operand)?;
        let (base, pair) = base(copy, source.0, target.0, None)?;
        let entry =
            Entry { copy, directory: &base, pair: &pair, source: &source.1, target: &target.1 };
        let kind = match entry.facts() {
            Ok(facts) => kind_of(facts),
            Err(trouble) => {
                copy.report(entry, trouble);
                return Ok(false);
            }
        };
        if !kind.is_dir() {
            if copy.selection.takes_operand(entry.source.to_bytes()) {
                self.entry(entry, kind);
            }
            return Ok(false);
        }
        base.expect(1);
        Ok(visit::begin(self, entry).is_some())
    }
}

/// Has the device read what comes next, all at once and not one after the other. What cannot be
/// opened is told of when it is its turn.
fn ask_ahead(copy: &Copy<'_>, pair: &Pair, names: &Batch) {
    for (name, _) in names.iter().filter(|(_, kind)| kind.is_file()) {
        let flags = file::reading_flags(copy, pair);
        if let Ok(file) = rustix::fs::openat(pair.source(), name, flags, Mode::empty()) {
            let _advice =
                rustix::fs::fadvise(&file, 0, NonZeroU64::new(AHEAD_BYTES), Advice::WillNeed);
        }
    }
}

/// Opens the directories in which an operand and its copy lie. They need not be readable: what is
/// named is looked up in them, no more.
pub(super) fn base(
    copy: &Copy<'_>,
    source: &Path,
    target: &Path,
    guest: Option<Guest>,
) -> Result<(Arc<Directory>, Arc<Pair>), Failure> {
    let shown = |path: &Path| match path.as_os_str() {
        path if path.is_empty() => ".".into(),
        path => path.to_owned(),
    };
    let refused =
        |path: &Path, errno| Failure::of(Refusal::of("open the directory")(errno), shown(path));
    let open = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(shown(path), flags, Mode::empty())
            .and_then(|file| rustix::fs::fstat(&file).map(|facts| (file, facts)))
            .map_err(|errno| refused(path, errno))
    };
    let (from, facts) = open(source)?;
    let (to, target_facts) = open(target)?;
    let found = Found {
        named: Named { source: path_text(source), target: path_text(target) },
        facts,
        target: identity(&target_facts),
        inheritance: Inheritance::of(to.as_fd()),
        made: Made::found(&target_facts),
    };
    if let Some(below) = copy.parents.below() {
        let (root, facts) = open(below)?;
        (copy.targets.look_up_links_in(&root, &facts, Some(below)))
            .map_err(|errno| refused(below, errno))?;
    }
    let targets = &copy.targets;
    (targets.look_up_links_in(&to, &target_facts, None))
        .and_then(|()| targets.will_sync(to.as_fd(), target_facts.st_dev))
        .map_err(|errno| refused(target, errno))?;
    Ok(Directory::base(Pair { source: from, target: to, found }, guest))
}

/// A path's directory, as it is written, and its last name. A directory that is not named itself (`a/`, `.`,
/// `..`, `/`) is the name `.` in itself: the user wants it to be followed.
pub(super) fn split(path: &Path) -> (&Path, CString) {
    let bytes = path.as_os_str().as_bytes();
    let start = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (above, name) = match bytes.split_at(start) {
        (_, b"" | b"." | b"..") => (bytes, b".".as_slice()),
        // `a//b` is not `a/b` in the text of a symlink.
        ([above @ .., b'/'], name) if !above.is_empty() && !above.ends_with(b"/") => (above, name),
        both => both,
    };
    (Path::new(OsStr::from_bytes(above)), CString::new(name).expect("paths have no NUL"))
}

fn path_text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("paths have no NUL")
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::fs;

    use flatout_sys::page_cache;

    use super::*;
    use crate::copy::tests::{Heard, options};

    #[test]
    fn who_waits_for_other_threads_does_not_wait_for_storage() {
        let cached = Looked { files: 32, waits: 40, fetched_bytes: 8192 };
        let cold = Looked { fetched_bytes: 32 * 4096, ..cached };
        let busy = Looked { waits: 9, ..cold };
        assert_eq!(
            [cached, cold, busy].map(|looked| looked.waits_for_storage(true)),
            [false, true, false]
        );
        assert!(cached.waits_for_storage(false), "a server is waited for unseen");
        assert_eq!([cached, cold, busy].map(|looked| looked.fetches()), [false, true, true]);
        let mut looked = Looked::default();
        let before = Usage { voluntary_switches: 3, device_read_bytes: 512, ..Usage::default() };
        let after = Usage { voluntary_switches: 5, device_read_bytes: 1024, ..Usage::default() };
        looked.add(7, &before, &after);
        assert_eq!((looked.files, looked.waits, looked.fetched_bytes), (7, 2, 512));
        // getrusage(2) may fail, by a filter for example.
        looked.add(1, &after, &Usage::default());
        assert_eq!((looked.files, looked.waits, looked.fetched_bytes), (8, 2, 512));
    }

    #[test]
    fn what_comes_next_is_asked_for_before_it_is_copied() {
        let place = tempfile::tempdir().unwrap();
        let (names, heard) = ([c"a", c"b", c"gone"], Heard::default());
        let mut batch = Batch::default();
        for name in names {
            batch.push(name, FileType::RegularFile).unwrap();
        }
        let path = |name: &CStr| place.path().join(name.to_str().unwrap());
        let files = [c"a", c"b"].map(|name| {
            fs::write(path(name), [7; 10_000]).unwrap();
            fs::File::open(path(name)).unwrap()
        });
        let evict = |file: &fs::File| page_cache::evict(file.as_fd(), 0).unwrap().cached_bytes;
        if files.iter().map(evict).sum::<u64>() > 0 {
            return eprintln!("skipped: no file here can be dropped from the cache");
        }
        let copy = Copy::new(options(), &heard);
        let (_base, pair) = base(&copy, place.path(), place.path(), None).ok().unwrap();
        ask_ahead(&copy, &pair, &batch);
        for file in &files {
            assert!(page_cache::state(file.as_fd(), 0, 10_000).unwrap().cached_bytes >= 10_000);
        }
    }

    #[test]
    fn what_is_not_named_itself_is_the_directory() {
        for (path, above, name) in [
            ("a/b", "a", "b"),
            ("b", "", "b"),
            ("/b", "/", "b"),
            ("a/./b", "a/.", "b"),
            ("a//b", "a//", "b"),
            ("./b", ".", "b"),
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
