//! Where a file has data, and a digest of it that does not depend on where the holes are.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// What a hole is made of everywhere: a page, and a block of the filesystems here.
pub const GRAIN_BYTES: u64 = 4096;

/// Read at once; a multiple of the grain.
const PIECE_BYTES: usize = 256 << 10;

/// The stretches that the kernel says hold data (lseek(2)).
pub fn data_of(file: &File, length_bytes: u64) -> Vec<Range<u64>> {
    let mut data: Vec<Range<u64>> = Vec::new();
    let mut position = 0;
    while position < length_bytes {
        let start = match seek(file, SeekFrom::Data(position)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            // A filesystem that knows no holes has data everywhere.
            Err(_) => return std::iter::once(0..length_bytes).collect(),
        };
        let end = seek(file, SeekFrom::Hole(start)).unwrap_or(length_bytes).min(length_bytes);
        assert!(start >= position && (end > start || start >= length_bytes), "{start} {end}");
        if start < end {
            data.push(start..end);
        }
        position = end.max(start);
    }
    data
}

/// The stretches between the data, cut down to whole grains; a last one reaches to the end.
pub fn holes_of(data: &[Range<u64>], length_bytes: u64) -> Vec<Range<u64>> {
    let starts = std::iter::once(0).chain(data.iter().map(|data| data.end));
    let ends = data.iter().map(|data| data.start).chain([length_bytes]);
    let holes = starts.zip(ends).map(|(start, end)| {
        let end = if end == length_bytes { end } else { end / GRAIN_BYTES * GRAIN_BYTES };
        start.next_multiple_of(GRAIN_BYTES)..end
    });
    holes.filter(|hole| hole.start < hole.end).collect()
}

/// The first byte of a hole that has data in it.
pub fn data_in_holes(holes: &[Range<u64>], data: &[Range<u64>]) -> Option<u64> {
    let overlap = |hole: &Range<u64>| {
        // Both lists are in order and without overlap.
        let first = data.partition_point(|data| data.end <= hole.start);
        let found = data.get(first).filter(|data| data.start < hole.end)?;
        Some(found.start.max(hole.start))
    };
    holes.iter().find_map(overlap)
}

/// A digest of all grains that are not zeros, and of where they are.
pub fn digest_of(file: &File, data: &[Range<u64>]) -> io::Result<u64> {
    let zeros = [0; GRAIN_BYTES as usize];
    let mut piece = vec![0; PIECE_BYTES];
    let mut digest = 0;
    for stretch in data {
        let mut offset = stretch.start / GRAIN_BYTES * GRAIN_BYTES;
        while offset < stretch.end {
            let length = read_full(file, &mut piece, offset)?;
            if length == 0 {
                break;
            }
            for (index, grain) in piece[..length].chunks(GRAIN_BYTES as usize).enumerate() {
                let position = offset + index as u64 * GRAIN_BYTES;
                if position < stretch.end && grain != &zeros[..grain.len()] {
                    digest ^= digest_at(grain, position);
                }
            }
            offset += length as u64;
        }
    }
    Ok(digest)
}

fn read_full(file: &File, piece: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match file.read_at(&mut piece[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// FNV over words of eight bytes, begun with the place, and mixed at the end so that XOR is safe.
fn digest_at(grain: &[u8], position: u64) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325 ^ position.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, tail) = grain.as_chunks();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    for word in words.iter().chain([&last]) {
        state = (state ^ u64::from_le_bytes(*word)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
    state ^= grain.len() as u64;
    (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a list of ranges is meant")]
fn holes_are_what_lies_between_data() {
    assert_eq!(holes_of(&[], 10_000), [0..10_000]);
    assert_eq!(holes_of(&[0..10_000], 10_000), []);
    assert_eq!(holes_of(&[5000..9000], 20_000), [0..4096, 12_288..20_000]);
    assert_eq!(holes_of(&[0..4096, 4097..8192], 8192), [], "less than a grain is none");
    assert_eq!(data_in_holes(&[0..4096, 12_288..20_000], &[4096..12_288]), None);
    assert_eq!(data_in_holes(&[0..4096, 12_288..20_000], &[4096..12_289]), Some(12_288));
    assert_eq!(data_in_holes(&[0..4096], &[0..1]), Some(0));
}

#[test]
fn the_digest_sees_each_byte_and_its_place_but_no_holes() {
    let digest = |bytes: &[u8]| {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        let all = 0..bytes.len() as u64;
        digest_of(&file, std::slice::from_ref(&all)).unwrap()
    };
    let mut bytes = crate::fixture::random_bytes(600_001, 1);
    let before = digest(&bytes);
    for place in [0, 4095, 262_143, 262_144, 600_000] {
        bytes[place] ^= 1;
        assert_ne!(digest(&bytes), before, "{place}");
        bytes[place] ^= 1;
    }
    bytes.copy_within(0..8192, 300_000 / 8192 * 8192);
    let doubled = digest(&bytes);
    bytes[0..8192].fill(0);
    assert_ne!(digest(&bytes), doubled, "equal grains at two places do not cancel out");
    let sparse = tempfile::tempfile().unwrap();
    sparse.set_len(1 << 30).unwrap();
    sparse.write_all_at(&[7; 10], 1 << 29).unwrap();
    let data = data_of(&sparse, 1 << 30);
    let wider = std::iter::once((1 << 29) - 100_000..(1 << 29) + 100_000).collect::<Vec<_>>();
    assert_eq!(digest_of(&sparse, &data).unwrap(), digest_of(&sparse, &wider).unwrap());
}
