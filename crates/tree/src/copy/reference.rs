//! Earlier snapshots: a file that is in one of them as it is in the source need not be copied. It
//! becomes another name of the one there (`--link-dest`), or shares its extents (`--reflink-dest`).
//!
//! What is in a snapshot is read and never changed: neither its bytes nor the attributes of an inode
//! that it shares. A file is looked for under the path that its copy gets below the target, and then
//! by its size and time anywhere else (`reference/renamed.rs`).

mod renamed;

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::attributes::{Place, pin};
use super::content::{Copied, FileJob};
use super::existing::{is_same, refuse_to_replace};
use super::file::Opened;
use super::links::{self, Linking, Placed, open_below};
use super::{
    Action, Assurance, Copy, Entry, Identity, Inventory, Lane, Node, Outcome, Trouble, Unchanged,
    bond, identity, kind_of, mark,
};
use crate::file_data;
use renamed::Renamed;

/// The part of the memory for what is known of snapshots.
const INDEX_SHARE: u64 = 4;

/// Directories with what earlier copies left.
#[derive(Debug, Default)]
pub struct References {
    /// Those whose unchanged files get another name, in the order in which they are searched.
    pub link: Vec<OwnedFd>,
    /// Those whose files of the same size and time give their extents.
    pub clone: Vec<OwnedFd>,
    /// What all of them are.
    roots: Vec<Identity>,
    /// The one operand becomes the target itself: the name that it has there is none of theirs.
    pub stands_for_operand: bool,
    /// Where else a file may be.
    renamed: Renamed,
}

/// A file of a snapshot.
pub(super) struct Found {
    /// Open for reading, or pinned.
    file: OwnedFd,
    pub(super) facts: Stat,
    path: Vec<u8>,
}

/// The directory of a snapshot in which a thread looked last: what comes next mostly lies there, too.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// The number of its snapshot, and its path in that.
    place: Option<(usize, Vec<u8>)>,
    /// `None`: nothing leads there.
    directory: Option<OwnedFd>,
}

impl Near {
    /// The directory that a path below a root leads to, and the name in it. No symlink is followed.
    ///
    /// Cost: three calls where it is another one than the last time.
    fn find(
        &mut self,
        (number, root): (usize, &OwnedFd),
        path: &[u8],
    ) -> Option<(BorrowedFd<'_>, CString)> {
        let name_at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let (above, name) = path.split_at(name_at);
        if !self.place.as_ref().is_some_and(|(of, known)| *of == number && known == above) {
            // What went wrong may go right the next time.
            self.place = None;
            let found = open_below(root.as_fd(), path).ok()?;
            self.directory = found.map(|(directory, _)| directory);
            self.place = Some((number, above.to_vec()));
        }
        Some((self.directory.as_ref()?.as_fd(), CString::new(name).ok()?))
    }
}

impl References {
    /// Snapshots for links and for extents. `stands_for_operand`: as the field.
    pub fn new(link: Vec<OwnedFd>, clone: Vec<OwnedFd>, stands_for_operand: bool) -> Self {
        let facts = link.iter().chain(&clone).flat_map(rustix::fs::fstat);
        let roots = facts.map(|facts| identity(&facts)).collect();
        Self { link, clone, roots, stands_for_operand, renamed: Renamed::default() }
    }

    /// Where a file stands in a snapshot.
    fn path(&self, entry: Entry<'_>) -> Option<Vec<u8>> {
        let path = entry.directory.path_below_base(entry.target).ok()?;
        if !self.stands_for_operand {
            return Some(path);
        }
        let slash = path.iter().position(|&byte| byte == b'/')?;
        Some(path[slash + 1..].to_vec())
    }

    /// The first file in one of the snapshots that `fits`. What cannot be opened so is none.
    fn find<'c>(
        &self,
        (first, roots): (usize, &[OwnedFd]),
        (lane, entry): (&mut Lane<'c>, Entry<'_>),
        open: impl Fn(BorrowedFd<'_>, &CStr) -> Result<OwnedFd, Errno>,
        mut fits: impl FnMut(&mut Lane<'c>, &Found) -> Result<bool, Trouble>,
    ) -> Result<Option<(usize, Found)>, Trouble> {
        let Some(path) = self.path(entry).filter(|_| !roots.is_empty()) else { return Ok(None) };
        for (index, root) in roots.iter().enumerate() {
            let place = lane.near_snapshot.find((first + index, root), &path);
            let found = place.and_then(|(at, name)| Found::of(open(at, &name).ok()?, &path));
            if let Some(found) = found
                && fits(lane, &found)?
            {
                return Ok(Some((index, found)));
            }
        }
        Ok(None)
    }

    /// The first file of one of these snapshots, by their numbers, under another path that has the bytes of the
    /// source and `fits`.
    fn find_renamed(
        &self,
        lane: &mut Lane<'_>,
        opened: &Opened<'_>,
        wanted: Range<usize>,
        fits: impl Fn(&Found) -> Result<bool, Trouble>,
    ) -> Result<Option<(usize, Found)>, Trouble> {
        let copy = lane.copy;
        if wanted.is_empty() {
            return Ok(None);
        }
        let roots = || self.link.iter().chain(&self.clone);
        let memory_bytes = copy.options.max_memory_bytes / INDEX_SHARE;
        let go_on = || !copy.stop.is_due();
        let all = self.renamed.candidates(&opened.facts, roots(), memory_bytes, go_on);
        for (number, path) in all.into_iter().filter(|(number, _)| wanted.contains(number)) {
            let Some(found) = roots().nth(number).and_then(|root| Found::open(root, &path)) else {
                continue;
            };
            if is_unchanged(lane, opened, &found, true)? && fits(&found)? {
                return Ok(Some((number - wanted.start, found)));
            }
        }
        Ok(None)
    }

    /// An unchanged file of a snapshot of which the copy may become another name, and the number of
    /// its root.
    pub(super) fn unchanged(
        &self,
        lane: &mut Lane<'_>,
        opened: &Opened<'_>,
    ) -> Result<Option<(usize, Found)>, Trouble> {
        let copy = lane.copy;
        let compares = copy.options.unchanged == Unchanged::Content;
        let may_be_linked = |found: &Found| {
            let nodes = [&opened.file, &found.file].map(|file| Node::Open(file.as_fd()));
            may_be_linked(copy, nodes, [&opened.facts, &found.facts])
        };
        let fits = |lane: &mut Lane<'_>, found: &Found| {
            Ok(is_unchanged(lane, opened, found, compares)? && may_be_linked(found)?)
        };
        let (links, here) = ((0, &self.link[..]), opened.entry);
        match self.find(links, (lane, here), file_data::open, fits)? {
            Some(found) => Ok(Some(found)),
            None => self.find_renamed(lane, opened, 0..self.link.len(), may_be_linked),
        }
    }

    /// Makes the copy another name of an unchanged file of a snapshot; `None`: it is to be copied.
    pub(super) fn link(
        &self,
        lane: &mut Lane<'_>,
        opened: &Opened<'_>,
    ) -> Result<Option<Outcome>, Trouble> {
        let unchanged = self.unchanged(lane, opened)?;
        unchanged.map_or(Ok(None), |found| self.link_to(found, opened.entry, &opened.facts))
    }

    /// The same where size, time and attributes tell that a file of one name is unchanged: neither is opened.
    /// `None`: a closer look is needed.
    ///
    /// Cost: seven calls in a directory of the snapshot that is known, and where nothing bears the name.
    pub(super) fn link_unopened(
        &self,
        lane: &mut Lane<'_>,
        entry: Entry<'_>,
    ) -> Result<Option<Outcome>, Trouble> {
        let copy = lane.copy;
        let is_told = !self.link.is_empty()
            && copy.options.unchanged != Unchanged::Content
            && !copy.attributes.keeps_any()
            && !copy.follows(entry.directory);
        if !is_told {
            return Ok(None);
        }
        let Ok(facts) = entry.look() else { return Ok(None) };
        if !kind_of(facts).is_file() || facts.st_nlink > 1 {
            return Ok(None);
        }
        let pin = |directory: BorrowedFd<'_>, name: &CStr| pin(Place { directory, name });
        let fits = |_: &mut Lane<'_>, found: &Found| {
            let nodes = [Node::Named(entry.source_place()), Node::Pinned(found.file.as_fd())];
            Ok(is_alike(entry, (&facts, &found.facts), false)
                && may_be_linked(copy, nodes, [&facts, &found.facts])?)
        };
        match self.find((0, &self.link), (lane, entry), pin, fits)? {
            Some(unchanged) => self.link_to(unchanged, entry, &facts),
            None => Ok(None),
        }
    }

    fn link_to(
        &self,
        (index, found): (usize, Found),
        entry: Entry<'_>,
        facts: &Stat,
    ) -> Result<Option<Outcome>, Trouble> {
        refuse_to_replace(entry, (facts, &found.facts))?;
        let (root, file) = (self.link[index].as_fd(), Some(found.file.as_fd()));
        let known = links::Copy { path: found.path, mark: mark(&found.facts), was_there: true };
        let action = match bond::link(entry, Placed { root, copy: &known, file }, facts)? {
            Linking::Made => Action::Linked,
            Linking::WasThere => Action::Unchanged,
            cannot => {
                let what = "some unchanged files of --link-dest are copied, not linked";
                let text = || format!("{what}: {}", cannot.cause());
                entry.copy.notice_once("link_dest_refused", None, text);
                return Ok(None);
            }
        };
        Ok(Some(Outcome { mark: Some(known.mark), ..Outcome::of(action) }))
    }

    /// Gives the target the extents of a file of a snapshot; `None`: it is to be copied.
    pub(super) fn clone(
        &self,
        lane: &mut Lane<'_>,
        opened: &Opened<'_>,
        job: FileJob<'_>,
    ) -> Result<Option<Copied>, Trouble> {
        let options = &lane.copy.options;
        // The digest of the source, which is read for it, must be that of its copy, too.
        let compares = options.assurance == Assurance::Verified
            || options.inventory != Inventory::None
            || options.unchanged == Unchanged::Content;
        let fits = |lane: &mut Lane<'_>, found: &Found| is_unchanged(lane, opened, found, compares);
        let (links, all) = (self.link.len(), self.link.len() + self.clone.len());
        let (clones, here) = ((links, &self.clone[..]), opened.entry);
        let found = self.find(clones, (lane, here), file_data::open, fits)?;
        let (found, is_assumed) = match found {
            Some(found) => (Some(found), !compares),
            None => (self.find_renamed(lane, opened, links..all, |_| Ok(true))?, false),
        };
        let Some((_, found)) = found else { return Ok(None) };
        let copied = lane.content.take_extents(job, (found.file.as_fd(), &found.facts));
        match copied.map_err(Trouble::of)? {
            Ok(copied) => Ok(Some(Copied { is_assumed, ..copied })),
            Err(errno) => {
                let what = "some unchanged files of --reflink-dest are copied, their extents cannot be shared";
                let text = || format!("{what}: {}", flatout_io::cause_text(&errno.into()));
                lane.copy.notice_once("reflink_dest_refused", Some(errno), text);
                Ok(None)
            }
        }
    }
}

impl Copy<'_> {
    /// Whether a directory is a snapshot, in which nothing is to change, by whatever mount it is reached.
    pub(super) fn is_snapshot(&self, found: Identity) -> bool {
        self.references.as_ref().is_some_and(|references| references.roots.contains(&found))
    }
}

impl Found {
    /// A regular file below a root, open for reading; no symlink is followed.
    fn open(root: &OwnedFd, path: &[u8]) -> Option<Self> {
        let (directory, name) = open_below(root.as_fd(), path).ok()??;
        Self::of(file_data::open(directory.as_fd(), &name).ok()?, path)
    }

    fn of(file: OwnedFd, path: &[u8]) -> Option<Self> {
        let facts = rustix::fs::fstat(&file).ok()?;
        let is_file = kind_of(facts).is_file();
        is_file.then(|| Self { file, facts, path: path.to_vec() })
    }
}

/// Whether a copy of a source may be another name of a file like it in a snapshot. Names that are one file
/// in the snapshot, and two in the source, must not become one file; nor must two files of the source that
/// one file of the snapshot is like.
fn may_be_linked(
    copy: &Copy<'_>,
    [source, found]: [Node<'_>; 2],
    [facts, found_facts]: [&Stat; 2],
) -> Result<bool, Trouble> {
    Ok(copy.attributes.is_as_copied(source, found, facts, found_facts)
        && copy.take(identity(found_facts), identity(facts))?)
}

/// Whether a file of a snapshot has the size and time of the source, and the same content where that
/// is to be compared.
fn is_unchanged(
    lane: &mut Lane<'_>,
    opened: &Opened<'_>,
    found: &Found,
    compares: bool,
) -> Result<bool, Trouble> {
    let is_alike = is_alike(opened.entry, (&opened.facts, &found.facts), compares);
    let both = [(&opened.file, &opened.facts), (&found.file, &found.facts)];
    let [source, found] = both.map(|(file, facts)| (file.as_fd(), facts));
    Ok(is_alike && (!compares || is_same(lane, source, found)? && opened.is_still_the_same()?))
}

/// `compares`: size and time are no proof, and a time that is not kept need not be the same.
fn is_alike(entry: Entry<'_>, (source, found): (&Stat, &Stat), compares: bool) -> bool {
    source.st_size == found.st_size
        && identity(source) != identity(found)
        && (compares && !entry.copy.keeps_times() || entry.is_same_time(source, found))
}
