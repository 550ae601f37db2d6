//! Levels found in curves of other machines: some recorded, some modelled from published sizes and
//! latencies where no recording was at hand; each says which.

mod agreed;

use super::*;
use crate::tests::caches::caches;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Pairs of MiB and nanoseconds, as lmbench's lat_mem_rd prints them.
fn curve(pairs: &[(f64, f64)]) -> Vec<Point> {
    let point = |&(mib, latency_ns): &(f64, f64)| Point {
        working_set_bytes: (mib * MIB as f64).round() as u64,
        latency_ns,
    };
    pairs.iter().map(point).collect()
}

/// What a curve shows that is the same in both halves of the walks.
fn found(curve: &[Point], caches: &[DataCache]) -> Levels {
    agreed(curve, curve, caches)
}

fn names(levels: &Levels) -> Vec<&'static str> {
    levels.levels.iter().map(|level| level.name).collect()
}

fn assert_within_a_power_of_two(found: Option<u64>, real: u64) {
    let found = found.unwrap();
    assert!(found >= real / 2 && found <= real * 2, "{found} found, {real} real");
}

/// An Arm server, 4 KiB pages: `lat_mem_rd -P 1 -t 256M 128`, published with a script for openEuler
/// machines.
const ARM_SERVER: [(f64, f64); 35] = [
    (0.00098, 1.667),
    (0.00195, 1.667),
    (0.00293, 1.667),
    (0.00391, 1.667),
    (0.00586, 1.667),
    (0.00781, 1.667),
    (0.01172, 1.667),
    (0.01562, 1.667),
    (0.02344, 7.506),
    (0.03125, 6.133),
    (0.04688, 5.805),
    (0.0625, 7.507),
    (0.09375, 7.521),
    (0.125, 7.508),
    (0.1875, 9.847),
    (0.25, 10.198),
    (0.375, 10.068),
    (0.5, 10.100),
    (0.75, 13.300),
    (1.0, 17.250),
    (1.5, 21.901),
    (2.0, 23.286),
    (3.0, 24.578),
    (4.0, 25.233),
    (6.0, 27.642),
    (8.0, 35.726),
    (12.0, 62.295),
    (16.0, 81.065),
    (24.0, 108.238),
    (32.0, 120.291),
    (48.0, 126.411),
    (64.0, 128.708),
    (96.0, 128.736),
    (128.0, 130.194),
    (256.0, 135.272),
];

/// An Arm client without a third cache, 4 KiB pages: `lat_mem_rd -t`, stride 64, published with the
/// tests of a benchmark runner.
const ARM_CLIENT: [(f64, f64); 36] = [
    (0.00098, 1.694),
    (0.00195, 1.694),
    (0.00293, 1.694),
    (0.00391, 1.694),
    (0.00586, 1.694),
    (0.00781, 1.695),
    (0.01172, 1.694),
    (0.01562, 1.695),
    (0.02344, 1.695),
    (0.03125, 3.786),
    (0.04688, 3.354),
    (0.0625, 3.998),
    (0.09375, 4.717),
    (0.125, 4.661),
    (0.1875, 5.945),
    (0.25, 6.155),
    (0.375, 6.122),
    (0.5, 6.137),
    (0.75, 6.748),
    (1.0, 7.014),
    (1.5, 7.128),
    (2.0, 7.754),
    (3.0, 8.025),
    (4.0, 8.726),
    (6.0, 41.717),
    (8.0, 67.656),
    (12.0, 95.763),
    (16.0, 109.395),
    (24.0, 122.793),
    (32.0, 129.347),
    (48.0, 138.765),
    (64.0, 139.351),
    (96.0, 140.490),
    (128.0, 141.227),
    (192.0, 141.703),
    (256.0, 141.742),
];

/// This project's machine, a virtual Sapphire Rapids (48 KiB, 2 MiB, 105 MiB as declared) beside
/// busy guests, 2 MiB pages, November 2026: recorded by the chases of `flatout_sys`. Nothing of L3
/// is left, and the clock fell to a half for a while.
const BUSY_VIRTUAL_MACHINE: [(f64, f64); 34] = [
    (0.0039, 2.391),
    (0.0059, 2.351),
    (0.0078, 2.370),
    (0.0117, 2.359),
    (0.0156, 2.288),
    (0.0234, 2.484),
    (0.03125, 2.351),
    (0.046875, 3.074),
    (0.0625, 7.423),
    (0.09375, 7.471),
    (0.125, 13.866),
    (0.1875, 13.620),
    (0.25, 7.546),
    (0.375, 7.615),
    (0.5, 8.290),
    (0.75, 9.597),
    (1.0, 10.104),
    (1.5, 14.305),
    (2.0, 33.058),
    (3.0, 121.384),
    (4.0, 206.527),
    (6.0, 210.827),
    (8.0, 214.392),
    (12.0, 218.940),
    (16.0, 216.710),
    (24.0, 215.053),
    (32.0, 213.475),
    (64.0, 212.049),
    (96.0, 222.272),
    (128.0, 224.048),
    (192.0, 221.014),
    (256.0, 286.044),
    (512.0, 253.594),
    (1024.0, 251.347),
];

/// The same machine on 4 KiB pages: translation makes the end of the curve climb again.
const BUSY_VIRTUAL_MACHINE_BASE_PAGES: [(f64, f64); 31] = [
    (0.0039, 2.387),
    (0.0078, 2.345),
    (0.0156, 2.354),
    (0.0234, 2.424),
    (0.03125, 2.629),
    (0.046875, 6.744),
    (0.0625, 7.596),
    (0.09375, 7.634),
    (0.125, 7.436),
    (0.1875, 7.429),
    (0.25, 7.636),
    (0.375, 8.414),
    (0.5, 9.214),
    (0.75, 9.889),
    (1.0, 12.730),
    (1.5, 46.053),
    (2.0, 60.150),
    (3.0, 200.245),
    (4.0, 205.390),
    (6.0, 222.291),
    (8.0, 252.004),
    (16.0, 238.590),
    (24.0, 244.621),
    (32.0, 249.649),
    (64.0, 253.776),
    (96.0, 261.176),
    (128.0, 251.727),
    (192.0, 293.082),
    (256.0, 344.767),
    (512.0, 423.472),
    (1024.0, 435.449),
];

/// Intel Ivy Bridge (i7-3770, 8 MiB L3), 2 MiB pages, in cycles of 0.294 ns, published at
/// 7-cpu.com; one point per power of two. Its table begins at 32 KiB: the two points below are that
/// one once more.
const IVY_BRIDGE_CYCLES: [(f64, f64); 10] = [
    (0.0078125, 4.0),
    (0.015625, 4.0),
    (0.03125, 4.0),
    (0.0625, 8.0),
    (0.125, 10.0),
    (0.25, 11.0),
    (0.5, 21.0),
    (1.0, 26.0),
    (2.0, 28.0),
    (4.0, 29.0),
];

#[test]
fn a_recorded_arm_server_has_three_caches() {
    let levels = found(&curve(&ARM_SERVER), &[]);
    assert_eq!(names(&levels), ["L1", "L2", "L3", "DRAM"]);
    let sizes: Vec<_> = levels.levels.iter().map(|level| level.bytes).collect();
    assert_eq!(sizes[..2], [Some(16_379), Some(768 * KIB)]);
    assert!((6 * MIB..=8 * MIB).contains(&sizes[2].unwrap()), "{sizes:?}");
    assert_eq!(sizes[3], None);
    let latencies: Vec<_> =
        levels.levels.iter().map(|level| level.latency_ns.unwrap().round()).collect();
    assert_eq!(latencies, [2.0, 8.0, 25.0, 129.0]);
}

#[test]
fn a_slow_creep_is_no_level() {
    let levels = found(&curve(&ARM_CLIENT), &[]);
    assert_eq!(names(&levels), ["L1", "L2", "DRAM"]);
    assert_within_a_power_of_two(levels.levels[0].bytes, 32 * KIB);
    assert_eq!(levels.levels[1].bytes, Some(4 * MIB));
}

#[test]
fn a_curve_that_ends_in_the_last_cache_does_not_call_it_memory() {
    let levels = found(&curve(&IVY_BRIDGE_CYCLES), &caches(&[32 * KIB, 256 * KIB, 8 * MIB]));
    assert_eq!(names(&levels), ["L1", "L2", "L3", "DRAM"]);
    assert_eq!(levels.levels[0].bytes, Some(32 * KIB));
    assert_eq!(levels.levels[1].bytes, Some(256 * KIB));
    let (last, memory) = (levels.levels[2], levels.levels[3]);
    assert_eq!((last.bytes, last.provenance), (Some(8 * MIB), Provenance::Cpuid), "no end seen");
    assert_eq!(memory.latency_ns, None);
    assert_eq!(levels.last_cache_bytes(), 8 * MIB);
}

#[test]
fn a_recorded_virtual_machine_without_a_share_of_l3_has_two_caches() {
    let declared = caches(&[48 * KIB, 2 * MIB, 105 * MIB]);
    let levels = found(&curve(&BUSY_VIRTUAL_MACHINE), &declared);
    assert_eq!(names(&levels), ["L1", "L2", "DRAM"]);
    assert_eq!(levels.levels[0].bytes, Some(48 * KIB));
    assert_within_a_power_of_two(levels.levels[1].bytes, 2 * MIB);
    assert_eq!(levels.last_cache_bytes(), 105 * MIB, "for arrays, what is declared counts");
    let latencies: Vec<_> =
        levels.levels.iter().map(|level| level.latency_ns.unwrap().round()).collect();
    assert_eq!(latencies, [2.0, 8.0, 212.0]);
}

#[test]
fn translation_on_small_pages_is_no_cache() {
    let declared = caches(&[48 * KIB, 2 * MIB, 105 * MIB]);
    let levels = found(&curve(&BUSY_VIRTUAL_MACHINE_BASE_PAGES), &declared);
    assert_eq!(names(&levels), ["L1", "L2", "DRAM"]);
    assert_within_a_power_of_two(levels.levels[0].bytes, 48 * KIB);
    assert_within_a_power_of_two(levels.levels[1].bytes, 2 * MIB);
}

/// A hierarchy by its sizes in bytes and its latencies in nanoseconds, memory last.
type Model<'a> = (&'a [u64], &'a [f64]);

/// The curve of a model, two points per power of two from 1 KiB to `longest_bytes`. A cyclic walk
/// beyond the size of a cache hits it less and less, and not at all from twice its size on. Each
/// point is off by up to ±2 %.
fn modelled((sizes, latencies): Model<'_>, longest_bytes: u64) -> Vec<Point> {
    let all = (20..).map(|half| if half % 2 == 0 { 1 << (half / 2) } else { 3 << (half / 2 - 1) });
    all.take_while(|&bytes: &u64| bytes <= longest_bytes)
        .enumerate()
        .map(|(index, bytes)| {
            let hits = |size: u64| (2.0 - bytes as f64 / size as f64).clamp(0.0, 1.0);
            let mut latency_ns = latencies[sizes.len()];
            for (&size, &near_ns) in sizes.iter().zip(latencies).rev() {
                latency_ns = hits(size) * near_ns + (1.0 - hits(size)) * latency_ns;
            }
            let noise = 1.0 + 0.02 * ((index * 7 % 5) as f64 - 2.0) / 2.0;
            Point { working_set_bytes: bytes, latency_ns: latency_ns * noise }
        })
        .collect()
}

/// Published sizes and latencies: AMD Zen 2 (16 MiB per core complex), AMD Zen 4, Ice Lake server,
/// Neoverse N1, Neoverse V2, Skylake server with a small share of L3, AMD Zen 3, Sapphire Rapids.
const MODELS: [Model<'static>; 8] = [
    (&[32 * KIB, 512 * KIB, 16 * MIB], &[1.1, 3.4, 11.0, 82.0]),
    (&[32 * KIB, MIB, 32 * MIB], &[0.8, 2.9, 11.0, 97.0]),
    (&[48 * KIB, 1280 * KIB, 48 * MIB], &[1.5, 4.2, 22.0, 88.0]),
    (&[64 * KIB, MIB, 32 * MIB], &[1.6, 4.6, 32.0, 96.0]),
    (&[64 * KIB, 2 * MIB, 36 * MIB], &[1.4, 3.9, 25.0, 116.0]),
    (&[32 * KIB, MIB, 16 * MIB], &[1.3, 4.7, 22.0, 90.0]),
    (&[32 * KIB, 512 * KIB, 32 * MIB], &[1.2, 3.5, 13.5, 105.0]),
    (&[48 * KIB, 2 * MIB, 105 * MIB], &[1.3, 4.1, 35.0, 115.0]),
];

#[test]
fn modelled_machines_are_found_within_a_power_of_two() {
    for model in MODELS {
        for declared in [caches(model.0), Vec::new()] {
            let levels = found(&modelled(model, 1 << 30), &declared);
            assert_eq!(names(&levels), ["L1", "L2", "L3", "DRAM"], "{model:?} {levels:?}");
            for (level, &size) in levels.levels.iter().zip(model.0) {
                assert_within_a_power_of_two(level.bytes, size);
            }
            for (level, &latency_ns) in levels.levels.iter().zip(model.1) {
                let ratio = level.latency_ns.unwrap() / latency_ns;
                assert!((0.9..1.15).contains(&ratio), "{model:?} {level:?}");
            }
        }
    }
}

#[test]
fn a_machine_that_says_more_than_it_gives_has_both_sizes() {
    // The host has 256 MiB, of which other guests leave 24.
    let levels = found(
        &modelled((&[48 * KIB, 2 * MIB, 24 * MIB], &[1.7, 5.2, 40.0, 120.0]), 1 << 30),
        &caches(&[48 * KIB, 2 * MIB, 256 * MIB]),
    );
    assert_eq!(names(&levels), ["L1", "L2", "L3", "DRAM"]);
    assert_within_a_power_of_two(levels.levels[2].bytes, 24 * MIB);
    assert_eq!(levels.levels[2].declared_bytes, Some(256 * MIB));
    assert_eq!(levels.last_cache_bytes(), 256 * MIB);
}

#[test]
fn a_cache_that_the_curve_does_not_show_is_left_out() {
    // L3 as slow as memory: what lies behind L2 is named by the end of the curve.
    let curve = modelled((&[32 * KIB, 2 * MIB], &[1.5, 5.0, 110.0]), 1 << 30);
    let levels = found(&curve, &caches(&[32 * KIB, 2 * MIB, 32 * MIB]));
    assert_eq!(names(&levels), ["L1", "L2", "DRAM"]);
    assert_eq!(levels.last_cache_bytes(), 32 * MIB, "it is there, whatever it is worth");
    assert_eq!(Some(found(&curve, &[]).last_cache_bytes()), levels.levels[1].bytes);
}

#[test]
fn what_is_as_slow_as_memory_is_no_cache_where_the_curve_ends_within_it() {
    // Emerald Rapids, 300 MiB as declared, of which a guest had some 6: all beyond is memory.
    let all = caches(&[48 * KIB, 2 * MIB, 300 * MIB]);
    let small = modelled((&[48 * KIB, 2 * MIB], &[1.9, 5.9, 140.0]), 256 * MIB);
    assert_eq!(seen(&found(&small, &all)), ["L1", "L2"]);
    let whole = modelled((&[48 * KIB, 2 * MIB, 300 * MIB], &[1.9, 5.9, 40.0, 140.0]), 256 * MIB);
    assert_eq!(seen(&found(&whole, &all)), ["L1", "L2", "L3"], "a whole cache");
    let left = modelled((&[48 * KIB, 2 * MIB, 24 * MIB], &[1.9, 5.9, 40.0, 140.0]), 256 * MIB);
    assert_eq!(seen(&found(&left, &all)), ["L1", "L2", "L3", "DRAM"], "its end is seen");
}

#[test]
fn memory_that_translation_makes_slower_and_slower_is_no_cache() {
    // The same guest on base pages: what is walked through less than 300 MiB waits for memory, too.
    let all = caches(&[48 * KIB, 2 * MIB, 300 * MIB]);
    let sets = [0.016, 0.032, 0.048, 0.064, 0.125, 0.25, 0.5, 1.0, 8.0, 32.0, 128.0, 256.0, 512.0];
    let ns = [1.9, 1.9, 1.9, 6.0, 6.1, 6.9, 7.6, 9.9, 148.0, 169.0, 200.0, 232.0, 271.0];
    let walks = curve(&sets.into_iter().zip(ns).collect::<Vec<_>>());
    assert_eq!(names(&found(&walks, &all)), ["L1", "L2", "DRAM"]);
}

/// The levels that have a latency.
fn seen(levels: &Levels) -> Vec<&'static str> {
    let with = levels.levels.iter().filter(|level| level.latency_ns.is_some());
    with.map(|level| level.name).collect()
}

#[test]
fn a_working_set_lives_in_the_first_level_that_holds_it() {
    let levels = found(&modelled(MODELS[0], 1 << 30), &caches(MODELS[0].0));
    let name = |bytes| levels.of(bytes).unwrap().name;
    assert_eq!((name(1), name(16 * KIB), name(128 * KIB)), ("L1", "L1", "L2"));
    assert_eq!((name(4 * MIB), name(1 << 30)), ("L3", "DRAM"));
    assert_eq!(Levels::default().of(1), None);
}

#[test]
fn without_a_curve_the_cpu_is_believed() {
    let declared = caches(&[48 * KIB, 2 * MIB]);
    let flat = Point { working_set_bytes: KIB, latency_ns: f64::NAN };
    for curve in [vec![], vec![flat; 9]] {
        let levels = found(&curve, &declared);
        assert_eq!(names(&levels), ["L1", "L2", "DRAM"]);
        assert!(levels.levels.iter().all(|level| level.provenance == Provenance::Cpuid));
        assert!(levels.levels.iter().all(|level| level.latency_ns.is_none()));
    }
    assert_eq!(found(&[], &[]), Levels::default());
    let unknown = Levels::default();
    assert_eq!(unknown.last_cache_bytes(), 64 * MIB);
    let said = unknown.assumed().unwrap();
    assert_eq!(said.code, "cache_unclear");
    assert!(said.text.ends_with("64 MiB are assumed"), "{}", said.text);
}

#[test]
fn a_flat_curve_has_one_level() {
    let flat: Vec<Point> =
        (10..25).map(|log2| Point { working_set_bytes: 1 << log2, latency_ns: 2.0 }).collect();
    let levels = found(&flat, &caches(&[64 * MIB]));
    let latencies: Vec<_> = levels.levels.iter().map(|level| level.latency_ns).collect();
    assert_eq!(latencies, [Some(2.0), None]);
    assert_eq!(names(&found(&flat, &[])), ["DRAM"]);
}

#[test]
fn caches_that_cannot_be_are_not_declared() {
    let mut odd = caches(&[48 * KIB, 32 * KIB, 32 * MIB]);
    odd[0].level = 0;
    let levels = Levels::declared(&odd);
    assert_eq!(names(&levels), ["L2", "L3", "DRAM"]);
}
