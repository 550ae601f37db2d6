//! The rows that fio does, too: how it is called, what it prints, what it cannot be held against.
//!
//! Tried with fio 3.33.

use std::path::Path;

use flatout_io::{Caching, Engine};
use serde::Deserialize;

use super::seen::Seen;
use super::work::{Trial, Work};
use crate::disk::Pattern;
use crate::disk::duel::{Duel, Extents};
use crate::versus::printed::{output, wrong};
use crate::versus::race::{Argv, Checked};
use crate::{Error, KIB, MIB};
use flatout_measure::Unit;
use flatout_sys::process::Account;

const NAME: &str = "fio";

const STREAM: Work = Work {
    pattern: Pattern::SequentialRead,
    block_bytes: MIB,
    depth: 16,
    threads: 1,
    engine: Engine::Uring,
    caching: Caching::Direct,
    extents: Extents::Written,
};
const RANDOM: Work =
    Work { pattern: Pattern::RandomRead, block_bytes: 4 * KIB, depth: 64, ..STREAM };
const BUFFERED: Work =
    Work { depth: 1, engine: Engine::Sync, caching: Caching::Buffered, ..STREAM };

/// The row whose file must not be cached when a trial begins.
pub(super) const COLD: Work = BUFFERED;

/// The rows, in the order of the record.
pub(super) const WORKS: [Work; 13] = [
    STREAM,
    Work { pattern: Pattern::SequentialWrite, extents: Extents::Fresh, ..STREAM },
    Work { pattern: Pattern::SequentialWrite, ..STREAM },
    RANDOM,
    Work { depth: 1, ..RANDOM },
    Work { block_bytes: 16 * KIB, depth: 1, threads: 2, engine: Engine::Sync, ..RANDOM },
    Work { pattern: Pattern::RandomWrite, ..RANDOM },
    Work { pattern: Pattern::RandomWrite, depth: 1, ..RANDOM },
    Work { pattern: Pattern::Mixed, ..RANDOM },
    Work { pattern: Pattern::SequentialMixed, ..STREAM },
    Work { pattern: Pattern::BackwardRead, ..STREAM },
    COLD,
    Work { pattern: Pattern::Reread, ..BUFFERED },
];

/// Rows of `bench disk` that cannot be raced against it, each with the reason.
pub(super) const INCOMPARABLE: [(&str, &str); 9] = [
    ("sequential-copy", "fio has nothing that copies from file to file"),
    (
        "strided-read",
        "fio comes back to where it began and never reads the blocks in between: a cache of the disk \
         helps it more",
    ),
    ("cold-blocks", "blocks are cold once: whoever comes second finds them in a cache"),
    (
        "metadata: create, stat, unlink",
        "fio times each file with bookkeeping of its own in between, on files of 4 KiB in one \
         directory and by whole paths; these are empty files, looked up in an open directory",
    ),
    ("metadata: open and close, rename, readdir", "fio has no engine that does it"),
    ("rows until durable", "fio ends with fsync, flatout with fdatasync"),
    (
        "rows with --rate",
        "fio counts latencies from when it submits, flatout from the intended start",
    ),
    (
        "latency of single operations",
        "a trial has many of them and a race one figure; both programs print their percentiles",
    ),
    (
        "rows with --caching dontcache",
        "fio 3.33 sets a flag for --uncached that kernels refuse; later ones are not told apart here",
    ),
];

/// How fio is called for one trial, and what it does otherwise; none where it cannot do the row or
/// read the file's name.
pub(super) fn invocation(program: &Path, duel: &Duel, trial: Trial) -> Option<(Argv, String)> {
    let (words, note) = duel.fio(trial.length_bytes, trial.runtime_ns)?;
    let words = words.into_iter().chain(["--output-format=json".to_owned()]);
    let argv = std::iter::once(program.into()).chain(words.map(Into::into)).collect();
    Some((argv, note))
}

/// The figure of a trial.
///
/// Errors: fio failed, printed no report, or one that cannot be true.
pub(super) fn check(account: &Account, block_bytes: u64, unit: Unit) -> Result<Checked, Error> {
    let text = output(NAME, account)?;
    // What fio has to remark comes before the report, on standard output, too.
    let begins = text.match_indices('{').map(|(at, _)| at);
    let report = begins.filter(|&at| at == 0 || text[..at].ends_with('\n'));
    let mut reports = report.filter_map(|at| serde_json::from_str::<Report>(&text[at..]).ok());
    let Report { jobs } =
        reports.next().ok_or_else(|| wrong(format!("{NAME} printed no report")))?;
    let [Job { error, read, write }] = &jobs[..] else {
        return Err(wrong(format!("{NAME} reports {} jobs instead of one", jobs.len())));
    };
    if *error != 0 {
        return Err(wrong(format!("{NAME} reports error {error}")));
    }
    let sum = |of: fn(&Side) -> f64| of(read) + of(write);
    let (operations, bytes) = (sum(|side| side.total_ios), sum(|side| side.io_bytes));
    if operations <= 0.0 {
        return Err(wrong(format!("{NAME} did no operation")));
    }
    let seen = Seen {
        bytes_per_s: sum(|side| side.bw_bytes),
        operations_per_s: Some(sum(|side| side.iops)),
        bytes: bytes as u64,
        block_bytes: bytes / operations,
        // Milliseconds.
        elapsed_s: Some(read.runtime.max(write.runtime) / 1e3),
    };
    seen.checked(NAME, block_bytes, unit)
}

/// What counts of a report.
#[derive(Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Job {
    error: i64,
    read: Side,
    write: Side,
}

/// The reads of a job, or its writes.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Side {
    total_ios: f64,
    io_bytes: f64,
    bw_bytes: f64,
    iops: f64,
    runtime: f64,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn side(operations: u64) -> Value {
        json!({"io_bytes": operations * 4096, "bw_bytes": operations * 4096, "iops": operations as f64,
            "runtime": if operations > 0 { 1000 } else { 0 }, "total_ios": operations})
    }

    fn account(report: &Value) -> Account {
        let stdout = format!("fio: a remark about {{clocks}}\n{report:#}\n").into_bytes();
        Account { stdout, ..Account::default() }
    }

    fn of(job: Value) -> Result<Checked, Error> {
        check(
            &account(&json!({"fio version": "fio-3.33", "jobs": [job]})),
            4096,
            Unit::OperationsPerSecond,
        )
    }

    #[test]
    fn reads_and_writes_of_a_mix_make_one_figure() {
        let checked = of(json!({"error": 0, "read": side(700), "write": side(300)})).unwrap();
        assert_eq!(checked.figure, Some(1000.0));
        assert_eq!(checked.facts.count(crate::versus::fact::MOVED_BYTES), Some(4_096_000));
    }

    #[test]
    fn a_report_that_proves_nothing_is_an_error() {
        let error = |job: Value| of(job).unwrap_err().to_string();
        let idle = json!({"error": 0, "read": side(0), "write": side(0)});
        assert_eq!(error(idle), "fio did no operation");
        let failed = json!({"error": 28, "read": side(1), "write": side(0)});
        assert_eq!(error(failed), "fio reports error 28");
        let mut larger = side(10);
        larger["io_bytes"] = json!(10 * 8192);
        assert!(error(json!({"read": larger})).contains("blocks of 8192 bytes"));
        let mut absurd = side(1000);
        absurd["bw_bytes"] = json!(9e13);
        assert!(error(json!({"read": absurd})).contains("cannot be"));
        assert_eq!(error(json!({})), "fio did no operation");
    }

    #[test]
    fn nonsense_is_no_report() {
        for text in ["", "all is well", "{", "fio: {\"jobs\": []}", "[1]"] {
            let account = Account { stdout: text.into(), ..Account::default() };
            let error = check(&account, 4096, Unit::BytesPerSecond).unwrap_err().to_string();
            assert_eq!(error, "fio printed no report", "{text}");
        }
        let none = check(&account(&json!({"jobs": []})), 4096, Unit::BytesPerSecond);
        assert!(none.unwrap_err().to_string().contains("reports 0 jobs"));
    }
}
