//! The limit on vector extensions: narrower kernels, the same results.

use std::fs;
use std::process::Command;

use crate::bin::{Folder, Ran, in_enough_time};
use crate::fixture::{random_file, xor32_hex};

const LEVELS: [&str; 4] = ["sse2", "sse4.1", "avx2", "avx512"];
/// Around the widths of vectors, chunks of BLAKE3 and blocks.
const LENGTHS: [usize; 7] = [0, 1, 63, 1025, 16_385, 65_536, 3_000_001];

fn limited(folder: &Folder, level: &str, arguments: &[&str]) -> Ran {
    folder
        .flatout(arguments)
        .with(|command| _ = command.env("FLATOUT_INSTRUCTION_SET", level))
        .run()
}

#[test]
fn digests_are_the_same_at_every_level() {
    let folder = Folder::new();
    for length in LENGTHS {
        let xor = xor32_hex(&random_file(&folder.join("file"), length, length as u64));
        for digest in ["blake3", "xxh3", "crc32c", "sha256", "xor32"] {
            let sums = LEVELS.map(|level| {
                let ran = limited(&folder, level, &["sum", "--digest", digest, "file"]);
                ran.exits(0).stdout.clone()
            });
            assert!(sums.iter().all(|sum| *sum == sums[0]), "{digest} of {length}: {sums:?}");
            assert!(digest != "xor32" || sums[0].contains(&xor), "{length}: {}", sums[0]);
        }
    }
}

#[test]
fn what_is_written_from_a_seed_is_the_same_at_every_level() {
    let folder = Folder::new();
    let sums = LEVELS.map(|level| {
        let written = ["write", level, "--block-size", "65537", "--block-count", "31"];
        let set = |command: &mut Command| _ = command.env("FLATOUT_INSTRUCTION_SET", level);
        folder.flatout(written).leaves(level).with(set).run().exits(0);
        fs::read(folder.join(level)).unwrap()
    });
    assert!(sums.iter().all(|bytes| bytes.len() == 31 * 65537 && *bytes == sums[0]));
}

#[test]
fn rows_beyond_the_limit_are_unsupported_and_the_record_names_it() {
    let folder = Folder::new();
    let ran = in_enough_time(1, |time| {
        let arguments = ["bench", "cpu", "--quick", "--max-time", time, "--format", "json"];
        limited(&folder, "sse4.1", &arguments).if_measured()
    });
    let document = ran.exits(0).document();
    assert_eq!(document["start"]["environment"]["simd_limit"], "sse4.1");
    for row in document["results"].as_array().unwrap() {
        let level = row["parameters"]["level"].as_str().unwrap_or("none");
        if level.starts_with("avx") || level == "amx" {
            assert_eq!(row["status"], "unsupported", "{row:#}");
        }
    }
}

#[test]
fn an_unknown_level_is_refused() {
    let folder = Folder::new();
    let ran = limited(&folder, "avx9", &["sum", "file"]);
    let expected =
        "flatout: FLATOUT_INSTRUCTION_SET: \"avx9\" is none of sse2, sse4.1, avx2, avx512\n";
    assert_eq!(ran.exits(2).stderr, expected);
}
