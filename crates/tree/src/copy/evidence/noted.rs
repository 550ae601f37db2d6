//! Fingerprints that earlier runs noted: the last ones in memory; where there are more than it takes,
//! the others lie in a file without a name, in sorted runs, and are looked up there.

use super::{Fingerprint, fingerprints};
use crate::spool::Spool;

/// Fingerprints that are read at once: 4 KiB of them.
const PAGE: usize = 256;
/// Sorted fingerprints that wait to be written.
const WAITING_BYTES: usize = 64 << 10;

/// A set of fingerprints.
#[derive(Debug)]
pub(super) struct Noted {
    /// Those in memory at most.
    most: usize,
    /// Those in memory; sorted, once all are there.
    pub(super) near: Vec<Fingerprint>,
    runs: Vec<Run>,
    spool: Spool,
}

/// Sorted fingerprints in the file.
#[derive(Debug)]
struct Run {
    offset_bytes: u64,
    length_bytes: usize,
    /// The first half of the first one of each page.
    firsts: Vec<u64>,
}

impl Noted {
    /// All of them, however many there are; `most` may be in memory. One in 16 bytes, and 8 bytes for
    /// each page in the file.
    pub(super) fn collect(most: usize, read: impl FnOnce(&mut dyn FnMut(Fingerprint))) -> Self {
        let spool = Spool::new(WAITING_BYTES);
        let mut known = Self { most, near: Vec::new(), runs: Vec::new(), spool };
        read(&mut |fingerprint| known.add(fingerprint));
        known.sort();
        known
    }

    pub(super) fn none() -> Self {
        Self::collect(0, |_| {})
    }

    pub(super) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.runs.is_empty()
    }

    /// Cost: for each run a read of a page.
    pub(super) fn has(&self, fingerprint: Fingerprint) -> bool {
        self.near.binary_search(&fingerprint).is_ok()
            || self.runs.iter().any(|run| run.has(fingerprint, &self.spool))
    }

    fn add(&mut self, fingerprint: Fingerprint) {
        if self.near.len() >= self.most {
            self.write_out();
        }
        if self.near.len() < self.most {
            self.near.push(fingerprint);
        }
    }

    fn sort(&mut self) {
        self.near.sort_unstable();
        self.near.dedup();
    }

    /// Makes a run of those in memory; where no file takes it, they are forgotten, and their files
    /// copied again.
    fn write_out(&mut self) {
        self.sort();
        let mut run = Run {
            offset_bytes: self.spool.length_bytes(),
            length_bytes: size_of_val(&*self.near),
            firsts: Vec::new(),
        };
        let is_written = self.near.chunks(PAGE).all(|page| {
            run.firsts.push(first_half(page[0]));
            let bytes: Vec<u8> = page.iter().flat_map(|it| it.to_le_bytes()).collect();
            self.spool.append(&[&bytes]).is_ok()
        });
        self.near.clear();
        if is_written && run.length_bytes > 0 {
            self.runs.push(run);
        }
    }
}

impl From<Vec<Fingerprint>> for Noted {
    /// `near`: sorted.
    fn from(near: Vec<Fingerprint>) -> Self {
        Self { near, ..Self::none() }
    }
}

impl Run {
    fn has(&self, fingerprint: Fingerprint, spool: &Spool) -> bool {
        let first = first_half(fingerprint);
        let page = self.firsts.partition_point(|&it| it <= first);
        let Some(page) = page.checked_sub(1) else { return false };
        let mut bytes = [0; PAGE * size_of::<Fingerprint>()];
        let begin = page * bytes.len();
        let length = bytes.len().min(self.length_bytes - begin);
        let bytes = &mut bytes[..length];
        spool.read(self.offset_bytes + begin as u64, bytes) == Ok(length)
            && fingerprints(bytes).any(|it| it == fingerprint)
    }
}

/// What the pages of a run are told apart by. Two that agree in it, which is out of the question, cost
/// a copy.
fn first_half(fingerprint: Fingerprint) -> u64 {
    (fingerprint >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spread as digests are.
    fn spread(number: u128) -> Fingerprint {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }

    #[test]
    fn all_are_known_however_little_memory_takes() {
        for (count, most) in [(0, 4), (1, 1), (5, 2), (3000, 1000), (3001, 1000), (3000, 5000)] {
            let known = Noted::collect(most, |add| (0..count).for_each(|it| add(spread(it))));
            assert!(known.near.capacity() <= most.next_power_of_two().max(4), "{count} {most}");
            assert_eq!(known.is_empty(), count == 0);
            assert!((0..count).all(|it| known.has(spread(it))), "{count} {most}");
            assert!(!(count..count + 5000).any(|it| known.has(spread(it))), "{count} {most}");
        }
    }

    #[test]
    fn nothing_is_known_without_memory() {
        let known = Noted::collect(0, |add| (0..9).for_each(|it| add(spread(it))));
        assert!(known.is_empty() && !known.has(spread(1)));
    }
}
