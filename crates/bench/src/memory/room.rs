//! How much memory this area may take: 60 % of what is free, to the machine and to its control
//! group.

use std::path::Path;

use flatout_sys::memory;
use flatout_sys::quota::Groups;

/// Part of the free memory that may be taken, in percent. The rest is for those who come next: a
/// machine without free memory measures its swap.
const PERCENT: u64 = 60;
/// What counts as free where the kernel does not say: any machine that runs this has it.
const ASSUMED_BYTES: u64 = 256 << 20;

/// What may be taken, and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that may be taken.
    pub bytes: u64,
    /// What the machine has free; none if the kernel does not say.
    pub available_bytes: Option<u64>,
    /// What is left of the control group's limit; none without a limit.
    pub group_bytes: Option<u64>,
}

impl Room {
    /// The room where so much is free.
    pub fn of(available_bytes: Option<u64>, group_bytes: Option<u64>) -> Self {
        let room = Self { bytes: 0, available_bytes, group_bytes };
        Self { bytes: room.free_bytes() / 100 * PERCENT, ..room }
    }

    /// What is free, to the machine and to its control group.
    pub fn free_bytes(&self) -> u64 {
        let free = self.available_bytes.unwrap_or(ASSUMED_BYTES);
        self.group_bytes.map_or(free, |bytes| bytes.min(free))
    }

    /// The room on this machine now.
    ///
    /// Cost: some small files of /proc and of the control groups are read.
    pub fn now() -> Self {
        let groups = Groups::discover(Path::new("/"));
        Self::of(memory::available_bytes(), groups.memory_left_bytes())
    }

    /// What limits it, in words.
    pub fn reason(&self) -> String {
        match (self.available_bytes, self.group_bytes) {
            (available, Some(group)) if available.is_none_or(|bytes| group < bytes) => {
                format!("{PERCENT} % of the {group} bytes left to the control group")
            }
            (Some(available), _) => format!("{PERCENT} % of {available} free bytes"),
            (None, _) => format!("the kernel does not say what is free: {ASSUMED_BYTES} assumed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcer_one_decides() {
        let room = |available, group| Room::of(available, group).bytes;
        assert_eq!(room(Some(10_000), None), 6_000);
        assert_eq!(room(Some(10_000), Some(1_000)), 600);
        assert_eq!(room(Some(10_000), Some(20_000)), 6_000);
        assert_eq!(room(None, Some(1_000)), 600);
        assert_eq!(room(None, None), ASSUMED_BYTES / 100 * 60);
        assert_eq!(room(Some(0), None), 0);
        assert_eq!(room(Some(u64::MAX), None) / 60, u64::MAX / 100);
    }

    #[test]
    fn the_reason_names_what_decides() {
        let reason = |available, group| Room::of(available, group).reason();
        assert_eq!(reason(Some(10_000), None), "60 % of 10000 free bytes");
        assert_eq!(reason(Some(10_000), Some(20_000)), "60 % of 10000 free bytes");
        assert!(reason(Some(10_000), Some(1_000)).contains("1000 bytes left to the control group"));
        assert!(reason(None, Some(1_000)).contains("control group"));
        assert!(reason(None, None).contains("does not say"));
    }

    #[test]
    fn this_machine_has_some() {
        let room = Room::now();
        assert!(
            room.bytes < 1 << 50 && room.available_bytes.is_none_or(|bytes| bytes > room.bytes)
        );
    }
}
