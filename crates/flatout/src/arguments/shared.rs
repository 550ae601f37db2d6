//! Options that several commands share.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flatout_bench::choice::Wishes;
use flatout_bench::option::{CACHING, Wish, Words, size, words};
use flatout_io::{Caching, Engine, Split};
use flatout_report::{Extent, Format, Identity};

// Where the results go, and in which form. (Of a type that options are taken from, clap would take
// documentation for that of the command.)
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Form of the results; flatout report --help says what they are for
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = format(), help_heading = "Output")]
    pub format: Format,
    /// Write the results into FILE (replaced if it exists) instead of to standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Show everything: parameters, notes, latencies, curves, proofs and the six answers
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// Tell host name, serial numbers and paths in html, openmetrics, go-bench and fio-json
    #[arg(long, help_heading = "Output")]
    pub identify: bool,
}

impl Output {
    /// The whole record, into a file or on standard output.
    pub fn json(output: Option<PathBuf>) -> Self {
        Self { format: Format::Json, output, verbose: false, identify: true }
    }

    /// The same on standard output.
    pub fn shown(&self) -> Self {
        Self { output: None, ..self.clone() }
    }

    /// How much a terminal is told.
    pub fn extent(&self) -> Extent {
        if self.verbose { Extent::Full } else { Extent::Summary }
    }

    /// What may be told of where the results were made.
    pub fn identity(&self) -> Identity {
        if self.identify { Identity::Shown } else { Identity::Hidden }
    }
}

/// The names of the formats, which help and completions list.
fn format() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::ALL.map(Format::name));
    names.try_map(|name| name.parse::<Format>())
}

// How bytes are moved.
#[derive(Debug, Clone, Args)]
pub struct Moving {
    /// Bytes per request [default: see below]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub block_size: Option<u64>,
    /// Number of blocks
    #[arg(long, value_name = "N")]
    pub block_count: Option<u64>,
    /// Threads [default: see below]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Requests in flight per thread; for the uring engine [default: 16]
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// How the page cache takes part: through it, around it (O_DIRECT), or through it without
    /// leaving anything there (RWF_DONTCACHE) [default: see below]
    #[arg(long, value_name = "HOW", value_parser = words(CACHING))]
    pub caching: Option<Wish<Caching>>,
}

/// `--engine` of a command that reads.
pub const ENGINES: &Words<Wish<Engine>> = &[
    ("auto", None, "The fastest one known for this file"),
    ("sync", Some(Engine::Sync), "pread(2) and pwrite(2), one block at a time"),
    ("mmap", Some(Engine::Mmap), "mmap(2) in windows; for reading"),
    ("uring", Some(Engine::Uring), "io_uring, several blocks at a time"),
];

impl Moving {
    /// The settings asked for.
    pub fn wishes(&self, engine: Wish<Engine>, split: Option<Split>) -> Wishes {
        Wishes {
            engine,
            caching: self.caching.flatten(),
            block_bytes: self.block_size,
            depth: self.depth,
            threads: self.threads,
            split,
        }
    }
}
