//! Text from data made safe for HTML and SVG, and tones as classes.

use crate::{style::Tone, text};

/// The text for element content and quoted attributes; control characters are spelled out first.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text::visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The attribute for a tone; empty for what is plain.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Line(_) => "",
        Tone::Strong => " class=\"strong\"",
        Tone::Dim => " class=\"meta\"",
        Tone::Good => " class=\"good\"",
        Tone::Warn => " class=\"remark\"",
        Tone::Bad => " class=\"bad\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escaped("</script a='\"'>&\x1b"),
            "&lt;/script a=&#39;&quot;&#39;&gt;&amp;\\x1b"
        );
    }
}
