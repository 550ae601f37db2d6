//! Options that several commands share.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use flatout_bench::choice::Wishes;
use flatout_io::{Caching, Engine, Split};
use flatout_report::{Format, Identity};

use super::quantity::size;

/// Where the results go, and in which form.
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Form of the results; flatout report --help says what they are for
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = format(), help_heading = "Output")]
    pub format: Format,
    /// Write the results into FILE (replaced if it exists) instead of to standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Tell host name, serial numbers and paths in html, openmetrics, go-bench and fio-json
    #[arg(long, help_heading = "Output")]
    pub identify: bool,
}

impl Output {
    /// The whole record, into a file or on standard output.
    pub fn json(output: Option<PathBuf>) -> Self {
        Self { format: Format::Json, output, identify: true }
    }

    /// The same on standard output.
    pub fn shown(&self) -> Self {
        Self { output: None, ..self.clone() }
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

/// How bytes are moved.
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
    #[arg(long, value_name = "HOW")]
    pub caching: Option<CachingChoice>,
}

/// `--caching`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CachingChoice {
    /// The fastest way known
    Auto,
    /// Through the page cache
    Buffered,
    /// Around the page cache (O_DIRECT)
    Direct,
    /// Through the page cache, leaving nothing there (RWF_DONTCACHE, Linux 6.14)
    Dontcache,
}

impl CachingChoice {
    /// The caching asked for, if one is.
    pub fn wish(self) -> Option<Caching> {
        match self {
            Self::Auto => None,
            Self::Buffered => Some(Caching::Buffered),
            Self::Direct => Some(Caching::Direct),
            Self::Dontcache => Some(Caching::Dontcache),
        }
    }
}

/// `--split`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitChoice {
    /// Thread i of n gets the i-th of n ranges
    Contiguous,
    /// Thread i of n gets the blocks i, i+n, i+2n, …
    Interleaved,
}

/// `--engine` of reading commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// The fastest one known for this file
    Auto,
    /// pread(2) and pwrite(2), one block at a time
    Sync,
    /// mmap(2) in windows; for reading
    Mmap,
    /// io_uring, several blocks at a time
    Uring,
}

impl EngineChoice {
    /// The engine asked for, if one is.
    pub fn wish(self) -> Option<Engine> {
        match self {
            Self::Auto => None,
            Self::Sync => Some(Engine::Sync),
            Self::Mmap => Some(Engine::Mmap),
            Self::Uring => Some(Engine::Uring),
        }
    }
}

impl Moving {
    /// The settings asked for.
    pub fn wishes(&self, engine: EngineChoice, split: Option<SplitChoice>) -> Wishes {
        Wishes {
            engine: engine.wish(),
            caching: self.caching.and_then(CachingChoice::wish),
            block_bytes: self.block_size,
            depth: self.depth,
            threads: self.threads,
            split: split.map(|split| match split {
                SplitChoice::Contiguous => Split::Contiguous,
                SplitChoice::Interleaved => Split::Interleaved,
            }),
        }
    }
}
