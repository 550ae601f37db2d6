//! Filesystems that fail at the n-th request of a kind, for each n of a small copy.

mod answer;
mod flaky;
mod request;
mod server;
mod store;
mod sweep;

use std::ffi::OsStr;
use std::fs;
use std::time::Duration;

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};
use rustix::io::Errno;

use flaky::Flaky;
use request::{Effect, Kind, Trap};
use sweep::{Before, Bench, Side, is_rerun_after};

use crate::bin::Folder;
use crate::fixture::{Random, is_full, seed};
use crate::skip::needs;

/// Of the errors that are only other words for the same, a run without `--full` tries one of so
/// many.
const ONE_OF: usize = 8;

/// Springs one trap after the other, with one thread, so that each n occurs.
fn sweep(bench: &Bench, side: Side) {
    let mut random = dice();
    for (kind, count) in bench.requests(side) {
        for nth in 1..=count {
            for (index, effect) in REFUSALS.into_iter().enumerate() {
                if index == 0 || is_full() || random.below(ONE_OF) == 0 {
                    bench.spring(side, Trap { kind, nth, effect, lasts: false });
                }
            }
        }
    }
}

/// Springs some traps.
fn sample(bench: &Bench, side: Side, effects: &[Effect], lasts: bool) {
    let mut random = dice();
    for (kind, count) in bench.requests(side) {
        for nth in 1..=count {
            if is_full() || random.below(ONE_OF) == 0 {
                let effect = effects[random.below(effects.len())];
                bench.spring(side, Trap { kind, nth, effect, lasts });
            }
        }
    }
}

fn dice() -> Random {
    let seed = seed();
    println!("FLATOUT_TEST_SEED={seed}");
    Random::new(seed)
}

const REFUSALS: [Effect; 4] = [
    Effect::Error(Errno::IO),
    Effect::Error(Errno::NOSPC),
    Effect::Error(Errno::DQUOT),
    Effect::Error(Errno::INTR),
];

#[test]
fn no_request_to_the_source_can_fail_unnoticed() {
    let bench = needs!(Bench::new(Before::Nothing, &["--threads", "1"]));
    sweep(&bench, Side::Source);
    bench.finish();
}

#[test]
fn no_request_to_an_empty_target_can_fail_unnoticed() {
    let bench = needs!(Bench::new(Before::Nothing, &["--threads", "1"]));
    sweep(&bench, Side::Target);
    bench.finish();
}

#[test]
fn no_request_to_a_target_with_an_older_copy_can_fail_unnoticed() {
    let bench = needs!(Bench::new(Before::Older, &["--threads", "1"]));
    sweep(&bench, Side::Target);
    bench.finish();
}

/// What is as new as its source stays as it is: the next run must not take for that what failed. Only
/// requests after which there is a next run.
#[test]
fn what_could_not_be_completed_is_not_up_to_date() {
    for before in [Before::Nothing, Before::LongAgo] {
        let bench = needs!(Bench::new(before, &["--threads", "1", "-u"]));
        for (kind, count) in bench.requests(Side::Target) {
            // What is too large for the filesystem is none of its failures, and missing all the same.
            let effects = if kind == Kind::Setxattr { 2 } else { 1 };
            for nth in (1..=count).filter(|nth| is_rerun_after(*nth)) {
                for effect in REFUSALS.into_iter().take(effects) {
                    bench.spring(Side::Target, Trap { kind, nth, effect, lasts: false });
                }
            }
        }
        bench.finish();
    }
}

/// What the target has besides must go, and is not forgotten where it cannot be listed.
#[test]
fn attributes_that_cannot_be_listed_are_no_success() {
    const WAYS: [&[&str]; 2] =
        [&["--threads", "1", "--in-place"], &["--threads", "1", "--checksum"]];
    for options in WAYS {
        let bench = needs!(Bench::new(Before::Older, options));
        let kind = Kind::Listxattr;
        for nth in 1..=bench.requests(Side::Target)[&kind] {
            bench.spring(Side::Target, Trap { kind, nth, effect: REFUSALS[0], lasts: false });
        }
        bench.finish();
    }
}

#[test]
fn a_file_whose_attributes_cannot_be_handed_on_stays() {
    let target = needs!(Flaky::new());
    let (folder, old) = (Folder::new(), target.path().join("f"));
    fs::write(folder.join("f"), "new").unwrap();
    fs::write(&old, "old").unwrap();
    lsetxattr(&old, "user.kept", b"value", XattrFlags::empty()).unwrap();
    let trap = Trap { kind: Kind::Setxattr, nth: 1, effect: REFUSALS[0], lasts: false };
    for (trap, code, content) in [(Some(trap), 1, "old"), (None, 0, "new")] {
        target.set(trap);
        let words = ["copy", "--no-preserve=xattr", "f"].map(OsStr::new);
        let ran = folder.flatout(words.into_iter().chain([old.as_os_str()])).run();
        assert_eq!(target.disarm(), trap.is_some(), "{ran}");
        ran.exits(code);
        assert_eq!(fs::read_to_string(&old).unwrap(), content, "{ran}");
        let mut value = [0; 8];
        assert_eq!(lgetxattr(&old, "user.kept", &mut value), Ok(5), "{ran}");
    }
    target.finish();
}

/// Other ways to write, of which a run without `--full` tries some requests.
const WAYS: [(Before, &[&str]); 11] = [
    (Before::Older, &["--threads", "1", "--in-place"]),
    (Before::Older, &["--threads", "1", "--in-place", "--delta"]),
    (Before::Older, &["--threads", "1", "--atomic", "--always"]),
    (Before::Older, &["--threads", "1", "--checksum", "--sync"]),
    (Before::Nothing, &["--threads", "1", "--verify"]),
    (Before::Older, &["--threads", "1", "--verify"]),
    (Before::Mixed, &["--threads", "1", "--delete"]),
    (Before::Nothing, &["--threads", "1", "--engine", "mmap", "--sparse", "always"]),
    (Before::Nothing, &["--threads", "1", "--engine", "uring"]),
    (Before::Nothing, &["--engine", "copy-file-range"]),
    (Before::Nothing, &["--engine", "splice"]),
];

#[test]
fn no_request_can_fail_unnoticed_by_any_way_of_writing() {
    for (before, options) in WAYS {
        let bench = needs!(Bench::new(before, options));
        for side in [Side::Source, Side::Target] {
            sample(&bench, side, &REFUSALS, false);
        }
        bench.finish();
    }
}

/// As a device that broke, or has no room, and stays like that.
#[test]
fn what_fails_once_and_for_all_is_said_and_ends() {
    for before in [Before::Nothing, Before::Older] {
        let bench = needs!(Bench::new(before, &[]));
        for side in [Side::Source, Side::Target] {
            sample(&bench, side, &REFUSALS[..3], true);
        }
        bench.finish();
    }
}

#[test]
fn short_and_interrupted_answers_lose_nothing() {
    const ENGINES: [&[&str]; 5] = [
        &["--threads", "1"],
        &["--threads", "1", "--engine", "copy-file-range"],
        &["--threads", "1", "--engine", "splice"],
        &["--threads", "1", "--engine", "mmap"],
        &["--threads", "1", "--engine", "uring"],
    ];
    for options in ENGINES {
        let bench = needs!(Bench::new(Before::Nothing, options));
        bench.is_uncached(true);
        for (side, kind) in [(Side::Source, Kind::Read), (Side::Target, Kind::Write)] {
            for nth in 1..=bench.requests(side)[&kind] {
                for effect in [Effect::Short, Effect::Error(Errno::INTR)] {
                    let lasts = nth == 1 && matches!(effect, Effect::Short);
                    let trap = Trap { kind, nth, effect, lasts };
                    assert_eq!(bench.spring(side, trap), 0, "{options:?} {side:?} {trap:?}");
                }
            }
        }
        let trap = Trap { kind: Kind::Readdir, nth: 1, effect: Effect::Short, lasts: true };
        assert_eq!(bench.spring(Side::Source, trap), 0, "{options:?}");
        bench.finish();
    }
}

#[test]
fn slow_answers_lose_nothing() {
    let bench = needs!(Bench::new(Before::Nothing, &[]));
    for side in [Side::Source, Side::Target] {
        for (kind, _) in bench.requests(side) {
            let effect = Effect::Slow(Duration::from_millis(5));
            let trap = Trap { kind, nth: 1, effect, lasts: true };
            assert_eq!(bench.spring(side, trap), 0, "{side:?} {trap:?}");
        }
    }
    bench.finish();
}
