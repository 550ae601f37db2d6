//! Text from data made safe to show, and measured in terminal columns.
//!
//! A name in a record may hold anything: an escape sequence, a line feed, a character that turns
//! the writing direction. Nothing of that reaches a reader raw; it is shown as `\x1b`, `\n` or
//! `\u{202e}`. A backslash stays a backslash, so the escapes are for eyes, not for parsers; the
//! JSON document keeps every character without loss.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::style::Style;

/// Items put together.
pub trait Joined {
    /// All of them, with a separator between each two.
    fn joined(self, separator: &str) -> String;
}

impl<T: AsRef<str>, I: IntoIterator<Item = T>> Joined for I {
    fn joined(self, separator: &str) -> String {
        let mut all = String::new();
        for (at, item) in self.into_iter().enumerate() {
            all.push_str(if at > 0 { separator } else { "" });
            all.push_str(item.as_ref());
        }
        all
    }
}

/// Those that say something, put together.
pub(crate) fn listed<T: AsRef<str>>(words: impl IntoIterator<Item = T>, separator: &str) -> String {
    words.into_iter().filter(|word| !word.as_ref().is_empty()).joined(separator)
}

/// What is made of a text; nothing of nothing.
pub(crate) fn unless_empty(text: &str, made: impl FnOnce(&str) -> String) -> String {
    if text.is_empty() { String::new() } else { made(text) }
}

/// A text and what is said of it in brackets, if anything is.
pub(crate) fn with_aside(text: &str, aside: &str) -> String {
    text.to_owned() + &unless_empty(aside, |aside| format!(" ({aside})"))
}

/// Whether a word is one of those in a list with spaces between them.
pub(crate) fn is_among(word: &str, list: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// Whether a character could change anything else than its own place on the screen.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with other text in place of some of its characters.
pub(crate) fn replaced(text: &str, by: impl Fn(char) -> Option<Cow<'static, str>>) -> String {
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, c) in text.char_indices() {
        if let Some(other) = by(c) {
            out.push_str(&text[copied..at]);
            out.push_str(&other);
            copied = at + c.len_utf8();
        }
    }
    out + &text[copied..]
}

/// The text with every unsafe character spelled out.
pub fn visible(text: &str) -> String {
    replaced(text, |c| {
        Some(match c {
            '\n' => "\\n".into(),
            '\r' => "\\r".into(),
            '\t' => "\\t".into(),
            c if !is_unsafe(c) => return None,
            // From here on `\xNN` is a byte of a name that is no UTF-8 (`flatout_io::escape`).
            c if c.is_ascii() => format!("\\x{:02x}", c as u32).into(),
            c => format!("\\u{{{:x}}}", c as u32).into(),
        })
    })
}

/// The text as this terminal can show it: safe, and in ASCII where only ASCII is understood.
pub fn shown(text: &str, style: &Style) -> String {
    let safe = visible(text);
    if style.unicode || safe.is_ascii() {
        return safe;
    }
    replaced(&safe, |c| {
        Some(match c {
            c if c.is_ascii() => return None,
            'µ' | 'μ' => "u".into(),
            '±' => "+-".into(),
            '×' => "x".into(),
            '÷' => "/".into(),
            '−' | '–' | '—' | '‐' | '‑' => "-".into(),
            '…' => "...".into(),
            '·' | '•' => "|".into(),
            '≤' => "<=".into(),
            '≥' => ">=".into(),
            '→' => "->".into(),
            '‘' | '’' => "'".into(),
            '“' | '”' => "\"".into(),
            '\u{a0}' | '\u{2009}' | '\u{202f}' => " ".into(),
            c => format!("\\u{{{:x}}}", c as u32).into(),
        })
    })
}

/// The text with its spaces made unbreakable for [`wrap`]; the grid turns them back.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(' ', UNBREAKABLE)
}

/// The space that [`wrap`] does not break at.
pub(crate) const UNBREAKABLE: &str = "\u{a0}";

/// Columns that the text takes on a terminal; the text must be free of control characters.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text, then spaces up to the given width.
pub fn pad_right(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Spaces up to the given width, then the text.
pub fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Columns of the widest character: nothing can be wrapped to less.
pub(crate) const NARROWEST_WRAP: usize = 2;

/// The text in lines of at most `columns`, broken at spaces; inside a word only where the word
/// alone is too wide, and then behind a hyphen, comma or slash if there is one. Always at least
/// one line.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(NARROWEST_WRAP);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if width(&line) + gap + width(word) <= columns {
            line.push_str(if gap > 0 { " " } else { "" });
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        if width(word) <= columns {
            line.push_str(word);
            continue;
        }
        for piece in pieces(word) {
            if width(&line) + width(piece.trim_end_matches(UNBREAKABLE)) > columns
                && !line.is_empty()
            {
                lines.push(std::mem::take(&mut line));
            }
            push_cut(&mut lines, &mut line, piece, columns);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The shown text in one line of so many columns, cut at a word where it is too long.
pub fn clip(text: &str, columns: usize, style: &Style) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let dots = if style.unicode { "…" } else { "..." };
    let room = columns.saturating_sub(width(dots)).max(NARROWEST_WRAP);
    let first = wrap(text, room).into_iter().next().unwrap_or_default();
    format!("{}{dots}", first.trim_end_matches([',', ';', ' ']))
}

/// Adds a piece character by character; no line begins with a space.
fn push_cut(lines: &mut Vec<String>, line: &mut String, piece: &str, columns: usize) {
    for c in piece.chars() {
        if width(line) + c.width().unwrap_or(0) > columns && !line.is_empty() {
            lines.push(std::mem::take(line));
        }
        if !(line.is_empty() && UNBREAKABLE.contains(c)) {
            line.push(c);
        }
    }
}

/// The parts of a word between which it may be broken when it is too wide: behind hyphens,
/// slashes, unbreakable spaces, and commas that separate no digits.
pub(crate) fn pieces(word: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, c) in word.char_indices() {
        let end = at + c.len_utf8();
        let next = word[end..].chars().next();
        let is_joint = match c {
            ',' => next.is_some_and(|next| !next.is_ascii_digit()),
            '-' | '/' | '\u{a0}' => next.is_some_and(|next| !"-/,\u{a0}".contains(next)),
            _ => false,
        };
        if is_joint && end - start > 1 {
            pieces.push(&word[start..end]);
            start = end;
        }
    }
    pieces.push(&word[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(
            visible("a\x1b[31mb\n\u{9b}\u{202e}x\u{7f}"),
            "a\\x1b[31mb\\n\\u{9b}\\u{202e}x\\x7f"
        );
        assert_eq!(visible("C:\\dir Grüße 日本"), "C:\\dir Grüße 日本");
    }

    #[test]
    fn ascii_terminals_get_ascii() {
        let style = Style { unicode: false, ..Style::default() };
        assert_eq!(shown("5 µs ± 1 – é", &style), "5 us +- 1 - \\u{e9}");
    }

    #[test]
    fn no_wrapped_line_is_too_wide() {
        let text = "one two 日本日本日本日本 threeeeeeeeeeeeeeeeeeeeeee four";
        for columns in 2..40 {
            let lines = wrap(text, columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:?}");
            let joined: String = lines.concat().replace(' ', "");
            assert_eq!(joined, text.replace(' ', ""));
        }
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn a_word_too_long_is_broken_at_its_joints_first() {
        assert_eq!(wrap("memory-read", 9), ["memory-", "read"]);
        assert_eq!(wrap("memory-read", 11), ["memory-read"]);
        assert_eq!(wrap("a memory-read", 11), ["a", "memory-read"]);
        assert_eq!(wrap("depth\u{a0}1,048,576", 10), ["depth\u{a0}", "1,048,576"]);
        assert_eq!(wrap("abcdefgh, x", 8), ["abcdefgh", ", x"]);
        assert_eq!(wrap("abc\u{a0}<--c", 4), ["abc\u{a0}", "<--c"]);
        assert_eq!(wrap("abc\u{a0}def", 3), ["abc", "def"]);
        assert_eq!(wrap("parameters", 9), ["parameter", "s"]);
    }
}
