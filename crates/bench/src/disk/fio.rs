//! The fio command line that comes nearest to a row, so that anybody can check the figure.
//!
//! What fio cannot be told is left out: a second file to copy to, and that threads share one
//! permutation. fio's own defaults are kept where they change nothing that is measured; the
//! options here switch off those that do (fallocate, advice to the kernel).

use std::path::Path;

use flatout_io::{Caching, Engine, Split, Tuning};

use super::pattern::{Test, Tiny};
use super::place::{Kind, Place};
use super::row::{Extents, Row};

/// fio needs this long to be steady; our trials are many and shorter.
const LEAST_RUNTIME_NS: u64 = 5_000_000_000;
/// The file that fio makes in a directory.
const FILE_NAME: &str = "fio-check.tmp";

/// The command line; none where fio has nothing like the row.
pub(super) fn command(
    row: &Row,
    place: &Place,
    length_bytes: u64,
    runtime_ns: u64,
) -> Option<String> {
    let Tuning { engine, caching, block_bytes, depth, threads, split } = row.tuning;
    let mut words = vec!["fio".to_owned()];
    let mut option = |name: &str, value: String| words.push(format!("--{name}={value}"));
    option("name", row.test.id().trim_start_matches("disk/").to_owned());
    match place.kind() {
        Kind::Directory => option("filename", file_name(&place.path().join(FILE_NAME))),
        Kind::File | Kind::Device => option("filename", file_name(place.path())),
    }
    option("rw", direction(row)?);
    option("bs", block_bytes.to_string());
    option("ioengine", if engine == Engine::Uring { "io_uring" } else { "psync" }.to_owned());
    if engine == Engine::Uring {
        option("iodepth", depth.to_string());
    }
    match caching {
        Caching::Direct => option("direct", "1".to_owned()),
        Caching::Buffered => option("direct", "0".to_owned()),
        Caching::Dontcache => option("uncached", "1".to_owned()),
    }
    let is_shared_out = threads > 1 && !row.test.is_random() && split == Split::Contiguous;
    let size_bytes = if is_shared_out { length_bytes / u64::from(threads) } else { length_bytes };
    option("size", size_bytes.to_string());
    if is_shared_out {
        option("offset_increment", size_bytes.to_string());
    }
    if threads > 1 {
        option("numjobs", threads.to_string());
    }
    if let Some(rate) = row.rate_per_s {
        option("rate_iops", format!("{:.0}", (rate / f64::from(threads)).max(1.0)));
    }
    if row.test == Test::Mixed {
        option("rwmixread", row.read_percent.to_string());
    }
    let is_once = row.test == Test::ColdBlocks || caching != Caching::Direct;
    let writes_fresh = row.writes() && row.extents == Extents::Fresh;
    match (row.test, writes_fresh) {
        (Test::Reread, _) => {
            option("pre_read", "1".to_owned());
            option("invalidate", "0".to_owned());
        }
        (_, true) => option("end_fsync", "1".to_owned()),
        (_, false) if row.writes() => {
            option("overwrite", "1".to_owned());
            option("end_fsync", "1".to_owned());
        }
        _ => {}
    }
    option("fallocate", "none".to_owned());
    option("fadvise_hint", "0".to_owned());
    if !is_once && !writes_fresh {
        let seconds = runtime_ns.max(LEAST_RUNTIME_NS).div_ceil(1_000_000_000);
        option("runtime", seconds.to_string());
        words.push("--time_based".to_owned());
    }
    words.extend(["--thread", "--group_reporting"].map(str::to_owned));
    Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

fn direction(row: &Row) -> Option<String> {
    let block_bytes = row.tuning.block_bytes;
    Some(match row.test {
        Test::SequentialRead | Test::Reread | Test::ColdBlocks | Test::Latency(Tiny::Read) => {
            "read".to_owned()
        }
        Test::SequentialWrite | Test::Rewrite | Test::Latency(Tiny::Write) => "write".to_owned(),
        Test::RandomRead | Test::Latency(Tiny::RandomRead) => "randread".to_owned(),
        Test::RandomWrite | Test::Latency(Tiny::RandomWrite) => "randwrite".to_owned(),
        Test::Mixed => "randrw".to_owned(),
        // What is added to the place after each request: two back, or sixteen on.
        Test::BackwardRead => format!("read:-{}", 2 * block_bytes),
        Test::StridedRead => format!("read:{}", 16 * block_bytes),
        Test::SequentialCopy | Test::Latency(Tiny::Copy) => return None,
    })
}

/// A name as fio reads it: a colon would begin another name.
fn file_name(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "\\\\").replace(':', "\\:")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+%@".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("--rw=read"), "--rw=read");
        assert_eq!(quoted("--filename=/a b/it's"), "'--filename=/a b/it'\\''s'");
        assert_eq!(file_name(Path::new("a:b")), "a\\:b");
    }
}
