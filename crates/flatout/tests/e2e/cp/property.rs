//! Random options, operands and trees: GNU cp and `flatout cp` do the same.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};

use super::{NOBODY, Pair};
use crate::bin::Folder;
use crate::fixture::{Random, is_full, seed};

const OPTIONS: [&str; 32] = [
    "-r",
    "-R",
    "-a",
    "-p",
    "-f",
    "-n",
    "-u",
    "-t",
    "-T",
    "-l",
    "-s",
    "-d",
    "-P",
    "-L",
    "-H",
    "-b",
    "-x",
    "-v",
    "-i",
    "--parents",
    "--backup=numbered",
    "--remove-destination",
    "--preserve=links",
    "--preserve=mode",
    "--no-preserve=mode",
    "--preserve=timestamps",
    "--no-preserve=timestamps",
    "--preserve=all",
    "--attributes-only",
    "--strip-trailing-slashes",
    "--sparse=always",
    "--reflink=auto",
];
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
/// None of them leads out of the tree in which it lies.
const TEXTS: [&str; 9] = ["a", "b", "../a", "../b/c", "nowhere", "d", ".", "c", "e/f"];
const FILE_MODES: [u32; 8] = [0o644, 0o644, 0o644, 0o600, 0o755, 0o444, 0o4755, 0o666];
const DIRECTORY_MODES: [u32; 8] = [0o755, 0o755, 0o755, 0o755, 0o700, 0o1777, 0o555, 0o2755];
const DEEPEST: u32 = 3;

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

/// Something in each of these names, the same for the same numbers.
struct Gardener<'r> {
    random: &'r mut Random,
    files: Vec<PathBuf>,
    has_pipes: bool,
}

impl Gardener<'_> {
    fn plant(&mut self, directory: &Path, depth: u32) {
        for _ in 0..2 + self.random.below(5) {
            let path = directory.join(pick(self.random, &NAMES));
            let chance = self.random.below(100);
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let second = (chance > 20).then(|| 1_000_000_000 + self.random.below(6) as i64);
            match chance {
                0..35 => {
                    let text = pick(self.random, &["x", "y", "z"]);
                    fs::write(&path, text.repeat(self.random.below(2000))).unwrap();
                    let mode = pick(self.random, &FILE_MODES);
                    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                    self.files.push(path.clone());
                }
                35..50 => symlink(pick(self.random, &TEXTS), &path).unwrap(),
                50..60 if !self.files.is_empty() => {
                    let other = self.random.below(self.files.len());
                    fs::hard_link(&self.files[other], &path).unwrap();
                }
                60..66 if self.has_pipes => {
                    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
                }
                _ if depth < DEEPEST => {
                    fs::create_dir(&path).unwrap();
                    self.plant(&path, depth + 1);
                    let mode = pick(self.random, &DIRECTORY_MODES);
                    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                }
                _ => continue,
            }
            if let Some(second) = second.filter(|_| !path.is_symlink()) {
                set_time(&path, second);
            }
        }
    }
}

fn set_time(path: &Path, tv_sec: i64) {
    let time = Timespec { tv_sec, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, rustix::fs::AtFlags::empty()).unwrap();
}

/// Gives a tree to somebody, and leaves modes and times as they were.
fn give_away(path: &Path, user: u32) {
    let facts = path.symlink_metadata().unwrap();
    if facts.is_symlink() {
        return lchown(path, Some(user), Some(user)).unwrap();
    }
    if facts.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_away(&entry.unwrap().path(), user);
        }
    }
    chown(path, Some(user), Some(user)).unwrap();
    fs::set_permissions(path, facts.permissions()).unwrap();
}

/// Two trees: `s` is copied, `t` is there already.
fn plant(folder: &Path, seed: u64, has_pipes: bool, user: Option<u32>) {
    let mut random = Random::new(seed);
    for tree in ["s", "t"] {
        let path = folder.join(tree);
        fs::create_dir(&path).unwrap();
        let has_pipes = has_pipes && tree == "s";
        Gardener { random: &mut random, files: Vec::new(), has_pipes }.plant(&path, 0);
        set_time(&path, 1_000_000_000);
    }
    if let Some(user) = user {
        give_away(folder, user);
    }
}

/// Paths below a folder, the uppermost first.
fn paths(folder: &Path, tree: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![tree.to_owned()];
    while let Some(directory) = open.pop() {
        let mut names: Vec<String> =
            Folder::names_in(&folder.join(&directory)).into_iter().collect();
        names.sort();
        for name in names {
            let path = format!("{directory}/{name}");
            let whole = folder.join(&path);
            if whole.is_dir() && !whole.is_symlink() {
                open.push(path.clone());
            }
            found.push(path);
        }
    }
    found
}

/// All paths below a folder, by their inode numbers: the order in which cp copies names.
pub fn order(folder: &Path) -> Vec<String> {
    let mut all = paths(folder, "s");
    all.sort_by_key(|path| folder.join(path).symlink_metadata().unwrap().ino());
    all
}

/// Options, sources and target.
struct Words {
    options: Vec<&'static str>,
    sources: Vec<String>,
    target: String,
}

impl Words {
    fn new(random: &mut Random, folder: &Path) -> Self {
        let mut options: Vec<&str> = (0..random.below(5)).map(|_| pick(random, &OPTIONS)).collect();
        if random.below(10) < 6 {
            options.insert(0, pick(random, &["-r", "-a", "-R"]));
        }
        let known = paths(folder, "s");
        let named = |random: &mut Random| {
            let path = &known[random.below(known.len())];
            // With a slash, what is no directory is not there.
            let slash = folder.join(path).is_dir() && random.below(4) == 0;
            if slash { format!("{path}/") } else { path.clone() }
        };
        let mut sources: Vec<String> =
            (0..1 + random.below(3).min(random.below(3))).map(|_| named(random)).collect();
        let mut targets: Vec<String> = ["t", "t", "t/new"].map(str::to_owned).to_vec();
        targets.extend(paths(folder, "t").into_iter().take(5));
        let target = targets[random.below(targets.len())].clone();
        if random.below(6) == 0 && !options.contains(&"--parents") {
            sources = vec!["s/.".to_owned()];
        }
        Self { options, sources, target }
    }

    fn has(&self, options: &[&str]) -> bool {
        self.options.iter().any(|option| options.contains(option))
    }

    /// Whether what cp does with them is another thing by design (docs/copying.md), or a fault of the
    /// version against which this is held.
    fn is_apart(&self, folder: &Path) -> bool {
        let target = folder.join(&self.target);
        // It removes what is there before it finds out that it cannot make a relative symlink.
        let makes_symlinks = self.has(&["-s"]);
        // cp 9.1 moves backups of a directory's files into the current one.
        let is_backed_up = self.has(&["-b"]) && (target.is_dir() || self.has(&["-t"]));
        // Directories above a source are made before it proves to be none that is copied.
        let is_recursive = self.has(&["-r", "-R", "-a"]);
        let omits = |source: &String| folder.join(source).is_dir() || !folder.join(source).exists();
        let is_gone = |source: &String| !folder.join(source).exists();
        let is_half_made = self.has(&["--parents"])
            && (!is_recursive && self.sources.iter().any(omits)
                || self.sources.iter().any(is_gone));
        // They get their times when all is copied, not after each source.
        let is_half_made = is_half_made || self.has(&["--parents"]) && self.sources.len() > 1;
        // A symlink that is the way to the target, and in it.
        let is_around = target.is_symlink();
        // One in another one, or twice by symlinks.
        let has_trees = self.sources.iter().filter(|path| folder.join(path).is_dir()).count() > 1;
        // cp moves the first copy aside, and then finds nothing to link the second one to.
        let mut named = self.sources.clone();
        named.sort();
        named.dedup();
        let is_aside = self.has(&["-b", "--backup=numbered"]) && named.len() < self.sources.len();
        // What is up to date under two names is linked together by cp, and a newer file lost: see below.
        let has_names = |path: &String| {
            let facts = folder.join(path).symlink_metadata().unwrap();
            facts.is_file() && facts.nlink() > 1
        };
        let is_tied = self.has(&["-u"])
            && (self.has(&["-L", "-H"]) || paths(folder, "s").iter().any(has_names));
        let is_lost = is_aside || is_tied;
        makes_symlinks || is_backed_up || is_half_made || is_around || has_trees || is_lost
    }

    fn words(&self) -> Vec<String> {
        let is_apart = |option: &&&str| **option != "-t";
        let mut words: Vec<String> =
            self.options.iter().filter(is_apart).map(|&option| option.to_owned()).collect();
        if self.has(&["-t"]) {
            words.extend(["-t".to_owned(), self.target.clone()]);
        }
        words.extend(self.sources.iter().cloned());
        if !self.has(&["-t"]) {
            words.push(self.target.clone());
        }
        words
    }
}

#[test]
fn random_words_mean_what_they_mean_to_cp() {
    let seed = seed();
    let mut random = Random::new(seed);
    let cases = if is_full() { 5_000 } else { 120 };
    let is_root = rustix::process::geteuid().is_root();
    let mut differences = Vec::new();
    let mut pair = Pair::new(|_| {});
    let mut case = 0;
    while case < cases {
        let tree = random.next();
        let user = (is_root && random.below(2) == 0).then_some(NOBODY);
        match user {
            Some(_) => pair.as_nobody(),
            None => pair.user = None,
        }
        pair.input =
            [None, Some(b"y\n".repeat(100)), Some(b"n\n".repeat(100))][random.below(3)].clone();
        // Nothing reads from a pipe but what makes another one.
        let has_pipes = Random::new(tree).below(2) == 0;
        pair.plant(|folder| plant(folder, tree, has_pipes, user));
        let words = Words::new(&mut random, &pair.folder("cp"));
        if words.is_apart(&pair.folder("cp")) || has_pipes && !words.has(&["-r", "-R", "-a"]) {
            continue;
        }
        // Two equal trees may have got their inodes in another order: somebody else uses the disk, too.
        if order(&pair.folder("cp")) != order(&pair.folder("flatout")) {
            continue;
        }
        case += 1;
        let compared = pair.run(&words.words());
        if !compared.is_same() {
            let words = words.words().join(" ");
            differences.push(format!("case {case} as {user:?}: cp {words}{compared}"));
        }
    }
    let count = differences.len();
    differences.truncate(5);
    let shown = differences.join("\n");
    assert!(count == 0, "FLATOUT_TEST_SEED={seed}: {count} of {cases} differ\n{shown}");
}

/// Files of a tree with some names of others among them, and their times in seconds.
fn plant_names(folder: &Path, tree: &str, random: &mut Random, has_links: bool) {
    fs::create_dir_all(folder.join(tree).join("d")).unwrap();
    let mut files: Vec<PathBuf> = Vec::new();
    for name in ["a", "b", "c", "d/a", "d/b", "e"].map(|name| folder.join(tree).join(name)) {
        match random.below(5) {
            0 => continue,
            1 | 2 if has_links && !files.is_empty() => {
                fs::hard_link(&files[random.below(files.len())], &name).unwrap();
            }
            _ => {
                let text = format!("{tree}{}", random.below(3));
                fs::write(&name, text.repeat(1 + random.below(2))).unwrap();
                set_time(&name, 1_000_000_000 + random.below(4) as i64);
                files.push(name);
            }
        }
    }
}

/// GNU cp makes names of one source one file whatever they held: what each name is to hold is said here.
#[test]
fn an_update_gives_each_name_the_bytes_of_its_source_or_leaves_its_own() {
    let seed = seed();
    let mut random = Random::new(seed);
    let programs = ["cp -au", "cp -ru", "cp -dRu", "copy -u", "copy -u --no-preserve=links"];
    for case in 0..if is_full() { 2_000 } else { 50 } {
        let words = pick(&mut random, &programs);
        let folder = Folder::new();
        plant_names(folder.path(), "s", &mut random, true);
        // cp writes through all names of a file that is there, where it keeps no links.
        plant_names(folder.path(), "t", &mut random, words != "cp -ru");
        let facts = |tree: &str, path: &str| folder.join(&format!("{tree}{path}")).metadata().ok();
        let all = [paths(folder.path(), "s"), paths(folder.path(), "t")].concat();
        let mut expected: Vec<(String, Vec<u8>)> = Vec::new();
        for path in all.iter().map(|path| &path[1..]).filter(|path| *path != "/d") {
            let (source, target) = (facts("s", path), facts("t", path));
            let is_newer = |source: &fs::Metadata| {
                target.as_ref().is_none_or(|target| source.mtime() > target.mtime())
            };
            let tree = if source.as_ref().is_some_and(is_newer) { "s" } else { "t" };
            let bytes = fs::read(folder.join(&format!("{tree}{path}"))).unwrap();
            expected.push((path.to_owned(), bytes));
        }
        let ran = folder.flatout(words.split(' ').chain(["s/.", "t"])).run();
        for (path, bytes) in expected {
            let found = fs::read(folder.join(&format!("t{path}"))).unwrap();
            let is_it = found == bytes && ran.code == Some(0);
            assert!(is_it, "FLATOUT_TEST_SEED={seed}, case {case}: {path} of {words}{ran}");
        }
    }
}
