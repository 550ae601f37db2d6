//! A place that is tuned: its folder, the files that are read there, and names for those that are
//! written.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flatout_io::SizeClass;
use flatout_measure::size_text;
use flatout_sys::{Nature, affinity, filesystem, memory};

use super::{Options, group};
use crate::corpus::{Corpus, make};
use crate::file_trial::evidence;
use crate::place::{self, Place, TUNING};
use crate::tried::Tried;
use crate::versus::{allowed_bytes, state};
use crate::{Error, Extent, IoError, scratch};

/// The large file: long enough that starting is nothing, short enough for many trials.
const LARGE_BYTES: [u64; 2] = [256 << 20, 128 << 20];
/// Below this a rate says nothing about anything.
const LEAST_LARGE_BYTES: u64 = 8 << 20;
/// The small files.
const TINY_FILES: [u64; 2] = [2000, 1000];
const TINY_BYTES: u64 = 4096;
const LEAST_TINY_FILES: u64 = 100;
/// A small file on the disk: its block, its inode and its name, on filesystems that spend much.
const TINY_ROOM_BYTES: u64 = 2 * TINY_BYTES;
/// Of the room, one part in this many is the large file's: it lies there twice.
const LARGE_PART: u64 = 4;
/// Of what may be written, that of the large file, in quarters.
const LARGE_WRITE_QUARTERS: u64 = 3;
/// A hot file takes at most one part in this many of the available memory.
const MEMORY_PART: u64 = 4;
/// Where time was asked for, the part of it in which the large file can likely be written: each of
/// some forty settings moves it once at least.
const TRIAL_PART: u64 = 48;
/// Then, the time for which there is a small file, each of which is copied by some six settings.
const TINY_NS: u64 = 8_000_000;
/// Removing them takes one part in so many of it at most.
const REMOVING_PART: u64 = 8;
/// Trials of each setting, with [`Extent::Full`] and else, for which there must be room.
pub(super) const TRIALS: [u32; 2] = [8, 3];

/// How much is moved in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    large_bytes: u64,
    tiny_files: u64,
}

fn of_extent<T: Copy>(full_and_quick: [T; 2], extent: Extent) -> T {
    full_and_quick[usize::from(extent != Extent::Full)]
}

impl Sizes {
    /// What there is room for.
    ///
    /// Errors: no directory, or no room for anything that makes sense.
    pub(super) fn of(directory: &Path, options: &Options) -> Result<Self, Error> {
        let allowed = allowed_bytes(directory, options.max_write_bytes)?;
        let memory = memory::available_bytes().unwrap_or(u64::MAX) / MEMORY_PART;
        let wanted = of_extent(LARGE_BYTES, options.extent);
        let places = options.directories.len().max(1) as u64;
        let in_time = options.time_ns.map_or(u64::MAX, |time_ns| {
            Tried::USUAL.surely_made_bytes(time_ns / TRIAL_PART / places).max(LEAST_LARGE_BYTES)
        });
        let wanted = wanted.min(in_time);
        // What may be written here, and how often the large file is.
        let most = options.max_write_bytes.unwrap_or(u64::MAX) / places;
        let cpus = affinity::allowed_cpu_count();
        // As many again in the second half of the time.
        let trials = 2 * u64::from(of_extent(TRIALS, options.extent));
        let writes = 1 + group::large_writes(places, cpus) * trials;
        let most_large = most / 4 * LARGE_WRITE_QUARTERS / writes;
        // Whole blocks of 4 MiB, the longest that are tried: no setting writes more than others.
        let large_bytes = wanted.min(allowed / LARGE_PART).min(most_large).min(memory) >> 22 << 22;
        if large_bytes < LEAST_LARGE_BYTES {
            let needed =
                (LEAST_LARGE_BYTES * writes / LARGE_WRITE_QUARTERS * 4 + (4 << 20)) * places;
            // What is said can be given.
            let whole = if needed < 8 << 30 { 1 << 20 } else { 1 << 30 };
            let needed = needed.next_multiple_of(whole);
            let room = [LEAST_LARGE_BYTES * LARGE_PART, allowed].map(size_text);
            // More may be written helps only where that is what there is too little of.
            let why = match most_large < LEAST_LARGE_BYTES {
                true => format!("--max-write must be at least {}", size_text(needed)),
                false => format!(
                    "room for {}, and as much memory, is needed, and {} may be taken (one tenth of what is \
                     free)",
                    room[0], room[1]
                ),
            };
            return Err(Error::NoRoom(format!("cannot measure in {directory:?}: {why}")));
        }
        let left = (allowed - large_bytes * 2).min(most / 4 * (4 - LARGE_WRITE_QUARTERS));
        let files = left / TINY_ROOM_BYTES / (1 + trees(options));
        let removing_ns = options.tried.iter().map(|tried| tried.removing_ns(1)).max().unwrap_or(0);
        let tiny_ns = TINY_NS.max(removing_ns * REMOVING_PART);
        let in_time = options.time_ns.map_or(u64::MAX, |time_ns| time_ns / tiny_ns / places);
        let tiny_files = of_extent(TINY_FILES, options.extent).min(files).min(in_time);
        let tiny_files = tiny_files.max(LEAST_TINY_FILES);
        Ok(Self { large_bytes, tiny_files })
    }

    /// Bytes that a trial writes, with what small files take beside their content.
    pub(super) fn trial_bytes(self, class: SizeClass) -> u64 {
        match class {
            SizeClass::Tiny => self.tiny_files * TINY_ROOM_BYTES,
            SizeClass::Small | SizeClass::Large => self.large_bytes,
        }
    }

    #[cfg(test)]
    pub(super) const fn for_tests() -> Self {
        Self { large_bytes: 64 << 20, tiny_files: 100 }
    }

    /// Bytes of the files that are read.
    pub(super) fn made_bytes(self) -> u64 {
        self.large_bytes + self.tiny_files * TINY_ROOM_BYTES
    }

    /// The time that removing the files that are read likely takes.
    pub(super) fn removing_ns(self, tried: &Tried) -> u64 {
        tried.removing_ns(self.tiny_files + 1)
    }

    /// Bytes that lie there at once at most.
    pub(super) fn room_bytes(self, options: &Options) -> u64 {
        self.large_bytes * 2 + self.tiny_files * TINY_ROOM_BYTES * (1 + trees(options))
    }

    pub(super) fn file_bytes(self, class: SizeClass) -> u64 {
        if class == SizeClass::Tiny { TINY_BYTES } else { self.large_bytes }
    }

    pub(super) fn files(self, class: SizeClass) -> u64 {
        if class == SizeClass::Tiny { self.tiny_files } else { 1 }
    }
}

fn trees(options: &Options) -> u64 {
    let (sources, cpus) = (options.directories.len() as u64, affinity::allowed_cpu_count());
    group::most_tiny_trees(sources, cpus, of_extent(TRIALS, options.extent))
}

/// A place with its files.
pub(super) struct TunedPlace {
    place: Place,
    /// What tells its filesystem from others.
    pub(super) identity: String,
    /// Its files live in memory and nowhere else.
    pub(super) in_memory: bool,
    pub(super) sizes: Sizes,
    /// The trees that are read and copied.
    pub(super) large: PathBuf,
    pub(super) tiny: PathBuf,
    targets: PathBuf,
}

impl TunedPlace {
    /// Makes the files that are read.
    ///
    /// Errors: the place cannot be used; what was made is gone again.
    pub(super) fn make(directory: &Path, options: &Options) -> Result<Self, Error> {
        let sizes = Sizes::of(directory, options)?;
        let in_memory = scratch::on(directory)?.in_memory;
        let opened =
            File::open(directory).map_err(IoError::system("open the directory", directory))?;
        let identity =
            filesystem::identity(opened.as_fd()).map_err(IoError::system("examine", directory))?;
        let place = Place::take(directory, TUNING)?;
        let targets = place.targets();
        match sources(&place, sizes, options) {
            Ok([large, tiny]) => {
                Ok(Self { place, identity, in_memory, sizes, large, tiny, targets })
            }
            Err(error) => {
                // Why it could not be made is more important.
                let _unread = place.leave();
                Err(error)
            }
        }
    }

    /// A name that nothing has yet.
    pub(super) fn fresh(&self) -> PathBuf {
        self.targets.join(place::unused_name("target"))
    }

    /// The large file.
    pub(super) fn large_file(&self) -> PathBuf {
        self.large.join("file-000000")
    }

    /// What its bytes lie in at the bottom; none where that cannot be seen.
    pub(super) fn ground(&self) -> Option<Nature> {
        let path = self.large_file();
        evidence::Bottom::of(File::open(&path).ok()?.as_fd(), &path).ground
    }

    /// Waits until everything that was written lies on the device.
    ///
    /// Errors: those of syncfs(2).
    pub(super) fn settle(&self) -> Result<(), Error> {
        state::settle(&self.targets)
    }

    /// Removes all that was made.
    ///
    /// Errors: what cannot be removed.
    pub(super) fn leave(self) -> Result<(), Error> {
        self.place.leave()
    }
}

/// Makes the large file and the small ones.
fn sources(place: &Place, sizes: Sizes, options: &Options) -> Result<[PathBuf; 2], Error> {
    let left = place.remove_leftovers()?;
    if let Some(line) = left.into_iter().next() {
        return Err(Error::NoRoom(line));
    }
    let targets = place.targets();
    fs::create_dir_all(&targets).map_err(IoError::system("make the folder", &targets))?;
    place::spread_directories_of(&targets);
    let Sizes { large_bytes, tiny_files } = sizes;
    let corpora = [("large", 1, large_bytes), ("tiny", tiny_files, TINY_BYTES)];
    let [large, tiny] = corpora.map(|(name, files, file_bytes)| {
        let corpus = Corpus::spread(name, files, file_bytes);
        make::ensure(&corpus, &targets.join("sources"), options.cancel)
    });
    Ok([large?, tiny?])
}
