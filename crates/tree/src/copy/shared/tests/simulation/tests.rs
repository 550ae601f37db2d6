//! What the simulation says of trees and numbers of processes; and what of it is true.

use std::rc::Rc;

use super::{Costs, Outcome, Shape, copy};
use crate::copy::directory::{Directory, closed_of_tests};
use crate::copy::dispatch;

/// What a parallel filesystem takes that is reached by a network, in round figures: 1 ms for a file,
/// 100 µs for a look at a name, 20 µs for a message.
const FAR: Costs = Costs {
    file: 1_000_000,
    range: 4_000_000,
    directory: 1_000_000,
    make: 300_000,
    name: 1_000,
    step: 100_000,
    latency: 70_000,
    message: 2_000,
};

fn is_full() -> bool {
    std::env::var_os("FLATOUT_TEST_FULL").is_some_and(|full| !full.is_empty())
}

/// A tree in which each directory has so many others at each level, and files at the last one.
fn regular(widths: &[usize], files: u32) -> Rc<Shape> {
    match widths.split_first() {
        None => Rc::new(Shape { files, ..Shape::default() }),
        Some((&width, widths)) => {
            let below = regular(widths, files);
            Rc::new(Shape { below: vec![below; width], ..Shape::default() })
        }
    }
}

/// One huge directory, and one huge file.
fn skewed(files: u32, ranges: u32) -> Rc<Shape> {
    let small = regular(&[3], 20);
    let huge = Rc::new(Shape { files, ..Shape::default() });
    Rc::new(Shape { files: 10, ranges, below: vec![small, huge] })
}

/// Entries and ranges.
fn units(shape: &Shape) -> u64 {
    let below: u64 = shape.below.iter().map(|shape| units(shape)).sum();
    u64::from(shape.files) + u64::from(shape.ranges) + below
}

/// What a process holds at most, by the sizes of the real things: pieces of 32 names of 14 bytes,
/// parcels that are out, and directories that wait, with their pairs put away.
fn state_bytes(outcome: &Outcome) -> usize {
    let [waiting, given, known] = outcome.most;
    let piece = size_of::<dispatch::Work>() + 32 * 14;
    let parcel = 2 * (size_of::<u64>() + size_of::<crate::copy::shared::Out>());
    let directory = size_of::<Directory>()
        + crate::wire::message(&[&closed_of_tests("name of a few bytes")]).len();
    waiting * piece + given * parcel + known * directory
}

/// Copies a tree, and returns which part of the time its threads worked.
fn efficiency(tree: &Rc<Shape>, size: usize, threads: usize) -> f64 {
    let outcome = copy(tree, size, threads, FAR);
    assert_eq!(outcome.entries.iter().sum::<u64>(), units(tree), "each once");
    let even = tree.cost(&FAR) as f64 / (size * threads) as f64;
    let efficiency = even / outcome.elapsed_ns as f64;
    let entries = tree.entries();
    println!(
        "{entries} entries, {size} processes of {threads}: {:.3} s, efficiency {efficiency:.3}, \
         {:.0} entries and {:.0} messages a second, most waiting, given, known {:?}: \
         {} KiB",
        outcome.elapsed_ns as f64 / 1e9,
        entries as f64 * 1e9 / outcome.elapsed_ns as f64,
        outcome.messages as f64 * 1e9 / outcome.elapsed_ns as f64,
        outcome.most,
        state_bytes(&outcome) >> 10,
    );
    efficiency
}

#[test]
fn all_is_done_once_and_most_of_the_time_is_work() {
    let tree = regular(&[5, 4, 5], 100);
    assert!(efficiency(&tree, 1, 1) > 0.99);
    assert!(efficiency(&tree, 1, 4) > 0.95);
    assert!(efficiency(&tree, 10, 2) > 0.8);
}

#[test]
fn a_skewed_tree_ends_evenly() {
    for (files, ranges) in [(20_000, 5_000), (20_000, 0), (0, 5_000), (12_000, 12_000)] {
        let tree = skewed(files, ranges);
        assert!(1.0 / efficiency(&tree, 4, 2) < 1.3);
        assert!(1.0 / efficiency(&tree, 16, 1) < 1.3);
    }
}

#[test]
fn a_thousand_processes_work_nine_tenths_of_the_time() {
    if !is_full() {
        // The same, smaller.
        assert!(efficiency(&regular(&[10, 10], 1000), 50, 1) > 0.9);
        return;
    }
    // Of any size, which takes a minute for 10⁸ files in a release build: 100,100,100.
    if let Ok(widths) = std::env::var("FLATOUT_SIMULATED_WIDTHS") {
        let widths: Vec<usize> = widths.split(',').map(|width| width.parse().unwrap()).collect();
        assert!(efficiency(&regular(&widths, 1000), 1000, 1) > 0.9);
        return;
    }
    for (widths, files) in [(&[10, 10, 10][..], 1000), (&[10, 10, 100], 1000)] {
        assert!(efficiency(&regular(widths, files), 1000, 1) > 0.9);
    }
    // Its first process makes a hundred directories before anybody has something to do.
    assert!(efficiency(&regular(&[100, 100], 100), 1000, 1) > 0.8);
}

/// Seconds that 1, 2 and 4 processes of one thread took for 30 directories of 40 files in 6 others,
/// where each file costs 8 ms and no CPU (docs/probes/far.py 2; AMD EPYC family 25 model 17, 2 vCPUs,
/// Linux 6.18, Open MPI 4.1.4, a build without optimisation, 2026-11-26; medians of two rounds).
const MEASURED_S: [f64; 3] = [10.350, 5.184, 2.701];

/// The value at which something that grows with it is as large as it should be.
fn fitted(wanted: f64, (mut low, mut high): (u64, u64), grown: impl Fn(u64) -> f64) -> u64 {
    while high - low > 1000 {
        let middle = low.midpoint(high);
        if grown(middle) < wanted { low = middle } else { high = middle }
    }
    low
}

#[test]
fn costs_fitted_to_one_and_two_processes_foretell_four() {
    let tree = regular(&[6, 5], 40);
    let costs = |file, latency| Costs { file, directory: file, latency, ..FAR };
    let seconds = |size, costs| copy(&tree, size, 1, costs).elapsed_ns as f64 / 1e9;
    let [one, two, four] = MEASURED_S;
    let file = fitted(one, (0, 100_000_000), |file| seconds(1, costs(file, 0)));
    let latency = fitted(two, (0, 10_000_000), |latency| seconds(2, costs(file, latency)));
    let foretold = seconds(4, costs(file, latency));
    println!("file {file} ns, latency {latency} ns: {foretold:.3} s of {four} s");
    assert!((foretold / four - 1.0).abs() < 0.2, "{foretold}");
}
