//! Kinds of work, each with the settings that compete for it and its share of the time.

use flatout_io::{Engine, SizeClass, Tuning, Work};
use flatout_measure::{Label, Unit};

use super::tuned_place::Sizes;
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
pub(super) struct Group {
    pub(super) work: Work,
    pub(super) size: SizeClass,
    pub(super) cached: bool,
    /// The place where is read, and that where is written; both the same where only one is done.
    pub(super) source: usize,
    pub(super) target: usize,
    /// Those of the source.
    pub(super) sizes: Sizes,
    pub(super) tunings: Vec<Tuning>,
    /// That of them which is used without a profile.
    pub(super) usual: Tuning,
    /// Share of the time, in no unit.
    pub(super) weight: f64,
    /// Whether rows must say which of several places they concern.
    has_several_places: bool,
}

/// What a place can do by itself, and into each: nothing is ever cold, nor durable, where files live in
/// memory.
fn kinds(in_memory: bool) -> Vec<(Work, SizeClass, bool)> {
    let works = [
        (Work::Read, SizeClass::Large),
        (Work::Write, SizeClass::Large),
        (Work::Copy, SizeClass::Large),
        (Work::Copy, SizeClass::Tiny),
    ];
    let states = if in_memory { &[true][..] } else { &[true, false] };
    let all = works.into_iter();
    let all = all.flat_map(|(work, size)| states.iter().map(move |&cached| (work, size, cached)));
    all.filter(|&(work, _, cached)| work != Work::Write || (cached && !in_memory)).collect()
}

/// All kinds of work that places can do: of each place its files, and whether they live in memory. Those
/// that have few trials at most come first: what they leave of the time goes to the others.
pub(super) fn all(places: &[(Sizes, bool)], cpus: u32) -> Vec<Group> {
    let mut groups = Vec::new();
    for (source, &(sizes, in_memory)) in places.iter().enumerate() {
        for (work, size, cached) in kinds(in_memory) {
            let targets = if work == Work::Copy { 0..places.len() } else { source..source + 1 };
            groups.extend(targets.map(|target| {
                let tunings = match size {
                    SizeClass::Tiny => candidate::tiny(cached, cpus),
                    SizeClass::Small | SizeClass::Large => candidate::large(work, cached, cpus),
                };
                let weight = weight(work, size, cached) * tunings.len() as f64;
                let usual = candidate::usual(work, size, cached, cpus);
                let has_several_places = places.len() > 1;
                Group {
                    work,
                    size,
                    cached,
                    source,
                    target,
                    sizes,
                    tunings,
                    usual,
                    weight,
                    has_several_places,
                }
            }));
        }
    }
    groups.sort_by_key(|group| group.size != SizeClass::Tiny);
    groups
}

/// Bytes that trials likely write in so much time, and the time that they take of it: each kind has its
/// share of what is left. `tried` is what was seen in each place; each setting has so many trials, at least
/// and at most.
pub(super) fn in_time(
    groups: &[Group],
    tried: &[Tried],
    trials: (u32, u32),
    time_ns: f64,
) -> (f64, f64) {
    let mut whole: f64 = groups.iter().map(|group| group.weight).sum();
    let (mut left_ns, mut bytes) = (time_ns, 0.0);
    for group in groups {
        let share_ns = left_ns * group.weight / whole;
        whole -= group.weight;
        let trial_ns = group.trial_ns(&tried[group.source]);
        let made = (share_ns / trial_ns).min(group.most_trials(trials));
        left_ns -= made * trial_ns;
        bytes += made * group.written_bytes() as f64;
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

impl Group {
    /// Trials of all settings at most, of which each has so many at least and at most.
    fn most_trials(&self, (least, most): (u32, u32)) -> f64 {
        let (settings, most) = (self.tunings.len(), most_of(self.size, most));
        let part = if least < most && settings > FEW_SETTINGS { CLOSE_PART } else { 1.0 };
        settings as f64 * f64::from(most) * part
    }

    fn trial_ns(&self, tried: &Tried) -> f64 {
        let (bytes, files) = (self.sizes.file_bytes(self.size) as f64, self.files() as f64);
        let cold_byte_ns = if self.cached { 0.0 } else { tried.durable_byte_ns };
        let cold_file_ns = if self.cached { 0.0 } else { COLD_FILE_NS };
        // Beside others CPUs are slower than in the moments in which they were tried; storage was tried for
        // as long as a trial takes.
        let (computed_ns, stored_ns) = match (self.work, self.size) {
            (Work::Copy, SizeClass::Tiny) => (files * tried.copying.made_ns, files * cold_file_ns),
            (Work::Copy, _) => (bytes * tried.copying.byte_ns, bytes * cold_byte_ns),
            (Work::Write, _) => (0.0, bytes * tried.durable_byte_ns),
            (Work::Read, _) => {
                (0.0, bytes * (tried.copying.compared_byte_ns / 2.0).max(cold_byte_ns))
            }
        };
        (TRIAL_NS + computed_ns) * tried.waiting_slowdown() + stored_ns + tried.settle_ns
    }

    /// The work, in words.
    pub(super) fn words(&self) -> String {
        let Self { work, size, cached, .. } = self;
        let files = if *size == SizeClass::Tiny { "small files" } else { "a large file" };
        let state = if *cached { "cached" } else { "not cached" };
        let [from, to] = [("from", self.source), ("to", self.target)].map(|(word, place)| {
            let told = format!(" {word} {}", place + 1);
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
        self.sizes.file_bytes(self.size)
    }

    /// How many files a trial moves.
    pub(super) fn files(&self) -> u64 {
        self.sizes.files(self.size)
    }

    /// Bytes that a trial writes, with what small files take beside their content.
    pub(super) fn written_bytes(&self) -> u64 {
        match self.work {
            Work::Read => 0,
            _ => self.sizes.trial_bytes(self.size),
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
            .with_known("source_place", (has_several_places && reads).then_some(source + 1))
            .with_known("target_place", (has_several_places && writes).then_some(target + 1))
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
        let groups = all(&[(Sizes::for_tests(), true)], 2);
        let trials = |group: &Group| group.most_trials((3, 100));
        assert!(trials(&groups[0]) < trials(&groups[1]) && groups.len() == 3, "few come first");
        let tried = [Tried::USUAL];
        let own_ns = |group: &Group| group.trial_ns(&tried[0]) * trials(group);
        let whole_ns: f64 = groups.iter().map(own_ns).sum();
        let whole: f64 = groups.iter().map(|one| one.written_bytes() as f64 * trials(one)).sum();
        let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
        let (bytes, time_ns) = in_time(&groups, &tried, (3, 100), whole_ns * 99.0);
        assert!(near(bytes, whole) && near(time_ns, whole_ns), "all trials end before the time");
        // What the small files do not need goes to the others, of which the time is the limit.
        let (bytes, time_ns) = in_time(&groups, &tried, (3, 100), whole_ns / 2.0);
        assert!(bytes < whole && near(time_ns, whole_ns / 2.0), "{bytes} of {whole}");
    }

    #[test]
    fn trials_cost_what_was_tried() {
        let groups = all(&[(Sizes::for_tests(), true)], 2);
        let all_ns = |byte_ns| {
            let copying = crate::tried::Copying { byte_ns, ..Tried::USUAL.copying };
            let tried = Tried { copying, ..Tried::USUAL };
            groups.iter().map(|group| group.trial_ns(&tried)).collect::<Vec<_>>()
        };
        let [quick, slow] = [0.5, 1.5].map(all_ns);
        assert_eq!(quick[..2], slow[..2]);
        assert!(slow[2] > 2.0 * quick[2], "{quick:?} {slow:?}");
    }
}
