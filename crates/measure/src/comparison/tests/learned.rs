//! What is known of how far runs differ with nothing changed.

use super::*;

#[test]
fn learned_noise_stands_in_for_runs() {
    let machine = json!({"cpu_model": "X", "cpus_online": 2, "memory_bytes": 1000});
    let run = |level: f64| {
        let mut run = record(vec![around("a/b", level), around("a/c", 100.0)]);
        run.start.environment = machine.clone();
        run
    };
    let learned = learn(&[run(100.0), run(120.0), run(90.0)]).unwrap();
    assert_eq!((learned.runs, learned.rows.len()), (3, 2));
    // Variance of ln 100, ln 120, ln 90, below the line 2: numpy.var(…, ddof=1).
    assert!((learned.rows[0].log_variance - 0.021_183_827_190).abs() < 1e-12, "{learned:?}");
    let steady: Vec<Record> = [1.0, 1.001, 0.999, 1.0, 1.002]
        .map(|factor| {
            let rows = ["a/b", "a/c", "a/d", "c/e"].map(|id| around(id, 100.0 * factor));
            let mut run = record(rows.into());
            run.start.environment = machine.clone();
            run
        })
        .into();
    let steady =
        Question { threshold_ratio: None, noise: Some(Noise::of(&learn(&steady).unwrap())) };
    let held_by = |id: &str, level: f64| {
        let (old, new) = ([record(vec![around(id, 100.0)])], [record(vec![around(id, level)])]);
        asked(&old, &new, &steady)
    };
    let found = held_by("a/b", 125.0);
    assert_eq!(only(&found).verdict, Verdict::Better);
    assert_eq!(only(&found).noise_source, Some(NoiseSource::Learned));
    assert_eq!(found.threshold.noise_runs, Some(5));
    assert_eq!(only(&held_by("a/b", 101.0)).verdict, Verdict::Same);
    assert_eq!(only(&held_by("a/kin", 125.0)).noise_source, Some(NoiseSource::Learned));
    let stranger = held_by("z/x", 125.0);
    assert_eq!(only(&stranger).noise_source, Some(NoiseSource::Assumed));
    assert_eq!(only(&stranger).verdict, Verdict::Unclear);
    assert!(learned.is_of(&machine));
    assert!(learned.is_of(&json!({"cpu_model": "X", "cpus_online": 2, "memory_bytes": 1001})));
    assert!(!learned.is_of(&json!({"cpu_model": "Y", "cpus_online": 2, "memory_bytes": 1000})));
    assert!(!learned.is_of(&json!({})));
}

#[test]
fn noise_that_cannot_be_learned_says_why() {
    let run = |cpu: &str, row| {
        let mut run = record(vec![row]);
        run.start.environment = json!({ "cpu_model": cpu });
        run
    };
    let good = || around("a/b", 1.0);
    assert_eq!(learn(&[]), Err(Unlearned::FewRuns));
    assert_eq!(learn(&[run("X", good())]), Err(Unlearned::FewRuns));
    assert_eq!(learn(&[run("X", good()), run("Y", good())]), Err(Unlearned::Machines));
    let nameless = || record(vec![good()]);
    assert_eq!(learn(&[nameless(), nameless()]), Err(Unlearned::Nameless));
    let none = || Outcome { samples: Vec::new(), ..row("a/b") };
    assert_eq!(learn(&[run("X", none()), run("X", none())]), Err(Unlearned::NoRows));
}

#[test]
fn hostile_noise_is_passed_over() {
    let row = |log_variance: f64, runs| noise::RowNoise {
        id: "a/b".to_owned(),
        parameters: Map::new(),
        runs,
        log_variance,
    };
    let rows = vec![row(f64::MAX, 2), row(-1.0, 3), row(0.1, 1), row(0.1, u64::MAX), row(0.0, 2)];
    let mut learned = Learned {
        machine: Map::new(),
        tool: String::new(),
        time: String::new(),
        runs: 2,
        load_share: Some(0.6),
        rows,
    };
    assert_eq!(learned.busy_share(), Some(0.6));
    learned.load_share = Some(0.01);
    assert_eq!(learned.busy_share(), None);
    let question = Question { threshold_ratio: None, noise: Some(Noise::of(&learned)) };
    let (old, new) = ([record(vec![around("a/b", 1.0)])], [record(vec![around("a/b", 2.0)])]);
    let comparison = asked(&old, &new, &question);
    assert!(only(&comparison).p.unwrap().is_finite());
    assert_eq!(
        only(&comparison).verdict,
        Verdict::Unclear,
        "with that much noise nothing is known"
    );
    let noise = question.noise.unwrap();
    assert!(learned.rows.iter().filter_map(|row| noise.difference_ratio(row)).all(f64::is_finite));
}
