//! How many threads a copy asks for.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Copies, and counts the threads that were asked for; they come, or none does.
fn hired(threads: u32, come: bool, source: &Path, target: &Path) -> usize {
    fn hire<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        copy: &'env Copy<'_>,
        (come, asked): (bool, &'env AtomicUsize),
    ) -> bool {
        asked.fetch_add(1, Ordering::Relaxed);
        if come {
            scope.spawn(move || copy.work(&|_: u32| hire(scope, copy, (come, asked))));
        }
        come
    }
    let (heard, asked) = (Heard::default(), AtomicUsize::new(0));
    let copy = Copy::new(CopyOptions { threads, ..options() }, &heard);
    let ended = std::thread::scope(|scope| {
        copy.run(vec![operand(source, target)], &|_: u32| hire(scope, &copy, (come, &asked)))
    });
    assert_eq!((ended.interrupted, ended.totals.failed), (false, 0));
    match source.is_dir() {
        true => assert_eq!(differences(source, target), [""; 0]),
        false => assert_eq!(fs::read(source).unwrap(), fs::read(target).unwrap()),
    }
    asked.into_inner()
}

#[test]
fn threads_are_started_where_there_is_work_for_them() {
    let place = tempfile::tempdir().unwrap();
    let (one, few, many) =
        (place.path().join("one"), place.path().join("few"), place.path().join("many"));
    fs::write(&one, "x").unwrap();
    for (root, count) in [(&few, 20), (&many, 200)] {
        fs::create_dir(root).unwrap();
        (0..count).for_each(|number| fs::write(root.join(format!("{number}")), "x").unwrap());
    }
    let to = |name: &str| place.path().join(name);
    assert_eq!(hired(32, true, &one, &to("a")), 0);
    assert_eq!(hired(32, true, &few, &to("b")), 0);
    // 32 names to a piece, the first of which is the caller's.
    let started = hired(32, true, &many, &to("c"));
    assert!((1..=6).contains(&started), "{started}");
    assert_eq!(hired(2, true, &many, &to("d")), 1);
    assert_eq!(hired(1, true, &many, &to("e")), 0);
    // Many names in a directory are looked up by several before they are made.
    let most = to("most");
    fs::create_dir(&most).unwrap();
    (0..3000).for_each(|number| fs::write(most.join(format!("{number}")), "x").unwrap());
    assert_eq!(hired(2, true, &most, &to("g")), 1);
    assert_eq!(hired(1, true, &most, &to("h")), 0);
    assert_eq!(hired(32, false, &many, &to("f")), 1, "nobody asks twice for what cannot be had");
}
