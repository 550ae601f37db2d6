//! The bytes and holes of one open file into another open one.
//!
//! Extents are shared first, where that can be had; else a table ([`choice`]) names the
//! method. What a method cannot do here is remembered for the pair of filesystems ([`Methods`]),
//! and read and write take its place. Names, attributes and whether the source changed meanwhile
//! are the business of the caller.

mod around;
pub mod choice;
mod difference;
mod extents;
mod fingerprint;
mod holes;
mod large;
mod methods;
mod range;
mod room;
mod short;
mod stream;
mod tally;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use flatout_io::Stop;
use flatout_io::digest::Digest;
use flatout_io::transfer::{End, Method, Moved, Route, Transfer, TransferError};
use flatout_sys::filesystem::{Filesystem, Nature};
use flatout_sys::page_cache::begin_writeback;
use rustix::fs::{Advice, Stat, fadvise};

use choice::Choice;
use fingerprint::{Fingerprint, PIECE_BYTES, Seen};
#[cfg(test)]
pub(super) use large::halves;
pub(super) use large::{Done, Ranges};
use methods::Pair;
use range::Task;
use room::{preallocate, set_length};
pub(super) use short::{MOST_TOGETHER, SHORT_BYTES};
pub(super) use tally::Tally;

pub use large::Large;

use super::{CopyOptions, Refusal, When};
pub use methods::Methods;

/// The operation of a [`Refusal`] that the source is to blame for.
pub const READ: &str = "read";
/// The operation of a [`Refusal`] that the target is to blame for.
pub const WRITE: &str = "write";
/// The operation of a [`Refusal`] where extents had to be shared and cannot.
pub const SHARE: &str = "share the extents of";
/// The operation of a [`Refusal`] while the target is read from its device.
pub const READ_BACK: &str = "read back";

/// One file to be copied.
#[derive(Clone, Copy)]
pub struct FileJob<'a> {
    /// Open for reading, without `O_DIRECT`, which it may have meanwhile. Its position is moved.
    pub source: BorrowedFd<'a>,
    /// Open for writing, and for reading where it is to be verified; empty.
    pub target: BorrowedFd<'a>,
    /// What fstat(2) said of the source.
    pub facts: &'a Stat,
    /// `st_dev` of the target, or of the directory that it is made in.
    pub target_device: u64,
    /// It takes the place of what was there, or is to be on storage when the copy ends: writing begins at once.
    pub is_written_out: bool,
    /// Lets threads that have nothing to do help with a large file.
    pub share: &'a dyn Fn(Arc<Large>),
    /// Other processes may help: what is to be done while their part is waited for, a moment long; it
    /// returns false where nobody is to be waited for any more.
    pub meanwhile: Option<&'a dyn Fn(&mut Content<'_>) -> bool>,
    /// Is told that storage is waited for: so many threads are of use, whatever CPUs there are.
    pub waits: &'a dyn Fn(u32),
    /// Is raised by the bytes that the kernel has accepted, while it goes on.
    pub moved: &'a AtomicU64,
}

/// A file whose bytes and holes are in the target; by default there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Bytes moved, without holes.
    pub bytes_moved: u64,
    /// What moved the most of them; `None` where there were none.
    pub method: Option<Method>,
    /// With `--verify`: what [`Content::read_back`] must give. Not the digest of the plain bytes.
    pub digest: Option<Digest>,
    /// For an inventory: the digest of the plain bytes.
    pub plain: Option<Digest>,
    /// Where the source ended: less than its size was when it was cut short meanwhile.
    pub length_bytes: u64,
    /// They are taken for those of the source, with which nobody has compared them.
    pub is_assumed: bool,
}

impl Copied {
    fn new((bytes_moved, method): (u64, Option<Method>), length_bytes: u64, seen: Seen) -> Self {
        let (digest, plain) = (seen.pieces, seen.plain);
        Self { bytes_moved, method, digest, plain, length_bytes, ..Self::default() }
    }
}

/// Copies files, one after the other. One per thread; buffers are made when they are needed.
pub struct Content<'a> {
    options: &'a CopyOptions,
    methods: &'a Methods,
    transfer: Transfer,
    stop: Stop,
    pair: Option<Arc<Pair>>,
    /// What source and target hold at one place; memory is taken with the first file that is amended.
    blocks: [Vec<u8>; 2],
    _counted: Arc<()>,
}

impl<'a> Content<'a> {
    /// Nothing is made yet.
    pub fn new(options: &'a CopyOptions, methods: &'a Methods) -> Self {
        // Blocks were measured with the engine for which they are.
        let large = options.tuned.large.filter(|_| options.method.is_none());
        let or = |asked, measured| if asked > 0 { asked } else { measured };
        let block_bytes = or(options.block_bytes, large.map_or(0, |large| large.block_bytes));
        let depth = or(options.depth.into(), large.map_or(0, |large| large.depth.into())) as u32;
        let block_bytes = match Fingerprint::of(options.assurance, options.inventory) {
            Some(_) => block_bytes.next_multiple_of(PIECE_BYTES as u64),
            None => block_bytes,
        };
        let mut transfer = Transfer::new(block_bytes, depth);
        if options.block_bytes == 0 {
            transfer.adapt();
        }
        let (counted, is_one_of_many) = methods.count_thread();
        if is_one_of_many {
            transfer.be_one_of_many();
        }
        let (stop, blocks) = (Stop::new(options.cancel, None), Default::default());
        Self { options, methods, transfer, stop, pair: None, blocks, _counted: counted }
    }

    /// Copies all bytes and holes of one open file into an empty open one. `takes_time` is called where
    /// that is more than to share extents.
    ///
    /// Errors: [`READ`], [`WRITE`] or [`SHARE`] with the kernel's answer; an interruption.
    /// Cost: a read and a write for a small file, and one call more where extents can be shared.
    pub fn copy(&mut self, job: FileJob<'_>, takes_time: impl FnOnce()) -> Result<Copied, Refusal> {
        self.look()?;
        let pair = self.pair(&job)?;
        let length = job.facts.st_size as u64;
        if self.wants_reflink(&pair, length) {
            match self.take_extents(job, (job.source, job.facts))? {
                Ok(copied) => return Ok(copied),
                Err(errno) => {
                    pair.refuse(Method::Reflink, errno);
                    if self.options.reflink == When::Always {
                        return Err(Refusal::of(SHARE)(errno));
                    }
                }
            }
        }
        takes_time();
        let mut tally = Tally::default();
        let keeps_holes = self.keeps_holes(&job, &pair)?;
        let (length_bytes, seen) = match length {
            0 => self.sizeless(&job, &mut tally)?,
            _ if keeps_holes => (self.with_holes(&job, &pair, &mut tally)?, None),
            _ => self.whole(&job, &pair, &mut tally)?,
        };
        let (length_bytes, seen) =
            self.behind_the_end(&job, &pair, (length_bytes, seen), &mut tally)?;
        // A power cut must leave this, or what it takes the place of; and no zeros of the right length and time:
        // where there are holes, the length may be there first.
        let is_ext4s = pair.facts.target.name == "ext4" && length < choice::EXT4_ROOM_FROM_BYTES;
        let has_holes = keeps_holes && tally.bytes() < length_bytes;
        if has_holes || job.is_written_out && !is_ext4s {
            begin_writing(job.target, &pair);
        }
        let seen = seen.map_or_else(|| self.digest_of_source(&job, length_bytes), Ok)?;
        Ok(Copied::new((tally.bytes(), tally.most()), length_bytes, seen))
    }

    /// What the target holds, read from its device.
    ///
    /// Data is written back and dropped from the page cache first, and the cache is asked whether
    /// it let go; where it did not, the file is read around it. Files that live in memory are read
    /// from there. Holes count as zeros and are not read.
    /// Errors: [`READ_BACK`] with the kernel's answer; an interruption.
    pub fn read_back(
        &mut self,
        target: BorrowedFd<'_>,
        length_bytes: u64,
    ) -> Result<Option<Digest>, Refusal> {
        let buffer = fingerprint::buffer(&mut self.transfer, length_bytes)?;
        fingerprint::read_back(target, length_bytes, buffer, &mut self.stop)
    }

    /// Whether both sides of the last file lie on devices or in memory of this machine, so that the
    /// kernel accounts what is read.
    pub fn lies_on_devices(&self) -> bool {
        let is_far = |side: &Filesystem| matches!(side.nature, Nature::Network | Nature::Userspace);
        let sides = self.pair.as_ref().map(|pair| [&pair.facts.source, &pair.facts.target]);
        sides.is_some_and(|sides| !sides.into_iter().any(is_far))
    }

    /// The filesystem of the last source.
    pub fn source(&self) -> Option<&Filesystem> {
        self.pair.as_ref().map(|pair| &pair.facts.source)
    }

    /// Ends with an error when the user wants to stop.
    fn look(&self) -> Result<(), Refusal> {
        if self.stop.is_cancelled() { Err(Refusal::interrupted(READ)) } else { Ok(()) }
    }

    /// What is known of the two filesystems. Files of one directory mostly lie on one.
    fn pair(&mut self, job: &FileJob<'_>) -> Result<Arc<Pair>, Refusal> {
        let devices = (job.facts.st_dev, job.target_device);
        if let Some(pair) = self.pair.as_ref().filter(|pair| pair.devices == devices) {
            return Ok(Arc::clone(pair));
        }
        let pair = self.methods.pair(devices, job.source, job.target)?;
        self.pair = Some(Arc::clone(&pair));
        Ok(pair)
    }

    fn wants_reflink(&self, pair: &Pair, length: u64) -> bool {
        match self.options.reflink {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                length > 0
                    && matches!(self.options.method, None | Some(Method::Reflink))
                    && self.options.sparse == When::Auto
                    && pair.could_share()
            }
        }
    }

    /// A file that says that it is empty. Those of /proc say so whatever they hold; those of a
    /// block device's filesystem are.
    fn sizeless(
        &mut self,
        job: &FileJob<'_>,
        tally: &mut Tally,
    ) -> Result<(u64, Option<Seen>), Refusal> {
        let mut fingerprint = self.fingerprint();
        let mut length = 0;
        if rustix::fs::major(job.facts.st_dev) == 0 {
            length = self.seen(whole_route(job, u64::MAX), &mut fingerprint)?;
            tally.add(Method::Sync, length);
        }
        Ok((length, fingerprint.map(|fingerprint| fingerprint.finish(length))))
    }

    /// A file without holes, or whose holes are to be filled. Returns where it ended.
    fn whole(
        &mut self,
        job: &FileJob<'_>,
        pair: &Arc<Pair>,
        tally: &mut Tally,
    ) -> Result<(u64, Option<Seen>), Refusal> {
        let length = job.facts.st_size as u64;
        let choice = self.choice(job, pair);
        if choice.preallocates {
            preallocate(job.target, length)?;
        }
        let route = whole_route(job, length);
        // Pieces of a limit are none of a fingerprint: then the source is read once more.
        let is_seen = choice.method == Method::Sync && !self.is_limited();
        let mut fingerprint = self.fingerprint().filter(|_| is_seen);
        let reached = if fingerprint.is_some() {
            let reached = self.seen(route, &mut fingerprint)?;
            tally.add(Method::Sync, reached);
            reached
        } else {
            let method = self.read_around(job, pair, choice.method);
            let reached = match choice.shares {
                true => large::copy(self, job, pair, Task::Move(method), tally),
                false => self.range(route, method, pair, tally).map(|moved| moved.bytes),
            };
            // Whatever came of it: what failed may be tried in another way.
            around::end(job.source, length);
            reached?
        };
        if reached < length {
            // Room, or blocks from behind the place where the source was found to end.
            set_length(job.target, reached)?;
        }
        Ok((reached, fingerprint.map(|fingerprint| fingerprint.finish(reached))))
    }

    /// How this file is copied.
    fn choice(&self, job: &FileJob<'_>, pair: &Pair) -> Choice {
        let length = job.facts.st_size as u64;
        let mut best = choice::choice(length, &pair.facts);
        if !choice::is_servers(&pair.facts) {
            // Blocks are asked for to be read and written, and a rate is kept best so.
            let reads = self.options.block_bytes > 0 || self.is_limited();
            let usual = if reads { Method::Sync } else { best.method };
            best.method = self.options.tuned.method(length).unwrap_or(usual);
        }
        let wanted = self.options.method.filter(|&method| method != Method::Reflink);
        let mut method = wanted.unwrap_or(best.method);
        if wanted.is_none() && self.fingerprint().is_some() {
            method = Method::Sync;
        }
        // The kernel may share extents where it is asked to copy, and holes with them; ext4 has none to share.
        let keeps_apart = self.options.reflink == When::Never && pair.facts.target.name != "ext4";
        let fills = self.options.sparse == When::Never || keeps_apart;
        if (fills && method == Method::CopyFileRange) || !pair.may(method) {
            method = Method::Sync;
        }
        // Other processes are of use wherever the file lies: on another host, too.
        let is_joint = job.meanwhile.is_some() && length >= choice::SHARE_FROM_BYTES;
        let shares = (best.shares && self.has_threads() || is_joint)
            && self.fingerprint().is_none()
            && !matches!(method, Method::Reflink | Method::Uring);
        Choice { method, shares, ..best }
    }

    /// Whether several threads may copy one file.
    fn has_threads(&self) -> bool {
        self.options.threads != 1 && (self.options.threads > 1 || self.options.tuned.shares())
    }

    /// Moves a range by read and write, with its fingerprint where one is wanted.
    fn seen(
        &mut self,
        route: Route<'_>,
        fingerprint: &mut Option<Fingerprint>,
    ) -> Result<u64, Refusal> {
        let mut seen = |offset: u64, bytes: &[u8]| {
            fingerprint.iter_mut().for_each(|fingerprint| fingerprint.take(offset, bytes));
        };
        let moved = self.transfer.run_seen(route, &mut self.stop, &mut seen);
        Ok(unless_stopped(moved)?.bytes)
    }

    fn is_limited(&self) -> bool {
        self.methods.limits.piece_bytes().is_some()
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        Fingerprint::of(self.options.assurance, self.options.inventory)
    }
}

/// Has the kernel begin to write a file. sync_file_range(2) does not reach what an overlay hands on (Linux 6.18).
fn begin_writing(target: BorrowedFd<'_>, pair: &Pair) {
    let _told_by_fsync = match pair.facts.target.name {
        "overlay" => fadvise(target, 0, None, Advice::DontNeed).map_err(Into::into),
        _ => begin_writeback(target, 0, 0),
    };
}

fn whole_route<'a>(job: &FileJob<'a>, length_bytes: u64) -> Route<'a> {
    let FileJob { source, target, moved, .. } = *job;
    Route { source, target, offset_bytes: 0, length_bytes, moved }
}

/// What was moved.
///
/// Errors: which side failed, as an operation; or the user wants to stop.
fn unless_stopped(moved: Result<Moved, TransferError>) -> Result<Moved, Refusal> {
    match moved.map_err(refusal)? {
        Moved { end: End::Stopped, .. } => Err(Refusal::interrupted(READ)),
        moved => Ok(moved),
    }
}

/// Which side failed, as an operation.
fn refusal(error: TransferError) -> Refusal {
    match error {
        TransferError::Source(errno) => Refusal::of(READ)(errno),
        TransferError::Target(errno) => Refusal::of(WRITE)(errno),
    }
}

#[cfg(test)]
mod tests;
