//! How long the pieces are in which a block is written, by the sync method or out of a pipe.
//!
//! The kernel keeps what is written in folios as long as the write, where the filesystem lets it
//! (xfs, btrfs, ext4 since Linux 6.16). Few long ones are the fastest as long as memory lies free in long stretches. On a machine that has run for a while
//! nearly all of it is page cache, and then memory is compacted for each long folio while the write
//! waits; pages for short ones are always at hand. Nobody tells which of the two it is, so both are
//! timed now and then.
//!
//! Figures, 16 files of 16 MiB, cached, two threads, ext4, Linux 6.18, 2 CPUs, 2026-11-22, times as
//! fast as cp -a (7 and 9 rounds): memory free 256 KiB 1.71, 32 KiB 1.16; memory full of page cache
//! 256 KiB 0.87, 32 KiB 1.32. `perf` of the former: a third of the time in `isolate_freepages_block`
//! and what it calls. copy_file_range of 1 MiB (probe, AMD EPYC family 25 model 17, Linux 6.18, 2026-11-26): in
//! one call 0.29 ms, or 1.95 where memory is not at hand; in calls of 32 KiB 0.50 and 0.51.

use std::ops::Range;
use std::time::Duration;

use flatout_sys::clock::monotonic_ns;

/// The short pieces: the longest folios for which the kernel does not compact memory without need
/// (order 3, `PAGE_ALLOC_COSTLY_ORDER`).
const SHORT_BYTES: usize = 32 << 10;
/// Shorter blocks are written as they are.
const LEAST_BLOCK_BYTES: usize = 128 << 10;
/// Of so many blocks two are written the other way, to see what that would take.
const CYCLE_BLOCKS: u32 = 128;
const TRIAL_BLOCKS: u32 = 2;
/// So many blocks of a cycle come before those.
const BEFORE_TRIAL_BLOCKS: u32 = 4;
/// The first blocks of all say nothing: memory of our own is touched for the first time.
const UNTIMED_BLOCKS: u32 = 2;
/// Short pieces must be faster by this factor: what is noise does not change anything.
const MARGIN: f64 = 0.8;
/// Weight of the latest block in a mean: there are few of those that are tried.
const LATEST: f64 = 0.125;
const LATEST_TRIED: f64 = 0.5;

/// The length of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Whole,
    Short,
}

/// What a thread knows of how long writes take.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    blocks: u32,
    /// Nanoseconds for a byte, of blocks written whole and in short pieces.
    whole: Option<f64>,
    short: Option<f64>,
}

impl Pieces {
    /// Has a block written: `write` gets one piece of it after the other.
    pub(super) fn write<E>(
        &mut self,
        block_bytes: usize,
        mut write: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        if block_bytes < LEAST_BLOCK_BYTES {
            return write(0..block_bytes);
        }
        let piece = self.next();
        let begun_ns = monotonic_ns();
        let piece_bytes = if piece == Piece::Whole { block_bytes } else { SHORT_BYTES };
        for begin in (0..block_bytes).step_by(piece_bytes) {
            write(begin..block_bytes.min(begin + piece_bytes))?;
        }
        self.took(piece, block_bytes, Duration::from_nanos(monotonic_ns() - begun_ns));
        Ok(())
    }

    /// The faster way, but for some blocks of each cycle.
    fn next(&mut self) -> Piece {
        let place = self.blocks % CYCLE_BLOCKS;
        self.blocks = self.blocks.wrapping_add(1);
        let trial = BEFORE_TRIAL_BLOCKS..BEFORE_TRIAL_BLOCKS + TRIAL_BLOCKS;
        let is_trial = trial.contains(&place);
        match (self.best(), is_trial) {
            (Piece::Whole, true) | (Piece::Short, false) => Piece::Short,
            (Piece::Short, true) | (Piece::Whole, false) => Piece::Whole,
        }
    }

    fn best(&self) -> Piece {
        match (self.whole, self.short) {
            (Some(whole), Some(short)) if short < whole * MARGIN => Piece::Short,
            _ => Piece::Whole,
        }
    }

    fn took(&mut self, piece: Piece, bytes: usize, time: Duration) {
        if self.blocks <= UNTIMED_BLOCKS {
            return;
        }
        let each_ns = time.as_nanos() as f64 / bytes as f64;
        let weight = if piece == self.best() { LATEST } else { LATEST_TRIED };
        let mean = match piece {
            Piece::Whole => &mut self.whole,
            Piece::Short => &mut self.short,
        };
        *mean = Some(mean.map_or(each_ns, |mean| mean + (each_ns - mean) * weight));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks written in short pieces, of `count`, where a byte takes so many nanoseconds.
    fn short_of(pieces: &mut Pieces, count: u32, whole_ns: u64, short_ns: u64) -> u32 {
        let mut short = 0;
        for _ in 0..count {
            let piece = pieces.next();
            short += u32::from(piece == Piece::Short);
            let each = if piece == Piece::Short { short_ns } else { whole_ns };
            pieces.took(piece, 1 << 18, Duration::from_nanos(each << 18));
        }
        short
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_one_looked_at_now_and_then() {
        let mut pieces = Pieces::default();
        assert_eq!(short_of(&mut pieces, 640, 2, 3), 10, "two of 128");
        // Memory is full now; later it is free again.
        assert!(short_of(&mut pieces, 640, 9, 3) > 550);
        assert!(short_of(&mut pieces, 640, 2, 3) < 260, "within some cycles");
        let mut slow_at_first = Pieces::default();
        short_of(&mut slow_at_first, UNTIMED_BLOCKS, 1000, 3);
        assert_eq!(short_of(&mut slow_at_first, 638, 2, 3), 10);
        let mut alike = Pieces::default();
        assert_eq!(short_of(&mut alike, 640, 100, 95), 10, "noise changes nothing");
    }

    #[test]
    fn the_pieces_are_the_block() {
        let block: Vec<u8> = (0..300_001).map(|byte| byte as u8).collect();
        for best in [(None, None), (Some(9.0), Some(1.0))] {
            let (whole, short) = best;
            let mut pieces = Pieces { blocks: 20, whole, short };
            let mut written = vec![0; block.len()];
            let mut count = 0;
            let done: Result<(), ()> = pieces.write(block.len(), |piece| {
                count += 1;
                written[piece.clone()].copy_from_slice(&block[piece]);
                Ok(())
            });
            assert_eq!((done, written == block), (Ok(()), true));
            assert_eq!(count, if short.is_some() { 10 } else { 1 });
        }
        let failed = Pieces::default().write(block.len(), |_| Err(7));
        assert_eq!(failed, Err(7));
        let mut small = 0..0;
        let mut pieces = Pieces { blocks: 20, whole: Some(9.0), short: Some(1.0) };
        let done: Result<(), ()> = pieces.write(100, |piece| {
            small = piece;
            Ok(())
        });
        assert_eq!((done, small), (Ok(()), 0..100));
    }
}
