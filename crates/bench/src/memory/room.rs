//! How much memory this area may take: 60 % of what is free, to the machine, to its control group,
//! and to this process.

use std::path::Path;

use flatout_measure::size_text;
use flatout_sys::{AlignedBuffer, Groups, memory, monotonic_ns, numa};
use rustix::param::page_size;

/// Part of the free memory that may be taken, in percent. The rest is for those who come next: a
/// machine without free memory measures its swap.
const PERCENT: u64 = 60;
/// What counts as free where the kernel does not say: any machine that runs this has it.
const ASSUMED_BYTES: u64 = 256 << 20;

/// What may be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Bytes that may be taken.
    pub bytes: u64,
    /// What is free, to the machine, to its control group and to this process.
    pub free_bytes: u64,
    /// What limits it, in words.
    pub reason: String,
}

impl Room {
    /// The room where so much is free to the machine, and left of the limits of its control group and on the
    /// addresses of this process; none where the kernel does not say, and without a limit.
    pub fn of(
        available_bytes: Option<u64>,
        group_bytes: Option<u64>,
        address_bytes: Option<u64>,
    ) -> Self {
        let machine_bytes = available_bytes.unwrap_or(ASSUMED_BYTES);
        let limits =
            [(group_bytes, "left to the control group"), (address_bytes, "that ulimit leaves")];
        let known = limits.into_iter().filter_map(|(left, whose)| Some((left?, whose)));
        let limit = known.min_by_key(|(left, _)| *left).filter(|(left, _)| *left < machine_bytes);
        let free_bytes = limit.map_or(machine_bytes, |(left, _)| left);
        let free = size_text(free_bytes);
        let reason = match (limit, available_bytes) {
            (Some((_, whose)), _) => format!("{PERCENT} % of the {free} {whose}"),
            (None, Some(_)) => format!("{PERCENT} % of {free} that are free"),
            (None, None) => format!("the kernel does not say what is free: {free} assumed"),
        };
        Self { bytes: free_bytes / 100 * PERCENT, free_bytes, reason }
    }

    /// The room on this machine now.
    ///
    /// Cost: some small files of /proc and of the control groups are read.
    pub fn now() -> Self {
        Self::on(None)
    }

    /// The same on one memory node, where one is named.
    pub fn on(node: Option<u32>) -> Self {
        let root = Path::new("/");
        let of_node = node.and_then(|node| numa::free_bytes(root, node));
        let available = memory::machine_available_bytes().into_iter().chain(of_node).min();
        let left = memory::address_space_left_bytes();
        Self::of(available, Groups::discover(root).memory_left_bytes(), left)
    }
}

/// Memory is touched so much at a time before the clock is looked at.
const PIECE_BYTES: u64 = 16 << 20;

/// How much memory can be had in a time, up to `wanted_bytes`, and what that is where it is less. What the
/// hypervisor has yet to find comes ten times slower than what somebody gave back, and nothing tells them
/// apart but touching it; what was had here is had quickly once more.
///
/// Cost: the memory is touched and given back.
pub fn had_in(time_ns: u64, wanted_bytes: u64) -> (u64, Option<&'static str>) {
    let begun_ns = monotonic_ns();
    let (mut pieces, mut had_bytes) = (Vec::new(), 0);
    while had_bytes < wanted_bytes {
        if monotonic_ns().saturating_sub(begun_ns) >= time_ns {
            return (had_bytes, Some("what memory can be had in the time"));
        }
        let piece_bytes = PIECE_BYTES.min(wanted_bytes - had_bytes);
        let Ok(mut piece) = AlignedBuffer::new(piece_bytes as usize) else {
            return (had_bytes, Some("what memory the kernel grants"));
        };
        piece.as_mut_slice().iter_mut().step_by(page_size()).for_each(|byte| *byte = 1);
        std::hint::black_box(piece.as_slice());
        had_bytes += piece_bytes;
        pieces.push(piece);
    }
    (had_bytes, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcer_one_decides() {
        let room = |available, group| Room::of(available, group, None).bytes;
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
        let reason = |available, group| Room::of(available, group, None).reason;
        assert_eq!(reason(Some(10_000), None), "60 % of 10 kB that are free");
        assert_eq!(reason(Some(10_000), Some(20_000)), "60 % of 10 kB that are free");
        assert!(reason(Some(10_000), Some(1_000)).contains("1000 bytes left to the control group"));
        assert!(reason(None, Some(1_000)).contains("control group"));
        assert!(reason(None, None).contains("does not say"));
        let bounded = Room::of(Some(10_000), Some(5_000), Some(2_000));
        assert_eq!(bounded.bytes, 1_200);
        assert_eq!(bounded.reason, "60 % of the 2 kB that ulimit leaves");
    }

    #[test]
    fn as_much_is_had_as_is_wanted_and_nothing_in_no_time() {
        assert_eq!(had_in(u64::MAX, (17 << 20) + 5), ((17 << 20) + 5, None));
        assert_eq!(had_in(u64::MAX, 0), (0, None));
        let (bytes, why) = had_in(0, 1 << 20);
        assert!(bytes == 0 && why.unwrap().contains("time"));
    }

    #[test]
    fn this_machine_has_some() {
        let room = Room::now();
        assert!(room.bytes < 1 << 50 && room.bytes < room.free_bytes);
    }
}
