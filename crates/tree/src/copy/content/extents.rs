//! Extents of the source, or of another file that is known to hold the same bytes.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_io::transfer::{End, Method};
use rustix::fs::Stat;
use rustix::io::Errno;

use super::{Content, Copied, FileJob, refusal, whole_route};
use crate::copy::Refusal;
use crate::file_data::room_bytes;

impl Content<'_> {
    /// Gives the target of a job the extents of a file that holds the same bytes as its source; or says
    /// why it cannot have them.
    ///
    /// Errors: as [`Content::copy`]. With `--verify` the digest is that of the source.
    pub fn take_extents(
        &mut self,
        job: FileJob<'_>,
        (file, facts): (BorrowedFd<'_>, &Stat),
    ) -> Result<Result<Copied, Errno>, Refusal> {
        self.look()?;
        let length_bytes = facts.st_size as u64;
        let uncounted = AtomicU64::new(0);
        let route = whole_route(&FileJob { source: file, moved: &uncounted, ..job }, length_bytes);
        let moved = self.transfer.run(Method::Reflink, route, &mut self.stop).map_err(refusal)?;
        // What is known of the filesystems later is known by their pair.
        self.pair(&job)?;
        if let End::Cannot(errno) = moved.end {
            return Ok(Err(errno));
        }
        let bytes_moved = room_bytes(facts).min(length_bytes);
        job.moved.fetch_add(bytes_moved, Ordering::Relaxed);
        let seen = self.digest_of_source(&job, length_bytes)?;
        Ok(Ok(Copied::new((bytes_moved, Some(Method::Reflink)), length_bytes, seen)))
    }
}
