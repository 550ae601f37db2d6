//! The sign of an answer of the verdict, in each form.

use flatout_measure::record::Mark;

use crate::style::Tone;

/// How an answer of the verdict is marked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sign {
    /// Where signs can be drawn.
    pub drawn: &'static str,
    /// In characters of ASCII.
    pub plain: &'static str,
    /// For who hears a page.
    pub word: &'static str,
    /// On a page.
    pub class: &'static str,
    /// On a terminal.
    pub tone: Tone,
}

/// The sign of an answer.
pub(crate) fn of(mark: Mark) -> Sign {
    let (drawn, plain, word, class, tone) = match mark {
        Mark::Good => ("✓", "ok", "good", "good", Tone::Good),
        Mark::Partly => ("≈", "~~", "partly", "partly", Tone::Warn),
        Mark::Bad => ("✗", "!!", "look here", "bad", Tone::Bad),
        Mark::Unknown => ("?", "??", "not known", "unknown", Tone::Dim),
    };
    Sign { drawn, plain, word, class, tone }
}
