//! Which blocks each of fio's jobs visits, and how many of them.

use flatout_io::{Caching, Order, Split};

use super::super::Terms;
use super::super::estimate::MAX_TRIALS;
use super::super::pattern::Pattern;
use super::super::row::{Extents, Row};

/// The blocks of each job; lengths are multiples of the block, as direct I/O wants them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) jobs: u64,
    pub(super) block_bytes: u64,
    /// Blocks from the job's first to its last.
    pub(super) blocks: u64,
    /// Distance of the first blocks of two jobs; none: all begin with the same.
    pub(super) apart_blocks: Option<u64>,
    /// What is left out after each block; none: nothing.
    pub(super) step_blocks: Option<i64>,
    /// Blocks moved at most, where these are not those from the first to the last.
    pub(super) moved_blocks: Option<u64>,
}

/// Whether a row begins again once all blocks are done. Where the cache is cold at the beginning
/// or blocks are new, it does not, for another turn would find something else; what lies in memory
/// alone is never cold.
pub(super) fn repeats(row: &Row, is_in_memory: bool) -> bool {
    let keeps_its_state = row.tuning.caching == Caching::Direct || is_in_memory;
    let finds_the_same = keeps_its_state && row.extents == Extents::Written;
    (finds_the_same && row.test != Pattern::ColdBlocks) || row.test == Pattern::Reread
}

impl Share {
    /// None where the file is shorter than a block.
    pub(super) fn new(
        row: &Row,
        length_bytes: u64,
        terms: &Terms,
        repeats: bool,
        is_fsynced: bool,
    ) -> Option<Self> {
        let block_bytes = row.tuning.block_bytes;
        let trial_blocks = (terms.trial_write_bytes / block_bytes).max(1);
        let is_fresh = row.writes() && row.extents == Extents::Fresh;
        let blocks = match length_bytes / block_bytes {
            0 => return None,
            all if is_fresh => all.min(trial_blocks),
            all => all,
        };
        let jobs = u64::from(row.tuning.threads).clamp(1, blocks);
        let mut share = Self { jobs, block_bytes, blocks, ..Self::default() };
        share.lay_out(row, repeats);
        if row.writes() && !is_fresh {
            // Of a row that repeats, as much as its trials wrote together.
            let trials = if repeats && !is_fsynced { u64::from(MAX_TRIALS) } else { 1 };
            let most =
                trial_blocks.saturating_mul(trials).min(terms.most_write_bytes / block_bytes);
            let of_job = (most / jobs).max(1);
            let own = share.moved_blocks.unwrap_or(share.blocks);
            let moved = if repeats { of_job } else { of_job.min(own) };
            share.moved_blocks = Some(moved);
        }
        if share.step_blocks.is_none() {
            share.moved_blocks = share.moved_blocks.filter(|&moved| moved != share.blocks);
        }
        Some(share)
    }

    /// Gives each job its blocks.
    fn lay_out(&mut self, row: &Row, repeats: bool) {
        let (jobs, all) = (self.jobs, self.blocks);
        let is_once = !repeats;
        match row.test.order(0) {
            Order::Strided { step } if all > step => {
                let apart = (step / jobs).max(1);
                self.step_blocks = Some(step as i64 - 1);
                self.begin_apart(apart);
                self.moved_blocks = is_once.then_some(all / step);
            }
            Order::Strided { .. } => {}
            Order::Random { .. } => {
                // From the page cache, another job's blocks must not be read again.
                if is_once {
                    self.cut();
                }
            }
            Order::Backward => {
                self.step_blocks = Some(-2);
                self.cut();
            }
            Order::Forward if row.tuning.split == Split::Interleaved && jobs > 1 => {
                self.step_blocks = Some(jobs as i64 - 1);
                self.begin_apart(1);
                self.moved_blocks = is_once.then_some(all / jobs);
            }
            Order::Forward => self.cut(),
        }
    }

    /// A part of its own for each job.
    fn cut(&mut self) {
        if self.jobs > 1 {
            self.blocks /= self.jobs;
            self.apart_blocks = Some(self.blocks);
        }
    }

    /// The same length for each job, and the last one's ends where the file does.
    fn begin_apart(&mut self, apart_blocks: u64) {
        if self.jobs > 1 {
            self.blocks -= (self.jobs - 1) * apart_blocks;
            self.apart_blocks = Some(apart_blocks);
        }
    }

    /// What follows the direction: the bytes that are added after each request.
    pub(super) fn step(&self) -> String {
        let bytes = |blocks: i64| format!(":{}", i128::from(blocks) * i128::from(self.block_bytes));
        self.step_blocks.map(bytes).unwrap_or_default()
    }

    pub(super) fn options(&self) -> super::JobOptions {
        let bytes = |blocks: u64| blocks.saturating_mul(self.block_bytes).to_string();
        let mut options = vec![("size", bytes(self.blocks))];
        options.extend(self.apart_blocks.map(|apart| ("offset_increment", bytes(apart))));
        options.extend(self.moved_blocks.map(|moved| ("io_size", bytes(moved))));
        options.extend((self.jobs > 1).then(|| ("numjobs", self.jobs.to_string())));
        options
    }
}
