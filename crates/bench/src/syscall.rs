//! What a system call costs: nanoseconds per call, over an empty function call and a bare kernel
//! entry.
//!
//! A figure is the wall time of a loop of calls, less that of an empty loop of the same shape,
//! divided by the calls; the clock is read twice in some 30 ms. With several threads each thread
//! makes the same number of calls, and the figure is what one of them waits for a call: the time
//! from the first start to the last finish, divided by the calls of one thread. A call that scales
//! keeps its figure as threads are added; the calls of all threads per second stand in the audit.
//!
//! Which rows there are: `row`; how one is timed: `trial`; what follows from several of them:
//! `bound`.

mod bound;
mod crowd;
mod fact;
mod pair;
mod row;
mod site;
mod trial;
mod work;

use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use flatout_measure::{Case, Sampler, record_counted, size_text};

use crate::contention::ContentionProbe;
use crate::option::size_to;
use crate::{Area, Error, Estimate, Extent, Found, Run, Seconds, scratch, slowdown};

/// Largest block of the calls that move bytes; each thread holds one.
pub const MAX_BLOCK_BYTES: u64 = 16 << 20;
/// Time of the area.
const SECONDS: Seconds = Seconds { few_quick: 8, few: 19, quick: 15, full: 120 };
/// What a row's first trial takes, with finding out how many calls fill it.
const FIRST_TRIAL_NS: u64 = 45_000_000;

/// What the user chose.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    /// What all areas of the run have in common.
    #[arg(skip)]
    run: Run,
    /// Bytes per read, pread and write, up to 16 MiB [default: 1]
    #[arg(id = "block_size", short = 'b', long = "block-size", alias = "bs", value_name = "SIZE",
        value_parser = size_to(MAX_BLOCK_BYTES))]
    pub block_bytes: Option<u64>,
    /// Where the unnamed files lie that are read and written.
    #[arg(from_global)]
    pub directory: PathBuf,
    /// Why there is no room for these files.
    #[arg(skip)]
    no_room: Option<String>,
}

impl Area for Options {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        self.run = run.clone();
        self.no_room = check(self)?;
        let bytes = |time_ns| if self.no_room.is_none() { self.file_bytes(time_ns) } else { 0 };
        Ok(Estimate {
            place: Some(self.directory.clone()),
            write_bytes: bytes(run.time_ns.map(|ns| (ns as f64 / slowdown::now()) as u64)),
            most_write_bytes: bytes(None),
            notices: self.no_room.iter().cloned().collect(),
            ..SECONDS.estimate(run)
        })
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let mut rows = sampler.run(cases(self));
        bound::apply(&mut rows);
        Ok(Found { outcomes: record_counted(rows, &[fact::CALLS]), ..Found::default() })
    }
}

impl Options {
    /// Bytes that the rows lay down in the directory, those for which there likely is time; the rows that
    /// write then overwrite these.
    pub fn file_bytes(&self, time_ns: Option<u64>) -> u64 {
        let reached = time_ns.map_or(usize::MAX, |time_ns| (time_ns / FIRST_TRIAL_NS) as usize);
        let rows = self.rows().into_iter().take(reached);
        let own = rows.filter(|row| row.descriptor() == Some(row::Descriptor::OwnFile));
        let own_files = own.map(|row| u64::from(row.threads())).max().unwrap_or(0);
        site::common_file_bytes(self.block_bytes())
            + own_files * site::own_file_bytes(self.block_bytes())
    }

    fn block_bytes(&self) -> u64 {
        self.block_bytes.unwrap_or(1)
    }

    fn rows(&self) -> Vec<row::Row> {
        let is_full = self.run.extent == Extent::Full;
        if is_full { row::all(self.block_bytes()) } else { row::short(self.block_bytes()) }
    }
}

/// Refuses blocks that other areas take. Returns why there are no files where these would take more than a
/// tenth of the free space, or than may be written.
fn check(options: &Options) -> Result<Option<String>, Error> {
    if options.block_bytes() > MAX_BLOCK_BYTES {
        let [block, most] = [options.block_bytes(), MAX_BLOCK_BYTES].map(size_text);
        return Err(Error::Usage(format!("--block-size {block}: it must be at most {most}")));
    }
    let place = scratch::on(&options.directory)?;
    Ok(no_room(options, scratch::free_bytes(&place)))
}

fn no_room(options: &Options, free_bytes: u64) -> Option<String> {
    let (wanted, part) = (options.file_bytes(None), scratch::part_of(free_bytes));
    let most = options.run.max_write_bytes.unwrap_or(u64::MAX).min(part);
    (wanted > most).then(|| {
        let limit = if most < part { "--max-write" } else { "one tenth of the free space" };
        format!(
            "calls on files are left out: in {:?} they need {} for --block-size {}, but {} may be taken \
             ({limit})",
            options.directory,
            size_text(wanted),
            size_text(options.block_bytes()),
            size_text(most),
        )
    })
}

/// The rows, cheap calls first; nothing is opened or written before their first trial.
fn cases(options: &Options) -> Vec<Case<'_, row::Row>> {
    let mut site = site::Site::new(&options.directory, options.block_bytes());
    site.no_room.clone_from(&options.no_room);
    let site = Rc::new(site);
    let probe = Rc::new(ContentionProbe::learned_here());
    let case = |row: row::Row| {
        let (site, probe) = (Rc::clone(&site), Rc::clone(&probe));
        let mut calls = None;
        let cancelled = || options.run.cancel.is_cancelled();
        let trial =
            Box::new(move |_seed| trial::sample(&row, &site, &mut calls, &probe, &cancelled));
        Case { row, trial }
    };
    options.rows().into_iter().map(case).collect()
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::TrialError;
    use flatout_measure::row::Row as _;

    use flatout_sys::cancel::CancelToken;

    use super::*;

    fn options(block_bytes: u64, extent: Extent) -> Options {
        let (directory, cancel) = (std::env::temp_dir(), CancelToken::manual());
        let run = Run { extent, cancel, ..Run::default() };
        Options { run, block_bytes: Some(block_bytes), directory, no_room: None }
    }

    #[test]
    fn no_two_rows_are_alike() {
        for extent in [Extent::Quick, Extent::Full] {
            let options = options(4096, extent);
            let rows = options.rows();
            let mut names: Vec<_> =
                rows.iter().map(|row| format!("{} {:?}", row.id(), row.parameters())).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), rows.len());
        }
    }

    #[test]
    fn the_short_set_is_part_of_the_full_grid() {
        let all = options(1, Extent::Full).rows();
        assert!(options(1, Extent::Quick).rows().iter().all(|row| all.contains(row)));
    }

    #[test]
    fn where_room_is_lacking_calls_on_files_alone_are_left_out_and_nothing_is_written() {
        let mut large = options(MAX_BLOCK_BYTES, Extent::Full);
        let wanted = large.file_bytes(None);
        assert_eq!(wanted, 256 << 20);
        assert_eq!(no_room(&large, 10 * wanted), None);
        let text = no_room(&large, 10 * wanted - 1).unwrap();
        assert!(text.contains("256 MiB") && text.contains("--block-size"), "{text}");
        assert_eq!(no_room(&options(1, Extent::Full), 100 << 20), None);
        let run = Run { max_write_bytes: Some(wanted - 1), ..large.run.clone() };
        let estimate = large.plan(&run).unwrap();
        assert_eq!((estimate.most_write_bytes, estimate.notices.len()), (0, 1));
        for mut case in cases(&large) {
            if case.row.call.is_on_file() && case.row.variant != row::Variant::Device {
                let told = (case.trial)(1).unwrap_err();
                assert!(matches!(told, TrialError::Unsupported(_)), "{:?}: {told}", case.row);
            } else if case.row.call == row::Call::Getppid {
                (case.trial)(1).unwrap();
            }
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_refused_by_name() {
        let nowhere = Options { directory: "/nowhere/at/all".into(), ..options(1, Extent::Quick) };
        assert!(check(&nowhere).unwrap_err().to_string().contains("/nowhere/at/all"));
    }

    #[test]
    fn the_bytes_that_are_announced_are_laid_down() {
        let place = tempfile::tempdir().unwrap();
        for (block_bytes, extent) in [(1, Extent::Quick), (1, Extent::Full), (1000, Extent::Full)] {
            let options = options(block_bytes, extent);
            let site = site::Site::new(place.path(), block_bytes);
            for row in options.rows() {
                // What this machine cannot do needs no file either.
                let _ = trial::run(&row, &site, 3, &|| false);
            }
            assert_eq!(
                site.laid_down_bytes(),
                options.file_bytes(None),
                "{block_bytes} {extent:?}"
            );
        }
    }

    #[test]
    fn in_a_short_time_files_of_the_first_rows_are_announced() {
        let options = options(1, Extent::Full);
        let mebibytes = |s: u64| options.file_bytes(Some(s * 1_000_000_000)) >> 20;
        assert_eq!([0, 2, 10].map(mebibytes), [2, 6, 10]);
    }

    #[test]
    fn a_user_who_stops_gets_no_sample() {
        let options = options(1, Extent::Quick);
        options.run.cancel.cancel();
        assert_eq!((cases(&options)[0].trial)(1), Err(TrialError::Interrupted));
    }
}
