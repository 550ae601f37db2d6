//! Against dd: the bytes of one file into another, block by block, and a file to nowhere.
//!
//! Copies go through the page cache on both sides, from a source that is wholly in there, and are
//! compared with it after each run. `flatout transfer` obeys the block size as dd does;
//! `flatout read` takes its own.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flatout_measure::{Chart, Facts, Parameters};
use flatout_sys::monotonic_ns;
use flatout_sys::process::Account;
use flatout_tree::compare::is_same;

use crate::option::each_once;
use crate::tried::Copying;
use crate::versus::printed::wrong;
use crate::versus::race::{Argv, Checked, Made, Race, Run, Workload};
use crate::versus::rival::{Discipline, Found};
use crate::versus::run::operand;
use crate::versus::source::Source;
use crate::versus::{Extent, Ground, State};
use crate::{Error, IoError, MIB, place, scratch};

/// The race of files that are read.
const READ: &str = "dd-read";
/// The block of copies of several sizes.
const USUAL_BLOCK_BYTES: u64 = 4096;
/// Blocks at which one large file is copied.
const BLOCKS_BYTES: [u64; 4] = [512, 1024, 2048, 4096];
/// Blocks at which one is read to nowhere: flatout takes its own.
const READ_BLOCKS_BYTES: [u64; 2] = [128 << 10, MIB];
/// Seconds per block with which the plan of the time counts where nothing can be tried: dd on two machines,
/// 2026-11-22 and 27.
const PLANNED_BLOCK_S: f64 = 1.2e-6;
/// What a block takes is seen with so many small ones.
const TRIED_BLOCKS: u64 = 256;
const TRIED_TURNS: usize = 3;
const TRIED_BYTES: usize = 512;
/// Seconds that starting a run takes; what is waited for before it was tried in the place.
const START_S: f64 = 0.012;

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
    each_once(&mut sources);
    sources.iter().sum::<u64>() + sizes.blocks.max(sizes.copied.iter().copied().max().unwrap_or(0))
}

/// The races against dd; none where it is not raced.
pub fn races(ground: &Ground) -> Vec<Race<'static>> {
    let Some(dd) = ground.of(Discipline::Blocks).next() else { return Vec::new() };
    let sizes = sizes(ground.extent);
    let copied = sizes.copied.iter().map(|&bytes| ("dd-copy", bytes, USUAL_BLOCK_BYTES));
    let blocks = BLOCKS_BYTES.iter().map(|&block| ("dd-block", sizes.blocks, block));
    let reads = READ_BLOCKS_BYTES.iter().map(|&block| (READ, sizes.read, block));
    let block_s = block_s(&ground.directory).unwrap_or(PLANNED_BLOCK_S);
    let works = copied.chain(blocks).chain(reads);
    works.map(|work| race(ground, dd, work, block_s)).collect()
}

/// What reading and writing a small block takes, which filesystems differ in: the least of a few turns.
fn block_s(directory: &Path) -> Option<f64> {
    let mut block = [1; TRIED_BYTES];
    let mut turn_ns = |_| {
        let file = scratch::open_unnamed(directory).ok()?;
        let begun_ns = monotonic_ns();
        for at in (0..TRIED_BLOCKS).map(|index| index * TRIED_BYTES as u64) {
            file.write_all_at(&block, at).ok()?;
            file.read_exact_at(&mut block, at).ok()?;
        }
        Some(monotonic_ns() - begun_ns)
    };
    let least_ns = (0..TRIED_TURNS).filter_map(&mut turn_ns).min()?;
    Some(least_ns as f64 / TRIED_BLOCKS as f64 / 1e9)
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

fn race(
    ground: &Ground,
    dd: &Found,
    (test, bytes, block_bytes): (&'static str, u64, u64),
    block_s: f64,
) -> Race<'static> {
    let is_copied = test != READ;
    let source = Source::new(ground, 1, bytes);
    let made = Some(Made::of(&source.corpus, ground));
    let workload = BlockWorkload {
        source,
        targets: is_copied.then(|| ground.targets()),
        target: PathBuf::from("/dev/null"),
        block_bytes,
    };
    // What is copied is compared, too, which reads both.
    let Copying { byte_ns, compared_byte_ns, .. } = ground.tried.copying;
    let [copied_s, moved_s] =
        [byte_ns + compared_byte_ns, compared_byte_ns].map(|ns| bytes as f64 * ns / 1e9);
    let copied_s = copied_s + (bytes / block_bytes) as f64 * block_s;
    let expected_s = START_S + if is_copied { copied_s } else { moved_s };
    let parameters = Parameters::default()
        .with("bytes", bytes)
        .with("block_bytes", block_bytes)
        .with("cache_state", State::Hot.name());
    let race = Race::against(ground, dd, (test, parameters), expected_s, workload);
    Race { bytes, made, written_bytes: if is_copied { bytes } else { 0 }, ..race }
}

/// A file that is copied to another, or read to nowhere.
struct BlockWorkload {
    source: Source,
    /// Where copies go, under names of their own.
    targets: Option<PathBuf>,
    /// That of this run.
    target: PathBuf,
    block_bytes: u64,
}

impl Workload for BlockWorkload {
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error> {
        if let Some(targets) = &self.targets {
            fs::create_dir_all(targets).map_err(IoError::system("make the directory", targets))?;
            self.target = targets.join(place::unused_name("copy"));
        }
        self.source.prepare(State::Hot, run.ends_ns)
    }

    /// The first contestant is flatout.
    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        let (source, target) = (self.source.path(), &self.target);
        let block = self.block_bytes.to_string();
        let words: Argv = match (run.index, &self.targets) {
            (0, None) => vec!["read".into(), source.into()],
            (0, Some(_)) => {
                let block = operand("--block-size=", block);
                vec!["transfer".into(), source.into(), target.into(), block]
            }
            _ => vec![operand("if=", source), operand("of=", target), operand("bs=", block)],
        };
        Ok(std::iter::once(run.contestant.program.clone().into()).chain(words).collect())
    }

    /// A copy is compared with its source. Of a read both say how many bytes it were: dd without
    /// separators, flatout with.
    fn check(&mut self, _: &Run<'_>, account: &Account) -> Result<Checked, Error> {
        let said = [&account.stdout[..], &account.stderr[..]].concat();
        let said = String::from_utf8_lossy(&said).replace(',', "");
        let bytes = self.source.corpus.bytes.to_string();
        if self.targets.is_some() {
            if !is_same(&self.source.path(), &self.target)? {
                return Err(wrong("the copy differs from its source"));
            }
            // Its bytes take no room from the next, nor are they written back meanwhile.
            let emptied = File::options().write(true).open(&self.target);
            let emptied = emptied.and_then(|file| file.set_len(0));
            emptied.map_err(IoError::system("empty", &self.target))?;
        } else if !said.split_whitespace().any(|word| word == bytes) {
            return Err(wrong(format!("it does not say that it read {bytes} bytes")));
        }
        Ok(Checked::default())
    }
}
