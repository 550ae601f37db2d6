//! Lines of an inventory that later ones replace: of sources that go to one place, the last line of
//! each name counts.

use std::collections::HashMap;

use super::{Record, key};
use crate::copy::failure::Refusal;
use crate::spool::{LENGTH_BYTES, Spool};

/// What may stay in memory of the lines, and of their names; the rest goes to files without a name.
const MEMORY_BYTES: usize = 1 << 20;
/// A number that stands for a name.
const KEY_BYTES: usize = 16;
/// Keys that are read at a time.
const WINDOW_BYTES: usize = 4096 * KEY_BYTES;
/// Names that are compared at a time: their table takes some 3 MiB.
const GROUP_NAMES: u64 = 1 << 15;

/// Lines in the order in which they came. A bit of memory for each, and some MiB.
#[derive(Debug)]
pub struct LastLines {
    lines: Spool,
    /// The keys of their names.
    keys: Spool,
    count: u64,
    group_names: u64,
}

impl Default for LastLines {
    fn default() -> Self {
        let [lines, keys] = [MEMORY_BYTES; 2].map(Spool::new);
        Self { lines, keys, count: 0, group_names: GROUP_NAMES }
    }
}

impl LastLines {
    /// Takes in an entry.
    ///
    /// Errors: no file can be made for what memory does not take, or it is full.
    pub fn add(&mut self, record: &Record) -> Result<(), Refusal> {
        let mut line = Vec::new();
        record.append(&mut line);
        let key = key(std::os::unix::ffi::OsStrExt::as_bytes(record.name.as_os_str()));
        self.lines.append_record(&[&line])?;
        self.keys.append(&[&key.to_le_bytes()])?;
        self.count += 1;
        Ok(())
    }

    /// Hands out the line of each name; tells how many there are.
    ///
    /// Errors: a file cannot be read.
    pub fn each(self, mut take: impl FnMut(&[u8])) -> Result<u64, Refusal> {
        let replaced = self.replaced()?;
        let (mut offset, mut taken) = (0, 0);
        for number in 0..self.count {
            let line = self.lines.record(offset)?;
            offset += LENGTH_BYTES + line.len() as u64;
            if !is_set(&replaced, number) {
                take(&line);
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// A bit for each line: whether a later one has its name. Names are compared in groups, each of
    /// which fits into memory, for the price of reading all keys once for each group.
    fn replaced(&self) -> Result<Vec<u8>, Refusal> {
        let mut replaced = vec![0; (self.count / 8 + 1) as usize];
        let groups = u128::from(self.count / self.group_names + 1);
        let mut window = vec![0; WINDOW_BYTES];
        for group in 0..groups {
            let mut last: HashMap<u128, u64> = HashMap::new();
            let mut number = 0;
            while number < self.count {
                let got = self.keys.read(number * KEY_BYTES as u64, &mut window)?;
                for key in window[..got].as_chunks::<KEY_BYTES>().0 {
                    let key = u128::from_le_bytes(*key);
                    if key % groups == group
                        && let Some(earlier) = last.insert(key, number)
                    {
                        replaced[(earlier / 8) as usize] |= 1 << (earlier % 8);
                    }
                    number += 1;
                }
            }
        }
        Ok(replaced)
    }
}

fn is_set(bits: &[u8], number: u64) -> bool {
    bits[(number / 8) as usize] >> (number % 8) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::super::{Line, parse};
    use super::*;

    fn record(line: &[u8]) -> Record {
        match parse(line.trim_ascii_end()) {
            Some(Line::Entry(record)) => *record,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_line_of_each_name_is_handed_out_however_many_names_there_are() {
        for group_names in [1, 7, GROUP_NAMES] {
            let [lines, keys] = [100, 40].map(Spool::new);
            let mut lines = LastLines { lines, keys, count: 0, group_names };
            // Names 0 to 99, then a third of them, then a tenth.
            for (round, step) in [(0, 1), (1, 3), (2, 10)] {
                for name in (0..100).step_by(step) {
                    let words = "type=file uid=0 gid=0 mode=0644 time=1.0";
                    let line = format!("{name} {words} size={round} blake3={:064}", 0);
                    lines.add(&record(line.as_bytes())).unwrap();
                }
            }
            let mut found = Vec::new();
            let count = lines.each(|line| found.push(record(line))).unwrap();
            let found: Vec<_> = found.iter().map(|one| (one.length_bytes, &one.name)).collect();
            let mut expected = Vec::new();
            for (round, step) in [(0, 1), (1, 3), (2, 10)] {
                let is_last = |name: &u64| match round {
                    0 => !name.is_multiple_of(3) && !name.is_multiple_of(10),
                    1 => !name.is_multiple_of(10),
                    _ => true,
                };
                let names = (0..100).step_by(step).filter(is_last);
                expected.extend(names.map(|name| (round, name.to_string().into())));
            }
            assert_eq!(
                found,
                expected.iter().map(|(size, name)| (*size, name)).collect::<Vec<_>>()
            );
            assert_eq!(count, 100);
        }
    }
}
