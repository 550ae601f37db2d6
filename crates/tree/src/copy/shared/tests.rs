//! Copies shared by processes, which are threads here that have nothing but messages in common.

mod simulation;

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::thread::Scope;

use flatout_sys::cancel::CancelToken;

use super::bound::MOST_BOUND;
use super::*;
use crate::copy::event::Watch;
use crate::copy::evidence::{Evidence, Noting};
use crate::copy::limits::Limits;
use crate::copy::options::{Appearance, CopyOptions, Deletion};
use crate::copy::reference::References;
use crate::copy::rules::{Follow, Rules, Skip};
use crate::copy::tests::{Heard, RULES, differences, operand, options, plant};
use crate::copy::{Ended, Operand};
use crate::selection::Selection;
use crate::selection::rule::{Rule, Verdict};
use crate::wire::Wire;

type Boxes = Mutex<Vec<VecDeque<(usize, Vec<u8>)>>>;

/// A box for each process.
struct Mail<'b> {
    rank: usize,
    boxes: &'b Boxes,
}

impl Post for Mail<'_> {
    fn send(&mut self, to: usize, message: &[u8]) {
        lock(self.boxes)[to].push_back((self.rank, message.to_vec()));
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        lock(self.boxes)[self.rank].pop_front()
    }
}

fn hire<'scope, 'env>(scope: &'scope Scope<'scope, 'env>, copy: &'env Copy<'_>) -> bool {
    scope.spawn(move || copy.work(&|_: u32| hire(scope, copy)));
    true
}

/// What a process did, and how it ended there.
struct Part {
    ended: Ended,
    own: Snapshot,
}

/// Has the inode numbers of parts of files be others on their way: who gets them does not find the
/// files.
struct Misled<'b>(Mail<'b>);

impl Post for Misled<'_> {
    fn send(&mut self, to: usize, message: &[u8]) {
        self.0.send(to, message);
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        let (from, message) = self.0.receive()?;
        let (head, mut parcels) = message.split_at(message.len().min(11));
        let mut misled = head.to_vec();
        while let Some(mut parcel) = Parcel::take(&mut parcels) {
            for piece in &mut parcel.pieces {
                if let Piece::Part(part) = piece {
                    part.sides.inodes.1 += 1;
                }
            }
            parcel.put(&mut misled);
        }
        Some((from, if parcels.is_empty() { misled } else { message }))
    }
}

/// Does not get to its messages before the first process has ended the second round, of which this one
/// has no part.
struct Late<'b> {
    mail: Mail<'b>,
    closed: u32,
}

impl Post for Late<'_> {
    fn send(&mut self, to: usize, message: &[u8]) {
        self.mail.send(to, message);
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        let is = |kind: u8| move |(_, message): &(usize, Vec<u8>)| message[0] == kind;
        let (closes, has_ended) = {
            let boxes = lock(self.mail.boxes);
            let own = &boxes[self.mail.rank];
            (own.front().is_some_and(is(member::CLOSE)), own.iter().any(is(member::END)))
        };
        if closes && self.closed == 0 && !has_ended {
            return None;
        }
        self.closed += u32::from(closes);
        self.mail.receive()
    }
}

/// Copies by so many processes; returns the part of each, and what the user is told.
fn share(
    size: usize,
    options: CopyOptions,
    rounds: &[Vec<Operand>],
    tune: &(dyn Fn(usize, CopyOptions) -> CopyOptions + Sync),
) -> (Vec<Part>, Vec<String>) {
    share_with(size, options, rounds, &|rank, options, watch| {
        (Copy::new(tune(rank, options), watch), usual)
    })
}

/// What becomes of the messages to a process.
type Way = for<'b> fn(Mail<'b>) -> Box<dyn Post + 'b>;

fn usual(mail: Mail<'_>) -> Box<dyn Post + '_> {
    Box::new(mail)
}

fn misled(mail: Mail<'_>) -> Box<dyn Post + '_> {
    Box::new(Misled(mail))
}

fn late(mail: Mail<'_>) -> Box<dyn Post + '_> {
    Box::new(Late { mail, closed: 0 })
}

/// How a process copies, and what becomes of the messages to it.
type Make<'m> = &'m (dyn for<'a> Fn(usize, CopyOptions, &'a dyn Watch) -> (Copy<'a>, Way) + Sync);

fn share_with(
    size: usize,
    options: CopyOptions,
    rounds: &[Vec<Operand>],
    make: Make<'_>,
) -> (Vec<Part>, Vec<String>) {
    let boxes: Boxes = Mutex::new(vec![VecDeque::new(); size]);
    let heard = Heard::default();
    let part = |rank: usize| {
        let reporter = (rank != 0).then(|| Arc::new(Reporter::default()));
        let watch: &dyn Watch = match &reporter {
            Some(reporter) => &**reporter,
            None => &heard,
        };
        let (copy, way) = make(rank, options, watch);
        let copy = copy
            .with_members(Membership { rank, size, job: 7, kept: Vec::new() }, reporter.clone());
        let mut mail = way(Mail { rank, boxes: &boxes });
        let mut last = None;
        for round in rounds {
            let operands = if rank == 0 { round.clone() } else { Vec::new() };
            let ended = std::thread::scope(|scope| {
                copy.run_shared(operands, &|_: u32| hire(scope, &copy), &mut *mail)
            });
            last = Some(ended.unwrap());
        }
        assert!(copy.dispatch.first().is_none(), "nothing is left");
        let own = copy.own_progress();
        copy.finish();
        Part { ended: last.unwrap(), own }
    };
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size).map(|rank| scope.spawn(move || part(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (parts, heard.failures.into_inner().unwrap())
}

fn as_it_is(_: usize, options: CopyOptions) -> CopyOptions {
    options
}

/// Directories in directories, with files, and names of files in several of them.
fn grow(root: &Path) {
    plant(root);
    for number in 0..60 {
        let directory = root.join(format!("wide/{}/{number}", number % 7));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..20 {
            fs::write(directory.join(format!("{file}")), vec![file as u8; file * 100]).unwrap();
        }
        fs::hard_link(root.join("a/file 7"), directory.join("seven")).unwrap();
        fs::hard_link(directory.join("3"), root.join(format!("wide/three of {number}"))).unwrap();
    }
}

#[test]
fn whoever_copies_what_the_tree_is_the_same() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    fs::create_dir(&source).unwrap();
    grow(&source);
    let mut shares = 0;
    for size in [1, 2, 4, 7] {
        let target = place.path().join(format!("by {size}"));
        let rounds = [vec![operand(&source, &target)]];
        let (parts, failures) = share(size, options(), &rounds, &as_it_is);
        assert_eq!(failures, [] as [&str; 0], "{size}");
        assert_eq!(differences(&source, &target), [] as [&str; 0], "{size}");
        let whole = &parts[0].ended;
        assert!(!whole.interrupted && !whole.out_of_space);
        assert_eq!(whole.totals.failed, 0);
        let counted = |count: &dyn Fn(&Snapshot) -> u64| {
            let sum: u64 = parts.iter().map(|part| count(&part.own)).sum();
            assert_eq!(count(&whole.totals), sum, "the first one knows of all");
            sum
        };
        let files = counted(&|own| own.files);
        let linked = counted(&|own| own.linked);
        assert_eq!((files, linked), (100 + 2 + 1 + 60 * 20, 2 + 60 + 60), "each once: {size}");
        shares += parts.iter().skip(1).filter(|part| part.own.files > 0).count();
        let seven = fs::metadata(target.join("a/file 7")).unwrap();
        assert_eq!(seven.nlink(), 61);
    }
    assert!(shares > 3, "the others did nothing");
}

#[test]
fn rounds_follow_each_other() {
    let place = tempfile::tempdir().unwrap();
    let [one, two, target] = ["one", "two", "target"].map(|name| place.path().join(name));
    fs::create_dir(&one).unwrap();
    grow(&one);
    fs::create_dir_all(two.join("a")).unwrap();
    fs::write(two.join("a/file 7"), "of the second").unwrap();
    let rounds = [vec![operand(&one, &target)], vec![operand(&two.join("."), &target.join("."))]];
    let (_, failures) = share(3, options(), &rounds, &as_it_is);
    assert_eq!(failures, [] as [&str; 0]);
    assert_eq!(fs::read_to_string(target.join("a/file 7")).unwrap(), "of the second");
}

/// What comes behind the end of a round is of the next one.
#[test]
fn a_round_may_end_before_all_know_that_the_last_one_has() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    fs::write(&source, "text").unwrap();
    let rounds = [vec![operand(&source, &target)], vec![operand(&source, &place.path().join("b"))]];
    let (parts, failures) = share_with(2, options(), &rounds, &|rank, options, watch| {
        (Copy::new(options, watch), if rank == 0 { usual } else { late })
    });
    assert_eq!((failures, parts[0].ended.totals.files), (Vec::new(), 2));
}

#[test]
fn what_fails_elsewhere_is_told_and_counted() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    fs::create_dir(&source).unwrap();
    grow(&source);
    // A directory is in the way of a file, in many places.
    for number in 0..60 {
        let way = format!("wide/{}/{number}/5", number % 7);
        fs::create_dir_all(target.join(way)).unwrap();
    }
    let rounds = [vec![operand(&source.join("."), &target.join("."))]];
    let (parts, failures) = share(4, options(), &rounds, &as_it_is);
    assert_eq!(failures.len(), 60);
    let expected = "cannot overwrite";
    assert!(failures.iter().all(|failure| failure.contains(expected)), "{failures:?}");
    assert_eq!(parts[0].ended.totals.failed, 60);
}

#[test]
fn whoever_is_stopped_stops_all() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    fs::create_dir(&source).unwrap();
    grow(&source);
    for stopped in [0, 2] {
        let rounds = [vec![operand(&source, &target)]];
        let cancel = CancelToken::manual();
        cancel.cancel();
        let stop = |rank: usize, options: CopyOptions| match rank == stopped {
            true => CopyOptions { cancel, ..options },
            false => CopyOptions { cancel: CancelToken::manual(), ..options },
        };
        let (parts, failures) = share(4, options(), &rounds, &stop);
        assert!(parts[0].ended.interrupted, "by {stopped}");
        assert_eq!(failures, [] as [&str; 0]);
        // The next run goes on.
        let (parts, _) =
            share(4, options(), &[vec![operand(&source.join("."), &target)]], &as_it_is);
        assert!(!parts[0].ended.interrupted);
        assert_eq!(differences(&source, &target), [] as [&str; 0]);
        fs::remove_dir_all(&target).unwrap();
    }
}

const LARGE_BYTES: usize = (80 << 20) + 12_345;

#[test]
fn a_large_file_is_shared_by_those_who_have_nothing_to_do() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    fs::create_dir(&source).unwrap();
    let mut bytes = vec![0; LARGE_BYTES];
    bytes.chunks_mut(4093).enumerate().for_each(|(part, bytes)| bytes.fill(part as u8));
    fs::write(source.join("large"), &bytes).unwrap();
    fs::create_dir(&target).unwrap();
    for is_misled in [false, true] {
        // The second time it takes the place of a file.
        let rounds = [vec![operand(&source.join("."), &target.join("."))]];
        let options = CopyOptions { threads: 1, ..options() };
        let (parts, failures) = share_with(4, options, &rounds, &|rank, options, watch| {
            // Who has the file is slow.
            let copy = Copy::new(options, watch);
            match rank {
                0 => (copy.with_limits(Limits::new(Some(200 << 20), false)), usual),
                _ => (copy, if is_misled { misled } else { usual }),
            }
        });
        assert_eq!(failures, [] as [&str; 0]);
        let copied = fs::read(target.join("large")).unwrap();
        assert!(copied == bytes, "other bytes");
        assert_eq!(differences(&source, &target), [] as [&str; 0]);
        let whole = &parts[0].ended.totals;
        assert_eq!((whole.files, whole.bytes_copied()), (1, LARGE_BYTES as u64));
        assert_eq!(whole.bytes_accepted, LARGE_BYTES as u64, "no byte twice");
        let elsewhere: u64 = parts[1..].iter().map(|part| part.own.bytes_accepted).sum();
        assert_eq!(elsewhere > 0, !is_misled, "{elsewhere}");
    }
}

#[test]
fn what_one_notes_another_one_knows_the_next_time() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    fs::create_dir(&source).unwrap();
    grow(&source);
    crate::copy::tests::settle(&source.join("wide/3/59/3"));
    let rounds = [vec![operand(&source.join("."), &target.join("."))]];
    fs::create_dir(&target).unwrap();
    let run = || {
        let ledger = place.path().join("state/ledger");
        let evidence = Evidence::open(&ledger, &options(), Noting::AtOnce, (1 << 20, None));
        let packed = evidence.packed();
        let evidence = Mutex::new(Some(evidence));
        let (parts, failures) = share_with(3, options(), &rounds, &|rank, options, watch| {
            let evidence = match rank {
                0 => lock(&evidence).take().unwrap(),
                _ => Evidence::unpacked(&packed, &options),
            };
            let mut copy = Copy::new(options, watch);
            copy.evidence = evidence;
            (copy, usual)
        });
        assert_eq!(failures, [] as [&str; 0]);
        parts[0].ended.totals
    };
    let first = run();
    let second = run();
    // Files with several names are not noted.
    let bound = 2 + 60;
    assert_eq!(
        second.unchanged + second.linked + second.files,
        first.files + first.linked + first.others
    );
    assert!(second.files <= bound, "{} were copied again", second.files);
    assert_eq!(differences(&source, &target), [] as [&str; 0]);
}

#[test]
fn what_the_source_has_not_goes_whoever_finds_it() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    fs::create_dir(&source).unwrap();
    grow(&source);
    let deletion = Some(Deletion { most: None, takes_excluded: false });
    let options = CopyOptions { deletion, ..options() };
    let mut deleted = Vec::new();
    for size in [1, 4] {
        for number in 0..60 {
            let way = target.join(format!("wide/{}/{number}", number % 7));
            fs::create_dir_all(way.join("more")).unwrap();
            fs::write(way.join("more/file"), "x").unwrap();
            // Something of another kind makes room.
            let _none_yet = fs::remove_file(way.join("5"));
            fs::create_dir(way.join("5")).unwrap();
        }
        fs::write(target.join("besides"), "x").unwrap();
        let rounds = [vec![operand(&source.join("."), &target.join("."))]];
        let (parts, failures) = share(size, options, &rounds, &as_it_is);
        assert_eq!(failures, [] as [&str; 0]);
        assert_eq!(differences(&source, &target), [] as [&str; 0]);
        deleted.push(parts[0].ended.totals.deleted);
    }
    assert!(deleted[0] > 60 && deleted[0] == deleted[1], "{deleted:?}");
}

#[test]
fn no_more_goes_than_may_go_whoever_deletes() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    for number in 0..60 {
        fs::create_dir_all(source.join(format!("{number}"))).unwrap();
        for file in 0..3 {
            fs::create_dir_all(target.join(format!("{number}"))).unwrap();
            fs::write(target.join(format!("{number}/more {file}")), "x").unwrap();
        }
    }
    let deletion = Some(Deletion { most: Some(100), takes_excluded: false });
    let options = CopyOptions { deletion, ..options() };
    let rounds = [vec![operand(&source.join("."), &target.join("."))]];
    let (parts, failures) = share(4, options, &rounds, &as_it_is);
    assert_eq!(failures, [] as [&str; 0]);
    let totals = parts[0].ended.totals;
    assert_eq!((totals.deleted, totals.spared), (100, 80));
    let left =
        (0..60).map(|number| fs::read_dir(target.join(format!("{number}"))).unwrap().count());
    assert_eq!(left.sum::<usize>(), 80);
}

#[test]
fn rules_leave_out_the_same_whoever_copies() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    fs::create_dir(&source).unwrap();
    grow(&source);
    // What one directory says counts in those below it, in other processes, too.
    fs::write(source.join(".gitignore"), "/wide/3\n7\n").unwrap();
    fs::write(source.join("wide/1/.gitignore"), "8\n!7\n").unwrap();
    let selection = || Selection {
        rules: vec![Rule::new(Verdict::Exclude, b"1?").unwrap()],
        obeys_gitignore: true,
        sizes: (Some(200), None),
        ..Selection::default()
    };
    let targets = [1, 4].map(|size| {
        let target = place.path().join(format!("by {size}"));
        let rounds = [vec![operand(&source, &target)]];
        let (parts, failures) = share_with(size, options(), &rounds, &|_, options, watch| {
            let mut copy = Copy::new(options, watch);
            copy.selection = selection();
            (copy, usual)
        });
        assert_eq!(failures, [] as [&str; 0]);
        assert!(size == 1 || parts[1..].iter().any(|part| part.own.files > 0));
        target
    });
    assert_eq!(differences(&targets[0], &targets[1]), [] as [&str; 0]);
    assert!(!targets[1].join("wide/3").exists() && targets[1].join("wide/1/1/7").exists());
    assert!(!targets[1].join("wide/2/2/7").exists() && !targets[1].join("wide/1/1/8").exists());
    assert!(!targets[1].join("wide/1/1/1").exists() && targets[1].join("wide/1/1/2").exists());
}

fn as_cp(rules: Rules) -> CopyOptions {
    CopyOptions { appearance: Appearance::AsFound(rules), ..options() }
}

#[test]
fn what_is_not_older_stays_whoever_looks() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    fs::create_dir(&source).unwrap();
    grow(&source);
    let options = as_cp(Rules { skip: Skip::NotOlder, ..RULES });
    let targets = [1, 4].map(|size| {
        let target = place.path().join(format!("by {size}"));
        for number in 0..60 {
            let directory = target.join(format!("wide/{}/{number}", number % 7));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("9"), "newer").unwrap();
            fs::write(directory.join("8"), "older").unwrap();
            let old = std::time::SystemTime::UNIX_EPOCH;
            fs::File::open(directory.join("8")).unwrap().set_modified(old).unwrap();
            // Two names of one file are written one after the other.
            fs::hard_link(directory.join("8"), directory.join("10")).unwrap();
        }
        for _ in 0..2 {
            let rounds = [vec![operand(&source.join("."), &target.join("."))]];
            let (_, failures) = share_with(size, options, &rounds, &|_, options, watch| {
                (Copy::new(options, watch).with_repeated_names(), usual)
            });
            assert_eq!(failures, [] as [&str; 0]);
        }
        assert_eq!(fs::read(target.join("wide/1/1/9")).unwrap(), b"newer");
        target
    });
    let held = |target: &Path| {
        let names = (0..60).flat_map(|number| (0..20).map(move |file| (number, file)));
        let name = |(number, file)| format!("wide/{}/{number}/{file}", number % 7);
        names.map(|one| fs::read(target.join(name(one))).unwrap()).collect::<Vec<_>>()
    };
    assert!(held(&targets[0]) == held(&targets[1]));
    let nlink = |target: &Path| fs::metadata(target.join("wide/1/1/seven")).unwrap().nlink();
    assert_eq!(nlink(&targets[0]), nlink(&targets[1]));
}

#[test]
fn what_two_ways_lead_to_is_copied_once_whoever_goes_them() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    // More names than one process may be ahead of the others.
    for (name, count) in [("flat", MOST_BOUND), ("deep/er", 10)] {
        fs::create_dir_all(source.join(name)).unwrap();
        for number in 0..count {
            fs::write(source.join(format!("{name}/{number}")), "x").unwrap();
        }
    }
    symlink("deep", source.join("way")).unwrap();
    symlink("../..", source.join("deep/er/loop")).unwrap();
    symlink("../flat/7", source.join("deep/seven")).unwrap();
    let options = as_cp(Rules { follow: Follow::Always, ..RULES });
    let targets = [1, 4].map(|size| {
        let target = place.path().join(format!("by {size}"));
        let rounds = [vec![operand(&source, &target)]];
        let (parts, failures) = share_with(size, options, &rounds, &|_, options, watch| {
            (Copy::new(options, watch).with_repeated_names(), usual)
        });
        assert_eq!(failures.len(), 2, "loops, by each of the ways: {failures:?}");
        assert_eq!(parts[0].ended.totals.files, MOST_BOUND as u64 + 10);
        assert!(size == 1 || parts.iter().all(|part| part.own.files > 0));
        target
    });
    assert_eq!(differences(&targets[0], &targets[1]), [] as [&str; 0]);
    let inode = |name: &str| fs::metadata(targets[1].join(name)).unwrap().ino();
    assert_eq!(inode("way/er/9"), inode("deep/er/9"));
    assert_eq!(inode("way/seven"), inode("flat/7"));
}

#[test]
fn a_file_of_a_snapshot_stands_for_one_source_whoever_asks() {
    let place = tempfile::tempdir().unwrap();
    let [source, target, snapshot] =
        ["source", "target", "snapshot"].map(|name| place.path().join(name));
    let names = |number: usize| ["one", "other"].map(|name| format!("{name}/{number}/file"));
    for number in 0..60 {
        let [one, other] = names(number);
        for name in [&one, &other] {
            let copies = [source.join(name), snapshot.join(name)];
            for path in copies {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, format!("{number}")).unwrap();
                let modified = std::time::SystemTime::UNIX_EPOCH;
                fs::File::open(&path).unwrap().set_modified(modified).unwrap();
            }
        }
        fs::remove_file(snapshot.join(&other)).unwrap();
        fs::hard_link(snapshot.join(&one), snapshot.join(&other)).unwrap();
    }
    let rounds = [vec![operand(&source.join("."), &target)]];
    let (_, failures) = share_with(4, options(), &rounds, &|_, options, watch| {
        let opened = fs::File::open(&snapshot).unwrap().into();
        let mut copy = Copy::new(options, watch);
        copy.references = Some(References::new(vec![opened], Vec::new(), true));
        (copy, usual)
    });
    assert_eq!(failures, [] as [&str; 0]);
    for number in 0..60 {
        let is_linked = |name: &String| {
            let inode = |root: &Path| fs::metadata(root.join(name)).unwrap().ino();
            inode(&target) == inode(&snapshot)
        };
        assert_eq!(names(number).iter().filter(|name| is_linked(name)).count(), 1, "{number}");
    }
}
