//! Which trees there is room, memory and time for: pure functions over what is known beforehand.

use std::collections::BTreeSet;
use std::rc::Rc;

use flatout_measure::{Outcome, Status, Warning, blank, warning};

use super::State;
use super::experiment::{Experiment, SPLIT_BYTES};
use super::pace::Pace;
use super::row::{Row, Work};
use super::site::READ_BYTES;
use crate::corpus::Corpus;

/// What comes on top for bytes that come from the device, or have to reach it.
const DEVICE_BYTE_S: f64 = 1.2e-9;
/// Part of the time for which trees are chosen; the rest is for what takes longer than expected.
const TIME_PART: f64 = 0.75;
/// The same, of which the rounds may take what making the trees leaves.
const ROUNDS_PART: f64 = 0.95;
/// Part of time and bytes that the split of a large total may take.
const SPLIT_PART: f64 = 0.4;

/// Most bytes and files that are made per trial to see what the machine can do; see `bare.rs`.
pub(super) const BARE_BYTES: u64 = 64 << 20;
pub(super) const BARE_FILES: u64 = 500;

/// A tree that shall be copied.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) experiment: Experiment,
    pub(super) corpus: Rc<Corpus>,
    /// It belongs to a grid that is cut to what fits; nobody asked for it by name.
    pub(super) is_optional: bool,
}

impl Wanted {
    pub(super) fn new(experiment: Experiment, corpus: Corpus) -> Self {
        Self { experiment, corpus: Rc::new(corpus), is_optional: false }
    }
}

flatout_sys::words! {
    /// Why a tree is not copied.
    #[derive(PartialOrd, Ord)]
    pub(super) enum Why: text {
        Room = "no room (one tenth of the free space, or --max-write)",
        Writes = "its copies would write more than --max-write",
        Memory = "it does not stay in memory (a third of what is available)",
        Inodes = "not enough free inodes",
        Time = "no time (--max-time allows more)",
    }
}

/// A tree that is not copied.
#[derive(Debug, Clone)]
pub struct LeftOut {
    pub(super) wanted: Wanted,
    pub(super) why: Why,
}

impl LeftOut {
    /// The reason, in one line.
    pub(super) fn reason(&self) -> String {
        format!("{} is left out: {}", self.wanted.corpus.name, self.why.text())
    }
}

/// The row of a tree that is not copied, which says why.
pub(super) fn left_out_row(left: &LeftOut, state: State) -> Outcome {
    let row = Row { work: Work::Tree(left.wanted.clone()), state, phase: None };
    let is_short = left.why == Why::Time;
    let code = if is_short { warning::TIME_SHORT } else { warning::UNSUPPORTED };
    Outcome {
        status: Status::Unsupported,
        warnings: vec![Warning::new(code, left.reason())],
        ..blank(&row)
    }
}

/// What is left out, a line per reason.
pub(super) fn notices(left_out: &[LeftOut]) -> Vec<String> {
    let reasons: BTreeSet<Why> = left_out.iter().map(|left| left.why).collect();
    let line = |why: Why| {
        let own = left_out.iter().filter(|left| left.why == why);
        let names: Vec<&str> = own.map(|left| left.wanted.corpus.name.as_str()).collect();
        format!("copies of {} are left out: {}", names.join(", "), why.text())
    };
    reasons.into_iter().map(line).collect()
}

/// What there is.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// Bytes that may lie there at once.
    pub(super) room_bytes: u64,
    /// Bytes that may be written altogether.
    pub(super) write_bytes: u64,
    /// From which length on copies share the extents of their sources, and write no bytes.
    pub(super) shared_from_bytes: Option<u64>,
    /// Entries that may be made.
    pub(super) inodes: u64,
    /// Bytes that a source may have.
    pub(super) source_bytes: u64,
    /// Time for everything; those asked for by name are copied whatever it takes.
    pub(super) time_s: f64,
    /// Copies of each tree at least.
    pub(super) rounds: u32,
    pub(super) is_cold: bool,
    pub(super) is_durable: bool,
    /// What the work takes here.
    pub(super) pace: Pace,
}

/// What is copied, and what is not.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Trees that lie there at the same time, phase by phase.
    pub(super) phases: Vec<Vec<Wanted>>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Takes what was asked for as far as it fits, and of a grid the cheapest trees: so every
/// experiment keeps those that say most for their time.
pub(super) fn choose(wanted: Vec<Wanted>, limits: &Limits) -> Choice {
    let wanted = with_one_split(wanted, limits);
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| {
        let rank = |at: usize| (wanted[at].is_optional, limits.trial_s(&wanted[at].corpus));
        let ((first, first_s), (second, second_s)) = (rank(one), rank(other));
        first.cmp(&second).then(first_s.total_cmp(&second_s))
    });
    let mut taken: Vec<Wanted> = Vec::new();
    let mut verdicts: Vec<Option<Why>> = vec![None; wanted.len()];
    for at in order {
        taken.push(wanted[at].clone());
        verdicts[at] = limits.obstacle(&taken, &wanted[at]);
        if verdicts[at].is_some() {
            taken.pop();
        }
    }
    let mut choice = Choice::default();
    for (wanted, verdict) in wanted.into_iter().zip(verdicts) {
        match verdict {
            None => limits.pack(wanted, &mut choice.phases),
            Some(why) => choice.left_out.push(LeftOut { wanted, why }),
        }
    }
    choice
}

/// Of the splits of several large totals in a grid, keeps the largest whose pieces all fit.
fn with_one_split(mut wanted: Vec<Wanted>, limits: &Limits) -> Vec<Wanted> {
    let is_of = |one: &Wanted, total: u64| {
        one.is_optional && one.experiment == Experiment::ByPieces && one.corpus.bytes == total
    };
    let fits = |total: &u64| {
        let own: Vec<Wanted> = wanted.iter().filter(|one| is_of(one, *total)).cloned().collect();
        let room = |one: &Wanted| limits.room_bytes(std::slice::from_ref(one));
        own.iter().all(|one| room(one) <= limits.room_bytes)
            && limits.time_s(&own, limits.rounds) <= limits.time_s * SPLIT_PART
            && limits.written_bytes(&own, limits.rounds) as f64
                <= limits.write_bytes as f64 * SPLIT_PART
    };
    let least = SPLIT_BYTES[SPLIT_BYTES.len() - 1];
    let kept = SPLIT_BYTES.into_iter().find(fits).unwrap_or(least);
    wanted.retain(|one| {
        one.corpus.bytes == kept || SPLIT_BYTES.iter().all(|total| !is_of(one, *total))
    });
    wanted
}

/// Each tree once, though several experiments may copy it.
fn sources(rows: &[Wanted]) -> impl Iterator<Item = &Corpus> {
    let mut seen = BTreeSet::new();
    rows.iter().map(|row| &*row.corpus).filter(move |corpus| seen.insert(corpus.name.as_str()))
}

/// Bytes that are written per trial to see what the machine can do: no more than are copied.
pub(super) fn bare_bytes(rows: &[Wanted]) -> u64 {
    let largest = rows.iter().map(|row| row.corpus.bytes).max().unwrap_or_default();
    largest.clamp(1 << 20, BARE_BYTES)
}

/// The time that making a tree is expected to take.
pub(super) fn making_s(corpus: &Corpus, pace: &Pace) -> f64 {
    corpus.bytes as f64 * pace.make_byte_s + corpus.entries as f64 * pace.make_entry_s
}

/// The time that removing the trees, and the emptied copies of so many rounds, is expected to take.
pub(super) fn removing_s(rows: &[Wanted], rounds: u32, pace: &Pace) -> f64 {
    let files: u64 = sources(rows).map(|corpus| corpus.files).sum();
    let entries: u64 = rows.iter().map(|row| row.corpus.entries).sum();
    let copies_s = (entries + BARE_FILES) as f64 * f64::from(rounds) * pace.remove_entry_s;
    files as f64 * pace.remove_file_s + copies_s
}

impl Limits {
    /// Puts a tree into the last phase where there is room for it, else begins another: trees of
    /// one experiment stay together.
    fn pack(&self, wanted: Wanted, phases: &mut Vec<Vec<Wanted>>) {
        let has_room = |last: &&mut Vec<Wanted>| {
            self.room_bytes(&[last, &[wanted.clone()][..]].concat()) <= self.room_bytes
        };
        match phases.last_mut().filter(has_room) {
            Some(last) => last.push(wanted),
            None => phases.push(vec![wanted]),
        }
    }

    /// Bytes that lie there at once: every source, and one copy of the largest, since copies are
    /// emptied at once.
    fn room_bytes(&self, rows: &[Wanted]) -> u64 {
        let sources: u64 = sources(rows).map(Corpus::make_bytes).sum();
        let largest = rows.iter().map(|row| row.corpus.copy_bytes()).max().unwrap_or_default();
        let beside = bare_bytes(rows).max(largest) + self.read_bytes();
        sources.saturating_add(beside)
    }

    /// Bytes of the file that tells how fast the device is read.
    fn read_bytes(&self) -> u64 {
        if self.is_cold { READ_BYTES } else { 0 }
    }

    /// Why the last of these cannot be taken beside the others.
    fn obstacle(&self, rows: &[Wanted], last: &Wanted) -> Option<Why> {
        let entries: u64 = rows.iter().map(|row| row.corpus.entries + 1).sum();
        let inodes = (entries + BARE_FILES).saturating_mul(u64::from(self.rounds) + 1);
        let obstacles = [
            (Why::Memory, last.corpus.bytes > self.source_bytes),
            (Why::Room, self.room_bytes(std::slice::from_ref(last)) > self.room_bytes),
            (Why::Writes, self.written_bytes(rows, self.rounds) > self.write_bytes),
            (Why::Inodes, inodes > self.inodes),
            (
                Why::Time,
                last.is_optional && self.time_s(rows, self.rounds) > self.time_s * TIME_PART,
            ),
        ];
        obstacles.into_iter().find(|(_, is_so)| *is_so).map(|(why, _)| why)
    }

    /// Bytes that are written for so many rounds.
    pub(super) fn written_bytes(&self, rows: &[Wanted], rounds: u32) -> u64 {
        if rows.is_empty() {
            return 0;
        }
        let made: u64 = sources(rows).map(Corpus::make_bytes).sum();
        let copied: u64 =
            rows.iter().map(|row| row.corpus.written_bytes(self.shared_from_bytes)).sum();
        let round = copied.saturating_add(bare_bytes(rows));
        let made = made.saturating_add(self.read_bytes());
        made.saturating_add(round.saturating_mul(u64::from(rounds)))
    }

    /// As [`Limits::written_bytes`], of all phases.
    pub(super) fn phases_bytes(&self, phases: &[Vec<Wanted>], rounds: u32) -> u64 {
        let each = phases.iter().map(|rows| self.written_bytes(rows, rounds));
        each.fold(0, u64::saturating_add)
    }

    /// The time of so many rounds of all phases.
    pub(super) fn phases_s(&self, phases: &[Vec<Wanted>], rounds: u32) -> f64 {
        phases.iter().map(|rows| self.time_s(rows, rounds)).sum()
    }

    /// The time of so many rounds.
    pub(super) fn time_s(&self, rows: &[Wanted], rounds: u32) -> f64 {
        let make_s: f64 = sources(rows).map(|corpus| making_s(corpus, &self.pace)).sum();
        let remove_s = removing_s(rows, rounds, &self.pace);
        make_s + remove_s + self.round_s(rows) * f64::from(rounds)
    }

    fn round_s(&self, rows: &[Wanted]) -> f64 {
        let round_s: f64 = rows.iter().map(|row| self.trial_s(&row.corpus)).sum();
        let byte_s = self.pace.tried.copying.byte_ns / 1e9;
        let bare_s = bare_bytes(rows) as f64 * byte_s + BARE_FILES as f64 * self.pace.make_entry_s;
        round_s + bare_s
    }

    /// Rounds for which there is time, of the `least` that all trees were chosen for to `most`.
    pub(super) fn rounds(&self, phases: &[Vec<Wanted>], least: u32, most: u32) -> u32 {
        let make_s = self.phases_s(phases, 0);
        let round_s = self.phases_s(phases, 1) - make_s;
        let rounds = (self.time_s * ROUNDS_PART - make_s) / round_s.max(1e-9);
        (rounds as u32).clamp(least, most.max(least))
    }

    /// Rounds that may be written.
    pub(super) fn written_rounds(&self, phases: &[Vec<Wanted>]) -> u32 {
        let made_bytes = self.phases_bytes(phases, 0);
        let round_bytes = self.phases_bytes(phases, 1) - made_bytes;
        let rounds = self.write_bytes.saturating_sub(made_bytes) / round_bytes.max(1);
        u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// One copy with all around it.
    fn trial_s(&self, corpus: &Corpus) -> f64 {
        let over_device = u32::from(self.is_cold) + u32::from(self.is_durable);
        self.pace.tried.copy_s(corpus, self.shared_from_bytes)
            + corpus.bytes as f64 * DEVICE_BYTE_S * f64::from(over_device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::Extent;
    use crate::copy::Selection;
    use crate::corpus::name;
    use crate::tried::{Copying, Tried};

    fn limits() -> Limits {
        Limits {
            room_bytes: 5 << 30,
            write_bytes: u64::MAX,
            shared_from_bytes: None,
            inodes: u64::MAX,
            source_bytes: 8 << 30,
            time_s: 240.0,
            rounds: 6,
            is_cold: false,
            is_durable: false,
            pace: Pace::USUAL,
        }
    }

    fn names(rows: &[Wanted]) -> Vec<&str> {
        rows.iter().map(|row| row.corpus.name.as_str()).collect()
    }

    fn asked(corpora: &[&str]) -> Vec<Wanted> {
        let corpora = corpora.iter().map(|&name| name.to_owned()).collect();
        Selection { corpora, ..Selection::default() }.wanted(Extent::Full).unwrap()
    }

    #[test]
    fn the_grid_is_cut_to_what_fits_and_says_what_is_gone() {
        let limits = limits();
        let wanted = Selection::default().wanted(Extent::Full).unwrap();
        let choice = choose(wanted, &limits);
        assert!(choice.phases.iter().all(|rows| limits.room_bytes(rows) <= limits.room_bytes));
        let times = choice.phases.iter().map(|rows| limits.time_s(rows, 6));
        assert!(times.sum::<f64>() <= limits.time_s);
        let chosen = choice.phases.concat();
        let rows = names(&chosen);
        for name in ["1000x128K", "1x128M", "deep-100", "10x32M", "50x4M", "4096x8K"] {
            assert!(rows.contains(&name), "{name} of {rows:?}");
        }
        let totals: BTreeSet<u64> = chosen
            .iter()
            .filter(|row| row.experiment == Experiment::ByPieces)
            .map(|row| row.corpus.bytes)
            .collect();
        assert!(totals.contains(&(1 << 30)), "{totals:?}");
        assert_eq!(totals.len(), 2, "32 MiB and one large total: {totals:?}");
        let lines = notices(&choice.left_out);
        assert!(lines.iter().any(|line| line.contains("1x16G")), "{lines:?}");
        assert!(lines.len() <= 5, "{lines:?}");
    }

    #[test]
    fn with_more_room_and_time_the_grid_is_whole() {
        let limits = Limits { room_bytes: 1 << 50, source_bytes: 1 << 50, time_s: 1e6, ..limits() };
        let choice = choose(Selection::default().wanted(Extent::Full).unwrap(), &limits);
        assert!(choice.left_out.is_empty(), "{:?}", notices(&choice.left_out));
        let chosen = choice.phases.concat();
        let rows = names(&chosen);
        assert!(rows.contains(&"2000x128M") && rows.contains(&"16384x64K"), "{rows:?}");
    }

    #[test]
    fn what_was_asked_for_takes_any_time_but_no_room_that_is_not_there() {
        let limits = Limits { time_s: 0.001, ..limits() };
        let choice = choose(asked(&["10x1M", "1x16G"]), &limits);
        assert_eq!(names(&choice.phases.concat()), ["10x1M"]);
        assert_eq!(choice.left_out[0].why, Why::Memory);
        let small = Limits { room_bytes: 15 << 20, ..limits };
        let left = choose(asked(&["10x1M"]), &small).left_out;
        assert_eq!(left[0].why, Why::Room);
        assert!(left[0].reason().contains("10x1M is left out: no room"));
    }

    #[test]
    fn copies_of_all_rounds_count_as_written() {
        let ten = asked(&["10x1M"]);
        let (copy, bare) = (ten[0].corpus.copy_bytes(), 10 << 20);
        assert_eq!(limits().written_bytes(&ten, 6), copy + 6 * (copy + bare));
        assert_eq!(limits().written_bytes(&[], 6), 0);
        let sharing = |from| Limits { shared_from_bytes: Some(from), ..limits() };
        let names_alone = copy + 6 * (bare + (1 << 20));
        assert!(sharing(0).written_bytes(&ten, 6) < names_alone);
        assert!(sharing(1 << 20).written_bytes(&ten, 6) < names_alone);
        assert_eq!(sharing((1 << 20) + 1).written_bytes(&ten, 6), copy + 6 * (copy + bare));
        let few = Limits { write_bytes: 60 << 20, ..limits() };
        assert_eq!(choose(ten, &few).left_out[0].why, Why::Writes);
    }

    #[test]
    fn a_slower_place_is_planned_fewer_rounds_and_removing_the_trees_counts() {
        let rows = vec![asked(&["100x1M"])];
        let rounds = |pace| Limits { time_s: 2.0, pace, ..limits() }.rounds(&rows, 1, 100);
        let usual = Pace::USUAL;
        let copying = |byte_ns| Copying { byte_ns, shared_byte_ns: 0.0, ..usual.tried.copying };
        let with =
            |byte_ns| Pace { tried: Tried { copying: copying(byte_ns), ..usual.tried }, ..usual };
        let slow = rounds(with(4.0 * usual.tried.copying.byte_ns));
        assert!((2..=rounds(usual) / 2).contains(&slow), "{slow} of {}", rounds(usual));
        // As on a filesystem that tells the device of all that is freed, and waits for it.
        let discarding = Pace { remove_file_s: 5e-3, ..usual };
        assert!(rounds(discarding) < rounds(usual));
        let removing = |pace| removing_s(&rows[0], 1, &pace);
        assert!((removing(discarding) - removing(usual) - 100.0 * 4.985e-3).abs() < 1e-9);
        let sharing = Limits { shared_from_bytes: Some(0), ..limits() };
        let sharing = Limits { pace: with(1.0), ..sharing };
        assert!(sharing.trial_s(&rows[0][0].corpus) < limits().trial_s(&rows[0][0].corpus) / 2.0);
    }

    #[test]
    fn no_more_rounds_are_planned_than_may_be_written() {
        let rows = vec![asked(&["100x1M"])];
        let ends = [0, 7].map(|rounds| limits().phases_bytes(&rows, rounds));
        let rounds = |write_bytes| Limits { write_bytes, ..limits() }.written_rounds(&rows);
        assert_eq!([ends[0], ends[1], ends[1] - 1].map(rounds), [0, 7, 6]);
    }

    #[test]
    fn inodes_are_counted_for_all_copies() {
        let few = Limits { inodes: 10_000, ..limits() };
        let corpus = name::uniform(2000, 10, 0).unwrap();
        let choice = choose(vec![Wanted::new(Experiment::Tree, corpus)], &few);
        assert_eq!(choice.left_out[0].why, Why::Inodes);
    }
}
