//! Names of files as text. A name is bytes; text that is shown or kept must tell any two names
//! apart.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A file name as text, without loss: bytes that are not UTF-8 become `\xNN`, a backslash `\\`.
/// All else stays as it is; control characters are for whoever shows the text to spell out.
///
/// Cost: an allocation.
pub fn escape(name: impl AsRef<OsStr>) -> String {
    let mut text = String::new();
    for chunk in name.as_ref().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The same in double quotes, as messages have it; a quote in the name is `\\"`.
///
/// Cost: an allocation or two.
pub fn quote(name: impl AsRef<OsStr>) -> String {
    format!("\"{}\"", escape(name).replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_without_loss() {
        let escaped = |name: &[u8]| escape(OsStr::from_bytes(name));
        assert_eq!(escaped("größe\n".as_bytes()), "größe\n");
        assert_eq!(escaped("a b'\"*".as_bytes()), "a b'\"*");
        assert_eq!(escaped(b"a\\\xffb"), "a\\\\\\xffb");
        assert_eq!(escaped(b"\xfe"), "\\xfe");
        assert_eq!(escaped(b"\\xfe"), "\\\\xfe");
        let quoted = |name: &[u8]| quote(OsStr::from_bytes(name));
        assert_eq!(quoted(b"a\xff\n"), "\"a\\xff\n\"");
        assert_eq!(quoted(br#"a\"b"#), r#""a\\\"b""#);
    }
}
