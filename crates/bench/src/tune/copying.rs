//! One copy of a tree by given settings, as `flatout copy` makes it.

use std::path::Path;
use std::sync::Mutex;
use std::thread::{Builder, Scope};

use flatout_io::transfer::{BUFFER_BYTES, Method};
use flatout_io::{Engine, SizeClass, Tuning};
use flatout_measure::{Sample, TrialError};
use flatout_sys::lock::{lock, unlocked};
use flatout_sys::{monotonic_ns, run_queue};
use flatout_tree::copy::event::{Event, Watch};
use flatout_tree::copy::options::{
    Appearance, Assurance, CopyOptions, Durability, Effect, Inventory, Overwrite, Preserve, Reach,
    Tuned, Unchanged, When,
};
use flatout_tree::copy::{Copy, Ended, Operand};
use flatout_tree::remove::remove_tree;

use super::Options;
use super::group::Group;
use super::tuned_place::TunedPlace;
use crate::file_trial::accounting::{self, Account};
use crate::versus::{State, state};
use crate::{Clearing, Error, IoError, fact, place};

/// What a copy may remember in memory.
const MEMORY_BYTES: u64 = 8 << 20;

/// Copies the tree of the group into a fresh place.
///
/// The target of a large file is removed at once, that of small ones is emptied, and removed in the end:
/// creating is slow on ext4 for a minute after many files were deleted.
pub(super) fn copy(
    (group, places): (&Group, &[TunedPlace]),
    tuning: &Tuning,
    options: &Options,
) -> Result<Sample, TrialError> {
    let (from, to) = (&places[group.source], &places[group.target]);
    let source = if group.size == SizeClass::Tiny { &from.tiny } else { &from.large };
    to.settle()?;
    let wanted = if group.cached { State::Hot } else { State::Cold };
    let mut facts = state::bring(source, wanted, Clearing::File, options.cancel)?;
    let target = to.fresh();
    let scope = accounting::Scope::Process;
    let before = Account::read(scope);
    let begun_ns = monotonic_ns();
    let ended = run(source, &target, tuning, options);
    let elapsed_ns = monotonic_ns() - begun_ns;
    let accounts = before.until_now(scope);
    let gone = match group.size {
        SizeClass::Tiny => place::empty(&target).map_err(IoError::system("empty", &target)),
        _ => remove_tree(&target).map_err(IoError::system("remove", &target)),
    };
    let ended = ended?;
    gone.map_err(Error::from)?;
    if let Some(wanted) = method(tuning)
        && ended.totals.by_method[wanted.index()].1 < group.files()
    {
        let text = format!("{wanted} was not possible here: other methods moved the bytes");
        return Err(TrialError::Unsupported(text));
    }
    let amount = match group.size {
        SizeClass::Tiny => ended.totals.files,
        SizeClass::Small | SizeClass::Large => ended.totals.bytes_accepted,
    };
    facts.set(fact::BYTES, ended.totals.bytes_accepted);
    facts
        .set_known(fact::DEVICE_READ_BYTES, accounts.facts().count(accounting::PROCESS_READ_BYTES));
    Ok(Sample { amount: amount as f64, elapsed_ns, facts, ..Sample::default() })
}

/// The method that stands for an engine where files are copied. `None`: that of copies by default.
fn method(tuning: &Tuning) -> Option<Method> {
    Some(match tuning.engine {
        Engine::Sync if asked_block(tuning) == 0 => return None,
        Engine::Sync => Method::Sync,
        Engine::Mmap => Method::Mmap,
        Engine::Uring => Method::Uring,
    })
}

fn run(
    source: &Path,
    target: &Path,
    tuning: &Tuning,
    options: &Options,
) -> Result<Ended, TrialError> {
    let complaint = Complaint::default();
    let copy = Copy::new(copy_options(tuning, options), &complaint);
    let operands = vec![Operand { source: source.to_owned(), target: target.to_owned() }];
    let ended = std::thread::scope(|scope| copy.run(operands, &|_: u32| hire(scope, &copy)));
    drop(copy);
    match unlocked(complaint.0) {
        Some(text) => Err(TrialError::Failed(text)),
        None if ended.totals.failed > 0 || ended.out_of_space => {
            Err(TrialError::Failed("there is no room for the copy".to_owned()))
        }
        None => Ok(ended),
    }
}

/// By default, but for the settings; extents are never shared, because then nothing would be moved.
fn copy_options(tuning: &Tuning, options: &Options) -> CopyOptions {
    CopyOptions {
        preserve: Preserve::ALL,
        appearance: Appearance::Plain,
        unchanged: Unchanged::Never,
        overwrite: Overwrite::Writable,
        effect: Effect::Done,
        deletion: None,
        reach: Reach::Everything,
        method: method(tuning),
        reflink: When::Never,
        sparse: When::Auto,
        assurance: Assurance::Accepted,
        durability: Durability::Cached,
        threads: tuning.threads,
        block_bytes: asked_block(tuning),
        depth: tuning.depth,
        tuned: Tuned::default(),
        max_fds: 0,
        inventory: Inventory::None,
        max_memory_bytes: MEMORY_BYTES,
        umask: None,
        cancel: options.cancel,
    }
}

/// The usual block is none that is asked for: copies write it in pieces then, as long as is best at
/// the moment.
fn asked_block(tuning: &Tuning) -> u64 {
    let is_usual = tuning.engine == Engine::Sync && tuning.block_bytes == BUFFER_BYTES as u64;
    if is_usual { 0 } else { tuning.block_bytes }
}

fn hire<'scope, 'env>(scope: &'scope Scope<'scope, 'env>, copy: &'env Copy<'_>) -> bool {
    let thread = Builder::new().name("copy".to_owned());
    run_queue::spawn(scope, thread, move || copy.work(&|_: u32| hire(scope, copy))).is_ok()
}

/// The first thing that went wrong.
#[derive(Default)]
struct Complaint(Mutex<Option<String>>);

impl Watch for Complaint {
    fn event(&self, event: &Event) {
        if let Event::Failed(failure) = event {
            lock(&self.0).get_or_insert_with(|| failure.to_string());
        }
    }
}
