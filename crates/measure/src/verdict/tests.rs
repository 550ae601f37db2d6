//! For each question a record that yields the good answer and one that yields the bad.

use serde_json::json;

use super::*;
use crate::evidence::{DERIVED_FROM, EVIDENCE, Evidence, Happened};
use crate::fact::Facts;
use crate::fixture::{record, row};
use crate::record::{Ceiling, Load, ProgramLoad, Provenance};
use crate::warning::{SAYING, Warning};

fn codes_saying(wanted: Says) -> impl Iterator<Item = &'static str> {
    SAYING.iter().filter(move |(_, says)| *says == wanted).map(|(code, _)| *code)
}

const WHY: usize = 0;
const LIMITS: usize = 1;
const ERROR: usize = 2;
const REPRODUCE: usize = 3;
const MATTER: usize = 4;
const HAPPEN: usize = 5;

fn ask(question: usize, rows: Vec<Outcome>) -> Answer {
    answer(&record(rows)).remove(question)
}

fn warned(id: &str, code: &str) -> Outcome {
    Outcome { warnings: vec![Warning::new(code, "a warning")], ..row(id) }
}

fn at(id: &str, ratio: Option<f64>, limiter: &str) -> Outcome {
    let ceiling = Ceiling {
        name: "the bound".to_owned(),
        value: ratio.map(|ratio| 100.0 / ratio),
        provenance: if ratio.is_some() { Provenance::Cpuid } else { Provenance::Unknown },
        ratio,
        limiter: limiter.to_owned(),
    };
    Outcome { ceiling: Some(ceiling), parameters: serde_json::Map::new(), ..row(id) }
}

#[test]
fn six_questions_in_their_order_each_with_its_fields() {
    let answers = answer(&record(vec![row("a/b")]));
    let questions: Vec<&str> = answers.iter().map(|answer| answer.question.as_str()).collect();
    assert_eq!(
        questions,
        [
            "why not double?",
            "did it break limits?",
            "did it error?",
            "does it reproduce?",
            "does it matter?",
            "did it even happen?"
        ]
    );
    for answer in answers {
        assert!(answer.good, "{answer:?}");
        assert!(!answer.rests_on.is_empty() && answer.text.ends_with('.'), "{answer:?}");
    }
}

#[test]
fn a_run_without_rows_reassures_nobody() {
    for answer in answer(&record(Vec::new())) {
        assert_eq!((answer.good, answer.mark()), (false, Mark::Unknown), "{answer:?}");
    }
}

#[test]
fn why_not_double_good() {
    let near = ask(WHY, vec![at("a/b", Some(0.8), "")]);
    assert!(near.good);
    assert_eq!(near.text, "1 of 1 rows with a known limit are above half of it.");
    let explained =
        ask(WHY, vec![at("a/b", Some(0.8), ""), at("a/c", Some(0.12), "system call entry")]);
    assert!(explained.good);
    assert!(explained.text.contains("a/c is at 12 %, limited by system call entry"));
}

#[test]
fn why_not_double_bad() {
    let low = ask(WHY, vec![at("a/b", Some(0.8), ""), at("a/c", Some(0.12), "")]);
    assert_eq!(low.mark(), Mark::Partly);
    assert!(low.text.contains("a/c"), "{}", low.text);
    assert_eq!(ask(WHY, vec![at("a/c", Some(0.12), "")]).mark(), Mark::Bad);
    let unknown = ask(WHY, vec![at("a/b", None, "")]);
    assert_eq!(unknown.mark(), Mark::Unknown);
    assert_eq!(unknown.text, "Not known: no figure could be held against a known limit.");
    let mixed = ask(WHY, vec![at("a/b", None, ""), at("a/c", Some(0.9), "")]);
    assert!(mixed.good && mixed.text.ends_with("The limit is unknown for a/b."));
}

#[test]
fn did_it_break_limits_good() {
    let answer = ask(LIMITS, vec![at("a/b", Some(0.8), ""), at("a/c", Some(0.97), "")]);
    assert!(answer.good);
    assert_eq!(
        answer.text,
        "No: 2 rows were checked, and the closest, a/c, is at 97 % of its limit."
    );
    let noisy = ask(LIMITS, vec![at("a/b", Some(1.43), "")]);
    assert!(noisy.text.ends_with("is at 143 % of its limit, which its interval includes."));
}

#[test]
fn did_it_break_limits_bad() {
    let mut invalid = at("a/b", Some(3.4), "");
    let lower = Ceiling { value: Some(29.4), ..invalid.ceiling.clone().unwrap() };
    crate::ceiling::apply(&mut invalid, lower);
    let answer = ask(LIMITS, vec![invalid]);
    assert!(!answer.good);
    assert_eq!(answer.text, "1 row lies beyond a limit: a/b (340 %).");
    assert_eq!(answer.mark(), Mark::Bad);
    let low = ask(LIMITS, vec![warned("a/b", warning::CEILING_LOW)]);
    assert_eq!(low.mark(), Mark::Partly, "the bound was low, the figure stands");
    let unchecked = ask(LIMITS, vec![at("a/b", None, "")]);
    assert_eq!(unchecked.mark(), Mark::Unknown, "nothing was checked");
}

#[test]
fn a_limit_that_somebody_set_is_told_and_broken_by_nobody() {
    for code in codes_saying(Says::SetLimit) {
        let held =
            Outcome { warnings: vec![Warning::new(code, "a warning")], ..at("a/b", Some(0.8), "") };
        let answer = ask(LIMITS, vec![held]);
        assert!(answer.good, "{answer:?}");
        assert!(answer.text.ends_with(&format!("Somebody may have set a limit for a/b ({code}).")));
    }
}

#[test]
fn did_it_error_good() {
    let unsupported = Outcome { status: Status::Unsupported, median: None, ..at("a/c", None, "") };
    let answer = ask(ERROR, vec![row("a/b"), unsupported]);
    assert!(answer.good);
    assert_eq!(
        answer.text,
        "No: 2 rows, no error, exit code 0. Not available on this machine: a/c."
    );
}

#[test]
fn did_it_error_bad() {
    for status in [Status::Failed, Status::Interrupted, Status::Invalid] {
        let failed = Outcome { status, median: None, ..at("a/b", None, "") };
        let answer = ask(ERROR, vec![failed]);
        assert!(!answer.good);
        assert_eq!(answer.text, "Without a sound end: a/b.");
    }
    assert!(!ask(ERROR, vec![warned("a/b", warning::DIGEST_DIFFERS)]).good);
    let mut ended = record(vec![row("a/b")]);
    ended.end.errors = vec!["copy x: no space".to_owned()];
    assert_eq!(answer(&ended)[ERROR].text, "1 error: copy x: no space.");
    ended.end.errors.push("copy y: no space".to_owned());
    assert_eq!(answer(&ended)[ERROR].text, "2 errors: copy x: no space, and 1 more.");
    ended.end.errors.clear();
    ended.end.exit_code = 130;
    assert_eq!(answer(&ended)[ERROR].mark(), Mark::Bad);
    let stopped = Outcome { status: Status::Interrupted, ..row("a/c") };
    assert_eq!(ask(ERROR, vec![row("a/b"), stopped]).mark(), Mark::Partly);
}

#[test]
fn does_it_reproduce_good() {
    let answer = ask(REPRODUCE, vec![at("a/b", None, "")]);
    assert!(answer.good);
    assert_eq!(answer.text, "Yes: of 1 row the widest 95 % interval is ±1.0 % (a/b, 6 trials).");
}

#[test]
fn does_it_reproduce_bad() {
    let wide =
        Outcome { ci95: Some([70.0, 130.0]), status: Status::Unstable, ..at("a/b", None, "") };
    let few = Outcome { ci95: None, n: 3, ..at("a/c", None, "") };
    let answer = ask(REPRODUCE, vec![wide.clone(), few, row("a/d")]);
    assert_eq!(answer.mark(), Mark::Bad);
    assert_eq!(
        answer.text,
        "Not shown for 2 of 3 rows: a/b (±30 %), a/c (no interval from 3 trials)."
    );
    for code in codes_saying(Says::NotLasting) {
        let warned = Outcome { parameters: serde_json::Map::new(), ..warned("a/b", code) };
        let answer = ask(REPRODUCE, vec![warned]);
        assert!(!answer.good);
        assert_eq!(answer.text, format!("Not shown for 1 of 1 row: a/b (±1.0 %, {code})."));
    }
    let mut disturbed = warned("a/b", warning::DISTURBED);
    disturbed.audit.insert("intervals_spoiled".to_owned(), json!(6));
    let answer = ask(REPRODUCE, vec![disturbed]);
    assert!(!answer.good && answer.text.contains("6 trials were discarded"));
    let mut rows = vec![wide];
    rows.resize_with(4, || row("a/d"));
    assert_eq!(ask(REPRODUCE, rows.clone()).mark(), Mark::Partly, "1 of 4");
    rows.resize_with(10, || row("a/d"));
    let most = ask(REPRODUCE, rows);
    assert_eq!(most.mark(), Mark::Good, "1 of 10");
    assert!(most.text.starts_with("Yes, but not shown for 1 of 10 rows: a/b"), "{}", most.text);
}

/// `flatout bench --max-time 85s` on two virtual CPUs of an AMD EPYC (family 25, model 17) with nothing
/// else at work, 2026-11-26, without latencies, curves and all samples but one.
#[test]
fn a_quiet_run_of_all_areas_has_six_good_answers() {
    let mut quiet: Record = serde_json::from_str(include_str!("quiet.json")).unwrap();
    assert!(answer(&quiet).iter().all(|answer| answer.good), "{:#?}", answer(&quiet));
    quiet.end.load = Some(Load { cpus: 2, others_cpus: Some(1.6), ..Load::default() });
    assert_eq!(answer(&quiet)[MATTER].mark(), Mark::Partly);
}

#[test]
fn what_runs_are_assumed_to_differ_by_is_told_and_is_no_evidence() {
    let known = |source: &str, deviation: f64| {
        let audit = json!({"between_runs": {"source": source, "deviation": deviation}});
        let audit = audit.as_object().cloned().unwrap();
        Outcome { ci95: Some([66.0, 150.0]), audit, ..at("copy/a", None, "") }
    };
    let answer = ask(REPRODUCE, vec![known("assumed", 0.2)]);
    assert_eq!(answer.mark(), Mark::Good);
    assert!(answer.text.contains("The trials of 1 row agree"), "{}", answer.text);
    let taught = |half: f64| {
        let mut row = known("learned", 0.02);
        row.audit["between_runs"]["half_width_ratio"] = json!(half);
        row
    };
    let answer = ask(REPRODUCE, vec![taught(0.1)]);
    assert_eq!(answer.mark(), Mark::Good, "what was learned decides, not what was assumed");
    assert!(answer.text.contains("Trials and earlier runs of 1 row"), "{}", answer.text);
    assert_eq!(ask(REPRODUCE, vec![taught(0.3)]).mark(), Mark::Bad);
    let mut beside_others = known("assumed", 0.2);
    beside_others.audit["between_runs"]["beside_others"] = json!(true);
    for row in [known("learned", 0.2), known("assumed", 0.1), beside_others] {
        assert_eq!(ask(REPRODUCE, vec![row]).mark(), Mark::Bad, "seen, or beside others");
    }
}

/// Each answer can be had, and what a healthy machine says is good throughout.
#[test]
fn each_of_the_six_questions_has_four_answers() {
    let wide = || Outcome { ci95: Some([50.0, 200.0]), ..at("a/w", None, "") };
    let no = Evidence::read(Happened::No, "disk_share_ratio", 0.03, "the disk moved 3 %");
    let no = || with_evidence("a/n", no.clone());
    let failed = || Outcome { status: Status::Failed, median: None, ..at("a/f", None, "") };
    let stopped = || Outcome { status: Status::Interrupted, ..row("a/s") };
    let beyond = || {
        let mut invalid = at("a/i", Some(3.4), "");
        let lower = Ceiling { value: Some(29.4), ..invalid.ceiling.clone().unwrap() };
        crate::ceiling::apply(&mut invalid, lower);
        invalid
    };
    let memory = || warned("a/m", warning::MEMORY_FILESYSTEM);
    let low = || at("a/l", Some(0.1), "");
    let (partly, bad) = (
        [
            vec![row("a/b"), low()],
            vec![row("a/b"), warned("a/c", warning::CEILING_LOW)],
            vec![row("a/b"), stopped()],
            vec![row("a/b"), wide(), row("a/c")],
            vec![row("a/b"), memory()],
            vec![row("a/b"), no(), row("a/c")],
        ],
        [vec![low()], vec![beyond()], vec![failed()], vec![wide()], vec![memory()], vec![no()]],
    );
    let mark = |rows: Vec<Outcome>, question| ask(question, rows).mark();
    for (question, (partly, bad)) in partly.into_iter().zip(bad).enumerate() {
        assert_eq!(mark(vec![row("a/b"), row("a/c")], question), Mark::Good, "{question}");
        assert_eq!(mark(partly, question), Mark::Partly, "{question}");
        assert_eq!(mark(bad, question), Mark::Bad, "{question}");
        assert_eq!(mark(Vec::new(), question), Mark::Unknown, "{question}");
    }
}

#[test]
fn a_busy_machine_is_named_and_the_figures_are_those_of_a_busy_machine() {
    let mut busy = record(vec![row("a/b")]);
    let program = ProgramLoad { name: "yes".to_owned(), processes: 4, cpus: 1.6 };
    busy.end.load =
        Some(Load { cpus: 2, others_cpus: Some(1.6), programs: vec![program], ..Load::default() });
    let answer = answer(&busy).remove(MATTER);
    assert_eq!(answer.mark(), Mark::Partly);
    let said = "It was a busy machine: 1.6 of 2 CPUs taken by others (4 yes 1.6).";
    assert!(answer.text.contains(said), "{}", answer.text);
}

#[test]
fn does_it_matter_good() {
    let answer = ask(MATTER, vec![row("a/b"), warned("a/c", warning::SYSCALL_BOUND)]);
    assert!(answer.good);
    assert!(answer.text.starts_with("1 of 2 figures stand for what they are named after."));
    assert!(answer.text.ends_with("The harness takes 0.1 % of the time at most."));
}

#[test]
fn does_it_matter_bad() {
    let answer = ask(MATTER, vec![row("a/b"), warned("a/c", warning::MEMORY_FILESYSTEM)]);
    assert_eq!(answer.mark(), Mark::Partly);
    assert!(answer.text.contains("a/c"));
    for code in codes_saying(Says::BesideThePoint) {
        assert!(!ask(MATTER, vec![warned("a/b", code)]).good, "{code}");
    }
    assert!(!ask(MATTER, vec![warned("a/b", warning::READAHEAD_BOUND)]).good, "labels only");
}

#[test]
fn circumstances_are_told_and_spoil_nothing() {
    for code in codes_saying(Says::Circumstance) {
        let answers = answer(&record(vec![row("a/b"), warned("a/c", code)]));
        assert!(answers.iter().all(|answer| answer.good), "{answers:?}");
        assert!(answers[MATTER].text.contains("circumstances of a/c block_bytes"));
        assert!(answers[MATTER].text.contains(code), "{code}");
    }
}

#[test]
fn a_virtual_machine_is_mentioned() {
    let mut guest = record(vec![row("a/b")]);
    guest.start.environment = json!({"hypervisor": true});
    assert!(answer(&guest)[MATTER].text.contains("virtual machine"));
}

#[test]
fn did_it_even_happen_good() {
    let answer = ask(HAPPEN, vec![row("a/b"), row("a/c")]);
    assert!(answer.good);
    let expected = "Yes: 12 trials count in 2 rows, each row with evidence of its work \
                    (by disk_share_ratio).";
    assert_eq!(answer.text, expected);
}

fn with_evidence(id: &str, evidence: Evidence) -> Outcome {
    let audit = Facts::default().with(EVIDENCE, evidence).to_json();
    Outcome { audit, ..row(id) }
}

#[test]
fn did_it_even_happen_bad() {
    for code in codes_saying(Says::NotDone) {
        let answer = ask(HAPPEN, vec![warned("a/b", code)]);
        assert!(!answer.good && answer.text.contains(code), "{answer:?}");
    }
    let evidence = Evidence::read(Happened::No, "disk_share_ratio", 0.03, "the disk moved 3 %");
    let answer = ask(HAPPEN, vec![row("a/b"), with_evidence("a/c", evidence)]);
    assert!(!answer.good, "{answer:?}");
    assert!(answer.text.starts_with("No for 1 of 2 rows: a/c"), "{answer:?}");
    assert!(answer.text.contains("the disk moved 3 %"), "the number that decides: {answer:?}");
}

#[test]
fn without_evidence_nobody_knows_whether_it_happened() {
    for code in codes_saying(Says::Unproven) {
        let answer = ask(HAPPEN, vec![row("a/b"), warned("a/c", code)]);
        assert!(!answer.good, "{answer:?}");
        assert!(answer.text.starts_with("Not known for 1 of 2 rows: a/c"), "{answer:?}");
        assert!(answer.text.contains(code));
    }
    let missing = Evidence::missing("disk_share_ratio", "the disks keep no account");
    let silent = Outcome { audit: serde_json::Map::new(), ..row("a/d") };
    for row_without in [with_evidence("a/c", missing), silent] {
        let answer = ask(HAPPEN, vec![row("a/b"), row_without]);
        assert!(!answer.good && answer.text.starts_with("Not known for 1"), "{answer:?}");
    }
}

#[test]
fn derived_rows_have_nothing_of_their_own_to_show() {
    let roof = |id| Outcome { samples: Vec::new(), n: 0, ..row(id) };
    let answer = ask(HAPPEN, vec![row("memory/stream"), roof("memory/roofline")]);
    assert!(answer.good && answer.text.starts_with("Yes: 6 trials count in 1 row,"), "{answer:?}");
    let audit = Facts::default().with(DERIVED_FROM, "memory/latency").to_json();
    let level = Outcome { audit, ..row("memory/level") };
    assert!(ask(HAPPEN, vec![row("memory/latency"), level]).good, "its row has the evidence");
    let answer = ask(HAPPEN, vec![roof("memory/roofline")]);
    assert!(!answer.good && answer.text.starts_with("Not known"), "{answer:?}");
}

fn contestant(name: &str, runs: u64) -> Outcome {
    let mut row = Outcome { ceiling: None, ..row("versus/copy") };
    row.parameters.insert("contestant".to_owned(), json!(name));
    row.audit = json!({ "runs": runs }).as_object().cloned().unwrap();
    row
}

fn pair(against: &str, interval: Option<[f64; 2]>) -> Outcome {
    let parameters = json!({"test": "copy", "subject": "flatout", "against": against});
    Outcome {
        unit: "ratio".to_owned(),
        parameters: parameters.as_object().cloned().unwrap(),
        median: interval.map(|[low, high]| (low + high) / 2.0),
        ci95: interval,
        status: if interval.is_some() { Status::Ok } else { Status::Failed },
        ceiling: None,
        audit: serde_json::Map::new(),
        ..row("versus/ratio")
    }
}

fn race(pairs: Vec<Outcome>) -> Vec<Outcome> {
    [contestant("flatout", 6), contestant("dd", 6)].into_iter().chain(pairs).collect()
}

#[test]
fn a_race_matters_where_its_pairs_are_told_apart() {
    let won = race(vec![pair("dd", Some([1.3, 1.5])), pair("cat", Some([0.6, 0.8]))]);
    let answer = ask(MATTER, won.clone());
    assert!(answer.good);
    assert_eq!(
        answer.text,
        "Of 2 pairs the first is faster in 1 and slower in 1, and 0 cannot be told apart; the least \
         ratio is 0.70, flatout against cat (copy)."
    );
    assert!(answer.rests_on.iter().any(|field| field == "results[].ci95"));
    let all_ties = ask(MATTER, race(vec![pair("dd", Some([0.9, 1.1]))]));
    assert!(!all_ties.good, "{all_ties:?}");
    let none = ask(MATTER, race(vec![pair("dd", None)]));
    assert!(!none.good);
    assert_eq!(none.text, "None of 1 pair has a figure.");
    let mut beside = won;
    beside[0].warnings.push(Warning::new(warning::MEMORY_FILESYSTEM, "tmpfs"));
    assert!(!ask(MATTER, beside).good);
}

#[test]
fn a_faster_rival_shows_that_more_is_possible() {
    let slower = ask(WHY, race(vec![pair("dd", Some([0.6, 0.8]))]));
    assert!(!slower.good);
    assert!(
        slower
            .text
            .ends_with("In 1 of 1 pair the other was faster: 0.70, flatout against dd (copy).")
    );
    let faster = ask(WHY, race(vec![pair("dd", Some([1.2, 1.4]))]));
    assert!(!faster.good && faster.text.ends_with("In none of 1 pair was the other faster."));
}

#[test]
fn runs_that_nobody_looked_at_did_not_happen() {
    let answer = ask(HAPPEN, race(vec![pair("dd", Some([1.2, 1.4]))]));
    assert!(answer.good);
    assert_eq!(
        answer.text,
        "Yes: 12 runs count in 2 rows, and after each somebody looked at what it left or printed."
    );
    for runs in [0, 5] {
        let answer = ask(HAPPEN, vec![contestant("flatout", 6), contestant("dd", runs)]);
        assert!(
            !answer.good && answer.text.starts_with("Not known for 1 of 2 rows: versus/copy"),
            "{answer:?}"
        );
    }
    let mut speed = contestant("dd", 6);
    speed.id = "versus/copy-speed".to_owned();
    let answer = ask(HAPPEN, vec![contestant("dd", 6), speed]);
    assert!(answer.text.starts_with("Yes: 6 runs count in 1 row,"), "{answer:?}");
}

#[test]
fn a_race_reproduces_where_its_pairs_do() {
    let mut rows = race(vec![pair("dd", Some([1.38, 1.42]))]);
    rows[0].ci95 = Some([50.0, 150.0]);
    assert!(ask(REPRODUCE, rows.clone()).good, "what moves both alike moves no ratio");
    rows[2].ci95 = Some([1.0, 1.8]);
    let answer = ask(REPRODUCE, rows);
    assert!(!answer.good && answer.text.contains("Not shown for 1 of 1 row: versus/ratio"));
}

#[test]
fn the_missing_and_the_incomparable_are_no_errors() {
    let aside = |code: &str| Outcome {
        status: Status::Unsupported,
        median: None,
        warnings: vec![Warning::new(code, "why")],
        ..at("versus/aside", None, "")
    };
    let mut rows = race(vec![pair("dd", Some([1.2, 1.4]))]);
    rows.extend([aside(warning::MISSING_RIVAL), aside(warning::CANNOT_COMPARE)]);
    let answer = ask(ERROR, rows.clone());
    assert!(answer.good && !answer.text.contains("Not available"), "{answer:?}");
    rows.extend([Outcome { status: Status::Failed, ..contestant("cat", 0) }, pair("cat", None)]);
    let answer = ask(ERROR, rows);
    assert!(!answer.good);
    assert!(answer.text.contains("contestant=cat") && !answer.text.contains("versus/ratio"));
    assert!(!ask(ERROR, vec![pair("cat", None)]).good, "a pair that failed by itself");
}
