//! Bytes that come or go in order only: FIFOs, devices, terminals; and what lies behind the end that a
//! server tells.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use flatout_io::transfer::Method;
use flatout_sys::filesystem::Nature;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::fingerprint::Seen;
use super::methods::Pair;
use super::{Content, Copied, FileJob, READ, SHARE, Tally, WRITE, whole_route};
use crate::copy::{Durability, Refusal, When};
use crate::file_data::kind_of;

/// How often somebody who waits asks whether the copy was stopped.
const ASK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Bytes that are read at a time at most.
const BUFFER_BYTES: u64 = 128 << 10;

impl Content<'_> {
    /// What a server has behind the end that it told, as cp reads it: nothing where the file has grown.
    pub(super) fn behind_the_end(
        &mut self,
        job: &FileJob<'_>,
        pair: &Pair,
        (length, seen): (u64, Option<Seen>),
        tally: &mut Tally,
    ) -> Result<(u64, Option<Seen>), Refusal> {
        let told = job.facts.st_size as u64;
        let is_server = matches!(pair.facts.source.nature, Nature::Network | Nature::Userspace);
        let goes_on = || matches!(rustix::io::pread(job.source, &mut [0_u8], told), Ok(1));
        if !is_server || told == 0 || length != told || !goes_on() {
            return Ok((length, seen));
        }
        let now = rustix::fs::fstat(job.source).map_err(Refusal::of(READ))?;
        if now.st_size as u64 != told {
            return Ok((length, seen));
        }
        // What is to be digested is read from its begin: the kernel tells no data behind the end.
        let mut fingerprint = self.fingerprint();
        let from = if fingerprint.is_some() { 0 } else { told };
        let route = whole_route(job, u64::MAX).behind(from);
        let reached = from + self.seen(route, &mut fingerprint)?;
        tally.add(Method::Sync, reached.saturating_sub(told));
        Ok((reached, fingerprint.map(|fingerprint| fingerprint.finish(reached))))
    }

    /// Reads until there is nothing more, and writes it. Waits for whoever is at the other ends.
    ///
    /// Errors: as [`Content::copy`].
    pub fn stream(&mut self, job: FileJob<'_>) -> Result<Copied, Refusal> {
        if self.options.reflink == When::Always {
            // The kernel says why there are no extents to be shared.
            rustix::fs::ioctl_ficlone(job.target, job.source).map_err(Refusal::of(SHARE))?;
        }
        let (cancel, mut bytes) = (self.options.cancel, 0);
        let is_due = || cancel.is_cancelled();
        let piece_bytes = self.methods.limits.piece_bytes().unwrap_or(BUFFER_BYTES);
        let mut buffer = vec![0; piece_bytes.min(BUFFER_BYTES) as usize];
        loop {
            wait(job.source, PollFlags::IN, READ, is_due)?;
            let read = match rustix::io::read(job.source, &mut buffer[..]) {
                Ok(0) => break,
                Ok(read) => read,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(errno) => return Err(Refusal::of(READ)(errno)),
            };
            self.wait_for(read as u64)?;
            let mut rest = &buffer[..read];
            while !rest.is_empty() {
                wait(job.target, PollFlags::OUT, WRITE, is_due)?;
                match rustix::io::write(job.target, rest) {
                    // No reason is given, and there is none to try for ever.
                    Ok(0) => return Err(Refusal::of(WRITE)(Errno::IO)),
                    Ok(written) => rest = &rest[written..],
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(errno) => return Err(Refusal::of(WRITE)(errno)),
                }
            }
            bytes += read as u64;
            job.moved.fetch_add(read as u64, Ordering::Relaxed);
        }
        // No filesystem of the target has the bytes of a device; what else cannot be synced says so. Closing a
        // block device writes them, too (block/bdev.c), and tells of no error.
        let is_device =
            || rustix::fs::fstat(job.target).is_ok_and(|to| kind_of(to).is_block_device());
        if (self.options.durability == Durability::Durable || is_device())
            && let Err(errno) = rustix::fs::fdatasync(job.target)
            && errno != Errno::INVAL
        {
            return Err(Refusal::of(WRITE)(errno));
        }
        let method = (bytes > 0).then_some(Method::Sync);
        Ok(Copied::new((bytes, method), bytes, Seen::default()))
    }
}

/// Waits until a descriptor is ready, or somebody wants to stop.
fn wait(
    file: BorrowedFd<'_>,
    flags: PollFlags,
    operation: &'static str,
    is_due: impl Fn() -> bool,
) -> Result<(), Refusal> {
    loop {
        if is_due() {
            return Err(Refusal::interrupted(operation));
        }
        match poll(&mut [PollFd::from_borrowed_fd(file, flags)], Some(&ASK_AGAIN)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(Refusal::of(operation)(errno)),
        }
    }
}
