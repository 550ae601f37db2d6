//! A digest from front to end, by the libraries.

use sha2::Digest as _;
use twox_hash::xxhash3_128;

use super::algorithm::{Algorithm, Digest};
use super::xor32::Xor32;
use flatout_sys::view::ByteView;

/// Takes the bytes of a file in order.
pub struct Hasher(State);

enum State {
    Blake3(Box<blake3::Hasher>),
    Xxh3(Box<xxhash3_128::Hasher>),
    Crc32c(u32),
    Sha256(sha2::Sha256),
    Xor32 { digest: Xor32, length_bytes: u64 },
}

impl Hasher {
    /// The digest of nothing yet.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Blake3 => State::Blake3(Box::default()),
            Algorithm::Xxh3 => State::Xxh3(Box::new(xxhash3_128::Hasher::new())),
            Algorithm::Crc32c => State::Crc32c(0),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Xor32 => State::Xor32 { digest: Xor32::default(), length_bytes: 0 },
        })
    }

    /// Takes in the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Blake3(hasher) => _ = hasher.update(bytes),
            State::Xxh3(hasher) => hasher.write(bytes),
            State::Crc32c(sum) => *sum = crc32c::crc32c_append(*sum, bytes),
            State::Sha256(hasher) => hasher.update(bytes),
            State::Xor32 { digest, length_bytes } => {
                digest.update(*length_bytes, ByteView::of(bytes));
                *length_bytes += bytes.len() as u64;
            }
        }
    }

    /// The digest of all bytes taken in.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Blake3(hasher) => Digest::new(Algorithm::Blake3, hasher.finalize().as_bytes()),
            State::Xxh3(hasher) => Digest::new(Algorithm::Xxh3, &hasher.finish_128().to_be_bytes()),
            State::Crc32c(sum) => Digest::new(Algorithm::Crc32c, &sum.to_be_bytes()),
            State::Sha256(hasher) => Digest::new(Algorithm::Sha256, &hasher.finalize()),
            State::Xor32 { digest, .. } => Digest::new(Algorithm::Xor32, &digest.0.to_be_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(algorithm: Algorithm, bytes: &[u8]) -> String {
        let mut hasher = Hasher::new(algorithm);
        bytes.chunks(7).for_each(|chunk| hasher.update(chunk));
        hasher.finish().to_string()
    }

    #[test]
    fn published_values() {
        let blake3 = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(of(Algorithm::Blake3, b""), blake3);
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of(Algorithm::Sha256, b"abc"), sha256);
        // RFC 3720, B.4, and the check value of the catalogue of CRCs.
        assert_eq!(of(Algorithm::Crc32c, &[0; 32]), "8a9136aa");
        assert_eq!(of(Algorithm::Crc32c, b"123456789"), "e3069283");
        assert_eq!(of(Algorithm::Xxh3, b""), "99aa06d3014798d86001c324468d497f");
        assert_eq!(
            of(Algorithm::Xor32, b"abcdefghi"),
            format!("{:08x}", {
                let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
                word(b"abcd") ^ word(b"efgh") ^ word(b"i\0\0\0")
            })
        );
    }
}
