//! The algorithms by name, and a digest as a value.

use std::fmt;

flatout_sys::words! {
    /// How a digest is computed.
    #[derive(Hash)]
    pub enum Algorithm: name, ALL {
        /// BLAKE3 with 256 bits.
        Blake3 = "blake3",
        /// XXH3 with 128 bits and seed 0: fast, no protection against intent.
        Xxh3 = "xxh3",
        /// CRC-32C (Castagnoli): detects the errors of links and disks.
        Crc32c = "crc32c",
        /// SHA-256 (FIPS 180-4).
        Sha256 = "sha256",
        /// All little-endian 32-bit words XORed, the tail padded with zero bytes.
        Xor32 = "xor32",
    }
}

impl Algorithm {
    /// The name in a tagged line, `TAG (FILE) = DIGEST`, as b3sum, xxhsum and cksum write it.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Blake3 => "BLAKE3",
            Self::Xxh3 => "XXH128",
            Self::Crc32c => "CRC32C",
            Self::Sha256 => "SHA256",
            Self::Xor32 => "XOR32",
        }
    }

    /// Length of the digest.
    pub fn length_bytes(self) -> usize {
        match self {
            Self::Blake3 | Self::Sha256 => 32,
            Self::Xxh3 => 16,
            Self::Crc32c | Self::Xor32 => 4,
        }
    }
}

/// A digest and the algorithm that gave it. Shown in lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: [u8; 32],
}

impl Digest {
    /// A digest from its bytes, in the order in which they are shown.
    ///
    /// Panics: when there are not [`Algorithm::length_bytes`] of them.
    pub fn new(algorithm: Algorithm, digest: &[u8]) -> Self {
        assert_eq!(digest.len(), algorithm.length_bytes(), "a digest has one length");
        let mut bytes = [0; 32];
        bytes[..digest.len()].copy_from_slice(digest);
        Self { algorithm, bytes }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The bytes, in the order in which they are shown.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.algorithm.length_bytes()]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.as_bytes()) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        let text = &text[..2 * self.as_bytes().len()];
        formatter.write_str(std::str::from_utf8(text).expect("digits are ASCII"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_in_hexadecimal_digits() {
        for algorithm in Algorithm::ALL {
            let bytes: Vec<u8> =
                (0..algorithm.length_bytes() as u8).map(|n| n.wrapping_mul(37)).collect();
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(Digest::new(algorithm, &bytes).to_string(), digits);
        }
    }
}
