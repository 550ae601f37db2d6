//! A campaign of random merges, each against what `cp -a` makes of an equal beginning.
//!
//! Only differences that a rule in `campaign/differences.rs` predicts are allowed; `campaign/safety.rs`
//! checks what must hold whatever cp does. Nothing here knows how the copier works.
//! `FLATOUT_TEST_SEED=N` repeats a campaign, with `FLATOUT_TEST_CASE=N` one case of it.

mod case;
mod differences;
mod disturbance;
mod facts;
mod item;
mod judgement;
mod mapping;
mod names;
mod predictions;
mod reduction;
mod safety;
mod trial;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixture::{is_full, seed};
use case::Case;
use judgement::{Finding, judge};
use reduction::{reduce, show};
use trial::Arena;

/// The number of one case to be run alone.
const CASE: &str = "FLATOUT_TEST_CASE";

/// Cases run at once.
const THREADS: usize = 2;

/// Groups of findings of which an example is shown.
const SHOWN: usize = 6;

/// One kind of thing that is wrong: how often, where first, and the details of that.
struct Group {
    count: usize,
    number: usize,
    detail: String,
}

fn run(seed: u64, numbers: std::ops::Range<usize>) -> BTreeMap<String, Group> {
    let next = AtomicUsize::new(numbers.start);
    let groups = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let arena = Arena::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers.end {
                        break;
                    }
                    let case = Case::new(seed, number);
                    for Finding { group, detail } in judge(&arena.run(&case)) {
                        let mut groups = groups.lock().unwrap();
                        let entry =
                            groups.entry(group).or_insert(Group { count: 0, number, detail });
                        entry.count += 1;
                    }
                }
            });
        }
    });
    groups.into_inner().unwrap()
}

#[test]
fn random_merges_differ_from_cp_only_where_it_is_documented() {
    let seed = seed();
    let numbers = match std::env::var(CASE) {
        Ok(number) => {
            let number = number.parse().expect("FLATOUT_TEST_CASE is a number");
            number..number + 1
        }
        Err(_) => 0..if is_full() { 2000 } else { 100 },
    };
    let groups = run(seed, numbers);
    if groups.is_empty() {
        return;
    }
    let arena = Arena::new();
    let mut sorted: Vec<(&String, &Group)> = groups.iter().collect();
    sorted.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
    let mut text = String::new();
    for (name, Group { count, number, .. }) in &sorted {
        text.push_str(&format!("{count:4} of: {name} (first: case {number})\n"));
    }
    for (name, Group { number, detail, .. }) in sorted.iter().take(SHOWN) {
        let case = reduce(&arena, &Case::new(seed, *number), name);
        text.push_str(&format!("\n{name}\n{CASE}={number}\n{detail}{}", show(&arena, &case)));
    }
    panic!("FLATOUT_TEST_SEED={seed}\n{text}");
}
