//! A digest as digits: hexadecimal of either case, or base64 as `cksum --base64` writes it.

use flatout_io::digest::{Algorithm, Digest};

/// The longest digest.
const MAX_BYTES: usize = 32;

/// The bytes that digits stand for; `None`: they are none, or more than any digest has.
pub fn bytes(digits: &[u8]) -> Option<Vec<u8>> {
    if digits.is_empty() || digits.len() > 2 * MAX_BYTES {
        return None;
    }
    from_hex(digits).or_else(|| from_base64(digits).filter(|read| read.len() <= MAX_BYTES))
}

/// The digest of this algorithm that the bytes are, if they are as many as it has.
pub fn digest(algorithm: Algorithm, bytes: &[u8]) -> Option<Digest> {
    (bytes.len() == algorithm.length_bytes()).then(|| Digest::new(algorithm, bytes))
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let value = |digit| char::from(digit).to_digit(16);
    pairs.iter().map(|pair| Some((value(pair[0])? << 4 | value(pair[1])?) as u8)).collect()
}

/// Reads the digits of a digest; `None` when they are none of this algorithm's.
pub fn parse(algorithm: Algorithm, digits: &[u8]) -> Option<Digest> {
    digest(algorithm, &bytes(digits)?)
}

/// Whether these could be the digits of some digest.
pub fn are_digits(digits: &[u8]) -> bool {
    !digits.is_empty() && (from_hex(digits).is_some() || from_base64(digits).is_some())
}

/// Base64 with its padding (RFC 4648, 4).
fn from_base64(digits: &[u8]) -> Option<Vec<u8>> {
    if digits.is_empty() || !digits.len().is_multiple_of(4) {
        return None;
    }
    let padding = digits.iter().rev().take_while(|&&digit| digit == b'=').count();
    if padding > 2 {
        return None;
    }
    let digits = &digits[..digits.len() - padding];
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for &digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // Bits left over that are not zero stand in no encoding.
    (bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_and_base64_are_the_same_digest() {
        let hex = b"BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let base64 = b"ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
        let digest = parse(Algorithm::Sha256, hex);
        assert!(digest.is_some());
        assert_eq!(parse(Algorithm::Sha256, base64), digest);
        assert_eq!(parse(Algorithm::Xxh3, base64), None);
        assert_eq!(parse(Algorithm::Sha256, &base64[1..]), None);
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        assert_eq!(from_base64(b"TWFu").as_deref(), Some(b"Man".as_slice()));
        assert_eq!(from_base64(b"TQ==").as_deref(), Some(b"M".as_slice()));
        for wrong in [b"T===".as_slice(), b"TQ=", b"TR==", b"T=Fu", b"T!Fu", b""] {
            assert_eq!(from_base64(wrong), None, "{wrong:?}");
        }
    }
}
