//! The trials of a row: which blocks of which file each of them works on, and how much it may
//! write. How the blocks are worked on: `disk/pass.rs`; what is told of it: `disk/sample.rs`.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::Ordering;

use flatout_measure::case::Trial;
use flatout_measure::{Case, Sample, TrialError, Warning, size_text, warning};

use super::lane::Range;
use super::pass::{Attempt, Pass};
use super::pattern::Pattern;
use super::row::{Extents, Row};
use super::test_file::TestFile;
use super::{Terms, estimate, sample};
use crate::{Scratch, go_on, limits};

/// Pieces of the file that the cold-blocks row reads, one per trial; each is read twice.
const COLD_PIECES: u64 = 12;
const MOST_COLD_BYTES: u64 = 64 << 20;
/// Bytes of the file that are read once more from the page cache.
const MOST_REREAD_BYTES: u64 = 512 << 20;
/// What a write of less costs storage all the same.
const PAGE_BYTES: u64 = 4096;

/// The row as a case for the sampler.
pub(super) fn case<'a>(row: &'a Row, file: &'a TestFile, terms: &'a Terms) -> Case<'a, Row> {
    let count = Cell::new(0);
    let trial: Trial<'a> = Box::new(move |seed| {
        let number = count.replace(count.get() + 1);
        let attempt = Attempt { row, file, terms, seed };
        let sample = run(&attempt, number);
        go_on(file.cancel)?;
        sample
    });
    Case { row: row.clone(), trial }
}

/// One trial, after `number` others of the row.
fn run(attempt: &Attempt<'_>, number: u64) -> Result<Sample, TrialError> {
    let Attempt { row, file, .. } = *attempt;
    let block_bytes = row.tuning.block_bytes;
    let blocks = file.length_bytes / block_bytes;
    if blocks == 0 {
        return Err(TrialError::Unsupported(too_short(file.length_bytes, block_bytes)));
    }
    limits::check_trial(&row.tuning)?;
    let whole = Range { first: 0, blocks, most_operations: u64::MAX };
    match row.test {
        Pattern::ColdBlocks => {
            let piece = cold_piece(row, whole, number)?;
            let first = attempt.pass(piece, None)?;
            let second = attempt.pass(piece, None)?;
            Ok(sample::of_two(row, file, &first, &second))
        }
        Pattern::Reread => {
            let most = (MOST_REREAD_BYTES / block_bytes).max(1);
            let pass = attempt.pass(Range { blocks: blocks.min(most), ..whole }, None)?;
            Ok(sample::of(row, file, &pass))
        }
        _ if row.writes() => Ok(sample::of(row, file, &written(attempt, whole)?)),
        _ => Ok(sample::of(row, file, &attempt.pass(whole, None)?)),
    }
}

/// Why a file has no block of a row.
pub(super) fn too_short(length_bytes: u64, block_bytes: u64) -> String {
    let [length, block] = [length_bytes, block_bytes].map(size_text);
    format!("the file has {length}, less than one block of {block}")
}

/// The piece of the file that nobody in this run has read before.
fn cold_piece(row: &Row, whole: Range, number: u64) -> Result<Range, TrialError> {
    let pieces = COLD_PIECES.min(whole.blocks);
    if number >= pieces {
        let text = "every piece of the file was read once: none is cold any more";
        return Err(TrialError::NoMore(Warning::new(warning::FEW_TRIALS, text)));
    }
    let share = whole.blocks / pieces;
    let most = (MOST_COLD_BYTES / row.tuning.block_bytes).max(1);
    Ok(Range { first: share * number, blocks: share.min(most), ..whole })
}

/// A pass that writes whole blocks, no more of them than may yet be written.
fn written(attempt: &Attempt<'_>, whole: Range) -> Result<Pass, TrialError> {
    let Attempt { row, file, terms, .. } = *attempt;
    let (block_bytes, cost_bytes) = (row.tuning.block_bytes, cost_bytes(row));
    let wanted = estimate::of_trial(row, terms.trial_write_bytes).max(cost_bytes);
    // One trial runs at a time.
    let left = file.left_bytes.load(Ordering::Relaxed);
    let most_operations = wanted.min(left) / cost_bytes;
    if most_operations == 0 {
        let text =
            format!("the limit of {} written was reached", size_text(terms.most_write_bytes));
        return Err(TrialError::NoMore(Warning::new(warning::WRITE_LIMIT, text)));
    }
    let taken = most_operations * cost_bytes;
    let passed = match row.extents {
        Extents::Fresh => {
            let directory = file.directory().unwrap_or(Path::new("."));
            let fresh = Scratch::empty(directory)?;
            let blocks = whole.blocks.min(most_operations);
            attempt.pass(Range { blocks, most_operations, ..whole }, Some(&fresh))
        }
        Extents::Written => attempt.pass(Range { most_operations, ..whole }, None),
    };
    let used =
        passed.as_ref().map_or(taken, |pass| pass.tally.written_bytes / block_bytes * cost_bytes);
    file.left_bytes.store(left - used.min(taken), Ordering::Relaxed);
    passed
}

/// Bytes that an operation likely costs storage. A page that is written in part is written in whole, where no
/// other write of it comes first.
fn cost_bytes(row: &Row) -> u64 {
    let block_bytes = row.tuning.block_bytes;
    let is_alone = row.test.is_random() || row.syncs_each();
    match is_alone && !block_bytes.is_multiple_of(PAGE_BYTES) {
        true => block_bytes.next_multiple_of(PAGE_BYTES) + PAGE_BYTES,
        false => block_bytes,
    }
}

#[cfg(test)]
mod tests {
    use flatout_io::Tuning;

    use super::*;
    use crate::write::Sync;

    #[test]
    fn a_part_of_a_page_costs_the_page_where_each_write_goes_to_storage_by_itself() {
        let rows = super::super::plan::tests_rows();
        let row = |test: Pattern, block_bytes, sync| {
            let row = rows.iter().find(|row| row.test == test).unwrap().clone();
            Row { tuning: Tuning { block_bytes, ..row.tuning }, sync, ..row }
        };
        let cost = |test, block_bytes, sync| cost_bytes(&row(test, block_bytes, sync));
        assert_eq!(cost(Pattern::SequentialWrite, 8, Sync::End), 8, "one page for 512 of them");
        assert_eq!(cost(Pattern::SequentialWrite, 8, Sync::Each), 8192);
        assert_eq!(cost(Pattern::RandomWrite, 5000, Sync::End), 8192 + 4096);
        assert_eq!(cost(Pattern::RandomWrite, 8192, Sync::Each), 8192);
    }
}
