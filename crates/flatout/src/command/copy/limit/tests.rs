//! Limits from made-up profiles, held against sums done by hand.

use flatout_io::{Caching, Engine, Evidence, Profile, ProfileKey, Split, Tuning};

use super::*;

const GIB: f64 = (1_u64 << 30) as f64;

fn entry(work: Work, class: (SizeClass, bool), pair: (&str, &str), rate: f64) -> ProfileEntry {
    let tiny = class.0 == SizeClass::Tiny;
    ProfileEntry {
        key: ProfileKey {
            machine: "m".to_owned(),
            kernel: String::new(),
            cpus: 2,
            work,
            size: class.0,
            cached: class.1,
            source: pair.0.to_owned(),
            target: pair.1.to_owned(),
        },
        tuning: Tuning {
            engine: Engine::Sync,
            caching: Caching::Buffered,
            block_bytes: 256 << 10,
            depth: 1,
            threads: if class.1 { 2 } else { 8 },
            split: Split::Contiguous,
        },
        limit_bytes_per_s: rate,
        file_bytes: if tiny { 4096 } else { 1 << 28 },
        evidence: Evidence { time: "2026-11-22T12:00:00Z".to_owned(), n: 6, ci95: None },
    }
}

/// 4 GiB/s from the cache, 1 GiB/s from the device, written at 0.5 GiB/s, read at 2; 50,000 small
/// files/s from the cache, 10,000 from the device.
fn profile() -> MachineProfile {
    let mut profile = Profile::default();
    let both = ("a", "a");
    for (work, class, pair, rate) in [
        (Work::Copy, (SizeClass::Large, true), both, 4.0 * GIB),
        (Work::Copy, (SizeClass::Large, false), both, GIB),
        (Work::Copy, (SizeClass::Tiny, true), both, 50_000.0 * 4096.0),
        (Work::Copy, (SizeClass::Tiny, false), both, 10_000.0 * 4096.0),
        (Work::Write, (SizeClass::Large, true), ("", "a"), 0.5 * GIB),
        (Work::Read, (SizeClass::Large, false), ("a", ""), 2.0 * GIB),
    ] {
        profile.put(entry(work, class, pair, rate));
    }
    MachineProfile { profile, machine: "m".to_owned(), kernel: String::new(), cpus: 2 }
}

fn limits() -> Limits {
    Limits::of_pair(&profile(), "a", "a").unwrap()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-3 * other
}

#[test]
fn the_limit_is_the_longer_of_taking_and_writing() {
    let moved = Moved {
        files: 1,
        bytes: 4 << 30,
        fetched_bytes: 0,
        written_bytes: Some(0),
        read_back_bytes: 0,
        elapsed_ns: 2_000_000_000,
    };
    let share = limits().share(&moved).unwrap();
    assert!(near(share.limit_s, 1.0) && near(share.ratio.unwrap(), 0.5), "{share:?}");
    assert_eq!(share.limiter, "moving bytes");
    // 1 GiB of it is on the device already: 2 s.
    let written = Moved { written_bytes: Some(1 << 30), ..moved };
    let share = limits().share(&written).unwrap();
    assert!(near(share.limit_s, 2.0), "{share:?}");
    assert_eq!((share.limiter, near(share.ratio.unwrap(), 1.0)), ("writing to the device", true));
    // All of it came from the device, which cannot write meanwhile: 4 GiB at 1, or 2 + 2 s.
    let cold = Moved { fetched_bytes: 4 << 30, ..written };
    let share = limits().share(&cold).unwrap();
    assert!(near(share.limit_s, 4.0), "{share:?}");
    // Read back: 2 s more.
    let back = Moved { read_back_bytes: 4 << 30, elapsed_ns: 8_000_000_000, ..cold };
    let share = limits().share(&back).unwrap();
    assert!(near(share.limit_s, 6.0));
    assert_eq!(share.limiter, "reading from the device", "4 s of it");
}

#[test]
fn small_files_are_limited_by_their_number() {
    let moved = Moved {
        files: 50_000,
        bytes: 50_000 * 4096,
        elapsed_ns: 2_000_000_000,
        ..Moved::default()
    };
    let share = limits().share(&moved).unwrap();
    assert!(near(share.limit_s, 1.0), "{share:?}");
    assert_eq!(share.limiter, "making files");
    let cold = Moved { fetched_bytes: moved.bytes, ..moved };
    assert!(near(limits().share(&cold).unwrap().limit_s, 5.0));
}

#[test]
fn what_is_faster_than_its_limit_is_not_called_a_share() {
    let moved = Moved { files: 1, bytes: 4 << 30, elapsed_ns: 500_000_000, ..Moved::default() };
    let share = limits().share(&moved).unwrap();
    assert!(near(share.ratio.unwrap(), 2.0));
    assert_eq!(share.text(), "faster than the limit that flatout tune measured on 2026-11-22");
    assert_eq!(share.document()["limit_low"], true);
    let close = Moved { elapsed_ns: 990_000_000, ..moved };
    let text = limits().share(&close).unwrap().text();
    assert_eq!(text, "100 % of the limit measured on 2026-11-22 (moving bytes)");
}

#[test]
fn nothing_is_said_where_nothing_is_known() {
    assert!(Limits::of_pair(&profile(), "a", "b").is_none());
    assert!(without(|key| key.work == Work::Copy && key.cached).is_none());
    let moved = Moved { files: 1, bytes: 1, elapsed_ns: LEAST_NS - 1, ..Moved::default() };
    assert_eq!(limits().share(&moved), None, "too short");
    let none = Moved { files: 0, elapsed_ns: 1_000_000_000, ..moved };
    assert_eq!(limits().share(&none), None, "nothing was moved");
    assert!(Limits::of(&profile(), [].iter()).is_none());
}

/// The limits where these were left out.
fn without(is_left_out: impl Fn(&ProfileKey) -> bool) -> Option<Limits> {
    let mut partial = profile();
    partial.profile.entries.retain(|entry| !is_left_out(&entry.key));
    Limits::of_pair(&partial, "a", "a")
}

#[test]
fn what_was_left_out_is_said_where_the_copy_did_it() {
    let moved = Moved { files: 1, bytes: 4 << 30, elapsed_ns: 2_000_000_000, ..Moved::default() };
    let text = |limits: Option<Limits>, moved| limits.unwrap().share(&moved).unwrap().text();
    let half = "50 % of the limit measured on 2026-11-22 (moving bytes)";
    let no_write = || without(|key| key.work == Work::Write);
    assert_eq!(text(no_write(), moved), half, "nothing is on the device yet");
    assert_eq!(text(no_write(), Moved { written_bytes: Some(1 << 20), ..moved }), half, "a little");
    let written = Moved { written_bytes: Some(1 << 30), ..moved };
    let clause = "; flatout tune of 2026-11-22 left out writing";
    assert_eq!(text(no_write(), written), format!("{half}{clause}"));
    assert_eq!(no_write().unwrap().share(&written).unwrap().document()["left_out"][0], "writing");
    let cold = Moved { fetched_bytes: 4 << 30, ..moved };
    let said = text(without(|key| !key.cached), cold);
    assert!(said.ends_with("left out copying what is not cached and reading"), "{said}");
    for (size, kind) in [(SizeClass::Tiny, "small files"), (SizeClass::Large, "a large file")] {
        let limits = without(|key| key.work == Work::Copy && key.size == size);
        let document = limits.as_ref().unwrap().share(&moved).unwrap().document();
        assert_eq!((&document["ratio"], &document["limit_low"]), (&Value::Null, &json!(false)));
        let end = format!("flatout tune of 2026-11-22 left out copying {kind}");
        assert_eq!(text(limits, moved), format!("no limit is known; {end}"));
    }
}

#[test]
fn settings_are_those_of_cached_files_and_threads_of_both_as_far_as_they_were_measured() {
    let tuned = limits().tuned;
    assert_eq!((tuned.usual_threads, tuned.most_threads), (Some(2), Some(8)));
    assert_eq!(tuned.large.map(|large| large.threads), Some(2));
    let of = |size, cached| without(|key| (key.size, key.cached) == (size, cached)).unwrap().tuned;
    assert_eq!(of(SizeClass::Tiny, false).most_threads, None, "as many as usual, not two");
    assert_eq!(of(SizeClass::Tiny, true).usual_threads, None);
    assert!(of(SizeClass::Tiny, true).large.is_some());
    assert_eq!(of(SizeClass::Large, true).large, None);
}

#[test]
fn operands_of_several_filesystems_have_no_limit() {
    let place = tempfile::tempdir().unwrap();
    let operand = |source: &str, target: &str| Operand {
        source: source.into(),
        target: place.path().join(target),
    };
    assert_ne!(pair(&operand("/proc/version", "x")), pair(&operand("/", "x")));
    assert_eq!(pair(&operand("/", "x")), pair(&operand("/", "y")));
    assert_eq!(pair(&operand("/nowhere", "x")), None);
}
