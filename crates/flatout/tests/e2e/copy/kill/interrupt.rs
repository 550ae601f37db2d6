//! SIGINT before each call of a copy: it cleans up, says how to go on, and ends.

use rustix::process::Signal;

use super::super::oracle::Portrait;
use super::super::race::arena::Arena;
use super::{WAYS, Way, advance, assert_not_mistaken, count_calls, sampled};
use crate::fixture::seed;
use crate::skip::needs;

/// Calls that a normal run tries of each way to copy.
const SAMPLE: usize = 12;

/// Interrupts copies; says how many were.
fn interrupt(way: &Way) -> Result<usize, String> {
    let seed = seed();
    let arena = Arena::new();
    let (calls, ran) = count_calls(&arena, way)?;
    ran.exits(0);
    let mut interrupted = 0;
    for index in sampled(calls, SAMPLE, seed) {
        arena.reset(way.before);
        let source = Portrait::of(&arena.source());
        let mut held = way.hold(&arena)?;
        let Some(stop) = advance(&mut held, index) else { continue };
        held.running().interrupt();
        held.go_on(stop);
        let ran = held.finish();
        let context = format!(
            "FLATOUT_TEST_SEED={seed} {way:?} interrupted before call {index} of {calls}: {stop:?}{ran}"
        );
        ran.died_of(Signal::INT);
        // It may have come after all was done.
        if !ran.stderr.is_empty() {
            interrupted += 1;
            let hint = ran.stderr.trim_end();
            assert_eq!(hint.lines().count(), 1, "{context}");
            assert!(hint.contains("again") || hint.contains("goes on"), "{context}");
        }
        arena.assert_no_litter(&context);
        way.assert_whole(&arena, &context);
        assert_not_mistaken(&arena, &context);
        way.assert_completes(&arena, &source, &context);
    }
    Ok(interrupted)
}

#[test]
fn ctrl_c_leaves_no_temporary_and_says_how_to_go_on() {
    let mut interrupted = 0;
    for way in WAYS {
        interrupted += needs!(interrupt(&way));
    }
    println!("{interrupted} were interrupted");
    assert!(interrupted > 0);
}
