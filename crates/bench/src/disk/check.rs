//! What may be asked of the disk area, and the one line that refuses the rest.

use flatout_io::Split;

use super::Options;
use super::pattern::IoType;
use super::place::{Kind, Overwriting, Place};
use super::row::Row;
use crate::write::Sync;
use crate::{Error, limits};

/// Operations per second of an open loop at most.
const MOST_RATE: f64 = 1e9;

/// Refuses settings that do not go together, and patterns that this place must not see.
///
/// Errors: one line that names the option and what would be right.
pub(super) fn options(options: &Options, place: &Place) -> Result<(), Error> {
    let selection = &options.selection;
    let (is_matrix, has_depths) = (selection.matrix, selection.depths.len() > 1);
    let is_swept = |length: usize| length > 1 && !is_matrix && selection.patterns.is_empty();
    let rate = selection.rate_per_s.unwrap_or_default();
    let in_grid = |is_given: bool| is_given && is_matrix;
    let (blocks, threads) = (selection.block_bytes.len(), selection.threads.len());
    let fixed = "cannot be given together with --matrix, whose grid is fixed";
    let sweep = "with several values makes a sweep, which needs --rw";
    let refusals = [
        (
            selection.engine == Some(flatout_io::Engine::Mmap),
            "--engine mmap: page faults make no requests of a size; the cache area measures them"
                .to_owned(),
        ),
        (
            place.kind == Kind::Directory && options.overwriting == Overwriting::Allowed,
            "--overwrite is for a FILE; in a directory flatout writes to its own".to_owned(),
        ),
        (
            is_matrix && has_depths,
            "--iodepth with several values cannot be given together with --matrix".to_owned(),
        ),
        (in_grid(!selection.patterns.is_empty()), format!("--rw {fixed}")),
        (in_grid(blocks > 0), format!("--block-size {fixed}")),
        (in_grid(threads > 0), format!("--threads {fixed}")),
        (rate > MOST_RATE, format!("--rate {rate}: it must be at most {MOST_RATE}")),
        (is_swept(blocks), format!("--block-size {sweep}")),
        (is_swept(threads), format!("--threads {sweep}")),
        (is_swept(selection.depths.len()), format!("--iodepth {sweep}")),
    ];
    if let Some((_, text)) = refusals.into_iter().find(|refusal| refusal.0) {
        return Err(Error::Usage(text));
    }
    selection.patterns.iter().try_for_each(|&pattern| place.check(pattern))
}

/// Refuses settings that none of the rows has, a file without a block of any, and buffers that do not fit into
/// memory.
///
/// Errors: as [`options`].
pub(super) fn rows(options: &Options, place: &Place, rows: &[Row]) -> Result<(), Error> {
    let selection = &options.selection;
    let numbers = [&selection.threads, &selection.depths].map(Vec::len);
    let names_numbers = !selection.block_bytes.is_empty() || numbers != [0; 2];
    let names_requests = names_numbers || selection.engine.is_some() || selection.caching.is_some();
    let has = |is_meant: fn(&Row) -> bool| rows.iter().any(is_meant);
    let is_paced = has(|row| row.rate_per_s.is_some());
    let is_mixed = has(|row| row.test.io_type() == IoType::Mixed);
    let is_interleaved = selection.split == Some(Split::Interleaved);
    let is_synced = selection.sync == Some(Sync::Each);
    let requests = "--block-size, --threads, --iodepth, --engine, --caching and --direct";
    let unused = [
        (requests, names_requests && rows.is_empty(), "but metadata"),
        (
            "--rate",
            selection.rate_per_s.is_some() && !is_paced,
            "but metadata, reread, cold-blocks",
        ),
        ("--split", is_interleaved && !has(Row::is_split), "in order, by several --threads"),
        ("--rwmixread", selection.read_percent.is_some() && !is_mixed, "that read and write"),
        ("--sync each", is_synced && !has(Row::writes), "that write"),
    ];
    if let Some((option, _, what)) = unused.into_iter().find(|unused| unused.1) {
        let text = format!("{option}: it is for patterns {what}, and there is none");
        return Err(Error::Usage(text));
    }
    place.check_length(rows, options.bytes)?;
    // Of a grid, rows that do not fit into memory say so.
    let is_grid = selection.patterns.is_empty() && !names_numbers;
    rows.iter().filter(|_| !is_grid).try_for_each(|row| limits::check_memory(&row.tuning))
}
