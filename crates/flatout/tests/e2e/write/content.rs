//! The bytes that a write leaves, held against each other and against their definition, for every
//! way of writing them.

use std::fs;

use crate::bin::Folder;
use crate::fixture::{Random, seed};

/// Length of the file that all others of the same seed have to be a beginning of.
const REFERENCE_BYTES: usize = 40 * 4096;

/// Block sizes, and how many of these blocks reach no further than the reference.
const BLOCKS: [(usize, usize); 4] = [(1, 5000), (3, 5001), (1000, 163), (4096, 40)];
const ENGINES: [&str; 3] = ["sync", "uring", "uring --depth 3"];
const CACHINGS: [&str; 3] = ["buffered", "direct", "dontcache"];

/// What is in the file after this write.
fn written(folder: &Folder, way: &str) -> Vec<u8> {
    let arguments = format!("write new {way}");
    folder.flatout(arguments.split(' ')).leaves("new").run().exits(0);
    let bytes = fs::read(folder.join("new")).unwrap();
    fs::remove_file(folder.join("new")).unwrap();
    bytes
}

/// The first `length` bytes of the pattern: each aligned word holds its own offset.
fn pattern(length: usize) -> Vec<u8> {
    let words = (0..length.div_ceil(8) as u64).flat_map(|word| (word * 8).to_le_bytes());
    words.take(length).collect()
}

fn expected(folder: &Folder, data: &str, seed: u64) -> Vec<u8> {
    match data {
        "pattern" => pattern(REFERENCE_BYTES),
        "zero" => vec![0; REFERENCE_BYTES],
        _ => written(
            folder,
            &format!("--seed {seed} --block-size {REFERENCE_BYTES} --block-count 1"),
        ),
    }
}

#[track_caller]
fn holds(folder: &Folder, way: &str, length: usize, expected: &[u8]) {
    let bytes = written(folder, way);
    assert_eq!(bytes.len(), length, "{way}");
    let wrong = bytes.iter().zip(expected).position(|(one, other)| one != other);
    assert_eq!(wrong, None, "the first wrong byte of {way}");
}

#[test]
fn every_engine_thread_count_and_block_size_writes_the_same_bytes() {
    let folder = Folder::new();
    for data in ["random", "zero", "pattern"] {
        let expected = expected(&folder, data, 7);
        for (block_bytes, count) in BLOCKS {
            for engine in ENGINES {
                for threads in [1, 3] {
                    let way = format!(
                        "--data {data} --seed 7 --block-size {block_bytes} --block-count {count} \
                         --threads {threads} --engine {engine}"
                    );
                    holds(&folder, &way, block_bytes * count, &expected);
                }
            }
        }
        for engine in ENGINES {
            for threads in [1, 3] {
                let way = format!(
                    "--data {data} --seed 7 --block-size 4096 --block-count 40 --caching direct \
                     --threads {threads} --engine {engine}"
                );
                holds(&folder, &way, REFERENCE_BYTES, &expected);
            }
        }
    }
}

#[test]
fn any_block_size_over_any_old_content_writes_the_same_bytes() {
    let folder = Folder::new();
    let seed = seed();
    let mut random = Random::new(seed);
    let expected = expected(&folder, "random", seed % 1000);
    for _ in 0..12 {
        let block_bytes = 1 + random.below(20_000);
        let count = 1 + random.below((REFERENCE_BYTES / block_bytes).min(3000));
        let engine = ENGINES[random.below(ENGINES.len())];
        let caching = CACHINGS[random.below(CACHINGS.len())];
        let threads = 1 + random.below(4);
        fs::write(folder.join("new"), vec![0xa5; random.below(2 * REFERENCE_BYTES)]).unwrap();
        let way = format!(
            "--overwrite --seed {} --block-size {block_bytes} --block-count {count} \
             --threads {threads} --caching {caching} --engine {engine}",
            seed % 1000
        );
        println!("FLATOUT_TEST_SEED={seed}: {way}");
        holds(&folder, &way, block_bytes * count, &expected);
    }
}

#[test]
fn the_expected_pattern_follows_its_definition() {
    assert_eq!(pattern(10), [0, 0, 0, 0, 0, 0, 0, 0, 8, 0]);
}
