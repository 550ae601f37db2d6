//! What a repository of source code looks like: sizes over four orders of magnitude, directories
//! in directories, links of all kinds, modes, and names that break careless programs.
//!
//! A plan is drawn from a seed alone: the same one gives the same tree.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use flatout_measure::SplitMix64;

/// Median and spread of the sizes (log-normal, base e): half of the files of the Linux sources
/// are below 4 KiB, one in a hundred is above 100 KiB.
const MEDIAN_BYTES: f64 = 3000.0;
const SPREAD: f64 = 1.5;
const MOST_BYTES: u64 = 1 << 20;
/// One file in so many is empty.
const EMPTY_PART: u64 = 100;
/// One file in so many may be executed.
const EXECUTABLE_PART: u64 = 20;
/// One file in so many has a second name.
const HARD_LINK_PART: u64 = 100;
/// One symlink per so many files.
const SYMLINK_PART: u64 = 50;
/// Files per directory, on average.
const FILES_PER_DIRECTORY: u64 = 12;
const MOST_DEPTH: usize = 9;

const ENDINGS: [&str; 8] = ["rs", "c", "h", "py", "md", "json", "txt", "o"];
/// Names that are legal, and were met.
const ODD_NAMES: [&[u8]; 8] = [
    b"-rf",
    b" leading space",
    b"trailing space ",
    b"new\nline",
    b"quote'and\"double",
    b"star*?[glob]$HOME`",
    "\u{fc}n\u{ef}c\u{f6}d\u{e9} \u{1f98a}".as_bytes(),
    b".hidden",
];

/// Something in the tree; paths are relative to its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Directory(PathBuf),
    File { path: PathBuf, bytes: u64, mode: u32 },
    HardLink { path: PathBuf, to: PathBuf },
    Symlink { path: PathBuf, to: PathBuf },
}

/// The parts, in an order in which they can be made.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    /// Bytes and number of all files, by name.
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Plan {
    pub(super) fn new(files: u64, seed: u64) -> Self {
        let mut random = Random(SplitMix64::new(seed));
        let mut parts = Vec::new();
        let directories = directories(files, &mut random);
        parts.extend(directories.iter().cloned().map(Part::Directory));
        let empty = ["empty", "empty/one", "empty/one/in the", "empty/one/in the/other"];
        parts.extend(empty.map(PathBuf::from).map(Part::Directory));
        let (mut made, mut sizes) = (Vec::new(), HashMap::new());
        for number in 0..files {
            let path = random.of(&directories).join(name(number, &mut random));
            let is_executable = random.below(EXECUTABLE_PART) == 0;
            let mode = if is_executable { 0o755 } else { 0o644 };
            let bytes = size(&mut random);
            made.push(path.clone());
            sizes.insert(path.clone(), bytes);
            parts.push(Part::File { path, bytes, mode });
        }
        let mut bytes = sizes.values().sum();
        for number in 0..files / HARD_LINK_PART {
            let to = random.of(&made).clone();
            let path = random.of(&directories).join(format!("again-{number}"));
            bytes += sizes[&to];
            parts.push(Part::HardLink { path, to });
        }
        parts.extend(symlinks(files, &directories, &made, &mut random));
        Self { parts, bytes, files: files + files / HARD_LINK_PART }
    }
}

/// Each below one that stands before it. The first is the root.
fn directories(files: u64, random: &mut Random) -> Vec<PathBuf> {
    let mut all = vec![PathBuf::from("src")];
    for number in 1..(files / FILES_PER_DIRECTORY).max(4) {
        let above = random.of(&all).clone();
        let is_deep = above.components().count() >= MOST_DEPTH;
        let folder = format!("folder-{number}");
        all.push(if is_deep { folder.into() } else { above.join(folder) });
    }
    all
}

fn name(number: u64, random: &mut Random) -> OsString {
    let ending = ENDINGS[random.below(ENDINGS.len() as u64) as usize];
    // The number makes the name the only one; every now and then it is odd, or as long as can be.
    match number % 250 {
        odd @ 0..8 => {
            let mut bytes = ODD_NAMES[odd as usize].to_vec();
            bytes.extend(number.to_string().into_bytes());
            OsString::from_vec(bytes)
        }
        8 => format!("{number:0>251}.txt").into(),
        _ => format!("file_{number}.{ending}").into(),
    }
}

/// To files, to directories and to nothing, always relative.
fn symlinks(
    files: u64,
    directories: &[PathBuf],
    made: &[PathBuf],
    random: &mut Random,
) -> Vec<Part> {
    (0..(files / SYMLINK_PART).max(3))
        .map(|number| {
            let folder = random.of(directories).clone();
            let up: PathBuf = folder.components().map(|_| "..").collect();
            let to = match number % 3 {
                0 => up.join(random.of(made)),
                1 => up.join(random.of(directories)),
                _ => PathBuf::from(format!("no/such/thing-{number}")),
            };
            Part::Symlink { path: folder.join(format!("link-{number}")), to }
        })
        .collect()
}

fn size(random: &mut Random) -> u64 {
    if random.below(EMPTY_PART) == 0 {
        return 0;
    }
    // Twelve even draws make a normal one (Irwin and Hall), near enough.
    let normal: f64 = (0..12).map(|_| random.below(1 << 20) as f64 / (1 << 20) as f64).sum::<f64>();
    let bytes = MEDIAN_BYTES * (SPREAD * (normal - 6.0)).exp();
    (bytes as u64).clamp(1, MOST_BYTES)
}

/// Even draws from [`SplitMix64`], as trees of this edition were made with.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_source_code() {
        let mut random = Random(SplitMix64::new(1));
        let mut sizes: Vec<_> = (0..5000).map(|_| size(&mut random)).collect();
        sizes.sort_unstable();
        assert!((2000..4500).contains(&sizes[2500]), "median {}", sizes[2500]);
        assert!(sizes[4950] > 40_000 && sizes[4999] <= MOST_BYTES, "{:?}", &sizes[4950..]);
        assert_eq!(sizes[0], 0);
    }

    #[test]
    fn a_seed_gives_one_tree_with_every_kind_of_entry() {
        let plan = Plan::new(2000, 7);
        assert_eq!(plan.parts, Plan::new(2000, 7).parts);
        assert_ne!(plan.parts, Plan::new(2000, 8).parts);
        let count = |is: fn(&Part) -> bool| plan.parts.iter().filter(|part| is(part)).count();
        assert_eq!(count(|part| matches!(part, Part::HardLink { .. })), 20);
        assert_eq!(count(|part| matches!(part, Part::Symlink { .. })), 40);
        assert!(count(|part| matches!(part, Part::File { mode: 0o755, .. })) > 50);
        let longest = plan.parts.iter().filter_map(|part| match part {
            Part::File { path, .. } => path.file_name().map(|name| name.len()),
            _ => None,
        });
        assert_eq!(longest.max(), Some(255));
    }
}
