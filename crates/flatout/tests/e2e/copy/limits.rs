//! A copy that leaves something to others.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::copier::under_test;
use crate::bin::Folder;
use crate::fixture::{random_bytes, sparse_file};
use crate::skip::needs;

/// Whatever moves the bytes: never more than the rate. That it is not much less is arithmetic, and
/// tested there.
#[test]
fn a_rate_holds_for_each_way_to_copy() {
    const BYTES: usize = 1 << 20;
    needs!(under_test());
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/large"), random_bytes(BYTES / 2, 1)).unwrap();
    for number in 0..4 {
        let bytes = random_bytes(BYTES / 8, number);
        fs::write(folder.join(&format!("src/{number}")), bytes).unwrap();
    }
    // A hole costs nothing.
    sparse_file(&folder.join("src/sparse"), 1 << 30);
    let engines =
        ["sync", "mmap", "uring", "copy-file-range", "splice"].map(|engine| ["--engine", engine]);
    let others = [["--sparse=always", "-x"], ["--verify", "--threads=3"], ["--checksum", "-x"]];
    for (index, words) in engines.into_iter().chain(others).enumerate() {
        let target = format!("new{index}");
        let all = [&["copy", "--reflink=never", "--bwlimit=4M"][..], &words, &["src", &target]];
        let words = all.concat();
        // Of the sparse file most is read where zeros are looked for.
        let words: Vec<&str> = match words.contains(&"--sparse=always") {
            true => {
                words.iter().map(|word| if *word == "src" { "src/large" } else { word }).collect()
            }
            false => words,
        };
        let begun = Instant::now();
        folder.flatout(&words).leaves(&target).run().exits(0);
        let least = if words.contains(&"src/large") { 80 } else { 195 };
        let elapsed = begun.elapsed();
        assert!(elapsed >= Duration::from_millis(least), "{words:?}: {elapsed:?}");
    }
}

#[test]
fn in_the_background_everything_is_copied() {
    needs!(under_test());
    let folder = Folder::new();
    let bytes = random_bytes(3 << 20, 1);
    fs::write(folder.join("a"), &bytes).unwrap();
    let ran = folder.flatout(["copy", "--background", "a", "b"]).leaves("b").run();
    ran.exits(0);
    assert_eq!(fs::read(folder.join("b")).unwrap(), bytes);
    let tells = std::path::Path::new("/proc/pressure/io").exists();
    assert_eq!(ran.stderr.contains("no PSI"), !tells, "{ran}");
}

/// Whoever asks learns where it is, on standard error, and the copy goes on.
#[test]
fn a_copy_says_where_it_is_when_it_is_asked() {
    needs!(under_test());
    let folder = Folder::new();
    let bytes = random_bytes(2 << 20, 1);
    fs::write(folder.join("large"), &bytes).unwrap();
    let words = ["copy", "--reflink=never", "--bwlimit=1M", "large", "new"];
    let mut running = folder.flatout(words).leaves("new").start();
    // It listens when it has begun to write.
    running.wait_until("io", |text| {
        let written = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        written.is_some_and(|bytes| bytes.parse::<u64>().unwrap() > 100_000)
    });
    running.signal(Signal::USR1);
    let ran = running.wait();
    ran.exits(0);
    assert_eq!(ran.complaints().len(), 1, "{ran}");
    ran.says(&["/s", "at large"]);
    assert_eq!(fs::read(folder.join("new")).unwrap(), bytes);
}
