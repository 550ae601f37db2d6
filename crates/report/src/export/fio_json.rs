//! The rows of a disk in the shape of `fio --output-format=json` (fio 3.33), for programs that read
//! that, such as fio-plot.
//!
//! fio splits what it did into reads and writes; so only rows that do one of these have a place here.
//! The others are counted in `"flatout"`, with the reason. A figure that flatout does not know is
//! left out, where fio-plot does without it: see `docs/formats.md`. [`files`] makes a document of
//! each row, which is what fio-plot wants: of several jobs in one file it adds up the figures.

mod job;

use std::collections::{HashMap, HashSet};

use flatout_measure::record::Record;
use serde_json::{Value, json};

use self::job::{Job, job};
use super::{json, told};
use crate::identity::Identity;
use crate::text;

/// All rows of a disk in one document.
pub fn document(record: &Record, identity: Identity) -> String {
    let (jobs, left_out) = jobs(record, identity);
    let jobs: Vec<Value> = jobs.into_iter().map(|job| job.value).collect();
    shown(record, jobs, left_out)
}

/// A document per row: the path that it should get, in folders of rows that differ only in depth and
/// threads, and its text.
pub fn files(record: &Record, identity: Identity) -> Vec<(String, String)> {
    let (jobs, _) = jobs(record, identity);
    let (mut taken, mut numbers) = (HashSet::new(), HashMap::new());
    let file = |Job { folder, stem, value }| {
        let number: &mut u32 = numbers.entry(format!("{folder}/{stem}")).or_default();
        let path = loop {
            *number += 1;
            let end = if *number > 1 { format!("-{number}") } else { String::new() };
            let path = format!("{folder}{end}/{stem}.json");
            if taken.insert(path.clone()) {
                break path;
            }
        };
        (path, shown(record, vec![value], 0))
    };
    jobs.into_iter().map(file).collect()
}

fn jobs(record: &Record, identity: Identity) -> (Vec<Job>, usize) {
    let shown = told(record, identity);
    let jobs: Vec<Job> = shown.results.iter().filter_map(job).collect();
    let left_out = shown.results.len() - jobs.len();
    (jobs, left_out)
}

fn shown(record: &Record, jobs: Vec<Value>, left_out: usize) -> String {
    let reason =
        "only rows with a figure that read or that write a disk have a place in fio's shape";
    json::document(&json!({
        // Whoever looks for fio's version shall not take this for fio's own figures.
        "fio version": text::visible(&record.start.tool),
        "time": text::visible(&record.start.time),
        "global options": {},
        "jobs": jobs,
        "disk_util": [],
        "flatout": {"rows_left_out": left_out, "reason": reason},
    }))
}
