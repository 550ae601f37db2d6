//! One race of the copiers: the corpus is made, the cache brought into its state, the copier
//! called with a fresh target, and the copy compared with its source.

use std::cell::RefCell;
use std::fs::{self, File, FileTimes};
use std::path::PathBuf;
use std::rc::Rc;

use flatout_measure::{Facts, Warning, warning};
use flatout_sys::process::Account;
use flatout_sys::{CancelToken, monotonic_ns};
use flatout_tree::compare::{Asked, Comparison, Fidelity, Kind, compare};
use flatout_tree::remove::remove_tree;

use super::amount;
use super::command::Manner;
use super::target::Targets;
use crate::corpus::Corpus;
use crate::versus::printed::wrong;
use crate::versus::race::{Argv, Checked, Run, Workload};
use crate::versus::run::{SystemRunner, run_in_time};
use crate::versus::source::Source;
use crate::versus::{Ground, State, fact, state};
use crate::{Clearing, Error, IoError};

/// Differences of each kind that a message may name.
const NAMED: usize = 3;

/// A copier in this race.
#[derive(Debug, Clone)]
pub(super) struct Copier {
    pub(super) manner: Manner,
    pub(super) promise: Fidelity,
    pub(super) program: PathBuf,
    /// What its first copy lacked, though it did not promise it.
    pub(super) lacks: Option<String>,
}

/// A race of copiers.
pub(super) struct CopyWorkload {
    source: Source,
    state: State,
    cancel: CancelToken,
    expected_s: f64,
    copiers: Vec<Copier>,
    targets: Rc<RefCell<Targets>>,
    /// Where the copy of this run goes.
    target: PathBuf,
    /// Whether a whole copy lies there, with which the next run begins.
    is_copied: bool,
    round: Option<u32>,
    /// How often room had to be made.
    removals: u64,
}

impl CopyWorkload {
    pub(super) fn new(
        ground: &Ground,
        (corpus, state): (Rc<Corpus>, State),
        copiers: Vec<Copier>,
        targets: Rc<RefCell<Targets>>,
    ) -> Self {
        Self {
            expected_s: ground.tried.copy_s(&corpus, None),
            source: Source::of(ground, Corpus::clone(&corpus)),
            state,
            cancel: ground.cancel,
            copiers,
            targets,
            target: PathBuf::new(),
            is_copied: false,
            round: None,
            removals: 0,
        }
    }

    fn begins_with_copy(&self) -> bool {
        matches!(self.state, State::Refresh | State::Unchanged)
    }

    /// A fresh name for the copy, and room for it; at the begin of a round for all of its copies.
    fn fresh_target(&mut self, run: &Run<'_>) -> Result<(), Error> {
        let one = amount(&self.source.corpus);
        let is_new_round = self.round.replace(run.round) != Some(run.round);
        // Within a round only where not even one fits beside the others.
        let wanted = if is_new_round { one.times(self.copiers.len() as u64) } else { one };
        let (target, has_removed) = self.targets.borrow_mut().fresh(one, wanted)?;
        self.target = target;
        self.removals += u64::from(has_removed);
        Ok(())
    }

    /// Makes sure that a copy lies where the next one goes.
    fn lay_copy(&mut self, run: &Run<'_>) -> Result<(), Error> {
        if self.is_copied {
            return Ok(());
        }
        if self.target.as_os_str().is_empty() {
            self.fresh_target(run)?;
        }
        remove_tree(&self.target).map_err(IoError::system("remove", &self.target))?;
        let Some(first) = self.copiers.first() else { return Ok(()) };
        self.make_ready(&first.manner)?;
        let call = self.call(first);
        let left_ns = run.ends_ns.saturating_sub(monotonic_ns());
        let mut runner = SystemRunner { cancel: self.cancel };
        let (call, expected_s) = ((first.manner.name, &call[..]), self.expected_s);
        let ran = run_in_time(&mut runner, call, expected_s, left_ns);
        ran.map(drop).map_err(|error| wrong(format!("no copy to begin with: {error}")))
    }

    /// How a copier is called: for the tree, or for the one file in it.
    fn call(&self, copier: &Copier) -> Argv {
        let one = self.source.corpus.single_file();
        let [source, target] = [&self.source.root(), &self.target]
            .map(|root| one.map_or_else(|| root.clone(), |name| root.join(name)));
        copier.manner.invocation(&copier.program, &source, &target)
    }

    /// Makes the target for those who want it made, and for one file.
    fn make_ready(&self, manner: &Manner) -> Result<(), Error> {
        if manner.wants_target() || self.source.corpus.single_file().is_some() {
            fs::create_dir(&self.target)
                .map_err(IoError::system("make the directory", &self.target))?;
        }
        Ok(())
    }

    fn facts_of_targets(&self, facts: &mut Facts) {
        let text = match (self.state, self.removals) {
            (State::Refresh, _) => "deleted just before each run".to_owned(),
            // Flatout takes no part where it keeps no times, by which it would know a copy.
            (State::Unchanged, _) => {
                format!("one copy by {}, for all", self.copiers[0].manner.name)
            }
            (_, 0) => "fresh; emptied when compared, removed at the end".to_owned(),
            (_, times) => format!("fresh; {times} times earlier ones were removed, for room"),
        };
        facts.set(fact::TARGETS, text);
    }

    /// Holds the copy against its source: in the first run of a copier in everything, so that what
    /// it lacks is known, later in what it promises.
    fn compare(&mut self, run: &Run<'_>) -> Result<Comparison, Error> {
        let source = self.source.root();
        let copier = &self.copiers[run.index];
        let fidelity = if copier.lacks.is_some() { copier.promise } else { Fidelity::ALL };
        let cancel = self.cancel.until(run.ends_ns);
        let asked = Asked { fidelity, most_named: NAMED, cancel };
        if !fs::symlink_metadata(&self.target).is_ok_and(|facts| !facts.is_symlink()) {
            return Err(wrong(format!("it left no copy at {:?}, or a symlink", self.target)));
        }
        if self.source.corpus.single_file().is_some() {
            // The directory around one file is made here.
            let times = fs::metadata(&source)
                .and_then(|of| Ok(FileTimes::new().set_modified(of.modified()?)))
                .and_then(|times| File::open(&self.target)?.set_times(times));
            times.map_err(IoError::system("set the time of", &self.target))?;
        }
        Ok(compare(&source, &self.target, asked)?)
    }
}

impl Workload for CopyWorkload {
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error> {
        self.source.make(run.ends_ns)?;
        if self.begins_with_copy() {
            self.lay_copy(run)?;
        } else {
            self.fresh_target(run)?;
        }
        // What earlier runs wrote, and what making room changed.
        if let Some(folder) = self.target.parent() {
            state::settle(folder)?;
        }
        let (root, cancel) = (self.source.root(), self.cancel.until(run.ends_ns));
        let mut facts = state::bring(&root, self.state, Clearing::File, cancel)?;
        if self.state == State::Refresh {
            remove_tree(&self.target).map_err(IoError::system("remove", &self.target))?;
        }
        if self.state != State::Unchanged {
            self.make_ready(&self.copiers[run.index].manner)?;
        }
        self.facts_of_targets(&mut facts);
        self.is_copied = false;
        Ok(facts)
    }

    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        Ok(self.call(&self.copiers[run.index]))
    }

    fn complete(&mut self, _run: &Run<'_>) -> Result<(), Error> {
        if self.state == State::Durable { state::settle(&self.target) } else { Ok(()) }
    }

    fn check(&mut self, run: &Run<'_>, _: &Account) -> Result<Checked, Error> {
        let found = self.compare(run)?;
        if !found.is_complete {
            return Err(Error::Warned(warning::no_time()));
        }
        let begins_with_copy = self.begins_with_copy();
        let copier = &mut self.copiers[run.index];
        if let Some(first) = found.first_of(copier.promise) {
            let kinds = counted(&found, |kind| copier.promise.has(kind));
            return Err(wrong(format!(
                "the copy is not the source: {first}; differences: {kinds}"
            )));
        }
        self.is_copied = begins_with_copy;
        if !self.is_copied {
            self.targets.borrow_mut().empty(&self.target, amount(&self.source.corpus))?;
        }
        let lacks = copier.lacks.get_or_insert_with(|| counted(&found, |_| true));
        let warning = (!lacks.is_empty())
            .then(|| Warning::new(warning::KEEPS_LESS, format!("keeps less than cp -a: {lacks}")));
        let facts = Facts::default()
            .with(fact::FIDELITY, copier.manner.class.name())
            .with(fact::LACKS, lacks.clone())
            .with(fact::COMPARED_ENTRIES, found.entries);
        Ok(Checked { facts, warnings: warning.into_iter().collect(), ..Checked::default() })
    }
}

fn counted(found: &Comparison, is_meant: impl Fn(Kind) -> bool) -> String {
    let kinds = found.counts.iter().filter(|(kind, _)| is_meant(**kind));
    let texts: Vec<_> = kinds.map(|(kind, count)| format!("{} {count}", kind.code())).collect();
    texts.join(", ")
}
