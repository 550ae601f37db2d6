//! The copier is stopped before each call that looks a name up, and one part of a tree is swapped.

use super::arena::{Arena, Before};
use super::attack::{self, Attack, Planted, Side, Stay, Struck};
use super::held::{Call, Held};
use crate::bin::Ran;
use crate::fixture::{Random, is_full, seed};
use crate::skip::needs;

/// Swaps that a normal run tries of each way to copy.
const SAMPLE: usize = 130;

/// One way to copy.
struct Way {
    before: Before,
    options: &'static [&'static str],
}

/// One swap before one call.
struct Case {
    index: usize,
    attack: Attack,
}

/// The calls of an undisturbed copy.
fn calls(arena: &Arena, way: &Way) -> Result<Vec<Call>, String> {
    arena.reset(way.before);
    let mut held = Held::start(arena.copy(way.options), &[])?;
    let mut calls = Vec::new();
    while let Some(stop) = held.next() {
        calls.extend(Call::of(&stop));
        held.go_on(stop);
    }
    let ran = held.finish();
    ran.exits(0);
    arena.assert_outside_untouched(&ran);
    Ok(calls)
}

/// All swaps that say something. What the user wrote is looked up as it is when the copy begins: a
/// directory above an operand may be a symlink then, and is one for good.
fn cases(calls: &[Call], way: &Way) -> Vec<Case> {
    let begun = calls.iter().rposition(Call::is_of_operand).map_or(0, |last| last + 1);
    let is_in_place = way.options.contains(&"--in-place");
    let compares = way.options.contains(&"--checksum");
    let mut cases = Vec::new();
    for index in 0..calls.len() {
        for attack in attack::all() {
            let is_given = attack.is_above() && index < begun;
            // Writing to all names of a file, or reading it to compare it, is what was asked for.
            let is_wanted = (is_in_place || compares) && attack.planted == Planted::HardLink;
            if !is_given && !is_wanted {
                cases.push(Case { index, attack });
            }
        }
    }
    cases
}

/// Copies, and strikes before the call of that number. Says what was swapped, if anything was.
fn strike(arena: &Arena, way: &Way, case: &Case) -> (Ran, bool) {
    arena.reset(way.before);
    let mut held = Held::start(arena.copy(way.options), &[]).unwrap();
    let (mut count, mut struck, mut has_struck): (_, Option<Struck>, _) = (0, None, false);
    while let Some(stop) = held.next() {
        if Call::of(&stop).is_some() {
            if count == case.index {
                struck = case.attack.strike(arena);
                has_struck = struck.is_some();
            } else if count > case.index && case.attack.stay == Stay::OneCall {
                struck.take().into_iter().for_each(Struck::undo);
            }
            count += 1;
        }
        held.go_on(stop);
    }
    let ran = held.finish();
    if case.attack.planted == Planted::HardLink {
        struck.take().into_iter().for_each(Struck::undo);
    }
    (ran, has_struck)
}

fn race(way: &Way) -> Result<(), String> {
    let seed = seed();
    let mut random = Random::new(seed);
    let arena = Arena::new();
    let calls = calls(&arena, way)?;
    let mut cases = cases(&calls, way);
    let all = cases.len();
    if !is_full() {
        let mut sample = Vec::new();
        while sample.len() < SAMPLE && !cases.is_empty() {
            sample.push(cases.swap_remove(random.below(cases.len())));
        }
        cases = sample;
    }
    let mut struck = 0;
    for case in &cases {
        let (ran, has_struck) = strike(&arena, way, case);
        struck += usize::from(has_struck);
        let Case { index, attack } = case;
        let (options, before, call) = (way.options, way.before, &calls[*index]);
        let context = format!(
            "FLATOUT_TEST_SEED={seed} {before:?} {options:?}: {attack:?} before call {index} of {}: {call:?}{ran}",
            calls.len()
        );
        arena.assert_ended_well(&ran, &context);
        arena.assert_outside_untouched(&context);
        arena.assert_nothing_came_in(&context);
        arena.assert_no_litter(&context);
    }
    let tried = cases.len();
    println!(
        "{:?} {:?}: {} calls, {tried} of {all} cases, {struck} of them swapped something",
        way.before,
        way.options,
        calls.len()
    );
    assert!(struck * 3 > tried, "{struck} of {tried}");
    Ok(())
}

#[test]
fn a_new_copy() {
    needs!(race(&Way { before: Before::Nothing, options: &["--threads", "1"] }));
}

#[test]
fn a_new_copy_by_two_threads() {
    needs!(race(&Way { before: Before::Nothing, options: &["--threads", "2"] }));
}

#[test]
fn a_new_copy_whose_names_appear_when_complete() {
    needs!(race(&Way { before: Before::Nothing, options: &["--threads", "1", "--atomic"] }));
}

#[test]
fn a_copy_over_an_older_one() {
    needs!(race(&Way { before: Before::Older, options: &["--threads", "1"] }));
}

#[test]
fn a_copy_over_an_older_one_in_place() {
    needs!(race(&Way { before: Before::Older, options: &["--threads", "1", "--in-place"] }));
}

#[test]
fn a_copy_that_is_there_and_put_right() {
    needs!(race(&Way { before: Before::Same, options: &["--threads", "1"] }));
}

#[test]
fn a_copy_that_is_there_and_compared() {
    needs!(race(&Way { before: Before::Same, options: &["--threads", "1", "--checksum"] }));
}

/// The attack works: against a program that follows symlinks the same checks fail.
#[test]
fn a_copier_that_follows_symlinks_is_found_out() {
    let arena = Arena::new();
    for side in [Side::Source, Side::Target] {
        arena.reset(Before::Older);
        let (planted, stay) = (Planted::Symlink, Stay::ForGood);
        let attack = Attack { side, part: Some("file"), planted, stay };
        assert!(attack.strike(&arena).is_some());
        let from = std::fs::read(arena.source().join("file")).unwrap();
        std::fs::write(arena.target().join("file"), from).unwrap();
        let found = |check: &dyn Fn()| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err()
        };
        assert!(found(&|| arena.assert_outside_untouched(&"")), "{side:?}");
        if side == Side::Source {
            assert!(found(&|| arena.assert_nothing_came_in(&"")), "{side:?}");
        }
    }
}
