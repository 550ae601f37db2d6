//! For each question a record that yields the good answer and one that yields the bad.

use serde_json::json;

use super::*;
use crate::fixture::{record, row};
use crate::record::{Ceiling, Provenance};
use crate::warning::Warning;

const WHY: usize = 0;
const LIMITS: usize = 1;
const ERROR: usize = 2;
const REPRODUCE: usize = 3;
const MATTER: usize = 4;
const HAPPEN: usize = 5;

fn ask(question: usize, rows: Vec<Outcome>) -> Answer {
    answer(&record(rows)).remove(question)
}

fn doubted(id: &str, code: &str) -> Outcome {
    Outcome { warnings: vec![Warning::new(code, "a doubt")], ..row(id) }
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
    for (index, answer) in answer(&record(Vec::new())).iter().enumerate() {
        assert_eq!(answer.good, index == ERROR, "{answer:?}");
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
    assert!(!low.good);
    assert!(low.text.contains("a/c"), "{}", low.text);
    let unknown = ask(WHY, vec![at("a/b", None, "")]);
    assert!(!unknown.good);
    assert_eq!(unknown.text, "No figure could be held against a known limit.");
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
}

#[test]
fn did_it_break_limits_bad() {
    let mut invalid = at("a/b", Some(3.4), "");
    let lower = Ceiling { value: Some(29.4), ..invalid.ceiling.clone().unwrap() };
    crate::ceiling::apply(&mut invalid, lower);
    let answer = ask(LIMITS, vec![invalid]);
    assert!(!answer.good);
    assert_eq!(answer.text, "1 row lies beyond a limit: a/b (340 %).");
    assert!(!ask(LIMITS, vec![doubted("a/b", warning::CEILING_LOW)]).good);
    assert!(!ask(LIMITS, vec![at("a/b", None, "")]).good, "nothing was checked");
}

#[test]
fn a_limit_that_somebody_set_is_told_and_broken_by_nobody() {
    for code in SET_LIMITS {
        let held =
            Outcome { warnings: vec![Warning::new(code, "a doubt")], ..at("a/b", Some(0.8), "") };
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
    assert!(!ask(ERROR, vec![doubted("a/b", warning::DIGEST_DIFFERS)]).good);
    let mut ended = record(vec![row("a/b")]);
    ended.end.errors = vec!["copy x: no space".to_owned()];
    assert_eq!(answer(&ended)[ERROR].text, "1 error, first: copy x: no space.");
    ended.end.errors.clear();
    ended.end.exit_code = 130;
    assert!(!answer(&ended)[ERROR].good);
}

#[test]
fn does_it_reproduce_good() {
    let answer = ask(REPRODUCE, vec![at("a/b", None, "")]);
    assert!(answer.good);
    assert_eq!(
        answer.text,
        "Yes, within this run: of 1 row the widest 95 % interval is ±1.0 % (a/b, 6 trials)."
    );
}

#[test]
fn does_it_reproduce_bad() {
    let wide =
        Outcome { ci95: Some([80.0, 120.0]), status: Status::Unstable, ..at("a/b", None, "") };
    let few = Outcome { ci95: None, n: 3, ..at("a/c", None, "") };
    let answer = ask(REPRODUCE, vec![wide, few, row("a/d")]);
    assert!(!answer.good);
    assert_eq!(
        answer.text,
        "Not shown for 2 of 3 rows: a/b (±20 %), a/c (no interval from 3 trials)."
    );
    for code in NOT_LASTING {
        let doubted = Outcome { parameters: serde_json::Map::new(), ..doubted("a/b", code) };
        let answer = ask(REPRODUCE, vec![doubted]);
        assert!(!answer.good);
        assert_eq!(answer.text, format!("Not shown for 1 of 1 rows: a/b (±1.0 %, {code})."));
    }
    let mut disturbed = doubted("a/b", warning::DISTURBED);
    disturbed.audit.insert("intervals_spoiled".to_owned(), json!(6));
    let answer = ask(REPRODUCE, vec![disturbed]);
    assert!(!answer.good && answer.text.contains("6 trials were discarded"));
}

#[test]
fn does_it_matter_good() {
    let answer = ask(MATTER, vec![row("a/b"), doubted("a/c", warning::SYSCALL_BOUND)]);
    assert!(answer.good);
    assert!(answer.text.starts_with("1 of 2 figures stand for what they are named after."));
    assert!(answer.text.ends_with("The harness takes 0.10 % of the time at most."));
}

#[test]
fn does_it_matter_bad() {
    let answer = ask(MATTER, vec![row("a/b"), doubted("a/c", warning::MEMORY_FILESYSTEM)]);
    assert!(!answer.good && answer.text.contains("a/c"));
    for code in BESIDE_THE_POINT {
        assert!(!ask(MATTER, vec![doubted("a/b", code)]).good, "{code}");
    }
    assert!(!ask(MATTER, vec![doubted("a/b", warning::READAHEAD_BOUND)]).good, "labels only");
}

#[test]
fn circumstances_are_told_and_spoil_nothing() {
    for code in CIRCUMSTANCES {
        let answers = answer(&record(vec![row("a/b"), doubted("a/c", code)]));
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
    assert!(answer.text.starts_with("Yes: 12 trials count in 2 rows"));
}

#[test]
fn did_it_even_happen_bad() {
    for code in NOT_DONE {
        let answer = ask(HAPPEN, vec![doubted("a/b", code)]);
        assert!(!answer.good && answer.text.contains(code), "{answer:?}");
    }
    for code in UNPROVEN {
        let answer = ask(HAPPEN, vec![row("a/b"), doubted("a/c", code)]);
        assert!(!answer.good, "{answer:?}");
        assert!(answer.text.starts_with("Not shown for a/c") && answer.text.contains(code));
    }
    let claimed = Outcome { samples: Vec::new(), ..row("a/b") };
    assert!(!ask(HAPPEN, vec![claimed]).good, "a figure without samples");
}
