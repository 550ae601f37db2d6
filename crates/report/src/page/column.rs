//! Every column of a table that is told apart by name: its head, what it means, and how it is set.

use crate::quantity;

/// How the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Words,
    /// The words that tell rows of one test apart; they belong to the column before.
    Parameters,
    Right,
    /// Numbers with a unit behind them.
    Decimal,
    /// A word in the colour of its meaning.
    Badge,
    /// Something drawn.
    Picture,
}

impl Align {
    pub fn is_of_numbers(self) -> bool {
        matches!(self, Self::Right | Self::Decimal)
    }
}

/// Where the details of cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Below the text, or left out where there is no room.
    Beside,
    /// Below the table where there is no room, each once and under a letter.
    Legend,
    /// Behind the text, for whoever points at it.
    Hover,
}

/// What is known of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub head: &'static str,
    /// The head where there is little room; empty where it is the same.
    pub short: &'static str,
    pub meaning: &'static str,
    pub align: Align,
    pub detail: Detail,
}

/// A column of one table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// One head, or one below the other.
    pub heads: Vec<String>,
    pub known: Known,
}

impl Column {
    pub fn named(heads: Vec<String>, known: Known) -> Self {
        Self { heads, known }
    }

    /// The one head, where there is little room.
    pub fn short(&self) -> &str {
        match self.known.short {
            "" => self.heads.last().map_or("", String::as_str),
            short => short,
        }
    }
}

impl From<Known> for Column {
    fn from(known: Known) -> Self {
        Self { heads: vec![known.head.to_owned()], known }
    }
}

const fn column(head: &'static str, align: Align) -> Known {
    Known { head, short: "", meaning: "", align, detail: Detail::Beside }
}

pub(crate) const fn words(head: &'static str) -> Known {
    column(head, Align::Words)
}

pub(crate) const fn number(head: &'static str) -> Known {
    column(head, Align::Right)
}

pub(crate) const fn decimal(head: &'static str) -> Known {
    column(head, Align::Decimal)
}

impl Known {
    const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }
}

/// What a row is, and how it differs from others of its name.
pub(crate) const TEST: Known = words("test");
pub(crate) const PARAMETERS: Known = column("parameters", Align::Parameters);

/// The figure with its interval and its bound.
pub(crate) const MEDIAN: Known = decimal("median");
pub(crate) const INTERVAL: Known =
    Known { short: "±", ..number("± (95 % interval)").meaning(quantity::PLUS_MINUS) };
pub(crate) const N: Known = number("n");
pub(crate) const SAMPLES: Known = column("samples (5 % to each side)", Align::Picture);
pub(crate) const CEILING: Known = Known { detail: Detail::Legend, ..number("limit") };

/// A point of a chart; its details are those of the figure.
pub(crate) const POINT: Known = Known { detail: Detail::Hover, ..decimal("") };

/// Latencies; percentiles have heads of their own.
pub(crate) const OPERATIONS: Known = number("operations");
pub(crate) const LEAST: Known = number("min");
pub(crate) const PERCENTILE: Known = number("");
pub(crate) const MOST: Known = number("max");

/// Those who take part in a race.
pub(crate) const CONTESTANT: Known = words("contestant");
pub(crate) const SPEED: Known = decimal("speed");
pub(crate) const FILES: Known = decimal("files");
pub(crate) const CPU: Known = decimal("CPU").meaning("user and system CPU time of one run");
pub(crate) const MEMORY: Known =
    number("memory").meaning("peak resident memory of one run, the largest seen");
pub(crate) const AGAINST: Known = words("against");
pub(crate) const RATIO: Known = number("ratio").meaning(
    "how many times as fast the first is as the second: median of the ratios of the rounds and its \
     95 % interval; a tie is an interval with 1 in it",
);
pub(crate) const RATIO_INTERVAL: Known = words("95 % interval");
pub(crate) const RESULT: Known = column("result", Align::Badge);

/// Two runs held against each other.
pub(crate) const OLD: Known = decimal("old");
pub(crate) const NEW: Known = decimal("new");
pub(crate) const CHANGE: Known = decimal("ratio").meaning(
    "NEW ÷ OLD, of several runs their geometric means, with its 95 % interval (noise between runs)",
);
pub(crate) const CHANGE_STRIP: Known = column("worse · better", Align::Picture);
pub(crate) const CHANGE_INTERVAL: Known = number("95 % interval");
pub(crate) const CHANCE: Known =
    number("p").meaning("chance of such a difference in any row if nothing changed");
pub(crate) const NOISE: Known = number("noise")
    .meaning("how far the figure differs from run to run by itself (standard deviation)");
pub(crate) const SHOWS: Known = number("shows")
    .meaning("the least change that runs like these would show in four of five cases");
