//! What the page cache holds of a file when a trial begins, and the proof of it.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use flatout_io::Caching;
use flatout_measure::{Warning, size_text, warning};
use flatout_sys::{CacheState, CancelToken, affinity, page_cache};
use rustix::io::Errno;

use super::evidence::MISSED_SHARE;
use crate::error::is_refusal;
use crate::{Error, IoError, Room, workers};

/// Bytes of a file for each thread that asks what the page cache holds of it, at least: in folios of
/// 4 KiB they take a millisecond.
const WORKER_BYTES: u64 = 128 << 20;
const MOST_WORKERS: u32 = 8;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Times that a file is read until the page cache holds all of it.
const WARMING_PASSES: usize = 3;

/// What the page cache holds of the file when a trial begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStart {
    /// Whatever it holds.
    AsItIs,
    /// All of it: what is not there is read before.
    Hot,
    /// All of it, because of what was read before; nothing is done for that.
    HotAlready,
    /// Nothing of it.
    Cold(Clearing),
}

/// How the cache is cleared before a cold trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    /// This file only: write back, DONTNEED, cachestat.
    File,
    /// This file, and then the caches of the whole system (drop_caches 3). Needs root.
    System,
}

impl Clearing {
    /// Refuses to drop the system's caches without the right to.
    ///
    /// Errors: that right is missing.
    pub(crate) fn check(self) -> Result<(), Error> {
        if self == Self::System && !page_cache::may_drop_system_caches() {
            let text =
                "--drop-caches: /proc/sys/vm/drop_caches cannot be written to; it needs root";
            return Err(Error::NoRoom(text.to_owned()));
        }
        Ok(())
    }
}

/// The first bytes of a file, of which the page cache may hold some.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pages<'a> {
    pub(crate) file: BorrowedFd<'a>,
    /// Its name in messages.
    pub(crate) path: &'a Path,
    pub(crate) length_bytes: u64,
}

impl Pages<'_> {
    /// What the page cache holds of them; none where nobody tells.
    pub(crate) fn held(&self) -> Option<CacheState> {
        page_cache::state(self.file, 0, self.length_bytes).ok()
    }

    /// The same of a long file by a thread for each CPU, as nothing else is at work meanwhile.
    pub(crate) fn held_by_workers(&self) -> Option<CacheState> {
        let most = u64::from(affinity::allowed_cpu_count().min(MOST_WORKERS));
        let workers = (self.length_bytes / WORKER_BYTES).min(most);
        if workers < 2 {
            return self.held();
        }
        let step = self.length_bytes.div_ceil(workers).next_multiple_of(WORKER_BYTES);
        let look = |index: u32| {
            let start = (u64::from(index) * step).min(self.length_bytes);
            let length_bytes = step.min(self.length_bytes - start);
            page_cache::state(self.file, start, length_bytes).ok()
        };
        let Ok((parts, _)) = workers::each(workers as u32, look) else { return self.held() };
        let mut all = CacheState { cached_bytes: 0, dirty_bytes: Some(0) };
        for part in parts {
            let part = part?;
            all.cached_bytes += part.cached_bytes;
            all.dirty_bytes = all.dirty_bytes.zip(part.dirty_bytes).map(|(all, part)| all + part);
        }
        Some(all)
    }

    /// The same before a trial. Where nobody tells what is dirty (before Linux 6.5), direct reads find
    /// nothing that they would write back while the clock runs.
    ///
    /// Errors: what storage says to that.
    pub(crate) fn found(
        &self,
        start: CacheStart,
        caching: Caching,
    ) -> Result<Option<CacheState>, Error> {
        let found = self.held_by_workers();
        let may_be_dirty = |held: CacheState| held.cached_bytes > 0 && held.dirty_bytes.is_none();
        let goes_around = caching == Caching::Direct && !matches!(start, CacheStart::Cold(_));
        if goes_around && found.is_none_or(may_be_dirty) {
            let fail = IoError::system("write back", self.path);
            page_cache::write_back(self.file).map_err(fail)?;
        }
        Ok(found)
    }

    /// Brings the page cache into a state, and says what it holds then. To be called outside of any
    /// timed region; a wish to stop ends it early.
    ///
    /// Errors: those of the kernel. Somebody else's file, some network filesystems and old kernels
    /// tell nothing, which is none.
    pub(crate) fn bring(
        &self,
        start: CacheStart,
        cancel: CancelToken,
    ) -> Result<Option<CacheState>, Error> {
        match start {
            CacheStart::AsItIs | CacheStart::HotAlready => {}
            CacheStart::Hot => warm(self.file, self.length_bytes, cancel)
                .map_err(IoError::system("bring into the page cache", self.path))?,
            CacheStart::Cold(clearing) => {
                let fail = || IoError::system("clear the cache of", self.path);
                clear_system(clearing).map_err(fail())?;
                return match page_cache::evict(self.file, self.length_bytes) {
                    Ok(left) => Ok(Some(left)),
                    // Nobody may know what the page cache holds of the file.
                    Err(error) if is_refusal(&error) => Ok(None),
                    Err(error) => Err(fail()(error).into()),
                };
            }
        }
        Ok(self.held())
    }
}

/// The warning about a state that was asked for, of which `wanted_bytes` should be there.
pub(crate) fn start_warning(
    start: CacheStart,
    held: Option<CacheState>,
    wanted_bytes: u64,
) -> Option<Warning> {
    let held_bytes = held.map(|held| held.cached_bytes);
    let (code, text) = match (start, held_bytes) {
        (CacheStart::Cold(_), Some(bytes)) if bytes > 0 => (
            warning::NOT_COLD,
            format!("{} of the file stayed in the page cache: it is not cold", size_text(bytes)),
        ),
        (CacheStart::Cold(_), None) => (
            warning::NOT_COLD,
            "the file was dropped from the page cache, but whether it is gone cannot be proved: it \
             belongs to somebody else, or nobody tells here"
                .to_owned(),
        ),
        (CacheStart::Hot | CacheStart::HotAlready, Some(bytes))
            if wanted_bytes.saturating_sub(bytes) as f64 > MISSED_SHARE * wanted_bytes as f64 =>
        (
            warning::NOT_HOT,
            format!(
                "only {} of {} stayed in the page cache: {}",
                size_text(bytes),
                size_text(wanted_bytes),
                why_gone(wanted_bytes - bytes, Room::now().free_bytes)
            ),
        ),
        _ => return None,
    };
    Some(Warning::new(code, text))
}

/// Why bytes did not stay in the page cache, where so many are free.
fn why_gone(missing_bytes: u64, free_bytes: u64) -> String {
    match free_bytes < 2 * missing_bytes {
        true => "memory is short, or the control group's share of it".to_owned(),
        false => format!(
            "though {free_bytes} more are free, the kernel took them back (DAMON does), or somebody \
             dropped them"
        ),
    }
}

/// The warning where direct I/O made the page cache grow by more than so many bytes.
pub(crate) fn growth_warning(
    caching: Caching,
    before: Option<u64>,
    after: Option<u64>,
    most_bytes: u64,
) -> Option<Warning> {
    let grown = after?.saturating_sub(before?);
    let text =
        format!("the page cache grew by {grown} bytes during direct I/O: it went through it");
    (caching == Caching::Direct && grown > most_bytes)
        .then(|| Warning::new(warning::DIRECT_CACHED, text))
}

/// Reads the first `length_bytes` of a file unless the page cache holds as many of it; a wish to
/// stop ends it early. To be called outside of any timed region. Somebody may drop the caches of
/// the whole system meanwhile: what is missing in the end is read again, a few times.
///
/// Errors: those of the kernel. Where nobody tells what the cache holds, the file is read once.
pub(crate) fn warm(file: BorrowedFd<'_>, length_bytes: u64, cancel: CancelToken) -> io::Result<()> {
    let held = || page_cache::state(file, 0, length_bytes).map(|state| state.cached_bytes);
    if held().is_ok_and(|bytes| bytes >= length_bytes) {
        return Ok(());
    }
    for _ in 0..WARMING_PASSES {
        read(file, length_bytes, cancel, |done| Some((done, length_bytes)))?;
        if cancel.is_cancelled() || held().map_or(true, |bytes| bytes >= length_bytes) {
            break;
        }
    }
    Ok(())
}

/// Reads the first `length_bytes` of a file; `next` says from where on, at each place, and up to where, until it
/// has none.
pub(crate) fn read(
    file: BorrowedFd<'_>,
    length_bytes: u64,
    cancel: CancelToken,
    next: impl Fn(u64) -> Option<(u64, u64)>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut done = 0;
    while let Some((offset, end)) = next(done).filter(|&(offset, _)| offset < length_bytes)
        && !cancel.is_cancelled()
    {
        let length = (end.max(offset + 1) - offset).min(CHUNK_BYTES as u64) as usize;
        match rustix::io::pread(file, &mut buffer[..length], offset) {
            Ok(0) => break,
            Ok(got) => done = offset + got as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Drops the caches of the whole system, where that is asked for.
///
/// Errors: those of writing to `/proc/sys/vm/drop_caches`.
pub(crate) fn clear_system(clearing: Clearing) -> io::Result<()> {
    if clearing == Clearing::System {
        rustix::fs::sync();
        page_cache::drop_system_caches(3)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_that_was_dropped_is_brought_back() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 3 << 20]).unwrap();
        page_cache::evict(file.as_fd(), 3 << 20).unwrap();
        warm(file.as_fd(), 3 << 20, CancelToken::manual()).unwrap();
        let state = page_cache::state(file.as_fd(), 0, 3 << 20).unwrap();
        assert_eq!(state.cached_bytes, 3 << 20);
    }

    #[test]
    fn threads_find_what_one_finds() {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len((256 << 20) + 5000).unwrap();
        file.write_all(&vec![1; 3 << 20]).unwrap();
        let at_end = std::os::unix::fs::FileExt::write_at(&file, &[1; 5000], 256 << 20).unwrap();
        assert_eq!(at_end, 5000);
        let length_bytes = (256 << 20) + 5000;
        let pages = Pages { file: file.as_fd(), path: Path::new("a"), length_bytes };
        let found = pages.held_by_workers().map(|held| held.cached_bytes);
        assert_eq!(found, Some((3 << 20) + 8192));
        assert_eq!(found, pages.held().map(|held| held.cached_bytes));
    }

    #[test]
    fn direct_requests_that_fill_the_page_cache_are_warned_of() {
        let warn = |caching, after| growth_warning(caching, Some(4096), after, 10_000);
        assert_eq!(warn(Caching::Direct, Some(104_096)).unwrap().code, warning::DIRECT_CACHED);
        assert_eq!(warn(Caching::Buffered, Some(104_096)), None);
        assert_eq!(growth_warning(Caching::Direct, None, Some(1 << 30), 10_000), None);
        for after in [None, Some(0), Some(4096), Some(4096 + 10_000)] {
            assert_eq!(warn(Caching::Direct, after), None, "an odd end, or unknown: {after:?}");
        }
    }

    #[test]
    fn a_state_that_is_not_there_or_not_proved_is_warned_of() {
        let held = |cached_bytes| Some(CacheState { cached_bytes, dirty_bytes: None });
        let code = |start, held| start_warning(start, held, 100).map(|warning| warning.code);
        let cold = CacheStart::Cold(Clearing::File);
        assert_eq!(code(cold, held(0)), None);
        for left in [held(1), None] {
            assert_eq!(code(cold, left).as_deref(), Some(warning::NOT_COLD));
        }
        assert_eq!(code(CacheStart::Hot, held(98)).as_deref(), Some(warning::NOT_HOT));
        assert_eq!(code(CacheStart::Hot, held(99)), None, "a page that was reclaimed is none");
        assert_eq!((code(CacheStart::Hot, held(100)), code(CacheStart::Hot, None)), (None, None));
        assert_eq!(code(CacheStart::AsItIs, None), None);
        assert!(why_gone(100, 150).contains("memory is short"));
        assert!(why_gone(100, 22 << 30).starts_with("though 23622320128 more are free"));
    }
}
