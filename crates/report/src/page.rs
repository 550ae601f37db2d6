//! What a report says, as blocks: built once from a record (`page/record.rs`) or from a comparison
//! (`page/comparison.rs`), with all numbers rounded and all notes numbered.
//!
//! The forms (`terminal`, `html`, `markdown`) only render blocks: width, colour, escaping, and a
//! picture as SVG or as characters. Text in a block is not safe to show yet: each form escapes it.

pub(crate) mod audit;
pub(crate) mod column;
pub(crate) mod commands;
mod comparison;
mod facts;
pub(crate) mod findings;
mod latency;
mod machine;
mod notes;
pub(crate) mod pair_matrix;
mod pictures;
pub(crate) mod race;
mod race_tables;
mod record;
mod rows;
mod storage;
pub(crate) mod summary;
mod trend;
pub(crate) mod trials;
pub(crate) mod units;
mod words;

use flatout_measure::record::{Answer, Series};

pub(crate) use self::column::{Align, Column, Detail};
pub(crate) use self::comparison::of_comparisons;
pub(crate) use self::findings::Finding;
pub(crate) use self::record::of_record;
pub(crate) use self::summary::tuned;
use crate::chart::{bars::Bars, plot::Plot};
use crate::style::Tone;
use crate::text::Joined;

/// A whole report.
#[derive(Default)]
pub(crate) struct Page {
    /// What it is about, in one line.
    pub title: String,
    /// What was looked at: the machine.
    pub heading: String,
    /// The command line; empty where it is not told.
    pub command: String,
    /// Program, start, elapsed time, seed.
    pub origin: Vec<String>,
    pub sections: Vec<Section>,
}

/// Which part of a report a section is, in the order in which pages are built and documents show them;
/// a terminal has an order of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Errors,
    /// What others did on the machine meanwhile, where that matters.
    Load,
    Summary,
    /// What is wrong, and what to do.
    Findings,
    Verdict,
    Facts,
    Storage,
    Area,
    Comparison,
    Notes,
}

/// A part of a report with its heading, which may be empty.
pub(crate) struct Section {
    pub part: Part,
    pub heading: String,
    pub tone: Tone,
    pub blocks: Vec<(Shown, Block)>,
}

/// Where a block is worth its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Everywhere,
    /// Only on a page for a browser, which draws, folds and has room.
    InBrowser,
    /// Only where a browser has something else instead.
    InText,
}

impl Section {
    pub fn new(part: Part, heading: &str) -> Self {
        Self { part, heading: heading.to_owned(), tone: Tone::Plain, blocks: Vec::new() }
    }

    /// What went wrong; none where nothing did.
    fn of_errors(errors: &[String]) -> Option<Self> {
        let section = Self::new(Part::Errors, "Errors").with(Block::List(errors.to_vec()));
        Some(section).filter(|_| !errors.is_empty())
    }

    pub fn with(mut self, block: Block) -> Self {
        self.push(block);
        self
    }

    pub fn push(&mut self, block: Block) {
        self.blocks.push((Shown::Everywhere, block));
    }

    pub fn push_for_browser(&mut self, block: Block) {
        self.blocks.push((Shown::InBrowser, block));
    }

    /// The blocks that are not for this form alone.
    pub fn blocks_but(&self, other: Shown) -> impl Iterator<Item = &Block> {
        let told = self.blocks.iter().filter(move |(shown, _)| *shown != other);
        told.map(|(_, block)| block)
    }
}

/// One thing that a report says.
pub(crate) enum Block {
    /// A heading within a section.
    Heading(String, Tone),
    Text(String, Tone),
    List(Vec<String>),
    Pairs(Pairs),
    Table(Table),
    Chart(Chart),
    Curve(Curve),
    Bars(Bars),
    Findings(Vec<Finding>),
    Verdict(Vec<Answer>),
    Commands(Commands),
    Notes(Vec<Footnote>),
    Folded(Folded),
}

impl Block {
    /// Blocks behind a name.
    fn folded(name: impl Into<String>, blocks: Vec<Self>) -> Self {
        let (short, is_open) = (String::new(), false);
        Self::Folded(Folded { name: name.into(), short, is_open, blocks })
    }
}

/// Names and what they stand for.
pub(crate) struct Pairs {
    pub kind: PairsKind,
    pub pairs: Vec<(String, String)>,
}

impl Pairs {
    pub fn new<K: Into<String>, V: Into<String>>(
        kind: PairsKind,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let pairs = pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self { kind, pairs }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PairsKind {
    /// What heads and signs mean.
    Legend,
    /// Facts of one row or one layer.
    Facts,
    /// The machine in a dozen facts.
    Brief,
    /// All members of the environment.
    Members,
}

/// What stands behind a name until a reader wants it.
pub(crate) struct Folded {
    pub name: String,
    /// What a screen says instead of it.
    pub short: String,
    pub is_open: bool,
    pub blocks: Vec<Block>,
}

/// Columns and rows.
#[derive(Default)]
pub(crate) struct Table {
    /// What it is called where it is folded, and its class on a page.
    pub name: &'static str,
    /// The unit of all its figures; empty where each has its own. A table with a unit belongs to a
    /// picture, and its columns to the lines there.
    pub unit: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    pub wide: Wide,
    /// What stands for it on a terminal that leaves its last column little room.
    pub narrow: Option<Box<Table>>,
}

impl Table {
    /// The places of the columns that forms without pictures have.
    pub fn columns_of_text(&self) -> Vec<usize> {
        let is_text = |at: &usize| self.columns[*at].known.align != Align::Picture;
        (0..self.columns.len()).filter(is_text).collect()
    }

    /// Whether notes stand in a column of their own. In a matrix they stand at the figures.
    pub fn has_notes(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|row| &row.cells);
        self.unit.is_empty() && cells.any(Cell::has_note)
    }
}

/// What becomes of a table that is too wide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Wide {
    /// The name of a row stands above its figures.
    #[default]
    NameAbove,
    /// Parts below each other, each with the first column.
    Split,
    /// Its words are wrapped; on a screen it has as many rows as there is room for.
    Wrapped,
}

/// As many cells as there are columns, or fewer, of which the last then takes all the rest.
#[derive(Default)]
pub(crate) struct Row {
    pub cells: Vec<Cell>,
    /// What more there is to say of the row.
    pub remark: String,
    /// The area that it is about, where the table is of several.
    pub area: String,
    pub tone: Tone,
}

impl Row {
    pub fn new(cells: Vec<Cell>) -> Self {
        Self { cells, ..Self::default() }
    }
}

/// One cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub text: String,
    /// Parts of a text that are not broken inside; where there are some, they are the text.
    pub words: Vec<String>,
    /// More, where there is room.
    pub detail: String,
    pub tone: Tone,
    /// The status in a word, where it is worth one.
    pub badge: &'static str,
    /// Numbers of notes.
    pub marks: Vec<usize>,
    pub picture: Option<Picture>,
}

impl Cell {
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone, ..Self::default() }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }

    /// The text, or a dash for what is not known.
    pub fn or_dash(text: Option<String>) -> Self {
        text.map_or_else(|| Self::new("–", Tone::Dim), Self::plain)
    }

    pub fn words(words: Vec<String>) -> Self {
        Self { words, ..Self::default() }
    }

    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// The text, or the words in one line.
    pub fn line(&self) -> String {
        if self.words.is_empty() { self.text.clone() } else { self.words.join(", ") }
    }

    /// Whether it has something to say in a column of notes.
    pub fn has_note(&self) -> bool {
        !self.badge.is_empty() || !self.marks.is_empty()
    }

    /// The numbers of its notes: `1,2`; empty for none.
    pub fn numbers(&self) -> String {
        self.marks.iter().map(usize::to_string).joined(",")
    }
}

/// What a cell draws where it can.
#[derive(Debug, Clone)]
pub(crate) enum Picture {
    /// A share as a bar.
    Share(f64),
    /// Every sample around the median.
    Samples(Samples),
    /// A ratio and its interval around 1.
    Ratio(Ratio),
    /// One of the colours of a matrix of pairs, the best one first.
    Shade(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Samples {
    pub unit: String,
    pub median: f64,
    pub interval: Option<[f64; 2]>,
    pub samples: Vec<f64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Ratio {
    /// Natural logarithms, positive is better.
    pub ratio: f64,
    pub interval: [f64; 2],
    /// Half the width of what counts as the same.
    pub same: f64,
    /// What half of the picture is wide: one scale for all rows.
    pub span: f64,
    pub text: String,
}

impl Ratio {
    /// Half the width of a picture is at least and at most a factor of this.
    const SPANS: [f64; 2] = [1.2, 4.0];

    /// One scale for all pictures of intervals with these ends.
    pub fn span(ends: impl Iterator<Item = f64>) -> f64 {
        let [least, most] = Self::SPANS.map(f64::ln);
        ends.map(|end| end.ln().abs()).fold(least, f64::max).min(most)
    }
}

/// A picture of lines.
pub(crate) struct Chart {
    /// Names the picture for programs.
    pub key: String,
    pub title: String,
    /// What all its lines have in common.
    pub caption: String,
    pub plot: Plot,
    /// Its figures.
    pub table: Option<Table>,
}

/// The rates of a row over time.
pub(crate) struct Curve {
    pub name: String,
    pub caption: String,
    /// What became of the rate.
    pub sentence: Option<String>,
    /// All curves over time.
    pub series: Vec<Series>,
    /// The first curve, whatever it is over.
    pub plot: Option<(String, Plot)>,
}

/// Lines for a shell; those of rows before those of charts.
pub(crate) struct Commands {
    pub commands: Vec<commands::Command>,
    /// How many are of rows.
    pub of_rows: usize,
}

/// A warning under its number.
pub(crate) struct Footnote {
    pub number: usize,
    pub code: String,
    pub sentence: String,
}
