//! What one line of a manifest says.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use flatout_io::digest::{Algorithm, Digest};

use super::{LineEnd, digits, escape};

/// Longer words before a parenthesis are no tags.
const MAX_TAG_BYTES: usize = 24;

/// The tag of openssl for SHA-256, besides [`Algorithm::tag`].
const OTHER_SHA256_TAG: &[u8] = b"SHA2-256";

/// xxhsum's tag for an XXH128 whose bytes are turned around.
const LITTLE_ENDIAN_TAG: &[u8] = b"XXH128_LE";

/// A file and what it is expected to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The file, byte for byte.
    pub name: OsString,
    /// The digest. A line without a tag can mean several, one for each algorithm.
    pub digests: Vec<Digest>,
    /// No word of the line says of which algorithm it is.
    pub is_untagged: bool,
}

impl Entry {
    /// Puts the digest of this algorithm first, if there is one.
    pub fn prefer(&mut self, algorithm: Algorithm) {
        self.digests.sort_by_key(|digest| digest.algorithm() != algorithm);
    }
}

/// Why a line says nothing that could be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is no line of a manifest.
    #[error("not the line of a digest")]
    Malformed,
    /// It is longer than any that is read.
    #[error("longer than {} bytes", super::MAX_LINE_BYTES)]
    TooLong,
    /// It holds the digest of an algorithm that is not known here.
    #[error("{0} is not among the digests")]
    Foreign(String),
    /// It holds the digest of another algorithm than the one asked for.
    #[error("{0} is not the digest asked for")]
    Unasked(&'static str),
}

/// Reads a line without its end. `None`: there is nothing in it, or a comment.
///
/// A carriage return at the end of a name is the name's; elsewhere it means nothing.
/// `asked` is the algorithm that is asked for; without one, a line is what it looks like.
pub fn parse(line: &[u8], end: LineEnd, asked: Option<Algorithm>) -> Option<Result<Entry, Fault>> {
    let text = &line[line.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?..];
    if text == b"\r" {
        return None;
    }
    if line[0] == b'#' {
        return None;
    }
    let (text, spelling): (_, Spelling) = match (text.strip_prefix(b"\\"), end) {
        (Some(rest), LineEnd::Feed) => (rest, escape::unescaped),
        _ => (text, |name| Some(name.to_vec())),
    };
    let Some([tag, written, digits]) = tagged(text) else {
        return Some(untagged(text, spelling, asked).ok_or(Fault::Malformed));
    };
    let entry = of_tag(tag, digits).and_then(|digest| match asked {
        Some(asked) if asked != digest.algorithm() => Err(Fault::Unasked(digest.algorithm().tag())),
        _ => {
            let name = name(written, spelling).ok_or(Fault::Malformed)?;
            Ok(Entry { name, digests: vec![digest], is_untagged: false })
        }
    });
    Some(entry)
}

/// The name that is written so, if one is.
type Spelling = fn(&[u8]) -> Option<Vec<u8>>;

fn name(bytes: &[u8], spelling: Spelling) -> Option<OsString> {
    let name = spelling(bytes)?;
    // The kernel knows neither.
    (!name.is_empty() && !name.contains(&0)).then(|| OsString::from_vec(name))
}

/// Tag, name and digits of `TAG (NAME) = DIGITS`, as cksum, b3sum, xxhsum and the BSDs write it;
/// `TAG(NAME)= DIGITS` is openssl's.
fn tagged(text: &[u8]) -> Option<[&[u8]; 3]> {
    let is_tag = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_/".contains(byte);
    let tag_bytes = text.iter().take(MAX_TAG_BYTES + 1).take_while(|byte| is_tag(byte)).count();
    let (tag, rest) = text.split_at(tag_bytes);
    if tag.is_empty() || tag_bytes > MAX_TAG_BYTES {
        return None;
    }
    let rest = rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"(")?;
    // A name may hold anything, but digits hold no parenthesis: the last one ends the name.
    let close = rest.iter().rposition(|&byte| byte == b')')?;
    let digits = rest[close + 1..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let digits = digits.strip_suffix(b"\r").unwrap_or(digits);
    digits::are_digits(digits).then_some([tag, &rest[..close], digits])
}

fn of_tag(tag: &[u8], digits: &[u8]) -> Result<Digest, Fault> {
    let is_own = |known: &Algorithm| known.tag().as_bytes() == tag;
    let algorithm = match tag {
        LITTLE_ENDIAN_TAG => Some(Algorithm::Xxh3),
        OTHER_SHA256_TAG => Some(Algorithm::Sha256),
        _ => Algorithm::ALL.into_iter().find(is_own),
    };
    let foreign = || Fault::Foreign(String::from_utf8_lossy(tag).into_owned());
    let digest = digits::parse(algorithm.ok_or_else(foreign)?, digits).ok_or(Fault::Malformed)?;
    if tag != LITTLE_ENDIAN_TAG {
        return Ok(digest);
    }
    let turned: Vec<u8> = digest.as_bytes().iter().rev().copied().collect();
    Ok(Digest::new(digest.algorithm(), &turned))
}

/// `DIGITS  NAME` or `DIGITS *NAME`; with one space, `DIGITS NAME` of the BSDs.
fn untagged(text: &[u8], spelling: Spelling, asked: Option<Algorithm>) -> Option<Entry> {
    let blank = text.iter().position(|byte| matches!(byte, b' ' | b'\t'))?;
    let (digits, rest) = text.split_at(blank);
    let bytes = digits::bytes(digits)?;
    let digests: Vec<Digest> = Algorithm::ALL
        .into_iter()
        .filter(|&algorithm| asked.is_none_or(|asked| asked == algorithm))
        .filter_map(|algorithm| digits::digest(algorithm, &bytes))
        .collect();
    if digests.is_empty() {
        return None;
    }
    let rest = &rest[1..];
    let rest = match rest {
        [b' ' | b'*', name @ ..] if !name.is_empty() => name,
        rest => rest,
    };
    Some(Entry { name: name(rest, spelling)?, digests, is_untagged: true })
}
