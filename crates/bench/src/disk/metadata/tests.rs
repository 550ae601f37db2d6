//! Tests on real directories: what is measured really happens, and nothing is left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flatout_measure::clock::SystemClock;
use flatout_measure::guard::FakeWitness;
use flatout_measure::{Event, Sample, Sampler, Status, TrialError};

use super::row::{Directories, MetadataRow};
use super::*;
use crate::disk::fact;

fn options(directory: &Path) -> MetadataOptions {
    MetadataOptions {
        directory: directory.to_owned(),
        files: 50,
        threads: vec![1, 2],
        extent: Extent::Quick,
        cancel: CancelToken::manual(),
    }
}

fn plan(trials: u32) -> Plan {
    let budget_ns = u64::MAX / 4;
    Plan { min_trials: trials, max_trials: trials, budget_ns, ..Plan::default() }
}

fn measured(
    options: &MetadataOptions,
    trials: u32,
    events: &mut dyn FnMut(Event),
) -> Result<Vec<Outcome>, Error> {
    let mut witness = FakeWitness::quiet();
    let cancel = options.cancel;
    let mut sampler = Sampler {
        plan: plan(trials),
        clock: &SystemClock,
        witness: &mut witness,
        events,
        cancelled: &|| cancel.is_cancelled(),
    };
    run(options, &mut sampler)
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// All files below `directory`, by name without folders.
fn names(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(self::names(&entry.path()));
        } else {
            names.push(entry.file_name().into_string().unwrap());
        }
    }
    names.sort();
    names
}

fn trial(test_files: &TestFiles<'_>, test: Test, directories: Directories, threads: u32) -> Sample {
    let row = MetadataRow { test, directories, threads };
    (trial::case(row, test_files).trial)(3).unwrap()
}

#[test]
fn a_short_run_measures_every_row_it_names_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let outcomes = measured(&options, 2, &mut |_| {}).unwrap();
    assert_eq!(outcomes.len(), 7 * 2 * 2);
    for outcome in &outcomes {
        assert!(outcome.median.is_some_and(|rate| rate > 0.0), "{outcome:?}");
        assert_eq!(outcome.unit, "operations/s");
        let latency = outcome.latency.as_ref().unwrap();
        assert_eq!(latency.loop_kind, "closed");
        assert!(outcome.audit["requests"].as_u64().unwrap() >= latency.operations);
        assert!(outcome.ceiling.is_some());
        let changes = ["disk/create", "disk/rename", "disk/unlink"].contains(&outcome.id.as_str());
        assert_eq!(warning::has(&outcome.warnings, warning::NOT_DURABLE), changes);
        let is_alike = outcome.id == "disk/fsync"
            && outcome.parameters["directories"] == "one"
            && !warning::has(&outcome.warnings, warning::MEMORY_FILESYSTEM);
        assert_eq!(outcome.audit.contains_key("fio_command"), is_alike, "{outcome:?}");
        assert_ne!(outcome.audit.contains_key("fio_note"), is_alike);
    }
    assert!(is_empty(directory.path()));
}

#[test]
fn operations_are_counted_and_really_happen() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    for (spread, threads) in [
        (Directories::One, 1),
        (Directories::One, 2),
        (Directories::Many, 1),
        (Directories::Many, 2),
    ] {
        let test_files = TestFiles::make(&options).unwrap();
        let here = || names(directory.path());
        let numbered = |word: &str| -> Vec<String> {
            (0..50).map(|number| format!("{word}-{number:06}")).collect()
        };

        let created = trial(&test_files, Test::Create, spread, threads);
        assert_eq!((created.amount, created.facts.count(fact::REQUESTS)), (50.0, Some(50)));
        assert_eq!(created.latencies.unwrap().histogram.operations(), 50);
        assert_eq!(here(), numbered("file"));

        let removed = trial(&test_files, Test::Unlink, spread, threads);
        assert_eq!(removed.amount, 50.0);
        assert!(here().is_empty(), "those that the first trial left are gone");

        for word in ["moved", "file"] {
            let renamed = trial(&test_files, Test::Rename, spread, threads);
            assert_eq!(renamed.amount, 50.0);
            assert_eq!(here(), numbered(word));
        }

        let synced = trial(&test_files, Test::Fsync, spread, threads);
        // Where the device is slow, beside others, time is over before all are synced.
        let files = synced.amount as u64;
        assert!((1..=8).contains(&files), "{synced:?}");
        assert_eq!(synced.facts.count(fact::BYTES), Some(files * 4096));
        let made = here().len();
        assert!((50 + files as usize..=58).contains(&made), "{synced:?}, {made} files");

        let listed = trial(&test_files, Test::Readdir, spread, threads);
        assert_eq!(here().len(), made + 50, "files to be looked at were made");
        let latencies = listed.latencies.unwrap().histogram.operations();
        let largest = if spread == Directories::One { 50 } else { 50_u64.div_ceil(3) };
        assert!(listed.amount as u64 <= latencies * largest && listed.amount >= 1.0);
        for test in [Test::Stat, Test::OpenClose] {
            let looked = trial(&test_files, test, spread, threads);
            assert!(looked.facts.number(fact::REQUESTS).unwrap() > looked.amount);
        }
        assert_eq!(here().len(), made + 50, "and looking changed nothing");
        test_files.finish().unwrap();
        assert!(is_empty(directory.path()));
    }
}

#[test]
fn each_file_has_a_content_of_its_length_when_it_is_synced() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let test_files = TestFiles::make(&options).unwrap();
    trial(&test_files, Test::Fsync, Directories::One, 1);
    let place = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap();
    let set = fs::read_dir(place.path()).unwrap().next().unwrap().unwrap();
    let file = set.path().join("d-000/file-000000");
    let content = fs::read(file).unwrap();
    assert!(content.len() as u64 == SMALL_FILE_BYTES && content.iter().any(|&byte| byte != 0));
    test_files.finish().unwrap();
}

/// On a busy machine trials are repeated; the row ends with those that it has.
#[test]
fn no_more_files_are_made_than_were_announced() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let test_files = TestFiles::make(&options).unwrap();
    let refusal = loop {
        match test_files.take(Test::Create, Directories::ALL[0]) {
            Ok(_) => {}
            Err(refusal) => break refusal,
        }
    };
    assert!(
        matches!(&refusal, TrialError::NoMore(why) if why.code == warning::WRITE_LIMIT),
        "{refusal}"
    );
    test_files.finish().unwrap();
}

#[test]
fn a_user_who_stops_leaves_rows_that_say_so_and_no_files() {
    let directory = tempfile::tempdir().unwrap();
    for trials_before in [0, 1, 9] {
        let options = options(directory.path());
        let (cancel, mut seen) = (options.cancel, 0);
        let outcomes = measured(&options, 2, &mut |event| {
            if matches!(event, Event::Trial { .. }) {
                seen += 1;
            }
            if seen > trials_before {
                cancel.cancel();
            }
        })
        .unwrap();
        assert_eq!(outcomes.len(), 28);
        let interrupted = outcomes.iter().filter(|row| row.status == Status::Interrupted).count();
        assert!(interrupted > 10, "{interrupted}");
        assert!(is_empty(directory.path()));
    }
}

#[test]
fn a_trial_that_is_cancelled_gives_no_sample() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let test_files = TestFiles::make(&options).unwrap();
    let row = MetadataRow { test: Test::Stat, directories: Directories::One, threads: 2 };
    let mut case = trial::case(row, &test_files);
    (case.trial)(1).unwrap();
    options.cancel.cancel();
    assert_eq!((case.trial)(2), Err(TrialError::Interrupted));
    drop(case);
    test_files.finish().unwrap();
    assert!(is_empty(directory.path()));
}

#[test]
fn what_others_put_into_the_directory_is_kept_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut foreign = PathBuf::new();
    let outcomes = measured(&options(directory.path()), 1, &mut |_| {
        if let Some(place) = fs::read_dir(directory.path()).unwrap().next() {
            foreign = place.unwrap().path().join("letter");
            fs::write(&foreign, "dear").unwrap();
        }
    })
    .unwrap();
    let last = outcomes.last().unwrap();
    let failure = last.warnings.iter().find(|known| known.code == warning::FAILED).unwrap();
    assert!(failure.text.starts_with("test files stay behind: cannot remove"), "{}", failure.text);
    assert_eq!(names(directory.path()), ["letter"]);
    assert_eq!(fs::read_to_string(foreign).unwrap(), "dear");
}

#[test]
fn removing_follows_no_link() {
    let directory = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file-000000"), "dear").unwrap();
    let options = options(directory.path());
    let test_files = TestFiles::make(&options).unwrap();
    let place = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    std::os::unix::fs::symlink(outside.path(), place.join("set-9999")).unwrap();
    test_files.finish().unwrap();
    assert!(is_empty(directory.path()));
    assert_eq!(names(outside.path()), ["file-000000"]);
}

#[test]
fn a_panic_leaves_nothing_either() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let body = || {
        let test_files = TestFiles::make(&options).unwrap();
        trial(&test_files, Test::Create, Directories::Many, 1);
        panic!("on purpose");
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err());
    assert!(is_empty(directory.path()));
}

/// A small filesystem in memory, gone with the value.
struct Mount(tempfile::TempDir);

impl Mount {
    /// `None`, with the reason printed, where mounting is not allowed.
    fn make(mount_options: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", mount_options, "tmpfs"])
            .arg(directory.path())
            .output();
        match output {
            Ok(output) if output.status.success() => Some(Self(directory)),
            other => {
                println!("skipped: a tmpfs cannot be mounted here: {other:?}");
                None
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A program that another test starts just now holds a file of it until it is there.
        let _output = Command::new("umount").arg("--lazy").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_filesystem_fails_the_rows_in_one_line_and_is_emptied() {
    let Some(mount) = Mount::make("size=1m,nr_inodes=40") else { return };
    let directory = mount.0.path();
    let options = options(directory);
    let outcomes = measured(&options, 1, &mut |_| {}).unwrap();
    assert_eq!(outcomes.len(), 28);
    let create = outcomes.iter().find(|row| row.id == "disk/create").unwrap();
    assert_eq!(create.status, Status::Failed);
    let failure = create.warnings.iter().find(|known| known.code == warning::FAILED).unwrap();
    assert!(failure.text.starts_with("cannot "), "{}", failure.text);
    assert!(failure.text.ends_with(": No space left on device"), "{}", failure.text);
    assert!(!failure.text.contains('\n'));
    assert!(is_empty(directory));
    assert!(matches!(fitted(&options, None), Err(Error::NoRoom(_))));
}

#[test]
fn files_in_memory_are_called_that() {
    let Some(mount) = Mount::make("size=64m,nr_inodes=100000") else { return };
    let outcomes = measured(&options(mount.0.path()), 1, &mut |_| {}).unwrap();
    assert!(outcomes.iter().all(|row| warning::has(&row.warnings, warning::MEMORY_FILESYSTEM)));
}

#[test]
fn a_directory_that_cannot_be_written_to_is_refused_in_one_line() {
    let Some(mount) = Mount::make("ro") else { return };
    let text = measured(&options(mount.0.path()), 1, &mut |_| {}).unwrap_err().to_string();
    assert!(text.starts_with("cannot make a directory in ") && !text.contains('\n'), "{text}");
    let nowhere =
        MetadataOptions { directory: "/nowhere/at/all".into(), ..options(mount.0.path()) };
    assert!(fitted(&nowhere, None).unwrap_err().to_string().contains("/nowhere/at/all"));
}

#[test]
fn as_many_files_are_taken_as_there_is_room_for() {
    let Some(mount) = Mount::make("size=8g,nr_inodes=60000") else { return };
    let wanted = MetadataOptions { files: 100_000, ..options(mount.0.path()) };
    let fitted = fitted(&wanted, None).unwrap();
    assert!(fitted.files < wanted.files && Needs::of(&fitted).inodes <= 30_000);
    assert_eq!(room::fitted(&fitted, None).unwrap().files, fitted.files);
    let thrifty = super::fitted(&wanted, Some(Needs::of(&fitted).bytes / 4 * 3)).unwrap();
    assert!(thrifty.files < fitted.files);
    let Some(tiny) = Mount::make("size=1m,nr_inodes=40") else { return };
    assert!(matches!(super::fitted(&options(tiny.0.path()), None), Err(Error::NoRoom(_))));
}
