//! How a terminal wants its text: width, colour, character set.
//!
//! Whether standard output is a terminal, and what `NO_COLOR` says, is found out by the program;
//! this room only obeys the answer.

/// What the reader's terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Width that no line exceeds; at least [`Style::MIN_WIDTH_COLUMNS`] is used.
    pub width_columns: usize,
    /// Whether ANSI colours may be used.
    pub color: bool,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
    /// How much is told.
    pub extent: Extent,
}

/// How much a terminal is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extent {
    /// What fits on a screen.
    #[default]
    Summary,
    /// Everything.
    Full,
}

impl Default for Style {
    /// A plain summary of 80 columns without colour, with Unicode: what a file or a pipe gets.
    fn default() -> Self {
        Self { width_columns: 80, color: false, unicode: true, extent: Extent::Summary }
    }
}

/// What a piece of text means; becomes a colour where there are colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Strong,
    Dim,
    Good,
    Warn,
    Bad,
    /// A line of a chart, by its position in the legend.
    Line(usize),
}

/// 256-colour codes that stay apart under the common colour deficiencies and on both grounds.
const LINE_COLORS: [u8; 8] = [33, 208, 36, 170, 178, 75, 166, 245];

impl Style {
    /// Below this width nothing sensible can be set in columns.
    pub const MIN_WIDTH_COLUMNS: usize = 40;

    pub(crate) fn width(&self) -> usize {
        self.width_columns.max(Self::MIN_WIDTH_COLUMNS)
    }

    /// The text in the colour of its tone, or as it is.
    pub(crate) fn paint(&self, text: &str, tone: Tone) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1".to_owned(),
            Tone::Dim => "2".to_owned(),
            Tone::Good => "32".to_owned(),
            Tone::Warn => "33".to_owned(),
            Tone::Bad => "31".to_owned(),
            Tone::Line(index) => format!("38;5;{}", LINE_COLORS[index % LINE_COLORS.len()]),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// One of two spellings, by what the terminal can show.
    pub(crate) fn either(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }
}
