//! A digest as digits: hexadecimal of either case, or base64 as `cksum --base64` writes it.

use flatout_io::digest::{Algorithm, Digest};

/// Appends the lower-case hexadecimal digits.
pub fn append(line: &mut Vec<u8>, digest: &Digest) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in digest.as_bytes() {
        line.push(DIGITS[usize::from(byte >> 4)]);
        line.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Reads the digits of a digest; `None` when they are none of this algorithm's.
pub fn parse(algorithm: Algorithm, digits: &[u8]) -> Option<Digest> {
    Digest::parse(algorithm, digits).or_else(|| {
        let bytes = from_base64(digits)?;
        (bytes.len() == algorithm.length_bytes()).then(|| Digest::new(algorithm, &bytes))
    })
}

/// Whether these could be the digits of some digest.
pub fn are_digits(digits: &[u8]) -> bool {
    let is_hex = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    !digits.is_empty() && (is_hex || from_base64(digits).is_some())
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
