//! Slots of the table of links: an array in memory, or the same array in a file without a name.

use crate::copy::Refusal;
use crate::spool::unnamed::Unnamed;
use crate::wire::{goes_by_fields, message, take};

/// Bytes of a slot, in memory as in the file.
pub(super) const SLOT_BYTES: usize = 32;
/// Slots that are looked at in one go: half a page. With three quarters of all slots in use, who is
/// not there is missed after 8.5 slots on average, who is there found after 2.5.
pub(super) const WINDOW_SLOTS: usize = 16;

/// What stands in [`Slot::state`]: nothing yet, something that was let go, a copy of which no path is kept, or
/// (from here on) where the path of the copy is. What a file has where nothing was written is 0.
pub(super) const EMPTY: u64 = 0;
pub(super) const GONE: u64 = 1;
pub(super) const NO_PATH: u64 = 2;
pub(super) const FIRST_PATH: u64 = 3;

/// A source and its copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) source_inode: u64,
    pub(super) target_inode: u64,
    pub(super) state: u64,
    pub(super) names_left: u32,
    /// Which pair of devices, as the table counts them.
    pub(super) pair: u32,
}

impl Slot {
    pub(super) fn is_in_use(&self) -> bool {
        self.state >= NO_PATH
    }

    /// Where the path is, if there is one.
    pub(super) fn path(&self) -> Option<u64> {
        self.state.checked_sub(FIRST_PATH)
    }
}

goes_by_fields!(Slot { source_inode, target_inode, state, names_left, pair });

/// A few slots that stand one behind the other.
pub(super) type Window = [Slot; WINDOW_SLOTS];

/// An array of slots, all empty at first. Its length is a power of two, a window or more.
#[derive(Debug)]
pub(super) enum Slots {
    Memory(Vec<Slot>),
    File { file: Unnamed, count: usize },
}

impl Slots {
    /// In memory; none takes no memory.
    pub(super) fn in_memory(count: usize) -> Self {
        Self::Memory(vec![Slot::default(); count])
    }

    /// In a file, which takes room only where something is written.
    pub(super) fn in_file(count: usize) -> Result<Self, Refusal> {
        let file = Unnamed::new()?;
        file.set_length((count * SLOT_BYTES) as u64)?;
        file.expect_random_reads();
        Ok(Self::File { file, count })
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Memory(slots) => slots.len(),
            Self::File { count, .. } => *count,
        }
    }

    /// Bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Memory(slots) => slots.capacity() * SLOT_BYTES,
            Self::File { .. } => 0,
        }
    }

    /// The slots from `begin` on: a window, or what is there before the end.
    pub(super) fn window<'a>(
        &'a self,
        begin: usize,
        space: &'a mut Window,
    ) -> Result<&'a [Slot], Refusal> {
        let end = self.count().min(begin + WINDOW_SLOTS);
        match self {
            Self::Memory(slots) => Ok(&slots[begin..end]),
            Self::File { file, .. } => {
                let mut bytes = [0; WINDOW_SLOTS * SLOT_BYTES];
                let bytes = &mut bytes[..(end - begin) * SLOT_BYTES];
                file.read((begin * SLOT_BYTES) as u64, bytes)?;
                let from = &mut &*bytes;
                for slot in &mut space[..end - begin] {
                    *slot = take(from).expect("the window was read whole");
                }
                Ok(&space[..end - begin])
            }
        }
    }

    pub(super) fn set(&mut self, index: usize, slot: Slot) -> Result<(), Refusal> {
        match self {
            Self::Memory(slots) => slots[index] = slot,
            Self::File { file, .. } => {
                file.write((index * SLOT_BYTES) as u64, &message(&[&slot]))?
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_the_same_in_memory_and_in_the_file() {
        assert_eq!(size_of::<Slot>(), SLOT_BYTES);
        let mut both = [Slots::in_memory(32), Slots::in_file(32).unwrap()];
        let slot =
            Slot { source_inode: u64::MAX, target_inode: 2, state: 3, names_left: 4, pair: 5 };
        for slots in &mut both {
            slots.set(30, slot).unwrap();
            let mut space = Window::default();
            let window = slots.window(20, &mut space).unwrap();
            assert_eq!(window.len(), 12);
            assert_eq!((window[10], window[11]), (slot, Slot::default()));
            assert_eq!(slots.count(), 32);
        }
        assert_eq!(both.map(|slots| slots.memory_bytes()), [32 * SLOT_BYTES, 0]);
    }
}
