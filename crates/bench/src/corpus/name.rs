//! The names of corpora: single ones, a grammar for files of one size, and groups.

use flatout_measure::units::parse_size;

use super::{Corpus, Shape};
use crate::option::distinct;
use crate::{Error, GIB, KIB, MIB};

/// Bounds of what a name may ask for.
const MOST_FILES: u64 = 10_000_000;
const MOST_DEPTH: u64 = 1000;
const MOST_BYTES: u64 = 1 << 50;

/// What is raced when nothing is named.
pub const DEFAULT: [&str; 4] = ["small-files", "source-tree", "large", "sparse"];

/// Corpora with a name of their own.
const SINGLE: [&str; 6] =
    ["small-files", "one-directory", "source-tree", "sparse", "large", "large-one"];

/// Names of groups.
const GROUPS: [&str; 9] =
    ["default", "sizes", "single", "split-1G", "split-32M", "deep", "memory", "deviation", "all"];

/// Sizes of the files in the group `sizes`, and how many.
const SIZES: [u64; 6] = [128 * KIB, 400 * KIB, MIB, 4 * MIB, 16 * MIB, 128 * MIB];
const COUNTS: [u64; 7] = [1, 10, 100, 500, 900, 1000, 2000];
const DEPTHS: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];
const DEEP_FILE_BYTES: u64 = 128 * MIB;
/// Each step of a split has this many times as many files.
const SPLIT_STEP: u64 = 4;

/// The corpora that `names` mean, each once, in their order; the default ones without names.
///
/// Errors: a name that nothing is called by; those that there are are listed.
pub fn parse(names: &[String]) -> Result<Vec<Corpus>, Error> {
    let default = DEFAULT.map(str::to_owned);
    let names = if names.is_empty() { &default[..] } else { names };
    let meant: Result<Vec<_>, Error> = names.iter().map(|name| meant(name)).collect();
    Ok(distinct(meant?.concat(), |one, other| one.name == other.name))
}

/// Files of one size, as an option asks for them, under the name that the grammar gives them.
///
/// Errors: more than any machine has.
pub fn uniform(files: u64, file_bytes: u64, depth: u64) -> Result<Corpus, Error> {
    let size = size_text(file_bytes);
    let name =
        if depth == 0 { format!("{files}x{size}") } else { format!("{files}x{size}@{depth}") };
    let total = files.checked_mul(file_bytes).filter(|&total| total <= MOST_BYTES);
    if total.is_none() || files == 0 || files > MOST_FILES || depth > MOST_DEPTH {
        return Err(Error::Usage(format!(
            "corpus {name:?}: from 1 to {MOST_FILES} files, {MOST_DEPTH} directories and 2^50 bytes"
        )));
    }
    Ok(Corpus::new(name, Shape::Files { files, file_bytes, directories: 1, depth }))
}

fn meant(name: &str) -> Result<Vec<Corpus>, Error> {
    let files = |files, file_bytes, directories| {
        let shape = Shape::Files { files, file_bytes, directories, depth: 0 };
        Ok(vec![Corpus::new(name, shape)])
    };
    let each = |names: &[&str]| {
        let parts: Result<Vec<_>, _> = names.iter().map(|name| meant(name)).collect();
        Ok(parts?.concat())
    };
    match name {
        "small-files" => files(20_000, 4 * KIB, 20),
        "one-directory" => files(100_000, KIB, 1),
        "source-tree" => Ok(vec![Corpus::new(name, Shape::SourceTree { files: 5000 })]),
        "sparse" => Ok(vec![Corpus::new(name, Shape::Sparse { length_bytes: GIB })]),
        "large" => files(16, 64 * MIB, 1),
        "large-one" => files(1, GIB, 1),
        "default" => each(&DEFAULT),
        "sizes" => SIZES
            .iter()
            .flat_map(|&size| COUNTS.iter().map(move |&count| uniform(count, size, 0)))
            .collect(),
        "single" => [(1, 4), (1, 8), (1, 16), (2, 4)]
            .map(|(n, gib)| uniform(n, gib * GIB, 0))
            .into_iter()
            .collect(),
        "split-1G" => split(GIB, 64 * KIB),
        "split-32M" => split(32 * MIB, 4 * KIB),
        "deep" => DEPTHS.iter().map(|&depth| deep(depth)).collect(),
        "memory" => Ok(vec![uniform(10, 32 * MIB, 0)?]),
        "deviation" => Ok(vec![uniform(50, 4 * MIB, 0)?]),
        "all" => {
            let mut all = each(&SINGLE)?;
            all.extend(each(&GROUPS[1..GROUPS.len() - 1])?);
            Ok(all)
        }
        _ => {
            if let Some(size) = name.strip_prefix(Corpus::FILE)
                && let Ok(file_bytes) = parse_size(size)
            {
                let one = uniform(1, file_bytes, 0)?;
                return Ok(vec![Corpus { name: name.to_owned(), ..one }]);
            }
            if let Some(Ok(depth)) = name.strip_prefix("deep-").map(str::parse) {
                return Ok(vec![deep(depth)?]);
            }
            let (tree, directories) = name.split_once(':').unwrap_or((name, "1"));
            match (by_grammar(tree), directories.parse()) {
                (Some((count, bytes, depth)), Ok(1)) => Ok(vec![uniform(count, bytes, depth)?]),
                (Some((count, bytes, 0)), Ok(directories))
                    if (1..=count).contains(&directories) =>
                {
                    uniform(count, bytes, 0)?;
                    files(count, bytes, directories)
                }
                _ => Err(Error::Usage(format!(
                    "{name:?} is no corpus that flatout knows; there are {}, FILESxSIZE (as 900x128K), file-SIZE and more",
                    SINGLE.join(", ")
                ))),
            }
        }
    }
}

fn deep(depth: u64) -> Result<Corpus, Error> {
    let mut corpus = uniform(1, DEEP_FILE_BYTES, depth)?;
    corpus.name = format!("deep-{depth}");
    Ok(corpus)
}

/// The same bytes in more and more files, down to `least_bytes` each.
///
/// Errors: more than any machine has.
pub fn split(total_bytes: u64, least_bytes: u64) -> Result<Vec<Corpus>, Error> {
    std::iter::successors(Some(1), |files| Some(files * SPLIT_STEP))
        .take_while(|files| total_bytes / files >= least_bytes)
        .map(|files| uniform(files, total_bytes / files, 0))
        .collect()
}

/// `FILESxSIZE` or `FILESxSIZE@DEPTH`.
fn by_grammar(name: &str) -> Option<(u64, u64, u64)> {
    let (shape, depth) = match name.split_once('@') {
        Some((shape, depth)) => (shape, depth.parse().ok()?),
        None => (name, 0),
    };
    let (files, size) = shape.split_once('x')?;
    Some((files.parse().ok()?, parse_size(size).ok()?, depth))
}

fn size_text(bytes: u64) -> String {
    let unit = [(GIB, 'G'), (MIB, 'M'), (KIB, 'K')]
        .into_iter()
        .find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or(bytes.to_string(), |(unit, letter)| format!("{}{letter}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(asked: &str) -> Vec<String> {
        let found = parse(&[asked.to_owned()]).unwrap();
        found.into_iter().map(|corpus| corpus.name).collect()
    }

    #[test]
    fn every_listed_name_means_something_and_has_bytes() {
        for name in SINGLE.into_iter().chain(GROUPS).chain(["deep-3", "900x128K", "7x100@2"]) {
            for corpus in parse(&[name.to_owned()]).unwrap() {
                assert!(corpus.bytes > 0 && corpus.files > 0, "{name}");
                assert!(corpus.entries >= corpus.files && !corpus.name.contains(['/', '.']));
            }
        }
        assert_eq!(parse(&[]).unwrap().len(), DEFAULT.len());
    }

    #[test]
    fn the_grammar_gives_files_bytes_and_depth() {
        let corpus = parse(&["900x128K@2".to_owned()]).unwrap().remove(0);
        assert_eq!((corpus.files, corpus.bytes, corpus.depth()), (900, 900 * 128 * KIB, 2));
        let corpus = parse(&["512x1M:8".to_owned()]).unwrap().remove(0);
        assert_eq!((corpus.files, corpus.entries, corpus.bytes), (512, 520, 512 * MIB));
        let corpus = parse(&["file-10M".to_owned()]).unwrap().remove(0);
        assert_eq!((corpus.entries, corpus.bytes), (1, 10 * MIB));
        assert!(
            corpus.single_file().is_some() && uniform(1, 4, 0).unwrap().single_file().is_none()
        );
        for size in ["4194304", "4m", "4MiB", "4096K"] {
            assert_eq!(names(&format!("50x{size}")), ["50x4M"], "one corpus, one name");
        }
        assert_eq!(names("50x4M:1"), ["50x4M"]);
        assert_eq!(names("3x0"), ["3x0"]);
    }

    #[test]
    fn groups_hold_what_they_say_each_once() {
        assert_eq!(names("single"), ["1x4G", "1x8G", "1x16G", "2x4G"]);
        assert_eq!(names("split-32M").last().unwrap(), "4096x8K");
        assert_eq!(names("split-1G").first().unwrap(), "1x1G");
        assert!(names("sizes").contains(&"1000x400K".to_owned()));
        let all = names("all");
        assert!(all.iter().all(|name| all.iter().filter(|other| *other == name).count() == 1));
        assert!(all.contains(&"deep-100".to_owned()) && all.contains(&"10x32M".to_owned()));
    }

    #[test]
    fn what_nobody_knows_is_refused_with_what_there_is() {
        for name in [
            "nothing",
            "x4K",
            "4x",
            "deep-x",
            "0x4K",
            "1x1G@1001",
            "9999999x9999999G",
            "file-",
            "4x4K:5",
            "4x4K:0",
        ] {
            assert!(matches!(parse(&[name.to_owned()]), Err(Error::Usage(_))), "{name}");
        }
        let text = parse(&["nothing".to_owned()]).unwrap_err().to_string();
        assert!(text.contains("source-tree") && text.contains("900x128K"), "{text}");
    }
}
