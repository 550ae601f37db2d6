//! Somebody swaps all parts of the trees as fast as they can, while copy follows copy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::arena::{Arena, Before};
use super::attack::{self, Attack, Planted, Stay};
use crate::fixture::{Random, is_full, seed};

/// How long a race goes on.
fn patience() -> Duration {
    Duration::from_secs(if is_full() { 60 } else { 3 })
}

/// Swaps and puts back until it is over.
fn swap(arena: &Arena, is_over: &AtomicBool, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let is_fit = |attack: &Attack| {
        !attack.is_above() && attack.planted != Planted::HardLink && attack.stay == Stay::OneCall
    };
    let attacks: Vec<Attack> = attack::all().into_iter().filter(is_fit).collect();
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) {
        let attack = attacks[random.below(attacks.len())];
        // The same one again and again has better chances than one after the other.
        for _ in 0..random.below(20) {
            if let Some(struck) = attack.strike(arena) {
                for _ in 0..random.below(2000) {
                    std::hint::spin_loop();
                }
                struck.undo();
                count += 1;
            }
        }
    }
    count
}

/// Ends the swapping when it goes, also where a test panics: nobody would end it then.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_swapper_that_runs_freely_gets_nothing_in_or_out() {
    let seed = seed();
    let mut random = Random::new(seed);
    let arena = Arena::new();
    let begun = Instant::now();
    let (mut rounds, mut swaps) = (0, 0);
    while begun.elapsed() < patience() {
        let before = [Before::Nothing, Before::Older, Before::Same][random.below(3)];
        let options: &[&str] =
            [&[][..], &["--threads", "1"], &["--atomic"], &["--in-place"], &["--checksum"]]
                [random.below(5)];
        arena.reset(before);
        let (is_over, part) = (AtomicBool::new(false), random.next());
        let context = format!("FLATOUT_TEST_SEED={seed} round {rounds} {before:?} {options:?}");
        let ran = std::thread::scope(|scope| {
            let swapper = scope.spawn(|| swap(&arena, &is_over, part));
            let over = Over(&is_over);
            let rans: Vec<_> = (0..3).map(|_| arena.copy(options).run()).collect();
            drop(over);
            swaps += swapper.join().unwrap();
            rans
        });
        for ran in &ran {
            arena.assert_ended_well(ran, &context);
        }
        let said: String = ran.iter().map(ToString::to_string).collect();
        arena.assert_outside_untouched(&format!("{context}{said}"));
        arena.assert_nothing_came_in(&format!("{context}{said}"));
        arena.assert_no_litter(&format!("{context}{said}"));
        rounds += 1;
    }
    println!("{rounds} rounds of 3 copies, {swaps} swaps");
}
