//! Measuring a disk, raced against those who do so for a living: fio and IOzone.
//!
//! Each run is one trial of the same length over the same file, and its figure is the rate that
//! the program prints. What is raced stands in `disk/fio.rs` and `disk/iozone.rs`, and so does
//! what cannot be; what must be true of a trial in `disk/seen.rs`.

mod fio;
mod flatout;
mod iozone;
mod seen;
mod work;

use std::fs;
use std::path::PathBuf;

use flatout_measure::{Facts, Outcome, Parameters, Row as _, Status, Warning, size_text, warning};
use flatout_sys::process::Account;

use crate::disk::duel::{Duel, Extents};
use crate::versus::race::{Argv, Checked, Made, Race, Run, Workload};
use crate::versus::rival::{Discipline, Found};
use crate::versus::source::Source;
use crate::versus::{Extent, Ground, State, state};
use crate::{Error, MIB};
use work::{Trial, Work};

/// Below this a disk's own cache answers.
const LEAST_BYTES: u64 = 64 * MIB;
/// What a run takes beside its trial: a process that starts, looks at the place and reports. fio takes 0.29 s,
/// flatout 0.13 s, and now and then a disturbed trial once more (AMD EPYC, family 25, model 17, 2 CPUs, 2026-11-30).
const AROUND_S: f64 = 0.3;
/// Bytes a second of a disk that nobody knows yet, for the plan of the time.
const GUESSED_BYTES_PER_S: f64 = 500e6;
/// The file that all races share, among the corpora.
const FILE_NAME: &str = "disk";
/// The id of rows that cannot be raced.
const INCOMPARABLE: &str = "versus/incomparable";

/// Lengths and times of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    /// Length of the shared file.
    file_bytes: u64,
    /// What is written at once where a trial goes over the file once: IOzone, fresh files.
    once_bytes: u64,
    runtime_ns: u64,
}

impl Size {
    /// Errors: no room for a file that says something.
    fn of(ground: &Ground) -> Result<Self, Error> {
        let (file_bytes, once_bytes, runtime_ns) = match ground.extent {
            Extent::Full => (1024 * MIB, 256 * MIB, 2_000_000_000),
            _ => (128 * MIB, LEAST_BYTES, 500_000_000),
        };
        // `bench disk` has a test file and a fresh one in a directory: two beside the shared one.
        let file_bytes = file_bytes.min(ground.room_bytes / 2) / MIB * MIB;
        let once_bytes = once_bytes.min(ground.room_bytes / 4) / MIB * MIB;
        if once_bytes < LEAST_BYTES {
            return Err(Error::NoRoom(format!(
                "cannot race at measuring the disk: it takes {} of room, and {} may be taken",
                size_text(4 * LEAST_BYTES),
                size_text(ground.room_bytes)
            )));
        }
        Ok(Self { file_bytes, once_bytes, runtime_ns })
    }
}

/// Bytes that the races need at once below the directory; 0 where nobody races.
///
/// Errors: there is no room.
pub fn room_bytes(ground: &Ground) -> Result<u64, Error> {
    if ground.of(Discipline::Disk).next().is_none() {
        return Ok(0);
    }
    let size = Size::of(ground)?;
    Ok(size.file_bytes + 2 * size.once_bytes)
}

/// The races against each rival that is there.
///
/// Errors: there is no room for the files.
pub fn races(ground: &Ground) -> Result<Vec<Race<'static>>, Error> {
    let mut races = Vec::new();
    for found in ground.of(Discipline::Disk) {
        let size = Size::of(ground)?;
        let Ok(rival) = found.rival.name.parse::<Rival>() else { continue };
        let works = rival.known().0.iter();
        races.extend(works.filter_map(|&work| race(ground, found, rival, work, size)));
    }
    Ok(races)
}

/// A row for each thing that `bench disk` measures and that cannot be raced.
pub fn incomparable(ground: &Ground) -> Vec<Outcome> {
    let mut rows = Vec::new();
    for found in ground.of(Discipline::Disk) {
        let Ok(rival) = found.rival.name.parse::<Rival>() else { continue };
        let (works, reasons) = rival.known();
        rows.extend(reasons.iter().map(|(row, reason)| lacking(found, row, reason)));
        // Only the name of the file can be in the way of one that is raced elsewhere.
        let is_named = Size::of(ground).is_ok_and(|size| {
            works.iter().all(|&work| race(ground, found, rival, work, size).is_some())
        });
        if !is_named {
            let reason = "it would read the name of this directory wrongly";
            rows.push(lacking(found, "all others", reason));
        }
    }
    rows
}

flatout_sys::words! {
    /// Those who measure disks.
    enum Rival: name, ALL, text {
        Fio = "fio",
        Iozone = "iozone",
    }
}

impl Rival {
    /// What it does alike, and for which rows it has nothing that is.
    fn known(self) -> (&'static [Work], &'static [(&'static str, &'static str)]) {
        match self {
            Self::Fio => (&fio::WORKS, &fio::INCOMPARABLE),
            Self::Iozone => (&iozone::WORKS, &iozone::INCOMPARABLE),
        }
    }
}

fn lacking(found: &Found, row: &str, reason: &str) -> Outcome {
    let parameters =
        Parameters::default().with("against", found.rival.name).with("row", row.to_owned());
    let why = Warning::new(warning::CANNOT_COMPARE, reason);
    let row = Outcome::without_figure(INCOMPARABLE, Status::Unsupported, why);
    Outcome { parameters: parameters.to_json(), ..row }
}

fn race(
    ground: &Ground,
    found: &Found,
    rival: Rival,
    work: Work,
    size: Size,
) -> Option<Race<'static>> {
    let is_once = work.extents == Extents::Fresh || rival == Rival::Iozone;
    let length_bytes = if is_once { size.once_bytes } else { size.file_bytes };
    let trial = Trial { length_bytes, runtime_ns: size.runtime_ns };
    let file = Source::new(ground, 1, size.file_bytes).named(FILE_NAME);
    let path = match work.extents {
        Extents::Written => file.path(),
        Extents::Fresh => ground.targets(),
    };
    let duel = work.duel(&path)?;
    let targets = ground.targets();
    let flatout = work.flatout(&ground.flatout, &path, trial);
    let (theirs, note) = match rival {
        Rival::Fio => fio::invocation(&found.path, &duel, trial)?,
        Rival::Iozone => {
            let file = targets.join(iozone::FILE_NAME);
            (iozone::invocation(&found.path, &work, &file, trial)?, iozone::NOTE.to_owned())
        }
    };
    let unit = duel.row.unit();
    let written_bytes = match rival {
        Rival::Fio => duel.likely_write_bytes(length_bytes, size.runtime_ns),
        // It makes its file, whatever it measures.
        Rival::Iozone => length_bytes,
    };
    let mut parameters = duel.row.parameters().with("file_bytes", length_bytes);
    parameters.set_known("cache_state", (work == fio::COLD).then_some("cold"));
    let trial_s = trial.runtime_ns as f64 / 1e9;
    let turns = if rival == Rival::Iozone { 3.0 } else { 1.0 };
    let once_s = turns * length_bytes as f64 / GUESSED_BYTES_PER_S;
    let made = Some(Made::of(&file.corpus, ground));
    let invocations = [flatout, theirs];
    let workload = DiskWorkload { rival, work, trial, duel, file, targets, invocations, note };
    let expected_s = AROUND_S + if is_once { once_s.max(trial_s) } else { trial_s };
    let race =
        Race::against(ground, found, (work.pattern.name(), parameters), expected_s, workload);
    Some(Race { printed: Some(unit), made, written_bytes, ..race })
}

/// One row of `bench disk`, and its like.
struct DiskWorkload {
    rival: Rival,
    work: Work,
    trial: Trial,
    duel: Duel,
    file: Source,
    targets: PathBuf,
    /// Flatout's, then the other's.
    invocations: [Argv; 2],
    /// What the other does otherwise.
    note: String,
}

impl Workload for DiskWorkload {
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error> {
        let targets = &self.targets;
        fs::create_dir_all(targets).map_err(flatout_io::Error::system("create", targets))?;
        if self.work == fio::COLD {
            return self.file.prepare(State::Cold, run.ends_ns);
        }
        // Around the page cache, or warmed by each program itself.
        self.file.make(run.ends_ns)?;
        // What the last run wrote would be written back while this one is timed.
        state::settle(&self.targets)?;
        Ok(Facts::default())
    }

    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        Ok(self.invocations[run.index].clone())
    }

    fn check(&mut self, run: &Run<'_>, account: &Account) -> Result<Checked, Error> {
        let (row, unit) = (&self.duel.row, self.duel.row.unit());
        let mut checked = match (run.index, self.rival) {
            (0, _) => {
                let parameters = row.parameters().to_json();
                return flatout::check(account, &row.id(), &parameters, unit);
            }
            (_, Rival::Fio) => fio::check(account, self.work.block_bytes, unit)?,
            (_, Rival::Iozone) => iozone::check(account, &self.work, self.trial, unit)?,
        };
        if !self.note.is_empty() {
            checked.warnings.push(Warning::new(warning::DONE_OTHERWISE, &self.note));
        }
        Ok(checked)
    }
}

#[cfg(test)]
mod tests;
