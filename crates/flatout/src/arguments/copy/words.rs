//! The words and sizes that options of `flatout copy` take.

use clap::ValueEnum;
use flatout_io::transfer::Method;
use flatout_tree::copy::options::{Preserve, When};

use crate::arguments::quantity::size;

/// Longest block. Each thread needs it in memory.
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Less would hold nothing that is worth remembering.
const MIN_MEMORY_BYTES: u64 = 64 << 10;

/// `--reflink` and `--sparse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhenChoice {
    /// Where it can be had
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CopyEngine {
    /// The fastest one known for each file
    Auto,
    /// Extents are shared
    Reflink,
    /// copy_file_range(2)
    CopyFileRange,
    /// pread(2) and pwrite(2)
    Sync,
    /// pwrite(2) out of a mapping
    Mmap,
    /// io_uring
    Uring,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CopyFormat {
    /// Pairs of key and value
    Table,
    /// A document of the schema flatout/1
    Json,
}

pub fn attributes(list: &str) -> Result<Preserve, String> {
    list.split(',').try_fold(Preserve::NOTHING, |all, name| {
        let one = match name {
            "mode" => Preserve::MODE,
            "ownership" => Preserve::OWNERSHIP,
            "timestamps" => Preserve::TIMESTAMPS,
            "links" => Preserve::LINKS,
            "xattr" => Preserve::XATTR,
            "context" => Preserve::CONTEXT,
            "all" => Preserve::ALL,
            _ => {
                let known = "mode, ownership, timestamps, links, xattr, context, all";
                return Err(format!("{name:?} is no attribute; known are {known}"));
            }
        };
        Ok(all.with(one))
    })
}

pub fn block_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes @ 1..=MAX_BLOCK_BYTES => Ok(bytes),
        _ => Err(format!("it must be from 1 to {MAX_BLOCK_BYTES} bytes (64 MiB)")),
    }
}

pub fn memory_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes >= MIN_MEMORY_BYTES => Ok(bytes),
        _ => Err(format!("it must be {MIN_MEMORY_BYTES} bytes (64 KiB) or more")),
    }
}

impl WhenChoice {
    /// The same, for the room that copies.
    pub fn when(choice: Option<Self>) -> When {
        match choice {
            None | Some(Self::Auto) => When::Auto,
            Some(Self::Always) => When::Always,
            Some(Self::Never) => When::Never,
        }
    }
}

impl CopyEngine {
    /// What moves the bytes; `None`: the best one.
    pub fn method(self) -> Option<Method> {
        match self {
            Self::Auto => None,
            Self::Reflink => Some(Method::Reflink),
            Self::CopyFileRange => Some(Method::CopyFileRange),
            Self::Sync => Some(Method::Sync),
            Self::Mmap => Some(Method::Mmap),
            Self::Uring => Some(Method::Uring),
        }
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Reflink => "reflink",
            Self::CopyFileRange => "copy-file-range",
            Self::Sync => "sync",
            Self::Mmap => "mmap",
            Self::Uring => "uring",
        }
    }
}
