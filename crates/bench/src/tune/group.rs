//! Kinds of work, each with the settings that compete for it and its share of the time.

use flatout_io::{Engine, SizeClass, Tuning, Work};
use flatout_measure::{Label, Plan, Row, Unit};
use flatout_sys::affinity;

use super::candidate;
use super::tuned_place::{Sizes, TunedPlace};
use crate::tried::Tried;

/// Trees of small files are kept until the end, because removing them slows down the making of the
/// next: so many at most for each setting.
const MOST_TINY_TRIALS: u32 = 8;

/// What a trial that writes takes in any case (ext4, Zen 4, 2 CPUs, 2026-11-26: 5 and, after other runs,
/// 20 ms with 8 MiB, 90 ms with 128), and for each byte: this, and so many times what making one durable
/// takes. In 5 s 1.4 GiB were written on btrfs, 3.8 and 5.1 on ext4, 6.2 on xfs (Zen 4, 2 CPUs, loops in
/// memory and a virtual disk, 2026-11-26).
const TRIAL_NS: f64 = 6e6;
const BYTE_NS: f64 = 0.015;
const DURABLE_PART: f64 = 0.61;

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
        let build = |(work, class): Kind, target| Group::new(work, class, [source, target], cpus);
        groups.extend(alone.into_iter().map(|kind| build(kind, source)));
        for target in places {
            groups.extend(copies.iter().map(|&kind| build(kind, target)));
        }
    }
    let has_several_places = places.len() > 1;
    groups.into_iter().map(|group| Group { has_several_places, ..group }).collect()
}

fn candidates((work, (size, cached)): Kind, cpus: u32) -> Vec<Tuning> {
    match size {
        SizeClass::Tiny => candidate::tiny(cached, cpus),
        SizeClass::Small | SizeClass::Large => candidate::large(work, cached, cpus),
    }
}

/// Bytes that trials likely write in so much time, at most so many of each setting. Of each place: its
/// files, whether they live in memory, and what was seen there.
pub(super) fn likely_write_bytes(
    places: &[(Sizes, bool, Tried)],
    most_trials: u32,
    time_ns: f64,
) -> u64 {
    let cpus = affinity::allowed_cpu_count();
    let into = |work| if work == Work::Copy { places.len() } else { 1 };
    let groups = places.iter().flat_map(|&(sizes, in_memory, tried)| {
        kinds(in_memory)
            .into_iter()
            .flat_map(move |kind| std::iter::repeat_n((sizes, tried, kind), into(kind.0)))
    });
    let groups: Vec<_> = groups
        .map(|(sizes, tried, (work, (size, cached)))| {
            let settings = candidates((work, (size, cached)), cpus).len() as f64;
            let bytes = if work == Work::Read { 0 } else { sizes.trial_bytes(size) };
            let byte_ns = BYTE_NS + DURABLE_PART * tried.durable_byte_ns;
            let trial_ns =
                (TRIAL_NS + bytes as f64 * byte_ns) * tried.waiting_slowdown() + tried.settle_ns;
            (weight(work, size, cached) * settings, settings, bytes as f64, trial_ns)
        })
        .collect();
    let whole: f64 = groups.iter().map(|(weight, ..)| weight).sum();
    let written = groups.into_iter().map(|(weight, settings, bytes, trial_ns)| {
        let in_time = time_ns * weight / whole / trial_ns;
        in_time.min(settings * f64::from(most_trials)) * bytes
    });
    written.sum::<f64>() as u64
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
        cpus: u32,
    ) -> Self {
        let tunings = candidates((work, (size, cached)), cpus);
        let weight = weight(work, size, cached) * tunings.len() as f64;
        let usual = candidate::usual(work, size, cached, cpus);
        let has_several_places = false;
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
        let plural = if *threads == 1 { "" } else { "s" };
        format!(
            "the best for {}; taken: {engine}, {caching}, {kib} KiB{ring}, {threads} thread{plural}",
            self.words()
        )
    }

    /// Bytes that one of the unit stands for.
    pub(super) fn bytes_per_unit(&self) -> f64 {
        if self.size == SizeClass::Tiny { self.file_bytes() as f64 } else { 1.0 }
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

    /// Trials at most for each setting.
    pub(super) fn most_trials(&self, plan: &Plan) -> u32 {
        match self.size {
            SizeClass::Tiny => plan.max_trials.min(MOST_TINY_TRIALS),
            SizeClass::Small | SizeClass::Large => plan.max_trials,
        }
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

/// A row: the work of a group with one of its settings.
#[derive(Clone)]
pub(super) struct Setting<'g> {
    pub(super) group: &'g Group<'g>,
    pub(super) tuning: Tuning,
}

impl Row for Setting<'_> {
    fn label(&self) -> Label {
        let (Group { work, source, target, .. }, tuning) = (self.group, &self.tuning);
        let id = match work {
            Work::Read => "tune/read",
            Work::Write => "tune/write",
            Work::Copy => "tune/copy",
        };
        // Of small files the number counts, of a large one the bytes.
        let is_tiny = self.group.size == SizeClass::Tiny;
        let unit = if is_tiny { Unit::FilesPerSecond } else { Unit::BytesPerSecond };
        let (reads, writes) = (*work != Work::Write, *work != Work::Read);
        let has_several = self.group.has_several_places;
        let files = self.group.files();
        let state = if self.group.cached { "hot" } else { "cold" };
        Label::new(id, unit)
            .with_known("source_place", (has_several && reads).then_some(source.number))
            .with_known("target_place", (has_several && writes).then_some(target.number))
            .with_known("files", (files > 1).then_some(files))
            .with("file_bytes", self.group.file_bytes())
            .with_known("cache_state", reads.then_some(state))
            .with("engine", tuning.engine.to_string())
            .with("caching", tuning.caching.to_string())
            .with("block_bytes", tuning.block_bytes)
            .with("threads", tuning.threads)
            .with_known("depth", (tuning.engine == Engine::Uring).then_some(tuning.depth))
    }
}
