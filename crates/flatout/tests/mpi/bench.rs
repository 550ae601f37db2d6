//! What several processes measure together: a directory, and the network between them.

use std::io::{BufRead, BufReader};

use flatout_measure::schema::validator::faults;
use serde_json::Value;

use super::*;

/// The document of a run, which follows the schema.
#[track_caller]
pub(super) fn document(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/flatout-1.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    assert_eq!(faults(&schema, &document), Vec::<String>::new());
    document
}

pub(super) fn rows<'d>(document: &'d Value, id: &str, key: &str) -> Vec<&'d Value> {
    let rows = document["results"].as_array().unwrap().iter();
    rows.filter(|row| row["id"] == id && !row["parameters"][key].is_null()).collect()
}

pub(super) fn bench(words: &[&str]) -> Vec<String> {
    let all = [&[FLATOUT, "bench"], words, &["--quick", "--format", "json"]].concat();
    all.into_iter().map(str::to_owned).collect()
}

/// Entries of a directory.
fn entries(place: &Path) -> usize {
    fs::read_dir(place).unwrap().count()
}

#[test]
fn a_directory_is_measured_together_and_left_empty() {
    for processes in [2, 3, 4] {
        let place = tempfile::tempdir().unwrap();
        let words = bench(&["disk", ".", "--time", "10ms", "-n", "1", "--max-write", "64M"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(&mut mpirun(processes, place.path(), &words));
        assert!(output.status.success(), "{output:?}");
        let document = document(&output);
        let written = rows(&document, "disk/shared-strided-write", "until");
        assert_eq!(written.len() as u32, 2 * (3 + processes), "{written:?}");
        for like in ["ior-easy-read", "mdtest-hard-delete", "find"] {
            let results = document["results"].as_array().unwrap();
            let of_all = |row: &&Value| {
                let parameters = &row["parameters"];
                parameters["across"].is_null() && parameters["process"].is_null()
            };
            let row = results.iter().filter(of_all);
            let row = row.clone().find(|row| row["parameters"]["like"] == like).unwrap();
            assert!(row["median"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
            assert_eq!(row["parameters"]["processes"], processes);
        }
        assert!(said(&output).contains("no submission"), "{output:?}");
        assert_eq!(entries(place.path()), 0);
    }
}

#[test]
fn each_pair_of_processes_is_measured() {
    for processes in [2, 3, 4_u32] {
        let place = tempfile::tempdir().unwrap();
        let words = bench(&["network", "--time", "1ms", "-n", "1"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(&mut mpirun(processes, place.path(), &words));
        assert!(output.status.success(), "{output:?}");
        let document = document(&output);
        let ways = processes * (processes - 1);
        let of = |id| rows(&document, id, "to").len() as u32;
        assert_eq!(of("network/pair-one-way"), ways, "{document}");
        assert_eq!(of("network/pair-both-ways"), ways / 2);
        assert_eq!(of("network/pair-latency"), ways / 2);
        assert_eq!(rows(&document, "network/all-to-one", "process").len() as u32, processes);
    }
}

#[test]
fn what_several_processes_do_not_measure_is_refused_once() {
    let place = tempfile::tempdir().unwrap();
    for (words, why) in [
        (&["disk", ".", "--rw", "randread"][..], "--rw is for one process"),
        (&["disk", "cpu"], "started this 2 times"),
        (&["disk", ".", "--max-write", "100K"], "may write"),
        (&["disk", "nowhere"], "nowhere"),
    ] {
        let words = bench(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(&mut mpirun(2, place.path(), &words));
        assert!(!output.status.success(), "{output:?}");
        assert_eq!(said(&output).matches(why).count(), 1, "{words:?} {output:?}");
        assert_eq!(entries(place.path()), 0);
    }
}

#[test]
fn an_interrupt_is_said_once_by_processes_that_measure_each_for_itself() {
    let place = tempfile::tempdir().unwrap();
    let words = [FLATOUT, "bench", "memory", "--max-time", "61s"];
    let mut command = mpirun(3, place.path(), &words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // They have begun.
    assert!(lines.any(|line| line.unwrap().contains("measuring memory")));
    // To mpirun it would mean to kill them a second later.
    processes(Path::new("61s")).iter().for_each(|&pid| signal(pid, "INT"));
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(!wait(&mut child).success());
    let interrupted = said.iter().filter(|line| line.contains("interrupted"));
    assert_eq!(interrupted.count(), 1, "{said:?}");
}

#[test]
fn nothing_is_left_by_a_killed_process_or_an_interrupt() {
    for (rank, name) in [(0, "KILL"), (1, "KILL"), (0, "INT")] {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("here");
        fs::create_dir(&target).unwrap();
        let words = [FLATOUT, "bench", "disk", target.to_str().unwrap(), "--time", "10s"];
        let mut command = mpirun(3, place.path(), &words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let is_there = || {
            let made = fs::read_dir(&target).unwrap().flatten().next();
            made.is_some_and(|made| made.path().join("file-own-2").exists())
        };
        while !is_there() && begun.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(1));
        }
        let all = processes(&target);
        let is_of = |pid: &&u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let wanted = [format!("OMPI_COMM_WORLD_RANK={rank}"), format!("PMI_RANK={rank}")];
            let mut variables = environment.split(|&byte| byte == 0);
            variables.any(|variable| wanted.iter().any(|wanted| wanted.as_bytes() == variable))
        };
        match name {
            "KILL" => signal(*all.iter().find(is_of).unwrap(), name),
            _ => signal(child.id(), name),
        }
        assert!(!wait(&mut child).success());
        let begun = Instant::now();
        while !processes(&target).is_empty() && begun.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(5));
        }
        // mpirun kills what has not ended after a second, which may be short on a busy machine: then
        // the next run removes what is left.
        if entries(&target) > 0 {
            let words = bench(&["disk", "here", "--time", "5ms", "-n", "1", "--max-write", "64M"]);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = run(&mut mpirun(2, place.path(), &words));
            assert!(output.status.success(), "{output:?}");
        }
        assert_eq!(entries(&target), 0, "{rank} {name}");
    }
}
