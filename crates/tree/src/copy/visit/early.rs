//! Directories are begun with before all that lie beside them are made.

use std::ffi::CStr;
use std::sync::Arc;

use crate::copy::directory::Origin;
use crate::copy::{Copy, Directory, Hire, Refusal, Work};
use crate::spool::names::Names;

/// Directories that are handed out at once while a listing makes more, and so many that wait are enough.
const EARLY_DIRECTORIES: usize = 32;

/// Lets others begin with directories that were just made while more are made here, one after the other.
///
/// Figures: 10,000 × 1 KiB in 2,000 directories, cached, new ext4 in memory, AMD EPYC (family 25, model 17),
/// 2026-11-27, 7 rounds: without this 1.27 (1.09–1.39) of the time.
pub(super) fn hand_out(
    copy: &Copy<'_>,
    hire: Hire<'_>,
    directory: &Arc<Directory>,
    fresh: &mut Names,
) -> Result<(), Refusal> {
    let is_time = fresh.count().is_multiple_of(EARLY_DIRECTORIES as u64) && !copy.is_plan();
    if !is_time || copy.dispatch.waiting() >= EARLY_DIRECTORIES {
        return Ok(());
    }
    let names = fresh.take_back(EARLY_DIRECTORIES)?;
    directory.expect(names.count());
    let visit = |name: &CStr| {
        directory.begin_use();
        Work::Visit(Arc::clone(directory), name.to_owned(), Origin::Fresh)
    };
    copy.dispatch.offer(names.iter().map(|(name, _)| visit(name)));
    copy.find_hands(hire);
    Ok(())
}
