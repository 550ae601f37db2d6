//! What is in a file: lengths around which copiers err, and holes everywhere.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::fixture::{Random, random_bytes};

/// Lengths at the edges of pages, of buffers and of what fits into an inode.
const LENGTHS: [usize; 14] = [
    0,
    1,
    60,
    511,
    4095,
    4096,
    4097,
    65_535,
    65_536,
    65_537,
    131_072,
    131_073,
    300_001,
    (1 << 20) + 3,
];

/// Data without a hole; some of it zeros.
pub fn dense(file: &File, random: &mut Random) {
    let length = LENGTHS[random.below(LENGTHS.len())];
    let mut bytes = random_bytes(length, random.next());
    if length > 20_000 && random.below(2) == 0 {
        bytes[4096..16_384].fill(0);
    }
    file.write_all_at(&bytes, 0).unwrap();
}

/// A hole at the start, at the end, throughout, or nothing else.
pub fn sparse(file: &File, random: &mut Random, largest_hole_bytes: u64) {
    let hole = match random.below(3) {
        0 => largest_hole_bytes,
        1 => (1 << 20).min(largest_hole_bytes),
        _ => 128 << 10,
    };
    let data = random_bytes(1 + random.below(20_000), random.next());
    let length_bytes = data.len() as u64;
    match random.below(5) {
        0 => file.write_all_at(&data, hole).unwrap(),
        1 => {
            file.write_all_at(&data, 0).unwrap();
            file.set_len(hole + length_bytes).unwrap();
        }
        2 => {
            for step in 0..12 {
                file.write_all_at(&data, step * (64 << 10) + step % 2 * 5000).unwrap();
            }
            file.set_len((1 << 20) + 17).unwrap();
        }
        3 => file.set_len(hole).unwrap(),
        _ => {
            file.write_all_at(&data, hole / 2).unwrap();
            file.set_len(hole + 1).unwrap();
        }
    }
}
