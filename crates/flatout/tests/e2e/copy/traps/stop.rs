//! Copies that are interrupted or killed, and the run after that.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::super::copier::{copier, copy};
use super::super::oracle::{Aspect, Leeway, Portrait, assert_same};
use super::{assert_no_litter, pair, under_test};
use crate::bin::Folder;
use crate::faulty::{Faults, Faulty};
use crate::fixture::{Random, is_full, random_bytes, seed};
use crate::skip::needs;

const READ: Leeway = Leeway::but(&[Aspect::Accessed]);

#[test]
fn ctrl_c_leaves_no_temporary_and_says_how_to_go_on() {
    needs!(under_test());
    let slow = Faults { delay: Duration::from_millis(8), is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(slow));
    for name in ["one", "two", "three"] {
        faulty.put(name, &random_bytes(8 << 20, 3));
    }
    for options in [&["-T"][..], &["-T", "--atomic"], &["-T", "--engine", "uring"]] {
        let folder = Folder::new();
        let target = folder.join("copy");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("two"), "the old one").unwrap();
        faulty.restart(|faults| faults.delay = slow.delay);
        let run = Folder::new();
        let mut running = copier(&run, options, (faulty.path(), &target)).start();
        running.wait_until("status", |_| faulty.read_bytes() >= 1 << 20);
        running.interrupt();
        let ran = running.wait();
        ran.died_of(Signal::INT);
        let hint = ran.stderr.to_lowercase();
        assert!(hint.contains("again") || hint.contains("rerun"), "{ran}");
        assert_no_litter(faulty.path(), &target);
        assert_eq!(fs::read(target.join("two")).unwrap(), b"the old one", "{ran}");
        faulty.change(|faults| faults.delay = Duration::ZERO);
        copy(options, faulty.path(), &target).exits(0);
        for name in ["one", "two", "three"] {
            assert!(fs::read(target.join(name)).unwrap() == faulty.bytes(name).unwrap());
        }
    }
    faulty.finish();
}

/// Enough of everything for a copy to be killed in all of its steps.
fn plant(tree: &Path) {
    for index in 0..40 {
        let directory = tree.join(format!("dir{index}"));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..10 {
            let path = directory.join(format!("file{file}"));
            fs::write(&path, random_bytes(3000 * (1 + file), index)).unwrap();
        }
        fs::hard_link(directory.join("file1"), directory.join("again")).unwrap();
        std::os::unix::fs::symlink("file1", directory.join("link")).unwrap();
    }
    fs::write(tree.join("large"), random_bytes(12 << 20, 77)).unwrap();
    fs::write(tree.join("old"), random_bytes(4 << 20, 78)).unwrap();
}

#[test]
fn after_sigkill_at_any_moment_a_rerun_completes_the_copy() {
    needs!(under_test());
    let seed = seed();
    let mut random = Random::new(seed);
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    plant(&tree);
    let source = Portrait::of(&tree);
    let (old, new) = (b"the old one".to_vec(), fs::read(tree.join("old")).unwrap());
    let begun = std::time::Instant::now();
    copy::<&str>(&[], &tree, &target).exits(0);
    let whole = begun.elapsed();
    let rounds = if is_full() { 200 } else { 9 };
    for round in 0..rounds {
        let _ = fs::remove_dir_all(&target);
        fs::create_dir(&target).unwrap();
        fs::write(target.join("old"), &old).unwrap();
        let options = [&["-T"][..], &["-T", "--atomic"], &["-T", "--threads", "4"]][round % 3];
        let mut context = format!("FLATOUT_TEST_SEED={seed} round {round} {options:?}");
        // Once, or while what is left by another is put right.
        for _ in 0..1 + random.below(2) {
            let run = Folder::new();
            let running = copier(&run, options, (&tree, &target)).start();
            // The moment is to be any: nothing depends on which one it is.
            std::thread::sleep(whole.mul_f64(random.below(1000) as f64 / 1000.0));
            running.signal(Signal::KILL);
            let ran = running.wait();
            context = format!("{context}{ran}");
            let kept = fs::read(target.join("old")).unwrap();
            assert!(kept == old || kept == new, "damaged: {context}");
        }
        let killed = Portrait::of(&target);
        for (path, entry) in killed.entries.iter().filter(|(path, _)| *path != b"old") {
            let Some(wanted) = source.entries.get(path) else { continue };
            let is_dated = entry.modified == wanted.modified && !entry.data.is_empty();
            let path = path.escape_ascii();
            assert!(!is_dated || entry.digest == wanted.digest, "{path} looks done: {context}");
        }
        let ran = copy(&["-T"], &tree, &target);
        ran.exits(0);
        assert_same(&source, &Portrait::of(&target), READ, format!("{context}\nrerun{ran}"));
    }
}
