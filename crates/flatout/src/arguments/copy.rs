//! `flatout copy`. The words that its options take: `copy/words.rs`; which attributes are kept:
//! `copy/kept.rs`; what makes no sense together: `copy/contradiction.rs`. Options may be repeated, the last one counts.

mod age;
mod contradiction;
mod kept;
mod mirror;
mod selection;
mod words;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use flatout_bench::option::{Wish, count_to, words};
use flatout_bench::workers::MAX_THREADS;
use flatout_io::transfer::Method;
use flatout_report::Format;
use flatout_sys::cancel::CancelToken;
use flatout_sys::ring::MAX_DEPTH;
use flatout_tree::copy::attributes::umask;
use flatout_tree::copy::backup::Backups;
use flatout_tree::copy::operand::{Destination, Wording};
use flatout_tree::copy::options::{
    Appearance, Assurance, CopyOptions, Durability, Inventory, Overwrite, Reach, Tuned, Unchanged,
    When,
};

use flatout_tree::copy::rules::Rules;
use kept::Kept;
use mirror::Mirror;
use selection::Selection;
use words::{ENGINES, WHEN, block_size, memory_size, rate};

use super::cp::as_cp::AsCp;
use super::shared::{meant, path};

pub use words::{CopyFormat, method_name};

const USAGE: &str = "\
flatout copy [OPTIONS] SOURCE... TARGET
       flatout copy [OPTIONS] -t DIR SOURCE...";

const AFTER: &str = include_str!("help/copy.txt").trim_ascii_end();

/// Below this many descriptors no two directories and two files can be open at once.
const MIN_FDS: i64 = 16;
/// A part of the 32 MiB that a copy may take in all.
const MEMORY_BYTES: u64 = 8 << 20;

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = AFTER, override_usage = USAGE, args_override_self = true)]
pub struct Copy {
    /// What to copy, and at last where to
    #[arg(value_name = "SOURCE", required = true, value_parser = path())]
    pub paths: Vec<PathBuf>,
    /// Copy all sources into DIR
    #[arg(short, long, value_name = "DIR", value_parser = path(), conflicts_with = "no_target_directory", action = clap::ArgAction::Append)]
    pub target_directory: Vec<PathBuf>,
    /// What cp needs to be told and this command does anyway: -a -r -R -d -p are taken and mean
    /// nothing
    #[arg(short = 'a', long = "archive", short_aliases = ['r', 'R', 'd', 'p'], alias = "recursive", action = clap::ArgAction::Count)]
    archive: u8,
    /// Take TARGET for the name of the copy, even if it is a directory
    #[arg(short = 'T', long)]
    pub no_target_directory: bool,
    /// Do not enter other filesystems; where they are mounted, leave an empty directory
    #[arg(short = 'x', long)]
    pub one_file_system: bool,
    #[command(flatten)]
    pub kept: Kept,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub mirror: Mirror,
    #[command(flatten)]
    as_cp: AsCp,
    /// Share the bytes with the source: auto (where that can be), always, never; without a value:
    /// always [default: auto]
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "always",
        value_parser = words(WHEN),
        hide_possible_values = true,
        help_heading = "Fidelity"
    )]
    pub reflink: Option<When>,
    /// Holes: auto keeps those of the source, always makes one of each block of zeros, never fills
    /// them [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = words(WHEN), hide_possible_values = true, help_heading = "Fidelity")]
    pub sparse: Option<When>,
    /// Let new files, too, appear only when they are complete
    #[arg(long, help_heading = "Replacing", overrides_with = "in_place")]
    pub atomic: bool,
    /// Cut and rewrite files that are there, as cp does, instead of replacing them
    #[arg(long, help_heading = "Replacing")]
    pub in_place: bool,
    /// With --in-place: compare them, and write only the blocks that differ; the others stay where
    /// they are, shared with whoever shares them
    #[arg(long, help_heading = "Replacing")]
    pub delta: bool,
    /// Replace files, too, that this user may not write
    #[arg(short, long, help_heading = "Replacing")]
    pub force: bool,
    /// Copy files again, too, that an earlier run is known to have finished
    #[arg(long, help_heading = "Replacing", overrides_with_all = ["checksum", "quick_check"])]
    pub always: bool,
    /// Skip files whose copies have the same content
    #[arg(long, help_heading = "Replacing", overrides_with_all = ["always", "quick_check"])]
    pub checksum: bool,
    /// Skip files of equal size and time, as rsync does: it assumes that such files hold the same bytes,
    /// which nothing guarantees
    #[arg(long, help_heading = "Replacing", overrides_with_all = ["always", "checksum"])]
    pub quick_check: bool,
    /// Note which files are finished, so that the same command, given again, skips them while neither
    /// side is changed: auto (from the first second of the copy on), always, never [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = words(WHEN), hide_possible_values = true, help_heading = "Replacing")]
    pub resume: Option<When>,
    /// Make unchanged files hard links to those in DIR: of the same size, time, owner, mode and extended
    /// attributes; may be repeated. DIR stands for TARGET: a relative one is looked up from here
    #[arg(long, value_name = "DIR", value_parser = path(), value_hint = ValueHint::DirPath, help_heading = "Snapshots", action = clap::ArgAction::Append)]
    pub link_dest: Vec<PathBuf>,
    /// Have files that are in DIR with the same size and time share its extents instead of being
    /// copied; may be repeated. Attributes are those of the source
    #[arg(long, value_name = "DIR", value_parser = path(), value_hint = ValueHint::DirPath, help_heading = "Snapshots", action = clap::ArgAction::Append)]
    pub reflink_dest: Vec<PathBuf>,
    /// Move so many bytes a second at most, by all threads together: 10M are 10 MiB/s, 0 is no
    /// limit. Shared extents, which move nothing, are not limited
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Limits")]
    pub bwlimit: Option<u64>,
    /// Give way to others: nice 19, I/O of the idle class, and rests while work waits for CPUs or
    /// storage (PSI)
    #[arg(long, help_heading = "Limits")]
    pub background: bool,
    /// Read each copy back from the device; its digest must be that of what was read
    #[arg(long, help_heading = "Certainty")]
    pub verify: bool,
    /// Return when everything is on storage
    #[arg(long, help_heading = "Certainty")]
    pub sync: bool,
    /// How bytes are moved: auto, reflink, copy-file-range, splice, sync, mmap, uring
    #[arg(
        long,
        value_name = "ENGINE",
        default_value = "auto",
        value_parser = words(ENGINES),
        hide_possible_values = true,
        help_heading = "Tuning"
    )]
    pub engine: Wish<Method>,
    /// Threads [default: as many as are useful]
    #[arg(short = 'j', long, value_name = "N", value_parser = count_to(MAX_THREADS), help_heading = "Tuning")]
    pub threads: Option<u32>,
    /// Bytes per request [default: what is fastest]
    #[arg(long, value_name = "SIZE", value_parser = block_size, help_heading = "Tuning")]
    pub block_size: Option<u64>,
    /// Requests in flight per thread, for the uring engine [default: what is fastest]
    #[arg(long = "iodepth", alias = "depth", value_name = "N", value_parser = count_to(MAX_DEPTH), help_heading = "Tuning")]
    pub depth: Option<u32>,
    /// Descriptors open at a time [default: what the limit of the process allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(MIN_FDS..), help_heading = "Tuning")]
    pub max_fds: Option<u32>,
    /// Memory for what has to be remembered; the rest goes to a file without a name [default: 8M]
    #[arg(long, value_name = "SIZE", value_parser = memory_size, help_heading = "Tuning")]
    pub max_memory: Option<u64>,
    /// Say what is made, a line each, unless there are figures, a log or a manifest; at the end what was done and
    /// how, and which ways this machine refused
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// Show no progress on a terminal
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// Print the final figures: table, json [default: none off a terminal]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, help_heading = "Output")]
    pub format: Option<CopyFormat>,
    /// Write the final figures into FILE (replaced if it exists); - is standard output
    #[arg(short, long, value_name = "FILE", value_parser = path(), value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Write what there is in the end into FILE (replaced if it exists): digest, mode, owner, time,
    /// extended attributes and link text of each entry, for flatout sum --check --strict; - is
    /// standard output
    #[arg(long, value_name = "FILE", value_parser = path(), value_hint = ValueHint::FilePath, help_heading = "Certainty")]
    pub manifest: Option<PathBuf>,
    /// Write a line of JSON into FILE (replaced if it exists) for each thing done; - is standard output
    #[arg(long, value_name = "FILE", value_parser = path(), value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub log: Option<PathBuf>,
}

impl Copy {
    /// Reads words without options, but for those that scripts give; `None`: there are others.
    pub(super) fn plain(words: &[OsString]) -> Option<Self> {
        let mut copy = Self::default();
        for word in words {
            match word.as_bytes() {
                b"-a" => copy.archive += 1,
                b"-T" => copy.no_target_directory = true,
                b"--resume=never" => copy.resume = Some(When::Never),
                [b'-', ..] => return None,
                _ => copy.paths.push(word.into()),
            }
        }
        (copy.paths.len() > 1).then_some(copy)
    }

    /// The sources, and where they go.
    pub fn operands(&self) -> (&[PathBuf], Destination) {
        match (self.target_directory.first(), self.paths.split_last()) {
            (Some(directory), _) => (&self.paths, Destination::Into(directory.clone())),
            (None, Some((target, sources))) if self.no_target_directory => {
                (sources, Destination::Exactly(target.clone()))
            }
            (None, Some((target, sources))) => (sources, Destination::Named(target.clone())),
            (None, None) => (&[], Destination::Named(PathBuf::new())),
        }
    }

    /// What the figures look like, if anybody wants to see them: as asked for, or as their file is called.
    pub fn figures(&self) -> Option<CopyFormat> {
        let meant = |file: &PathBuf| match meant(Some(file)) {
            Some(Format::Json) => CopyFormat::Json,
            _ => CopyFormat::Table,
        };
        self.format.or_else(|| self.output.as_ref().map(meant))
    }

    /// The rules of cp, where one of its letters wants them.
    pub fn rules(&self) -> Option<Rules> {
        self.as_cp.rules(self.overwrite())
    }

    /// How operands are taken by these rules.
    pub fn wording(&self) -> Option<Wording> {
        self.rules().map(|rules| self.as_cp.wording(&rules))
    }

    /// What is overwritten is kept so.
    pub fn backups(&self) -> Option<Backups> {
        // What is wrong with it was said.
        self.as_cp.backups().ok().flatten()
    }

    fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Protected } else { Overwrite::Writable }
    }

    /// Why several processes cannot do together what is asked for.
    #[cfg(feature = "mpi")]
    pub fn only_alone(&self) -> Option<String> {
        let rules = self.rules();
        let is_read = |path: &PathBuf| path.as_os_str() == "-";
        let asked = [
            (self.selection.files().iter().any(is_read), "a selection from standard input"),
            (rules.is_some_and(|rules| rules.asks), "-i"),
        ];
        let option = words::first(&asked)?;
        Some(format!(
            "several processes cannot do {option} together; with --single each does it all"
        ))
    }

    /// Earlier snapshots, from which files are taken.
    pub fn snapshots(&self) -> Vec<PathBuf> {
        [&self.link_dest[..], &self.reflink_dest[..]].concat()
    }

    fn inventory(&self) -> Inventory {
        if self.manifest.is_some() { Inventory::Digests } else { Inventory::None }
    }

    /// How far the copy goes.
    pub fn reach(&self) -> Reach {
        if self.one_file_system { Reach::OneFilesystem } else { Reach::Everything }
    }

    /// What the copy is to be like.
    pub fn options(&self, cancel: CancelToken) -> CopyOptions {
        let rules = self.rules();
        let asks = rules.is_some_and(|rules| rules.asks);
        CopyOptions {
            preserve: self.kept.attributes(),
            appearance: match (rules, self.atomic, self.in_place) {
                (Some(rules), ..) => Appearance::AsFound(rules),
                (_, true, _) => Appearance::Atomic,
                (_, _, true) if self.delta => Appearance::Amended,
                (_, _, true) => Appearance::InPlace,
                _ => Appearance::Plain,
            },
            unchanged: match (self.always, self.checksum, self.quick_check) {
                _ if rules.is_some() => Unchanged::Never,
                (true, _, _) => Unchanged::Never,
                (_, true, _) => Unchanged::Content,
                (_, _, true) => Unchanged::SizeAndTime,
                _ => Unchanged::Recorded,
            },
            effect: self.mirror.effect(),
            deletion: self.mirror.deletion(),
            overwrite: self.overwrite(),
            reach: self.reach(),
            method: self.engine,
            reflink: match self.engine {
                Some(Method::Reflink) => When::Always,
                _ => self.reflink.unwrap_or(When::Auto),
            },
            sparse: self.sparse.unwrap_or(When::Auto),
            assurance: if self.verify { Assurance::Verified } else { Assurance::Accepted },
            durability: if self.sync { Durability::Durable } else { Durability::Cached },
            // Questions are asked one after the other.
            threads: if asks { 1 } else { self.threads.unwrap_or(0) },
            block_bytes: self.block_size.unwrap_or(0),
            depth: self.depth.unwrap_or(0),
            tuned: Tuned::default(),
            max_fds: self.max_fds.unwrap_or(0),
            inventory: self.inventory(),
            max_memory_bytes: self.max_memory.unwrap_or(MEMORY_BYTES),
            umask: Some(umask()),
            cancel,
        }
    }
}
