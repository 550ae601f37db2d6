//! Which rows the disk area has: a short plan, the whole grid, or what the user asked for.

use flatout_io::{Caching, Engine, Split, Tuning};

use flatout_measure::{Row as _, Warning, warning};

use super::Selection;
use super::pattern::{IoType, Pattern};
use super::place::{Kind, Place};
use super::row::{Extents, Row};
use crate::option::{chosen_or, distinct};
use crate::write::Sync;
use crate::{Extent, KIB, MIB};

/// Requests in flight that bring a disk to its best rate with large blocks.
const STREAM_DEPTH: u32 = 16;
/// Requests in flight that bring a disk to its best rate with small blocks.
const RANDOM_DEPTH: u32 = 64;
const STREAM_BYTES: u64 = MIB;
const RANDOM_BYTES: u64 = 4 * KIB;
/// Reads of a hundred operations of a mix.
const READ_PERCENT: u8 = 70;
/// The grid of the matrix.
const MATRIX_BLOCKS: [u64; 3] = [8 * KIB, 8 * MIB, 80 * MIB];
const MATRIX_THREADS: [u32; 4] = [1, 2, 4, 8];
const TINY_BYTES: u64 = 8;

/// The rows of a run, before anybody has looked at what this place can do.
pub(super) fn rows(extent: Extent, selection: &Selection, place: &Place) -> Vec<Row> {
    let mut rows = match &selection.patterns[..] {
        _ if selection.matrix => matrix(selection, place),
        [] => {
            let mut rows = match place.kind {
                Kind::Directory => in_directory(extent),
                Kind::File | Kind::Device => on_file(place),
            };
            rows.iter_mut().for_each(|row| selection.bend(row));
            rows
        }
        patterns => patterns.iter().flat_map(|&p| asked(p, selection, place)).collect(),
    };
    // To tmpfs a ring's requests are done by threads of the kernel, one by one: a read of 4 KiB took 44 us,
    // and 64 at a time 0.5 to 0.9 million a second, by how those were woken (Linux 6.18, 2 CPUs,
    // 2026-11-26). A call takes a microsecond.
    if place.is_in_memory && selection.engine.is_none() && selection.depths.is_empty() {
        for row in &mut rows {
            (row.tuning.engine, row.tuning.depth) = (Engine::Sync, 1);
        }
    }
    // Lists may meet in one row: an engine without depth has one for all depths.
    each_once(rows.into_iter())
}

/// The first of the rows that a record could not tell apart.
pub(super) fn each_once(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    distinct(rows, |one, other| one.test == other.test && one.parameters() == other.parameters())
}

fn row(test: Pattern, block_bytes: u64, depth: u32) -> Row {
    let tuning = Tuning {
        engine: Engine::Uring,
        caching: Caching::Direct,
        block_bytes,
        depth,
        threads: 1,
        split: Split::Contiguous,
    };
    Row {
        test,
        tuning,
        extents: Extents::Written,
        rate_per_s: None,
        read_percent: READ_PERCENT,
        sync: Sync::End,
        warnings: Vec::new(),
    }
}

fn fresh(row: Row) -> Row {
    Row { extents: Extents::Fresh, ..row }
}

fn buffered(row: Row) -> Row {
    let tuning =
        Tuning { engine: Engine::Sync, caching: Caching::Buffered, depth: 1, ..row.tuning };
    Row { tuning, ..row }
}

/// A row of a test with the settings that bring a disk to its best rate.
fn usual(test: Pattern) -> Row {
    let row = match test.is_random() {
        true => row(test, RANDOM_BYTES, RANDOM_DEPTH),
        false => row(test, STREAM_BYTES, STREAM_DEPTH),
    };
    match test {
        Pattern::SequentialCopy => fresh(row),
        Pattern::Reread => buffered(row),
        _ => row,
    }
}

/// Throughput, IOPS and latency in a dozen rows; the shortest form leaves out what a first look
/// can do without.
fn in_directory(extent: Extent) -> Vec<Row> {
    let all = [
        (usual(Pattern::SequentialRead), true),
        (fresh(usual(Pattern::SequentialWrite)), true),
        (usual(Pattern::SequentialWrite), false),
        (fresh(buffered(usual(Pattern::SequentialWrite))), false),
        (usual(Pattern::SequentialCopy), false),
        (usual(Pattern::RandomRead), true),
        (row(Pattern::RandomRead, RANDOM_BYTES, 1), true),
        (usual(Pattern::RandomWrite), false),
        (row(Pattern::RandomWrite, RANDOM_BYTES, 1), true),
        (usual(Pattern::Mixed), false),
    ];
    all.into_iter()
        .filter(|(_, is_few)| *is_few || extent != Extent::Few)
        .map(|row| row.0)
        .collect()
}

/// What can be found out about a file or a device that is somebody else's.
fn on_file(place: &Place) -> Vec<Row> {
    let all = [
        usual(Pattern::ColdBlocks),
        usual(Pattern::SequentialRead),
        usual(Pattern::RandomRead),
        row(Pattern::RandomRead, RANDOM_BYTES, 1),
        usual(Pattern::SequentialWrite),
        usual(Pattern::RandomWrite),
        row(Pattern::RandomWrite, RANDOM_BYTES, 1),
        usual(Pattern::Mixed),
    ];
    all.into_iter().filter(|row| is_possible(row.test, place)).collect()
}

fn is_possible(test: Pattern, place: &Place) -> bool {
    match test.io_type() {
        IoType::Read => true,
        IoType::Write | IoType::Mixed if place.may_overwrite() => true,
        IoType::Write | IoType::Mixed | IoType::Copy => place.kind == Kind::Directory,
    }
}

/// The rows of one pattern: every block size with every depth and number of threads asked for.
fn asked(pattern: Pattern, selection: &Selection, place: &Place) -> Vec<Row> {
    if pattern == Pattern::Metadata {
        return Vec::new();
    }
    let base = usual(pattern);
    let is_twice = pattern == Pattern::SequentialWrite && place.kind == Kind::Directory;
    let first = is_twice.then(|| fresh(base.clone()));
    let bases = first.into_iter().chain([base]);
    bases.flat_map(|base| spread(&base, selection)).collect()
}

/// The rows of a short plan, for tests.
#[cfg(test)]
pub(super) fn tests_rows() -> Vec<Row> {
    in_directory(Extent::Full)
}

/// One row for each combination of the lists asked for.
fn spread(base: &Row, selection: &Selection) -> Vec<Row> {
    let mut rows = Vec::new();
    for block_bytes in chosen_or(&selection.block_bytes, &[base.tuning.block_bytes]) {
        for threads in chosen_or(&selection.threads, &[base.tuning.threads]) {
            for depth in chosen_or(&selection.depths, &[base.tuning.depth]) {
                let mut row = base.clone();
                row.tuning = Tuning { block_bytes, threads, depth, ..row.tuning };
                selection.bend(&mut row);
                rows.push(row);
            }
        }
    }
    rows
}

/// Five tests at three block sizes and four numbers of threads, each thread with one request in
/// flight unless a depth is asked for; the latency of 8 bytes; and IOzone's further tests.
fn matrix(selection: &Selection, place: &Place) -> Vec<Row> {
    use Pattern::{BackwardRead, Reread, Rewrite, StridedRead};
    use Pattern::{LatencyCopy, LatencyRandomRead, LatencyRandomWrite, LatencyRead, LatencyWrite};
    use Pattern::{RandomRead, RandomWrite, SequentialCopy, SequentialRead, SequentialWrite};
    let tests = [SequentialCopy, SequentialRead, RandomRead, SequentialWrite, RandomWrite];
    let tiny = [LatencyCopy, LatencyRead, LatencyRandomRead, LatencyWrite, LatencyRandomWrite];
    let further = [Rewrite, Reread, BackwardRead, StridedRead];
    let is_buffered = |test: Pattern| test.is_latency() || test == Reread;
    let depth = selection.depths.first().copied().unwrap_or(1);
    let mut rows = Vec::new();
    let mut add = |tests: &[Pattern], block_bytes, threads| {
        for &test in tests.iter().filter(|&&test| is_possible(test, place)) {
            let base = row(test, block_bytes, depth);
            let base = match test {
                SequentialWrite if place.kind == Kind::Directory => fresh(base),
                SequentialCopy => fresh(base),
                LatencyCopy => fresh(buffered(base)),
                _ if is_buffered(test) => buffered(base),
                _ => base,
            };
            rows.push(Row { tuning: Tuning { threads, ..base.tuning }, ..base });
        }
    };
    for threads in MATRIX_THREADS {
        MATRIX_BLOCKS.into_iter().for_each(|block_bytes| add(&tests, block_bytes, threads));
        add(&tiny, TINY_BYTES, threads);
    }
    MATRIX_BLOCKS.into_iter().for_each(|block_bytes| add(&further, block_bytes, 1));
    for row in &mut rows {
        // One request at a time needs no ring, and is what other programs do.
        if row.tuning.depth == 1 {
            row.tuning.engine = Engine::Sync;
        }
        let kept = row.tuning;
        selection.bend(row);
        if is_buffered(row.test) {
            row.tuning = kept;
        }
    }
    rows
}

/// The value of a list that has one.
fn only<T: Copy>(list: &[T]) -> Option<T> {
    if let [value] = list { Some(*value) } else { None }
}

impl Selection {
    /// Gives a row the settings that the user fixed for all rows.
    fn bend(&self, row: &mut Row) {
        let tuning = &mut row.tuning;
        let caching = self.caching.filter(|_| row.test != Pattern::Reread);
        *tuning = Tuning {
            engine: self.engine.unwrap_or(tuning.engine),
            caching: caching.unwrap_or(tuning.caching),
            block_bytes: only(&self.block_bytes).unwrap_or(tuning.block_bytes),
            depth: only(&self.depths).unwrap_or(tuning.depth),
            threads: only(&self.threads).unwrap_or(tuning.threads),
            split: self.split.unwrap_or(tuning.split),
        };
        if tuning.engine == Engine::Sync {
            if let Some(depth) = self.depths.iter().max().filter(|&&depth| depth > 1) {
                let text = format!(
                    "the sync engine has one request in flight: --iodepth {depth} has no effect"
                );
                warning::add(&mut row.warnings, Warning::new(warning::DEPTH_UNUSED, text));
            }
            tuning.depth = 1;
        }
        // A pass through the cache, or over cold blocks, has no pace; nor has a single latency.
        let is_paced =
            !row.test.is_latency() && !matches!(row.test, Pattern::Reread | Pattern::ColdBlocks);
        row.rate_per_s = self.rate_per_s.filter(|_| is_paced);
        row.read_percent = self.read_percent.unwrap_or(row.read_percent);
        row.sync = self.sync.unwrap_or(row.sync);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::disk::place::Overwriting;

    fn in_temporary_directory(selection: &Selection) -> Vec<Row> {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::find(directory.path(), Overwriting::Refused).unwrap();
        rows(Extent::Full, selection, &place)
    }

    #[test]
    fn the_matrix_has_every_test_at_every_size_and_number_of_threads() {
        let rows = in_temporary_directory(&Selection { matrix: true, ..Selection::default() });
        let of = |test: Pattern| rows.iter().filter(move |row| row.test == test);
        for test in [
            Pattern::SequentialCopy,
            Pattern::SequentialRead,
            Pattern::RandomRead,
            Pattern::SequentialWrite,
            Pattern::RandomWrite,
        ] {
            let grid: BTreeSet<_> =
                of(test).map(|row| (row.tuning.block_bytes, row.tuning.threads)).collect();
            assert_eq!(grid.len(), 12, "{test:?}");
            assert!(of(test).all(|row| row.tuning.caching == Caching::Direct));
        }
        for test in [Pattern::Rewrite, Pattern::Reread, Pattern::BackwardRead, Pattern::StridedRead]
        {
            assert_eq!(of(test).count(), 3, "{test:?}");
        }
        let tiny = rows.iter().filter(|row| row.test.is_latency());
        assert_eq!(tiny.filter(|row| row.tuning.block_bytes == 8).count(), 20);
    }

    #[test]
    fn what_lives_in_memory_is_asked_for_by_calls_unless_a_ring_is_wanted() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::find(directory.path(), Overwriting::Refused).unwrap();
        let engines = |is_in_memory, selection: &Selection| -> BTreeSet<String> {
            let rows = rows(Extent::Full, selection, &Place { is_in_memory, ..place.clone() });
            rows.iter().map(|row| row.tuning.engine.to_string()).collect()
        };
        let usual = Selection::default();
        assert!(engines(false, &usual).contains("uring"));
        assert_eq!(engines(true, &usual), ["sync".to_owned()].into());
        let asked = Selection { depths: vec![8], ..Selection::default() };
        assert!(engines(true, &asked).contains("uring"));
    }

    #[test]
    fn lists_make_sweeps_in_which_no_row_comes_twice() {
        let selection = Selection {
            patterns: vec![Pattern::RandomRead],
            block_bytes: vec![4096, 65536],
            depths: vec![1, 16, 64],
            engine: Some(Engine::Sync),
            ..Selection::default()
        };
        let rows = in_temporary_directory(&selection);
        assert_eq!(rows.len(), 2, "the sync engine has one depth");
        assert!(rows.iter().all(|row| row.tuning.depth == 1));
    }

    #[test]
    fn a_file_that_is_only_read_has_no_row_that_writes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        for (overwriting, writes) in [(Overwriting::Refused, false), (Overwriting::Allowed, true)] {
            let place = Place::find(file.path(), overwriting).unwrap();
            for (extent, matrix) in
                [(Extent::Few, false), (Extent::Full, false), (Extent::Full, true)]
            {
                let rows = rows(extent, &Selection { matrix, ..Selection::default() }, &place);
                assert_eq!(rows.iter().any(Row::writes), writes, "{extent:?}, {matrix}");
                assert!(rows.iter().all(|row| row.extents == Extents::Written));
            }
        }
    }
}
