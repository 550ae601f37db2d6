//! What each kind of row becomes.

mod run;

use std::path::Path;

use flatout_io::Split;

use super::super::Clearing;
use super::super::place::Overwriting;
use super::super::plan;
use super::*;
use crate::write::Sync;

const MIB: u64 = 1 << 20;

const TERMS: Terms = Terms {
    runtime_ns: 500_000_000,
    trial_write_bytes: 16 * MIB,
    most_write_bytes: 1 << 40,
    clearing: Clearing::File,
};

/// What is said of fio, as tests look at it.
#[derive(Debug)]
struct Nearest {
    command: Option<String>,
    note: String,
    facts: Facts,
}

fn nearest(row: &Row, place: &Place, length: u64, terms: &Terms, figure: Figure) -> Nearest {
    let facts = super::nearest(row, place, length, terms, figure);
    let command = facts.text(fact::FIO_COMMAND).map(str::to_owned);
    let note = facts.text(fact::FIO_NOTE).unwrap_or_default().to_owned();
    Nearest { command, note, facts }
}

fn row(test: Pattern, block_bytes: u64) -> Row {
    Row {
        test,
        tuning: Tuning {
            engine: Engine::Sync,
            caching: Caching::Direct,
            block_bytes,
            depth: 1,
            threads: 1,
            split: Split::Contiguous,
        },
        extents: Extents::Written,
        rate_per_s: None,
        read_percent: 70,
        sync: Sync::End,
        warnings: Vec::new(),
    }
}

fn tuned(row: Row, change: impl FnOnce(&mut Tuning)) -> Row {
    let mut row = row;
    change(&mut row.tuning);
    row
}

fn buffered(row: Row) -> Row {
    tuned(row, |tuning| tuning.caching = Caching::Buffered)
}

fn threaded(row: Row, threads: u32) -> Row {
    tuned(row, |tuning| tuning.threads = threads)
}

fn interleaved(row: Row) -> Row {
    tuned(row, |tuning| tuning.split = Split::Interleaved)
}

/// A place as on a disk, wherever temporary files lie.
fn on_disk(path: &Path, overwriting: Overwriting) -> Place {
    Place { is_in_memory: false, ..Place::find(path, overwriting).unwrap() }
}

fn in_directory(row: &Row, length_bytes: u64, figure: Figure) -> Nearest {
    let directory = tempfile::tempdir().unwrap();
    let place = on_disk(directory.path(), Overwriting::Refused);
    nearest(row, &place, length_bytes, &TERMS, figure)
}

fn on_file(row: &Row, overwriting: Overwriting) -> Nearest {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(64 * MIB).unwrap();
    let place = on_disk(file.path(), overwriting);
    nearest(row, &place, 64 * MIB, &TERMS, Figure::Own)
}

/// Fails unless the words are in the command of a row in a directory, at a file of 64 MiB, and
/// those after a `!` are not.
#[track_caller]
fn has(row: &Row, figure: Figure, words: &str) {
    check(&in_directory(row, 64 * MIB, figure), words);
}

#[track_caller]
fn check(nearest: &Nearest, words: &str) {
    let command = nearest.command.as_ref().unwrap();
    let options: Vec<&str> = command.split(' ').collect();
    // The folders of a path have names of anything.
    let bare = |option: &&str| match option.split_once('/') {
        Some((before, path)) => before.to_owned() + path.rsplit('/').next().unwrap_or_default(),
        None => (*option).to_owned(),
    };
    let bare = options.iter().map(bare).collect::<Vec<_>>().join(" ");
    for word in words.split(' ') {
        match word.strip_prefix('!') {
            Some(word) => assert!(!bare.contains(word), "{word}: {command}"),
            None => assert!(options.contains(&word), "{word}: {command}"),
        }
    }
}

fn note(nearest: &Nearest) -> &str {
    &nearest.note
}

#[test]
fn each_test_has_its_direction() {
    for (test, words) in [
        (Pattern::SequentialRead, "--rw=read --name=sequential-read"),
        (Pattern::SequentialWrite, "--rw=write --name=sequential-write"),
        (Pattern::Rewrite, "--rw=write"),
        (Pattern::RandomRead, "--rw=randread --randrepeat=0"),
        (Pattern::RandomWrite, "--rw=randwrite --randrepeat=0"),
        (Pattern::Mixed, "--rw=randrw --rwmixread=70"),
        (Pattern::SequentialMixed, "--rw=readwrite --rwmixread=70 !randrepeat"),
        (Pattern::BackwardRead, "--rw=read:-131072"),
        (Pattern::StridedRead, "--rw=read:1048576"),
        (Pattern::ColdBlocks, "--rw=read --runtime=5 !time_based"),
        (Pattern::Reread, "--rw=read --pre_read=1 --invalidate=0 --time_based"),
    ] {
        has(&row(test, 65536), Figure::Own, words);
    }
    let nearest = in_directory(&row(Pattern::SequentialCopy, 4096), MIB, Figure::Own);
    assert_eq!((nearest.command.as_ref(), note(&nearest).contains("copies")), (None, true));
}

#[test]
fn engines_and_caching_are_told() {
    let read = row(Pattern::RandomRead, 4096);
    has(&read, Figure::Own, "--ioengine=psync --direct=1 !iodepth");
    let ring = tuned(read.clone(), |tuning| {
        (tuning.engine, tuning.depth) = (Engine::Uring, 64);
    });
    has(
        &ring,
        Figure::Own,
        "--ioengine=io_uring --iodepth=64 --registerfiles --iodepth_batch=4 --direct=1",
    );
    has(&buffered(read.clone()), Figure::Own, "--direct=0 !uncached");
    let dropped = |row| tuned(row, |tuning| tuning.caching = Caching::Dontcache);
    has(&dropped(read), Figure::Own, "--ioengine=pvsync2 --direct=0 --uncached=1");
    let nearest = in_directory(&dropped(ring), MIB, Figure::Own);
    check(&nearest, "--ioengine=io_uring --uncached=1");
    assert!(note(&nearest).contains("2025"));
}

#[test]
fn the_line_beside_a_row_says_what_the_row_says() {
    let directory = tempfile::tempdir().unwrap();
    let place = Place::find(directory.path(), Overwriting::Refused).unwrap();
    let mut lines = 0;
    for row in plan::tests_rows() {
        let nearest = nearest(&row, &place, 1024 * MIB, &TERMS, Figure::Own);
        let Some(command) = nearest.command.as_ref() else {
            assert!(!note(&nearest).is_empty(), "{row:?}: neither line nor reason");
            continue;
        };
        lines += 1;
        let option = |name: &str| {
            let word = command.split(' ').filter_map(|word| word.strip_prefix("--")).rev();
            let mut word = word.filter_map(|word| word.split_once('='));
            word.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        let Tuning { engine, caching, block_bytes, depth, threads, .. } = row.tuning;
        let is_ring = engine == Engine::Uring;
        let said = ["bs", "ioengine", "iodepth", "direct", "numjobs"].map(option);
        let engine = if is_ring { "io_uring" } else { "psync" };
        let direct = u8::from(caching == Caching::Direct);
        assert_eq!(
            said[0].as_deref().and_then(|bs| bs.split(',').next()),
            Some(&*block_bytes.to_string())
        );
        assert_eq!(said[1].as_deref(), Some(engine), "{command}");
        assert_eq!(said[2], is_ring.then(|| depth.to_string()), "{command}");
        assert_eq!(said[3], Some(direct.to_string()), "{command}");
        assert_eq!(said[4], (threads > 1).then(|| threads.to_string()), "{command}");
        let fills_a_page = u64::from(depth) * block_bytes >= 2 * MIB && block_bytes >= MIB / 4;
        let is_on_large_pages = direct == 1 && fills_a_page;
        assert_eq!(command.starts_with(HUGE_PAGES), is_on_large_pages, "{command}");
    }
    // Nothing of a file in memory goes around the cache.
    assert!(lines > 5 || crate::scratch::on(directory.path()).unwrap().in_memory, "{lines}");
}

#[test]
fn only_the_durable_row_syncs_and_only_once_per_trial() {
    let fresh = Row { extents: Extents::Fresh, ..row(Pattern::SequentialWrite, 65536) };
    let words = "!fsync --size=67108864 --runtime=2 !overwrite !time_based";
    check(&in_directory(&fresh, 128 * MIB, Figure::Own), words);
    has(&fresh, Figure::Fsynced, "--end_fsync=1 --size=67108864 --runtime=2 !overwrite");
    has(&buffered(fresh), Figure::Own, "!fsync --size=67108864 --runtime=2");
    let written = row(Pattern::RandomWrite, 4096);
    let words = "!fsync --overwrite=1 --size=67108864 --io_size=335544320 --runtime=5 !time_based";
    has(&written, Figure::Own, words);
    has(&Row { sync: Sync::Each, ..written.clone() }, Figure::Own, "--sync=dsync !end_fsync");
    let words = "--end_fsync=1 --overwrite=1 --size=134217728 --io_size=67108864 --runtime=2";
    check(&in_directory(&written, 128 * MIB, Figure::Fsynced), words);
    let words = "--io_size=67108864 --runtime=2 !fsync";
    check(&in_directory(&buffered(written), 128 * MIB, Figure::Own), words);
}

#[test]
fn every_command_ends_and_cold_blocks_are_read_once() {
    has(&row(Pattern::RandomRead, 4096), Figure::Own, "--runtime=5 --time_based");
    has(&buffered(row(Pattern::RandomRead, 4096)), Figure::Own, "--runtime=2 !time_based");
    has(&buffered(row(Pattern::SequentialRead, 4096)), Figure::Own, "--runtime=2 !time_based");
    let once = buffered(row(Pattern::StridedRead, 4096));
    has(&once, Figure::Own, "--io_size=3944448 --runtime=2 !time_based");
    let cold = in_directory(&row(Pattern::ColdBlocks, 4096), MIB, Figure::Own);
    assert!(note(&cold).contains("second pass"));
}

#[test]
fn what_lives_in_memory_is_never_cold_and_read_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let in_memory = Place { is_in_memory: true, ..on_disk(directory.path(), Overwriting::Refused) };
    let nearest = |row: &Row| nearest(row, &in_memory, 64 * MIB, &TERMS, Figure::Own);
    let words = "--runtime=5 --time_based --gtod_reduce=1 --norandommap";
    check(&nearest(&buffered(row(Pattern::RandomRead, 4096))), words);
    let words = "--io_size=335544320 --runtime=5 !time_based";
    check(&nearest(&buffered(row(Pattern::RandomWrite, 4096))), words);
    let fresh = Row { extents: Extents::Fresh, ..buffered(row(Pattern::SequentialWrite, 65536)) };
    check(&nearest(&fresh), "--runtime=2 !time_based !norandommap");
    // What shows fio's own work, or how threads of the kernel are woken.
    let ring =
        tuned(buffered(row(Pattern::RandomRead, 4096)), |tuning| tuning.engine = Engine::Uring);
    for (none, why) in
        [(ring, "threads of the kernel"), (buffered(row(Pattern::RandomRead, 8)), "own work")]
    {
        let nearest = nearest(&none);
        assert!(nearest.command.is_none() && nearest.note.contains(why), "{nearest:?}");
    }
}

#[test]
fn jobs_get_whole_blocks() {
    let three = |row| threaded(row, 3);
    // 64 MiB are 1024 blocks of 64 KiB: 341 for each of three.
    let words = "--numjobs=3 --size=22347776 --offset_increment=22347776 --time_based";
    has(&three(row(Pattern::SequentialRead, 65536)), Figure::Own, words);
    has(&three(row(Pattern::BackwardRead, 65536)), Figure::Own, words);
    let taking_turns = interleaved(three(row(Pattern::SequentialRead, 65536)));
    let words = "--rw=read:131072 --offset_increment=65536 --size=66977792 !io_size";
    has(&taking_turns, Figure::Own, words);
    has(&buffered(taking_turns), Figure::Own, "--rw=read:131072 --io_size=22347776");
    let words = "--numjobs=3 --rw=read:1048576 --offset_increment=327680 --size=66453504";
    has(&three(row(Pattern::StridedRead, 65536)), Figure::Own, words);

    let random = in_directory(&three(row(Pattern::RandomRead, 65536)), 64 * MIB, Figure::Own);
    check(&random, "--size=67108864 --numjobs=3 !increment");
    assert!(note(&random).contains("visits all blocks"));
    let random =
        in_directory(&three(buffered(row(Pattern::RandomRead, 65536))), 64 * MIB, Figure::Own);
    check(&random, "--size=22347776 --numjobs=3 --offset_increment=22347776");
    assert!(note(&random).contains("to itself"));

    let few =
        in_directory(&threaded(row(Pattern::SequentialRead, 65536), 8), 2 * 65536 + 1, Figure::Own);
    check(&few, "--numjobs=2 --size=65536 --offset_increment=65536");
    assert!(note(&few).contains("fewer blocks"));
    let none = in_directory(&row(Pattern::SequentialRead, 65536), 65535, Figure::Own);
    assert_eq!((none.command.as_ref(), note(&none)), (None, "the file is shorter than a block"));
    // Few blocks have one row of columns: they are read from front to end.
    check(&in_directory(&row(Pattern::StridedRead, MIB), 17 * MIB, Figure::Own), "--rw=read");
}

#[test]
fn rates_are_those_of_one_job_and_one_direction() {
    let paced = |test, rate| Row { rate_per_s: Some(rate), ..row(test, 4096) };
    has(&paced(Pattern::RandomRead, 1000.0), Figure::Own, "--rate_iops=1000");
    has(&threaded(paced(Pattern::RandomRead, 1000.0), 4), Figure::Own, "--rate_iops=250");
    has(&threaded(paced(Pattern::RandomRead, 1000.0), 3), Figure::Own, "--rate=1365333 !rate_iops");
    has(&paced(Pattern::RandomRead, 0.5), Figure::Own, "--rate=2048");
    has(&paced(Pattern::RandomRead, 1e-9), Figure::Own, "--rate=1");
    has(&paced(Pattern::Mixed, 1000.0), Figure::Own, "--rate_iops=700,300");
    has(&threaded(paced(Pattern::Mixed, 1000.0), 3), Figure::Own, "--rate=955733,409600");
    let reads = Row { read_percent: 100, ..paced(Pattern::Mixed, 1000.0) };
    has(&reads, Figure::Own, "--rate_iops=1000,0 --rwmixread=100");
    let nearest = in_directory(&paced(Pattern::RandomRead, 10.0), MIB, Figure::Own);
    assert!(note(&nearest).contains("intended start"));
}

#[test]
fn what_is_somebody_elses_is_only_read() {
    for test in [Pattern::RandomRead, Pattern::SequentialRead, Pattern::Reread, Pattern::ColdBlocks]
    {
        for overwriting in [Overwriting::Refused, Overwriting::Allowed] {
            let nearest = on_file(&row(test, 4096), overwriting);
            check(&nearest, "--readonly --bs=4096 !unlink !overwrite");
        }
    }
    for test in
        [Pattern::RandomWrite, Pattern::SequentialWrite, Pattern::Mixed, Pattern::SequentialMixed]
    {
        let nearest = on_file(&row(test, 4096), Overwriting::Allowed);
        check(&nearest, "--allow_file_create=0 --overwrite=1 !unlink !layout");
    }
    has(&row(Pattern::RandomRead, 4096), Figure::Own, "--unlink=1 !readonly !rm");
    let several = in_directory(&threaded(row(Pattern::RandomRead, 4096), 2), MIB, Figure::Own);
    check(&several, "!unlink !readonly");
    assert!(several.command.is_some_and(|line| line.ends_with("/flatout-fio.tmp")));
}

#[test]
fn a_device_in_use_keeps_its_cache() {
    let Some(node) = std::fs::read_dir("/dev").ok().and_then(|entries| {
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.find(|path| {
            Place::find(path, Overwriting::Refused).is_ok_and(|place| place.kind == Kind::Device)
        })
    }) else {
        println!("skipped: no block device to look at");
        return;
    };
    let place = Place::find(&node, Overwriting::Refused).unwrap();
    let read = row(Pattern::RandomRead, 4096);
    let nearest = |row: &Row| nearest(row, &place, 64 * MIB, &TERMS, Figure::Own);
    check(&nearest(&read), "--readonly --invalidate=0");
    check(&nearest(&buffered(read)), "--readonly !invalidate");
}

#[test]
fn files_are_not_filled_in_tiny_blocks() {
    has(&row(Pattern::RandomRead, 4096), Figure::Own, "--bs=4096 !layout");
    has(&row(Pattern::RandomWrite, 4096), Figure::Own, "--bs=4096 --overwrite=1 !layout");
    let words = "--name=layout --bs=1048576 --stonewall --bs=512 !overwrite";
    has(&row(Pattern::RandomWrite, 512), Figure::Own, words);
    has(&row(Pattern::RandomRead, 512), Figure::Own, "--bs=512,1048576 !layout");
}

#[test]
fn large_requests_are_made_from_pages_as_large_as_ours() {
    let read = tuned(row(Pattern::SequentialRead, MIB), |tuning| {
        (tuning.engine, tuning.depth, tuning.threads) = (Engine::Uring, 16, 2);
    });
    let nearest = in_directory(&read, 64 * MIB, Figure::Own);
    let command = |nearest: &Nearest| nearest.command.clone().unwrap();
    assert!(command(&nearest).starts_with("GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio --"));
    assert!(note(&nearest).contains("large pages"), "{nearest:?}");
    // One buffer of 1 MiB is not on huge pages, and the page cache needs no long requests.
    let one = tuned(read.clone(), |tuning| tuning.depth = 1);
    for row in [one, buffered(read), row(Pattern::RandomRead, 4096)] {
        let nearest = in_directory(&row, 64 * MIB, Figure::Own);
        assert!(!note(&nearest).contains("large pages"));
        assert!(command(&nearest).starts_with("fio --"));
    }
}

#[test]
fn a_name_that_fio_would_cut_is_not_printed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk#1");
    std::fs::write(&path, [1; 8192]).unwrap();
    let place = Place::find(Path::new(&path), Overwriting::Allowed).unwrap();
    let nearest = nearest(&row(Pattern::RandomWrite, 4096), &place, 8192, &TERMS, Figure::Own);
    assert_eq!(nearest.command, None);
    assert!(note(&nearest).contains("another file"));
}

#[test]
fn the_options_of_the_rows_own_job_are_a_fact() {
    let tiny = row(Pattern::RandomWrite, 512);
    let facts = in_directory(&tiny, 64 * MIB, Figure::Own).facts;
    let Some(Value::Fields(options)) = facts.value(fact::FIO_OPTIONS) else { panic!("{facts:?}") };
    let option = |name: &str| {
        options.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    assert_eq!(option("rw"), Some("randwrite".into()));
    assert_eq!(option("bs"), Some("512".into()), "not that of the job that fills the file");
    assert_eq!(option("thread"), Some("1".into()), "a flag");
    let copy = in_directory(&row(Pattern::SequentialCopy, 4096), MIB, Figure::Own).facts;
    assert_eq!((copy.value(fact::FIO_OPTIONS), copy.value(fact::FIO_COMMAND)), (None, None));
    assert!(copy.text(fact::FIO_NOTE).is_some_and(|note| note.contains("copies")));
}
