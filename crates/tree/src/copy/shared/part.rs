//! Parts of a large file that other processes copy.
//!
//! Who has the file gives the last half of what nobody has begun with, and goes on with the rest; the
//! taker opens both sides by their names, which must be the very files, and may give away half of that
//! again. What it cannot open it gives back undone. The file is complete when all parts are.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use super::member::PART;
use super::parcel::Sides;
use super::{Letter, Out, Parcel, Part, Piece, Shared};
use crate::copy::content::{Content, FileJob, Large};
use crate::copy::directory::Guest;
use crate::copy::dispatch::ready::Ready;
use crate::copy::file::{Opened, Place, reading_flags};
use crate::copy::{Copy, Directory, Durability, Pair, Work, visit};
use crate::file_data::open_unseen;
use crate::lock::lock;
use crate::wire::message;

/// What other processes must know of a large file to help with it.
pub(in crate::copy) struct Abroad {
    directory: Arc<Directory>,
    sides: Sides,
    /// It is a part of a file that another process has.
    guest: Option<Guest>,
}

impl Shared {
    /// What came of ranges that another process has.
    pub(super) fn part_is_done(&self, number: u64, done: crate::copy::content::Done) {
        if let Some(Out::Part(_, _, came)) = lock(&self.given).out.get_mut(&number) {
            *came = Some(done);
        }
    }
}

impl Copy<'_> {
    /// Lets other processes help with a file that is about to be copied.
    pub(in crate::copy) fn let_others_help(
        &self,
        opened: &Opened<'_>,
        place: &Place,
        large: &Large,
    ) {
        let entry = opened.entry;
        let facts = rustix::fs::fstat(&place.file);
        if let (Some(_), Ok(target)) = (&self.shared, facts) {
            let _is_set_once = large.place_abroad.set(Abroad {
                directory: Arc::clone(entry.directory),
                sides: Sides {
                    source: entry.source.to_owned(),
                    target: place.name_now(entry).to_owned(),
                    inodes: (opened.facts.st_ino, target.st_ino),
                    length_bytes: opened.facts.st_size as u64,
                },
                guest: None,
            });
        }
    }

    /// Half of what is left of a large file, for a process that has nothing to do.
    pub(super) fn part_of_a_file(&self, shared: &Shared) -> Option<Parcel> {
        let (large, ranges) = self.dispatch.spare_part()?;
        let known = large.abroad().zip(large.method());
        let Some((abroad, method, Ok(way))) =
            known.map(|(abroad, method)| (abroad, method, abroad.directory.way()))
        else {
            large.came_back(ranges, None);
            return None;
        };
        let part = Part { sides: abroad.sides.clone(), ranges, method };
        let out = Out::Part(Arc::clone(&large), ranges, None);
        Some(shared.send_out(out, way, vec![Piece::Part(part)]))
    }

    /// For a thread that waits for another process: does a part of a large file if there is one, and
    /// else waits a moment. False: there is nothing to wait for any more.
    pub(in crate::copy) fn meanwhile(&self, content: &mut Content<'_>) -> bool {
        match self.dispatch.meanwhile(Ready::part) {
            Some(Work::Parcel(giver, parcel)) => self.unpack(giver, *parcel),
            Some(work) => self.part(content, work),
            None => {}
        }
        !self.stop.is_due()
    }

    /// Works on a large file, or on a part of one that another process has.
    pub(in crate::copy) fn part(&self, content: &mut Content<'_>, work: Work) {
        let large = match work {
            Work::Large(large) | Work::Joined(large) => large,
            Work::Part(directory, part) => match self.begin_part(content, &directory, *part) {
                Some(large) => large,
                None => return visit::piece_done(self, &directory),
            },
            _ => return,
        };
        let abroad = large.place_abroad.get();
        let Some((abroad, guest)) = abroad.and_then(|abroad| Some((abroad, abroad.guest?))) else {
            return large.help(content, None);
        };
        large.help(content, Some(&self.tally.bytes));
        if let (Some(shared), Some(done)) = (&self.shared, large.completed()) {
            let part_done = message(&[&PART, &guest.number, &done]);
            lock(&shared.outbox).push(Letter::Message(guest.giver, part_done));
            visit::piece_done(self, &abroad.directory);
        }
    }

    /// Opens both sides of a file that another process has; `None`: they are not found here.
    fn begin_part(
        &self,
        content: &mut Content<'_>,
        directory: &Arc<Directory>,
        part: Part,
    ) -> Option<Arc<Large>> {
        let pair = self.held.pair(directory);
        let opened = pair.ok().and_then(|pair| {
            let opened = self.open_part(&pair, &part.sides).ok()?;
            Some((pair, opened))
        });
        directory.end_use();
        let (pair, (source, facts, target)) = opened?;
        let Part { sides, ranges, method } = part;
        let (directory, guest) = (Arc::clone(directory), directory.guest);
        let abroad = Abroad { directory, sides, guest };
        let job = FileJob {
            source: source.as_fd(),
            target: target.as_fd(),
            facts: &facts,
            target_device: pair.found.target.0,
            is_written_out: self.options.durability == Durability::Durable,
            share: &|_| {},
            meanwhile: None,
            waits: &|threads| self.want_threads(threads),
            moved: &self.tally.bytes,
        };
        let large = content.part(&job, ranges, method, abroad).ok()?;
        self.dispatch.offer(vec![Work::Large(Arc::clone(&large))]);
        Some(large)
    }

    fn open_part(&self, pair: &Pair, sides: &Sides) -> Result<(OwnedFd, Stat, OwnedFd), Errno> {
        let open = |at, name: &CString, flags: OFlags| {
            let file = open_unseen(at, name, flags)?;
            let facts = rustix::fs::fstat(&file)?;
            Ok((file, facts))
        };
        let (source, mut facts) = open(pair.source(), &sides.source, reading_flags(self, pair))?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let (target, found) = open(pair.target(), &sides.target, flags)?;
        if (facts.st_ino, found.st_ino) != sides.inodes {
            return Err(Errno::STALE);
        }
        // Whether it was changed is found out by who has it.
        facts.st_size = sides.length_bytes as _;
        Ok((source, facts, target))
    }
}
