//! Against dd: the bytes of one file into another, block by block, and a file to nowhere.
//!
//! Copies go through the page cache on both sides, from a source that is wholly in there, and are
//! compared with it after each run. `flatout transfer` obeys the block size as dd does;
//! `flatout read` takes its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use flatout_measure::{Chart, Facts, Parameters};
use flatout_sys::memory;
use flatout_sys::process::Account;
use flatout_tree::compare::is_same;

use crate::Error;
use crate::versus::copy::target::{Amount, Targets};
use crate::versus::race::{Argv, Checked, Made, Race, Run, Workload};
use crate::versus::rival::{Discipline, Found};
use crate::versus::run::operand;
use crate::versus::source::Source;
use crate::versus::{Extent, Ground, State};

const MIB: u64 = 1 << 20;
/// The block of copies of several sizes.
const USUAL_BLOCK_BYTES: u64 = 4096;
/// Blocks at which one large file is copied.
const BLOCKS_BYTES: [u64; 4] = [512, 1024, 2048, 4096];
/// Blocks at which one is read to nowhere: flatout takes its own.
const READ_BLOCKS_BYTES: [u64; 2] = [128 << 10, MIB];
/// Targets are kept to the end of a race while they take no more than this part of the available
/// memory: where more lies there, it is written back to storage while the next one runs.
const MEMORY_PART: u64 = 16;
/// Bytes per second and seconds per block with which the plan of the time counts: dd on two machines,
/// 2026-11-22 and 27.
const PLANNED_RATE: f64 = 1.5e9;
const PLANNED_BLOCK_S: f64 = 1.2e-6;
/// Seconds that a run takes besides: starting it, and writing out what the one before left (0.15 had
/// announced 13 s for the 2.6 of `--quick`, 0.03 and 1 GB/s still 6; Zen 4, 2026-11-27).
const START_S: f64 = 0.02;

/// Lengths of the files: those that are copied at one block, the one that is copied at several,
/// and the one that is read.
struct Sizes {
    copied: &'static [u64],
    blocks: u64,
    read: u64,
}

fn sizes(extent: Extent) -> Sizes {
    match extent {
        Extent::Full => Sizes {
            copied: &[MIB, 10 * MIB, 100 * MIB, 1000 * MIB],
            blocks: 2048 * MIB,
            read: 1000 * MIB,
        },
        _ => Sizes { copied: &[MIB, 10 * MIB], blocks: 32 * MIB, read: 32 * MIB },
    }
}

/// Bytes that lie in the directory at once: all sources, and the largest target.
pub fn room_bytes(ground: &Ground) -> u64 {
    if ground.of(Discipline::Blocks).next().is_none() {
        return 0;
    }
    let sizes = sizes(ground.extent);
    let mut sources: Vec<u64> = sizes.copied.to_vec();
    sources.extend([sizes.blocks, sizes.read]);
    sources.sort_unstable();
    sources.dedup();
    sources.iter().sum::<u64>() + sizes.blocks.max(sizes.copied.iter().copied().max().unwrap_or(0))
}

/// The races against dd; none where it is not raced.
pub fn races(ground: &Ground) -> Vec<Race<'static>> {
    let Some(dd) = ground.of(Discipline::Blocks).next() else { return Vec::new() };
    let sizes = sizes(ground.extent);
    let copied =
        sizes.copied.iter().map(|&bytes| copy(ground, dd, "dd-copy", bytes, USUAL_BLOCK_BYTES));
    let blocks =
        BLOCKS_BYTES.iter().map(|&block| copy(ground, dd, "dd-block", sizes.blocks, block));
    let reads = READ_BLOCKS_BYTES.iter().map(|&block| read(ground, dd, sizes.read, block));
    copied.chain(blocks).chain(reads).collect()
}

/// Time and speed by size, and by block.
pub fn charts() -> Vec<Chart> {
    let chart = |title: &str, id: &str, x_parameter: &str| {
        Chart::new(title, id, x_parameter, &["contestant"]).by_powers_of_two()
    };
    vec![
        chart("Copying a file: time by size", "versus/dd-copy", "bytes"),
        chart("Copying a file: speed by size", "versus/dd-copy-speed", "bytes"),
        chart("Copying a file: time by block size", "versus/dd-block", "block_bytes"),
        chart("Copying a file: speed by block size", "versus/dd-block-speed", "block_bytes"),
    ]
}

fn parameters(bytes: u64, block_bytes: u64) -> Parameters {
    let parameters = Parameters::default().with("bytes", bytes).with("block_bytes", block_bytes);
    parameters.with("cache_state", State::Hot.name())
}

fn copy(
    ground: &Ground,
    dd: &Found,
    test: &'static str,
    bytes: u64,
    block_bytes: u64,
) -> Race<'static> {
    let free_memory = memory::available_bytes().unwrap_or(0) / MEMORY_PART;
    let most_kept_bytes = free_memory.min(ground.room_bytes.saturating_sub(room_bytes(ground)));
    let source = Source::new(ground, 1, bytes);
    let made = Some(Made::of(&source.corpus, ground));
    let workload = CopyWorkload {
        source,
        targets: Targets::new(ground.targets(), most_kept_bytes),
        target: PathBuf::new(),
        block_bytes,
    };
    let blocks = bytes / block_bytes;
    // Copied, then compared, which reads both.
    let expected_s = START_S + 2.0 * bytes as f64 / PLANNED_RATE + blocks as f64 * PLANNED_BLOCK_S;
    let race =
        Race::against(ground, dd, (test, parameters(bytes, block_bytes)), expected_s, workload);
    Race { bytes, made, written_bytes: bytes, ..race }
}

fn read(ground: &Ground, dd: &Found, bytes: u64, block_bytes: u64) -> Race<'static> {
    let source = Source::new(ground, 1, bytes);
    let made = Some(Made::of(&source.corpus, ground));
    let workload = ReadWorkload { source, block_bytes };
    let expected_s = START_S + bytes as f64 / PLANNED_RATE;
    let name = ("dd-read", parameters(bytes, block_bytes));
    let race = Race::against(ground, dd, name, expected_s, workload);
    Race { bytes, made, ..race }
}

/// The first contestant is flatout.
fn is_flatout(run: &Run<'_>) -> bool {
    run.index == 0
}

/// How dd is called.
fn dd_argv(dd: &Path, source: &Path, target: impl AsRef<OsStr>, block: impl AsRef<OsStr>) -> Argv {
    let operands = [operand("if=", source), operand("of=", target), operand("bs=", block)];
    std::iter::once(dd.into()).chain(operands).collect()
}

struct CopyWorkload {
    source: Source,
    targets: Targets,
    /// That of this run.
    target: PathBuf,
    block_bytes: u64,
}

impl Workload for CopyWorkload {
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error> {
        let one = Amount { bytes: self.source.corpus.bytes, inodes: 1 };
        (self.target, _) = self.targets.fresh(one, one)?;
        self.source.prepare(State::Hot, run.ends_ns)
    }

    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        let (source, target) = (&self.source.path(), &self.target);
        let block = self.block_bytes.to_string();
        Ok(match is_flatout(run) {
            true => vec![
                (&run.contestant.program).into(),
                "transfer".into(),
                source.into(),
                target.into(),
                "--block-size".into(),
                block.into(),
            ],
            false => dd_argv(&run.contestant.program, source, target, block),
        })
    }

    fn check(&mut self, _: &Run<'_>, _: &Account) -> Result<Checked, Error> {
        if !is_same(&self.source.path(), &self.target)? {
            return Err(Error::Usage("the copy differs from its source".to_owned()));
        }
        Ok(Checked::default())
    }

    fn clean(&mut self) -> Result<(), Error> {
        self.targets.remove_all()
    }
}

struct ReadWorkload {
    source: Source,
    block_bytes: u64,
}

impl Workload for ReadWorkload {
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error> {
        self.source.prepare(State::Hot, run.ends_ns)
    }

    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        let (program, source) = (&run.contestant.program, &self.source.path());
        Ok(match is_flatout(run) {
            true => vec![program.into(), "read".into(), source.into()],
            false => dd_argv(program, source, "/dev/null", self.block_bytes.to_string()),
        })
    }

    /// Both say how many bytes they read: dd without separators, flatout with.
    fn check(&mut self, _: &Run<'_>, account: &Account) -> Result<Checked, Error> {
        let said = [&account.stdout[..], &account.stderr[..]].concat();
        let said = String::from_utf8_lossy(&said).replace(',', "");
        let bytes = self.source.corpus.bytes.to_string();
        if !said.split_whitespace().any(|word| word == bytes) {
            return Err(Error::Usage(format!("it does not say that it read {bytes} bytes")));
        }
        Ok(Checked::default())
    }
}
