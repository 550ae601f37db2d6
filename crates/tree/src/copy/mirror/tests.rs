//! Nothing outside a target goes, whoever swaps what in it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;

use flatout_sys::cancel::CancelToken;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::copy::event::{Event, Watch};
use crate::copy::options::{CopyOptions, Deletion, Unchanged};
use crate::copy::tests::{options, run};
use crate::copy::{Copy, Operand};

const ROUNDS: usize = 300;

fn mirroring() -> CopyOptions {
    let deletion = Some(Deletion { most: None, takes_excluded: false });
    CopyOptions { deletion, unchanged: Unchanged::Never, ..options() }
}

fn plant(root: &Path) {
    fs::create_dir_all(root.join("in/deep")).unwrap();
    for name in ["one", "in/two", "in/deep/three"] {
        fs::write(root.join(name), name).unwrap();
    }
}

#[test]
fn a_name_that_something_makes_room_for_stays_a_name_of_its_file() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for directory in ["source/d", "target/d/dir"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    fs::write(at("source/first"), "x").unwrap();
    symlink("nowhere", at("target/d/link")).unwrap();
    for name in ["source/d/dir", "source/d/link"] {
        fs::hard_link(at("source/first"), at(name)).unwrap();
    }
    run(mirroring(), &at("source/."), &at("target/."));
    for name in ["first", "d/dir", "d/link"] {
        assert_eq!(fs::symlink_metadata(at("target").join(name)).unwrap().nlink(), 3, "{name}");
    }
}

/// Names beyond ASCII are looked at closely, for they may have other spellings.
#[test]
fn another_name_of_a_file_that_stays_goes() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for name in ["source", "target"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("stays"), "x").unwrap();
    }
    fs::write(at("target/\u{e9}"), "x").unwrap();
    for number in 0..20 {
        for name in ["name", "\u{e9}"] {
            fs::hard_link(at("target/stays"), at(&format!("target/{name}{number}"))).unwrap();
        }
    }
    run(mirroring(), &at("source/."), &at("target/."));
    assert_eq!(fs::read_dir(at("target")).unwrap().count(), 1);
}

/// Has a symlink take the place of a directory for a moment.
fn swap_to_and_fro(victim: &Path, link: &Path) {
    let swap = || renameat_with(CWD, victim, CWD, link, RenameFlags::EXCHANGE);
    if swap().is_ok() {
        let _its_place_may_be_gone = swap();
    }
}

#[test]
fn a_directory_that_is_swapped_for_a_symlink_takes_nothing_outside_with_it() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("source")).unwrap();
    plant(&at("outside"));
    symlink("outside", at("link")).unwrap();
    let victims = ["target/old", "target/old/in", "target/old/in/deep"].map(at);
    // Held while the trees are made ready; `true`: it is over.
    let turns = Mutex::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for victim in victims.iter().cycle() {
                match turns.lock() {
                    Ok(is_over) if !*is_over => swap_to_and_fro(victim, &at("link")),
                    _ => break,
                }
                std::thread::yield_now();
            }
        });
        for _ in 0..ROUNDS {
            let ready = turns.lock().unwrap();
            if !at("link").is_symlink() {
                crate::remove::remove_tree(&at("link")).unwrap();
                symlink("outside", at("link")).unwrap();
            }
            crate::remove::remove_tree(&at("target")).unwrap();
            plant(&at("target/old"));
            drop(ready);
            let _whatever_comes = run(mirroring(), &at("source"), &at("target"));
        }
        *turns.lock().unwrap() = true;
    });
    for name in ["one", "in/two", "in/deep/three"] {
        assert_eq!(fs::read_to_string(at("outside").join(name)).unwrap(), name);
    }
}

#[test]
fn a_symlink_to_a_directory_goes_and_what_it_leads_to_stays() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("source/was")).unwrap();
    plant(&at("outside"));
    fs::create_dir(at("target")).unwrap();
    for name in ["target/surplus", "target/was"] {
        symlink(at("outside"), at(name)).unwrap();
    }
    let (ended, failures) = run(mirroring(), &at("source"), &at("target"));
    assert_eq!(failures, [""; 0]);
    assert_eq!(ended.totals.deleted, 1);
    assert!(at("target/was").is_dir() && !at("target/was").is_symlink());
    assert!(!at("target/surplus").is_symlink() && at("outside/in/deep/three").exists());
}

#[test]
fn many_names_go_by_several_threads_and_are_counted() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("source")).unwrap();
    fs::create_dir_all(at("target")).unwrap();
    for number in 0..3_000 {
        fs::write(at(&format!("target/{number}")), "").unwrap();
    }
    let options = CopyOptions { threads: 4, ..mirroring() };
    let most = options.deletion.map(|deletion| Deletion { most: Some(1_000), ..deletion });
    let (ended, failures) =
        run(CopyOptions { deletion: most, ..options }, &at("source"), &at("target"));
    assert_eq!((ended.totals.deleted, ended.totals.spared), (1_000, 2_000));
    assert_eq!(failures, [""; 0]);
    let (ended, _) = run(options, &at("source"), &at("target"));
    assert_eq!((ended.totals.deleted, ended.totals.spared), (2_000, 0));
    assert_eq!(fs::read_dir(at("target")).unwrap().count(), 0);
}

/// Stops the copy when the first thing is gone.
struct Impatient {
    cancel: CancelToken,
    failures: Mutex<u32>,
}

impl Watch for Impatient {
    fn event(&self, event: &Event) {
        match event {
            Event::Deleted { .. } => self.cancel.cancel(),
            Event::Failed(_) => *self.failures.lock().unwrap() += 1,
            _ => {}
        }
    }

    fn wants_each(&self) -> bool {
        true
    }
}

#[test]
fn who_stops_a_copy_stops_its_deletions_and_that_is_no_failure() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("source")).unwrap();
    plant(&at("target/old"));
    plant(&at("target/other"));
    let cancel = CancelToken::manual();
    let watch = Impatient { cancel, failures: Mutex::new(0) };
    let copy = Copy::new(CopyOptions { cancel, threads: 1, ..mirroring() }, &watch);
    let operand = Operand { source: at("source"), target: at("target") };
    let ended = copy.run(vec![operand], &|_| false);
    assert!(ended.interrupted);
    assert_eq!((ended.totals.deleted, ended.totals.failed), (1, 0));
    assert_eq!(*watch.failures.lock().unwrap(), 0);
    assert!(at("target/old").is_dir() && at("target/other").is_dir());
}

/// Moves a directory away when the first thing in it is gone.
struct Mover([std::path::PathBuf; 2]);

impl Watch for Mover {
    fn event(&self, event: &Event) {
        if let Event::Deleted { .. } = event {
            let _once = fs::rename(&self.0[0], &self.0[1]);
        }
    }

    fn wants_each(&self) -> bool {
        true
    }
}

/// It got a mode of its own so that it could be emptied.
#[test]
fn a_directory_that_is_moved_away_while_it_is_emptied_keeps_its_mode() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("source")).unwrap();
    plant(&at("target/old"));
    fs::set_permissions(at("target/old/in/deep"), fs::Permissions::from_mode(0o555)).unwrap();
    let watch = Mover(["target/old/in/deep", "elsewhere"].map(at));
    fs::remove_file(at("target/old/one")).unwrap();
    fs::remove_file(at("target/old/in/two")).unwrap();
    let copy = Copy::new(CopyOptions { threads: 1, ..mirroring() }, &watch);
    let operand = Operand { source: at("source"), target: at("target") };
    copy.run(vec![operand], &|_| false);
    assert_eq!(fs::metadata(at("elsewhere")).unwrap().mode() & 0o7777, 0o555);
}
