//! What a system call costs: nanoseconds per call, over an empty function call and a bare kernel
//! entry.
//!
//! A figure is the wall time of a loop of calls, less that of an empty loop of the same shape,
//! divided by the calls; the clock is read twice in some 30 ms. With several threads each thread
//! makes the same number of calls, and the figure is what one of them waits for a call: the time
//! from the first start to the last finish, divided by the calls of one thread. A call that scales
//! keeps its figure as threads are added; the calls of all threads per second stand in the audit.
//!
//! [`cases`] gives the rows, and [`finish`] adds, after the sampling, what follows from several of
//! them. Which rows there are: `row`; how one is timed: `trial`.

mod crowd;
mod derive;
mod pair;
mod row;
mod site;
mod trial;
mod work;

use std::path::PathBuf;
use std::rc::Rc;

use flatout_measure::case::{Case, Figure, TrialError};

pub use derive::finish;

use crate::scratch;

/// Largest block of the calls that move bytes; each thread holds one.
pub const MAX_BLOCK_BYTES: u64 = 16 << 20;

/// What the user chose.
pub struct Options<'a> {
    /// Bytes per `read`, `pread` and `write`, from 1 to [`MAX_BLOCK_BYTES`].
    pub block_bytes: u64,
    /// Where the unnamed files lie that are read and written.
    pub directory: PathBuf,
    /// Rows: all, or about the sixteen that say most.
    pub quick: bool,
    /// Whether the user wants to stop; asked before each run of a loop.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// Refuses options out of bounds, and files that would take more than a tenth of the free space,
/// in one line. Nothing is written.
///
/// # Errors
/// The line.
pub fn check(options: &Options<'_>) -> Result<(), String> {
    let block_bytes = options.block_bytes;
    if !(1..=MAX_BLOCK_BYTES).contains(&block_bytes) {
        return Err(format!(
            "--block-size {block_bytes}: it must be from 1 to {MAX_BLOCK_BYTES} bytes (16 MiB)"
        ));
    }
    let free_bytes = scratch::on(&options.directory).map_err(|error| error.to_string())?.free_bytes;
    check_room(options, free_bytes)
}

fn check_room(options: &Options<'_>, free_bytes: u64) -> Result<(), String> {
    let (wanted, most) = (file_bytes(options), scratch::part_of(free_bytes));
    if wanted <= most {
        return Ok(());
    }
    Err(format!(
        "cannot measure in {:?}: test files of {wanted} bytes are needed for --block-size {}, but \
         {most} may be taken ({free_bytes} bytes free, of which one tenth)",
        options.directory, options.block_bytes
    ))
}

/// The rows, cheap calls first; nothing is opened or written before their first trial.
///
/// # Errors
/// `Failed` for options out of bounds, see [`check`].
pub fn cases<'a>(options: &'a Options<'a>) -> Result<Vec<Case<'a>>, TrialError> {
    check(options).map_err(TrialError::Failed)?;
    let site = Rc::new(site::Site::new(&options.directory, options.block_bytes));
    let rows = if options.quick { row::short() } else { row::all() };
    Ok(rows.into_iter().map(|row| case(row, &site, options)).collect())
}

/// Bytes that the rows lay down in the directory; the rows that write then overwrite these.
pub fn file_bytes(options: &Options<'_>) -> u64 {
    let own_files = if options.quick { 0 } else { u64::from(row::MAX_THREADS) };
    site::common_file_bytes(options.block_bytes)
        + own_files * site::own_file_bytes(options.block_bytes)
}

fn case<'a>(row: row::Row, site: &Rc<site::Site>, options: &'a Options<'a>) -> Case<'a> {
    let site = Rc::clone(site);
    let mut calls = None;
    Case {
        id: row.call.id(),
        parameters: row.parameters(options.block_bytes),
        unit: "ns",
        figure: Figure::NanosecondsEach,
        trial: Box::new(move |_seed| trial::sample(&row, &site, &mut calls, options.cancelled)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(block_bytes: u64, quick: bool) -> Options<'static> {
        let directory = std::env::temp_dir();
        Options { block_bytes, directory, quick, cancelled: &|| false }
    }

    #[test]
    fn no_two_rows_are_alike() {
        for quick in [false, true] {
            let options = options(4096, quick);
            let mut names: Vec<_> = cases(&options)
                .unwrap()
                .iter()
                .map(|case| format!("{} {:?}", case.id, case.parameters))
                .collect();
            let rows = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), rows);
        }
    }

    #[test]
    fn the_short_set_is_part_of_the_full_grid() {
        let (long, short) = (options(1, false), options(1, true));
        let all = cases(&long).unwrap();
        for case in cases(&short).unwrap() {
            assert!(
                all.iter().any(|one| one.id == case.id && one.parameters == case.parameters),
                "{} {:?}",
                case.id,
                case.parameters
            );
        }
    }

    #[test]
    fn block_sizes_out_of_range_are_refused() {
        for block_bytes in [0, MAX_BLOCK_BYTES + 1] {
            assert!(matches!(cases(&options(block_bytes, true)), Err(TrialError::Failed(_))));
        }
    }

    #[test]
    fn a_directory_with_too_little_room_is_refused_before_anything_is_written() {
        let large = options(MAX_BLOCK_BYTES, false);
        let wanted = file_bytes(&large);
        assert_eq!(wanted, 256 << 20);
        assert_eq!(check_room(&large, 10 * wanted), Ok(()));
        let text = check_room(&large, 10 * wanted - 1).unwrap_err();
        assert!(text.contains("268435456 bytes") && text.contains("--block-size"), "{text}");
        assert_eq!(check_room(&options(1, false), 100 << 20), Ok(()));
    }

    #[test]
    fn a_directory_that_is_not_there_is_refused_by_name() {
        let nowhere = Options { directory: "/nowhere/at/all".into(), ..options(1, true) };
        assert!(check(&nowhere).unwrap_err().contains("/nowhere/at/all"));
    }

    #[test]
    fn the_bytes_that_are_announced_are_laid_down() {
        let place = tempfile::tempdir().unwrap();
        for (block_bytes, quick) in [(1, true), (1, false), (1000, false)] {
            let options = options(block_bytes, quick);
            let site = site::Site::new(place.path(), block_bytes);
            for row in if quick { row::short() } else { row::all() } {
                // What this machine cannot do needs no file either.
                let _ = trial::run(&row, &site, 3, &|| false);
            }
            assert_eq!(site.laid_down_bytes(), file_bytes(&options), "{block_bytes} {quick}");
        }
    }

    #[test]
    fn a_user_who_stops_gets_no_sample() {
        let options = Options { cancelled: &|| true, ..options(1, true) };
        let mut cases = cases(&options).unwrap();
        assert_eq!((cases[0].trial)(1), Err(TrialError::Interrupted));
    }
}
