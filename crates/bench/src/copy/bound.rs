//! What is known of rows besides their time, what they are held against, and what limits them.
//!
//! The limit is a model of what was measured in the same rounds: each file takes at least the
//! time in which this machine makes one, each byte that in which it writes one; cold bytes come
//! from the device, too. Attributes, the start of the program and reading what is cached are not
//! in it, so that no copy can be faster.

use flatout_measure::statistics::standard_deviation;
use flatout_measure::{Ceiling, Facts, Measured, Outcome, ceiling};

use super::State;
use super::choose::Wanted;
use super::experiment::Experiment;
use super::row::{Row, Work};
use super::site::Site;
use crate::corpus::{Corpus, Shape};
use crate::counted;
use crate::versus::fact;

/// From this share of its time on, the start of the program limits a copy.
const START_SHARE: f64 = 0.5;
const STARTING: &str = "starting the program";
const GIB: f64 = (1_u64 << 30) as f64;
/// Below so many bytes CPU time for each of them says nothing.
const CPU_LEAST_BYTES: u64 = 16 << 20;

/// Adds what follows from the figures, the bounds and the limiters.
pub(super) fn apply(rows: &mut [Measured<Row>], site: &Site) {
    let models = [Model::of(rows, false), Model::of(rows, true)];
    let is_cold = site.options.state == State::Cold;
    let terms = Terms { shared_from_bytes: site.shared_from_bytes, is_cold, cpus: site.cpus };
    for Measured { row, outcome, facts, further } in rows {
        let own = [(outcome, facts)].into_iter();
        let all = own.chain(further.iter_mut().map(|more| (&mut more.outcome, &mut more.facts)));
        for (model, (outcome, facts)) in models.iter().zip(all) {
            let bound =
                match &row.work {
                    Work::BareCreate { .. } => {
                        Ceiling::unknown("the making of names").limited_by("making files")
                    }
                    Work::BareWrite { .. } if model.is_durable => {
                        Ceiling::unknown("the device").limited_by("writing to the device")
                    }
                    Work::BareWrite { .. } => Ceiling::unknown("memory bandwidth")
                        .limited_by("copying into the page cache"),
                    Work::BareRead { .. } => Ceiling::unknown("the device")
                        .limited_by("the device, or what lies before it"),
                    Work::Tree(wanted) => {
                        describe(outcome, facts, wanted);
                        bound(outcome.median, wanted, model, terms)
                    }
                };
            ceiling::apply(outcome, bound);
        }
    }
}

/// What of a site decides what its copies are held against.
#[derive(Debug, Clone, Copy)]
struct Terms {
    shared_from_bytes: Option<u64>,
    is_cold: bool,
    cpus: u32,
}

fn bound(median: Option<f64>, wanted: &Wanted, model: &Model, terms: Terms) -> Ceiling {
    if wanted.experiment == Experiment::Empty {
        return Ceiling::unknown("the start of a program").limited_by(STARTING);
    }
    let limited = match wanted.corpus.is_shared(terms.shared_from_bytes) {
        true => Ceiling::unknown("no bytes move: extents are shared")
            .limited_by("the metadata of the filesystem"),
        false => model.limit(&wanted.corpus, terms),
    };
    let times = model.start_ns.zip(median);
    let is_starting = times.is_some_and(|(start, all)| start > all * START_SHARE);
    if is_starting { limited.limited_by(STARTING) } else { limited }
}

/// What follows from the times of a tree.
fn describe(outcome: &Outcome, facts: &mut Facts, wanted: &Wanted) {
    let Corpus { bytes, files, .. } = *wanted.corpus;
    if files > 0 {
        // Files of the tree.
        facts.set("source_files", files);
        // Their bytes.
        facts.set("source_bytes", bytes);
    }
    if let Some(seconds) = outcome.median.map(|ns| ns / 1e9).filter(|_| files > 0) {
        let rate = (bytes > 0).then(|| bytes as f64 / seconds);
        // These bytes by the time.
        facts.set_known("rate_bytes_per_s", rate);
        // Files by the time.
        facts.set("files_per_s", files as f64 / seconds);
    }
    // That of the samples around their mean.
    facts.set_known("standard_deviation_ns", standard_deviation(&outcome.samples));
    let cpu_ns = facts.number(fact::USER_NS).zip(facts.number(fact::SYSTEM_NS));
    let cpu_ns = cpu_ns.filter(|_| bytes >= CPU_LEAST_BYTES);
    let each = cpu_ns.map(|(user, system)| (user + system) / 1e9 / (bytes as f64 / GIB));
    // CPU time by the bytes that were copied.
    facts.set_known("cpu_s_per_gib", each);
}

/// What a file and a byte take at least.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    file_ns: Option<f64>,
    byte_ns: Option<f64>,
    /// Of a byte that the device reads.
    read_byte_ns: Option<f64>,
    /// Of the program alone.
    start_ns: Option<f64>,
    is_durable: bool,
}

impl Model {
    /// Of the times until the page cache has the bytes, or until they are durable.
    fn of(rows: &[Measured<Row>], is_durable: bool) -> Self {
        let figure = |is_it: fn(&Work) -> bool| {
            let measured = rows.iter().find(|measured| is_it(&measured.row.work))?;
            let durable = measured.further.first().map(|further| &further.outcome);
            let outcome = durable.filter(|_| is_durable).unwrap_or(&measured.outcome);
            outcome.median
        };
        let is_empty = |work: &Work| matches!(work, Work::Tree(wanted) if wanted.experiment == Experiment::Empty);
        let rate = |is_it| figure(is_it).map(|rate| 1e9 / rate);
        Self {
            file_ns: figure(|work| matches!(work, Work::BareCreate { .. })),
            byte_ns: rate(|work| matches!(work, Work::BareWrite { .. })),
            read_byte_ns: rate(|work| matches!(work, Work::BareRead { .. })),
            start_ns: figure(is_empty),
            is_durable,
        }
    }

    fn limit(&self, corpus: &Corpus, Terms { is_cold, cpus, .. }: Terms) -> Ceiling {
        let threads = counted(cpus, "thread");
        let name = match is_cold {
            true => format!("files made and bytes written by {threads}, or read"),
            false => format!("files made and bytes written by {threads}"),
        };
        let bare = self.bare_ns(corpus, is_cold);
        let Some((value, limiter)) = bare else {
            return Ceiling::unknown(name).limited_by("files, links and attributes");
        };
        Ceiling::measured(name, Some(value)).limited_by(limiter)
    }

    /// Least time of a tree of plain files, and what most of it is for; `None` for others, and
    /// where something was not measured.
    fn bare_ns(&self, corpus: &Corpus, is_cold: bool) -> Option<(f64, &'static str)> {
        if !matches!(corpus.shape, Shape::Files { .. }) {
            return None;
        }
        let bytes = corpus.bytes as f64;
        // A directory takes no less than an empty file.
        let files_ns = corpus.entries as f64 * self.file_ns?;
        let bytes_ns = bytes * self.byte_ns?;
        let limiter = match files_ns > bytes_ns {
            true => "making files",
            false if self.is_durable => "writing to the device",
            false => "moving bytes",
        };
        let made = (files_ns + bytes_ns, limiter);
        if !is_cold {
            return Some(made);
        }
        let read_ns = bytes * self.read_byte_ns?;
        Some(if read_ns > made.0 { (read_ns, "reading from the device") } else { made })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::name;
    use flatout_measure::case::{MeasuredFurther, blank};

    fn row(work: Work, median: f64, durable: Option<f64>) -> Measured<Row> {
        let row = Row { work, state: State::Hot, phase: None };
        let with = |median| Outcome { median: Some(median), ..blank(&row) };
        let further = |median| MeasuredFurther {
            parameters: Default::default(),
            outcome: with(median),
            facts: Facts::default(),
        };
        let (outcome, facts) = (with(median), Facts::default());
        let further = durable.map(further).into_iter().collect();
        Measured { row, outcome, facts, further }
    }

    fn model() -> Model {
        let rows = [
            row(Work::BareCreate { files: 1, threads: 1 }, 5000.0, Some(9000.0)),
            row(Work::BareWrite { bytes: 1, threads: 1 }, 4e9, Some(5e8)),
            row(Work::BareRead { bytes: 1 }, 1e9, None),
            row(Work::Tree(Wanted::empty()), 2e6, None),
        ];
        let durable = Model::of(&rows, true);
        assert_eq!((durable.byte_ns, durable.read_byte_ns), (Some(2.0), Some(1.0)));
        Model::of(&rows, false)
    }

    #[test]
    fn the_limit_is_the_time_of_files_and_bytes_or_of_reading() {
        let bare = |files, file_bytes, is_cold| {
            let corpus = name::uniform(files, file_bytes, 0).unwrap();
            model().bare_ns(&corpus, is_cold).unwrap()
        };
        assert_eq!(bare(1000, 4, false), (5_001_000.0, "making files"));
        assert_eq!(bare(1, 4_000_000, false), (1_005_000.0, "moving bytes"));
        assert_eq!(bare(1, 4_000_000, true), (4_000_000.0, "reading from the device"));
        assert_eq!(bare(1000, 4, true).1, "making files");
    }

    #[test]
    fn shared_extents_are_not_what_takes_the_time_of_a_program_that_only_starts() {
        let tree = Wanted::new(Experiment::ByCount, name::uniform(10, 1 << 20, 0).unwrap());
        let terms = Terms { shared_from_bytes: Some(0), is_cold: false, cpus: 2 };
        let limiter = |wanted: &Wanted, ns| bound(Some(ns), wanted, &model(), terms).limiter;
        assert_eq!(limiter(&Wanted::empty(), 2e6), STARTING);
        assert_eq!(limiter(&tree, 3e6), STARTING);
        assert_eq!(limiter(&tree, 30e6), "the metadata of the filesystem");
    }

    #[test]
    fn nothing_is_made_up_where_something_was_not_measured() {
        let corpus = name::uniform(10, 10, 0).unwrap();
        assert_eq!(Model { file_ns: None, ..model() }.bare_ns(&corpus, false), None);
        assert_eq!(Model { read_byte_ns: None, ..model() }.bare_ns(&corpus, true), None);
        let links = name::parse(&["source-tree".to_owned()]).unwrap().remove(0);
        assert_eq!(model().bare_ns(&links, false), None);
    }
}
