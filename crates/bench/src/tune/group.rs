//! Kinds of work, each with the settings that compete for it and its share of the time.

use flatout_io::{Engine, SizeClass, Tuning, Work};
use flatout_measure::{Label, Unit};
use flatout_sys::affinity;

use super::tuned_place::{Sizes, TunedPlace};
use super::{FEW_SETTINGS, candidate};
use crate::counted;
use crate::tried::Tried;

/// Trees of small files are kept until the end, because removing them slows down the making of the
/// next: so many at most for each setting.
const MOST_TINY_TRIALS: u32 = 8;

/// What a trial takes in any case, with the state of the cache.
const TRIAL_NS: f64 = 4e6;
/// Of many settings, those that came close to the best have the second half of the trials: of all trials that
/// there are at most, so many are made.
const CLOSE_PART: f64 = 0.75;
/// A small file is fetched from storage, with several requests in flight.
const COLD_FILE_NS: f64 = 20e3;

/// One kind of work.
pub(super) struct Group<'a> {
    pub(super) work: Work,
    pub(super) size: SizeClass,
    pub(super) cached: bool,
    /// Where is read, and where is written; both the same where only one is done.
    pub(super) source: &'a TunedPlace,
    pub(super) target: &'a TunedPlace,
    pub(super) tunings: Vec<Tuning>,
    /// That of them which is used without a profile.
    pub(super) usual: Tuning,
    /// Share of the time, in no unit.
    pub(super) weight: f64,
    /// Whether rows must say which of several places they concern.
    has_several_places: bool,
}

/// A kind of work, the size of its files, and whether they are cached.
type Kind = (Work, (SizeClass, bool));

/// What a place can do by itself, and into each.
fn kinds(in_memory: bool) -> Vec<Kind> {
    let works = [
        (Work::Read, SizeClass::Large),
        (Work::Write, SizeClass::Large),
        (Work::Copy, SizeClass::Large),
        (Work::Copy, SizeClass::Tiny),
    ];
    let states = if in_memory { &[true][..] } else { &[true, false] };
    let all = works
        .into_iter()
        .flat_map(|(work, size)| states.iter().map(move |&cached| (work, (size, cached))));
    all.filter(|&(work, (_, cached))| work != Work::Write || (cached && !in_memory)).collect()
}

/// All kinds of work that these places can do: nothing is ever cold, nor durable, where files live
/// in memory.
pub(super) fn all(places: &[TunedPlace], cpus: u32) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    for source in places {
        let (copies, alone): (Vec<Kind>, _) =
            kinds(source.in_memory).into_iter().partition(|(work, _)| *work == Work::Copy);
        let common = (cpus, places.len() > 1);
        let build = |(work, class): Kind, target| Group::new(work, class, [source, target], common);
        groups.extend(alone.into_iter().map(|kind| build(kind, source)));
        for target in places {
            groups.extend(copies.iter().map(|&kind| build(kind, target)));
        }
    }
    groups.sort_by_key(|group| is_late(group.size));
    groups
}

fn candidates((work, (size, cached)): Kind, cpus: u32) -> Vec<Tuning> {
    match size {
        SizeClass::Tiny => candidate::tiny(cached, cpus),
        SizeClass::Small | SizeClass::Large => candidate::large(work, cached, cpus),
    }
}

/// What the trials of one kind of work likely are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Likely {
    /// Share of the time, in no unit.
    weight: f64,
    /// Trials at most, and what each takes and writes.
    trials: f64,
    trial_ns: f64,
    bytes: f64,
}

/// Of each place: its files, whether they live in memory, and what was seen there.
/// Each setting has so many trials, at least and at most.
pub(super) fn likely(places: &[(Sizes, bool, Tried)], (least, most): (u32, u32)) -> Vec<Likely> {
    let cpus = affinity::allowed_cpu_count();
    let into = |work| if work == Work::Copy { places.len() } else { 1 };
    let groups = places.iter().flat_map(|&(sizes, in_memory, tried)| {
        let all = kinds(in_memory).into_iter();
        all.flat_map(move |kind| std::iter::repeat_n((sizes, tried, kind), into(kind.0)))
    });
    let one = |(sizes, tried, kind): (Sizes, Tried, Kind)| {
        let (work, (size, cached)) = kind;
        let settings = candidates(kind, cpus).len();
        let most = most_of(size, most);
        let part = if least < most && settings > FEW_SETTINGS { CLOSE_PART } else { 1.0 };
        Likely {
            weight: weight(work, size, cached) * settings as f64,
            trials: settings as f64 * f64::from(most) * part,
            trial_ns: trial_ns(kind, sizes, &tried),
            bytes: if work == Work::Read { 0.0 } else { sizes.trial_bytes(size) as f64 },
        }
    };
    let mut groups: Vec<_> = groups.collect();
    groups.sort_by_key(|(_, _, (_, (size, _)))| is_late(*size));
    groups.into_iter().map(one).collect()
}

/// Those that have few trials at most come first: what they leave of the time goes to the others.
fn is_late(size: SizeClass) -> bool {
    size != SizeClass::Tiny
}

fn trial_ns((work, (size, cached)): Kind, sizes: Sizes, tried: &Tried) -> f64 {
    let (bytes, files) = (sizes.file_bytes(size) as f64, sizes.files(size) as f64);
    let cold_byte_ns = if cached { 0.0 } else { tried.durable_byte_ns };
    let moved_ns = match (work, size) {
        (Work::Copy, SizeClass::Tiny) => {
            files * (tried.copying.made_ns + if cached { 0.0 } else { COLD_FILE_NS })
        }
        (Work::Copy, _) => bytes * (tried.copying.byte_ns + cold_byte_ns),
        (Work::Write, _) => bytes * tried.durable_byte_ns,
        (Work::Read, _) => bytes * (tried.copying.compared_byte_ns / 2.0).max(cold_byte_ns),
    };
    (TRIAL_NS + moved_ns) * tried.waiting_slowdown() + tried.settle_ns
}

/// Bytes that trials likely write in so much time, and the time that they take of it: each kind has its
/// share of what is left.
pub(super) fn in_time(groups: &[Likely], time_ns: f64) -> (f64, f64) {
    let mut whole: f64 = groups.iter().map(|group| group.weight).sum();
    let (mut left_ns, mut bytes) = (time_ns, 0.0);
    for group in groups {
        let share_ns = left_ns * group.weight / whole;
        whole -= group.weight;
        let trials = (share_ns / group.trial_ns).min(group.trials);
        left_ns -= trials * group.trial_ns;
        bytes += trials * group.bytes;
    }
    (bytes, time_ns - left_ns)
}

/// Trials at most for each setting.
pub(super) fn most_of(size: SizeClass, most_trials: u32) -> u32 {
    if size == SizeClass::Tiny { most_trials.min(MOST_TINY_TRIALS) } else { most_trials }
}

/// How long a trial takes beside others, with what must be done before it; two or three times as much
/// for what is cached, whose rates differ most from trial to trial.
fn weight(work: Work, size: SizeClass, cached: bool) -> f64 {
    match (work, size, cached) {
        (Work::Read, _, true) => 2.0,
        (Work::Copy, SizeClass::Tiny, true) => 9.0,
        (Work::Copy, SizeClass::Tiny, false) => 6.0,
        (Work::Write, _, _) | (Work::Copy, _, true) => 5.0,
        (Work::Read | Work::Copy, _, false) => 4.0,
    }
}

impl<'a> Group<'a> {
    fn new(
        work: Work,
        (size, cached): (SizeClass, bool),
        [source, target]: [&'a TunedPlace; 2],
        (cpus, has_several_places): (u32, bool),
    ) -> Self {
        let tunings = candidates((work, (size, cached)), cpus);
        let weight = weight(work, size, cached) * tunings.len() as f64;
        let usual = candidate::usual(work, size, cached, cpus);
        Self { work, size, cached, source, target, tunings, usual, weight, has_several_places }
    }

    /// The work, in words.
    pub(super) fn words(&self) -> String {
        let Self { work, size, cached, .. } = self;
        let files = if *size == SizeClass::Tiny { "small files" } else { "a large file" };
        let state = if *cached { "cached" } else { "not cached" };
        let [from, to] = [("from", self.source), ("to", self.target)].map(|(word, place)| {
            let told = format!(" {word} {}", place.number);
            if self.has_several_places { told } else { String::new() }
        });
        match work {
            Work::Read => format!("reading {files}{from}, {state}"),
            Work::Write => format!("writing {files}{to} until it is durable"),
            Work::Copy => format!("copying {files}{from}{to}, {state}"),
        }
    }

    /// What rows of the group are held against.
    pub(super) fn ceiling_name(&self, taken: &Tuning) -> String {
        let Tuning { engine, caching, block_bytes, depth, threads, .. } = taken;
        let ring = if *engine == Engine::Uring { format!(" × {depth}") } else { String::new() };
        let kib = block_bytes >> 10;
        let threads = counted(threads, "thread");
        format!(
            "the best for {}; taken: {engine}, {caching}, {kib} KiB{ring}, {threads}",
            self.words()
        )
    }

    /// Length of each file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.source.sizes.file_bytes(self.size)
    }

    /// How many files a trial moves.
    pub(super) fn files(&self) -> u64 {
        self.source.sizes.files(self.size)
    }

    /// Bytes that a trial writes, with what small files take beside their content.
    pub(super) fn written_bytes(&self) -> u64 {
        match self.work {
            Work::Read => 0,
            _ => self.source.sizes.trial_bytes(self.size),
        }
    }

    /// Bytes that a trial of each setting writes.
    pub(super) fn round_bytes(&self) -> u64 {
        self.written_bytes() * self.tunings.len() as u64
    }

    /// The row of one of its settings.
    pub(super) fn row(&self, tuning: &Tuning) -> Label {
        let Self { work, source, target, has_several_places, .. } = *self;
        let id = match work {
            Work::Read => "tune/read",
            Work::Write => "tune/write",
            Work::Copy => "tune/copy",
        };
        // Of small files the number counts, of a large one the bytes.
        let is_tiny = self.size == SizeClass::Tiny;
        let unit = if is_tiny { Unit::FilesPerSecond } else { Unit::BytesPerSecond };
        let (reads, writes) = (work != Work::Write, work != Work::Read);
        let (files, state) = (self.files(), if self.cached { "hot" } else { "cold" });
        Label::new(id, unit)
            .with_known("source_place", (has_several_places && reads).then_some(source.number))
            .with_known("target_place", (has_several_places && writes).then_some(target.number))
            .with_known("files", (files > 1).then_some(files))
            .with("file_bytes", self.file_bytes())
            .with_known("cache_state", reads.then_some(state))
            .with("engine", tuning.engine.to_string())
            .with("caching", tuning.caching.to_string())
            .with("block_bytes", tuning.block_bytes)
            .with("threads", tuning.threads)
            .with_known("depth", (tuning.engine == Engine::Uring).then_some(tuning.depth))
    }
}

/// Trees of small files that lie in a place at once at most, when copies come from so many places:
/// each with all its trials in both states.
pub(super) fn most_tiny_trees(sources: u64, cpus: u32, trials: u32) -> u64 {
    let settings = candidate::tiny(true, cpus).len() + candidate::tiny(false, cpus).len();
    sources * settings as u64 * u64::from(trials.min(MOST_TINY_TRIALS))
}

/// Settings with which a large file is written into a place, when copies come from so many.
pub(super) fn large_writes(sources: u64, cpus: u32) -> u64 {
    let count = |work, cached| candidate::large(work, cached, cpus).len() as u64;
    count(Work::Write, true) + sources * (count(Work::Copy, true) + count(Work::Copy, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_ends_with_the_trials_and_what_they_leave_of_the_time_goes_on() {
        // 0.3 s of small files at most, and then a large one of 50 MB, of which the time is the limit.
        let tiny = Likely { weight: 45.0, trials: 30.0, trial_ns: 10e6, bytes: 1e6 };
        let large = Likely { weight: 30.0, trials: 1e9, trial_ns: 25e6, bytes: 50e6 };
        let near = |found: (f64, f64), expected: (f64, f64)| {
            let is_near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
            assert!(is_near(found.0, expected.0) && is_near(found.1, expected.1), "{found:?}");
        };
        near(in_time(&[tiny, large], 6e9), (30e6 + 228.0 * 50e6, 6e9));
        near(in_time(&[tiny], 6e9), (30e6, 0.3e9));
        near(in_time(&[large, tiny], 6e9), (96.0 * 50e6 + 30e6, 2.7e9));
    }

    #[test]
    fn kinds_with_few_trials_come_first_and_cost_what_was_tried() {
        let sizes = Sizes::for_tests();
        let all = |byte_ns| {
            let copying = crate::tried::Copying { byte_ns, ..Tried::USUAL.copying };
            likely(&[(sizes, true, Tried { copying, ..Tried::USUAL })], (3, 100))
        };
        let [quick, slow] = [0.5, 1.5].map(all);
        assert!(quick[0].trials < quick[1].trials && quick.len() == 3, "{quick:?}");
        assert_eq!(quick[..2], slow[..2]);
        assert!(slow[2].trial_ns > 2.0 * quick[2].trial_ns, "{quick:?} {slow:?}");
    }
}
