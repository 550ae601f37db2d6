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
use std::rc::Rc;

use flatout_measure::{Parameters, size_text};
use flatout_sys::memory;

use crate::corpus::{Corpus, make, name};
use crate::versus::race::{Contestant, Made, Race};
use crate::versus::rival::Discipline;
use crate::versus::{Extent, Ground, Planned, State, Trees};
use crate::{Error, scratch};

use command::Manner;
use target::{Amount, Targets};
use workload::{Copier, CopyWorkload};

/// The rows are called `versus/copy`.
pub const TEST: &str = "copy";

/// A source that is hot takes at most one part in so many of the available memory: its copy lies
/// there, too.
const MEMORY_PART: u64 = 3;

/// The length of a file of which only the number is asked for, or nothing but how deep it lies.
const USUAL_FILE_BYTES: u64 = 1 << 20;
/// What is raced when little is wanted.
const QUICK: [&str; 2] = ["1000x4K", "4x4M"];
/// What copiers race over beside everybody else: many files and few, so that ten of them take two
/// minutes rather than thirteen, and the whole race twenty (26 with IOzone).
pub const BESIDE_OTHERS: [&str; 2] = ["source-tree", "4x64M"];

/// The races, all corpora in all states, with so much room. Nothing is made yet; the first run of a
/// race makes its corpus. At least new corpora and a copy of the largest need their room; where there
/// is more, more targets stay until the end.
///
/// Errors: [`Error::Usage`] for names that nothing is called by; a tree that cannot be read.
pub fn plan(ground: &Ground, room_bytes: u64) -> Result<Planned, Error> {
    let copiers = copiers(ground);
    if copiers.is_empty() {
        return Ok(Planned::default());
    }
    let (pairs, new_bytes, mut left_out) = select(ground, room_bytes)?;
    let targets = Targets::new(ground.targets(), room_bytes.saturating_sub(new_bytes));
    let targets = Rc::new(RefCell::new(targets));
    let largest = pairs.iter().map(|(corpus, _)| corpus.copy_bytes()).max().unwrap_or_default();
    let shared_from_bytes = scratch::shared_from_bytes(&ground.directory);
    let mean = |corpus: &Corpus, state: State, of: &dyn Fn(&Manner, Option<u64>) -> f64| {
        let from_bytes = shared_from_bytes.filter(|_| corpus.is_beside(&ground.directory));
        let of_one = |(_, Copier { manner, .. }): (_, Copier)| {
            of(&manner, from_bytes.and_then(|bytes| manner.shared_from(bytes)))
        };
        let all: Vec<f64> = fit(&copiers, corpus, state).map(of_one).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let written_bytes = |corpus: &Corpus, state: State| match state {
        State::Unchanged => 0,
        _ => mean(corpus, state, &|_, from_bytes| corpus.written_bytes(from_bytes) as f64) as u64,
    };
    let expected_s = |corpus: &Corpus, state: State| match state {
        State::Unchanged => ground.tried.look_s(corpus),
        _ => mean(corpus, state, &|manner, from_bytes| {
            let own_s = manner.own_s(corpus.entries, corpus.data_bytes());
            ground.tried.copy_s(corpus, from_bytes) + own_s
        }),
    };
    let race = |(corpus, state): (Rc<Corpus>, State)| Race {
        test: TEST,
        parameters: parameters(&corpus, state),
        printed: None,
        bytes: corpus.bytes,
        made: Some(Made::of(&corpus, ground)),
        written_bytes: written_bytes(&corpus, state),
        contestants: fit(&copiers, &corpus, state).map(|(one, _)| one.clone()).collect(),
        expected_s: expected_s(&corpus, state),
        workload: Box::new(CopyWorkload::new(
            ground,
            (Rc::clone(&corpus), state),
            fit(&copiers, &corpus, state).map(|(_, copier)| copier).collect(),
            Rc::clone(&targets),
        )),
    };
    let (pairs, alone): (Vec<_>, Vec<_>) = pairs
        .into_iter()
        .partition(|(corpus, state)| fit(&copiers, corpus, *state).nth(1).is_some());
    left_out.extend(alone.into_iter().map(|(corpus, state)| {
        let what = match state {
            State::Unchanged => "leaves a copy as it is that is the same",
            _ => "copies such",
        };
        format!("{} is left out: no rival that was found {what}", corpus.name)
    }));
    let races = pairs.into_iter().map(race).collect();
    Ok(Planned { races, room_bytes: new_bytes.saturating_add(largest), left_out })
}

/// Those who copy what the corpus is, a tree or one file, where a race begins so.
fn fit<'a>(
    copiers: &'a [(Contestant, Copier)],
    corpus: &Corpus,
    state: State,
) -> impl Iterator<Item = (&'a Contestant, Copier)> + Clone + use<'a> {
    let is_file = corpus.single_file().is_some();
    copiers.iter().filter_map(move |(contestant, copier)| {
        let manner = copier.manner.in_state(state).filter(|manner| manner.copies(is_file))?;
        Some((contestant, Copier { manner, ..copier.clone() }))
    })
}

/// Flatout, and the rivals that can be called; nobody where there is no rival.
fn copiers(ground: &Ground) -> Vec<(Contestant, Copier)> {
    let is_privileged = rustix::process::geteuid().is_root();
    let copier = |manner: Manner, program| {
        let promise = manner.promise_as(is_privileged);
        Copier { manner, promise, program, lacks: None }
    };
    let rivals = ground.of(Discipline::Copy).filter_map(|found| {
        let manner = Manner::of(found.rival.name)?;
        Some((found.into(), copier(manner, found.path.clone())))
    });
    let own =
        if ground.trees.no_preserve.is_some() { Manner::FLATOUT_BARE } else { Manner::FLATOUT };
    let mut rivals = rivals.peekable();
    let ours = rivals
        .peek()
        .is_some()
        .then(|| (Contestant::flatout(&ground.flatout), copier(own, ground.flatout.clone())));
    ours.into_iter().chain(rivals).collect()
}

/// What is raced, the bytes that making the corpora takes, and what is left out, with the reason.
type Selection = (Vec<(Rc<Corpus>, State)>, u64, Vec<String>);

fn select(ground: &Ground, room_bytes: u64) -> Result<Selection, Error> {
    let mut states = ground.states.clone();
    if states.is_empty() {
        states.push(State::Hot);
    }
    // On ext4 whatever is created within minutes after a deletion pays for it.
    states.sort_by_key(|&state| state == State::Refresh);
    let (mut corpora, mut all_new_bytes, mut left_out) = (Vec::new(), 0, Vec::new());
    let mut leave_out = |corpus: &Corpus, reason: String| {
        left_out.push(format!("{} is left out: {reason}", corpus.name));
    };
    for corpus in wanted(ground)? {
        match room_for(&corpus, ground, room_bytes, all_new_bytes) {
            Ok(new_bytes) => {
                all_new_bytes += new_bytes;
                corpora.push(Rc::new(corpus));
            }
            Err(reason) => leave_out(&corpus, reason),
        }
    }
    let most_hot = memory::available_bytes().unwrap_or(u64::MAX) / MEMORY_PART;
    let mut pairs = Vec::new();
    for state in states {
        for corpus in &corpora {
            if state != State::Cold && corpus.bytes > most_hot {
                let reason = format!(
                    "{} do not stay in memory ({} may be taken), so it cannot be {}",
                    size_text(corpus.bytes),
                    size_text(most_hot),
                    state.name()
                );
                leave_out(corpus, reason);
            } else {
                pairs.push((Rc::clone(corpus), state));
            }
        }
    }
    Ok((pairs, all_new_bytes, left_out))
}

/// What was asked for; else the usual corpora.
fn wanted(ground: &Ground) -> Result<Vec<Corpus>, Error> {
    let Trees { corpora, tree, file_bytes, files, depth, no_preserve: _ } = &ground.trees;
    let is_uniform = file_bytes.is_some() || files.is_some() || depth.is_some();
    let mut wanted = match corpora.is_empty() {
        true if tree.is_some() || is_uniform => Vec::new(),
        true if ground.extent != Extent::Full => name::parse(&QUICK.map(str::to_owned))?,
        _ => name::parse(corpora)?,
    };
    if is_uniform {
        let (files, file_bytes) = (files.unwrap_or(1), file_bytes.unwrap_or(USUAL_FILE_BYTES));
        wanted.push(name::uniform(files, file_bytes, depth.map_or(0, u64::from))?);
    }
    if let Some(tree) = tree {
        wanted.push(Corpus::given(tree)?);
    }
    Ok(wanted)
}

/// Bytes that making the corpus takes, where there is room for it and one copy; else why not.
fn room_for(corpus: &Corpus, ground: &Ground, room: u64, taken_bytes: u64) -> Result<u64, String> {
    let new_bytes = make::new_bytes(corpus, &ground.corpora());
    let needed = taken_bytes.saturating_add(new_bytes).saturating_add(corpus.copy_bytes());
    if needed <= room {
        return Ok(new_bytes);
    }
    Err(format!(
        "{} and a copy of {} are needed beside {} for other corpora, but {} may be taken (one tenth \
         of the free space, or --max-write)",
        size_text(new_bytes),
        size_text(corpus.copy_bytes()),
        size_text(taken_bytes),
        size_text(room)
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

/// What a copy of the corpus takes.
fn amount(corpus: &Corpus) -> Amount {
    Amount { bytes: corpus.copy_bytes(), inodes: corpus.entries.saturating_add(1) }
}
