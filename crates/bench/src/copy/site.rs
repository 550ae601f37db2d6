//! The trees that are copied, and fresh places for their copies.
//!
//! A copy that was compared is emptied at once: its files stay, with no bytes in them, until the
//! end. So no copy takes room from the next, what nobody will read is not written to the disk,
//! and no inode is freed while there are copies to come: creating files is 10 to 40 times slower
//! on ext4 for a minute after many were deleted.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use flatout_measure::{Event, Warning};
use flatout_sys::{Filesystem, affinity, monotonic_ns};

use super::choose::{self, Wanted};
use super::experiment::Experiment;
use super::{Options, State};
use crate::corpus::{Corpus, make};
use crate::versus::state;
use crate::{Error, IoError, Scratch, WriteLimit, place, scratch};

/// Length of the file that tells how fast the device is read.
pub(super) const READ_BYTES: u64 = 64 << 20;

/// A place with everything that is copied.
pub(super) struct Site {
    pub(super) options: Options,
    pub(super) filesystem: Filesystem,
    /// From which length on files of this filesystem share their bytes with their copies, which move none.
    pub(super) shared_from_bytes: Option<u64>,
    /// What tells how fast the device is read; `None` where nothing is cold.
    pub(super) read_file: Option<Scratch>,
    pub(super) cpus: u32,
    /// When copying must be over, on the monotonic clock.
    pub(super) ends_ns: u64,
    /// Where everything lies.
    pub(super) folder: PathBuf,
    /// Where the trees of this phase lie.
    sources: RefCell<PathBuf>,
    /// What trees and copies may write.
    pub(super) limit: WriteLimit,
}

impl Site {
    /// Makes `folder`, which its caller removes.
    ///
    /// Errors: those of making it, and what tells how fast the device is read.
    pub(super) fn make(
        options: &Options,
        folder: PathBuf,
        events: &mut dyn FnMut(Event),
    ) -> Result<Self, Error> {
        fs::create_dir_all(&folder).map_err(IoError::system("make the directory", &folder))?;
        place::spread_directories_of(&folder);
        let filesystem = scratch::on(&folder)?;
        let wants_read = options.state == State::Cold && !filesystem.in_memory;
        let wanted = scratch::Wanted {
            length_bytes: READ_BYTES,
            seed: options.run.seed,
            chunk_bytes: scratch::CHUNK_BYTES,
            ends_ns: u64::MAX,
            cancel: options.run.cancel,
        };
        let read_file = wants_read.then(|| Scratch::make(&folder, wanted, events)).transpose()?;
        let read_bytes = read_file.as_ref().map_or(0, Scratch::length_bytes);
        Ok(Self {
            options: options.clone(),
            filesystem,
            shared_from_bytes: scratch::shared_from_bytes(&folder),
            read_file,
            cpus: affinity::allowed_cpu_count(),
            ends_ns: u64::MAX,
            folder,
            sources: RefCell::default(),
            limit: WriteLimit::new(options.run.max_write_bytes, read_bytes),
        })
    }

    /// Makes the trees of a phase, and returns those for which there was no time: as long as the
    /// ones before took, they would not be ready when half of `most_ns` is over. A wish to stop
    /// leaves them out, too, and is seen by the sampler.
    ///
    /// Errors: those of making them.
    pub(super) fn begin_phase(
        &self,
        trees: &[Wanted],
        most_ns: u64,
        events: &mut dyn FnMut(Event),
    ) -> Result<Vec<Wanted>, Error> {
        let sources = self.folder.join(place::unused_name("sources"));
        self.sources.replace(sources.clone());
        let mut made_bytes = 0_u64;
        let (mut late, mut expected_s, begun_ns) = (Vec::new(), 0.0, monotonic_ns());
        for wanted in trees {
            let corpus = &wanted.corpus;
            let is_made = make::is_made(corpus, &sources);
            let is_free = wanted.experiment == Experiment::Empty || is_made;
            let next_s = choose::making_s(corpus, &self.options.pace());
            if !is_free && !fits(monotonic_ns() - begun_ns, expected_s, next_s, most_ns / 2) {
                late.push(wanted.clone());
                continue;
            }
            let what = format!("making {}", corpus.name);
            events(Event::Preparing { what });
            made_bytes = made_bytes.saturating_add(if is_made { 0 } else { corpus.make_bytes() });
            match make::ensure(corpus, &sources, self.options.run.cancel.until(self.ends_ns)) {
                Err(_) if self.options.run.cancel.is_cancelled() => break,
                Err(_) if monotonic_ns() >= self.ends_ns => {
                    late.push(wanted.clone());
                    continue;
                }
                made => made?,
            };
            expected_s += next_s;
        }
        self.limit.spend(made_bytes);
        Ok(late)
    }

    /// Makes room for the next phase: its trees are emptied as copies are, as far as that is possible (a quota
    /// of btrfs refuses it); they are removed in the end. Whoever wants to stop does not wait for it.
    pub(super) fn end_phase(&self) {
        if !self.options.run.cancel.is_cancelled() {
            let _some_room_is_missing = place::empty(&self.sources.borrow());
        }
    }

    /// The tree that is copied.
    pub(super) fn source(&self, corpus: &Corpus) -> PathBuf {
        self.sources.borrow().join(&corpus.name)
    }

    /// A name that nothing has had.
    pub(super) fn fresh(&self) -> PathBuf {
        self.folder.join(place::unused_name("copy"))
    }

    /// Whether cold copies are wanted where files live in memory.
    pub(super) fn is_never_cold(&self) -> bool {
        self.options.state == State::Cold && self.filesystem.in_memory
    }

    /// Writes out what was written before, so that no copy pays for the one before it.
    ///
    /// Errors: those of syncfs(2).
    pub(super) fn settle(&self) -> Result<(), Error> {
        state::settle(&self.folder)
    }

    /// What the filesystem makes of every figure.
    pub(super) fn filesystem_warning(&self) -> Option<Warning> {
        scratch::nature_warning(self.filesystem.name, self.filesystem.nature)
    }
}

/// Whether what is expected to take `next_s` fits into a time of which `elapsed_ns` went for what
/// was expected to take `expected_s`.
fn fits(elapsed_ns: u64, expected_s: f64, next_s: f64, most_ns: u64) -> bool {
    let elapsed_s = elapsed_ns as f64 / 1e9;
    let slowness = if expected_s > 0.0 { elapsed_s / expected_s } else { 1.0 };
    elapsed_s + next_s * slowness <= most_ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn making_is_as_slow_as_it_was_so_far() {
        let second = 1_000_000_000;
        assert!(fits(0, 0.0, 1.0, second));
        assert!(!fits(0, 0.0, 1.1, second));
        assert!(fits(second / 2, 0.5, 0.4, second));
        assert!(!fits(second / 2, 0.1, 0.2, second), "five times as slow as expected");
    }

    #[test]
    fn asking_for_shared_extents_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        scratch::shared_from_bytes(place.path());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
