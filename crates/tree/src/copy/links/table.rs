//! The table of links: from sources to their copies, with open addressing.
//!
//! In memory while it is small; beyond its share it is the same table in a file without a name, a
//! system call or two per question. Paths lie in a spool beside it. What is let go is cleared away
//! whenever the table is built anew, so that neither grows with the sources that came and went.

use std::hash::{BuildHasher, RandomState};

use super::slots::{
    EMPTY, FIRST_PATH, GONE, NO_PATH, SLOT_BYTES, Slot, Slots, WINDOW_SLOTS, Window,
};
use super::{Copy, Identity};
use crate::copy::Refusal;
use crate::spool::{LENGTH_BYTES, Spool};

/// Slots of the smallest table.
const LEAST_SLOTS: usize = 4 * WINDOW_SLOTS;

/// Old paths that are left where they are: less is not worth the work, in memory or in a file.
const TOLERATED_WASTE_BYTES: u64 = 1 << 20;

/// Sources with names to come, and where their copies are.
#[derive(Debug)]
pub(super) struct Table {
    /// For the slots, the old ones counted in while new ones are filled.
    slots_share_bytes: usize,
    /// For the paths; twice that while they are put together again.
    paths_share_bytes: usize,
    /// Nobody can choose inode numbers so that all meet in one place.
    hasher: RandomState,
    slots: Slots,
    /// Slots with a source, and slots that are not empty.
    live: usize,
    used: usize,
    paths: Spool,
    /// Bytes of `paths` that nobody needs any more.
    wasted_bytes: u64,
    /// Devices of source and target, for the slots to name by number. There are few.
    pairs: Vec<(u64, u64)>,
}

/// Where a source is, or would be.
enum Lookup {
    Found(usize, Slot),
    Free { index: usize, was: u64 },
}

impl Table {
    pub(super) fn new(memory_bytes: usize) -> Self {
        Self { slots_share_bytes: memory_bytes / 2, ..Self::without_paths(memory_bytes) }
    }

    /// For copies of which nobody asks where they are.
    pub(super) fn without_paths(memory_bytes: usize) -> Self {
        let paths_share_bytes = memory_bytes / 4;
        Self {
            paths: Spool::new(paths_share_bytes),
            slots_share_bytes: memory_bytes,
            paths_share_bytes,
            hasher: RandomState::new(),
            slots: Slots::in_memory(0),
            live: 0,
            used: 0,
            wasted_bytes: 0,
            pairs: Vec::new(),
        }
    }

    /// Whether the copy of a source is known.
    pub(super) fn has(&self, source: Identity) -> Result<bool, Refusal> {
        self.find(source).map(|place| matches!(place, Lookup::Found(..)))
    }

    /// One more name of `source` was seen: tells its copy, and forgets it with its last name.
    pub(super) fn see(&mut self, source: Identity) -> Result<Option<Copy>, Refusal> {
        let Lookup::Found(index, mut slot) = self.find(source)? else { return Ok(None) };
        let path = self.path(&slot)?;
        let mark = (self.pairs[slot.pair as usize].1, slot.target_inode);
        slot.names_left = slot.names_left.saturating_sub(1);
        if slot.names_left == 0 {
            slot = Slot { state: GONE, ..Slot::default() };
        }
        self.slots.set(index, slot)?;
        if slot.state == GONE {
            self.live -= 1;
            self.waste(path.len());
        }
        Ok(Some(Copy { path, mark, was_there: false }))
    }

    /// Remembers a source, instead of one that had this inode before.
    pub(super) fn insert(
        &mut self,
        source: Identity,
        names_left: u32,
        path: &[u8],
        target: Identity,
    ) -> Result<(), Refusal> {
        let is_full = 4 * (self.used + 1) > 3 * self.slots.count();
        if is_full || self.is_wasteful() {
            self.rebuild()?;
        }
        let place = self.find(source)?;
        let state = kept(&mut self.paths, path)?;
        let pair = self.pair(source.0, target.0);
        let (source_inode, target_inode) = (source.1, target.1);
        let slot = Slot { source_inode, target_inode, state, names_left, pair };
        match place {
            Lookup::Free { index, was } => {
                self.slots.set(index, slot)?;
                self.live += 1;
                self.used += usize::from(was == EMPTY);
            }
            Lookup::Found(index, old) => {
                let old = self.path(&old)?;
                self.slots.set(index, slot)?;
                self.waste(old.len());
            }
        }
        Ok(())
    }

    /// Gives a source another copy, if it is still there.
    pub(super) fn replace(
        &mut self,
        source: Identity,
        path: &[u8],
        target: Identity,
    ) -> Result<(), Refusal> {
        let Lookup::Found(index, slot) = self.find(source)? else { return Ok(()) };
        let old = self.path(&slot)?;
        let state = kept(&mut self.paths, path)?;
        let pair = self.pair(source.0, target.0);
        self.slots.set(index, Slot { target_inode: target.1, state, pair, ..slot })?;
        self.waste(old.len());
        Ok(())
    }

    /// Where the copy of a source is.
    fn path(&self, slot: &Slot) -> Result<Vec<u8>, Refusal> {
        match slot.path() {
            Some(offset) => self.paths.record(offset),
            None if slot.is_in_use() => Ok(Vec::new()),
            None => Err(Refusal::because("link", "the temporary file is damaged")),
        }
    }

    fn waste(&mut self, path_bytes: usize) {
        self.wasted_bytes += LENGTH_BYTES + path_bytes as u64;
        if self.live == 0 {
            self.paths.cut(0);
            self.wasted_bytes = 0;
        }
    }

    /// Whether most of the paths are old ones, and too many to be left in peace.
    fn is_wasteful(&self) -> bool {
        self.wasted_bytes > TOLERATED_WASTE_BYTES.max(self.paths.length_bytes() / 2)
    }

    /// The number of a pair of devices.
    fn pair(&mut self, source: u64, target: u64) -> u32 {
        let known = self.pairs.iter().position(|&pair| pair == (source, target));
        let number = known.unwrap_or_else(|| {
            self.pairs.push((source, target));
            self.pairs.len() - 1
        });
        u32::try_from(number).expect("devices have 32-bit numbers, and each is a source but once")
    }

    fn find(&self, source: Identity) -> Result<Lookup, Refusal> {
        let is_it = |slot: &Slot| {
            slot.source_inode == source.1 && self.pairs[slot.pair as usize].0 == source.0
        };
        search(&self.slots, self.hasher.hash_one(source), is_it)
    }

    /// Builds the table anew, half full at most, without what was let go: in memory, if old and new
    /// slots together do not exceed their share. If that fails, the old one is as it was.
    fn rebuild(&mut self) -> Result<(), Refusal> {
        let count = (2 * (self.live + 1)).next_power_of_two().max(LEAST_SLOTS);
        let both_bytes = self.slots.memory_bytes() + count * SLOT_BYTES;
        let is_small = count == LEAST_SLOTS || both_bytes <= self.slots_share_bytes;
        let mut slots = if is_small { Slots::in_memory(count) } else { Slots::in_file(count)? };
        let mut paths = self.is_wasteful().then(|| Spool::new(self.paths_share_bytes));
        let mut space = Window::default();
        for begin in (0..self.slots.count()).step_by(WINDOW_SLOTS) {
            for slot in self.slots.window(begin, &mut space)? {
                if !slot.is_in_use() {
                    continue;
                }
                let mut slot = *slot;
                if let Some(paths) = &mut paths {
                    slot.state = kept(paths, &self.path(&slot)?)?;
                }
                let source = (self.pairs[slot.pair as usize].0, slot.source_inode);
                let place = search(&slots, self.hasher.hash_one(source), |_| false)?;
                if let Lookup::Free { index, .. } = place {
                    slots.set(index, slot)?;
                }
            }
        }
        (self.slots, self.used) = (slots, self.live);
        if let Some(paths) = paths {
            (self.paths, self.wasted_bytes) = (paths, 0);
        }
        Ok(())
    }
}

/// What stands in [`Slot::state`] for a path, which is kept where there is one.
fn kept(paths: &mut Spool, path: &[u8]) -> Result<u64, Refusal> {
    match path {
        [] => Ok(NO_PATH),
        path => Ok(FIRST_PATH + paths.append_record(&[path])?),
    }
}

/// Looks for a slot from where its hash says, on and around, until there is an empty one.
fn search(slots: &Slots, hash: u64, is_it: impl Fn(&Slot) -> bool) -> Result<Lookup, Refusal> {
    let count = slots.count();
    let mut free = None;
    let mut space = Window::default();
    // The count is a power of two: these bits are the rest of a division.
    let mut begin = hash as usize & count.saturating_sub(1);
    let mut seen = 0;
    while seen < count {
        let window = slots.window(begin, &mut space)?;
        for (index, slot) in (begin..).zip(window) {
            match slot.state {
                EMPTY => {
                    return Ok(free.unwrap_or(Lookup::Free { index, was: EMPTY }));
                }
                GONE if free.is_none() => free = Some(Lookup::Free { index, was: GONE }),
                GONE => {}
                _ if is_it(slot) => return Ok(Lookup::Found(index, *slot)),
                _ => {}
            }
        }
        seen += window.len();
        begin = (begin + window.len()) & (count - 1);
    }
    // Only a table that was never built has no empty slot.
    Ok(free.unwrap_or(Lookup::Free { index: 0, was: GONE }))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Table {
        pub(in crate::copy::links) fn count(&self) -> u64 {
            self.live as u64
        }

        pub(in crate::copy::links) fn memory_bytes(&self) -> usize {
            self.slots.memory_bytes() + self.paths.memory_bytes()
        }

        pub(in crate::copy::links) fn has_file(&self) -> bool {
            matches!(self.slots, Slots::File { .. }) || self.paths.has_file()
        }
    }

    #[test]
    fn what_came_and_went_leaves_no_room_taken() {
        for memory_bytes in [0, 4 << 10, 1 << 20] {
            let mut table = Table::new(memory_bytes);
            table.insert((1, u64::MAX), 1, b"stays", (2, 1)).unwrap();
            for inode in 0..100_000 {
                table.insert((1, inode), 1, &[b'p'; 50], (2, inode)).unwrap();
                let copy = table.see((1, inode)).unwrap().unwrap();
                assert_eq!(copy.mark, (2, inode));
            }
            assert_eq!(table.count(), 1);
            assert_eq!(table.slots.count(), LEAST_SLOTS);
            assert!(table.paths.length_bytes() <= 2 * TOLERATED_WASTE_BYTES);
            assert_eq!(table.see((1, u64::MAX)).unwrap().unwrap().path, b"stays");
            assert_eq!(table.see((1, u64::MAX)).unwrap(), None);
        }
    }

    #[test]
    fn a_table_in_a_file_comes_back_to_memory_when_it_is_small_again() {
        let mut table = Table::new(16 << 10);
        for inode in 0..5_000 {
            table.insert((1, inode), 1, b"path", (2, inode)).unwrap();
        }
        assert!(matches!(table.slots, Slots::File { .. }));
        for inode in 0..5_000 {
            assert!(table.see((1, inode)).unwrap().is_some());
        }
        for inode in 0..20_000 {
            table.insert((1, inode), 1, b"path", (2, inode)).unwrap();
            assert!(table.see((1, inode)).unwrap().is_some());
        }
        assert!(matches!(table.slots, Slots::Memory(_)));
    }
}
