//! One file at a time, read from front to end by one thread.
//!
//! A small file costs five system calls: open, examine, read, examine, close. The second
//! examination finds out whether somebody wrote it meanwhile.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use flatout_io::digest::{Algorithm, Cut, Cutter, Digest, Fold, Hasher, MAX_SEGMENT_BYTES};
use flatout_io::scan::{Plan, Scanner};
use flatout_io::{
    Caching, Engine, Lane, SizeClass, Source, Split, Stop, Tuning, Work, unless_interrupted,
};
use flatout_sys::clock::monotonic_ns;
use flatout_sys::filesystem::{self, Nature};
use flatout_sys::memory;
use flatout_sys::view::ByteView;
use flatout_sys::{page_cache, usage};
use rustix::fs::{CWD, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::file_data::{
    ENDED_EARLY, Moment, has_whole_files, is_paged, is_sparse, kind_of, look_again,
    may_change_unseen, room_bytes,
};
use crate::item::{Item, Place, Wanted};

use super::lanes;
use super::large::Large;
use super::opened::{Opened, cannot, io_failure, is_named_fifo, open};
use super::{Failure, Found, Sum, Summed};

/// Bytes read at a time of a file that is not cut: they stay in the second-level cache until they
/// are digested.
const BUFFER_BYTES: usize = 256 << 10;
/// Buffer of a thread that has seen small files only.
const SMALL_BUFFER_BYTES: usize = 32 << 10;
/// Files of this length on are cut into segments. Below it, mapping and joining cost more than the
/// second thread saves.
const LARGE_BYTES: u64 = 4 << 20;
/// Segments of a digest that goes from front to end. Figure: SHA-256 of 1 GiB, 2 CPUs (Zen 4), takes
/// 0.65 s, and 0.74 s in segments of 256 KiB: threads wake each other four times as often.
const SERIAL_SEGMENT_BYTES: u64 = 1 << 20;
/// All threads share a file with data in one of so many parts of it at most, and do not read its holes.
const MOSTLY_HOLE: u64 = 8;
/// Bytes of all windows together that threads may have mapped.
const WINDOWS_BYTES: u64 = 16 << 20;

/// What a thread needs to read files.
pub(super) struct Reader<'a> {
    pub(super) sum: &'a Sum,
    buffer: Vec<u8>,
    pub(super) cutter: Cutter,
    /// How often the thread waited over large files: for a device that is busy, for a ring, for
    /// those who help. More threads would not make that shorter.
    pub(super) waits_over_large: u64,
    /// Times do not tell whether the file is what it was: it was changed, or could be, and has the same.
    is_untold: Cell<bool>,
    /// The last device, and whether a server or another host answers for it.
    served: (u64, bool),
}

impl<'a> Reader<'a> {
    pub(super) fn new(sum: &'a Sum) -> Self {
        let (buffer, cutter) = (Vec::new(), Cutter::default());
        let (is_untold, served) = (Cell::new(false), (0, false));
        Self { sum, buffer, cutter, waits_over_large: 0, is_untold, served }
    }

    /// Whether nobody wants to know any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.sum.options.cancel.is_cancelled() || self.sum.is_left.load(Ordering::Relaxed)
    }

    /// Digests a file, or checks it.
    pub(super) fn read(&mut self, item: Item) -> Summed {
        let start_ns = monotonic_ns();
        let result = match &item.wanted {
            Wanted::Digest(algorithm) => self
                .digests(&item, &[*algorithm])
                .map(|(digests, length_bytes)| (digests[0], true, length_bytes)),
            Wanted::Match(expected) => self.check(&item, expected),
        };
        let result = result.map(|(digest, matches, length_bytes)| {
            let elapsed_ns = monotonic_ns() - start_ns;
            Found { digest, matches, length_bytes, elapsed_ns }
        });
        Summed { shown: item.shown, result }
    }

    /// Tries the digests expected until one matches.
    fn check(&mut self, item: &Item, expected: &[Digest]) -> Result<(Digest, bool, u64), Failure> {
        let mut first = None;
        let mut left = expected;
        while !left.is_empty() {
            let algorithms: Vec<Algorithm> = left.iter().map(Digest::algorithm).collect();
            let (digests, length) = self.digests(item, &algorithms)?;
            for (digest, expected) in digests.iter().zip(left) {
                if digest == expected {
                    return Ok((*digest, true, length));
                }
                first.get_or_insert((*digest, false, length));
            }
            left = &left[digests.len()..];
        }
        Ok(first.expect("a line of a manifest has a digest"))
    }

    /// One or more of the digests, from the first on: what can be read once only has all of them
    /// computed at once, of a file the first is nearly always the one. Where times do not tell whether it
    /// was changed, it is read once more.
    fn digests(
        &mut self,
        item: &Item,
        algorithms: &[Algorithm],
    ) -> Result<(Vec<Digest>, u64), Failure> {
        let found = self.digests_once(item, algorithms)?;
        if self.is_untold.get() && self.digests_once(item, algorithms)? != found {
            return Err(Failure::Changed { shown: item.shown.clone() });
        }
        Ok(found)
    }

    fn digests_once(
        &mut self,
        item: &Item,
        algorithms: &[Algorithm],
    ) -> Result<(Vec<Digest>, u64), Failure> {
        if self.is_cancelled() {
            return Err(Failure::Interrupted);
        }
        self.is_untold.set(false);
        let moment = Moment::now();
        let opened = match &item.place {
            Place::StandardInput => {
                let source = Source::open(Path::new(flatout_io::STANDARD_INPUT));
                return self.stream(source.map_err(io_failure(&item.shown))?, item, algorithms);
            }
            Place::Path(path) => open(CWD, path.as_os_str(), OFlags::empty()),
            Place::In { directory, name } => open(directory.as_fd(), name, OFlags::NOFOLLOW),
        };
        let opened = opened.map_err(|errno| cannot("open", &item.shown, errno))?;
        let regular = kind_of(opened.facts) == FileType::RegularFile;
        if !regular {
            // Nobody has seen the digest of a FIFO's bytes and left them in it: there was a file.
            if matches!(item.wanted, Wanted::Match(_)) && is_named_fifo(&opened) {
                let cause = std::io::Error::other("it is a FIFO, and no file any more");
                return Err(cannot("open", &item.shown, cause));
            }
            // Only now it is known that waiting for its writer is what is wanted.
            let blocking = rustix::fs::fcntl_setfl(&opened.file, OFlags::empty());
            blocking.map_err(|errno| cannot("open", &item.shown, errno))?;
            let source = Source::of(opened.file, Path::new(&item.shown));
            return self.stream(source.map_err(io_failure(&item.shown))?, item, algorithms);
        }
        self.is_untold.set(may_change_unseen(&opened.file, &opened.facts, moment));
        let algorithm = algorithms[0];
        let length = opened.facts.st_size as u64;
        let goes_on = self.goes_on(&opened);
        let is_large = length >= LARGE_BYTES && !goes_on;
        let cut = || Cut::new(algorithm, length, self.segment_bytes(algorithm));
        let (digest, length) = match is_large.then(cut).flatten() {
            Some(cut) => {
                let before = usage::thread().voluntary_switches;
                let result = self.in_parts(opened, cut, item);
                let waits = usage::thread().voluntary_switches.saturating_sub(before);
                self.waits_over_large += waits;
                result
            }
            None => {
                let most = if goes_on { u64::MAX } else { length };
                self.front_to_end(opened, most, item, algorithm)
            }
        }?;
        Ok((vec![digest], length))
    }

    /// Whether a file has bytes behind the end that its server tells.
    fn goes_on(&mut self, opened: &Opened) -> bool {
        let Opened { file, facts } = opened;
        if self.served.0 != facts.st_dev {
            let nature = filesystem::of(file.as_fd()).map(|home| home.nature);
            let is_served = matches!(nature, Ok(Nature::Network | Nature::Userspace));
            self.served = (facts.st_dev, is_served);
        }
        self.served.1 && matches!(rustix::io::pread(file, &mut [0], facts.st_size as u64), Ok(1))
    }

    /// A power of two, so that the windows of all threads together stay small.
    fn segment_bytes(&self, algorithm: Algorithm) -> u64 {
        if algorithm == Algorithm::Sha256 {
            return SERIAL_SEGMENT_BYTES;
        }
        let threads = u64::from(self.sum.queue.usual().max(1)).next_power_of_two();
        // Where addresses are short (`ulimit -v`) most are left to others.
        let left = memory::address_space_left_bytes().map_or(u64::MAX, |left| left / 4);
        let windows =
            if left < WINDOWS_BYTES { (left / 2 + 1).next_power_of_two() } else { WINDOWS_BYTES };
        (windows / threads).clamp(256 << 10, MAX_SEGMENT_BYTES)
    }

    fn front_to_end(
        &mut self,
        opened: Opened,
        length: u64,
        item: &Item,
        algorithm: Algorithm,
    ) -> Result<(Digest, u64), Failure> {
        let wanted =
            if length > SMALL_BUFFER_BYTES as u64 { BUFFER_BYTES } else { SMALL_BUFFER_BYTES };
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let mut hasher = Hasher::new(algorithm);
        let mut done = 0;
        loop {
            match unless_interrupted(|| rustix::io::read(&opened.file, &mut self.buffer[..])) {
                Ok(0) => break,
                Ok(got) => {
                    hasher.update(&self.buffer[..got]);
                    done += got as u64;
                }
                Err(Errno::INTR) if self.is_cancelled() => return Err(Failure::Interrupted),
                Err(errno) => return Err(cannot("read", &item.shown, errno)),
            }
            // The files of /proc say that they are empty; those of /sys say 4096.
            if done == length {
                break;
            }
            if self.is_cancelled() {
                return Err(Failure::Interrupted);
            }
        }
        self.unchanged(&opened.file, &opened.facts, item)?;
        // Files of the kernel say how long they might be.
        let has_more = || {
            let home = filesystem::of(opened.file.as_fd());
            home.is_ok_and(|home| has_whole_files(&home))
                || rustix::io::pread(&opened.file, &mut [0], done) != Ok(0)
        };
        if done < opened.facts.st_size as u64 && has_more() {
            return Err(cannot("read", &item.shown, std::io::Error::other(ENDED_EARLY)));
        }
        Ok((hasher.finish(), done))
    }

    /// A large file: shared out where it is cached or nearly all holes, else read around the page cache.
    fn in_parts(
        &mut self,
        opened: Opened,
        cut: Cut,
        item: &Item,
    ) -> Result<(Digest, u64), Failure> {
        let Opened { file, facts } = opened;
        let is_cached = || {
            page_cache::state(file.as_fd(), 0, cut.length_bytes).is_ok_and(|state| {
                let is_dirty = state.dirty_bytes.is_some_and(|bytes| bytes > 0);
                is_dirty || state.cached_bytes >= cut.length_bytes / 2
            })
        };
        // Not of every filesystem: some have called holes what was written, and a digest would not tell.
        let shows_holes = || filesystem::of(file.as_fd()).is_ok_and(|home| is_paged(&home));
        let has_holes = is_sparse(&facts) && shows_holes();
        let is_mostly_hole = has_holes && room_bytes(&facts) <= cut.length_bytes / MOSTLY_HOLE;
        if !is_mostly_hole
            && page_cache::all_samples(file.as_fd(), cut.length_bytes).is_none()
            && !is_cached()
        {
            return self.around_the_cache(Opened { file, facts }, cut, item);
        }
        let large = Arc::new(Large::new(&item.shown, file, cut, has_holes));
        self.sum.queue.share(&large);
        large.help(self);
        let digest = large.finish()?;
        self.unchanged(&large.file, &facts, item)?;
        Ok((digest, cut.length_bytes))
    }

    fn around_the_cache(
        &mut self,
        opened: Opened,
        cut: Cut,
        item: &Item,
    ) -> Result<(Digest, u64), Failure> {
        let _ring = self.sum.rings.take();
        let measured = self.sum.options.profile.as_ref().and_then(|profile| {
            let home = filesystem::identity(opened.file.as_fd()).ok()?;
            profile.find(Work::Read, (SizeClass::Large, false), (&home, ""))
        });
        let mut tuning = lanes::tuning(measured);
        if self.sum.lacks_threads.load(Ordering::Relaxed) {
            tuning = Tuning { engine: Engine::Sync, depth: 1, ..tuning };
        }
        // Some devices answer requests that may not wait with EAGAIN, time and again.
        rustix::fs::fcntl_setfl(&opened.file, OFlags::empty())
            .map_err(|errno| cannot("open", &item.shown, errno))?;
        let cut = Cut { segment_bytes: tuning.block_bytes, ..cut };
        let source = Source::of(opened.file, Path::new(&item.shown));
        let source = source.map_err(io_failure(&item.shown))?;
        let (mut fold, mut cutter) = (Fold::new(&cut), std::mem::take(&mut self.cutter));
        let about = (item, &opened.facts, cut.length_bytes);
        let done = self.scan(source, &tuning, about, |offset, bytes| {
            let index = offset / cut.segment_bytes;
            // Of a file that ends too early, or a pass that is stopped, the last block is short.
            if bytes.len() == cut.segment(index).1 {
                fold.take(index, cutter.part(&cut, index, bytes));
            }
        });
        self.cutter = cutter;
        done?;
        if !fold.is_whole() {
            return Err(Failure::Changed { shown: item.shown.clone() });
        }
        Ok((fold.finish(), cut.length_bytes))
    }

    /// What has no length, or no place of its own: pipes, devices, standard input.
    fn stream(
        &mut self,
        source: Source,
        item: &Item,
        algorithms: &[Algorithm],
    ) -> Result<(Vec<Digest>, u64), Failure> {
        let tuning = Tuning {
            engine: Engine::Sync,
            caching: Caching::Buffered,
            block_bytes: BUFFER_BYTES as u64,
            depth: 1,
            ..lanes::TUNING
        };
        let before = rustix::fs::fstat(source.file());
        let before = before.map_err(|errno| cannot("examine", &item.shown, errno))?;
        let end_bytes = match source.kind() {
            flatout_io::Kind::Sized => source.length_bytes(),
            _ => u64::MAX,
        };
        let mut hashers: Vec<Hasher> = algorithms.iter().map(|&a| Hasher::new(a)).collect();
        let length = self.scan(source, &tuning, (item, &before, end_bytes), |_, bytes| {
            let bytes = bytes.as_slice().expect("the sync engine reads into buffers");
            hashers.iter_mut().for_each(|hasher| hasher.update(bytes));
        })?;
        Ok((hashers.into_iter().map(Hasher::finish).collect(), length))
    }

    /// Reads a source up to `end_bytes` in blocks of one size. Returns how far that was.
    ///
    /// Errors: it is a file that is not what it was `before`.
    fn scan(
        &self,
        source: Source,
        tuning: &Tuning,
        (item, before, end_bytes): (&Item, &Stat, u64),
        each: impl FnMut(u64, ByteView<'_>),
    ) -> Result<u64, Failure> {
        let watched =
            rustix::io::dup(source.file()).map_err(|errno| cannot("read", &item.shown, errno))?;
        let source = source.with_caching(tuning.caching, tuning.block_bytes).0;
        let fail = || io_failure(&item.shown);
        let (mut scanner, _) = Scanner::prepare(source, tuning).map_err(fail())?;
        let plan = Plan {
            start_bytes: 0,
            end_bytes,
            block_bytes: tuning.block_bytes,
            split: Split::Contiguous,
            lane: Lane::ONLY,
        };
        let mut stop = Stop::new(self.sum.options.cancel, None);
        let pass = scanner.run(&plan, &mut stop, each).map_err(fail())?;
        if pass.stopped {
            return Err(Failure::Interrupted);
        }
        if kind_of(before) == FileType::RegularFile {
            self.unchanged(&watched, before, item)?;
        }
        Ok(pass.bytes)
    }

    /// Looks whether a file is still what it was when it was opened, by its length and the time of the last
    /// write. Whoever puts that back does not put back that of the last change, which a new mode or name
    /// moves, too.
    fn unchanged(&self, file: &OwnedFd, before: &Stat, item: &Item) -> Result<(), Failure> {
        let after =
            look_again(file, before).map_err(|errno| cannot("examine", &item.shown, errno))?;
        let version = |facts: &Stat| (facts.st_size, facts.st_mtime, facts.st_mtime_nsec);
        if version(before) != version(&after) {
            return Err(Failure::Changed { shown: item.shown.clone() });
        }
        let changed = |facts: &Stat| (facts.st_ctime, facts.st_ctime_nsec);
        self.is_untold.set(self.is_untold.get() || changed(before) != changed(&after));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flatout_sys::cancel::CancelToken;

    use super::*;
    use crate::sum::SumOptions;

    #[test]
    fn a_change_whose_time_is_put_back_does_not_go_unseen() {
        use std::os::unix::fs::{FileExt, MetadataExt};
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 1 << 20]).unwrap();
        let shown = file.path().as_os_str().to_owned();
        let place = Place::Path(file.path().to_owned());
        let item = Item { place, shown, wanted: Wanted::Digest(Algorithm::Xxh3) };
        let sum = Sum::new(SumOptions { threads: 1, profile: None, cancel: CancelToken::manual() });
        let (mut reader, file) = (Reader::new(&sum), file.as_file());
        for is_changed in [false, true] {
            let opened = open(CWD, item.shown.as_os_str(), OFlags::empty()).unwrap();
            let (before, length) = (file.metadata().unwrap(), opened.facts.st_size as u64);
            let ctime = || file.metadata().map(|now| (now.ctime(), now.ctime_nsec())).unwrap();
            // A clock may not have ticked since the file was made.
            while is_changed && ctime() == (before.ctime(), before.ctime_nsec()) {
                file.write_all_at(b"other", 0).unwrap();
                file.set_modified(before.modified().unwrap()).unwrap();
            }
            reader.is_untold.set(false);
            reader.front_to_end(opened, length, &item, Algorithm::Xxh3).unwrap();
            assert_eq!(reader.is_untold.get(), is_changed);
        }
    }

    #[test]
    fn a_file_cut_short_around_the_cache_has_changed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let length = 5 << 20;
        std::fs::write(file.path(), vec![7; length as usize]).unwrap();
        let place = Place::Path(file.path().to_owned());
        let shown = file.path().as_os_str().to_owned();
        let item = Item { place, shown, wanted: Wanted::Digest(Algorithm::Xxh3) };
        let sum = Sum::new(SumOptions { threads: 1, profile: None, cancel: CancelToken::manual() });
        for (cut_to, is_whole) in [(length, true), (3_000_001, false), (0, false)] {
            let opened = open(CWD, item.shown.as_os_str(), OFlags::empty()).unwrap();
            // Setting the length that it has would count as writing it.
            if cut_to < length {
                file.as_file().set_len(cut_to).unwrap();
            }
            let cut = Cut::new(Algorithm::Xxh3, length, 1 << 20).unwrap();
            let found = Reader::new(&sum).around_the_cache(opened, cut, &item);
            assert_eq!(found.is_ok(), is_whole, "{found:?}");
            if let Err(failure) = found {
                assert!(matches!(failure, Failure::Changed { .. }), "{failure}");
            }
            file.as_file().set_len(length).unwrap();
        }
    }
}
