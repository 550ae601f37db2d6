//! The grids on machines of several kinds, and with little memory.

use flatout_measure::record::Provenance;

use super::super::levels::{Level, MEMORY};
use super::*;

fn levels(last: u64) -> Levels {
    let level = |name, bytes| Level {
        name,
        bytes,
        latency_ns: None,
        provenance: Provenance::Cpuid,
        declared_bytes: bytes,
    };
    let sizes = [("L1", Some(48 << 10)), ("L2", Some(2 << 20)), ("L3", Some(last)), (MEMORY, None)];
    let levels = sizes.map(|(name, bytes)| level(name, bytes)).to_vec();
    Levels { levels, largest_declared_bytes: Some(last) }
}

fn terms(extent: Extent, levels: &Levels) -> Terms<'_> {
    Terms {
        extent,
        threads: vec![1, 2, 4, 8],
        cpus: 2,
        quota_cpus: None,
        bytes: 1_280_000_000,
        room_bytes: 14 << 30,
        room_reason: "60 % of what is free".to_owned(),
        levels,
    }
}

fn codes(row: &RateRow) -> Vec<&str> {
    row.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn the_full_grid_has_every_row_once() {
    let levels = levels(105 << 20);
    let rows = terms(Extent::Full, &levels).rows().unwrap();
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
    let levels = levels(105 << 20);
    let terms = Terms { threads: vec![1, 2], ..terms(Extent::Few, &levels) };
    assert_eq!(terms.rows().unwrap().len(), 3);
}

#[test]
fn little_memory_means_smaller_rows_that_say_so() {
    let levels = levels(105 << 20);
    let terms = Terms { room_bytes: 400 << 20, ..terms(Extent::Full, &levels) };
    let rows = terms.rows().unwrap();
    for row in &rows {
        let code = match row.work {
            Work::Block { .. } | Work::Access(_) => warning::SIZE_REDUCED,
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
fn what_the_rows_need_is_what_they_may_take() {
    for room_bytes in [20 << 20, 64 << 20, 1 << 30, 14 << 30] {
        for threads in [vec![1], vec![1, 2, 4, 8], vec![64], vec![1024]] {
            for extent in [Extent::Few, Extent::Quick, Extent::Full] {
                let levels = levels(384 << 20);
                let terms =
                    Terms { room_bytes, threads: threads.clone(), ..terms(extent, &levels) };
                let Extents { source_bytes, target_bytes } = extents(&terms.rows().unwrap());
                let taken = source_bytes + target_bytes;
                // Whole large pages, one more for the alignment of each.
                assert!(taken + (8 << 20) <= room_bytes + SLACK_BYTES, "{taken} of {room_bytes}");
            }
        }
    }
}

#[test]
fn too_little_memory_is_one_clear_line() {
    let levels = levels(105 << 20);
    let terms = Terms { room_bytes: 8 << 20, ..terms(Extent::Full, &levels) };
    let text = terms.rows().unwrap_err();
    assert!(text.contains("8 MiB may be taken") && !text.contains('\n'), "{text}");
}

#[test]
fn a_block_longer_than_a_part_is_said() {
    let levels = levels(32 << 20);
    let terms = Terms { threads: vec![64], ..terms(Extent::Full, &levels) };
    for row in terms.rows().unwrap() {
        let Work::Block { block_bytes, .. } = row.work else { continue };
        let is_cut = block_bytes > 1_280_000_000 / 64;
        assert_eq!(codes(&row).contains(&warning::SIZE_REDUCED), is_cut, "{row:?}");
        assert!(codes(&row).contains(&warning::OVERSUBSCRIBED));
    }
}

#[test]
fn a_total_that_a_cache_holds_is_said() {
    let levels = levels(105 << 20);
    let terms = Terms { bytes: 100 << 20, ..terms(Extent::Quick, &levels) };
    for row in terms.rows().unwrap() {
        if matches!(row.work, Work::Block { .. }) {
            assert!(codes(&row).contains(&warning::FITS_IN_CACHE));
            assert!(!row.kernel().unwrap().is_non_temporal());
        }
    }
}

#[test]
fn a_quota_of_less_than_the_threads_is_said() {
    let levels = levels(105 << 20);
    let terms = Terms { quota_cpus: Some(1.5), ..terms(Extent::Full, &levels) };
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
