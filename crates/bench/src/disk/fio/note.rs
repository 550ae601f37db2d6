//! What fio does otherwise than a row, said where it changes what is measured.

use flatout_io::{Caching, Split, Tuning};
use flatout_sys::region::huge_page_bytes;

use super::super::pattern::Pattern;
use super::super::row::Row;
use super::{HUGE_PAGES, Job};

/// A request of so many bytes has so many pages of 4 KiB that a virtual disk splits it.
const MANY_PAGES_BYTES: u64 = 256 << 10;

impl Job<'_> {
    pub(super) fn notes(&self) -> Vec<String> {
        let Row { test, tuning, .. } = self.row;
        let Tuning { caching, threads, split, .. } = *tuning;
        let jobs = self.share.jobs;
        let mut notes = Vec::new();
        let mut note = |text: &str| notes.push(text.to_owned());
        match test {
            Pattern::ColdBlocks => note(
                "blocks are cold once: fio comes after this run and is to be compared with the second \
                 pass",
            ),
            Pattern::StridedRead if self.share.step_blocks.is_some() => note(
                "fio comes back to where it began and never reads the blocks in between: a cache of \
                 the disk helps it more",
            ),
            Pattern::BackwardRead => {
                note("fio reads the first block of its share first, not the last")
            }
            _ => {}
        }
        if jobs > 1 && test.is_random() {
            note(match self.repeats {
                true => "each job of fio visits all blocks in an order of its own",
                false => "each job of fio has a part of the file to itself",
            });
        } else if jobs > 1 && *test == Pattern::StridedRead {
            note("each job of fio has a column of blocks to itself");
        } else if jobs > 1 && split == Split::Interleaved && *test == Pattern::BackwardRead {
            note("each job of fio has a part of the file to itself, and they do not take turns");
        }
        if jobs < u64::from(threads) {
            note("the file has fewer blocks than there are threads");
        }
        if self.row.rate_per_s.is_some() {
            note("fio counts latencies from when it submits, not from the intended start");
        }
        if caching == Caching::Dontcache {
            note(
                "needs a fio of 2025 or later: 3.33 sets a flag for --uncached that kernels refuse",
            );
        }
        if self.place.is_in_memory {
            note(
                "fio measures no latencies here: its clock would be read more often than flatout's",
            );
        }
        if self.is_fsynced {
            note("fio ends with fsync, this with fdatasync");
        }
        if self.is_on_huge_pages() {
            note(&format!(
                "its buffers lie on large pages, as flatout's, only with {HUGE_PAGES} (glibc from \
                 2.35 on, transparent huge pages on madvise or always); virtual disks split a request \
                 of many small pages, which takes up to twice as long"
            ));
        }
        notes
    }

    /// Whether the row's buffers lie on large pages, and its requests are so long that this shows.
    pub(super) fn is_on_huge_pages(&self) -> bool {
        let Tuning { block_bytes, depth, caching, .. } = self.row.tuning;
        let is_long = block_bytes >= MANY_PAGES_BYTES;
        let fills_a_page = u64::from(depth) * block_bytes >= huge_page_bytes() as u64;
        caching == Caching::Direct && is_long && fills_a_page
    }
}
