//! Options that several commands share.

use std::path::{Path, PathBuf};

use clap::builder::{
    OsStringValueParser, PathBufValueParser, PossibleValuesParser, TypedValueParser,
};
use clap::{Args, ValueEnum, ValueHint};
use flatout_bench::choice::Wishes;
use flatout_bench::option::{
    CACHING, DIRECT, MAX_BLOCK_BYTES, Wish, Words, count_to, size_to, words,
};
use flatout_bench::workers::MAX_THREADS;
use flatout_io::{Caching, Engine, Split};
use flatout_measure::units::size_text;
use flatout_report::{Format, Identity};
use flatout_sys::ring::MAX_DEPTH;

/// A path of any bytes. No bytes at all are a name that no file has, as for cp.
pub fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

// Where the results go, and in which form. (Of a type that options are taken from, clap would take
// documentation for that of the command.)
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Form: table, json, csv, markdown, html, openmetrics, go-bench, fio-json [default: what FILE
    /// ends in]
    #[arg(long = "format", value_name = "FORMAT", value_parser = format(),
        hide_possible_values = true, help_heading = "Output")]
    pub wanted: Option<Format>,
    /// Write results into FILE (replaced); - is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true,
        value_parser = results(), value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Wish<PathBuf>,
    /// Show everything, not the summary
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// Tell host name, serial numbers and paths in every form
    #[arg(long, help_heading = "Output")]
    pub identify: bool,
    #[command(flatten)]
    pub talk: Talk,
}

// What is said besides the results, and how they look.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub struct Talk {
    /// Say nothing but what went wrong on standard error
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Colours: auto (on a terminal), always, never
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub color: Color,
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal that can, unless NO_COLOR is set
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// A file for results in one of our forms, none for `-`. What ends like a form that there is not is
/// refused: nobody can open a table that is called `.pdf`.
pub fn results() -> impl TypedValueParser<Value = Wish<PathBuf>> {
    file().try_map(|path| {
        let ending = path.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
        match ending.map(str::to_ascii_lowercase).as_deref() {
            Some("pdf" | "png" | "svg") => Err("no form is drawn so: .html is a page to print"),
            Some("xls" | "xlsx" | "ods") => Err("spreadsheets read .csv"),
            _ => Ok(path),
        }
    })
}

/// A file; none for `-`, standard output.
pub fn file() -> impl TypedValueParser<Value = Wish<PathBuf>> {
    PathBufValueParser::new().map(|path| Some(path).filter(|path| path.as_os_str() != "-"))
}

/// Says that standard input, which can be read once, is named more than once.
pub fn repeated<'p>(files: impl IntoIterator<Item = &'p PathBuf>) -> Option<String> {
    let named = files.into_iter().filter(|path| path.as_os_str() == "-").count();
    (named > 1).then(|| "- can be given once: standard input is read once".to_owned())
}

impl Output {
    /// The whole record on standard output.
    pub fn json() -> Self {
        let (wanted, talk) = (Some(Format::Json), Talk::default());
        Self { wanted, output: None, verbose: false, identify: true, talk }
    }

    /// The form that was asked for, else the one that the file's name ends in, else a table.
    pub fn format(&self) -> Format {
        self.wanted.or_else(|| meant(self.output.as_deref())).unwrap_or_default()
    }

    /// Refuses earlier records for a form that says nothing of them.
    ///
    /// Errors: one line that says which forms do.
    pub fn check_history(&self, history: Option<&Path>) -> Result<(), String> {
        match self.format() {
            Format::Table | Format::Markdown | Format::Html => Ok(()),
            form if history.is_some() => Err(format!(
                "--history means nothing with --format {form}: what is usual stands in table, \
                 markdown and html"
            )),
            _ => Ok(()),
        }
    }

    /// What may be told of where the results were made.
    pub fn identity(&self) -> Identity {
        if self.identify { Identity::Shown } else { Identity::Hidden }
    }
}

/// The form that a file's name ends in.
pub fn meant(file: Option<&Path>) -> Option<Format> {
    match &*file?.extension()?.to_str()?.to_ascii_lowercase() {
        "json" => Some(Format::Json),
        "html" | "htm" => Some(Format::Html),
        "md" => Some(Format::Markdown),
        "csv" => Some(Format::Csv),
        "prom" => Some(Format::OpenMetrics),
        _ => None,
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
    #[arg(short, long, alias = "bs", value_name = "SIZE", value_parser = size_to(MAX_BLOCK_BYTES))]
    pub block_size: Option<u64>,
    /// Number of blocks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=u64::MAX))]
    pub block_count: Option<u64>,
    /// Bytes in all, a whole number of blocks; instead of --block-count
    #[arg(long, value_name = "SIZE", value_parser = size_to(u64::MAX),
        conflicts_with = "block_count")]
    pub size: Option<u64>,
    /// Threads [default: see below]
    #[arg(short = 'j', long, value_name = "N", value_parser = count_to(MAX_THREADS))]
    pub threads: Option<u32>,
    /// Requests in flight per thread; for the uring engine [default: 16]
    #[arg(long = "iodepth", alias = "depth", value_name = "N", value_parser = count_to(MAX_DEPTH))]
    pub depth: Option<u32>,
    /// How the page cache takes part: through it, around it (O_DIRECT), or through it without
    /// leaving anything there (RWF_DONTCACHE) [default: see below]
    #[arg(long, value_name = "HOW", value_parser = words(CACHING))]
    pub caching: Option<Wish<Caching>>,
    /// Around the page cache (O_DIRECT), the same as --caching direct; --direct=0: through it
    #[arg(long, value_name = "0|1", value_parser = words(DIRECT), num_args = 0..=1,
        require_equals = true, default_missing_value = "1", hide_possible_values = true,
        conflicts_with = "caching")]
    pub direct: Option<Caching>,
}

/// `--engine` of a command that reads.
pub const ENGINES: &Words<Wish<Engine>> = &[
    ("auto", None, "The fastest one known for this file"),
    ("sync", Some(Engine::Sync), "pread(2) and pwrite(2), one block at a time"),
    ("mmap", Some(Engine::Mmap), "mmap(2) in windows; for reading"),
    ("uring", Some(Engine::Uring), "io_uring, several blocks at a time"),
];

impl Moving {
    /// The number of blocks asked for, where the size of a block is not asked for one of so many
    /// bytes; and the size of a block that this needs.
    ///
    /// Errors: `--size` is no whole number of blocks.
    pub fn blocks(&self, usual_bytes: u64) -> Result<(Option<u64>, Option<u64>), String> {
        let Some(size) = self.size else { return Ok((self.block_count, self.block_size)) };
        let block = self.block_size.unwrap_or(usual_bytes.min(size));
        if size.is_multiple_of(block) {
            return Ok((Some(size / block), Some(block)));
        }
        let [size, block, rest] = [size, block, size % block].map(size_text);
        Err(format!(
            "--size {size} is no whole number of blocks of {block} (--block-size): {rest} too many"
        ))
    }

    /// The settings asked for.
    pub fn wishes(&self, engine: Wish<Engine>, split: Option<Split>) -> Wishes {
        Wishes {
            engine,
            caching: self.direct.or(self.caching.flatten()),
            block_bytes: self.block_size,
            depth: self.depth,
            threads: self.threads,
            split,
        }
    }
}
