//! Which settings a piece of work gets: those asked for, those measured, or the fixed defaults.
//!
//! A pure function of what is known about the file and the machine. The defaults, and the
//! figures that chose them, stand here and nowhere else; `--help` states them.

use flatout_io::{Caching, Engine, Kind, ProfileEntry, Split, Tuning};
use flatout_measure::{Warning, warning};

use crate::workers;

/// What the user asked for; `None` is for us to choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// How the kernel is asked.
    pub engine: Option<Engine>,
    /// How the page cache takes part.
    pub caching: Option<Caching>,
    /// Bytes per request.
    pub block_bytes: Option<u64>,
    /// Requests in flight per thread.
    pub depth: Option<u32>,
    /// Threads.
    pub threads: Option<u32>,
    /// Which blocks a thread gets.
    pub split: Option<Split>,
}

impl Wishes {
    /// These settings and no others.
    pub fn exactly(tuning: &Tuning) -> Self {
        Self {
            engine: Some(tuning.engine),
            caching: Some(tuning.caching),
            block_bytes: Some(tuning.block_bytes),
            depth: Some(tuning.depth),
            threads: Some(tuning.threads),
            split: Some(tuning.split),
        }
    }
}

/// What is known about the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// What can be done with it.
    pub kind: Kind,
    /// Bytes that are to be read.
    pub length_bytes: u64,
    /// Share of them that lies in the page cache, in percent.
    pub cached_percent: u8,
    /// CPUs that this process may use.
    pub cpus: u32,
    /// Whether that share is that of a sample, because the kernel tells this process no more.
    pub sampled: bool,
    /// Whether some of it has not reached the device yet.
    pub dirty: bool,
    /// Whether the read may end early, so that it had better go from front to end.
    pub may_stop: bool,
}

impl Facts {
    /// Whether most of it lies in the page cache.
    pub fn is_hot(&self) -> bool {
        self.cached_percent >= HOT_PERCENT
    }
}

/// Settings, and the reason for them in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The settings.
    pub tuning: Tuning,
    /// Why the engine is this one.
    pub engine_reason: String,
    /// What was asked for and cannot be.
    pub notes: Vec<Warning>,
}

/// From this share in the cache on, a file counts as hot.
const HOT_PERCENT: u8 = 50;
/// Below this length a second thread costs more than it brings.
const THREAD_WORTH_BYTES: u64 = 4 << 20;
/// Below this length read(2) beats mapping.
const MAP_WORTH_BYTES: u64 = 1 << 20;
/// Block of the mmap engine, what the consumer sees at a time; and that for which `--block-count`
/// alone counts.
pub const MMAP_BLOCK_BYTES: u64 = 1 << 20;
/// Block of the sync engine: fits the second-level cache with room to spare.
const SYNC_BLOCK_BYTES: u64 = 256 << 10;
/// Block and depth of the uring engine.
const URING_BLOCK_BYTES: u64 = 1 << 20;
const URING_DEPTH: u32 = 16;

/// Settings for reading. What was measured here goes before the defaults, as a whole: where engine,
/// caching or block are asked for, the rest would be that of another way.
pub fn for_reading(facts: &Facts, wishes: &Wishes, measured: Option<&ProfileEntry>) -> Choice {
    let is_open =
        wishes.engine.is_none() && wishes.caching.is_none() && wishes.block_bytes.is_none();
    let usable = measured.filter(|entry| {
        // Direct reads would have to wait until what is dirty is written back.
        is_open && !(facts.dirty && entry.tuning.caching == Caching::Direct)
    });
    let Some(entry @ ProfileEntry { tuning, .. }) = usable else {
        return by_default(facts, wishes);
    };
    let wishes = Wishes {
        depth: wishes.depth.or(Some(tuning.depth)),
        threads: wishes.threads.or(Some(tuning.threads)),
        split: wishes.split.or(Some(tuning.split).filter(|_| !facts.may_stop)),
        ..Wishes::exactly(tuning)
    };
    let engine_reason = format!("the best here by flatout tune of {}", entry.day());
    Choice { engine_reason, ..by_default(facts, &wishes) }
}

fn by_default(facts: &Facts, wishes: &Wishes) -> Choice {
    let mut notes = Vec::new();
    let streamed = facts.kind != Kind::Sized;
    let (engine, engine_reason) = read_engine(facts, wishes);
    if let Some(wished) = wishes.engine.filter(|&wished| streamed && wished != engine) {
        let code = match wished {
            Engine::Mmap => warning::MMAP_REFUSED,
            Engine::Uring | Engine::Sync => warning::URING_REFUSED,
        };
        let text = "what has no known length is read from front to end; read with sync";
        notes.push(Warning::new(code, format!("{wished} was not possible: {text}")));
    }
    let wished_caching = match wishes.caching {
        Some(caching) if engine == Engine::Mmap && caching != Caching::Buffered => {
            let code = match caching {
                Caching::Direct => warning::DIRECT_REFUSED,
                Caching::Dontcache | Caching::Buffered => warning::DONTCACHE_REFUSED,
            };
            let text = format!(
                "{caching} I/O was not possible: mapped pages are the page cache's; read buffered"
            );
            notes.push(Warning::new(code, text));
            Some(Caching::Buffered)
        }
        caching => caching,
    };
    let is_aligned = wishes.block_bytes.is_none_or(|block| block.is_multiple_of(4096));
    let caching = wished_caching.unwrap_or(match engine {
        // Direct reads would have to wait until what is dirty is written back.
        Engine::Uring if wishes.engine.is_none() && !facts.dirty && is_aligned => Caching::Direct,
        _ => Caching::Buffered,
    });
    let block_bytes = wishes.block_bytes.unwrap_or(match engine {
        Engine::Sync if caching == Caching::Buffered => SYNC_BLOCK_BYTES,
        Engine::Sync | Engine::Uring => URING_BLOCK_BYTES,
        Engine::Mmap => MMAP_BLOCK_BYTES,
    });
    let threads = if streamed {
        if wishes.threads.is_some_and(|threads| threads > 1) {
            let text = "what has no known length has one place to read from: one thread";
            notes.push(Warning::new(warning::THREADS_REDUCED, text));
        }
        1
    } else {
        wishes.threads.unwrap_or_else(|| read_threads(facts, engine, caching))
    };
    let split = wishes.split.unwrap_or(match facts.may_stop {
        true => Split::Interleaved,
        false => Split::Contiguous,
    });
    let depth = depth(engine, wishes, &mut notes);
    let tuning = Tuning { engine, caching, block_bytes, depth, threads, split };
    Choice { tuning, engine_reason, notes }
}

fn read_engine(facts: &Facts, wishes: &Wishes) -> (Engine, String) {
    let say = |engine, why: &str| (engine, why.to_owned());
    if facts.kind != Kind::Sized {
        return say(Engine::Sync, "no known length: read from front to end");
    }
    if let Some(engine) = wishes.engine {
        return say(engine, "asked for");
    }
    let hot = facts.is_hot();
    let share = match facts.sampled {
        false => format!("{} % in the page cache", facts.cached_percent),
        true => format!("about {} % in the page cache, by a sample", facts.cached_percent),
    };
    match wishes.caching {
        Some(Caching::Direct) => return say(Engine::Uring, "direct reads want several in flight"),
        Some(Caching::Dontcache) => return say(Engine::Sync, "RWF_DONTCACHE is for requests"),
        Some(Caching::Buffered) | None => {}
    }
    if hot && wishes.block_bytes.is_some() {
        return (Engine::Sync, format!("{share}, and blocks are asked for: requests of that size"));
    }
    if wishes.block_bytes.is_some_and(|block| block < 4096) {
        return say(Engine::Sync, "blocks below a page: readahead keeps more in flight");
    }
    if hot && facts.length_bytes < MAP_WORTH_BYTES {
        return (Engine::Sync, format!("{share}, and too short to be worth a mapping"));
    }
    if hot {
        return (Engine::Mmap, format!("{share}: mapping saves the copy"));
    }
    if facts.length_bytes < MAP_WORTH_BYTES {
        return say(Engine::Sync, "too short for more than one request");
    }
    (Engine::Uring, format!("{share}: the device wants several requests in flight"))
}

/// Requests in flight per thread: only a ring has more than one.
fn depth(engine: Engine, wishes: &Wishes, notes: &mut Vec<Warning>) -> u32 {
    if engine == Engine::Uring {
        return wishes.depth.unwrap_or(URING_DEPTH);
    }
    if wishes.depth.is_some_and(|depth| depth > 1) {
        let text =
            format!("{engine} has one request in flight per thread; --iodepth has no effect");
        notes.push(Warning::new(warning::DEPTH_UNUSED, text));
    }
    1
}

fn read_threads(facts: &Facts, engine: Engine, caching: Caching) -> u32 {
    if engine == Engine::Uring && caching == Caching::Direct {
        return 1;
    }
    let worth = facts.length_bytes / THREAD_WORTH_BYTES;
    u32::try_from(worth).unwrap_or(u32::MAX).clamp(1, facts.cpus.max(1))
}

/// The block size of a write for which none is asked.
pub fn default_write_block(wishes: &Wishes) -> u64 {
    match (wishes.engine, wishes.caching) {
        (Some(Engine::Uring), _) | (None, Some(Caching::Direct)) => URING_BLOCK_BYTES,
        _ => SYNC_BLOCK_BYTES,
    }
}

/// Settings for writing `length_bytes` of new data.
pub fn for_writing(length_bytes: u64, wishes: &Wishes) -> Choice {
    let mut notes = Vec::new();
    let direct = wishes.caching == Some(Caching::Direct);
    let (engine, why) = match wishes.engine {
        Some(engine) => (engine, "asked for"),
        None if direct => (Engine::Uring, "direct writes want several in flight"),
        None => (Engine::Sync, "one writer fills the page cache as fast as several"),
    };
    let caching = wishes.caching.unwrap_or(Caching::Buffered);
    let depth = depth(engine, wishes, &mut notes);
    let block_bytes = wishes.block_bytes.unwrap_or_else(|| default_write_block(wishes));
    let blocks = length_bytes.div_ceil(block_bytes.max(1));
    let wished = wishes.threads.unwrap_or(1);
    notes.extend(workers::idle(wished, blocks));
    let threads = wished.min(u32::try_from(blocks).unwrap_or(u32::MAX)).max(1);
    let split = wishes.split.unwrap_or(Split::Contiguous);
    let tuning = Tuning { engine, caching, block_bytes, depth, threads, split };
    Choice { tuning, engine_reason: why.to_owned(), notes }
}

#[cfg(test)]
mod tests {
    use flatout_io::{Evidence, ProfileKey, SizeClass, Work};

    use super::*;

    const HOT: Facts = Facts {
        kind: Kind::Sized,
        length_bytes: 1 << 30,
        cached_percent: 100,
        cpus: 2,
        sampled: false,
        dirty: false,
        may_stop: false,
    };

    #[test]
    fn a_hot_file_is_mapped_by_all_cpus() {
        let tuning = for_reading(&HOT, &Wishes::default(), None).tuning;
        assert_eq!((tuning.engine, tuning.threads), (Engine::Mmap, 2));
        let with = |cpus, length_bytes| {
            let tuning =
                for_reading(&Facts { cpus, length_bytes, ..HOT }, &Wishes::default(), None);
            tuning.tuning.threads
        };
        assert_eq!([1, 2, 8, 64].map(|cpus| with(cpus, 1 << 30)), [1, 2, 8, 64]);
        assert_eq!([2, 8, 64].map(|cpus| with(cpus, 64 << 20)), [2, 8, 16], "4 MiB each");
    }

    #[test]
    fn a_cold_file_is_read_around_the_cache_with_several_in_flight() {
        let cold = Facts { cached_percent: 0, ..HOT };
        let tuning = for_reading(&cold, &Wishes::default(), None).tuning;
        assert_eq!((tuning.engine, tuning.caching), (Engine::Uring, Caching::Direct));
        assert!(tuning.depth > 1);
    }

    #[test]
    fn a_block_size_means_requests_of_that_size() {
        let wishes = Wishes { block_bytes: Some(1), ..Wishes::default() };
        assert_eq!(for_reading(&HOT, &wishes, None).tuning.engine, Engine::Sync);
        let cold = Facts { cached_percent: 0, ..HOT };
        assert_eq!(for_reading(&cold, &wishes, None).tuning.caching, Caching::Buffered);
    }

    #[test]
    fn a_stream_gets_one_thread_and_says_so() {
        let stream = Facts { kind: Kind::Stream, ..HOT };
        let wishes = Wishes { threads: Some(4), engine: Some(Engine::Mmap), ..Wishes::default() };
        let choice = for_reading(&stream, &wishes, None);
        assert_eq!((choice.tuning.engine, choice.tuning.threads), (Engine::Sync, 1));
        let codes: Vec<_> = choice.notes.iter().map(|note| &*note.code).collect();
        assert_eq!(codes, ["mmap_refused", "threads_reduced"]);
    }

    #[test]
    fn a_mapping_is_never_called_direct() {
        let engine = Some(Engine::Mmap);
        let wishes = Wishes { engine, caching: Some(Caching::Direct), ..Wishes::default() };
        let choice = for_reading(&HOT, &wishes, None);
        assert_eq!(choice.tuning.caching, Caching::Buffered);
        assert_eq!(choice.notes[0].code, warning::DIRECT_REFUSED);
    }

    #[test]
    fn threads_of_a_write_that_have_no_block_are_not_there_and_are_said() {
        let write = |length_bytes, threads| {
            let block_bytes = Some(4096);
            for_writing(length_bytes, &Wishes { threads, block_bytes, ..Wishes::default() })
        };
        let choice = write(3 * 4096, Some(8));
        assert_eq!((choice.tuning.threads, &*choice.notes[0].code), (3, warning::THREADS_REDUCED));
        assert!(write(8 * 4096, Some(8)).notes.is_empty() && write(1, None).notes.is_empty());
    }

    #[test]
    fn everything_asked_for_is_kept() {
        let wishes = Wishes {
            engine: Some(Engine::Uring),
            caching: Some(Caching::Buffered),
            block_bytes: Some(5),
            depth: Some(3),
            threads: Some(7),
            split: Some(Split::Interleaved),
        };
        let tuning = for_reading(&HOT, &wishes, None).tuning;
        let expected = Tuning {
            engine: Engine::Uring,
            caching: Caching::Buffered,
            block_bytes: 5,
            depth: 3,
            threads: 7,
            split: Split::Interleaved,
        };
        assert_eq!(tuning, expected);
    }

    fn measured(tuning: Tuning) -> ProfileEntry {
        ProfileEntry {
            key: ProfileKey {
                machine: String::new(),
                kernel: String::new(),
                cpus: 0,
                work: Work::Read,
                size: SizeClass::Large,
                cached: true,
                source: String::new(),
                target: String::new(),
            },
            tuning,
            limit_bytes_per_s: 1e9,
            file_bytes: 1 << 28,
            evidence: Evidence { time: "2026-11-22T12:00:00Z".to_owned(), n: 6, ci95: None },
        }
    }

    #[test]
    fn what_was_measured_goes_before_the_defaults_and_behind_what_is_asked() {
        let tuning = Tuning {
            engine: Engine::Sync,
            caching: Caching::Direct,
            block_bytes: 4 << 20,
            depth: 1,
            threads: 3,
            split: Split::Contiguous,
        };
        let entry = measured(tuning);
        let choice = for_reading(&HOT, &Wishes::default(), Some(&entry));
        assert_eq!(choice.tuning, tuning);
        assert_eq!(choice.engine_reason, "the best here by flatout tune of 2026-11-22");
        let threads = Wishes { threads: Some(1), ..Wishes::default() };
        let choice = for_reading(&HOT, &threads, Some(&entry));
        assert_eq!(choice.tuning, Tuning { threads: 1, ..tuning });
        for other in [
            Wishes { engine: Some(Engine::Mmap), ..Wishes::default() },
            Wishes { caching: Some(Caching::Buffered), ..Wishes::default() },
            Wishes { block_bytes: Some(4096), ..Wishes::default() },
        ] {
            assert_eq!(for_reading(&HOT, &other, Some(&entry)), for_reading(&HOT, &other, None));
        }
        let dirty = Facts { dirty: true, ..HOT };
        let choice = for_reading(&dirty, &Wishes::default(), Some(&entry));
        assert_eq!(
            choice.tuning.engine,
            Engine::Mmap,
            "direct reads would wait for the write-back"
        );
    }
}
