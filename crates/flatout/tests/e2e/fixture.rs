//! Files with known contents, and what must come out of reading them, computed the plain way.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A small generator, so that a seed is all that a failure has to name (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// The seed of this run: from `FLATOUT_TEST_SEED`, else new each time in a full run, which explores,
/// and always the same in an ordinary one, which says whether a change broke something. Failures
/// print it.
pub fn seed() -> u64 {
    if let Ok(given) = std::env::var("FLATOUT_TEST_SEED") {
        return given.parse().expect("FLATOUT_TEST_SEED is a number");
    }
    if !is_full() {
        return 20_261_123;
    }
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    now.as_nanos() as u64
}

/// Whether everything is to be tested rather than a sample.
pub fn is_full() -> bool {
    std::env::var_os("FLATOUT_TEST_FULL").is_some_and(|value| value == "1")
}

/// Bytes without pattern; the same for the same seed, and others than the program makes of it.
pub fn random_bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = vec![0; length.next_multiple_of(8)];
    for word in bytes.as_chunks_mut().0 {
        *word = random.next().to_le_bytes();
    }
    bytes.truncate(length);
    bytes
}

/// A file of [`random_bytes`]; returns its contents.
pub fn random_file(path: &Path, length: usize, seed: u64) -> Vec<u8> {
    let bytes = random_bytes(length, seed);
    fs::write(path, &bytes).unwrap();
    bytes
}

/// A file of zeros that are really stored.
pub fn zero_file(path: &Path, length: usize) {
    fs::write(path, vec![0; length]).unwrap();
}

/// A file that is nothing but a hole, except for one word of data at its end.
pub fn sparse_file(path: &Path, length: u64) {
    let file = OpenOptions::new().write(true).create_new(true).open(path).unwrap();
    file.set_len(length).unwrap();
    file.write_all_at(b"end.", length - 4).unwrap();
}

/// A file so long that no test lives to see its end; it takes no space.
pub fn endless_file(path: &Path) {
    File::create_new(path).unwrap().set_len(1 << 40).unwrap();
}

/// xor32 by its definition: little-endian 32-bit words, the tail padded with zeros, all XORed.
pub fn xor32(bytes: &[u8]) -> u32 {
    let (words, tail) = bytes.as_chunks();
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    words.iter().fold(u32::from_le_bytes(last), |digest, word| digest ^ u32::from_le_bytes(*word))
}

/// [`xor32`] as flatout writes it.
pub fn xor32_hex(bytes: &[u8]) -> String {
    format!("{:08x}", xor32(bytes))
}

#[test]
fn the_reference_digest_follows_its_definition() {
    assert_eq!(xor32(b""), 0);
    assert_eq!(xor32_hex(b"abcd"), "64636261");
    assert_eq!(xor32_hex(b"a"), "00000061", "the tail is padded");
    assert_eq!(xor32_hex(b"abcda"), "64636200");
}

#[test]
fn a_shorter_random_file_is_the_beginning_of_a_longer_one() {
    assert_eq!(random_bytes(13, 7), random_bytes(100, 7)[..13]);
    assert_ne!(random_bytes(16, 7), random_bytes(16, 8));
}
