//! One process of the disk area: it does its part of each phase, and tells what it saw.
//!
//! Every block and every small file carries the number of its writer and its own number, in each
//! 4 KiB of it: storage finds nothing twice, and whoever reads it knows that it is the right one.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flatout_measure::Histogram;
use flatout_measure::histogram::Packed;
use flatout_sys::{AlignedBuffer, CancelToken, fill_random, monotonic_ns, page_cache, usage};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::super::team::{Word, Work};
use super::super::window::Lane;
use super::super::{Seat, Wire};
use super::leader::Terms;
use super::names::{STAMPED_BYTES, check, directory_name, shared_directory, stamp, why};
use super::phase::{Phase, Target};
use crate::disk::metadata::test_directory::{
    DIRECTORY, c_string, make_directory, remove_abandoned,
};

/// A process that waits for the agreed start sleeps until so long before it.
const SPIN_NS: u64 = 200_000;
pub(super) const OWNER_ONLY: Mode = Mode::from_raw_mode(0o600);

/// What a process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(in super::super) enum Command {
    /// Open the directory of this run, and make what is empty in it.
    Begin { directory: Vec<u8>, inode: u64, terms: Terms },
    /// Get ready for a phase: open, and drop what the page cache has.
    Prepare { phase: Phase, of: usize, most_dirty_bytes: u64 },
    /// Begin a phase at a time of your clock, and end it at another, or after so many items.
    Start { start_ns: u64, stop_ns: u64, items: u64 },
    /// Go on until so many items are done, or the time is over.
    WearOut { stop_ns: u64, items: u64 },
}

/// What a process answers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in super::super) struct Reply {
    /// Where the directory was opened; what the filesystem is called.
    pub(super) filesystem: String,
    /// Why files are not opened around the page cache, where they are not.
    pub(super) is_buffered: bool,
    /// Of what will be read, what the page cache still has.
    pub(super) cached_bytes: u64,
    /// Items that are done, since the start.
    pub(super) lane: Lane,
    pub(super) latencies: Option<Packed>,
    /// Names that find has seen.
    pub(super) found: u64,
    /// What storage was asked to fetch and to take.
    pub(super) read_bytes: u64,
    pub(super) write_bytes: u64,
}

/// The phase that is under way.
#[derive(Default)]
pub(super) struct Underway {
    pub(super) phase: Phase,
    pub(super) of: usize,
    file: Option<File>,
    pub(super) directory: Option<OwnedFd>,
    /// What find has seen: names of the directory of a process, then of the shared one.
    pub(super) seen: [Vec<CString>; 2],
    pub(super) shared: Option<OwnedFd>,
    agreed_ns: u64,
    lane: Lane,
    dirty_bytes: u64,
    most_dirty_bytes: u64,
    histogram: Histogram,
    before: usage::ProcessIo,
}

/// A process.
pub(in super::super) struct Worker {
    pub(super) seat: Seat,
    cancel: CancelToken,
    pub(super) directory: Option<OwnedFd>,
    parent: Option<PathBuf>,
    terms: Terms,
    is_buffered: bool,
    pub(super) buffer: AlignedBuffer,
    underway: Option<Underway>,
}

impl Worker {
    /// A process that has not begun.
    ///
    /// # Errors
    /// There is no memory.
    pub(in super::super) fn new(seat: Seat, cancel: CancelToken) -> Result<Self, String> {
        let buffer = AlignedBuffer::new(STAMPED_BYTES).map_err(|error| error.to_string())?;
        Ok(Self {
            seat,
            cancel,
            directory: None,
            parent: None,
            terms: Terms::default(),
            is_buffered: false,
            buffer,
            underway: None,
        })
    }

    /// What the longest command may take.
    pub(in super::super) fn patience_ns(&self) -> u64 {
        self.terms.patience_ns()
    }

    /// Removes the directory, should the first process be gone, which has it locked.
    pub(in super::super) fn abandon(&mut self) {
        self.underway = None;
        if let Some(parent) = &self.parent {
            remove_abandoned(parent);
        }
    }

    fn begin(&mut self, directory: &[u8], inode: u64) -> Result<Reply, String> {
        let path = Path::new(std::ffi::OsStr::from_bytes(directory));
        let fail = |errno: Errno| format!("cannot open {path:?}: {}", why(errno));
        let opened = rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(fail)?;
        if rustix::fs::fstat(&opened).map_err(fail)?.st_ino != inode {
            return Err(format!("{path:?} is another directory here than for the first process"));
        }
        let length = self.terms.block_bytes.max(super::phase::STRIDED_BYTES);
        self.buffer = AlignedBuffer::new(length.next_multiple_of(STAMPED_BYTES))
            .map_err(|error| error.to_string())?;
        fill_random(self.buffer.as_mut_slice(), inode ^ self.seat.rank as u64, 0);
        let filesystem = flatout_sys::filesystem::of(opened.as_fd());
        self.directory = Some(opened);
        self.parent = path.parent().map(Path::to_owned);
        let filesystem = filesystem.map(|filesystem| filesystem.name.to_string());
        Ok(Reply { filesystem: filesystem.unwrap_or_default(), ..Reply::default() })
    }

    /// Opens what a phase works on.
    fn prepare(&mut self, phase: Phase, of: usize, most_dirty_bytes: u64) -> Result<Reply, Errno> {
        self.underway = None;
        let own = self.directory.as_ref().ok_or(Errno::NOENT)?;
        let mut reply = Reply::default();
        let (mut file, mut directory) = (None, None);
        match phase.target() {
            Target::OwnDirectory | Target::SharedDirectory => {
                let name = directory_name(phase.target(), of);
                directory = Some(match phase {
                    Phase::OwnCreate => make_directory(own.as_fd(), &name)?,
                    Phase::SharedCreate => shared_directory(own, &name)?,
                    _ => rustix::fs::openat(own, &name, DIRECTORY, Mode::empty())?,
                });
            }
            target => {
                let name = match target {
                    Target::OwnFile => format!("file-own-{of}"),
                    Target::Strided => "file-strided".to_owned(),
                    _ => "file-contiguous".to_owned(),
                };
                let name = c_string(name);
                let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let flags = if phase.makes() { flags | OFlags::CREATE } else { flags };
                let open = |more| rustix::fs::openat(own, &name, flags | more, OWNER_ONLY);
                let is_aligned = target != Target::Strided;
                let direct = if is_aligned { OFlags::DIRECT } else { OFlags::empty() };
                let opened = match open(direct) {
                    Err(Errno::INVAL) if is_aligned => {
                        self.is_buffered = true;
                        open(OFlags::empty())?
                    }
                    opened => opened?,
                };
                if phase.reads_bytes() {
                    let left = page_cache::evict(opened.as_fd(), 0);
                    reply.cached_bytes = left.map_or(0, |left| left.cached_bytes);
                }
                reply.is_buffered = self.is_buffered;
                file = Some(opened.into());
            }
        }
        let before = usage::process_io().unwrap_or_default();
        let underway = Underway {
            phase,
            of,
            file,
            directory,
            most_dirty_bytes,
            before,
            ..Underway::default()
        };
        self.underway = Some(underway);
        Ok(reply)
    }

    /// Does items of the phase that is under way.
    fn run(&mut self, from_ns: Option<u64>, stop_ns: u64, items: u64) -> Result<Reply, String> {
        let Some(mut underway) = self.underway.take() else {
            return Err("no phase is under way".to_owned());
        };
        if let Some(from_ns) = from_ns {
            wait_until(from_ns);
            underway.agreed_ns = from_ns;
            underway.lane.start_ns = monotonic_ns() - from_ns;
        }
        let fail = |underway: &Underway, why: String| {
            let what = underway.phase.id().trim_start_matches("disk/").replace('-', " ");
            let verb = underway.phase.verb();
            format!("cannot {verb} item {} of {} ({what}): {why}", underway.lane.done, underway.of)
        };
        let mut items = items;
        if underway.phase == Phase::Find {
            self.find(&mut underway).map_err(|errno| fail(&underway, why(errno)))?;
            items = underway.found();
        }
        // What all waited for each other before, and listing, belong to no operation.
        let mut now_ns = monotonic_ns();
        let agreed_ns = underway.agreed_ns;
        // One is done however late it is: a phase in which nothing was done has no figure.
        let is_due = |now_ns, done| done < items && (now_ns < stop_ns || done == 0);
        while is_due(now_ns, underway.lane.done) && !self.cancel.is_cancelled() {
            self.item(&mut underway).map_err(|why| fail(&underway, why))?;
            let begun_ns = now_ns;
            now_ns = monotonic_ns();
            underway.histogram.record(now_ns - begun_ns);
            underway.lane.note(now_ns - agreed_ns);
        }
        underway.lane.keep(now_ns - agreed_ns);
        if self.cancel.is_cancelled() {
            return Err("it was interrupted".to_owned());
        }
        if underway.phase.makes()
            && let Some(file) = &underway.file
        {
            file.sync_all().map_err(|error| fail(&underway, why(error)))?;
        }
        underway.lane.end_ns = monotonic_ns() - agreed_ns;
        let (before, after) = (underway.before, usage::process_io().unwrap_or_default());
        let reply = Reply {
            lane: underway.lane.clone(),
            latencies: Some(underway.histogram.packed()),
            found: underway.found(),
            read_bytes: after.device_read_bytes.saturating_sub(before.device_read_bytes),
            write_bytes: after.device_write_bytes.saturating_sub(before.device_write_bytes),
            is_buffered: self.is_buffered,
            ..Reply::default()
        };
        self.underway = Some(underway);
        Ok(reply)
    }

    /// One operation.
    fn item(&mut self, underway: &mut Underway) -> Result<(), String> {
        let number = underway.lane.done;
        if let Some(file) = &underway.file {
            let target = underway.phase.target();
            let length = target.item_bytes(self.terms.block_bytes);
            let place = self.place(target, underway.of, number);
            if !underway.phase.makes() {
                let piece = &mut self.buffer.as_mut_slice()[..length];
                file.read_exact_at(piece, place).map_err(why)?;
                return check(piece, underway.of, number);
            }
            let piece = &mut self.buffer.as_mut_slice()[..length];
            stamp(piece, self.seat.rank, number);
            file.write_all_at(piece, place).map_err(why)?;
            underway.dirty_bytes += length as u64;
            if (self.is_buffered || target == Target::Strided)
                && underway.dirty_bytes >= underway.most_dirty_bytes
            {
                underway.dirty_bytes = 0;
                file.sync_data().map_err(why)?;
            }
            return Ok(());
        }
        self.small(underway, number)
    }

    /// Where an item of a process lies in a file.
    fn place(&self, target: Target, of: usize, number: u64) -> u64 {
        let length = target.item_bytes(self.terms.block_bytes) as u64;
        let (of, size) = (of as u64, self.seat.size as u64);
        length
            * match target {
                Target::Strided => number * size + of,
                Target::Contiguous => of * self.terms.most_items + number,
                _ => number,
            }
    }
}

impl Work for Worker {
    type Command = Command;
    type Reply = Reply;
    const WORD: fn(Command) -> Word = Word::Disk;

    fn run(&mut self, _: &mut dyn Wire, command: Command) -> Result<Reply, String> {
        match command {
            Command::Begin { directory, inode, terms } => {
                self.terms = terms;
                self.begin(&directory, inode)
            }
            Command::Prepare { phase, of, most_dirty_bytes } => {
                self.prepare(phase, of, most_dirty_bytes).map_err(|errno| {
                    let verb = phase.verb();
                    format!("cannot open what it is to {verb} of {of}: {}", why(errno))
                })
            }
            Command::Start { start_ns, stop_ns, items } => {
                Worker::run(self, Some(start_ns), stop_ns, items)
            }
            Command::WearOut { stop_ns, items } => Worker::run(self, None, stop_ns, items),
        }
    }
}

fn wait_until(time_ns: u64) {
    loop {
        match time_ns.saturating_sub(monotonic_ns()) {
            0 => return,
            left if left > SPIN_NS => {
                flatout_sys::thread::sleep(std::time::Duration::from_nanos(left - SPIN_NS));
            }
            _ => std::hint::spin_loop(),
        }
    }
}
