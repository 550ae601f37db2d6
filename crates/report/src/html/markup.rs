//! Text from data made safe for HTML and SVG, and tones as classes.

use crate::{style::Tone, text};

/// The text for element content and quoted attributes; control characters are spelled out first.
pub(super) fn escaped(text: &str) -> String {
    text::replaced(&text::visible(text), |c| {
        Some(match c {
            '&' => "&amp;".into(),
            '<' => "&lt;".into(),
            '>' => "&gt;".into(),
            '"' => "&quot;".into(),
            '\'' => "&#39;".into(),
            _ => return None,
        })
    })
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
