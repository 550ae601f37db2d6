//! The first process of the disk area: it has all do their part of each phase between one agreed
//! start and one stonewall, and makes one figure of what they answer.

use std::cell::RefCell;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use flatout_measure::{
    Case, EVIDENCE, Evidence, Facts, Further, Happened, Histogram, Latencies, LoopKind, Parameters,
    Sample, TrialError, Warning, warning,
};
use flatout_sys::{CancelToken, Nature, monotonic_ns};

use serde::{Deserialize, Serialize};

use super::super::team::{Team, host_count};
use super::super::window::{Lane, Part, Together};
use super::super::{Shared, fact};
use super::hosts::{one_host_away, shared_bytes, slowest_host};
use super::pace::{OTHER_STONEWALLS, Pace, WEAR_OUT_STONEWALLS};
use super::phase::{Phase, Target};
use super::row::{ACROSS, DiskRow, PROCESS};
use super::worker::{Command, Reply, Worker};
use crate::disk::metadata::test_directory::TestDirectory;
use crate::fact::{BYTES, CACHED_BEFORE_BYTES};
use crate::{Error, IoError};

/// From the word to begin to the agreed start, and what each process adds.
const LEAD_NS: u64 = 4_000_000;
const LEAD_EACH_NS: u64 = 100_000;
/// From here on the page cache had a part in a cold read, or storage in what should be its work.
const WARM: f64 = 0.01;
const MOVED: f64 = 0.9;
/// Where requests may stand in no account of a process.
const UNACCOUNTED: [Nature; 2] = [Nature::Network, Nature::Userspace];

/// What all phases obey.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in super::super) struct Terms {
    pub(super) stonewall_ns: u64,
    pub(super) block_bytes: usize,
    /// Bytes that a process writes in a phase at most, in blocks, and small files.
    pub(super) each: u64,
    pub(super) small: u64,
    pub(super) most_items: u64,
}

impl Terms {
    /// What the longest command may take.
    pub(super) fn patience_ns(&self) -> u64 {
        2 * OTHER_STONEWALLS * self.stonewall_ns
    }
}

/// The first process.
pub(super) struct Leader<'d> {
    team: Team<Worker>,
    terms: Terms,
    directory: &'d TestDirectory,
    filesystem: String,
    in_memory: bool,
    is_unaccounted: bool,
    /// Whose files each process reads: those of one a host away.
    of: Vec<usize>,
    /// Items that each process has made in each target.
    made: Vec<(Target, Vec<u64>)>,
    /// What was done at the stonewall of the phase that is under way.
    reached: Vec<u64>,
    cached_bytes: u64,
    is_buffered: bool,
    pub(super) pace: Pace,
}

/// The case of a row.
pub(super) fn case<'c>(row: DiskRow, leader: &'c RefCell<Leader<'_>>) -> Case<'c, DiskRow> {
    let trial = move |_| {
        leader.borrow_mut().trial(&row).map_err(|error| match error {
            // What comes after it needs it.
            TrialError::Failed(text) => TrialError::NoMore(Warning::new(warning::FAILED, text)),
            error => error,
        })
    };
    Case { row, trial: Box::new(trial) }
}

impl<'d> Leader<'d> {
    pub(super) fn new(
        (wire, own, hosts, cancel): (Shared, Worker, Vec<String>, CancelToken),
        terms: Terms,
        directory: &'d TestDirectory,
    ) -> Self {
        let of = one_host_away(&hosts);
        let filesystem = flatout_sys::filesystem::of(directory.descriptor());
        let in_memory = filesystem.as_ref().is_ok_and(|filesystem| filesystem.in_memory);
        let is_unaccounted = filesystem.as_ref().is_ok_and(|it| UNACCOUNTED.contains(&it.nature));
        let filesystem = filesystem.map(|filesystem| filesystem.name.to_owned());
        let pace = Pace::unlimited(terms.stonewall_ns, monotonic_ns());
        Self {
            team: Team::new(wire, own, hosts, cancel),
            terms,
            directory,
            filesystem: filesystem.unwrap_or_default(),
            in_memory,
            is_unaccounted,
            of,
            made: Vec::new(),
            reached: Vec::new(),
            cached_bytes: 0,
            is_buffered: false,
            pace,
        }
    }

    /// Has all open the directory.
    ///
    /// Errors: one of them does not find it, or finds another one.
    pub(super) fn begin(&mut self, path: &Path) -> Result<(), Error> {
        let facts = std::fs::metadata(path).map_err(IoError::system("examine", path))?;
        self.team.patience_ns = self.terms.patience_ns();
        let directory = path.as_os_str().as_bytes();
        let replies = self.team.all(|_| Command::Begin {
            directory: directory.to_vec(),
            inode: facts.ino(),
            terms: self.terms.clone(),
        });
        let replies = match replies {
            // The rows say that they were interrupted.
            Err(TrialError::Interrupted) => return Ok(()),
            replies => replies.map_err(|error| Error::NoRoom(error.to_string()))?,
        };
        let differs = |reply: &Reply| reply.filesystem != self.filesystem;
        match replies.iter().position(differs) {
            Some(rank) => Err(Error::NoRoom(format!(
                "process {} sees {path:?} on another filesystem ({}, here {})",
                self.team.name(rank),
                replies[rank].filesystem,
                self.filesystem
            ))),
            None => Ok(()),
        }
    }

    /// All rows, in the order of their phases.
    pub(super) fn rows(&self) -> Vec<DiskRow> {
        let (processes, hosts) = (self.team.size(), host_count(&self.team.hosts));
        let of_phase = |phase: Phase| {
            let item_bytes = phase.target().item_bytes(self.terms.block_bytes);
            let row = move |wear_out| DiskRow { phase, wear_out, item_bytes, processes, hosts };
            let rows = if phase.makes() { vec![Some(false), Some(true)] } else { vec![None] };
            rows.into_iter().map(row)
        };
        Phase::ALL.into_iter().flat_map(of_phase).collect()
    }

    fn trial(&mut self, row: &DiskRow) -> Result<Sample, TrialError> {
        let phase = row.phase;
        if self.pace.is_over(monotonic_ns()) {
            return Err(TrialError::NoMore(warning::no_time()));
        }
        let begins_round = phase == Phase::ALL[0] && row.wear_out != Some(true);
        if begins_round && self.pace.is_written() {
            let text = "another round would write more than was announced";
            return Err(TrialError::NoMore(Warning::new(warning::WRITE_LIMIT, text)));
        }
        let replies = match row.wear_out {
            Some(true) => self.wear_out(phase)?,
            _ => self.start(phase, row.item_bytes)?,
        };
        if phase.makes() {
            let items: Vec<u64> = replies.iter().map(|reply| reply.lane.done).collect();
            self.made.retain(|(target, _)| *target != phase.target());
            self.made.push((phase.target(), items.clone()));
            if row.wear_out == Some(false) {
                self.reached = items;
            }
        }
        let sample = self.sample(row, &replies);
        if phase == Phase::OwnWrite {
            self.pace.bytes_per_ns = sample.amount / sample.elapsed_ns.max(1) as f64;
        }
        Ok(sample)
    }

    /// A phase from the agreed start to the stonewall.
    fn start(&mut self, phase: Phase, item_bytes: usize) -> Result<Vec<Reply>, TrialError> {
        if phase == Phase::ALL[0] {
            self.directory.empty()?;
            self.made.clear();
            self.team.compare_clocks();
        }
        self.pace.begin(phase, monotonic_ns());
        let most_dirty_bytes = self.pace.most_dirty_bytes(self.team.size());
        let of = self.of.clone();
        let whose = |rank: usize| if phase.makes() { rank } else { of[rank] };
        let ready =
            self.team.all(|rank| Command::Prepare { phase, of: whose(rank), most_dirty_bytes })?;
        let cached: Vec<u64> = ready.iter().map(|reply| reply.cached_bytes).collect();
        self.cached_bytes = match phase.target() {
            Target::OwnFile => cached.iter().sum(),
            _ => shared_bytes(&self.team.hosts, &cached),
        };
        self.is_buffered = ready.iter().any(|reply| reply.is_buffered);
        let size = self.team.size();
        let stonewalls = if phase.makes() { 1 } else { OTHER_STONEWALLS };
        let lead_ns = LEAD_NS + LEAD_EACH_NS * size as u64 + 4 * self.team.clock_error_ns();
        let agreed_ns = monotonic_ns() + lead_ns;
        let stop_ns = agreed_ns + stonewalls * self.pace.stonewall_ns;
        let most = match phase.target() {
            _ if phase == Phase::Find => u64::MAX,
            Target::OwnDirectory | Target::SharedDirectory => self.terms.small,
            _ => self.terms.each / item_bytes.max(1) as u64,
        };
        let made = self.made(phase.target()).map(<[u64]>::to_vec);
        let items = |rank: usize| match &made {
            Some(made) if !phase.makes() && phase != Phase::Find => made[whose(rank)],
            _ => most,
        };
        let offsets = self.team.offsets.clone();
        self.team.all(|rank| Command::Start {
            start_ns: offsets[rank].there(agreed_ns),
            stop_ns: offsets[rank].there(stop_ns),
            items: items(rank),
        })
    }

    /// All go on until they have done as much as the fastest.
    fn wear_out(&mut self, phase: Phase) -> Result<Vec<Reply>, TrialError> {
        let items = self.made(phase.target()).and_then(|made| made.iter().copied().max());
        let items = items.unwrap_or(0);
        let stop_ns = monotonic_ns() + WEAR_OUT_STONEWALLS * self.pace.stonewall_ns;
        let offsets = self.team.offsets.clone();
        self.team.all(|rank| Command::WearOut { stop_ns: offsets[rank].there(stop_ns), items })
    }

    fn made(&self, target: Target) -> Option<&[u64]> {
        self.made.iter().find(|(known, _)| *known == target).map(|(_, made)| made.as_slice())
    }

    /// One figure of all answers, and what else they say.
    fn sample(&self, row: &DiskRow, replies: &[Reply]) -> Sample {
        let lanes: Vec<&Lane> = replies.iter().map(|reply| &reply.lane).collect();
        let each = if row.phase.is_of_bytes() { row.item_bytes as f64 } else { 1.0 };
        let together = Together::of(&lanes);
        let further = |parameters: Parameters, part: Part| Further {
            parameters,
            amount: part.amount * each,
            elapsed_ns: part.elapsed_ns,
            ..Further::default()
        };
        let across = |word| Parameters::default().with(ACROSS, word);
        let mut all = vec![
            further(across("first"), together.first),
            further(across("common"), together.common.unwrap_or_default()),
        ];
        for (rank, lane) in lanes.iter().enumerate() {
            let own = Part { amount: lane.done as f64, elapsed_ns: lane.elapsed_ns() };
            let parameters = Parameters::default().with(PROCESS, self.team.name(rank));
            all.push(further(parameters, own));
        }
        let mut histogram = Histogram::default();
        for latencies in replies.iter().filter_map(|reply| reply.latencies.as_ref()) {
            histogram.merge_packed(latencies);
        }
        let facts = self.facts(row, replies, &lanes);
        Sample {
            amount: together.last.amount * each,
            elapsed_ns: together.last.elapsed_ns,
            warnings: self.warnings(row, &facts),
            facts,
            latencies: Some(Latencies { histogram, loop_kind: LoopKind::Closed }),
            further: all,
            ..Sample::default()
        }
    }

    fn facts(&self, row: &DiskRow, replies: &[Reply], lanes: &[&Lane]) -> Facts {
        let sum = |part: fn(&Reply) -> u64| replies.iter().map(part).sum::<u64>();
        let operations = sum(|reply| reply.lane.done);
        let most = |part: fn(&Lane) -> u64| lanes.iter().map(|lane| part(lane)).max().unwrap_or(0);
        let least = |part: fn(&Lane) -> u64| lanes.iter().map(|lane| part(lane)).min().unwrap_or(0);
        let rate = |lane: &Lane| lane.done as f64 / lane.elapsed_ns().max(1) as f64;
        let mut facts = Facts::default()
            .with(fact::OPERATIONS, operations)
            .with(fact::CLOCK_ERROR_NS, self.team.clock_error_ns())
            .with(fact::START_SPREAD_NS, most(|lane| lane.start_ns))
            .with(fact::END_SPREAD_NS, most(|lane| lane.end_ns) - least(|lane| lane.end_ns))
            .with(fact::LEAST_OPERATIONS, least(|lane| lane.done))
            .with(fact::MOST_OPERATIONS, most(|lane| lane.done));
        let slowest =
            (0..lanes.len()).min_by(|&one, &other| rate(lanes[one]).total_cmp(&rate(lanes[other])));
        // Who was slowest, and which host.
        facts.set_known("slowest_process", slowest.map(|rank| self.team.name(rank)));
        facts.set_known("slowest_host", slowest_host(&self.team.hosts, lanes, rate));
        if row.wear_out == Some(true) {
            let wanted = self.reached.iter().max().copied().unwrap_or(0);
            let is_complete = lanes.iter().all(|lane| lane.done >= wanted);
            facts.set(fact::WEAR_OUT_COMPLETE, is_complete);
        }
        if row.phase == Phase::Find {
            facts.set(fact::ENTRIES_FOUND, sum(|reply| reply.found));
        }
        if row.phase.is_of_bytes() {
            let bytes = operations * row.item_bytes as u64;
            facts.set(BYTES, bytes);
            facts.set(fact::PROCESS_READ_BYTES, sum(|reply| reply.read_bytes));
            facts.set(fact::PROCESS_WRITE_BYTES, sum(|reply| reply.write_bytes));
            if row.phase.reads_bytes() {
                facts.set(CACHED_BEFORE_BYTES, self.cached_bytes);
            }
            facts.set(EVIDENCE, self.evidence(row, &facts, bytes));
        }
        facts
    }

    /// Whether storage was asked for what was read or written, by the accounts of the kernels.
    fn evidence(&self, row: &DiskRow, facts: &Facts, bytes: u64) -> Evidence {
        let key = match row.phase.makes() {
            true => fact::PROCESS_WRITE_BYTES,
            false => fact::PROCESS_READ_BYTES,
        };
        if self.in_memory {
            return Evidence::missing(key.name(), "the filesystem lies in memory");
        }
        let asked = facts.count(key).unwrap_or(0);
        if asked == 0 && self.is_unaccounted {
            return Evidence::missing(key.name(), "this filesystem keeps no such account");
        }
        let moved = facts.number(key).unwrap_or(0.0) / bytes.max(1) as f64;
        let happened = if moved >= MOVED { Happened::Yes } else { Happened::No };
        let text = "share of the bytes that storage was asked for, by the processes' own accounts";
        Evidence::read(happened, key.name(), moved, text)
    }

    fn warnings(&self, row: &DiskRow, facts: &Facts) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn = |code: &str, text: String| warnings.push(Warning::new(code, text));
        let phase = row.phase;
        if self.in_memory {
            let text = "the files live in memory; no storage is involved";
            warn(warning::MEMORY_FILESYSTEM, text.to_owned());
        }
        if facts.flag(fact::WEAR_OUT_COMPLETE) == Some(false) {
            let text = "the wear-out was cut off after as much time as the stonewall took: some \
                        processes did less than the fastest had done by then";
            warn(warning::WEAR_OUT_BOUNDED, text.to_owned());
        }
        let made: u64 = self.made(phase.target()).unwrap_or_default().iter().sum();
        let operations = facts.count(fact::OPERATIONS).unwrap_or(0);
        if phase == Phase::Find {
            let small = self.made(Target::SharedDirectory).unwrap_or_default();
            let (all, found) = (made + small.iter().sum::<u64>(), facts.count(fact::ENTRIES_FOUND));
            if found != Some(all) {
                let text = format!("{} of {all} names were found", found.unwrap_or(0));
                warn(warning::MISSING, text);
            } else if operations < all {
                warn(warning::TIME_SHORT, format!("the time was over after {operations} of {all}"));
            }
        } else if !phase.makes() && operations < made {
            let text =
                format!("the time was over after {operations} of {made}: the rest was left alone");
            warn(warning::TIME_SHORT, text);
        }
        if self.is_buffered && matches!(phase.target(), Target::OwnFile | Target::Contiguous) {
            let text = "the filesystem refuses direct I/O; the page cache had a part in it";
            warn(warning::DIRECT_REFUSED, text.to_owned());
        }
        let cached = self.cached_bytes as f64 / (operations * row.item_bytes as u64).max(1) as f64;
        if phase.reads_bytes() && !self.in_memory && cached > WARM {
            let text = "part of the files was still in the page cache when it began";
            warn(warning::NOT_COLD, text.to_owned());
        }
        let mut read = self.team.hosts.iter().zip(&self.of);
        if phase == Phase::SharedRead && read.any(|(host, &of)| *host == self.team.hosts[of]) {
            let text = "small files were written on the same host: its page cache has them";
            warn(warning::NOT_COLD, text.to_owned());
        }
        if matches!(
            phase,
            Phase::OwnCreate | Phase::SharedCreate | Phase::OwnDelete | Phase::SharedDelete
        ) {
            let text = "the names change in memory and in the journal; nothing was synced";
            warn(warning::NOT_DURABLE, text.to_owned());
        }
        warnings
    }
}
