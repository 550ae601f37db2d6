//! Whole copies: whatever the order of the pieces and the number of threads, the same tree.

mod threads;

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::thread::Scope;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flatout_sys::cancel::CancelToken;

use super::event::{Event, Watch};
use super::evidence::{Evidence, Noting};
use super::options::{
    Appearance, Assurance, CopyOptions, Durability, Inventory, Overwrite, Preserve, Reach,
    Unchanged, When,
};
use super::{Clearing, Copy, Ended, Follow, Form, Operand, Rules, Skip, Specials};
use crate::compare::{Asked, Fidelity, compare};

/// Remembers what was said.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) failures: Mutex<Vec<String>>,
}

impl Watch for Heard {
    fn event(&self, event: &Event) {
        if let Event::Failed(failure) = event {
            self.failures.lock().unwrap().push(failure.to_string());
        }
    }
}

pub(super) const RULES: Rules = Rules {
    follow: Follow::Never,
    form: Form::Copy,
    attributes_only: false,
    specials: Specials::Made,
    clearing: Clearing::Nothing,
    skip: Skip::Nothing,
    asks: false,
    into_symlinks: false,
    through_dangling: false,
};

pub(super) fn options() -> CopyOptions {
    CopyOptions {
        preserve: Preserve::ALL,
        appearance: Appearance::Plain,
        unchanged: Unchanged::Recorded,
        overwrite: Overwrite::Writable,
        effect: super::options::Effect::Done,
        deletion: None,
        reach: Reach::Everything,
        method: None,
        reflink: When::Auto,
        sparse: When::Auto,
        assurance: Assurance::Accepted,
        durability: Durability::Cached,
        threads: 2,
        block_bytes: 0,
        depth: 0,
        tuned: Default::default(),
        max_fds: 0,
        inventory: Inventory::None,
        max_memory_bytes: 8 << 20,
        umask: None,
        cancel: CancelToken::manual(),
    }
}

pub(super) fn operand(source: &Path, target: &Path) -> Operand {
    Operand { source: source.to_owned(), target: target.to_owned() }
}

/// Copies with threads; returns what came of it and what was complained about.
pub(super) fn run(options: CopyOptions, source: &Path, target: &Path) -> (Ended, Vec<String>) {
    let heard = Heard::default();
    let copy = Copy::new(options, &heard);
    let ended = in_threads(&copy, operand(source, target));
    drop(copy);
    (ended, heard.failures.into_inner().unwrap())
}

fn in_threads(copy: &Copy<'_>, operand: Operand) -> Ended {
    fn hire<'scope, 'env>(scope: &'scope Scope<'scope, 'env>, copy: &'env Copy<'_>) -> bool {
        scope.spawn(move || copy.work(&|_: u32| hire(scope, copy)));
        true
    }
    std::thread::scope(|scope| copy.run(vec![operand], &|_: u32| hire(scope, copy)))
}

pub(super) fn differences(source: &Path, target: &Path) -> Vec<String> {
    let cancel = CancelToken::manual();
    let asked = Asked { fidelity: Fidelity::ALL, most_named: 20, cancel };
    let found = compare(source, target, asked).unwrap();
    assert!(found.is_complete);
    found.named.iter().map(|difference| format!("{difference:?}")).collect()
}

/// Makes a name as soon as something was copied, and hears what is said.
struct Meddler<'p> {
    name: &'p Path,
    said: Mutex<Vec<&'static str>>,
}

impl Watch for Meddler<'_> {
    fn event(&self, event: &Event) {
        match event {
            Event::Done { .. } if !self.name.exists() => fs::write(self.name, "").unwrap(),
            Event::Notice(notice) => self.said.lock().unwrap().push(notice.code),
            _ => {}
        }
    }

    fn wants_each(&self) -> bool {
        true
    }
}

#[test]
fn a_directory_that_changes_while_it_is_copied_is_said() {
    let place = tempfile::tempdir().unwrap();
    let [source, name] = ["source", "source/new"].map(|name| place.path().join(name));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "x").unwrap();
    fs::File::open(&source).unwrap().set_modified(UNIX_EPOCH).unwrap();
    for (target, expected) in [("first", &["directory_changed"][..]), ("second", &[])] {
        let meddler = Meddler { name: &name, said: Mutex::default() };
        in_threads(&Copy::new(options(), &meddler), operand(&source, &place.path().join(target)));
        assert_eq!(*meddler.said.lock().unwrap(), expected, "{target}");
    }
}

/// Puts other directories in the place of those that a copy goes back to, once it is deep in them.
struct Mover<'p> {
    target: &'p Path,
    failures: Mutex<Vec<String>>,
}

impl Watch for Mover<'_> {
    fn event(&self, event: &Event) {
        match event {
            Event::Done { .. } if self.target.join("a/b").exists() => {
                fs::rename(self.target.join("a/b"), self.target.join("elsewhere")).unwrap();
                fs::rename(self.target.join("a"), self.target.join("gone")).unwrap();
                fs::create_dir(self.target.join("a")).unwrap();
            }
            Event::Failed(failure) => self.failures.lock().unwrap().push(failure.to_string()),
            _ => {}
        }
    }

    fn wants_each(&self) -> bool {
        true
    }
}

#[test]
fn of_a_directory_that_is_not_found_again_the_side_is_named() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    fs::create_dir_all(source.join("a/b/c/d/e/f/g/h")).unwrap();
    fs::write(source.join("a/b/c/d/e/f/g/h/file"), "x").unwrap();
    let mover = Mover { target: &target, failures: Mutex::default() };
    let few = CopyOptions { threads: 1, max_fds: 24, ..options() };
    in_threads(&Copy::new(few, &mover), operand(&source, &target));
    let failures = mover.failures.into_inner().unwrap();
    let why = format!("cannot go back to {:?}: it was moved meanwhile", target.join("a"));
    assert_eq!(failures, [why]);
}

/// A small tree with something of each kind that needs no privilege.
pub(super) fn plant(root: &Path) {
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    for number in 0..100 {
        let bytes: Vec<u8> = (0..number * 97).map(|i| (i * 7) as u8).collect();
        fs::write(root.join(format!("a/file {number}")), bytes).unwrap();
    }
    fs::write(root.join("a/b/large"), vec![3; 3 << 20]).unwrap();
    let sparse = fs::File::create(root.join("a/b/sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    fs::hard_link(root.join("a/b/large"), root.join("a/b/c/same")).unwrap();
    fs::hard_link(root.join("a/b/large"), root.join("same too")).unwrap();
    symlink("nowhere", root.join("a/dangling")).unwrap();
    symlink("/", root.join("a/out")).unwrap();
    let fifo = root.join("a/fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let closed = root.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("inside"), "x").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(root.join("a/file 3"), fs::Permissions::from_mode(0o4755)).unwrap();
}

#[test]
fn every_order_of_the_pieces_yields_the_same_tree() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source);
    for threads in 1..=12 {
        let heard = Heard::default();
        let copy = Copy::new(CopyOptions { threads, ..options() }, &heard);
        let target = place.path().join(format!("target {threads}"));
        let ended = in_threads(&copy, operand(&source, &target));
        assert_eq!(*heard.failures.lock().unwrap(), [""; 0], "{threads} threads");
        assert_eq!(differences(&source, &target), [""; 0], "{threads} threads");
        assert_eq!(ended.totals.linked, 2, "{threads} threads");
    }
}

/// What comes into it besides changes its time.
#[test]
fn a_directory_that_other_operands_are_copied_into_has_the_time_of_its_source() {
    let place = tempfile::tempdir().unwrap();
    let [source, file, target] = ["source", "file", "target"].map(|name| place.path().join(name));
    fs::create_dir(&source).unwrap();
    fs::create_dir(&target).unwrap();
    fs::write(&file, "x").unwrap();
    fs::File::open(&source).unwrap().set_modified(UNIX_EPOCH).unwrap();
    let heard = Heard::default();
    let copy = Copy::new(CopyOptions { threads: 1, ..options() }, &heard);
    let operands =
        vec![operand(&source.join("."), &target.join(".")), operand(&file, &target.join("file"))];
    let ended = copy.run(operands, &|_: u32| false);
    assert_eq!((ended.totals.directories, ended.totals.files), (1, 1));
    assert_eq!(fs::metadata(&target).unwrap().modified().unwrap(), UNIX_EPOCH);
}

/// So many that they are copied together.
#[test]
fn names_of_one_file_and_symlinks_are_kept_where_there_are_many_in_a_directory() {
    const FILES: u64 = 100;
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    ["one", "two"].iter().for_each(|name| fs::create_dir_all(source.join(name)).unwrap());
    for number in 0..FILES {
        let [one, again] = ["", "again "].map(|what| source.join(format!("one/{what}{number}")));
        fs::write(&one, format!("{number}")).unwrap();
        fs::hard_link(&one, again).unwrap();
        fs::hard_link(&one, source.join(format!("two/{number}"))).unwrap();
        let link = source.join(format!("two/link {number}"));
        symlink(format!("../one/{number}"), &link).unwrap();
        if number % 10 == 0 {
            fs::hard_link(&link, source.join(format!("one/link {number}"))).unwrap();
        }
        let time = rustix::fs::Timespec { tv_sec: 1 << 30, tv_nsec: number as _ };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(rustix::fs::CWD, &link, &times, flags).unwrap();
    }
    for threads in [1, 2, 8] {
        let target = place.path().join(format!("target {threads}"));
        let (ended, complaints) = run(CopyOptions { threads, ..options() }, &source, &target);
        assert_eq!(complaints, [""; 0]);
        assert_eq!(differences(&source, &target), [""; 0], "{threads} threads");
        let totals = ended.totals;
        assert_eq!((totals.files, totals.linked, totals.others), (FILES, 210, FILES));
    }
}

/// Waits until a change of what was just written would show: of this file, the last that was.
pub(super) fn settle(last: &Path) {
    let last = fs::metadata(last).unwrap();
    let changed = Duration::new(last.ctime() as u64, last.ctime_nsec() as u32);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    while now().saturating_sub(changed) < Duration::from_millis(30) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Copies with a ledger; returns what came of it.
fn run_noted(options: CopyOptions, source: &Path, target: &Path) -> Ended {
    let heard = Heard::default();
    let ledger = target.parent().unwrap().join("state/ledger");
    let evidence = Evidence::open(&ledger, &options, Noting::AtOnce, (1 << 20, None));
    let mut copy = Copy::new(options, &heard);
    copy.evidence = evidence;
    let ended = in_threads(&copy, operand(source, target));
    copy.finish();
    assert_eq!(*heard.failures.lock().unwrap(), [""; 0]);
    ended
}

#[test]
fn a_second_run_finds_done_what_the_first_one_noted() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    plant(&source);
    settle(&source.join("a/file 3"));
    let first = run_noted(options(), &source, &target);
    let unnoted = run(options(), &source, &target).0;
    assert_eq!(unnoted.totals.files, first.totals.files, "without a ledger nothing is known");
    run_noted(options(), &source, &target);
    let again = run_noted(options(), &source, &target);
    assert_eq!(again.totals.files, 1, "the one with several names");
    let names = first.totals.files + first.totals.others + first.totals.linked;
    assert_eq!(again.totals.unchanged + again.totals.linked, names - 1);
    assert_eq!(differences(&source, &target), [""; 0]);
    let always = CopyOptions { unchanged: Unchanged::Never, ..options() };
    assert_eq!(run_noted(always, &source, &target).totals.files, first.totals.files);
    let quick = CopyOptions { unchanged: Unchanged::SizeAndTime, ..options() };
    let quick = run(quick, &source, &target).0;
    assert_eq!((quick.totals.files, quick.totals.unchanged), (0, names));
    assert_eq!(differences(&source, &target), [""; 0]);
}

#[test]
fn a_tree_deeper_than_a_path_may_be_long_needs_few_descriptors() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    fs::create_dir(&source).unwrap();
    let name = CString::new("d".repeat(100)).unwrap();
    let mut stack = crate::directory_stack::DirectoryStack::open(&source).unwrap();
    for _ in 0..200 {
        rustix::fs::mkdirat(stack.here(), &name, rustix::fs::Mode::RWXU).unwrap();
        // Two directories at each level, so that somebody comes back.
        rustix::fs::mkdirat(stack.here(), c"other", rustix::fs::Mode::RWXU).unwrap();
        stack.descend(&name).unwrap();
    }
    for (threads, most) in [(1, 40), (3, 0), (2, 64)] {
        let target = place.path().join(format!("target {threads}"));
        let options = CopyOptions { threads, max_fds: most, ..options() };
        let (ended, failures) = run(options, &source, &target);
        assert_eq!(failures, [""; 0]);
        assert_eq!(ended.totals.directories, 401);
        assert_eq!(differences(&source, &target), [""; 0]);
    }
}

#[test]
fn a_directory_with_more_names_than_are_kept_is_listed_again() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    fs::create_dir(&source).unwrap();
    for number in 0..3000 {
        fs::write(source.join(format!("a long name {number:0200}")), "").unwrap();
    }
    for number in 0..10 {
        fs::create_dir(source.join(format!("folder {number}"))).unwrap();
    }
    let (ended, failures) = run(options(), &source, &target);
    assert_eq!(failures, [""; 0]);
    assert_eq!((ended.totals.files, ended.totals.directories), (3000, 11));
    assert_eq!(differences(&source, &target), [""; 0]);
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    fs::create_dir(&source).unwrap();
    fs::create_dir_all(target.join("b")).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(source.join(name), name).unwrap();
    }
    let (ended, failures) = run(options(), &source, &target);
    assert_eq!(ended.totals.failed, 1);
    assert!(failures[0].contains("cannot overwrite") && failures[0].contains("target/b"));
    assert!(target.join("b").is_dir());
    assert_eq!(fs::read(target.join("c")).unwrap(), b"c");
}

#[test]
fn an_existing_file_is_replaced_and_not_written_through() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    fs::write(&source, "new").unwrap();
    fs::write(&target, "old and longer").unwrap();
    fs::hard_link(&target, place.path().join("another name")).unwrap();
    let before = fs::metadata(&target).unwrap().ino();
    let (_, failures) = run(options(), &source, &target);
    assert_eq!(failures, [""; 0]);
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!(fs::read(place.path().join("another name")).unwrap(), b"old and longer");
    assert_ne!(fs::metadata(&target).unwrap().ino(), before);
    fs::write(&source, "newest").unwrap();
    let in_place = CopyOptions { appearance: Appearance::InPlace, ..options() };
    let before = fs::metadata(&target).unwrap().ino();
    run(in_place, &source, &target);
    assert_eq!(fs::read(&target).unwrap(), b"newest");
    assert_eq!(fs::metadata(&target).unwrap().ino(), before);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3, "no temporary is left");
}

#[test]
fn a_copy_takes_more_operands_when_it_has_ended() {
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    fs::write(&first, "1").unwrap();
    fs::write(&second, "2").unwrap();
    let heard = Heard::default();
    let copy = Copy::new(options(), &heard);
    for (source, name) in [(&first, "a"), (&second, "b")] {
        let target = place.path().join(name);
        in_threads(&copy, operand(source, &target));
        assert_eq!(fs::read(source).unwrap(), fs::read(&target).unwrap());
    }
    assert_eq!(copy.progress().files, 2);
}

#[test]
fn what_was_written_in_the_same_tick_is_no_copy() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    fs::write(&source, "new").unwrap();
    fs::write(&target, "old").unwrap();
    // As if both had been written within one tick of the clock: nobody has set the target's time.
    let file = fs::File::options().write(true).open(&source).unwrap();
    file.set_modified(fs::metadata(&target).unwrap().modified().unwrap()).unwrap();
    run(options(), &source, &target);
    assert_eq!(fs::read(&target).unwrap(), b"new");
}

#[test]
fn two_names_of_one_target_become_two_files_again() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    for root in [&source, &target] {
        fs::create_dir(root).unwrap();
        fs::write(root.join("x"), "of x").unwrap();
    }
    fs::write(source.join("y"), "what is in y").unwrap();
    fs::hard_link(target.join("x"), target.join("y")).unwrap();
    for appearance in [Appearance::InPlace, Appearance::Plain] {
        let options = CopyOptions { appearance, ..options() };
        let (_, failures) = run(options, &source, &target);
        assert_eq!(failures, [""; 0]);
        assert_eq!(differences(&source, &target), [""; 0]);
    }
}

#[test]
fn files_of_others_that_look_like_ours_stay_and_ours_go() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    fs::create_dir(&source).unwrap();
    fs::create_dir(&target).unwrap();
    let theirs = target.join(".flatout-copy-notes.txt");
    let left = target.join(".flatout-copy-1-2-3");
    fs::write(&theirs, "notes").unwrap();
    fs::write(&left, "half a fi").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o600)).unwrap();
    run(options(), &source, &target);
    assert!(theirs.exists() && !left.exists());
}

#[test]
fn a_file_that_ends_earlier_than_it_says_is_copied_as_far_as_it_goes() {
    let source = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    let Ok(expected) = fs::read(source) else { return };
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("target");
    let (_, failures) = run(options(), source, &target);
    assert_eq!(failures, [""; 0]);
    assert_eq!(fs::read(&target).unwrap(), expected);
}

#[test]
fn siblings_that_nobody_has_begun_with_cost_no_descriptors() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    let mut here = source.clone();
    for _ in 0..60 {
        for name in ["a", "b", "c"] {
            fs::create_dir_all(here.join(name).join("below")).unwrap();
        }
        here.push("c");
    }
    let target = place.path().join("target");
    let (_, failures) = run(CopyOptions { threads: 4, max_fds: 60, ..options() }, &source, &target);
    assert_eq!(failures, [""; 0]);
    assert_eq!(differences(&source, &target), [""; 0]);
}

#[test]
fn reading_what_is_ones_own_changes_no_access_time() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    fs::create_dir_all(source.join("directory/below")).unwrap();
    fs::write(source.join("file"), "x").unwrap();
    fs::write(source.join(".gitignore"), "nothing").unwrap();
    // Older than the last change: wherever the kernel notes any, it would note this one.
    let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let all = ["file", ".gitignore", "directory/below", "directory"];
    for name in all {
        let file = fs::File::open(source.join(name)).unwrap();
        file.set_times(fs::FileTimes::new().set_accessed(old)).unwrap();
    }
    let heard = Heard::default();
    let mut copy = Copy::new(options(), &heard);
    copy.selection.obeys_gitignore = true;
    assert_eq!(in_threads(&copy, operand(&source, &target)).totals.files, 2);
    assert_eq!(*heard.failures.lock().unwrap(), [""; 0]);
    for path in all.iter().flat_map(|name| [source.join(name), target.join(name)]) {
        assert_eq!(fs::metadata(&path).unwrap().accessed().unwrap(), old, "{path:?}");
    }
}
