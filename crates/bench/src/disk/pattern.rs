//! What a row of the disk area does to the file, and what the user may ask for.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use flatout_io::Order;
use flatout_io::operations::Timestamps;

flatout_sys::words! {
    /// What a row does to the file, in the order of a report, by its word on the command line (fio's where
    /// it has one: its name means the same there). Not everything can be asked for by that.
    #[derive(PartialOrd, Ord)]
    pub enum Pattern: word, ALL {
        /// From the front to the end.
        SequentialRead = "read",
        /// From the front to the end, into blocks never written and over written ones.
        SequentialWrite = "write",
        /// From the front of one file to the front of another.
        SequentialCopy = "copy",
        /// Each block once, in random order.
        RandomRead = "randread",
        /// Each block once, in random order, over written ones.
        RandomWrite = "randwrite",
        /// Reads and writes in random order.
        Mixed = "randrw",
        /// Reads from the front to the end and writes from the front to the end, by turns.
        SequentialMixed = "readwrite",
        /// From the end to the front.
        BackwardRead = "backward-read",
        /// Every 17th block, until all are read.
        StridedRead = "strided-read",
        /// Once more, from the page cache if it holds the file.
        Reread = "reread",
        /// Blocks that nobody has read lately, and at once the same again.
        ColdBlocks = "cold-blocks",
        /// Names and attributes: create, stat, open and close, rename, readdir, unlink, fsync. They have
        /// rows of another kind.
        Metadata = "metadata",
        /// From the front to the end, over written blocks, in the matrix.
        Rewrite = "rewrite",
        /// Nanoseconds of one tiny request, in the matrix.
        LatencyRead = "latency-sequential-read",
        /// The same of writes.
        LatencyWrite = "latency-sequential-write",
        /// The same of copies.
        LatencyCopy = "latency-sequential-copy",
        /// The same of reads in random order.
        LatencyRandomRead = "latency-random-read",
        /// The same of writes in random order.
        LatencyRandomWrite = "latency-random-write",
    }
}

/// `--rw`.
pub(super) fn patterns() -> impl TypedValueParser<Value = Pattern> {
    let word = |pattern: Pattern| {
        let (name, row) = (pattern.word(), pattern.name());
        let further = [Some(row), pattern.short()].into_iter().flatten();
        PossibleValue::new(name).aliases(further.filter(|further| *further != name))
    };
    PossibleValuesParser::new(Pattern::asked().map(word)).try_map(|text| {
        let is_meant = |pattern: &Pattern| {
            [pattern.word(), pattern.name()].contains(&&*text) || pattern.short() == Some(&*text)
        };
        Pattern::asked().find(is_meant).ok_or("unknown pattern")
    })
}

/// Where a test moves bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IoType {
    Read,
    Write,
    Copy,
    Mixed,
}

/// Distance of two blocks of a strided read, in blocks; the stride of IOzone.
const STRIDE_BLOCKS: u64 = 17;

impl Pattern {
    /// All that can be asked for.
    pub fn asked() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().take_while(|pattern| *pattern != Self::Rewrite)
    }

    /// What its rows are called.
    pub fn name(self) -> &'static str {
        self.id().trim_start_matches("disk/")
    }

    /// The short form that fio has of its word, too.
    fn short(self) -> Option<&'static str> {
        (self == Self::SequentialMixed).then_some("rw")
    }

    /// The id of its rows, where it moves bytes, and the order of its blocks.
    const fn described(self) -> (&'static str, IoType, Order) {
        use IoType::{Copy, Mixed, Read, Write};
        use Order::{Backward, Forward};
        const STRIDED: Order = Order::Strided { step: STRIDE_BLOCKS };
        const RANDOM: Order = Order::Random { seed: 0 };
        match self {
            Self::SequentialRead => ("disk/sequential-read", Read, Forward),
            Self::SequentialWrite => ("disk/sequential-write", Write, Forward),
            Self::SequentialCopy => ("disk/sequential-copy", Copy, Forward),
            Self::RandomRead => ("disk/random-read", Read, RANDOM),
            Self::RandomWrite => ("disk/random-write", Write, RANDOM),
            Self::Mixed => ("disk/mixed", Mixed, RANDOM),
            Self::SequentialMixed => ("disk/sequential-mixed", Mixed, Forward),
            Self::BackwardRead => ("disk/backward-read", Read, Backward),
            Self::StridedRead => ("disk/strided-read", Read, STRIDED),
            Self::Reread => ("disk/reread", Read, Forward),
            Self::ColdBlocks => ("disk/cold-blocks", Read, Forward),
            // Into files of its own.
            Self::Metadata => ("disk/metadata", Copy, Forward),
            Self::Rewrite => ("disk/rewrite", Write, Forward),
            Self::LatencyRead => ("disk/latency-sequential-read", Read, Forward),
            Self::LatencyWrite => ("disk/latency-sequential-write", Write, Forward),
            Self::LatencyCopy => ("disk/latency-sequential-copy", Copy, Forward),
            Self::LatencyRandomRead => ("disk/latency-random-read", Read, RANDOM),
            Self::LatencyRandomWrite => ("disk/latency-random-write", Write, RANDOM),
        }
    }

    /// Whether its figure is the time of one tiny request.
    pub(super) fn is_latency(self) -> bool {
        self > Self::Rewrite
    }

    pub(super) const fn id(self) -> &'static str {
        self.described().0
    }

    pub(super) const fn io_type(self) -> IoType {
        self.described().1
    }

    /// Whether its figure counts operations rather than bytes.
    pub(super) const fn is_random(self) -> bool {
        matches!(self.described().2, Order::Random { .. })
    }

    /// Whether requests are timed: two clock readings would be a good part of a tiny one.
    pub(super) fn timestamps(self) -> Timestamps {
        if self.is_latency() { Timestamps::None } else { Timestamps::Each }
    }

    pub(super) const fn order(self, seed: u64) -> Order {
        match self.described().2 {
            Order::Random { .. } => Order::Random { seed },
            order => order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_goes_by_fios_word_and_by_that_of_its_rows() {
        let parser = patterns();
        let (command, option) = (clap::Command::new("test"), clap::Arg::new("rw"));
        let parsed = |word: &str| parser.parse_ref(&command, Some(&option), word.as_ref()).ok();
        for pattern in Pattern::asked() {
            assert_eq!(parsed(pattern.word()), Some(pattern));
            assert_eq!(parsed(pattern.name()), Some(pattern));
        }
        assert_eq!(parsed("randread"), Some(Pattern::RandomRead));
        assert_eq!(parsed("random-write"), Some(Pattern::RandomWrite));
        assert_eq!(parsed("rw"), Some(Pattern::SequentialMixed));
        assert_eq!(parsed("trim"), None);
    }
}
