//! Random trees, copied with options by several processes into a place where something is, come to what
//! one process makes of them.

use std::time::{Duration, SystemTime};

use super::*;

/// Options, and whether what they print is compared, too.
const CASES: [(&[&str], bool); 20] = [
    (&["-b", "--delete", "-v"], true),
    (&["-L", "-v"], true),
    (&["--link-dest", "snapshot", "-v"], true),
    (&["--gitignore", "--delete", "--itemize"], true),
    (&["-u"], false),
    (&["--files-from", "list", "--manifest", "MANIFEST"], false),
    (&["--exclude", "1*", "--max-size", "1M", "--delete-excluded", "-v"], true),
    (&["-n"], false),
    (&["--exclude-from", "rules", "--newer", "2001-09-09"], false),
    (&["-l"], false),
    (&["--checksum", "--delete"], false),
    (&["-s"], false),
    (&["--verify", "--atomic"], false),
    (&["--update=none-fail"], false),
    (&["--in-place"], false),
    (&["--older", "2001-09-09", "--min-size", "100"], false),
    (&["--quick-check", "--delete", "--exclude", "d3"], false),
    (&["-H", "-u", "--backup=numbered"], false),
    (&["-L", "-S", ".old"], false),
    (&["--link-dest", "snapshot", "--checksum", "--delete"], false),
];
/// Those of an ordinary run.
const SAMPLE: usize = 5;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// Directories with files of all ages, symlinks and further names; where `share` is less than 100, so
/// many names in a hundred, of which the contents are others.
fn grow(root: &Path, seed: u64, share: u64) {
    let (mut random, mut chance) = (Random(seed), Random(share));
    let mut directories = vec![root.to_owned()];
    let mut files = Vec::new();
    fs::create_dir_all(root).unwrap();
    for number in 0..40 {
        let above = &directories[random.below(directories.len() as u64) as usize];
        let directory = above.join(format!("d{}", number % 11));
        let is_made = chance.below(100) < share && fs::create_dir_all(&directory).is_ok();
        let names = random.below(12);
        for name in 0..names {
            let path = directory.join(format!("{}", name * 3));
            let [kind, length, age] = [10, 5000, 2_000_000_000].map(|end| random.below(end));
            if !is_made || path.symlink_metadata().is_ok() || chance.below(100) >= share {
                continue;
            }
            match kind {
                0 => {
                    let texts = [format!("to {number}"), format!("d{}", age % 4), "../3".into()];
                    symlink(&texts[age as usize % 3], &path).unwrap_or_default();
                }
                1 | 2 if !files.is_empty() => {
                    let first = &files[random.below(files.len() as u64) as usize];
                    fs::hard_link(first, &path).unwrap();
                }
                _ => {
                    let length = if length == 0 { 9 << 20 } else { length * length / 100 };
                    fs::write(&path, vec![(seed + share) as u8; length as usize]).unwrap();
                    let file = fs::File::open(&path).unwrap();
                    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(age)).unwrap();
                    files.push(path);
                }
            }
        }
        if is_made && random.below(4) == 0 {
            fs::write(directory.join(".gitignore"), "6\n/d2\n!9\n").unwrap();
        }
        if is_made {
            directories.push(directory);
        }
    }
    // What has no age of its own gets one: both targets are to be alike.
    touch(root, "( -not -type f -o -name .gitignore )");
}

/// Gives an age to what `find` finds.
fn touch(root: &Path, which: &str) {
    let words = format!("{which} -exec touch -h -d @1000000000 {{}} +");
    let touched = Command::new("find").arg(root).args(words.split(' ')).status().unwrap();
    assert!(touched.success());
}

/// Gives an age to directories that stay for what may not be deleted in them, or for backups: they have
/// none of the source, which lies in `within`.
fn give_ages(target: &Path, within: &str, source: &Path) {
    let words = ["-type", "d", "-newermt", "2026-01-01", "-printf", "%P\\n"];
    let found = Command::new("find").arg(target).args(words).output().unwrap().stdout;
    let found = String::from_utf8(found).unwrap();
    let is_of_source = |name: &&str| {
        Path::new(name).strip_prefix(within).is_ok_and(|name| source.join(name).is_dir())
    };
    for name in found.lines().filter(|name| !is_of_source(name)) {
        touch(&target.join(name), "-maxdepth 0");
    }
}

#[test]
fn several_processes_make_what_one_makes_with_any_options() {
    let cases = if is_full() { CASES.len() } else { SAMPLE };
    // Other trees.
    let seed = std::env::var("FLATOUT_TEST_SEED").map_or(77, |seed| seed.parse().unwrap());
    for (number, (options, is_told)) in CASES.iter().enumerate().take(cases) {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let seed = seed + number as u64;
        // What a failure is of.
        println!("{options:?} seed {seed} {}", place.path().display());
        grow(&at("source"), seed, 100);
        // All of some directories, and others alone.
        let names = fs::read_dir(at("source")).unwrap().flatten().map(|entry| entry.file_name());
        let mut list: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        list.iter_mut().step_by(2).for_each(|name| name.push('/'));
        fs::write(at("list"), list.join("\n")).unwrap();
        fs::write(at("rules"), "+ 9\n- *[36]\n").unwrap();
        symlink("source", at("via")).unwrap();
        grow(&at("snapshot"), seed, 100);
        grow(&at("snapshot"), seed, 30);
        let made = [1, 4].map(|processes| {
            let side = at(&format!("by {processes}"));
            grow(&side.join("t"), seed, 40);
            let source = if options.contains(&"-H") { at("via") } else { at("source").join(".") };
            let mut words = vec![FLATOUT, "copy"];
            words.extend(*options);
            let target = side.join("t/.");
            words.extend([source.to_str().unwrap(), target.to_str().unwrap()]);
            let output = run(&mut mpirun(processes, place.path(), &words));
            let lines = String::from_utf8_lossy(&output.stdout).replace(side.to_str().unwrap(), "");
            // Which of the names of a file comes first, threads decide.
            let told = |line: &str| match line.split_once(" => ") {
                Some((line, _)) => format!("copied {}", &line[12..]),
                None if line.starts_with(">f") => format!("copied {}", &line[12..]),
                None => line.to_owned(),
            };
            let mut lines: Vec<_> = lines.lines().map(told).collect();
            lines.sort();
            let trouble = said(&output).matches("cannot").count();
            let within = if options.contains(&"-H") { "via" } else { "" };
            give_ages(&side.join("t"), within, &at("source"));
            (side.join("t"), output.status.code(), lines, trouble)
        });
        let [one, four] = &made;
        assert_eq!(one.1, four.1, "{options:?}");
        assert_eq!(one.3, four.3, "{options:?}");
        let differs = one.2.iter().zip(&four.2).find(|(one, four)| one != four);
        assert!(!is_told || one.2.len() == four.2.len() && differs.is_none(), "{differs:?}");
        assert!(!is_told || !one.2.is_empty(), "{options:?}");
        assert_same(&one.0, &four.0);
        if options.contains(&"--manifest") {
            let words = ["--single", "sum", "--check", "MANIFEST"];
            let checked = Command::new(FLATOUT).args(words).current_dir(place.path()).output();
            let checked = checked.unwrap();
            assert!(checked.status.success(), "{}", said(&checked));
        }
    }
}
