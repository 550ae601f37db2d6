//! A target that has most of the bytes already (`--in-place --delta`): only blocks that differ are
//! written, so that the others stay where they are, and shared with whoever shares them.

use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use flatout_io::transfer::{End, Method, Moved, Route, is_zero, read_full, write_all};
use flatout_io::unless_interrupted;
use rustix::fs::{Advice, FallocateFlags, SeekFrom, fadvise, seek};
use rustix::io::Errno;

use super::choice::{PairFacts, SHARE_FROM_BYTES};
use super::holes::segment;
use super::large;
use super::range::Task;
use super::{Content, Copied, FileJob, READ, Tally, WRITE, begin_writing, set_length, whole_route};
use crate::copy::Refusal;
use crate::file_data;

/// What filesystems share and move: blocks of this length, aligned in the file.
const BLOCK_BYTES: u64 = 4096;
/// How often what may be the source is read again that does not look like it.
const MOST_LOOKS: u32 = 1000;
/// Bytes of each file that are compared at a time.
const CHUNK_BYTES: u64 = 128 << 10;

/// How a target gets what the source holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::copy) struct Amending {
    /// Holes of the source are to be holes.
    has_holes: bool,
    /// The target has no data where it says so.
    is_told: bool,
    /// It may be the source itself.
    own: bool,
}

impl Content<'_> {
    /// Makes an open file what the source of the job is, and writes nothing that it holds already.
    /// Holes of the source become holes; what it has written as zeros may stay a hole. One that is the source's
    /// `own`, or may be, is as long already: nothing of it is cut off, and no hole is made.
    ///
    /// Errors: as [`Content::copy`]; the target has a part of both files then.
    /// Cost: both files are read, large ones by all threads that have time.
    pub fn amend(&mut self, job: FileJob<'_>, own: bool) -> Result<Copied, Refusal> {
        self.look()?;
        let length = job.facts.st_size as u64;
        if length == 0 {
            // What has come since stays; files of the kernel have more than they say.
            if !own {
                set_length(job.target, 0)?;
            }
            return self.copy(job, || ());
        }
        let pair = self.pair(&job)?;
        let PairFacts { source, target, .. } = &pair.facts;
        let has_holes = !own && file_data::is_sparse(job.facts) && file_data::tells_holes(source);
        let amending = Amending { has_holes, is_told: file_data::tells_holes(target), own };
        let (task, mut tally) = (Task::Amend(amending), Tally::default());
        let reached = match self.has_threads() && length >= SHARE_FROM_BYTES {
            true => large::copy(self, &job, &pair, task, &mut tally)?,
            false => self.task(task, whole_route(&job, length), &pair, &mut tally)?.bytes,
        };
        // What lies behind the end, and room there, goes last: until then nothing is lost that might be wanted.
        let (mut reached, mut seen) = (reached, None);
        if !own {
            (reached, seen) = self.behind_the_end(&job, &pair, (reached, None), &mut tally)?;
            set_length(job.target, reached)?;
        }
        // It is as long as before: with the time of the source it would look like it after a power cut.
        begin_writing(job.target, &pair);
        let seen = seen.map_or_else(|| self.digest_of_source(&job, reached), Ok)?;
        Ok(Copied::new((tally.bytes(), tally.most()), reached, seen))
    }

    /// The same of a range, which begins and ends where blocks do, or with the file.
    pub(super) fn amend_range(
        &mut self,
        route: Route<'_>,
        amending @ Amending { has_holes, own, .. }: Amending,
        tally: &mut Tally,
    ) -> Result<Moved, Refusal> {
        let (begin, end) = (route.offset_bytes, route.offset_bytes + route.length_bytes);
        let (mut place, mut written, mut moved_end) = (begin, 0, End::Whole);
        while place < end && moved_end == End::Whole {
            let Some((data, hole)) = segment(route.source, has_holes, (place, end))? else {
                // Nothing but a hole follows, or the file is shorter now.
                let length = seek(route.source, SeekFrom::End(0)).map_err(Refusal::of(READ))?;
                let rest = (place, length.min(end).max(place));
                written += self.clear(&route, amending, rest)?;
                if rest.1 < end {
                    moved_end = End::SourceEnded;
                }
                place = rest.1;
                break;
            };
            written += self.clear(&route, amending, (place, data))?;
            place = data;
            while place < hole && moved_end == End::Whole {
                // Chunks end where blocks do, wherever the data begins.
                let wanted = (CHUNK_BYTES - place % CHUNK_BYTES).min(hole - place);
                let (got, more) = self.amend_chunk(&route, (place, wanted as usize), own)?;
                (place, written) = (place + got, written + more);
                if got < wanted {
                    moved_end = End::SourceEnded;
                }
            }
        }
        tally.add(Method::Sync, written);
        Ok(Moved { bytes: place - begin, end: moved_end })
    }

    /// Compares what begins at a place, and writes what differs. Returns how far the source went, and
    /// how much was written.
    fn amend_chunk(
        &mut self,
        route: &Route<'_>,
        (place, wanted): (u64, usize),
        own: bool,
    ) -> Result<(u64, u64), Refusal> {
        self.look()?;
        // Who gives way to others does so here, too.
        self.wait_for(0)?;
        let [mut source, mut target] = std::mem::take(&mut self.blocks);
        source.resize(CHUNK_BYTES as usize, 0);
        target.resize(CHUNK_BYTES as usize, 0);
        let read =
            |source: &mut [u8]| read_full(route.source, source, place).map_err(Refusal::of(READ));
        let mut got = read(&mut source[..wanted])?;
        // What cannot be read of the target is written anew.
        let look = |target: &mut [u8]| read_full(route.target, target, place).unwrap_or(0);
        let mut there = look(&mut target[..got]);
        // Somebody may have written between the two: one file is like itself as soon as nobody does.
        let mut looks = 0;
        while own && source[..got] != target[..there] {
            self.look()?;
            // Of what servers show the kernel may remember what it was.
            for file in [route.source, route.target] {
                let length = NonZeroU64::new(wanted as u64);
                let _as_it_likes = fadvise(file, place, length, Advice::DontNeed);
            }
            there = look(&mut target[..got]);
            let mut again = vec![0; wanted];
            let got_again = read(&mut again)?;
            if source[..got] == again[..got_again] {
                break;
            }
            looks += 1;
            if looks > MOST_LOOKS {
                let why = "it may be the source, which is never twice the same";
                return Err(Refusal::because(WRITE, why));
            }
            source[..got_again].copy_from_slice(&again[..got_again]);
            got = got_again;
            there = look(&mut target[..got]);
        }
        let mut written = 0;
        let mut begin = 0;
        while let Some((from, to)) = next_difference(&source[..got], &target[..there], begin) {
            written += self.put(route, &source[from..to], place + from as u64)?;
            begin = to;
        }
        self.blocks = [source, target];
        Ok((got as u64, written))
    }

    /// Makes a hole of a range of the target, as far as it has data there. Where there are no holes,
    /// zeros are written instead. Returns how much was written.
    fn clear(
        &mut self,
        route: &Route<'_>,
        amending: Amending,
        (mut place, end): (u64, u64),
    ) -> Result<u64, Refusal> {
        let mut written = 0;
        while place < end {
            let extent = match amending.is_told {
                true => file_data::next_extent(route.target, place, end),
                false => Ok(Some((place, end))),
            };
            let Some((data, hole)) = extent.map_err(Refusal::of(WRITE))? else { break };
            place = hole;
            match punch(route.target, data, hole - data) {
                Ok(()) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    written += self.fill_with_zeros(route, (data, hole))?;
                }
                Err(errno) => return Err(Refusal::of(WRITE)(errno)),
            }
        }
        Ok(written)
    }

    fn fill_with_zeros(
        &mut self,
        route: &Route<'_>,
        (mut place, end): (u64, u64),
    ) -> Result<u64, Refusal> {
        let (mut written, zeros) = (0, vec![0; BLOCK_BYTES as usize]);
        let mut found = zeros.clone();
        while place < end {
            self.look()?;
            let length = (BLOCK_BYTES - place % BLOCK_BYTES).min(end - place) as usize;
            let there = read_full(route.target, &mut found[..length], place);
            if there == Ok(0) {
                break;
            }
            if !there.is_ok_and(|there| is_zero(&found[..there])) {
                written += self.put(route, &zeros[..length], place)?;
            }
            place += length as u64;
        }
        Ok(written)
    }

    /// Writes bytes to their place, not faster than they may be. Returns how many.
    fn put(&self, route: &Route<'_>, bytes: &[u8], place: u64) -> Result<u64, Refusal> {
        let piece_bytes =
            self.methods.limits.piece_bytes().map_or(bytes.len(), |piece| piece as usize);
        for (place, piece) in (place..).step_by(piece_bytes).zip(bytes.chunks(piece_bytes)) {
            self.wait_for(piece.len() as u64)?;
            write_all(route.target, piece, place).map_err(Refusal::of(WRITE))?;
            route.moved.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        Ok(bytes.len() as u64)
    }
}

fn punch(target: BorrowedFd<'_>, place: u64, length: u64) -> Result<(), Errno> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    unless_interrupted(|| rustix::fs::fallocate(target, flags, place, length))
}

/// The next blocks in a row that differ, from `begin` on, as begin and end in `source`. What `target`
/// has not got differs.
fn next_difference(source: &[u8], target: &[u8], begin: usize) -> Option<(usize, usize)> {
    let differs = |&from: &usize| {
        let to = source.len().min(from + BLOCK_BYTES as usize);
        target.get(from..to) != Some(&source[from..to])
    };
    let mut blocks = (begin..source.len()).step_by(BLOCK_BYTES as usize);
    let from = blocks.find(differs)?;
    let to = blocks.find(|from| !differs(from)).unwrap_or(source.len());
    Some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_differ_are_found_in_rows() {
        let block = BLOCK_BYTES as usize;
        let source = vec![1; 5 * block + 10];
        let rows = |target: &[u8]| {
            let mut rows = Vec::new();
            let mut begin = 0;
            while let Some(row) = next_difference(&source, target, begin) {
                begin = row.1;
                rows.push(row);
            }
            rows
        };
        let mut target = source.clone();
        assert!(rows(&target).is_empty());
        (target[0], target[2 * block - 1], target[4 * block]) = (0, 0, 0);
        assert_eq!(rows(&target), [(0, 2 * block), (4 * block, 5 * block)]);
        assert_eq!(rows(&source[..block]), [(block, 5 * block + 10)]);
        assert_eq!(rows(&source[..5 * block + 1]), [(5 * block, 5 * block + 10)]);
        assert_eq!(rows(&[]), [(0, 5 * block + 10)]);
    }
}
