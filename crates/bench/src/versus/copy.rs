//! Races of `flatout copy` against programs that copy trees: which corpora in which states, who
//! takes part, and whether there is room for it.
//!
//! [`command`] knows how each rival is called and what it promises; `workload` brings the state
//! about, and compares the copy with its source after each run.

pub mod command;
pub mod target;
#[cfg(test)]
mod tests;
mod workload;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use flatout_measure::row::Parameters;
use flatout_sys::memory;

use crate::cache::Clearing;
use crate::corpus::{Corpus, make, name};
use crate::error::Error;
use crate::versus::race::{Contestant, Figure, Race};
use crate::versus::rival::Discipline;
use crate::versus::{Extent, Ground, State};

use command::Manner;
use target::{Amount, Targets};
use workload::{Copier, CopyWorkload};

/// The rows are called `versus/copy`.
pub const TEST: &str = "copy";

/// A source that is hot takes at most one part in so many of the available memory: its copy lies
/// there, too.
const MEMORY_PART: u64 = 3;
/// Rates that copies are expected to have when their time is planned; a guess on the slow side.
const EXPECTED_BYTES_PER_S: f64 = 1e9;
const EXPECTED_ENTRY_S: f64 = 30e-6;
/// Setting the state, comparing and tidying up take about as long as copying, each.
const EXPECTED_PARTS: f64 = 3.0;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// Rivals, directory, states, room.
    pub ground: Ground,
    /// Names of corpora and groups, see [`name`]; none: the default ones, unless there are trees
    /// or a corpus of the user's.
    pub corpora: Vec<String>,
    /// Trees that are only read.
    pub trees: Vec<PathBuf>,
    /// Files of one size, as options ask for them.
    pub uniform: Option<Uniform>,
    /// How the cache is cleared for [`State::Cold`].
    pub clearing: Clearing,
}

/// What is raced when little is wanted.
const QUICK: [&str; 2] = ["1000x4K", "4x4M"];
/// What copiers race over beside everybody else: many files and few, so that ten of them take two
/// minutes rather than thirteen, and the whole race twenty (26 with IOzone).
pub const BESIDE_OTHERS: [&str; 2] = ["source-tree", "4x64M"];

impl CopyOptions {
    /// What is asked of a whole race.
    pub fn of(ground: &Ground) -> Self {
        let trees = &ground.trees;
        let has_own = trees.file_bytes.is_some() || trees.files.is_some() || trees.depth.is_some();
        let usual = Uniform::default();
        let uniform = has_own.then(|| Uniform {
            files: trees.files.unwrap_or(usual.files),
            file_bytes: trees.file_bytes.unwrap_or(usual.file_bytes),
            tree_depth: trees.depth.map_or(usual.tree_depth, u64::from),
        });
        let mut corpora = trees.corpora.clone();
        let is_open = corpora.is_empty() && !has_own && trees.tree.is_none();
        if is_open && ground.extent == Extent::Quick {
            corpora = QUICK.map(str::to_owned).to_vec();
        }
        Self {
            ground: ground.clone(),
            corpora,
            trees: trees.tree.iter().cloned().collect(),
            uniform,
            clearing: Clearing::File,
        }
    }
}

/// Files of one size below directories that lie in each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uniform {
    /// How many.
    pub files: u64,
    /// Length of each.
    pub file_bytes: u64,
    /// Directories above them.
    pub tree_depth: u64,
}

impl Default for Uniform {
    /// One file of 1 MiB at the top.
    fn default() -> Self {
        Self { files: 1, file_bytes: 1 << 20, tree_depth: 0 }
    }
}

/// A race that does not take place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the corpus.
    pub corpus: String,
    /// Why.
    pub reason: String,
}

/// What the races will take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes that are needed at least: new corpora, and a copy of the largest. Where there is more
    /// room, more targets stay until the end.
    pub room_bytes: u64,
    /// What there is no room for.
    pub left_out: Vec<LeftOut>,
}

/// What is raced, and what is not.
struct Selection {
    races: Vec<(Rc<Corpus>, State)>,
    new_bytes: u64,
    left_out: Vec<LeftOut>,
}

/// The races: all corpora in all states. Nothing is made yet; the first run of a race makes its
/// corpus.
///
/// Errors: [`Error::Usage`] for names that nothing is called by; a tree that cannot be read.
pub fn races(options: &CopyOptions) -> Result<Vec<Race<'static>>, Error> {
    let copiers = copiers(&options.ground);
    if copiers.is_empty() {
        return Ok(Vec::new());
    }
    let selection = select(options)?;
    let room_bytes = options.ground.room_bytes.saturating_sub(selection.new_bytes);
    let targets = Rc::new(RefCell::new(Targets::new(options.ground.targets(), room_bytes)));
    let race = |(corpus, state): (Rc<Corpus>, State)| Race {
        test: TEST,
        parameters: parameters(&corpus, state),
        figure: Figure::Time,
        bytes: corpus.bytes,
        contestants: copiers.iter().map(|(contestant, _)| contestant.clone()).collect(),
        expected_s: expected_s(&corpus),
        workload: Box::new(CopyWorkload::new(
            options,
            (corpus, state),
            copiers.iter().map(|(_, copier)| copier.clone()).collect(),
            Rc::clone(&targets),
        )),
    };
    Ok(selection.races.into_iter().map(race).collect())
}

/// What the races will take, and what there is no room for.
///
/// Errors: as [`races`].
pub fn estimate(options: &CopyOptions) -> Result<Estimate, Error> {
    if copiers(&options.ground).is_empty() {
        return Ok(Estimate::default());
    }
    let selection = select(options)?;
    let copies = selection.races.iter().map(|(corpus, _)| corpus.copy_bytes());
    let largest = copies.max().unwrap_or_default();
    Ok(Estimate {
        room_bytes: selection.new_bytes.saturating_add(largest),
        left_out: selection.left_out,
    })
}

/// Flatout, and the rivals that can be called; nobody where there is no rival.
fn copiers(ground: &Ground) -> Vec<(Contestant, Copier)> {
    let is_privileged = rustix::process::geteuid().is_root();
    let copier =
        |manner: Manner, program| Copier::new(manner, manner.promise_as(is_privileged), program);
    let rivals = ground.of(Discipline::Copy).filter_map(|found| {
        let manner = Manner::of(found.rival.name)?;
        Some((found.into(), copier(manner, found.path.clone())))
    });
    let mut rivals = rivals.peekable();
    let ours = rivals
        .peek()
        .is_some()
        .then(|| (Contestant::flatout(), copier(Manner::FLATOUT, ground.flatout.clone())));
    ours.into_iter().chain(rivals).collect()
}

fn select(options: &CopyOptions) -> Result<Selection, Error> {
    let mut states = options.ground.states.clone();
    if states.is_empty() {
        states.push(State::Hot);
    }
    // On ext4 whatever is created within minutes after a deletion pays for it.
    states.sort_by_key(|&state| state == State::Refresh);
    let mut selection = Selection { races: Vec::new(), new_bytes: 0, left_out: Vec::new() };
    let mut corpora = Vec::new();
    for corpus in wanted(options)? {
        match room_for(&corpus, options, selection.new_bytes) {
            Ok(new_bytes) => {
                selection.new_bytes += new_bytes;
                corpora.push(Rc::new(corpus));
            }
            Err(reason) => selection.left_out.push(LeftOut { corpus: corpus.name, reason }),
        }
    }
    let most_hot = memory::available_bytes().unwrap_or(u64::MAX) / MEMORY_PART;
    for state in states {
        for corpus in &corpora {
            if state != State::Cold && corpus.bytes > most_hot {
                let reason = format!(
                    "{} bytes do not stay in memory ({most_hot} may be taken), so it cannot be {}",
                    corpus.bytes,
                    state.name()
                );
                selection.left_out.push(LeftOut { corpus: corpus.name.clone(), reason });
            } else {
                selection.races.push((Rc::clone(corpus), state));
            }
        }
    }
    Ok(selection)
}

fn wanted(options: &CopyOptions) -> Result<Vec<Corpus>, Error> {
    let has_own = !options.trees.is_empty() || options.uniform.is_some();
    let mut corpora = if options.corpora.is_empty() && has_own {
        Vec::new()
    } else {
        name::parse(&options.corpora)?
    };
    if let Some(Uniform { files, file_bytes, tree_depth }) = options.uniform {
        corpora.push(name::uniform(files, file_bytes, tree_depth)?);
    }
    for tree in &options.trees {
        corpora.push(Corpus::given(tree)?);
    }
    Ok(corpora)
}

/// Bytes that making the corpus takes, where there is room for it and one copy; else why not.
fn room_for(corpus: &Corpus, options: &CopyOptions, taken_bytes: u64) -> Result<u64, String> {
    let is_there = make::is_made(corpus, &options.ground.corpora());
    let new_bytes = if is_there { 0 } else { corpus.make_bytes() };
    let needed = taken_bytes.saturating_add(new_bytes).saturating_add(corpus.copy_bytes());
    let room = options.ground.room_bytes;
    if needed <= room {
        return Ok(new_bytes);
    }
    Err(format!(
        "{} bytes and a copy of {} are needed beside {taken_bytes} for other corpora, but {room} \
         may be taken (one tenth of the free space, or --max-write)",
        new_bytes,
        corpus.copy_bytes()
    ))
}

fn parameters(corpus: &Corpus, state: State) -> Parameters {
    let mut parameters = Parameters::default()
        .with("corpus", corpus.name.clone())
        .with("cache_state", state.name())
        .with("bytes", corpus.bytes)
        .with("files", corpus.files);
    let depth = corpus.depth();
    parameters.set_known("tree_depth", (depth > 0).then_some(depth));
    parameters
}

fn expected_s(corpus: &Corpus) -> f64 {
    let once =
        corpus.bytes as f64 / EXPECTED_BYTES_PER_S + corpus.entries as f64 * EXPECTED_ENTRY_S;
    once * EXPECTED_PARTS
}

/// What a copy of the corpus takes.
fn amount(corpus: &Corpus) -> Amount {
    Amount { bytes: corpus.copy_bytes(), inodes: corpus.entries.saturating_add(1) }
}
