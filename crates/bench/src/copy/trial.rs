//! One copy of one tree: the state of the cache is brought about and proved, the program is run
//! with a fresh target, and the copy is compared with its source.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use flatout_measure::{
    Case, EVIDENCE, Evidence, Further, Happened, Parameters, Sample, TrialError, Warning,
};
use flatout_sys::monotonic_ns;
use flatout_tree::compare::{Asked, Fidelity, compare};
use flatout_tree::copy::options::Durability;

use super::choose::Wanted;
use super::row::{Row, Work};
use super::site::Site;
use crate::versus::copy::command::Manner;
use crate::versus::run::{SystemRunner, command_text, run_in_time};
use crate::versus::{fact, race, state};
use crate::{Error, IoError, go_on, place};

/// Differences of each kind that a message may name.
const NAMED: usize = 3;
/// Who is called, in messages.
const NAME: &str = "flatout";

/// The copy of a tree as a case for the sampler.
pub(super) fn case(wanted: Wanted, phase: Option<usize>, site: &Site) -> Case<'_, Row> {
    let state = site.options.state;
    let row = Row { work: Work::Tree(wanted.clone()), state, phase };
    Case { row, trial: Box::new(move |_seed| trial(&wanted, site)) }
}

fn trial(wanted: &Wanted, site: &Site) -> Result<Sample, TrialError> {
    if site.is_never_cold() {
        let text = "files of this filesystem live in memory: nothing here is ever cold";
        return Err(TrialError::Unsupported(text.to_owned()));
    }
    site.limit.take(wanted.corpus.written_bytes(site.shared_from_bytes))?;
    let result = copy(wanted, site);
    // What fails while the user wants to stop, fails because of that.
    go_on(site.options.run.cancel)?;
    result
}

fn copy(wanted: &Wanted, site: &Site) -> Result<Sample, TrialError> {
    let options = &site.options;
    let source = site.source(&wanted.corpus);
    site.settle()?;
    let mut facts = state::bring(&source, options.state, options.clearing, options.run.cancel)?;
    let target = site.fresh();
    let call = Manner::FLATOUT.invocation(&options.run.flatout, &source, &target);
    let mut runner = SystemRunner { cancel: options.run.cancel };
    let left_ns = site.ends_ns.saturating_sub(monotonic_ns());
    let expected_s = options.pace().tried.copy_s(&wanted.corpus, None);
    let spent = run_in_time(&mut runner, (NAME, &call), expected_s, left_ns)?;
    let ended_ns = monotonic_ns();
    let mut further = Vec::new();
    if options.until == Durability::Durable {
        site.settle()?;
        let elapsed_ns = spent.elapsed_ns.saturating_add(monotonic_ns() - ended_ns);
        further.push(durable(1.0, elapsed_ns));
    }
    let entries = check(&source, &target, site)?;
    facts.set(fact::COMPARED_ENTRIES, entries);
    // A trial whose copy differs ends the row: the last one speaks for all.
    let text = "each copy was compared with its source";
    let by = fact::COMPARED_ENTRIES.name();
    facts.set(EVIDENCE, Evidence::read(Happened::Yes, by, entries as f64, text));
    place::empty(&target).map_err(IoError::system("empty", &target)).map_err(Error::from)?;
    let mut warnings: Vec<Warning> = site.filesystem_warning().into_iter().collect();
    warnings.extend(state::doubt(&facts));
    race::describe(&mut facts, &spent);
    facts.set(fact::COMMAND, shown(&call, &site.folder));
    facts.set(fact::TARGETS, "fresh; emptied when compared, removed at the end");
    let is_shared = wanted.corpus.is_shared(site.shared_from_bytes);
    // Whether copies share the extents of their sources.
    facts.set_known("extents", is_shared.then_some("shared"));
    let elapsed_ns = spent.elapsed_ns;
    Ok(Sample { amount: 1.0, elapsed_ns, facts, warnings, further, ..Sample::default() })
}

/// The figure of a trial that ends when storage has everything.
pub(super) fn durable(amount: f64, elapsed_ns: u64) -> Further {
    let parameters = Parameters::default().with("until", "durable");
    Further { parameters, amount, elapsed_ns, ..Further::default() }
}

/// Holds the copy against its source in everything that can be kept here; returns the entries.
fn check(source: &Path, target: &Path, site: &Site) -> Result<u64, TrialError> {
    let fidelity: Fidelity = Manner::FLATOUT.promise_as(rustix::process::geteuid().is_root());
    let asked = Asked { fidelity, most_named: NAMED, cancel: site.options.run.cancel };
    let found = compare(source, target, asked).map_err(Error::from)?;
    if !found.is_complete {
        return Err(TrialError::Interrupted);
    }
    match found.first_of(fidelity) {
        Some(first) => Err(TrialError::Failed(format!("the copy is not the source: {first}"))),
        None => Ok(found.entries),
    }
}

/// The command as one types it, without the folder that nobody else will have.
fn shown(call: &[OsString], folder: &Path) -> String {
    let word = |word: &OsString| -> OsString {
        let path = PathBuf::from(word);
        path.strip_prefix(folder).map_or_else(|_| word.clone(), |below| below.into())
    };
    let words = call.iter().skip(1).map(word);
    command_text(&std::iter::once(NAME.into()).chain(words).collect::<Vec<_>>())
}
