//! The commands do what they say: fio runs each of them, on little and for an instant.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::*;

const LENGTH_BYTES: u64 = 3 * MIB;
const BLOCK_BYTES: u64 = 64 << 10;
const TESTS: [Pattern; 10] = [
    Pattern::SequentialRead,
    Pattern::SequentialWrite,
    Pattern::RandomRead,
    Pattern::RandomWrite,
    Pattern::Mixed,
    Pattern::SequentialMixed,
    Pattern::Reread,
    Pattern::BackwardRead,
    Pattern::StridedRead,
    Pattern::ColdBlocks,
];

/// A name with everything in it that fio or a shell could take for something else.
const NAME: &str = "a b:c'd\"e$ncpus\\f*,g=h%i";

fn has_fio() -> bool {
    let has = Command::new("fio").arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !has {
        println!("skipped: no fio here");
    }
    has
}

/// Every way of doing a test: alone and with others, around the cache and through it.
fn rows(test: Pattern) -> Vec<Row> {
    let base = row(test, BLOCK_BYTES);
    if test == Pattern::Reread {
        return vec![threaded(buffered(base), 3)];
    }
    let ring = tuned(base.clone(), |tuning| {
        (tuning.engine, tuning.depth) = (Engine::Uring, 4);
    });
    let mut rows = vec![interleaved(threaded(buffered(base.clone()), 3)), threaded(ring, 3)];
    if matches!(test, Pattern::Mixed) {
        rows.push(Row { rate_per_s: Some(10_000.0), ..threaded(base.clone(), 3) });
    }
    if matches!(test, Pattern::SequentialRead) {
        rows.push(interleaved(threaded(base.clone(), 3)));
    }
    if matches!(test, Pattern::SequentialWrite) {
        rows.push(Row { extents: Extents::Fresh, ..threaded(base.clone(), 3) });
        rows.push(Row { extents: Extents::Fresh, ..buffered(base) });
    }
    rows
}

/// Runs a row's command, for an instant, and returns what fio printed.
#[track_caller]
fn run(nearest: &Nearest) -> String {
    let command = nearest.command.as_ref().unwrap();
    if command.contains("io_uring") && flatout_sys::ring::probe().is_err() {
        println!("skipped: no io_uring here");
        return String::new();
    }
    let elsewhere = std::env::temp_dir();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // Beside others it may get no CPU within so short a time.
    for time in ["10ms", "300ms", "10s"].map(|time| format!("--runtime={time} ")) {
        let instant = command.replace("--runtime=5 ", &time).replace("--runtime=2 ", &time);
        let mut shell = Command::new("sh");
        let ran = shell.arg("-c").arg(&instant).current_dir(&elsewhere).output().unwrap();
        let (out, err) = (text(&ran.stdout), text(&ran.stderr));
        let said = format!("{instant}\n{out}{err}");
        assert!(ran.status.success(), "{said}");
        assert!(!out.contains("error") && !err.contains("fio:"), "{said}");
        if out.contains("READ: bw=") || out.contains("WRITE: bw=") {
            return out;
        }
    }
    panic!("it did nothing: {command}")
}

/// Runs rows in a directory, of a row that writes both lines.
#[track_caller]
fn run_in_directory(is_meant: impl Fn(&Row) -> bool) {
    if !has_fio() {
        return;
    }
    let above = tempfile::tempdir().unwrap();
    let directory = above.path().join(NAME);
    fs::create_dir(&directory).unwrap();
    let place = on_disk(&directory, Overwriting::Refused);
    for row in TESTS.into_iter().flat_map(rows).filter(is_meant) {
        let figures: &[_] = match row.test.io_type() {
            IoType::Write => &[Figure::Own, Figure::Fsynced],
            _ => &[Figure::Own],
        };
        for &figure in figures {
            let nearest = nearest(&row, &place, LENGTH_BYTES, &TERMS, figure);
            run(&nearest);
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "{nearest:?}");
        }
    }
    assert_eq!(fs::read_dir(above.path()).unwrap().count(), 1);
}

#[test]
fn reads_in_a_directory_run_and_leave_nothing() {
    run_in_directory(|row| !row.writes());
}

#[test]
fn sequential_writes_in_a_directory_run_and_leave_nothing() {
    run_in_directory(|row| row.writes() && !row.test.is_random());
}

#[test]
fn random_writes_in_a_directory_run_and_leave_nothing() {
    run_in_directory(|row| row.writes() && row.test.is_random());
}

#[test]
fn on_a_file_they_run_and_change_it_only_where_they_write() {
    if !has_fio() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    // A length that is no multiple of anything.
    let bytes: Vec<u8> = (0..LENGTH_BYTES + 777).map(|place| (place % 251) as u8).collect();
    fs::write(&path, &bytes).unwrap();
    let place = on_disk(&path, Overwriting::Allowed);
    for row in TESTS.into_iter().flat_map(rows).filter(|row| row.extents == Extents::Written) {
        run(&nearest(&row, &place, bytes.len() as u64, &TERMS, Figure::Own));
        let now = fs::read(&path).unwrap();
        assert_eq!(now.len(), bytes.len(), "{row:?}");
        if now != bytes {
            assert!(row.writes(), "{row:?}");
            fs::write(&path, &bytes).unwrap();
        }
    }
    let names: Vec<PathBuf> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, [path]);
}

/// A loop device on a file, which cannot be written to.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn new(file: &Path) -> Result<Self, String> {
        let words = ["--find", "--show", "--read-only"];
        let ran = Command::new("losetup").args(words).arg(file).output();
        let ran = ran.map_err(|error| format!("losetup: {error}"))?;
        match ran.status.success() {
            true => Ok(Self(String::from_utf8_lossy(&ran.stdout).trim().into())),
            false => Err(String::from_utf8_lossy(&ran.stderr).trim().to_owned()),
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

#[test]
fn on_a_device_they_run_and_read() {
    if !has_fio() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    fs::write(&path, vec![0x5a; LENGTH_BYTES as usize]).unwrap();
    let device = match LoopDevice::new(&path) {
        Ok(device) => device,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let place = Place::find(&device.0, Overwriting::Refused).unwrap();
    let reads = TESTS.into_iter().flat_map(rows).filter(|row| !row.writes());
    for row in reads {
        run(&nearest(&row, &place, LENGTH_BYTES, &TERMS, Figure::Own));
    }
}

/// The blocks that a command's only job visits, in their order.
fn visited(row: &Row) -> Vec<u64> {
    let directory = tempfile::tempdir().unwrap();
    let (path, log) = (directory.path().join("data"), directory.path().join("log"));
    fs::write(&path, vec![1; LENGTH_BYTES as usize]).unwrap();
    let place = on_disk(&path, Overwriting::Refused);
    let mut nearest = nearest(row, &place, LENGTH_BYTES, &TERMS, Figure::Own);
    let command = nearest.command.as_mut().unwrap();
    // The size bounds it; time must not, however slow the machine is.
    let words: Vec<String> = command
        .split(' ')
        .map(|word| if word.starts_with("--runtime=") { "--runtime=60" } else { word }.to_owned())
        .collect();
    *command = format!("{} --write_iolog={}", words.join(" "), log.display());
    run(&nearest);
    let log = fs::read_to_string(log).unwrap();
    let lines = log.lines().filter_map(|line| line.split_once(" read "));
    lines.map(|(_, rest)| rest.split(' ').next().unwrap().parse::<u64>().unwrap()).collect()
}

#[test]
fn orders_visit_what_the_notes_say() {
    if !has_fio() {
        return;
    }
    let blocks = |row: &Row| -> Vec<u64> {
        visited(&buffered(row.clone())).iter().map(|place| place / BLOCK_BYTES).collect()
    };
    let all: Vec<u64> = (0..LENGTH_BYTES / BLOCK_BYTES).collect();
    assert_eq!(blocks(&row(Pattern::SequentialRead, BLOCK_BYTES)), all);
    let mut random = blocks(&row(Pattern::RandomRead, BLOCK_BYTES));
    assert_ne!(random, all);
    random.sort_unstable();
    assert_eq!(random, all);
    let mut backward = blocks(&row(Pattern::BackwardRead, BLOCK_BYTES));
    assert_eq!(backward.remove(0), 0);
    assert!(backward.iter().rev().eq(&all[..all.len() - 1]), "{backward:?}");
    // 48 blocks hold two whole columns of 17.
    assert_eq!(blocks(&row(Pattern::StridedRead, BLOCK_BYTES)), [0, 17]);
}
