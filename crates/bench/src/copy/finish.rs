//! What is known of rows besides their time, what they are held against, and what limits them.
//!
//! The limit is a model of what was measured in the same rounds: each file takes at least the
//! time in which this machine makes one, each byte that in which it writes one; cold bytes come
//! from the device, too. Attributes, the start of the program and reading what is cached are not
//! in it, so that no copy can be faster.

use flatout_measure::record::{Ceiling, Outcome, Provenance};
use flatout_measure::{ceiling, statistics};
use serde_json::{Value, json};

use super::State;
use super::bare::{CREATE, READ, WRITE};
use super::experiment::Experiment;
use super::site::Site;
use super::trial::{Row, Run};
use crate::corpus::{Corpus, Shape};

/// From this share of its time on, the start of the program limits a copy.
const START_SHARE: f64 = 0.5;
const GIB: f64 = (1_u64 << 30) as f64;
/// Below so many bytes CPU time for each of them says nothing.
const CPU_LEAST_BYTES: u64 = 16 << 20;

/// Adds the facts, the ceilings and the limiters.
pub(super) fn finish(outcomes: &mut [Outcome], rows: &[Row], site: &Site) {
    let models = ["cache", "durable"].map(|until| Model::of(outcomes, until));
    for outcome in outcomes {
        let Some(row) = rows.iter().find(|row| row.is_of(outcome)) else {
            let (name, limiter) = match outcome.id.as_str() {
                CREATE => ("the making of names", "making files"),
                WRITE => ("memory bandwidth", "copying into the page cache"),
                _ => ("the device", "the device, or what lies before it"),
            };
            ceiling::apply(outcome, unknown(name, limiter));
            continue;
        };
        describe(outcome, row, site);
        let is_durable = outcome.parameters.get("until") == Some(&json!("durable"));
        let limit = if site.shares_extents {
            unknown("no bytes move: extents are shared", "the metadata of the filesystem")
        } else if row.wanted.experiment == Experiment::Empty {
            unknown("the start of a program", "starting the program")
        } else {
            models[usize::from(is_durable)].limit(outcome.median, &row.wanted.corpus, site)
        };
        ceiling::apply(outcome, limit);
    }
}

/// What was seen of the runs.
fn describe(outcome: &mut Outcome, row: &Row, site: &Site) {
    let Corpus { bytes, files, .. } = *row.wanted.corpus;
    let runs = row.runs.borrow();
    let audit = &mut outcome.audit;
    let mut set = |key: &str, value: Value| audit.insert(key.to_owned(), value);
    if files > 0 {
        set("source_files", json!(files));
        set("source_bytes", json!(bytes));
    }
    if let Some(seconds) = outcome.median.map(|ns| ns / 1e9).filter(|_| files > 0) {
        if bytes > 0 {
            set("rate_bytes_per_s", json!(bytes as f64 / seconds));
        }
        set("files_per_s", json!(files as f64 / seconds));
    }
    if let Some(deviation) = standard_deviation(&outcome.samples) {
        set("standard_deviation_ns", json!(deviation));
    }
    let Some(last) = runs.last() else { return };
    set("command", last.command.clone().into());
    set("compared_entries", last.compared_entries.into());
    set("targets", "fresh; emptied when compared, removed at the end".into());
    if site.shares_extents {
        set("extents", "shared".into());
    }
    // That of the run that needed most.
    let most = runs.iter().max_by_key(|run| run.spent.peak_memory_bytes);
    if let Some(most) = most {
        set("peak_memory_bytes", json!(most.spent.peak_memory_bytes));
        set("peak_memory_of", most.spent.peak_memory_of.into());
    }
    let median = |of: fn(&Run) -> u64| {
        statistics::median(&runs.iter().map(|run| of(run) as f64).collect::<Vec<_>>())
    };
    let (user_ns, system_ns) = (median(|run| run.spent.user_ns), median(|run| run.spent.system_ns));
    set("user_ns", json!(user_ns));
    set("system_ns", json!(system_ns));
    if let (Some(user_ns), Some(system_ns)) = (user_ns, system_ns)
        && bytes >= CPU_LEAST_BYTES
    {
        set("cpu_s_per_gib", json!((user_ns + system_ns) / 1e9 / (bytes as f64 / GIB)));
    }
    // The state of the run that began worst.
    let cached = |run: &&Run| run.facts.get("source_cached_bytes").and_then(Value::as_u64);
    let worst = match site.options.state {
        State::Hot => runs.iter().min_by_key(cached),
        State::Cold => runs.iter().max_by_key(cached),
    };
    for (key, value) in worst.into_iter().flat_map(|run| &run.facts) {
        set(key, value.clone());
    }
}

/// That of the samples around their mean; `None` below two.
fn standard_deviation(samples: &[f64]) -> Option<f64> {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (samples.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}

fn unknown(name: &str, limiter: &str) -> Ceiling {
    Ceiling { name: name.to_owned(), limiter: limiter.to_owned(), ..Ceiling::default() }
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
    fn of(outcomes: &[Outcome], until: &str) -> Self {
        let figure = |id: &str| {
            let own = |row: &&Outcome| {
                row.id == id && row.parameters.get("until").is_none_or(|word| word == until)
            };
            outcomes.iter().find(own).and_then(|row| row.median)
        };
        Self {
            file_ns: figure(CREATE),
            byte_ns: figure(WRITE).map(|rate| 1e9 / rate),
            read_byte_ns: figure(READ).map(|rate| 1e9 / rate),
            start_ns: figure(Experiment::Empty.id()),
            is_durable: until == "durable",
        }
    }

    fn limit(&self, median: Option<f64>, corpus: &Corpus, site: &Site) -> Ceiling {
        let is_cold = site.options.state == State::Cold;
        let name = match is_cold {
            true => format!("files made and bytes written by {} threads, or read", site.cpus),
            false => format!("files made and bytes written by {} threads", site.cpus),
        };
        let bare = self.bare_ns(corpus, is_cold);
        let Some((value, limiter)) = bare else {
            return unknown(&name, "files, links and attributes");
        };
        let starts =
            self.start_ns.zip(median).is_some_and(|(start, all)| start > all * START_SHARE);
        let limiter = if starts { "starting the program" } else { limiter };
        Ceiling {
            name,
            value: Some(value),
            provenance: Provenance::Measured,
            limiter: limiter.to_owned(),
            ..Ceiling::default()
        }
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

    fn row(id: &str, until: &str, median: f64) -> Outcome {
        let mut row = Outcome { id: id.to_owned(), median: Some(median), ..Outcome::default() };
        row.parameters.insert("until".to_owned(), json!(until));
        row
    }

    fn model() -> Model {
        let mut read = row(READ, "", 1e9);
        read.parameters.clear();
        let rows = [
            row(CREATE, "cache", 5000.0),
            row(WRITE, "cache", 4e9),
            row(CREATE, "durable", 9000.0),
            row(WRITE, "durable", 5e8),
            read,
            row("copy/empty", "cache", 2e6),
        ];
        assert_eq!(Model::of(&rows, "durable").byte_ns, Some(2.0));
        Model::of(&rows, "cache")
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
    fn nothing_is_made_up_where_something_was_not_measured() {
        let corpus = name::uniform(10, 10, 0).unwrap();
        assert_eq!(Model { file_ns: None, ..model() }.bare_ns(&corpus, false), None);
        assert_eq!(Model { read_byte_ns: None, ..model() }.bare_ns(&corpus, true), None);
        let links = name::parse(&["source-tree".to_owned()]).unwrap().remove(0);
        assert_eq!(model().bare_ns(&links, false), None);
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(
            standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
                .map(|d| (d * 1e4).round()),
            Some(21381.0)
        );
        assert_eq!(standard_deviation(&[1.0]), None);
    }
}
