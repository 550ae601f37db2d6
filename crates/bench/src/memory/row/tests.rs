//! The grids on machines of several kinds, and with little memory.

use flatout_measure::record::Provenance;

use super::super::levels::{Level, Levels, MEMORY};
use super::*;

/// Two CPUs with a last cache of so many bytes.
fn machine(last: u64) -> Machine {
    let level = |name, bytes| Level {
        name,
        bytes,
        latency_ns: None,
        provenance: Provenance::Cpuid,
        declared_bytes: bytes,
    };
    let sizes = [("L1", Some(48 << 10)), ("L2", Some(2 << 20)), ("L3", Some(last)), (MEMORY, None)];
    let levels = sizes.map(|(name, bytes)| level(name, bytes)).to_vec();
    let levels = Levels { levels, largest_declared_bytes: Some(last) };
    Machine { levels, cpus: vec![0, 1], ..Machine::default() }
}

fn terms(extent: Extent, machine: &Machine) -> Terms<'_> {
    Terms {
        extent,
        threads: vec![1, 2, 4, 8],
        quota_cpus: None,
        bytes: 1_280_000_000,
        room_bytes: 14 << 30,
        room_reason: "60 % of what is free".to_owned(),
        machine,
    }
}

fn codes(row: &RateRow) -> Vec<&str> {
    row.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn the_full_grid_has_every_row_once() {
    let machine = machine(105 << 20);
    let rows = terms(Extent::Full, &machine).rows().unwrap();
    let mut names: Vec<_> =
        rows.iter().map(|row| format!("{} {:?}", row.id(), row.parameters())).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), rows.len());
    let count = |id: &str| rows.iter().filter(|row| row.id() == id).count();
    for pattern in PATTERNS {
        assert_eq!(count(pattern.id), 3 * 4, "three block sizes, four numbers of threads");
    }
    assert_eq!(count("memory/access"), 3 * 4);
    assert_eq!(count(stream::ID), 6 * 2, "one and two threads");
    assert_eq!(count(working_set::ID), 11 * 8 + 3 * 7);
    let blocks = rows.iter().filter(|row| matches!(row.work, Work::Block { .. }));
    for row in blocks {
        assert_eq!(row.array_bytes(), 1_280_000_000, "nothing is rounded");
        assert_eq!(codes(row).contains(&warning::OVERSUBSCRIBED), row.parts.threads > 2);
        assert!(!codes(row).contains(&warning::SIZE_REDUCED));
    }
    let streams = rows.iter().filter(|row| matches!(row.work, Work::Stream(_)));
    for row in streams {
        assert_eq!(row.array_bytes(), 4 * (105 << 20));
    }
}

#[test]
fn the_few_rows_are_few() {
    let machine = machine(105 << 20);
    let terms = Terms { threads: vec![1, 2], ..terms(Extent::Few, &machine) };
    assert_eq!(terms.rows().unwrap().len(), 3);
}

#[test]
fn little_memory_means_smaller_rows_that_say_so() {
    let machine = machine(105 << 20);
    let terms = Terms { room_bytes: 400 << 20, ..terms(Extent::Full, &machine) };
    let rows = terms.rows().unwrap();
    for row in &rows {
        let code = match row.work {
            Work::Block { .. } | Work::Access(_) => warning::SIZE_REDUCED,
            // Three arrays of 96 MiB are more than twice the cache, two are not.
            Work::Stream(_) if row.parts.sources == 2 => warning::SIZE_REDUCED,
            Work::Stream(_) => warning::FITS_IN_CACHE,
            Work::WorkingSet { bytes, .. } => {
                assert!(bytes <= 192 << 20, "{row:?}");
                continue;
            }
        };
        assert!(codes(row).contains(&code), "{row:?}");
    }
    let Extents { source_bytes, target_bytes } = extents(&rows);
    assert!(source_bytes + target_bytes <= 400 << 20, "{source_bytes} + {target_bytes}");
    let largest = rows.iter().rfind(|row| row.id() == working_set::ID).unwrap();
    assert!(codes(largest).contains(&warning::SIZE_REDUCED));
}

#[test]
fn arrays_are_four_times_the_last_caches_of_all_threads() {
    // Twelve clusters of eight cores, each with 32 MiB (AMD EPYC 9654).
    let epyc = Machine { cpus: (0..96).collect(), last_caches: 12, ..machine(32 << 20) };
    let terms = Terms { threads: vec![1, 4, 96], ..terms(Extent::Full, &epyc) };
    for row in terms.rows().unwrap() {
        let caches = u64::from(row.parts.threads.min(12)) * (32 << 20);
        if let Work::Stream(_) = row.work {
            assert!(row.array_bytes().abs_diff(4 * caches) < 96 * GRANULE_BYTES as u64, "{row:?}");
            assert!(row.warnings.is_empty(), "{row:?}");
        }
    }
    let small = Terms { bytes: 320 << 20, ..terms };
    let is_block = |row: &&RateRow| matches!(row.work, Work::Block { .. });
    for row in small.rows().unwrap().iter().filter(is_block) {
        let is_held = row.parts.threads == 96;
        assert_eq!(codes(row).contains(&warning::FITS_IN_CACHE), is_held, "{row:?}");
    }
}

#[test]
fn what_the_rows_need_is_what_they_may_take() {
    for room_bytes in [20 << 20, 64 << 20, 1 << 30, 14 << 30] {
        for threads in [vec![1], vec![1, 2, 4, 8], vec![64], vec![1024]] {
            for extent in [Extent::Few, Extent::Quick, Extent::Full] {
                let machine = machine(384 << 20);
                let terms =
                    Terms { room_bytes, threads: threads.clone(), ..terms(extent, &machine) };
                let Extents { source_bytes, target_bytes } = extents(&terms.rows().unwrap());
                let taken = source_bytes + target_bytes;
                // Whole large pages, one more for the alignment of each.
                assert!(taken + (8 << 20) <= room_bytes + slack_bytes(), "{taken} of {room_bytes}");
            }
        }
    }
}

#[test]
fn too_little_memory_is_one_clear_line() {
    let machine = machine(105 << 20);
    let terms = Terms { room_bytes: 8 << 20, ..terms(Extent::Full, &machine) };
    let text = terms.rows().unwrap_err();
    assert!(text.contains("8 MiB may be taken") && !text.contains('\n'), "{text}");
}

#[test]
fn a_block_longer_than_a_part_is_said() {
    let machine = machine(32 << 20);
    let terms = Terms { threads: vec![64], ..terms(Extent::Full, &machine) };
    for row in terms.rows().unwrap() {
        let Work::Block { block_bytes, .. } = row.work else { continue };
        let is_cut = block_bytes > 1_280_000_000 / 64;
        assert_eq!(codes(&row).contains(&warning::SIZE_REDUCED), is_cut, "{row:?}");
        assert!(codes(&row).contains(&warning::OVERSUBSCRIBED));
    }
}

#[test]
fn a_total_that_a_cache_holds_is_said() {
    let machine = machine(105 << 20);
    let terms = Terms { bytes: 100 << 20, ..terms(Extent::Quick, &machine) };
    for row in terms.rows().unwrap() {
        if matches!(row.work, Work::Block { .. }) {
            assert!(codes(&row).contains(&warning::FITS_IN_CACHE));
            assert!(!row.kernel().unwrap().is_non_temporal());
        }
    }
}

#[test]
fn a_quota_of_less_than_the_threads_is_said() {
    let machine = machine(105 << 20);
    let terms = Terms { quota_cpus: Some(1.5), ..terms(Extent::Full, &machine) };
    for row in terms.rows().unwrap() {
        assert_eq!(codes(&row).contains(&warning::CPU_QUOTA), row.parts.threads > 1);
        assert_eq!(codes(&row).contains(&warning::OVERSUBSCRIBED), row.parts.threads > 2);
    }
}

#[test]
fn parts_are_whole_steps() {
    assert_eq!(part(1_280_000_000, 8), 160_000_000);
    assert_eq!(part(1000, 1), 768);
    assert_eq!(part(1000, 8), 0);
}
