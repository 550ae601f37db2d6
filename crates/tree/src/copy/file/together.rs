//! Small files of a directory that was just made here, several at a time: each call is made for all of
//! them in turn, so that the code of the kernel that it takes stays in the caches of the CPU.
//!
//! Whether a source has attributes besides is asked before its copy is made, so that this gets its mode at
//! once. Nobody but its owner looks into the directory until that is complete (`visit/unfinished.rs`), and
//! the copy has a time of its own until its bytes are there. What is not as usual in anything is left to
//! the parent module, as if nobody had been here.
//!
//! Figures: 20,000 × 4 KiB in 20 directories, cached, new ext4, AMD EPYC (family 25, model 17), 2026-11-26, 9 rounds:
//! without this 1.13 (1.05–1.39) of the time. The calls alone (`docs/probes/copy_floor.c`): no fchmod CPU time 0.97,
//! each call for 16 files in turn 0.95 of that; by two threads in one directory, which wait for each other's
//! bursts, 1.10, so there only the sources are looked at together.
//! It is worth it for one file, too, which needs 10 calls instead of 14: 9,000 × 4 KiB in 3,000 directories
//! took 1.14 (0.98–1.39) of the time while fewer than four were copied one by one, CPU time 1.11 (Intel
//! Emerald Rapids, 2026-11-29, 11 rounds).

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use flatout_io::transfer::Method;
use rustix::fs::{FileType, Mode, Stat, copy_file_range};
use rustix::io::Errno;

use super::copy_opened;
use super::finish::{closed, discard, unfinish};
use super::source::{Opened, Reading, is_as_it_was, reading_flags};
use crate::copy::attributes::{are_kept_everywhere, timestamps};
use crate::copy::bond::Bond;
use crate::copy::content::{MOST_TOGETHER, SHORT_BYTES};
use crate::copy::lane::MUCH_BYTES;
use crate::copy::temporary::is_temporary;
use crate::copy::{
    Action, Appearance, Assurance, Copy, Effect, Entry, Follow, Form, Inventory, Lane, Node,
    Outcome, Skip, Trouble, When, count, kind_of, mark, special,
};
use crate::file_data::{Moment, NEW, is_sparse, may_change_unseen, open_unseen, wait_for_a_write};
use crate::spool::names::BatchIter;

/// So many at least say what the others of their directory are like.
const TELLING: usize = 4;
/// So many are copied one by one where most were not as usual, twice as many where most of the next ones
/// are not, either, and so on.
///
/// Figures: where it was 256 at once, 27 groups of four large files in a tree of 19,433 sources of programs had
/// 6,379 small ones copied one by one.
const APART: u32 = 8;
const MOST_APART: u32 = 256;

/// Whether a thread copies small files, or symlinks, together.
#[derive(Debug, Clone, Copy)]
pub(in crate::copy) struct Apart {
    /// So many are to be copied one by one before; `None`: always.
    files: Option<u32>,
    /// So many the next time that most are not as usual.
    next: u32,
}

impl Apart {
    /// `None`: this copy is not plain enough.
    pub(in crate::copy) fn of(copy: &Copy<'_>) -> Self {
        let options = &copy.options;
        let is_copied = match options.appearance {
            Appearance::Atomic => false,
            Appearance::AsFound(rules) => {
                let is_left = rules.attributes_only || rules.skip != Skip::Nothing;
                rules.form == Form::Copy && !is_left && rules.follow != Follow::Always
            }
            Appearance::Plain | Appearance::InPlace | Appearance::Amended => true,
        };
        let is_plain = options.effect == Effect::Done
            && is_copied
            && options.sparse == When::Auto
            && options.assurance == Assurance::Accepted
            && options.inventory == Inventory::None
            && options.method.is_none()
            && options.block_bytes == 0
            && copy.references.is_none()
            && !copy.attributes.keeps_any()
            && !copy.selection.has_limits()
            && !copy.watch.wants_each()
            && !copy.watch.wants_changes();
        // The first one shows what its filesystems do.
        Self { files: is_plain.then_some(1), next: APART }
    }

    /// One was copied by itself.
    fn copied(&mut self, bytes: u64) {
        if let Some(files) = &mut self.files {
            let is_small = bytes < SHORT_BYTES;
            *files = if is_small { files.saturating_sub(1) } else { (*files).max(1) };
        }
    }

    /// Of so many `done` were copied together.
    fn tried(&mut self, names: usize, done: usize) {
        if names >= TELLING && done < names / 2 {
            self.files = Some(self.next);
            self.next = (2 * self.next).min(MOST_APART);
        } else if done > 0 {
            self.next = APART;
        }
    }
}

/// A source that is as usual, and its copy.
struct Small<'n, 'b, 'c> {
    name: &'n CStr,
    bond: Bond<'c>,
    source: OwnedFd,
    facts: Stat,
    mode: Mode,
    method: Method,
    /// What was read of it already.
    bytes: &'b [u8],
    target: Option<OwnedFd>,
}

/// Copies an entry, and where it is time to copy several together, those of its kind that follow, files or
/// symlinks, up to one that is large. Returns the bytes of that.
pub(in crate::copy) fn copy_next<'n>(
    lane: &mut Lane<'_>,
    (first, kind): (Entry<'n>, FileType),
    rest: &mut BatchIter<'n>,
) -> u64 {
    let is_own = || kind.is_symlink() && !first.directory.is_shared();
    if lane.apart.files != Some(0) || !(kind.is_file() || is_own()) {
        let bytes = lane.entry(first, kind);
        lane.apart.copied(bytes);
        return bytes;
    }
    let most = (lane.copy.descriptors_each() / 2).min(MOST_TOGETHER);
    let mut names = Vec::with_capacity(MOST_TOGETHER);
    names.push(first.source);
    while names.len() < most {
        let mut next = rest.clone();
        match next.next() {
            Some((name, another)) if another == kind => names.push(name),
            _ => break,
        }
        *rest = next;
    }
    let done = match kind {
        FileType::Symlink => special::copy_together(first, &names),
        _ => {
            let at_a_time = names.chunks(lane.content.short_at_a_time());
            at_a_time.flat_map(|names| plainly(lane, first, names)).collect()
        }
    };
    lane.apart.tried(names.len(), done.len());
    let mut left =
        names.into_iter().filter(|&name| !done.iter().any(|&done| std::ptr::eq(done, name)));
    while let Some(name) = left.next()
        && !lane.copy.stop.is_due_on(first.pair.found.target.0)
    {
        let entry = Entry { source: name, target: name, ..first };
        let bytes = lane.entry(entry, kind);
        lane.apart.copied(bytes);
        if bytes >= MUCH_BYTES {
            lane.share(first.directory, left.map(|name| (name, kind)));
            return bytes;
        }
    }
    0
}

/// Copies what is as usual, and returns the names of that; of the others nothing is left behind.
fn plainly<'n>(lane: &mut Lane<'_>, first: Entry<'n>, names: &[&'n CStr]) -> Vec<&'n CStr> {
    let (copy, found) = (lane.copy, &first.pair.found);
    let devices = (found.facts.st_dev, found.target.0);
    let is_usual = found.made.is_new()
        && !copy.follows(first.directory)
        && !copy.peculiarities.knows(first.directory);
    let Some((ways, mut room)) = lane.content.short_ways(devices).filter(|_| is_usual) else {
        return Vec::new();
    };
    let (flags, moment) = (reading_flags(copy, first.pair), Moment::now());
    let mut opened = Vec::with_capacity(names.len());
    opened.extend(
        names
            .iter()
            .filter(|name| !is_temporary(name))
            .filter_map(|&name| Some((name, open_unseen(first.pair.source(), name, flags).ok()?))),
    );
    let (mut files, mut further) = (Vec::with_capacity(opened.len()), Vec::new());
    files.extend(opened.into_iter().filter_map(|(name, source)| {
        let facts = rustix::fs::fstat(&source).ok()?;
        let is_usual = facts.st_dev == devices.0
            && facts.st_nlink > 0
            && kind_of(facts).is_file()
            && !is_sparse(&facts)
            && !may_change_unseen(&source, &facts, moment)
            && (!copy.keeps_times() || are_kept_everywhere(&facts));
        let method = ways.of_length(facts.st_size as u64).filter(|_| is_usual)?;
        // FICLONE waits by itself.
        if method != Method::Reflink {
            wait_for_a_write(&source, &facts, moment);
        }
        let mode = copy.attributes.mode_of_new(&facts, found.inheritance)?;
        let entry = Entry { source: name, target: name, ..first };
        let Some(bond) = Bond::of_first(entry, &facts) else {
            further.push((entry, (source, facts)));
            return None;
        };
        Some(Small { name, bond, source, facts, mode, method, bytes: &[], target: None })
    }));
    files.retain(|file| copy.attributes.has_none(Node::Open(file.source.as_fd())));
    files.retain_mut(|file| {
        let length = if file.method == Method::Sync { file.facts.st_size as usize } else { 0 };
        if length > room.len() {
            return false;
        }
        let (bytes, behind) = std::mem::take(&mut room).split_at_mut(length);
        room = behind;
        let is_read = length == 0 || rustix::io::pread(&file.source, &mut *bytes, 0) == Ok(length);
        file.bytes = bytes;
        is_read
    });
    make(first, &mut files);
    // Nobody waits for others before those that wait for these are let go.
    let mut done: Vec<_> =
        files.iter_mut().filter_map(|file| completed(first, file, moment)).collect();
    drop(files);
    done.extend(further.into_iter().filter_map(|(entry, opened)| {
        let is_done = copy.rules().is_none()
            && !copy.stop.is_due_on(devices.1)
            && is_linked(lane, Opened::of(entry, opened, moment, Reading::FILE));
        is_done.then_some(entry.source)
    }));
    done
}

/// Makes a link to the copy of another name, or has a file copied after all. `false`: it is to be looked at
/// once more.
fn is_linked(lane: &mut Lane<'_>, opened: Opened<'_>) -> bool {
    let entry = opened.entry;
    match copy_opened(lane, opened) {
        Err(Trouble::Became | Trouble::Obstacle(_)) => false,
        copied => {
            lane.copy.tell(entry, copied, 0);
            true
        }
    }
}

/// What is done to a copy; `false`: it is given up.
type Act<'a> = dyn Fn(&Small<'_, '_, '_>, &OwnedFd) -> Result<bool, Errno> + 'a;

/// Makes copies, all but closed; those that were given up are not there.
fn make(first: Entry<'_>, files: &mut [Small<'_, '_, '_>]) {
    let copy = first.copy;
    let (directory, device) = (first.pair.target(), first.pair.found.target.0);
    let alone = first.directory.making();
    for file in files.iter_mut().take_while(|_| !copy.stop.is_due_on(device)) {
        file.target = rustix::fs::openat(directory, file.name, NEW, file.mode).ok();
    }
    drop(alone);
    let mut each = |act: &Act<'_>| {
        for file in &mut *files {
            if let Some(target) = &file.target
                && act(file, target) != Ok(true)
            {
                let entry = Entry { source: file.name, target: file.name, ..first };
                discard(entry, target, None);
                file.target = None;
            }
        }
    };
    each(&|file, target| match (file.method, file.facts.st_size as usize) {
        (_, 0) => Ok(true),
        (Method::Sync, length) => Ok(rustix::io::pwrite(target, file.bytes, 0)? == length),
        (Method::CopyFileRange, length) => {
            Ok(copy_file_range(&file.source, None, target, None, length)? == length)
        }
        (Method::Reflink, _) => rustix::fs::ioctl_ficlone(target, &file.source).map(|()| true),
        _ => Ok(false),
    });
    each(&|file, _| Ok(is_as_it_was(&file.facts, &rustix::fs::fstat(&file.source)?)));
    if copy.keeps_times() {
        each(&|file, target| rustix::fs::futimens(target, &timestamps(&file.facts)).map(|()| true));
    }
}

/// Closes the copy of a source that was opened at a moment, and counts it; returns its name. `None`: there
/// is none.
fn completed<'n>(
    first: Entry<'_>,
    file: &mut Small<'n, '_, '_>,
    moment: Moment,
) -> Option<&'n CStr> {
    let copy = first.copy;
    let target = file.target.take()?;
    copy.targets.begin_writing(target.as_fd());
    let is_asked = copy.evidence.is_noting() || !matches!(file.bond, Bond::None);
    let seen = is_asked.then(|| rustix::fs::fstat(&target).ok()).flatten();
    let entry = Entry { source: file.name, target: file.name, ..first };
    if closed(target).is_err() {
        unfinish(entry, &file.facts);
        return None;
    }
    if let Some(seen) = seen.filter(|_| copy.evidence.is_noting()) {
        let source = (&file.facts, first.pair.source());
        copy.evidence.note(source, moment, (&seen, first.pair.target()));
    }
    let mark = seen.map(|seen| mark(&seen));
    let outcome = Outcome { mark, ..Outcome::of(Action::Copied) };
    let bond = std::mem::replace(&mut file.bond, Bond::None);
    if let Err(trouble) = bond.copied(entry, &outcome) {
        copy.report(entry, trouble);
        return Some(file.name);
    }
    let bytes = file.facts.st_size as u64;
    copy.tally.bytes.fetch_add(bytes, Ordering::Relaxed);
    count(&copy.tally.files);
    if bytes > 0 {
        copy.tally.moved(file.method, bytes);
    }
    Some(file.name)
}
