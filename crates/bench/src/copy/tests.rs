//! The area as a whole, with programs that are shell scripts around cp(1): faithful ones, and some
//! that lose something on the way.

use std::fs;
use std::path::Path;

use flatout_measure::clock::SystemClock;
use flatout_measure::guard::FakeWitness;
use flatout_measure::{Better, Sampler, Status};
use flatout_sys::CancelToken;
use flatout_sys::launcher::write_program;

use super::*;
use crate::scratch;

const FAITHFUL: &str = "cp -a \"$1\" \"$2\"";

/// A directory to copy in, and a program that is a script.
struct Ground {
    place: tempfile::TempDir,
    options: Options,
}

impl Ground {
    /// `script`: what the program does with `$1` and `$2`, source and target.
    fn new(script: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let flatout = place.path().join("flatout");
        let skip = "while [ $# -gt 2 ]; do shift; done";
        write_program(&flatout, &format!("#!/bin/sh\nset -e\n{skip}\n{script}\n"));
        let directory = place.path().join("directory");
        fs::create_dir(&directory).unwrap();
        let run = Run {
            extent: Extent::Full,
            place: directory,
            flatout,
            rounds: Some(2),
            least_trials: 6,
            max_write_bytes: Some(1 << 30),
            seed: 1,
            cancel: CancelToken::manual(),
            ..Run::default()
        };
        let options = Options {
            run,
            selection: Selection {
                files: vec![1, 3],
                file_bytes: vec![5000],
                ..Selection::default()
            },
            state: State::Hot,
            until: Durability::Cached,
            clearing: Clearing::File,
            planned: None,
            pace: None,
        };
        Self { place, options }
    }

    fn measure(&self) -> Result<Found, Error> {
        self.measure_planned(&plan(&self.options)?)
    }

    fn measure_planned(&self, planned: &Planned) -> Result<Found, Error> {
        let mut witness = FakeWitness::quiet();
        let mut events = |_| {};
        let cancel = self.options.run.cancel;
        let mut sampler = Sampler {
            plan: Plan::default(),
            clock: &SystemClock,
            witness: &mut witness,
            events: &mut events,
            cancelled: &|| cancel.is_cancelled(),
        };
        let measured = measure(&self.options, planned, &mut sampler);
        assert_eq!(names_in(&self.options.run.place), 0, "everything is removed");
        measured
    }
}

fn names_in(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

fn own(measured: &Found) -> Vec<&Outcome> {
    measured.outcomes.iter().filter(|row| row.id == "copy/by-count").collect()
}

fn code(row: &Outcome) -> &str {
    row.warnings.first().map_or("", |warning| warning.code.as_str())
}

#[test]
fn each_tree_has_a_time_with_all_its_samples_and_a_picture() {
    let ground = Ground::new(FAITHFUL);
    let measured = ground.measure().unwrap();
    let rows = own(&measured);
    assert_eq!(rows.len(), 2);
    for (row, files) in rows.iter().zip([1_u64, 3]) {
        assert_eq!((row.unit.as_str(), row.better), ("ns", Better::Lower));
        assert_eq!((row.samples.len(), row.median.is_some()), (2, true), "{row:?}");
        assert_eq!(row.parameters["files"], files);
        let audit = |key: &str| row.audit[key].as_f64().unwrap();
        let seconds = row.median.unwrap() / 1e9;
        assert_eq!(audit("rate_bytes_per_s"), (files * 5000) as f64 / seconds);
        assert_eq!(audit("files_per_s"), files as f64 / seconds);
        assert!(audit("peak_memory_bytes") > 0.0 && audit("standard_deviation_ns") >= 0.0);
        assert_eq!(audit("compared_entries"), files as f64);
        let command = row.audit["command"].as_str().unwrap();
        assert!(command.starts_with("flatout copy -T --resume=never sources-"), "{command}");
        let ceiling = row.ceiling.as_ref().unwrap();
        assert!(!ceiling.limiter.is_empty(), "{row:?}");
    }
    for id in ["copy/empty", "copy/bare-create", "copy/bare-write"] {
        let found = measured.outcomes.iter().find(|row| row.id == id).unwrap();
        assert!(found.median.is_some_and(|figure| figure > 0.0), "{found:?}");
    }
    let [chart] = &measured.charts[..] else { panic!("{:?}", measured.charts) };
    assert_eq!((chart.id.as_str(), chart.x_parameter.as_str()), ("copy/by-count", "files"));
}

#[test]
fn a_copy_that_is_not_its_source_fails_its_row_alone() {
    let ground = Ground::new(&format!("{FAITHFUL}\nrm -f \"$2\"/file-000002"));
    let measured = ground.measure().unwrap();
    let rows = own(&measured);
    assert!(rows[0].median.is_some(), "one file has no third");
    assert_eq!((rows[1].status, rows[1].median), (Status::Failed, None));
    let text = &rows[1].warnings[0].text;
    assert!(text.contains("the copy is not the source") && text.contains("file-000002"), "{text}");
}

#[test]
fn a_program_that_fails_is_named_with_its_last_words() {
    let ground = Ground::new("echo no such luck >&2; exit 3");
    let measured = ground.measure().unwrap();
    for row in own(&measured) {
        assert_eq!(row.status, Status::Failed);
        let text = &row.warnings[0].text;
        assert!(text.contains("exit code 3: no such luck"), "{text}");
    }
}

#[test]
fn what_is_durable_has_a_row_and_takes_no_less() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.until = Durability::Durable;
    let measured = ground.measure().unwrap();
    let rows = own(&measured);
    let of = |until: &str| {
        let found = rows.iter().filter(|row| row.parameters["until"] == until);
        found.map(|row| row.samples.clone()).collect::<Vec<_>>()
    };
    let (cached, durable) = (of("cache"), of("durable"));
    assert_eq!((cached.len(), durable.len()), (2, 2));
    for (cached, durable) in cached.iter().flatten().zip(durable.iter().flatten()) {
        assert!(durable >= cached);
    }
}

#[test]
fn cold_is_proved_or_cannot_be() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.state = State::Cold;
    let in_memory = scratch::on(&ground.options.run.place).unwrap().in_memory;
    let measured = ground.measure().unwrap();
    for row in own(&measured) {
        assert_eq!(row.parameters["cache_state"], "cold");
        if in_memory {
            assert_eq!(row.status, Status::Unsupported, "{row:?}");
        } else {
            assert_eq!(row.audit["source_cached_bytes"], 0, "{row:?}");
        }
    }
}

#[test]
fn what_has_no_room_has_a_row_that_says_so() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.selection.file_bytes = vec![5000, 8 << 20];
    ground.options.run.max_write_bytes = Some(10 << 20);
    let measured = ground.measure().unwrap();
    let rows = own(&measured);
    assert_eq!(rows.len(), 4);
    let (there, left): (Vec<&Outcome>, Vec<&Outcome>) =
        rows.into_iter().partition(|row| row.median.is_some());
    assert_eq!((there.len(), left.len()), (2, 2));
    for row in left {
        assert_eq!((row.status, code(row)), (Status::Unsupported, warning::UNSUPPORTED));
        assert!(row.warnings[0].text.contains("8M is left out"), "{row:?}");
    }
    ground.options.run.max_write_bytes = Some(1000);
    let refused = plan(&ground.options).unwrap_err();
    assert!(matches!(&refused, Error::NoRoom(text) if text.contains("is left out: no room")));
    ground.options.run.extent = Extent::Few;
    ground.options.selection = Selection::default();
    let planned = plan(&ground.options).unwrap();
    assert_eq!(
        (planned.phases.len(), planned.most_write_bytes, choose::notices(&planned.left_out).len()),
        (0, 0, 1)
    );
    assert!(ground.measure().unwrap().outcomes.is_empty());
}

#[test]
fn what_does_not_lie_there_at_once_is_copied_one_after_the_other() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.run.rounds = Some(1);
    ground.options.selection.file_bytes = vec![5000, 2 << 20];
    ground.options.selection.files = vec![1, 2];
    // Room is what may be written: for the largest with its copy, and not for all.
    ground.options.run.max_write_bytes = Some(30 << 20);
    let mut planned = plan(&ground.options).unwrap();
    let all: Vec<Wanted> = planned.phases.iter().flat_map(|phase| phase.rows.clone()).collect();
    let phase = |rows: &[Wanted]| Phase { rows: rows.to_vec(), time_ns: 1 };
    planned.phases = all.chunks(2).map(phase).collect();
    let measured = ground.measure_planned(&planned).unwrap();
    let rows = own(&measured);
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.median.is_some() && !row.parameters.contains_key("phase")));
    for id in ["copy/empty", "copy/bare-create", "copy/bare-write"] {
        let found = measured.outcomes.iter().filter(|row| row.id == id);
        let phases: Vec<_> = found.map(|row| row.parameters["phase"].as_u64().unwrap()).collect();
        assert_eq!(phases, [1, 2], "{id}");
    }
    assert_eq!(measured.charts.len(), 1);
}

#[test]
fn a_limit_of_bytes_ends_a_row_that_would_write_more() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.run.rounds = None;
    ground.options.run.least_trials = 1;
    ground.options.selection = Selection { file_bytes: vec![1 << 20], ..Selection::default() };
    // The source, and two rounds or three of a copy and what it is held against.
    ground.options.run.max_write_bytes = Some(6 << 20);
    let measured = ground.measure().unwrap();
    let [row] = own(&measured)[..] else { panic!("{measured:?}") };
    assert!((1..=4).contains(&row.samples.len()), "{row:?}");
    assert!(row.warnings.iter().any(|warning| warning.code == warning::WRITE_LIMIT), "{row:?}");
}

#[test]
fn no_more_is_written_than_was_announced_at_most() {
    for rounds in [None, Some(20)] {
        let mut ground = Ground::new(FAITHFUL);
        ground.options.run.rounds = rounds;
        ground.options.run.least_trials = 1;
        ground.options.run.max_write_bytes = None;
        ground.options.selection = Selection { file_bytes: vec![1 << 20], ..Selection::default() };
        let mut planned = plan(&ground.options).unwrap();
        // As where many trials were spoiled and repeated.
        planned.most_write_bytes = 6 << 20;
        let measured = ground.measure_planned(&planned).unwrap();
        let bare = measured.outcomes.iter().find(|row| row.id == "copy/bare-write").unwrap();
        assert!((1..=5).contains(&bare.samples.len()), "{bare:?}");
        let is_limit = |warning: &Warning| warning.code == warning::WRITE_LIMIT;
        assert!(bare.warnings.iter().any(is_limit), "{bare:?}");
    }
}

#[test]
fn what_there_is_no_time_for_is_not_announced() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.run.max_write_bytes = None;
    ground.options.run.rounds = Some(100);
    ground.options.selection = Selection { file_bytes: vec![64 << 20], ..Selection::default() };
    let mut write_bytes = |time_ns| {
        ground.options.run.time_ns = time_ns;
        plan(&ground.options).unwrap().write_bytes
    };
    let [all, short] = [None, Some(1_000_000_000)].map(&mut write_bytes);
    assert!(short < all / 2, "{short} of {all}");
}

#[test]
fn trials_that_are_spoiled_have_room_where_so_many_are_asked_for() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.run.max_write_bytes = None;
    ground.options.selection = Selection { file_bytes: vec![1 << 20], ..Selection::default() };
    let mut most_write_bytes = |rounds| {
        ground.options.run.rounds = Some(rounds);
        plan(&ground.options).unwrap().most_write_bytes
    };
    let [one, two, ten] = [1, 2, 10].map(&mut most_write_bytes);
    let round = two - one;
    assert_eq!(ten, one + 9 * round);
    assert!(one > 7 * round, "the source, and one copy or one after six that are spoiled");
}

#[test]
fn a_wish_to_stop_leaves_rows_and_no_litter() {
    let ground = Ground::new(FAITHFUL);
    ground.options.run.cancel.cancel();
    let measured = ground.measure().unwrap();
    let rows = own(&measured);
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.status == Status::Interrupted), "{rows:?}");
}

#[test]
fn few_rows_are_two_and_nothing_else() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.run.extent = Extent::Few;
    ground.options.selection = Selection::default();
    ground.options.run.rounds = Some(1);
    let measured = ground.measure().unwrap();
    assert_eq!((measured.outcomes.len(), own(&measured).len()), (2, 2), "{measured:?}");
    assert!(measured.charts.is_empty(), "two sizes with a point each make no line");
    assert!(
        own(&measured).iter().all(|row| row.ceiling.as_ref().unwrap().value.is_some()
            || row.audit.contains_key("extents"))
    );
}

#[test]
fn two_runs_at_once_do_not_share_a_place_and_leftovers_go() {
    let ground = Ground::new(FAITHFUL);
    let held = Place::take(&ground.options.run.place, COPYING).unwrap();
    let planned = plan(&ground.options).unwrap();
    let mut witness = FakeWitness::quiet();
    let mut events = |_| {};
    let mut sampler = Sampler {
        plan: Plan::default(),
        clock: &SystemClock,
        witness: &mut witness,
        events: &mut events,
        cancelled: &|| false,
    };
    let refused = measure(&ground.options, &planned, &mut sampler);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("another copying run runs in"), "{text}");
    held.leave().unwrap();
    let left = ground.options.run.place.join(COPYING.folder).join("targets/1/sources");
    fs::create_dir_all(left).unwrap();
    ground.measure().unwrap();
}

#[test]
fn a_place_that_is_no_directory_is_refused_before_anything_is_made() {
    let mut ground = Ground::new(FAITHFUL);
    ground.options.run.place = ground.place.path().join("flatout");
    assert!(plan(&ground.options).unwrap_err().to_string().contains("flatout"));
    ground.options.run.place = ground.place.path().join("nowhere");
    assert!(plan(&ground.options).is_err());
}
