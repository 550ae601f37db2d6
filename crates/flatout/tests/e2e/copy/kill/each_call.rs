//! SIGKILL before each call of a copy.

use super::super::oracle::Portrait;
use super::super::race::arena::Arena;
use super::{WAYS, Way, advance, assert_not_mistaken, count_calls, sampled};
use crate::fixture::seed;
use crate::skip::needs;

/// Calls that a normal run tries of each way to copy.
const SAMPLE: usize = 25;

fn kill(way: &Way) -> Result<(), String> {
    let seed = seed();
    let arena = Arena::new();
    let (calls, ran) = count_calls(&arena, way)?;
    ran.exits(0);
    for index in sampled(calls, SAMPLE, seed) {
        arena.reset(way.before);
        let source = Portrait::of(&arena.source());
        let mut held = way.hold(&arena)?;
        let Some(stop) = advance(&mut held, index) else { continue };
        let ran = held.kill();
        let context = format!(
            "FLATOUT_TEST_SEED={seed} {way:?} killed before call {index} of {calls}: {stop:?}{ran}"
        );
        way.assert_whole(&arena, &context);
        assert_not_mistaken(&arena, &context);
        way.assert_completes(&arena, &source, &context);
    }
    println!("{way:?}: {calls} calls");
    Ok(())
}

macro_rules! ways {
    ($($name:ident: $index:literal,)*) => {$(
        #[test]
        fn $name() {
            needs!(kill(&WAYS[$index]));
        }
    )*};
}

ways! {
    a_new_copy: 0,
    a_new_copy_whose_names_appear_when_complete: 1,
    a_copy_over_an_older_one: 2,
    a_copy_over_an_older_one_in_place: 3,
    a_durable_copy_over_an_older_one: 4,
    a_copy_that_is_there_and_put_right: 5,
    a_copy_that_is_there_and_made_again: 6,
    a_file_over_an_older_one: 7,
    a_copy_over_an_older_one_of_what_differs: 8,
}
