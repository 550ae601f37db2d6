//! What somebody sees who looks before each call of a copy that nobody disturbs.

use super::super::race::arena::Arena;
use super::{WAYS, Way, assert_complete, assert_not_mistaken};
use crate::skip::needs;

fn watch(way: &Way) -> Result<(), String> {
    let arena = Arena::new();
    arena.reset(way.before);
    let mut held = way.hold(&arena)?;
    let mut index = 0;
    while let Some(stop) = held.next() {
        let context = format!("{way:?} before call {index}: {stop:?}");
        way.assert_whole(&arena, &context);
        assert_not_mistaken(&arena, &context);
        if way.options.contains(&"--atomic") {
            assert_complete(&arena, &context);
        }
        held.go_on(stop);
        index += 1;
    }
    held.finish().exits(0);
    Ok(())
}

#[test]
fn at_every_moment_a_file_is_the_old_or_the_new_one() {
    for way in WAYS {
        needs!(watch(&way));
    }
}
