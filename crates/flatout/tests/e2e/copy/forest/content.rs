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

/// A hole at the start, at the end, throughout, around data, or nothing else, as `index` says.
pub fn sparse(file: &File, random: &mut Random, (index, largest_hole_bytes): (usize, u64)) {
    let hole = match index / 5 % 3 {
        0 => largest_hole_bytes,
        1 => (1 << 20).min(largest_hole_bytes),
        _ => 128 << 10,
    };
    let data = random_bytes(1 + random.below(20_000), random.next());
    let data_bytes = data.len() as u64;
    // The length comes first: xfs reserves room for a file that grows, and would show that as
    // data for as long as it is cached.
    let set_length = |length_bytes: u64| file.set_len(length_bytes).unwrap();
    let write = |offset: u64| file.write_all_at(&data, offset).unwrap();
    match index % 5 {
        0 => {
            set_length(hole + data_bytes);
            write(hole);
        }
        1 => {
            set_length(hole + data_bytes);
            write(0);
        }
        2 => {
            set_length((1 << 20) + 17);
            (0..12).for_each(|step| write(step * (64 << 10) + step % 2 * 5000));
        }
        3 => set_length(hole),
        _ => {
            set_length(hole + 1);
            write(hole / 2);
        }
    }
}
