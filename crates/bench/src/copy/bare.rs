//! What the machine does when nothing but names are made, or nothing but bytes written, or read:
//! no copy of as many files and bytes can take less. The bytes come out of a buffer that the CPU's
//! caches hold, where a copier has to read them from somewhere.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flatout_io::{Caching, Engine, Split, Tuning};
use flatout_measure::case::Trial;
use flatout_measure::{Case, Facts, Key, Measured, Sample, TrialError};
use flatout_sys::{fill_random, monotonic_ns};
use flatout_tree::copy::options::Durability;
use rustix::fs::{Mode, OFlags};

use super::choose::BARE_FILES;
use super::row::{Row, Work};
use super::site::Site;
use super::trial::durable;
use crate::disk::metadata::test_directory::c_string;
use crate::file_trial::evidence;
use crate::read::Job;
use crate::workers::{self, Finished};
use crate::{CacheStart, Clearing, Error, IoError, Scratch};

/// Files made or bytes written, none of which failed.
pub(super) const COMPLETED: Key = Key::sum("completed");
/// Bytes per write: the second-level cache holds them.
const CHUNK_BYTES: usize = 256 << 10;
/// Requests of the direct read: what keeps the device busy, as in the page cache area.
const READ_DEPTH: u32 = 16;
const READ_BLOCK_BYTES: u64 = 1 << 20;
const OWNER_ONLY: Mode = Mode::from_raw_mode(0o600);

/// What rows are held against, measured in the same rounds.
pub(super) fn cases(site: &Site, bare_bytes: u64, phase: Option<usize>) -> Vec<Case<'_, Row>> {
    if site.is_never_cold() {
        return Vec::new();
    }
    let case =
        |work: Work, trial| Case { row: Row { work, state: site.options.state, phase }, trial };
    let threads = site.cpus;
    let mut cases = vec![
        case(
            Work::BareCreate { files: BARE_FILES, threads },
            Box::new(|_| create(site)) as Trial<'_>,
        ),
        case(
            Work::BareWrite { bytes: bare_bytes, threads },
            Box::new(move |_| write(site, bare_bytes)),
        ),
    ];
    if let Some(file) = &site.read_file {
        let bytes = file.length_bytes();
        cases.push(case(Work::BareRead { bytes }, Box::new(|_| read(site))));
    }
    cases
}

/// Makes empty files, each thread in a directory of its own.
fn create(site: &Site) -> Result<Sample, TrialError> {
    let folder = begin(site, 0)?;
    let threads = u64::from(site.cpus);
    let finished = workers::run(
        site.cpus,
        |index| {
            let own = own_folder(&folder, index)?;
            let opened = File::open(&own).map_err(IoError::system("open the directory", &own))?;
            let count = BARE_FILES / threads + u64::from(u64::from(index) < BARE_FILES % threads);
            let names = (0..count).map(|number| c_string(format!("file-{number:06}"))).collect();
            Ok::<(_, _, Vec<_>), Error>((own, opened, names))
        },
        |_, (own, opened, names)| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            for name in names {
                let made = rustix::fs::openat(opened.as_fd(), name.as_c_str(), flags, OWNER_ONLY);
                made.map_err(IoError::system("make a file in", own))?;
            }
            Ok(())
        },
    );
    end(site, BARE_FILES as f64, finished)
}

/// Writes fresh files, one per thread, out of a buffer.
fn write(site: &Site, bare_bytes: u64) -> Result<Sample, TrialError> {
    let folder = begin(site, bare_bytes)?;
    let (share, seed) = (bare_bytes / u64::from(site.cpus), site.options.run.seed);
    let finished = workers::run(
        site.cpus,
        |index| {
            let path = own_folder(&folder, index)?.join("file");
            let file = File::create_new(&path).map_err(IoError::system("create", &path))?;
            let mut chunk = vec![0; CHUNK_BYTES];
            fill_random(&mut chunk, seed, u64::from(index));
            Ok::<_, Error>((path, file, chunk))
        },
        |_, (path, file, chunk)| {
            let mut offset = 0;
            while offset < share {
                let part = (share - offset).min(chunk.len() as u64) as usize;
                file.write_all_at(&chunk[..part], offset)
                    .map_err(IoError::system("write", path))?;
                offset += part as u64;
            }
            Ok(())
        },
    );
    let written = share * u64::from(site.cpus);
    let sample = end(site, written as f64, finished)?;
    // So few files that their inodes are not missed.
    fs::remove_dir_all(&folder).map_err(IoError::system("remove", &folder)).map_err(Error::from)?;
    Ok(sample)
}

fn begin(site: &Site, bytes: u64) -> Result<PathBuf, TrialError> {
    site.limit.take(bytes)?;
    let folder = site.fresh();
    let made = fs::create_dir(&folder);
    made.map_err(IoError::system("make the directory", &folder)).map_err(Error::from)?;
    site.settle()?;
    Ok(folder)
}

fn own_folder(folder: &Path, index: u32) -> Result<PathBuf, Error> {
    let own = folder.join(format!("thread-{index}"));
    fs::create_dir(&own).map_err(IoError::system("make the directory", &own))?;
    Ok(own)
}

fn end(
    site: &Site,
    amount: f64,
    finished: Result<Finished<()>, Error>,
) -> Result<Sample, TrialError> {
    let ended_ns = monotonic_ns();
    let (_, elapsed_ns) = finished?;
    let facts = Facts::default().with(COMPLETED, amount);
    let mut sample = Sample { amount, elapsed_ns, facts, ..Sample::default() };
    if site.options.until == Durability::Durable {
        site.settle()?;
        let durable_ns = elapsed_ns.saturating_add(monotonic_ns() - ended_ns);
        sample.further.push(durable(amount, durable_ns));
    }
    sample.warnings.extend(site.filesystem_warning());
    Ok(sample)
}

/// Reads a file that is not cached around the cache, with several requests in flight.
fn read(site: &Site) -> Result<Sample, TrialError> {
    let Some(file) = &site.read_file else {
        return Err(TrialError::Unsupported("there is no file to be read".to_owned()));
    };
    let tuning = Tuning {
        engine: Engine::Uring,
        caching: Caching::Direct,
        block_bytes: READ_BLOCK_BYTES,
        depth: READ_DEPTH,
        threads: 1,
        split: Split::Contiguous,
    };
    let cold = CacheStart::Cold(Clearing::File);
    Job::exactly(file.path(), &tuning, cold, site.options.run.cancel).sample()
}

/// Says whether what was read came from the device.
pub(super) fn prove(rows: &mut [Measured<Row>], site: &Site) {
    let ground = |file: &Scratch| evidence::Bottom::of(file.file(), &file.path()).ground;
    let ground = site.read_file.as_ref().and_then(ground);
    let reads = rows.iter_mut().filter(|row| matches!(row.row.work, Work::BareRead { .. }));
    reads.for_each(|row| evidence::prove_read(row, false, ground));
}
