//! SIGKILL at any moment of a copy by several threads, while somebody reads what is there.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::super::oracle::Portrait;
use super::super::race::arena::{Arena, Before, FILES, NEW, OLD, plant, text};
use super::{Way, What, assert_not_mistaken};
use crate::fixture::{Random, is_full, seed};

const TREES: usize = 12;
const MOST: Duration = Duration::from_millis(40);

const WAYS: [Way; 4] = [
    Way { what: What::Tree, before: Before::Nothing, options: &[] },
    Way { what: What::Tree, before: Before::Older, options: &[] },
    Way { what: What::Tree, before: Before::Older, options: &["--threads", "4"] },
    Way { what: What::Tree, before: Before::Older, options: &["--atomic", "--always"] },
];

/// More of everything.
fn reset(arena: &Arena, before: Before) {
    arena.reset(before);
    for index in 0..TREES {
        let name = format!("tree{index}");
        plant(&arena.source().join(&name), "new", NEW);
        if before == Before::Older {
            plant(&arena.target().join(&name), "old", OLD);
        }
    }
}

/// Reads files that were there, over and over; each must be whole.
fn read(target: &Path, is_over: &AtomicBool) -> Result<usize, String> {
    let mut count = 0;
    loop {
        for tree in (0..TREES).map(|index| target.join(format!("tree{index}"))) {
            for name in FILES {
                let found =
                    fs::read(tree.join(name)).map_err(|error| format!("{name}: {error}"))?;
                if found != text("old", name) && found != text("new", name) {
                    return Err(format!("{name} is damaged: {} bytes", found.len()));
                }
                count += 1;
            }
            if is_over.load(Ordering::Relaxed) {
                return Ok(count);
            }
        }
    }
}

#[test]
fn after_sigkill_at_any_moment_a_rerun_completes_the_copy() {
    let seed = seed();
    let mut random = Random::new(seed);
    let arena = Arena::new();
    reset(&arena, Before::Nothing);
    let begun = Instant::now();
    arena.copy(&[]).run().exits(0);
    let whole = begun.elapsed().min(MOST);
    let (rounds, mut killed) = (if is_full() { 320 } else { 25 }, 0);
    for round in 0..rounds {
        let way = WAYS[round % WAYS.len()];
        reset(&arena, way.before);
        let source = Portrait::of(&arena.source());
        let mut context = format!("FLATOUT_TEST_SEED={seed} round {round} {way:?}");
        let is_over = AtomicBool::new(false);
        let (ran, read) = std::thread::scope(|scope| {
            let target = arena.target();
            let is_over = &is_over;
            let reader =
                (way.before == Before::Older).then(|| scope.spawn(move || read(&target, is_over)));
            let running = way.copy(&arena).start();
            // The moment is to be any: nothing depends on which one it is.
            std::thread::sleep(whole.mul_f64(random.below(1200) as f64 / 1000.0));
            running.signal(Signal::KILL);
            let ran = running.wait();
            is_over.store(true, Ordering::Relaxed);
            (ran, reader.map(|reader| reader.join().unwrap()))
        });
        killed += usize::from(ran.signal == Some(9));
        context = format!("{context}{ran}");
        if let Some(read) = read {
            assert!(read.is_ok(), "{read:?} {context}");
        }
        way.assert_whole(&arena, &context);
        assert_not_mistaken(&arena, &context);
        way.assert_completes(&arena, &source, &context);
    }
    println!("{killed} of {rounds} were killed before they ended");
}
