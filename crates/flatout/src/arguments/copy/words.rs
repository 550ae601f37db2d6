//! The words and sizes that options of `flatout copy` take.

use clap::ValueEnum;
use flatout_bench::option::{Wish, Words, size};
use flatout_io::transfer::Method;
use flatout_measure::units::size_text;
use flatout_tree::copy::options::When;

/// Longest block. Each thread needs it in memory.
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Less is a number that was meant in KiB, as rsync takes it, or a copy that never ends.
const LEAST_BYTES_PER_SECOND: u64 = 1 << 10;
/// Less would hold nothing that is worth remembering.
const MIN_MEMORY_BYTES: u64 = 64 << 10;

/// `--reflink`, `--sparse` and `--resume`.
pub const WHEN: &Words<When> = &[
    ("auto", When::Auto, "Where it can be had"),
    ("always", When::Always, "Everywhere"),
    ("never", When::Never, "Nowhere"),
];

/// `--engine`.
pub const ENGINES: &Words<Wish<Method>> = &[
    ("auto", None, "The fastest one known for each file"),
    ("reflink", Some(Method::Reflink), "Extents are shared"),
    ("copy-file-range", Some(Method::CopyFileRange), "copy_file_range(2)"),
    ("splice", Some(Method::Splice), "splice(2) through a pipe"),
    ("sync", Some(Method::Sync), "pread(2) and pwrite(2)"),
    ("mmap", Some(Method::Mmap), "pwrite(2) out of a mapping"),
    ("uring", Some(Method::Uring), "io_uring"),
];

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CopyFormat {
    /// Pairs of key and value
    Table,
    /// A document of the schema flatout/1
    Json,
}

/// `--bwlimit`: a size, behind which `/s` may stand.
pub fn rate(text: &str) -> Result<u64, String> {
    match size(text.strip_suffix("/s").unwrap_or(text))? {
        0 => Ok(0),
        bytes if bytes >= LEAST_BYTES_PER_SECOND => Ok(bytes),
        _ => {
            let least = size_text(LEAST_BYTES_PER_SECOND);
            Err(format!("it must be {least} a second or more; a number without a unit is in bytes"))
        }
    }
}

pub fn block_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes @ 1..=MAX_BLOCK_BYTES => Ok(bytes),
        _ => Err(format!("it must be from 1 byte to {}", size_text(MAX_BLOCK_BYTES))),
    }
}

pub fn memory_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes >= MIN_MEMORY_BYTES => Ok(bytes),
        _ => Err(format!("it must be {} or more", size_text(MIN_MEMORY_BYTES))),
    }
}

/// What goes with the first of these that is so.
pub fn first<'t>(of: &[(bool, &'t str)]) -> Option<&'t str> {
    of.iter().find(|(is_so, _)| *is_so).map(|(_, text)| *text)
}

/// The word for a method, as `--engine` has it.
pub fn method_name(method: Method) -> &'static str {
    let known = ENGINES.iter().find(|(_, known, _)| *known == Some(method));
    known.map_or("", |(name, ..)| name)
}
