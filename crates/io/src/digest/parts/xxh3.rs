//! XXH3 of 128 bits in parts: sums of blocks from anywhere, joined in order.
//!
//! For inputs above 240 bytes with seed 0 and the default secret. What is parallel and why:
//! `sys::xxh3`. Source: the sections on long inputs of `doc/xxhash_spec.md` of xxHash 0.8.

use flatout_sys::view::ByteView;
use flatout_sys::xxh3::{BLOCK_BYTES, SECRET, STRIPE_BYTES, Sums, add_stripe, stripe_sums};

const PRIME32_1: u64 = 0x9E37_79B1;
const PRIME32_2: u64 = 0x85EB_CA77;
const PRIME32_3: u64 = 0xC2B2_AE3D;
const PRIME64_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME64_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME64_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME64_5: u64 = 0x27D4_EB2F_1656_67C5;

/// Where in the secret the step between blocks, the last stripe and the end take their keys.
const SCRAMBLE_KEY: usize = SECRET.len() - STRIPE_BYTES;
const LAST_STRIPE_KEY: usize = SECRET.len() - STRIPE_BYTES - 7;
const LOW_KEY: usize = 11;
const HIGH_KEY: usize = SECRET.len() - STRIPE_BYTES - 11;

/// What one segment adds.
#[derive(Debug)]
pub(super) struct Part {
    /// Its whole blocks, but not the file's last one.
    sums: Vec<Sums>,
    /// What follows them in the last segment: 1 to 1024 bytes.
    rest: Vec<u8>,
    /// Its last stripe, or all of it where it is shorter.
    end: Vec<u8>,
}

impl Part {
    /// Of a segment that begins with a block.
    pub(super) fn of(file_bytes: u64, offset_bytes: u64, bytes: ByteView<'_>) -> Self {
        let file_blocks = (file_bytes - 1) / BLOCK_BYTES as u64;
        let blocks_left = file_blocks - offset_bytes / BLOCK_BYTES as u64;
        let blocks = (bytes.len() / BLOCK_BYTES).min(blocks_left as usize);
        let mut sums = vec![[0; 8]; blocks];
        bytes.xxh3_block_sums(&mut sums);
        let rest = copied(bytes, blocks * BLOCK_BYTES);
        let end = copied(bytes, bytes.len().saturating_sub(STRIPE_BYTES));
        Self { sums, rest, end }
    }
}

fn copied(bytes: ByteView<'_>, from: usize) -> Vec<u8> {
    let part = bytes.part(from, bytes.len() - from);
    let mut copy = vec![0; part.len()];
    part.copy_to(&mut copy);
    copy
}

/// The state between blocks.
pub(super) struct Fold {
    file_bytes: u64,
    state: Sums,
    rest: Vec<u8>,
    /// The last bytes seen, a stripe of them from the second segment on.
    end: Vec<u8>,
}

impl Fold {
    pub(super) fn new(file_bytes: u64) -> Self {
        let state = [
            PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1,
        ];
        Self { file_bytes, state, rest: Vec::new(), end: Vec::new() }
    }

    /// Takes in the next segment.
    pub(super) fn join(&mut self, part: Part) {
        for sums in &part.sums {
            for ((lane, sum), key) in self.state.iter_mut().zip(sums).zip(keys(SCRAMBLE_KEY)) {
                let added = lane.wrapping_add(*sum);
                *lane = (added ^ (added >> 47) ^ key).wrapping_mul(PRIME32_1);
            }
        }
        self.rest = part.rest;
        self.end.extend(part.end);
        self.end.drain(..self.end.len().saturating_sub(STRIPE_BYTES));
    }

    /// The 128 bits.
    pub(super) fn finish(mut self) -> u128 {
        // The last stripe is taken from the end of the input and may overlap the one before.
        let stripes = (self.rest.len() - 1) / STRIPE_BYTES;
        let sums = stripe_sums(&self.rest[..stripes * STRIPE_BYTES]);
        for (lane, sum) in self.state.iter_mut().zip(sums) {
            *lane = lane.wrapping_add(sum);
        }
        add_stripe(&mut self.state, &self.end, &SECRET[LAST_STRIPE_KEY..]);
        let low = self.merge(LOW_KEY, self.file_bytes.wrapping_mul(PRIME64_1));
        let high = self.merge(HIGH_KEY, !self.file_bytes.wrapping_mul(PRIME64_2));
        u128::from(high) << 64 | u128::from(low)
    }

    fn merge(&self, key: usize, start: u64) -> u64 {
        let keyed: Vec<u64> =
            self.state.iter().zip(keys(key)).map(|(lane, key)| lane ^ key).collect();
        let sum = keyed.chunks_exact(2).fold(start, |sum, pair| {
            let product = u128::from(pair[0]) * u128::from(pair[1]);
            sum.wrapping_add(product as u64 ^ (product >> 64) as u64)
        });
        let mixed = (sum ^ (sum >> 37)).wrapping_mul(0x1656_6791_9E37_79F9);
        mixed ^ (mixed >> 32)
    }
}

/// The words of the secret from a byte on.
fn keys(from: usize) -> impl Iterator<Item = u64> {
    SECRET[from..].chunks_exact(8).map(|key| u64::from_le_bytes(key.try_into().expect("eight")))
}
