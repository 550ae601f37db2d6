//! Numbers and short texts as bytes, in network order, and back. Whoever reads trusts nothing:
//! each read says whether it was there.

/// Longest text in a frame.
pub const MAX_TEXT_BYTES: usize = 200;

/// Writes into a growing list.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn short(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn word(&mut self, value: u32) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn long(&mut self, value: u64) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.0.extend(value);
    }

    /// A text, cut at the longest length.
    pub fn text(&mut self, value: &str) {
        let mut end = value.len().min(MAX_TEXT_BYTES);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        self.byte(end as u8);
        self.bytes(&value.as_bytes()[..end]);
    }
}

/// Reads from a slice; `None` once it is too short.
#[derive(Debug)]
pub struct Reader<'b>(pub &'b [u8]);

impl Reader<'_> {
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text as it may be shown: control characters and what is not UTF-8 are escaped.
    pub fn text(&mut self) -> Option<String> {
        let length = usize::from(self.byte()?);
        if length > MAX_TEXT_BYTES {
            return None;
        }
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(shown(&String::from_utf8_lossy(head)))
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Text of a peer without what a terminal would obey.
fn shown(text: &str) -> String {
    text.chars()
        .flat_map(|char| {
            let is_harmless = char == ' ' || (!char.is_control() && !is_invisible(char));
            let escaped = (!is_harmless).then(|| char.escape_unicode());
            let plain = is_harmless.then_some(char);
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

/// Characters that reorder or hide others.
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_peer_cannot_steer_a_terminal() {
        let mut writer = Writer::default();
        writer.text("red \u{1b}[31m\r\n\u{202e}x ä");
        let text = Reader(&writer.0).text().unwrap();
        assert_eq!(text, "red \\u{1b}[31m\\u{d}\\u{a}\\u{202e}x ä");
        let text = Reader(&[2, 0xff, b'a']).text().unwrap();
        assert_eq!(text, "\u{fffd}a");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let mut writer = Writer::default();
        writer.text(&"ä".repeat(150));
        assert_eq!(Reader(&writer.0).text().unwrap(), "ä".repeat(100));
        assert_eq!(Reader(&[201; 250]).text(), None);
        assert_eq!(Reader(&[5, 1, 2]).text(), None);
    }
}
