//! What all trials on a file share, in `read`, `write` and the areas cache, disk and tune: the page
//! cache is brought into a state that is proved (`file_trial/page_cache.rs`), workers run between two
//! readings of the I/O accounting (`file_trial/accounting.rs`), and what was not to be had is no
//! figure. What a read or a write did: `file_trial/measured.rs`; what shows it:
//! `file_trial/evidence.rs`.

pub(crate) mod accounting;
pub(crate) mod cache_watch;
pub(crate) mod evidence;
pub(crate) mod group_limit;
pub(crate) mod measured;
pub(crate) mod page_cache;

use std::sync::{Mutex, OnceLock};

use flatout_measure::{TrialError, Warning, warning};
use flatout_sys::lock::unlocked;
use flatout_sys::monotonic_ns;

use crate::Watch;
use crate::workers::{self, ThreadError, lock};
use accounting::{Account, Accounts, Scope};

/// What the workers of a trial did.
pub(crate) struct Ran<T> {
    /// One result per worker, in order.
    pub(crate) results: Vec<T>,
    /// When the first one began.
    pub(crate) begun_ns: u64,
    /// From the first start to the last end.
    pub(crate) elapsed_ns: u64,
    /// The I/O accounting, read outside of that time.
    pub(crate) accounts: Accounts,
}

/// Runs `prepare` and then `work` in so many threads. The clock runs for `work` alone, which is told
/// when that began; the accounts hold neither what the preparation costs nor what giving buffers
/// back costs. `also` is told when the work begins and has ended.
///
/// Errors: the first of a worker, or that a thread cannot be started.
pub(crate) fn run<P, T: Send, E: Send + From<ThreadError>>(
    threads: u32,
    scope: Scope<'_>,
    also: Watch<'_>,
    prepare: impl Fn(u32) -> Result<P, E> + Sync,
    work: impl Fn(u32, &mut P, u64) -> Result<T, E> + Sync,
) -> Result<Ran<T>, E> {
    let begun_ns = OnceLock::new();
    let readings = Mutex::new((Account::default(), Account::default()));
    let watch = Watch {
        begins: &|| {
            lock(&readings).0 = Account::read(scope);
            (also.begins)();
        },
        ended: &|| {
            (also.ended)();
            if !matches!(scope, Scope::Begin(_)) {
                lock(&readings).1 = Account::read(scope);
            }
        },
    };
    let (results, elapsed_ns) =
        workers::run_watched(threads, watch, prepare, |index, prepared| {
            work(index, prepared, *begun_ns.get_or_init(monotonic_ns))
        })?;
    let (before, worked) = unlocked(readings);
    Ok(Ran {
        results,
        begun_ns: begun_ns.into_inner().unwrap_or_else(monotonic_ns),
        elapsed_ns,
        accounts: Accounts { before, synced: worked.clone(), worked },
    })
}

/// Codes that say that an engine or a caching was not to be had.
const REFUSALS: [&str; 4] = [
    warning::URING_REFUSED,
    warning::MMAP_REFUSED,
    warning::DIRECT_REFUSED,
    warning::DONTCACHE_REFUSED,
];

/// A row that names settings that were not to be had has no figure: what was measured instead has
/// rows of its own.
pub(crate) fn refuse(warnings: &[Warning]) -> Result<(), TrialError> {
    let is_refusal = |warning: &&Warning| REFUSALS.contains(&warning.code.as_str());
    match warnings.iter().find(is_refusal) {
        Some(refusal) => Err(TrialError::Unsupported(refusal.text.clone())),
        None => Ok(()),
    }
}
