//! A filesystem that all processes see: phases in the order of IO500, which these are *like*; no
//! submission comes of them (they are too short, and IO500 has programs of its own).
//!
//! Writing phases end at a stonewall; the row without wear-out says what was done and synced by
//! then, the one with wear-out what it took until all had done as much as the fastest. What is
//! read, examined or removed is what a process one host away has made (disk/leader.rs).

mod hosts;
mod leader;
mod names;
mod pace;
mod phase;
mod row;
mod worker;

use std::path::Path;

use flatout_measure::{Sampler, record_counted, size_text};

use super::{Shared, fact, of_the_job};
use crate::disk::Options;
use crate::disk::metadata::test_directory::TestDirectory;
use crate::tried::Tried;
use crate::{Area, Error, Estimate, Extent, Found, IoError, Run, scratch};

use leader::{Leader, Terms};
pub(super) use worker::{Command, Worker};

/// Time until the stonewall.
const STONEWALL_NS: u64 = 1_000_000_000;
const QUICK_STONEWALL_NS: u64 = 250_000_000;
/// Stonewalls that a whole round takes: six phases that write, nearly all of them with a sync and a
/// wear-out, and eight others that take less than one as a rule.
const STONEWALLS_OF_A_ROUND: u64 = 25;
const LEAST_STONEWALL_NS: u64 = 2_000_000;
/// Rounds that others spoil and that are made again, for which what is announced at most has room.
const SPOILED_ROUNDS: u64 = 2;
/// Bytes of a request to files of their own and to ranges, where none are given.
const BLOCK_BYTES: u64 = 1 << 20;
const MOST_BLOCK_BYTES: u64 = 64 << 20;
/// The same has to be a multiple of this, for direct I/O.
const ALIGNED_BYTES: u64 = 4096;
/// Bytes that a process writes in a phase at most, where nobody asked for more.
const MOST_BYTES: u64 = 1 << 30;
/// Phases that share the room: three files of data, and the small files.
const SHARING: u64 = 4;
/// Small files of a process at most, and what one is counted as.
const MOST_SMALL: u64 = 100_000;
const SMALL_ROOM_BYTES: u64 = 4096;

/// The area, as the first process has it.
pub struct Disk {
    wire: Shared,
    hosts: Vec<String>,
    options: Options,
    planned: Planned,
}

#[derive(Default)]
struct Planned {
    terms: Terms,
    run: Run,
    /// Rounds that are wanted, and that begin at most.
    rounds: u64,
    most_rounds: u64,
}

impl Disk {
    /// The area for these processes, each on its host.
    pub fn new(wire: Shared, hosts: Vec<String>, options: Options) -> Self {
        Self { wire, hosts, options, planned: Planned::default() }
    }

    /// What a round may write.
    fn room_bytes(&self, run: &Run, rounds: u64) -> Result<u64, Error> {
        let filesystem = scratch::on(&run.place)?;
        let free = scratch::part_of(scratch::free_bytes(&filesystem));
        let memory = scratch::memory_part(&filesystem, scratch::MEMORY_PART);
        let usual = self.options.selection.runtime_ns.is_none().then_some(MOST_BYTES);
        let wanted = self.options.bytes.or(usual);
        let wanted = wanted.map_or(u64::MAX, |bytes| {
            bytes.saturating_mul(SHARING).saturating_mul(self.hosts.len() as u64)
        });
        let allowed = run.max_write_bytes.map_or(u64::MAX, |most| most / rounds);
        Ok(free.min(memory).min(wanted).min(allowed))
    }
}

impl Area for Disk {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        let facts =
            std::fs::metadata(&run.place).map_err(IoError::system("examine", &run.place))?;
        if !facts.is_dir() {
            let text = "several processes measure a directory, in which they make their files";
            return Err(Error::Usage(text.to_owned()));
        }
        let selection = &self.options.selection;
        let block_bytes = selection.block_bytes.first().copied().unwrap_or(BLOCK_BYTES);
        if !(ALIGNED_BYTES..=MOST_BLOCK_BYTES).contains(&block_bytes)
            || !block_bytes.is_multiple_of(ALIGNED_BYTES)
            || selection.block_bytes.len() > 1
        {
            let most = size_text(MOST_BLOCK_BYTES);
            let text = format!(
                "--block-size: several processes take one, a multiple of 4 KiB up to {most}"
            );
            return Err(Error::Usage(text));
        }
        let rounds = u64::from(run.rounds.unwrap_or(run.least_trials)).max(1);
        let usual = if run.extent == Extent::Full { STONEWALL_NS } else { QUICK_STONEWALL_NS };
        let stonewall_ns = match (selection.runtime_ns, run.time_ns) {
            (Some(asked_ns), _) => asked_ns,
            (None, Some(time_ns)) => (time_ns / rounds / STONEWALLS_OF_A_ROUND).min(usual),
            (None, None) => usual,
        };
        let stonewall_ns = stonewall_ns.max(LEAST_STONEWALL_NS);
        let room_bytes = self.room_bytes(run, rounds)?;
        let each = room_bytes / SHARING / self.hosts.len() as u64;
        let small = (each / SMALL_ROOM_BYTES).min(MOST_SMALL);
        if each < block_bytes {
            return Err(Error::NoRoom(format!(
                "cannot measure in {:?}: each of {} processes may write {} in a phase, and needs {} \
                 (one tenth of the free space; --max-write)",
                run.place,
                self.hosts.len(),
                size_text(each),
                size_text(block_bytes)
            )));
        }
        let in_time = run.time_ns.map(|time_ns| time_ns / (STONEWALLS_OF_A_ROUND * stonewall_ns));
        let allowed = run.max_write_bytes.map_or(u64::MAX, |most| most / room_bytes);
        let rounds = in_time.map_or(rounds, |in_time| in_time.max(rounds)).min(allowed);
        // One that is alone is not made again.
        let most_rounds = allowed.min(rounds + SPOILED_ROUNDS.min(rounds - 1));
        let most_items = each / block_bytes;
        let terms =
            Terms { stonewall_ns, block_bytes: block_bytes as usize, each, small, most_items };
        self.planned = Planned { terms, run: run.clone(), rounds, most_rounds };
        let likely = Tried::USUAL.surely_made_bytes(3 * stonewall_ns).min(room_bytes);
        Ok(Estimate {
            place: Some(run.place.clone()),
            write_bytes: likely.saturating_mul(rounds),
            most_write_bytes: room_bytes.saturating_mul(most_rounds),
            usual_ns: run.time_ns.unwrap_or(rounds * STONEWALLS_OF_A_ROUND * stonewall_ns),
            notices: vec![
                "phases in the order of IO500, and like them; this is no submission".to_owned(),
            ],
            ..Estimate::default()
        })
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let directory = TestDirectory::make(&self.planned.run.place)?;
        let found = self.run(&directory, sampler);
        // The others have heard that it is over.
        let removed = directory.finish();
        let found = found?;
        removed?;
        Ok(found)
    }
}

impl Disk {
    fn run(&self, directory: &TestDirectory, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let Planned { terms, run, rounds, most_rounds } = &self.planned;
        let seat = self.wire.borrow().seat();
        let own = Worker::new(seat, run.cancel).map_err(Error::NoRoom)?;
        let path = std::path::absolute(Path::new(directory.path()));
        let path = path.map_err(IoError::system("find", directory.path()))?;
        let mut leader = Leader::new(
            (self.wire.clone(), own, self.hosts.clone(), run.cancel),
            terms.clone(),
            directory,
        );
        leader.begin(&path)?;
        (leader.pace.ends_ns, leader.pace.most_rounds) = (sampler.plan.ends_ns, *most_rounds);
        let rows = leader.rows().into_iter();
        let leader = std::cell::RefCell::new(leader);
        let cases = rows.map(|row| leader::case(row, &leader)).collect();
        let max_trials = sampler.plan.max_trials.min(u32::try_from(*rounds).unwrap_or(u32::MAX));
        let mut rows = of_the_job(sampler, max_trials, |sampler| sampler.sequence(cases));
        row::name_stragglers(&mut rows, &self.hosts);
        row::warn_of_slow_creates(&mut rows);
        Ok(Found { outcomes: record_counted(rows, &[fact::OPERATIONS]), ..Found::default() })
    }
}

#[cfg(test)]
mod tests;
