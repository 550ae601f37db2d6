//! Each finding, of records made by hand.

use flatout_measure::record::{End, Load, Outcome, ProgramLoad, Start, Status};
use flatout_measure::warning::{self, Warning};
use serde_json::{Value, json};

use super::*;

fn record(environment: Value, results: Vec<Outcome>, end: End) -> Record {
    let (tool, time) = (String::new(), String::new());
    let start = Start { tool, argv: Vec::new(), seed: 0, time, environment };
    Record { schema: String::new(), start, results, charts: vec![], end }
}

/// Severity and text of what is found.
fn found(environment: Value, results: Vec<Outcome>, end: End) -> Vec<(&'static str, String)> {
    let found = findings(&record(environment, results, end));
    found.into_iter().map(|finding| (finding.severity.sign().0, finding.line())).collect()
}

fn row(id: &str, codes: &[&str]) -> Outcome {
    let warnings = codes.iter().map(|code| Warning::new(code, "")).collect();
    Outcome { id: id.to_owned(), median: Some(1.0), warnings, ..Outcome::default() }
}

fn only(found: Vec<(&'static str, String)>, severity: &str, text: &str) {
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == severity && found[0].1.contains(text), "{found:?}");
}

fn of_machine(environment: Value, severity: &str, text: &str) {
    only(found(environment, vec![row("syscall/x", &[])], End::default()), severity, text);
}

#[test]
fn a_quiet_machine_has_no_findings() {
    let environment = json!({"governor": "performance", "clocksource": "tsc", "cpus_online": 2,
        "cpus_allowed": 2, "transparent_hugepages": "madvise", "io_uring_disabled": 0,
        "mitigations": {"meltdown": "Not affected", "x": "Vulnerable"},
        "storage": [{"free_bytes": 9, "used_bytes": 71, "size_bytes": 100, "layers": [
            {"kind": "disk", "name": "a", "rotational": false, "write_cache": "write back"}]}]});
    let load = Load { cpus: 2, others_cpus: Some(0.0), stolen_ratio: 0.001, ..Load::default() };
    let end = End { load: Some(load), ..End::default() };
    assert!(found(environment, vec![row("disk/x", &[warning::OUTLIERS])], end).is_empty());
}

#[test]
fn settings_and_limits_of_the_machine_are_found() {
    of_machine(json!({"cpus_online": 8, "cpus_allowed": 2}), "WARN", "only 2 of 8 CPUs");
    of_machine(json!({"cpus_online": 8, "cpu_quota_cpus": 1.5}), "WARN", "CPU quota of 1.50 of 8");
    let quota = json!({"cpus_online": 8, "cpu_quota_cpus": 1.5});
    let rows = vec![row("cpu/x", &[warning::CPU_QUOTA])];
    only(found(quota, rows, End::default()), "WARN", "CPU quota is below what the threads");
    let limited = json!({"memory_limit_bytes": 1 << 30, "memory_bytes": 1_u64 << 33});
    of_machine(limited, "NOTE", "limited to 1.00 GiB of 8.00 GiB");
    of_machine(json!({"governor": "powersave"}), "NOTE", "governor is powersave");
    of_machine(json!({"clocksource": "hpet"}), "WARN", "clock source is hpet");
    of_machine(json!({"io_uring_disabled": 2}), "NOTE", "io_uring is switched off");
    let mitigations = json!({"mitigations": {"meltdown": "Mitigation: PTI", "x": "Vulnerable"}});
    of_machine(mitigations, "NOTE", "dearer (page-table isolation)");
    let pages = json!({"transparent_hugepages": "never"});
    only(found(pages, vec![row("memory/x", &[])], End::default()), "NOTE", "huge pages are off");
}

#[test]
fn disks_and_filesystems_are_found() {
    let storage = |place: Value| json!({"storage": [place]});
    of_machine(storage(json!({"free_bytes": 4, "size_bytes": 100})), "WARN", "is 96 % full");
    let full = json!({"free_bytes": 4, "size_bytes": 100});
    of_machine(json!({"storage": [full, full]}), "WARN", "is 96 % full");
    let reserved = json!({"free_bytes": 3, "used_bytes": 75, "size_bytes": 100});
    of_machine(storage(reserved), "WARN", "is 96 % full");
    let layer = |layer: Value| storage(json!({"layers": [layer]}));
    let through = json!({"kind": "disk", "name": "sda", "write_cache": "write through"});
    of_machine(layer(through), "NOTE", "sda has its write cache off");
    let rotating = json!({"kind": "disk", "name": "sda", "rotational": true});
    of_machine(layer(rotating), "NOTE", "sda rotates");
}

#[test]
fn what_others_took_is_found() {
    let program = ProgramLoad { name: "yes".to_owned(), processes: 4, cpus: 1.6 };
    let load = Load { cpus: 2, others_cpus: Some(1.6), programs: vec![program], ..Load::default() };
    let end = |load| End { load: Some(load), ..End::default() };
    only(
        found(json!({}), Vec::new(), end(load)),
        "WARN",
        "1.6 of 2 CPUs: rates are too low, times too long: stop yes",
    );
    let stolen = Load { cpus: 2, others_cpus: Some(0.0), stolen_ratio: 0.12, ..Load::default() };
    only(found(json!({}), Vec::new(), end(stolen)), "WARN", "steal: the hypervisor took 12 %");
}

#[test]
fn every_code_is_found_once_for_all_its_rows() {
    for (severity, codes) in codes::CODES {
        for (code, text, _) in codes {
            let rows = vec![row("disk/a", &[code]), row("cache/b", &[code])];
            only(found(json!({}), rows, End::default()), severity.sign().0, text);
        }
    }
    let rows = vec![row("disk/a", &[warning::FITS_IN_CACHE]), row("disk/b", &[])];
    only(found(json!({}), rows, End::default()), "WARN", "(disk/a)");
}

#[test]
fn of_a_place_in_memory_it_is_no_further_fault_that_there_is_no_direct_io() {
    let rows = vec![row("disk/x", &[warning::MEMORY_FILESYSTEM, warning::DIRECT_REFUSED])];
    only(found(Value::Null, rows, End::default()), "FAIL", "no disk was measured");
}

#[test]
fn contention_is_told_with_its_range() {
    let contended = |share: f64| {
        let mut row = row("cpu/x", &[warning::SMT_CONTENTION]);
        row.audit.insert("contention_ratio".to_owned(), json!(share));
        row
    };
    let two = found(json!({}), vec![contended(0.17), contended(0.76)], End::default());
    only(two, "WARN", "SMT sibling busy 17–76 % of the time");
    let unknown = vec![row("cpu/x", &[warning::SMT_CONTENTION])];
    only(found(json!({}), unknown, End::default()), "WARN", "SMT sibling busy, sharing ports");
}

#[test]
fn contention_has_its_cost_where_the_record_measured_it() {
    let of = |id: &str, codes: &[&str], median: f64| Outcome {
        parameters: json!({"type": "f64", "threads": 2}).as_object().cloned().unwrap(),
        median: Some(median),
        ci95: Some([median * 0.999, median * 1.001]),
        ..row(id, codes)
    };
    let told = |sustained: Outcome, load: Option<Load>| {
        let quiet = of("cpu/throughput", &[warning::SMT_CONTENTION], 100.0);
        let end = End { load, ..End::default() };
        let found = found(json!({}), vec![quiet, sustained], end);
        found.iter().any(|(_, text)| text.contains("costing the sustained rate 7.0 %"))
    };
    let quiet = || Some(Load { cpus: 2, ..Load::default() });
    assert!(told(of("cpu/sustained", &[], 93.0), quiet()));
    assert!(!told(of("cpu/sustained", &[], 93.0), None), "nobody looked at who else was there");
    let busy = Load { others_cpus: Some(1.0), ..quiet().unwrap() };
    assert!(!told(of("cpu/sustained", &[], 93.0), Some(busy)));
    let stolen = Load { stolen_ratio: 0.05, ..quiet().unwrap() };
    assert!(!told(of("cpu/sustained", &[], 93.0), Some(stolen)));
    let wide = Outcome { ci95: Some([80.0, 101.0]), ..of("cpu/sustained", &[], 93.0) };
    assert!(!told(wide, quiet()), "it may be none");
    let other = Outcome { parameters: row("a/b", &[]).parameters, ..of("cpu/dgemm", &[], 93.0) };
    assert!(!told(other, quiet()));
}

#[test]
fn a_busy_machine_is_one_finding_and_not_three() {
    let rows = || {
        let both = row("cpu/x", &[warning::LOCAL_LOAD, warning::DISTURBED]);
        vec![both, row("cpu/y", &[warning::DISTURBED]), row("cpu/z", &[])]
    };
    let busy = Load { cpus: 2, others_cpus: Some(1.3), ..Load::default() };
    let end = End { load: Some(busy), ..End::default() };
    let text = "other programs took 1.3 of 2 CPUs, 2 of 3 rows were disturbed";
    only(found(json!({}), rows(), end), "WARN", text);
    let quiet = found(json!({}), rows(), End::default());
    assert_eq!(quiet.len(), 2, "who disturbed is not known: {quiet:?}");
}

#[test]
fn that_others_cannot_be_seen_is_said() {
    let end = End { load: Some(Load::default()), ..End::default() };
    let text = "whether other programs were at work cannot be seen";
    only(found(json!({}), vec![row("cpu/x", &[])], end), "WARN", text);
}

#[test]
fn noise_and_want_of_time_are_counted() {
    let noisy = Outcome { status: Status::Unstable, ci95: Some([0.5, 1.5]), ..row("a/b", &[]) };
    let few = vec![noisy.clone(), row("a/c", &[]), row("a/d", &[]), row("a/e", &[])];
    only(found(json!({}), few, End::default()), "NOTE", "1 of 4 figures is noisy");
    only(found(json!({}), vec![noisy], End::default()), "WARN", "1 of 1 figure is noisy");
    let few = row("a/b", &[warning::FEW_TRIALS, warning::TIME_SHORT]);
    let none = Outcome { median: None, ..row("a/c", &[warning::TIME_SHORT]) };
    let short = found(json!({}), vec![few, none], End::default());
    let text = "rows not measured: 1, with too few trials: 1: more time (--max-time)";
    only(short, "NOTE", text);
    let bare = |id| Outcome { median: None, ..row(id, &[warning::TIME_SHORT]) };
    let rows = vec![row("a/b", &[]), bare("a/c"), bare("b/a"), bare("c/a")];
    only(
        found(json!({}), rows, End::default()),
        "WARN",
        "nothing was measured of b, c; rows not measured",
    );
}

#[test]
fn only_what_gives_more_trials_here_is_advised() {
    let advice = |argv: &str, codes: &[&str]| {
        let start =
            Start { argv: argv.split(' ').map(str::to_owned).collect(), ..Start::default() };
        let results = vec![row("a/b", codes)];
        let all = findings(&Record { start, results, ..Record::default() });
        let few = all.into_iter().find(|finding| finding.text.contains("too few trials"));
        few.unwrap().advice
    };
    let few = [warning::FEW_TRIALS];
    let (time, runs) = ("more time (--max-time)", "more runs (-n)");
    assert_eq!(advice("flatout bench", &few), time);
    assert_eq!(advice("flatout bench --runs=2", &few), runs);
    let quick = format!("{time} or a run without --quick");
    assert_eq!(advice("flatout bench --quick", &few), quick);
    let late = [warning::FEW_TRIALS, warning::TIME_SHORT];
    assert_eq!(advice("flatout bench -n 9", &late), format!("{runs} or {time}"));
    let limited = [warning::FEW_TRIALS, warning::WRITE_LIMIT];
    assert_eq!(advice("flatout bench disk", &limited), "more to be written (--max-write)");
}

#[test]
fn the_gravest_comes_first() {
    let rows = vec![row("disk/a", &[warning::OVERHEAD, warning::BURST, warning::LOOP_CACHED])];
    let end = End { errors: vec!["x".repeat(300), "y".to_owned()], ..End::default() };
    let found = found(json!({"governor": "powersave"}), rows, end);
    let signs: Vec<&str> = found.iter().map(|(sign, _)| *sign).collect();
    assert_eq!(signs, ["FAIL", "FAIL", "WARN", "NOTE", "NOTE"]);
    assert!(found[0].1.contains("x…: and 1 more error"), "{found:?}");
}
