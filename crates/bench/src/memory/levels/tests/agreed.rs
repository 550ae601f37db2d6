//! Levels found in two curves that were measured apart.

use super::super::*;
use super::{KIB, MIB, names};
use crate::tests::caches::caches;

/// 32 KiB at 1.3 ns, `second` at 4, `third` at 14, memory at 110; two points per power of two.
fn steps(second: u64, third: u64) -> Vec<Point> {
    let sizes = (13..=28).flat_map(|log2| [1_u64 << log2, 3 << (log2 - 1)]);
    let latency = |bytes: u64| match bytes {
        _ if bytes <= 32 * KIB => 1.3,
        _ if bytes <= second => 4.0,
        _ if bytes <= third => 14.0,
        _ => 110.0,
    };
    let point =
        |working_set_bytes| Point { working_set_bytes, latency_ns: latency(working_set_bytes) };
    sizes.map(point).collect()
}

fn sizes(levels: &Levels) -> Vec<(&'static str, Option<u64>, bool)> {
    let is_measured = |level: &Level| level.provenance == Provenance::Measured;
    levels.levels.iter().map(|level| (level.name, level.bytes, is_measured(level))).collect()
}

#[test]
fn what_both_halves_show_is_measured() {
    let declared = caches(&[32 * KIB, MIB, 32 * MIB]);
    let curve = steps(MIB, 8 * MIB);
    let levels = agreed(&curve, &curve, &declared);
    let expected = [
        ("L1", Some(32 * KIB), true),
        ("L2", Some(MIB), true),
        ("L3", Some(8 * MIB), true),
        (MEMORY, None, true),
    ];
    assert_eq!(sizes(&levels), expected, "others leave a quarter of the last cache");
    let latencies: Vec<f64> = levels.levels.iter().filter_map(|level| level.latency_ns).collect();
    assert_eq!(latencies, [1.3, 4.0, 14.0, 110.0]);
}

#[test]
fn where_the_halves_do_not_agree_a_cache_is_as_large_as_declared() {
    let declared = caches(&[32 * KIB, MIB, 32 * MIB]);
    let levels = agreed(&steps(MIB, 32 * MIB), &steps(MIB, 6 * MIB), &declared);
    assert_eq!(sizes(&levels)[1], ("L2", Some(MIB), true));
    assert_eq!(sizes(&levels)[2], ("L3", Some(32 * MIB), false));
    assert_eq!(levels.levels[2].latency_ns, Some(14.0), "a hit, though memory is at 110");
    let only = |curve: &[Point]| agreed(curve, curve, &[]);
    assert_eq!(sizes(&only(&steps(MIB, 8 * MIB))).len(), 4, "nothing is declared");
}

/// Zen 4, 2 vCPUs beside compilers, one trial of 4 ms per point, 2026-11-23: KiB and nanoseconds.
const ZEN4_BUSY: [(u64, f64); 16] = [
    (16, 2.6),
    (32, 7.7),
    (48, 5.6),
    (64, 4.3),
    (128, 8.7),
    (256, 4.7),
    (512, 22.2),
    (1024, 14.4),
    (1536, 49.6),
    (2048, 14.5),
    (3072, 380.9),
    (4096, 104.1),
    (8192, 726.1),
    (16_384, 153.8),
    (32_768, 413.6),
    (131_072, 350.0),
];

#[test]
fn a_busy_machine_has_no_more_levels_than_it_declares() {
    let busy: Vec<Point> = ZEN4_BUSY
        .iter()
        .map(|&(kib, latency_ns)| Point { working_set_bytes: kib * KIB, latency_ns })
        .collect();
    let quiet = steps(MIB, 32 * MIB);
    let at =
        |bytes| quiet.iter().find(|point| point.working_set_bytes >= bytes).unwrap().latency_ns;
    let other: Vec<Point> = busy
        .iter()
        .map(|&point| Point { latency_ns: at(point.working_set_bytes), ..point })
        .collect();
    let declared = caches(&[32 * KIB, MIB, 32 * MIB]);
    let levels = agreed(&busy, &other, &declared);
    assert_eq!(names(&levels), ["L1", "L2", "L3", MEMORY]);
    let ends: Vec<_> = levels.levels.iter().filter_map(|level| level.bytes).collect();
    assert_eq!(ends, [32 * KIB, MIB, 32 * MIB]);
    assert_eq!(agreed(&busy, &busy, &declared).levels.len(), 4, "whatever it looks like");
}

/// Zen 4 beside other guests who leave 4 of 32 MiB, quiet otherwise, the quietest parts of six to
/// eleven trials per point, 2026-11-23: KiB, and nanoseconds of both halves.
const ZEN4_QUIET: [(u64, f64, f64); 16] = [
    (16, 1.1, 1.1),
    (32, 1.1, 1.1),
    (48, 3.8, 3.8),
    (64, 3.8, 3.8),
    (128, 3.8, 3.8),
    (256, 3.8, 3.8),
    (512, 4.7, 4.7),
    (1024, 6.2, 6.7),
    (1536, 11.3, 11.5),
    (2048, 12.5, 12.7),
    (3072, 13.8, 13.7),
    (4096, 15.0, 15.0),
    (8192, 105.7, 113.5),
    (16_384, 133.1, 135.7),
    (32_768, 144.9, 146.1),
    (65_536, 147.7, 149.0),
];

#[test]
fn a_shared_cache_without_a_flat_stretch_has_an_end_and_a_latency() {
    let half = |pick: fn(&(u64, f64, f64)) -> f64| -> Vec<Point> {
        let point =
            |row: &(u64, f64, f64)| Point { working_set_bytes: row.0 * KIB, latency_ns: pick(row) };
        ZEN4_QUIET.iter().map(point).collect()
    };
    let declared = caches(&[32 * KIB, MIB, 32 * MIB]);
    let levels = agreed(&half(|row| row.1), &half(|row| row.2), &declared);
    let expected = [
        ("L1", Some(32 * KIB), true),
        ("L2", Some(MIB), true),
        ("L3", Some(4 * MIB), true),
        (MEMORY, None, true),
    ];
    assert_eq!(sizes(&levels), expected);
    assert_eq!(levels.levels[2].latency_ns, Some(13.7));
    assert_eq!(levels.levels[3].latency_ns, Some(147.7), "what 32 MiB cannot hold");
    // The same minutes later: others leave half of L2, which is in the row of 1.5 MiB all the same.
    let short = |mut curve: Vec<Point>| {
        curve[7].latency_ns = 8.7;
        curve
    };
    let halves = [half(|row| row.1), half(|row| row.2)].map(short);
    let levels = agreed(&halves[0], &halves[1], &declared);
    assert_eq!(sizes(&levels)[1], ("L2", Some(512 * KIB), true));
    assert_eq!(levels.levels[2].latency_ns, Some(13.7));
}
