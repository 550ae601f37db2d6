//! What may be asked of the disk area, and the one line that refuses the rest.

use super::place::{Kind, Overwriting, Place};
use super::{Grid, Options};
use crate::error::Error;
use crate::limits;

/// Operations per second of an open loop.
const LEAST_RATE: f64 = 0.1;
const MOST_RATE: f64 = 1e9;

/// Refuses settings out of bounds, and patterns that this place must not see.
///
/// Errors: one line that names the option and what would be right.
pub(super) fn options(options: &Options, place: &Place) -> Result<(), Error> {
    let selection = &options.selection;
    let usage = |text: String| Err(Error::Usage(text));
    let each = |option, values: Vec<u64>, most: u64, unit: &str| {
        values.into_iter().try_for_each(|value| limits::within(option, Some(value), most, unit))
    };
    let wide = |values: &[u32]| values.iter().map(|&value| value.into()).collect();
    let blocks = selection.block_bytes.clone();
    each("--block-size", blocks, limits::MAX_BLOCK_BYTES, " bytes (1 GiB)")?;
    each("--threads", wide(&selection.threads), crate::crew::MAX_THREADS.into(), "")?;
    each("--depth", wide(&selection.depths), flatout_sys::ring::MAX_DEPTH.into(), "")?;
    if selection.engine == Some(flatout_io::Engine::Mmap) {
        return usage(
            "--engine mmap: page faults make no requests of a size; the cache area measures them"
                .to_owned(),
        );
    }
    if let Some(rate) = selection.rate_per_s
        && !(LEAST_RATE..=MOST_RATE).contains(&rate)
    {
        return usage(format!("--rate {rate}: it must be from {LEAST_RATE} to {MOST_RATE}"));
    }
    if selection.read_percent.is_some_and(|percent| percent > 100) {
        return usage("--mix: it must be from 0 to 100".to_owned());
    }
    if options.runtime_ns == Some(0) {
        return usage("--runtime: it must be above 0".to_owned());
    }
    if options.bytes == Some(0) {
        return usage("--bytes: it must be above 0".to_owned());
    }
    if place.kind() == Kind::Directory && options.overwriting == Overwriting::Allowed {
        return usage(
            "--overwrite is for a FILE; in a directory flatout writes to its own".to_owned(),
        );
    }
    if options.grid == Grid::Matrix && selection.depths.len() > 1 {
        return usage(
            "--depth with several values cannot be given together with --matrix".to_owned(),
        );
    }
    if options.grid == Grid::Matrix {
        let lists = [
            ("--pattern", selection.patterns.is_empty()),
            ("--block-size", selection.block_bytes.is_empty()),
            ("--threads", selection.threads.is_empty()),
        ];
        if let Some((option, _)) = lists.iter().find(|list| !list.1) {
            return usage(format!(
                "{option} cannot be given together with --matrix, whose grid is fixed"
            ));
        }
    } else if selection.patterns.is_empty() {
        let lists = [
            ("--block-size", selection.block_bytes.len()),
            ("--threads", selection.threads.len()),
            ("--depth", selection.depths.len()),
        ];
        if let Some((option, _)) = lists.iter().find(|list| list.1 > 1) {
            return usage(format!(
                "{option} with several values makes a sweep, which needs --pattern"
            ));
        }
    }
    selection.patterns.iter().try_for_each(|&pattern| place.check(pattern))
}
