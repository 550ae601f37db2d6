//! Names of the source that the target takes for one, and names that look like our temporary ones.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::copier::under_test;
use crate::bin::{Folder, Ran};
use crate::faulty::{Faults, Faulty};
use crate::skip::needs;

/// So many pairs of names.
const PAIRS: usize = 40;

/// The name under which a file is made that will be called `target`.
fn temporary_of(target: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!(".flatout-copy-{:x}-0-0", target.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// What the files of a directory hold.
fn contents(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

fn copy(folder: &Folder, options: &[&str], operands: &[&str]) -> Ran {
    folder.flatout([&["copy"][..], options, operands].concat()).leaves("T").run()
}

/// Files that are to be replaced, and beside each a file of the very name that the copier would
/// use for that.
#[test]
fn files_that_bear_the_names_of_temporaries_are_copied_and_stay() {
    needs!(under_test());
    for options in [&["--threads=1"][..], &["--threads=8"], &["--atomic"], &["--in-place"]] {
        let folder = Folder::new();
        for directory in ["S", "T", "other"] {
            fs::create_dir(folder.join(directory)).unwrap();
        }
        for index in 0..PAIRS {
            let name = format!("x{index}");
            let temporary = format!("S/{}", temporary_of(&name));
            fs::write(folder.join(&temporary), format!("kept {index}")).unwrap();
            fs::write(folder.join(&format!("S/{name}")), format!("new {index}")).unwrap();
            fs::write(folder.join(&format!("T/{name}")), "old").unwrap();
            fs::write(folder.join(&format!("other/{name}")), format!("later {index}")).unwrap();
        }
        let wanted = contents(&folder.join("S"));
        for _ in 0..2 {
            let ran = copy(&folder, options, &["S/.", "T"]);
            assert_eq!(ran.exits(0).stderr.lines().count(), 1, "{ran}");
            assert!(ran.stderr.contains("bears the name of a temporary file"), "{ran}");
            assert!(contents(&folder.join("T")) == wanted, "{options:?}{ran}");
        }
        // Another source of the same copy replaces files there.
        let ran = copy(&folder, options, &["S/.", "other/.", "T"]);
        ran.exits(0);
        let found = contents(&folder.join("T"));
        assert_eq!(found.len(), 2 * PAIRS, "{options:?}{ran}");
        for index in 0..PAIRS {
            let name = format!("x{index}");
            assert_eq!(found[&temporary_of(&name)], format!("kept {index}"), "{ran}");
            assert_eq!(found[&name], format!("later {index}"), "{ran}");
        }
    }
}

/// As on vfat, or in a directory of ext4 that folds case.
#[test]
fn names_that_the_target_takes_for_one_are_refused_and_nothing_is_lost() {
    needs!(under_test());
    one_name(needs!(Faulty::new(Faults { folds: true, ..Faults::default() })));
}

/// As by exfat-fuse, and wherever a program leaves inode numbers to libfuse.
#[test]
fn names_that_the_target_takes_for_one_and_numbers_as_two_are_refused() {
    needs!(under_test());
    let faults = Faults { folds: true, numbers_spellings: true, ..Faults::default() };
    one_name(needs!(Faulty::new(faults)));
}

/// As `LONGFI~1.TXT` of vfat, which is the name of a file that is called otherwise.
#[test]
fn a_short_name_that_the_target_made_up_is_no_way_to_another_file() {
    let faulty = needs!(Faulty::new(Faults { folds: true, ..Faults::default() }));
    let folder = Folder::new();
    let [long, short] = ["longfilename.txt", "longfi~1.txt"];
    for (kind, at) in [("file", ""), ("directory", "/in")] {
        for name in [long, short, "other~1.txt"] {
            let path = folder.join(&format!("{kind}/{name}{at}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        for words in ["copy", "copy --in-place", "copy --checksum --delete", "cp -a"] {
            let target = faulty.path().join(format!("{kind}{words}"));
            fs::create_dir_all(target.join(format!("{long}{at}")).parent().unwrap()).unwrap();
            fs::write(target.join(format!("{long}{at}")), "there").unwrap();
            for _ in 0..2 {
                let words = words.split(' ').chain(["-T", kind, target.to_str().unwrap()]);
                let ran = folder.flatout(words.collect::<Vec<_>>()).run();
                ran.complains(1, &["longfi~1.txt", "longer name"]);
                for name in [long, "other~1.txt"] {
                    let found = fs::read_to_string(target.join(format!("{name}{at}")));
                    assert_eq!(found.unwrap(), name, "{ran}");
                }
            }
        }
    }
    faulty.finish();
}

/// As on msdos, where nothing can be made under a name of ours besides: what is there is written over.
#[test]
fn names_that_the_target_cuts_to_one_are_refused_and_what_is_there_is_written_again() {
    let faulty = needs!(Faulty::new(Faults { cuts: true, ..Faults::default() }));
    let folder = Folder::new();
    for name in
        ["long-name-1.text", "long-name-2.text", "plain.txt", "dir-name-1/f", "dir-name-2/f"]
    {
        let path = folder.join(&format!("S/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    let operands = ["S/long-name-1.text", "S/long-name-2.text", "S/plain.txt"];
    for (number, words) in ["copy", "copy --in-place", "cp -r"].iter().enumerate() {
        let words: Vec<&str> = words.split(' ').collect();
        let at = |name: &str| format!("{}/{name}{number}", faulty.path().display());
        let [tree, files] = [at("tree"), at("files")];
        fs::create_dir(&files).unwrap();
        for round in 0..2 {
            fs::write(folder.join("S/plain.txt"), format!("plain {round}")).unwrap();
            let all = [&words[..], &["-T", "S", &tree]].concat();
            let ran = folder.flatout(all).run();
            assert!(ran.exits(1).stderr.contains("same name"), "{ran}");
            let few = [&words[..], &operands, &[&files]].concat();
            let named = folder.flatout(few).run();
            assert!(named.exits(1).stderr.contains("same name"), "{named}");
            for target in [&tree, &files] {
                let found = contents(Path::new(target));
                let kept = &found["long-nam.tex"];
                let mut refused = ran.stderr.lines().filter(|line| line.contains("overwrite"));
                assert!(target == &files || refused.all(|line| !line.contains(kept)), "{ran}");
                assert_eq!(found["plain.txt"], format!("plain {round}"), "{ran}");
            }
        }
    }
    faulty.finish();
}

/// Names of which the target has one.
fn one_name(faulty: Faulty) {
    let folder = Folder::new();
    for directory in ["S/Sub", "S/sub"] {
        fs::create_dir_all(folder.join(directory)).unwrap();
        fs::write(folder.join(directory).join("f"), directory).unwrap();
    }
    for index in 0..PAIRS {
        fs::write(folder.join(&format!("S/README{index}")), format!("README{index}")).unwrap();
        fs::write(folder.join(&format!("S/readme{index}")), format!("readme{index}")).unwrap();
        fs::write(folder.join(&format!("S/plain{index}")), "plain").unwrap();
    }
    for (count, options) in
        [&["--threads=1"][..], &["--threads=8"], &["--atomic"], &["--in-place"]].iter().enumerate()
    {
        let target = faulty.path().join(format!("copy{count}"));
        // A new directory, then one that is there.
        for _ in 0..2 {
            let words = ["copy", "-T", "S", target.to_str().unwrap()];
            let ran = folder.flatout(words.iter().chain(*options)).run();
            ran.exits(1);
            let refused: Vec<&str> =
                ran.stderr.lines().filter(|l| l.contains("same name")).collect();
            assert_eq!(refused.len(), PAIRS + 1, "{options:?}{ran}");
            let found = contents(&target);
            assert_eq!(found.len(), 2 * PAIRS, "{options:?}{ran}");
            for index in 0..PAIRS {
                // The one that is said to be missing is, and the other one is there.
                let text = [format!("README{index}"), format!("readme{index}")]
                    .into_iter()
                    .find_map(|name| found.get(&name))
                    .unwrap();
                let other = match text.strip_prefix("README") {
                    Some(number) => format!("readme{number}\":"),
                    None => text.replace("readme", "README") + "\":",
                };
                assert!(refused.iter().any(|line| line.contains(&other)), "{text}{ran}");
            }
            let sub = ["Sub", "sub"].map(|name| fs::read_to_string(target.join(name).join("f")));
            assert!(sub.iter().flatten().all(|text| *text == *sub[0].as_ref().unwrap()), "{ran}");
        }
    }
    // One letter, or a letter and its mark.
    let both = ["caf\u{e9}", "cafe\u{301}"];
    fs::create_dir(folder.join("U")).unwrap();
    both.iter().for_each(|name| fs::write(folder.join("U").join(name), name).unwrap());
    let target = faulty.path().join("U");
    let words = ["copy", "-T", "U", target.to_str().unwrap()];
    for _ in 0..2 {
        folder.flatout(words).run().complains(1, &["same name"]);
        assert_eq!(contents(&target).len(), 1);
    }
    // What is there under the other spelling is no surplus.
    let there = contents(&target).into_keys().next().unwrap();
    fs::remove_file(folder.join("U").join(there)).unwrap();
    folder.flatout(words.iter().chain(&["--delete"])).run().exits(0);
    assert_eq!(contents(&target).len(), 1);
    fs::create_dir(folder.join("V")).unwrap();
    fs::write(folder.join("V/readme"), "new").unwrap();
    let target = faulty.path().join("V");
    fs::create_dir(&target).unwrap();
    ["README", "surplus"].iter().for_each(|name| fs::write(target.join(name), "old").unwrap());
    let words = ["copy", "--delete", "-T", "V", target.to_str().unwrap()];
    folder.flatout(words).run().exits(0);
    let left: Vec<String> = contents(&target).into_values().collect();
    assert_eq!(left, ["new"]);
    kinds_of_one_name(&folder, &faulty);
    new_files_of_another_rule(&folder, &faulty);
    // Names that a directory tells apart are copied as any.
    copy(&folder, &[], &["S", "T"]).exits(0);
    assert_eq!(contents(&folder.join("T")).len(), 3 * PAIRS);
    // Named one by one.
    fs::create_dir(folder.join("up")).unwrap();
    fs::write(folder.join("up/NAME"), "upper").unwrap();
    fs::write(folder.join("name"), "lower").unwrap();
    let target = faulty.path().to_str().unwrap();
    folder.flatout(["copy", "up/NAME", "name", target]).run().complains(1, &["same name"]);
    faulty.finish();
}

/// A directory and a file: neither makes way for the other, nor is merged with a second one.
fn kinds_of_one_name(folder: &Folder, faulty: &Faulty) {
    for (count, options) in [&["--delete"][..], &["--delete", "-b"], &["-b"]].iter().enumerate() {
        for (kind, name) in [("file", "sub"), ("directory", "sub/f")] {
            let source = folder.join(&format!("W{count}{kind}"));
            fs::create_dir_all(source.join("Sub")).unwrap();
            fs::create_dir_all(source.join(name).parent().unwrap()).unwrap();
            fs::write(source.join("Sub/f"), "in").unwrap();
            fs::write(source.join(name), "out").unwrap();
            let target = faulty.path().join(format!("W{count}{kind}"));
            fs::create_dir_all(target.join("SUB")).unwrap();
            for _ in 0..2 {
                let words = ["copy", "-T", source.to_str().unwrap(), target.to_str().unwrap()];
                folder.flatout(words.iter().chain(*options)).run().complains(1, &["same name"]);
                let found = contents(&target.join("SUB"));
                assert!(found.values().all(|text| *text == found["f"]), "{options:?} {kind}");
            }
        }
    }
}

/// It knows neither links nor renames that replace nothing.
fn new_files_of_another_rule(folder: &Folder, faulty: &Faulty) {
    for option in ["-u", "-n"] {
        let target = faulty.path().join(format!("X{option}"));
        let words = ["copy", option, "-T", "V", target.to_str().unwrap()];
        folder.flatout(words).run().exits(0);
        assert_eq!(contents(&target)["readme"], "new");
    }
}

/// Without it a file of a TiB that holds a page fills the target.
#[test]
fn holes_stay_where_a_server_does_not_tell_where_they_are() {
    let faulty = needs!(Faulty::new(Faults { has_holes: true, ..Faults::default() }));
    let folder = Folder::new();
    let mut bytes = vec![0; 4 << 20];
    bytes[2 << 20] = 7;
    faulty.put("sparse", &bytes);
    let source = faulty.path().join("sparse");
    let words = ["copy".as_ref(), source.as_os_str(), "copy".as_ref()];
    folder.flatout(words).leaves("copy").run().exits(0);
    let copied = fs::read(folder.join("copy")).unwrap();
    let room = folder.join("copy").metadata().unwrap().blocks() * 512;
    assert!(copied == bytes && room <= 1 << 20, "{room}");
    faulty.finish();
}

/// Whatever it is read for, and written for.
#[test]
fn data_that_a_server_denies_are_copied() {
    let faults = Faults { has_holes: true, denies_data: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = Folder::new();
    let (mut bytes, mut other) = (vec![0; 4 << 20], vec![0; 4 << 20]);
    (bytes[2 << 20], other[1 << 20]) = (7, 7);
    for name in ["file", "old"] {
        faulty.put(name, if name == "file" { &bytes } else { &other });
    }
    let from = faulty.path().join("file").to_str().unwrap().to_owned();
    let local = fs::File::create(folder.join("sparse")).unwrap();
    local.set_len(4 << 20).unwrap();
    local.write_all_at(&[7], 2 << 20).unwrap();
    for words in [
        "copy",
        "cp -a",
        "copy --verify",
        "copy --manifest L",
        "copy --checksum",
        "copy --in-place --delta",
        "copy --in-place --delta --threads=2",
    ] {
        // What lacks its byte has the length and the time that it is to have.
        let hole = fs::File::create(folder.join("copy")).unwrap();
        hole.set_len(4 << 20).unwrap();
        hole.set_modified(std::time::UNIX_EPOCH).unwrap();
        let words: Vec<&str> = words.split(' ').chain([&*from, "copy"]).collect();
        let ran = folder.flatout(&words).leaves("copy").leaves("L").run();
        ran.exits(0);
        assert!(fs::read(folder.join("copy")).unwrap() == bytes, "{words:?}{ran}");
        fs::remove_file(folder.join("copy")).unwrap();
        if words.contains(&"--manifest") {
            folder.flatout(["copy", &*from, "copy"]).leaves("copy").run().exits(0);
            folder.flatout(["sum", "--check", "L"]).run().exits(0);
        }
    }
    for words in ["copy --in-place --delta", "copy --checksum --verify"] {
        let to = faulty.path().join("old").to_str().unwrap().to_owned();
        let words: Vec<&str> = words.split(' ').chain(["sparse", &*to]).collect();
        let ran = folder.flatout(&words).run();
        assert!(faulty.bytes("old").unwrap() == bytes, "{words:?}{ran}");
        faulty.rewrite("old", &other);
    }
    faulty.finish();
}

/// Many servers leave the number of names at 0, some say the same of all.
#[test]
fn where_names_are_not_counted_new_files_and_others_in_place_of_old_ones_are_made() {
    for names in [0, 2] {
        let faulty = needs!(Faulty::new(Faults { names: Some(names), ..Faults::default() }));
        let folder = Folder::new();
        fs::create_dir(folder.join("tree")).unwrap();
        mknodat(CWD, folder.join("tree/fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("a", folder.join("tree/link")).unwrap();
        let target = faulty.path().join("copy");
        for (text, word) in [("first", "--atomic"), ("another", "--atomic"), ("third", "--always")]
        {
            fs::write(folder.join("tree/f"), text).unwrap();
            let words = ["copy", "-T", word, "tree", target.to_str().unwrap()];
            let ran = folder.flatout(words).run();
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{names}{ran}");
            assert_eq!(contents(&target), [("f".to_owned(), text.to_owned())].into());
        }
        for kind in ["fifo", "link", "f"] {
            fs::remove_file(target.join(kind)).unwrap();
        }
        let words = ["copy", "-T", "tree", target.to_str().unwrap()];
        folder.flatout(words).run().exits(0);
        assert_eq!(fs::read_link(target.join("link")).unwrap(), Path::new("a"));
        assert!(target.join("fifo").metadata().unwrap().file_type().is_fifo());
        faulty.finish();
    }
}

/// A server that lists each name twice: the second one must neither replace the backup of what was there, nor be
/// a file that was just made, nor count.
#[test]
fn a_name_that_is_listed_twice_is_copied_once() {
    let faulty = needs!(Faulty::new(Faults { repeats: true, ..Faults::default() }));
    let from = faulty.path().to_str().unwrap();
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        faulty.put(name, b"new");
    }
    let of = |text: &str| ["a", "b", "c"].map(|name| (name.to_owned(), text.to_owned()));
    for words in [&["copy", "-b"][..], &["cp", "-a", "--backup"]] {
        fs::create_dir(folder.join("T")).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.join("T").join(name), "old").unwrap();
        }
        let ran = folder.flatout([words, &["-T", from, "T"]].concat()).leaves("T").run();
        ran.exits(0);
        let kept = of("old").map(|(name, text)| (name + "~", text));
        assert_eq!(contents(&folder.join("T")), BTreeMap::from_iter([of("new"), kept].concat()));
        fs::remove_dir_all(folder.join("T")).unwrap();
        let ran = folder.flatout([words, &["-T", from, "T"]].concat()).leaves("T").run();
        ran.exits(0);
        assert_eq!(contents(&folder.join("T")), BTreeMap::from_iter(of("new")));
        fs::remove_dir_all(folder.join("T")).unwrap();
    }
    let ran = folder.flatout(["copy", "--log", "-", "-T", from, "T"]).leaves("T").run();
    assert_eq!(ran.exits(0).stdout.matches("\"copied\"").count(), 3, "{ran}");
    assert_eq!(folder.flatout(["sum", "-r", from]).run().exits(0).stdout.lines().count(), 3);
    faulty.finish();
}
