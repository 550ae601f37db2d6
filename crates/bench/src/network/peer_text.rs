//! Text of the other end: cut at a length when it is sent, and read as it may be shown.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serializer};

/// Longest text in a frame.
const MAX_BYTES: usize = 200;

/// Writes at most [`MAX_BYTES`] of a text, whole characters.
///
/// # Errors
/// Those of the format.
pub fn serialize<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    to.serialize_str(&text[..end])
}

/// Reads a text; control characters are escaped.
///
/// # Errors
/// It is too long, or no text.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    if text.len() > MAX_BYTES {
        return Err(serde::de::Error::custom("the text is too long"));
    }
    Ok(shown(&text))
}

/// Text of a peer without what a terminal would obey.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for char in text.chars() {
        if char.is_control() || is_invisible(char) {
            shown.extend(char.escape_unicode());
        } else {
            shown.push(char);
        }
    }
    shown
}

/// Characters that reorder or hide others.
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use crate::network::frame::Frame;

    fn sent(text: &str) -> String {
        let frame = Frame::Refused { text: text.to_owned() };
        match Frame::decode(&frame.encode()) {
            Some(Frame::Refused { text }) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn text_of_a_peer_cannot_steer_a_terminal() {
        let text = sent("red \u{1b}[31m\r\n\u{202e}x ä");
        assert_eq!(text, "red \\u{1b}[31m\\u{d}\\u{a}\\u{202e}x ä");
        assert_eq!(Frame::decode(b"{\"Refused\":{\"text\":\"\xff\"}}"), None, "no UTF-8");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(sent(&"ä".repeat(150)), "ä".repeat(100));
        assert_eq!(sent(&format!("a{}", "ä".repeat(150))), format!("a{}", "ä".repeat(99)));
        let long = format!("{{\"Refused\":{{\"text\":\"{}\"}}}}", "a".repeat(201));
        assert_eq!(Frame::decode(long.as_bytes()), None);
    }
}
