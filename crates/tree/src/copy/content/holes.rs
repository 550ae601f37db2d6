//! Files with holes, and files that are to have holes wherever there are zeros.

use std::os::fd::BorrowedFd;

use flatout_io::transfer::{End, Method, Moved, Route};
use rustix::fs::{SeekFrom, seek};

use super::methods::Pair;
use super::{Content, FileJob, READ, Tally, WRITE, refusal, set_length, unless_stopped};
use crate::copy::{Refusal, When};
use crate::file_data;

impl Content<'_> {
    /// Whether a file has holes to keep, or zeros to make some of. Compressed ones, too, have less room than length.
    pub(super) fn keeps_holes(&self, job: &FileJob<'_>, pair: &Pair) -> Result<bool, Refusal> {
        if self.options.sparse != When::Auto || !file_data::is_sparse(job.facts) {
            return Ok(self.options.sparse == When::Always);
        }
        let (whole, is_told) =
            ((0, job.facts.st_size as u64), file_data::tells_holes(&pair.facts.source));
        Ok(!is_told || segment(job.source, true, whole)? != Some(whole))
    }

    /// Copies the data of a file to its places, and leaves holes between. Returns where it ended.
    pub(super) fn with_holes(
        &mut self,
        job: &FileJob<'_>,
        pair: &Pair,
        tally: &mut Tally,
    ) -> Result<u64, Refusal> {
        let length = job.facts.st_size as u64;
        let method = self.choice(job, pair).method;
        let is_told = file_data::tells_holes(&pair.facts.source);
        let has_holes = is_told && file_data::is_sparse(job.facts);
        let mut place = 0;
        let mut ended = length;
        while place < length {
            self.look()?;
            let Some((data, hole)) = segment(job.source, has_holes, (place, length))? else {
                // Nothing but a hole follows, or the file is shorter now.
                let end = seek(job.source, SeekFrom::End(0)).map_err(Refusal::of(READ))?;
                ended = end.min(length);
                break;
            };
            let route = Route {
                source: job.source,
                target: job.target,
                offset_bytes: data,
                length_bytes: hole - data,
                moved: job.moved,
            };
            let moved = match self.options.sparse == When::Always || !is_told {
                true => self.without_zeros(route, tally)?,
                false => self.range(route, method, pair, tally)?,
            };
            if moved.end == End::SourceEnded {
                ended = data + moved.bytes;
                break;
            }
            place = hole;
        }
        // A length that is set reaches storage before the bytes do: only where no byte gives it.
        let found = rustix::fs::fstat(job.target).map_err(Refusal::of(WRITE))?;
        if found.st_size as u64 != ended {
            set_length(job.target, ended)?;
        }
        Ok(ended)
    }

    fn without_zeros(&mut self, route: Route<'_>, tally: &mut Tally) -> Result<Moved, Refusal> {
        self.in_pieces(route, |content, piece| {
            let result = content.transfer.run_without_zeros(piece, &mut content.stop);
            let (moved, written) = result.map_err(refusal)?;
            tally.add(Method::Sync, written);
            unless_stopped(Ok(moved))
        })
    }
}

/// The next data from `place` on, as its begin and end; `None` where there is none before `length`.
/// A file without holes, or whose filesystem does not tell, is one segment.
pub(super) fn segment(
    source: BorrowedFd<'_>,
    has_holes: bool,
    (place, length): (u64, u64),
) -> Result<Option<(u64, u64)>, Refusal> {
    if !has_holes {
        return Ok(Some((place, length)));
    }
    file_data::next_extent(source, place, length).map_err(Refusal::of(READ))
}
