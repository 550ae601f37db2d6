//! Trees copied from each filesystem to each other one, by every method.
//!
//! All filesystems are made once, by the one test that needs them all; its rows are a sample in
//! which every pair of settings occurs.

use std::path::{Path, PathBuf};

use super::copier::{copy, is_control};
use super::forest::{Plan, plant};
use super::oracle::{Aspect, Holes, Leeway, Portrait, assert_same, differences};
use crate::bin::Folder;
use crate::filesystem::{Kind, Mounted, needs_kernel, needs_program, needs_root};
use crate::fixture::{is_full, seed};
use crate::pairwise::{everything, sample};
use crate::skip::needs;

const NAMES: [&str; 5] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay"];
const ENGINES: [&str; 7] =
    ["auto", "reflink", "copy-file-range", "splice", "sync", "mmap", "uring"];
const SPARSE: [&str; 3] = ["auto", "always", "never"];
const APPEARANCES: [&[&str]; 4] = [&[], &["--atomic"], &["--in-place"], &["--verify"]];
const THREADS: [&str; 3] = ["1", "2", "7"];

/// The filesystems that share extents between files.
const SHARE: [&str; 2] = ["xfs", "btrfs"];

/// Two trees on each filesystem: one with holes of a TiB, one whose holes can be filled.
const TREES: [&str; 2] = ["vast", "small"];

/// All filesystems, each with its trees.
struct Ground {
    mounted: Vec<Mounted>,
    /// The upper layer of the overlay, which is the last of the others.
    upper: Mounted,
    lower: Folder,
}

impl Ground {
    fn new(seed: u64) -> Result<Self, String> {
        needs_root("mounts filesystems")?;
        needs_program("mkfs.xfs").or_else(|_| needs_program("xfs_repair"))?;
        let kinds = [Kind::Ext4, Kind::Xfs, Kind::Btrfs, Kind::Tmpfs(512 << 20)];
        let mounted: Result<Vec<_>, _> = kinds.into_iter().map(Mounted::new).collect();
        let (mut mounted, upper) = (mounted?, Mounted::new(Kind::Ext4)?);
        let lower = Folder::new();
        mounted.push(Mounted::overlay(lower.path(), &upper.path())?);
        for (index, mounted) in mounted.iter().enumerate() {
            let plan = Plan::new(seed.wrapping_add(index as u64));
            plant(&mounted.path().join(TREES[0]), plan);
            plant(&mounted.path().join(TREES[1]), plan.with_small_holes());
        }
        Ok(Self { mounted, upper, lower })
    }

    fn path(&self, index: usize) -> PathBuf {
        self.mounted[index].path()
    }

    fn finish(self) {
        // The overlay goes before what it lies on.
        self.mounted.into_iter().rev().for_each(Mounted::finish);
        self.upper.finish();
        drop(self.lower);
    }
}

/// One row of the sample: an index into each of the lists.
struct Row<'a> {
    source: usize,
    target: usize,
    engine: &'static str,
    sparse: &'static str,
    appearance: &'static [&'static str],
    threads: &'static str,
    words: &'a [usize],
}

impl<'a> Row<'a> {
    const LEVELS: [usize; 6] =
        [NAMES.len(), NAMES.len(), ENGINES.len(), SPARSE.len(), APPEARANCES.len(), THREADS.len()];

    fn new(words: &'a [usize]) -> Self {
        Self {
            source: words[0],
            target: words[1],
            engine: ENGINES[words[2]],
            sparse: SPARSE[words[3]],
            appearance: APPEARANCES[words[4]],
            threads: THREADS[words[5]],
            words,
        }
    }

    fn options(&self) -> Vec<String> {
        let mut options = vec![
            "--engine".to_owned(),
            self.engine.to_owned(),
            format!("--sparse={}", self.sparse),
            "--threads".to_owned(),
            self.threads.to_owned(),
        ];
        if is_control() && self.sparse == "never" {
            // cp shares extents first, holes and all.
            options.push("--reflink=never".to_owned());
        }
        options.extend(self.appearance.iter().map(|&word| word.to_owned()));
        options
    }

    /// Holes are filled when that is asked for; who fills a TiB never ends.
    fn tree(&self) -> &'static str {
        TREES[usize::from(self.sparse == "never")]
    }

    /// A method that is asked for by name may say that it cannot; that is no copy.
    fn may_refuse(&self) -> bool {
        let shares = self.source == self.target && SHARE.contains(&NAMES[self.source]);
        self.engine == "reflink" && (!shares || self.sparse != "auto" || self.is_verified())
    }

    fn is_verified(&self) -> bool {
        self.appearance == ["--verify"]
    }

    fn leeway(&self) -> Leeway {
        let holes = match self.sparse {
            "auto" => Holes::Same,
            "always" => Holes::AtLeast,
            _ => Holes::Nowhere,
        };
        let is_before = |version| needs_kernel(version, "something new").is_err();
        // The source is read many times here, each time later.
        let ignored: &[Aspect] = match NAMES[self.target] {
            // What old xfs sets aside behind data becomes data where more follows, by cp, too (seen
            // with Linux 5.15, not with 6.1).
            "xfs" if is_before((6, 1)) => &[Aspect::Accessed, Aspect::Holes, Aspect::Room],
            // It has no user.* attributes.
            "tmpfs" if is_before((6, 6)) => &[Aspect::Accessed, Aspect::Attributes],
            _ => &[Aspect::Accessed],
        };
        Leeway::but(ignored).holes(holes)
    }
}

/// Copies, and compares with what the source was before.
fn run_row(ground: &Ground, row: &Row<'_>, seed: u64) {
    let source = ground.path(row.source).join(row.tree());
    let target = ground.path(row.target).join("copy");
    let before = Portrait::of(&source);
    let ran = copy(&row.options(), &source, &target);
    let pair = format!("{} to {}", NAMES[row.source], NAMES[row.target]);
    let context = format!("FLATOUT_TEST_SEED={seed} {pair} {:?}{ran}", row.words);
    if row.may_refuse() && ran.code != Some(0) {
        assert!(matches!(ran.code, Some(1 | 2)), "{context}");
        assert!(!ran.stderr.is_empty() && !ran.stderr.contains("panicked"), "{context}");
    } else if is_control() {
        // What cp leaves out for the length of its path is missing; the rest is to be right.
        let leeway = Leeway { ignored: &[Aspect::Accessed, Aspect::Missing], ..row.leeway() };
        let mut found = differences(&before, &Portrait::of(&target), leeway);
        found.retain(|difference| {
            let is_deep = difference.path.windows(255).any(|part| part == [b'd'; 255]);
            difference.aspect != Aspect::Links && !is_deep
        });
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "{}\n{context}", lines.join("\n"));
    } else {
        // What was asked for by name and gave way is said, and what the target cannot hold.
        let refusal = format!("flatout: {} from ", row.engine);
        let is_said = |line: &str| {
            line.starts_with(&refusal) && line.contains("is not possible")
                || line.contains("cannot keep extended attributes (user.*)")
        };
        assert!(ran.code == Some(0) && ran.stderr.lines().all(is_said), "{context}");
        assert_same(&before, &Portrait::of(&target), row.leeway(), context);
    }
    remove(&target);
}

fn remove(path: &Path) {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => {}
    }
}

#[test]
fn trees_are_equal_across_filesystems_by_every_method() {
    let seed = seed();
    let ground = needs!(Ground::new(seed));
    let rows = if is_full() { everything(&Row::LEVELS) } else { sample(&Row::LEVELS, seed) };
    for words in &rows {
        run_row(&ground, &Row::new(words), seed);
    }
    ground.finish();
}

/// What is asked for by name is done or refused, never something else in its place.
#[test]
fn extents_are_shared_where_that_is_demanded_and_nowhere_else() {
    let xfs = needs!(Mounted::new(Kind::Xfs));
    let tmpfs = needs!(Mounted::new(Kind::Tmpfs(64 << 20)));
    let source = xfs.path().join("file");
    crate::fixture::random_file(&source, 8 << 20, 3);
    let before = Portrait::of(&source);
    if !is_control() {
        let ran = copy(&["--reflink=always", "--verbose"], &source, &xfs.path().join("shared"));
        ran.exits(0);
        assert!(ran.stdout.contains("reflink") || ran.stderr.contains("reflink"), "{ran}");
        let after = Portrait::of(&xfs.path().join("shared"));
        assert_same(&before, &after, Leeway::but(&[Aspect::Accessed]), &ran);
        let free = |path: &Path| rustix::fs::statvfs(path).unwrap().f_bfree;
        let free_before = free(&xfs.path());
        copy(&["--reflink=never"], &source, &xfs.path().join("apart")).exits(0);
        std::fs::File::open(xfs.path().join("apart")).unwrap().sync_all().unwrap();
        assert!(free_before - free(&xfs.path()) >= (8 << 20) / 4096, "it has extents of its own");
        let ran = copy(&["--reflink=always"], &source, &tmpfs.path().join("file"));
        ran.complains(1, &["file"]);
    }
    tmpfs.finish();
    xfs.finish();
}
