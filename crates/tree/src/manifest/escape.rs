//! Names in one line: `\n`, `\r` and `\\` for the three bytes that would not survive one.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The bytes that are escaped, and the letter for each.
const ESCAPES: [(u8, u8); 3] = [(b'\\', b'\\'), (b'\n', b'n'), (b'\r', b'r')];

/// The name with its escapes; borrowed when it has none.
pub(super) fn escaped(name: &[u8]) -> Cow<'_, [u8]> {
    let letter = |byte| ESCAPES.iter().find(|(raw, _)| *raw == byte).map(|(_, letter)| *letter);
    if !name.iter().any(|&byte| letter(byte).is_some()) {
        return Cow::Borrowed(name);
    }
    let mut out = Vec::with_capacity(name.len() + 8);
    for &byte in name {
        match letter(byte) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.push(byte),
        }
    }
    Cow::Owned(out)
}

/// The name without its escapes; `None` for one that nobody writes.
pub(super) fn unescaped(name: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(name.len());
    let mut bytes = name.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let letter = bytes.next()?;
        out.push(ESCAPES.iter().find(|(_, known)| *known == letter)?.0);
    }
    Some(out)
}

/// A name as it stands in the report of a check: with a backslash before it when it is escaped.
pub fn shown(name: &OsStr) -> Cow<'_, [u8]> {
    match escaped(name.as_bytes()) {
        Cow::Owned(escaped) => Cow::Owned([b"\\", &*escaped].concat()),
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_must_be_is_escaped() {
        assert!(matches!(escaped(b"a b\t\xff*"), Cow::Borrowed(_)));
        assert_eq!(&*escaped(b"a\nb\rc\\d"), br"a\nb\rc\\d");
        assert_eq!(unescaped(br"a\nb\rc\\d").as_deref(), Some(b"a\nb\rc\\d".as_slice()));
        assert_eq!(unescaped(br"a\tb"), None);
        assert_eq!(unescaped(br"a\"), None);
        assert_eq!(&*shown(OsStr::new("a\nb")), br"\a\nb");
    }
}
