//! Kinds of work, each with the settings that compete for it and its share of the time.

use std::borrow::Cow;

use flatout_io::{Engine, SizeClass, Tuning, Work};
use flatout_measure::case::Plan;
use flatout_measure::row::{Parameters, Row, Unit};

use super::candidate;
use super::tuned_place::TunedPlace;

/// Trees of small files are kept until the end, because removing them slows down the making of the
/// next: so many at most for each setting.
const MOST_TINY_TRIALS: u32 = 8;

/// One kind of work.
pub(super) struct Group<'a> {
    pub(super) work: Work,
    pub(super) size: SizeClass,
    pub(super) cached: bool,
    /// Where is read, and where is written; both the same where only one is done.
    pub(super) source: &'a TunedPlace,
    pub(super) target: &'a TunedPlace,
    pub(super) tunings: Vec<Tuning>,
    /// Share of the time, in no unit.
    pub(super) weight: f64,
    /// Whether rows must say which of several places they concern.
    has_several_places: bool,
}

/// All kinds of work that these places can do: nothing is ever cold, nor durable, where files live
/// in memory.
pub(super) fn all(places: &[TunedPlace], cpus: u32) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    for source in places {
        let states = if source.in_memory { &[true][..] } else { &[true, false] };
        for &cached in states {
            groups.push(Group::new(Work::Read, (SizeClass::Large, cached), [source; 2], cpus));
        }
        if !source.in_memory {
            groups.push(Group::new(Work::Write, (SizeClass::Large, true), [source; 2], cpus));
        }
        for target in places {
            for size in [SizeClass::Large, SizeClass::Tiny] {
                let classes = states.iter().map(|&cached| (size, cached));
                let build = |class| Group::new(Work::Copy, class, [source, target], cpus);
                groups.extend(classes.map(build));
            }
        }
    }
    let has_several_places = places.len() > 1;
    groups.into_iter().map(|group| Group { has_several_places, ..group }).collect()
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
        let tunings = match size {
            SizeClass::Tiny => candidate::tiny(cached, cpus),
            SizeClass::Small | SizeClass::Large => candidate::large(work, cached, cpus),
        };
        let weight = weight(work, size, cached) * tunings.len() as f64;
        let has_several_places = false;
        Self { work, size, cached, source, target, tunings, weight, has_several_places }
    }

    /// The work, in words.
    pub(super) fn words(&self) -> String {
        let Self { work, size, cached, .. } = self;
        let files = if *size == SizeClass::Tiny { "small files" } else { "a large file" };
        let state = if *cached { "cached" } else { "not cached" };
        match work {
            Work::Read => format!("reading {files}, {state}"),
            Work::Write => format!("writing {files} until it is durable"),
            Work::Copy => format!("copying {files}, {state}"),
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

/// A row: the work of a group with one of its settings.
#[derive(Clone)]
pub(super) struct Setting<'g> {
    group: &'g Group<'g>,
    pub(super) tuning: Tuning,
}

impl<'g> Group<'g> {
    /// The row of one of its settings.
    pub(super) fn setting(&'g self, tuning: Tuning) -> Setting<'g> {
        Setting { group: self, tuning }
    }
}

impl Row for Setting<'_> {
    fn id(&self) -> Cow<'static, str> {
        match self.group.work {
            Work::Read => "tune/read",
            Work::Write => "tune/write",
            Work::Copy => "tune/copy",
        }
        .into()
    }

    fn parameters(&self) -> Parameters {
        let (Group { work, source, target, .. }, tuning) = (self.group, &self.tuning);
        let mut parameters = Parameters::default();
        if self.group.has_several_places {
            let (reads, writes) = (*work != Work::Write, *work != Work::Read);
            parameters.set_known("source_place", reads.then_some(source.number));
            parameters.set_known("target_place", writes.then_some(target.number));
        }
        let files = self.group.files();
        parameters.set_known("files", (files > 1).then_some(files));
        parameters.set("file_bytes", self.group.file_bytes());
        let state = if self.group.cached { "hot" } else { "cold" };
        parameters.set_known("cache_state", (*work != Work::Write).then_some(state));
        parameters.set("engine", tuning.engine.to_string());
        parameters.set("caching", tuning.caching.to_string());
        parameters.set("block_bytes", tuning.block_bytes);
        parameters.set("threads", tuning.threads);
        parameters.set_known("depth", (tuning.engine == Engine::Uring).then_some(tuning.depth));
        parameters
    }

    /// Of small files the number counts, of a large one the bytes.
    fn unit(&self) -> Unit {
        let is_tiny = self.group.size == SizeClass::Tiny;
        if is_tiny { Unit::FilesPerSecond } else { Unit::BytesPerSecond }
    }
}
