//! The settings with which bytes are moved, as plain data.

use serde::{Deserialize, Serialize};

flatout_sys::words! {
    /// How the kernel is asked for bytes.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Engine: name, ALL, text {
        /// pread(2) and pwrite(2), one block at a time.
        Sync = "sync",
        /// mmap(2) in windows.
        Mmap = "mmap",
        /// io_uring, `depth` blocks at a time.
        Uring = "uring",
    }

    /// How the page cache takes part.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Caching: name, ALL, text {
        /// Through the page cache, as any program does.
        Buffered = "buffered",
        /// Around it: `O_DIRECT`.
        Direct = "direct",
        /// Through it, but nothing new stays: `RWF_DONTCACHE`.
        Dontcache = "dontcache",
    }

    /// Which blocks a lane gets.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Split: name, ALL, text {
        /// Lane i of n gets the i-th of n ranges.
        Contiguous = "contiguous",
        /// Lane i of n gets the blocks i, i+n, i+2n, …
        Interleaved = "interleaved",
    }
}

/// The settings of one piece of work. What crosses from measuring to moving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// How the kernel is asked.
    pub engine: Engine,
    /// How the page cache takes part.
    pub caching: Caching,
    /// Bytes per request and per block that the consumer sees; at least 1.
    pub block_bytes: u64,
    /// Requests in flight per lane; only the uring engine has more than one.
    pub depth: u32,
    /// Lanes, each in a thread of the caller.
    pub threads: u32,
    /// Which blocks a lane gets.
    pub split: Split,
}

/// One of `count` shares of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// 0 ≤ index < count.
    pub index: u32,
    /// Number of lanes, at least 1.
    pub count: u32,
}

impl Lane {
    /// The lane that gets everything.
    pub const ONLY: Self = Self { index: 0, count: 1 };

    /// The blocks of this lane among `blocks`: first, end (exclusive) and step.
    ///
    /// Together the lanes cover each block once; contiguous shares differ by at most one block.
    pub fn blocks(self, blocks: u64, split: Split) -> (u64, u64, u64) {
        let (index, count) = (u64::from(self.index), u64::from(self.count));
        match split {
            Split::Contiguous => {
                let (share, rest) = (blocks / count, blocks % count);
                let first = index * share + index.min(rest);
                (first, first + share + u64::from(index < rest), 1)
            }
            Split::Interleaved => (index.min(blocks), blocks, count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_cover_each_block_once() {
        for split in [Split::Contiguous, Split::Interleaved] {
            for blocks in [0, 1, 2, 7, 64, 65] {
                for count in [1, 2, 3, 8, 100] {
                    let mut seen = vec![0; blocks as usize];
                    for index in 0..count {
                        let (first, end, step) = Lane { index, count }.blocks(blocks, split);
                        (first..end).step_by(step as usize).for_each(|b| seen[b as usize] += 1);
                    }
                    assert!(seen.iter().all(|&times| times == 1), "{split} {blocks} {count}");
                }
            }
        }
    }

    #[test]
    fn words_read_back() {
        for engine in [Engine::Sync, Engine::Mmap, Engine::Uring] {
            assert_eq!(engine.to_string().parse(), Ok(engine));
        }
        assert!("aio".parse::<Engine>().is_err());
    }
}
