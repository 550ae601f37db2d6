//! Hard links whose first copy does not stay where it was made, and what bears their names already.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use flatout_sys::launcher::calls::OF_PATHS;
use flatout_sys::launcher::{EIO, deny};

use super::copier::under_test;
use super::race::held::{Call, Held};
use crate::bin::{Folder, executable};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{needs_program, needs_root};
use crate::skip::needs;

fn folder() -> Folder {
    let folder = Folder::new();
    for name in ["src", "dst"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("src/a"), "linked").unwrap();
    for name in ["b", "c"] {
        fs::hard_link(folder.join("src/a"), folder.join("src").join(name)).unwrap();
    }
    folder
}

/// Moves away what the first of these names of the copy that is there bears, replaces it, or has a symlink take its
/// place, before one of the calls that follow: every other name is there in the end, with its bytes.
/// False: there are no such calls.
fn is_struck(
    folder: &Folder,
    (victims, all): (&[String], &[String]),
    attack: &str,
    index: usize,
) -> Result<bool, String> {
    let words = ["copy", "--threads=1", "-T", "src", "dst"];
    let mut held = Held::start(folder.flatout(words), &[])?;
    let copy = |name: &String| folder.join("dst").join(name);
    let is_whole = |name: &String| fs::read(copy(name)).is_ok_and(|text| text == b"linked");
    let (mut count, mut struck) = (0, None);
    while let Some(stop) = held.next() {
        if Call::of(&stop).is_some()
            && let Some(first) = victims.iter().find(|name| is_whole(name))
        {
            if count == index {
                let (first, away) = (copy(first), folder.join("away"));
                match attack {
                    "replace" => fs::remove_file(&first).unwrap(),
                    _ => fs::rename(&first, &away).unwrap(),
                }
                match attack {
                    "replace" => fs::write(&first, "foreign").unwrap(),
                    "symlink" => symlink(&away, &first).unwrap(),
                    _ => {}
                }
                struck = Some(first);
            }
            count += 1;
        }
        held.go_on(stop);
    }
    fs::remove_file(folder.join("away")).ok();
    let ran = held.finish();
    let is_said = ran.stderr.contains("files of their own");
    assert!(!is_said || ran.code == Some(1), "{attack} {index}{ran}");
    for name in all.iter().filter(|_| struck.is_some()) {
        let is_there = struck == Some(copy(name)) || is_whole(name);
        assert!(is_there, "{name} after {attack} of {struck:?} before call {index}{ran}");
    }
    Ok(struck.is_some())
}

#[test]
fn further_names_of_a_copy_that_was_moved_are_copied() {
    needs!(under_test());
    let names = ["a", "b", "c"].map(str::to_owned);
    for attack in ["move", "replace", "symlink"] {
        for index in 0..12 {
            if !needs!(is_struck(&folder(), (&names, &names), attack, index)) {
                break;
            }
        }
    }
}

/// A directory that is open is known, whatever its name is by now.
#[test]
fn names_in_a_target_that_is_renamed_meanwhile_stay_one_file() {
    needs!(under_test());
    let folder = folder();
    fs::create_dir(folder.join("src/below")).unwrap();
    fs::hard_link(folder.join("src/a"), folder.join("src/below/d")).unwrap();
    fs::remove_dir(folder.join("dst")).unwrap();
    let words = ["copy", "--threads=1", "-T", "src", "dst"];
    let mut held = needs!(Held::start(folder.flatout(words).leaves("moved"), &[]));
    let names = ["a", "b", "c", "below/d"];
    let (mut is_renamed, mut names_before) = (false, 0);
    while let Some(stop) = held.next() {
        let there = names.iter().filter(|name| folder.join("dst").join(name).exists()).count();
        if !is_renamed && Call::of(&stop).is_some() && there > 0 {
            fs::rename(folder.join("dst"), folder.join("moved")).unwrap();
            (is_renamed, names_before) = (true, there);
        }
        held.go_on(stop);
    }
    held.finish().exits(0);
    assert!(is_renamed && names_before < names.len(), "{names_before}");
    for name in names {
        let links = fs::metadata(folder.join("moved").join(name)).unwrap().nlink();
        assert_eq!(links, 4, "{name}, {names_before} before");
    }
}

/// The same where those of a directory are copied together.
#[test]
fn further_names_of_copies_that_were_made_together_are_copied_where_one_was_moved() {
    needs!(under_test());
    let [one, two] = ["one", "two"].map(|name| (0..8).map(move |n| format!("{name}/{n}")));
    let names: Vec<String> = one.chain(two).collect();
    let victims = [3, 11].map(|index| names[index].clone());
    for attack in ["move", "replace", "symlink"] {
        for index in (0..90).step_by(4) {
            let folder = Folder::new();
            for name in ["src/one", "src/two", "dst"] {
                fs::create_dir_all(folder.join(name)).unwrap();
            }
            let (one, two) = names.split_at(8);
            for (one, two) in one.iter().zip(two) {
                fs::write(folder.join("src").join(one), "linked").unwrap();
                let [one, two] = [one, two].map(|name| folder.join("src").join(name));
                fs::hard_link(one, two).unwrap();
            }
            if !needs!(is_struck(&folder, (&victims, &names), attack, index)) {
                break;
            }
        }
    }
}

/// Whichever name comes first: a symlink of the target that leads nowhere stays.
#[test]
fn a_dangling_symlink_stays_whichever_name_comes_first() {
    needs!(under_test());
    for taken in ["a", "b", "c"] {
        for order in [["src/a", "src/b", "src/c"], ["src/c", "src/b", "src/a"]] {
            let folder = folder();
            symlink("nowhere", folder.join("dst").join(taken)).unwrap();
            let words = [&["copy", "--threads=1"][..], &order, &["dst"]].concat();
            let ran = folder.flatout(words).run();
            ran.complains(1, &["dangling"]);
            let left = fs::read_link(folder.join("dst").join(taken));
            assert_eq!(left.unwrap().to_str(), Some("nowhere"), "{ran}");
            let whole = folder.flatout(["copy", "-T", "src", "dst"]).run();
            whole.complains(1, &["dangling"]);
        }
    }
}

/// A copy whose name another source takes afterwards is not lost with it.
#[test]
fn names_of_the_target_that_are_one_file_become_those_of_the_source() {
    needs!(under_test());
    let folder = folder();
    fs::write(folder.join("dst/x"), "old").unwrap();
    for name in ["a", "b", "y"] {
        fs::hard_link(folder.join("dst/x"), folder.join("dst").join(name)).unwrap();
    }
    fs::write(folder.join("src/x"), "alone").unwrap();
    folder.flatout(["copy", "-T", "src", "dst"]).run().exits(0);
    let inode = |name: &str| folder.join("dst").join(name).metadata().unwrap().ino();
    assert_eq!((inode("a"), inode("b")), (inode("c"), inode("c")));
    assert_eq!(fs::read(folder.join("dst/y")).unwrap(), b"old", "nobody named it");
    assert_eq!(fs::read(folder.join("dst/x")).unwrap(), b"alone");
}

/// A copy whose times were refused may be somebody else's, or is to be made again: its further names
/// are tried on their own, and each of them is named.
#[test]
fn a_copy_that_lacks_something_gets_no_further_names() {
    needs!(under_test());
    let folder = folder();
    let set_times = OF_PATHS.iter().find(|call| call.name == "utimensat").unwrap().number;
    let words = ["copy", "--threads=1", "src/a", "src/b", "src/c", "dst"];
    let run = folder.flatout(words).with(|command| {
        deny(command, &[(set_times, EIO)]);
    });
    let ran = run.run();
    ran.exits(1);
    for name in ["a", "b", "c"] {
        let copy = folder.join("dst").join(name);
        assert_eq!(fs::read(&copy).unwrap(), b"linked", "the bytes are there{ran}");
        assert_eq!(fs::metadata(&copy).unwrap().nlink(), 1, "{name}{ran}");
        let said = format!("cannot set the times of \"dst/{name}\":");
        assert_eq!(ran.stderr.matches(&said).count(), 1, "{name}{ran}");
    }
}

/// An operand and the directory in which it lies bring one of the names twice.
#[test]
fn a_name_that_two_operands_bring_does_not_cost_another_one_its_link() {
    for operands in [["src/b", "src"], ["src", "src/b"]] {
        let folder = folder();
        let run =
            folder.flatout([&["copy", "--threads=1"], &operands[..], &["dst"]].concat()).run();
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let names = ["dst/b", "dst/src/a", "dst/src/b", "dst/src/c"];
        let inode = |name: &str| fs::metadata(folder.join(name)).unwrap().ino();
        assert!(names.iter().all(|name| inode(name) == inode(names[0])), "{operands:?}");
    }
}

/// Of the names of one symlink, one is not put in the place that the symlink refers to: the others
/// are there, and one file.
#[test]
fn a_name_that_is_refused_does_not_cost_the_others_their_link() {
    needs!(under_test());
    for first in ["h", "y"] {
        let folder = Folder::new();
        fs::create_dir_all(folder.join("a/k")).unwrap();
        fs::create_dir(folder.join("t")).unwrap();
        symlink("../t/h", folder.join("a").join(first)).unwrap();
        for name in ["a/h", "a/k/h", "a/x", "a/y"] {
            let _the_first_is_there =
                fs::hard_link(folder.join("a").join(first), folder.join(name));
        }
        symlink("g", folder.join("t/h")).unwrap();
        let ran = folder.flatout(["copy", "-T", "a", "t"]).leaves("t").run();
        ran.complains(1, &["t/h", "refers to it"]);
        assert_eq!(fs::read_link(folder.join("t/h")).unwrap().to_str(), Some("g"));
        let inode = |name: &str| folder.join(name).symlink_metadata().unwrap().ino();
        for name in ["t/k/h", "t/x", "t/y"] {
            assert_eq!(fs::read_link(folder.join(name)).unwrap().to_str(), Some("../t/h"));
            assert_eq!(inode(name), inode("t/x"), "{name}");
        }
    }
}

/// A directory that is mounted a second time shows its names again: more than the file says it has.
#[test]
fn names_that_are_seen_more_often_than_there_are_stay_one_file() {
    needs!(under_test());
    needs!(needs_root("mounts a directory"));
    needs!(needs_program("unshare"));
    let folder = folder();
    let program = executable().display();
    let script = format!(
        "mkdir -p tree/one tree/two tree/three && ln src/a src/b tree/one || exit 9\n\
         mount --bind tree/one tree/two && mount --bind tree/one tree/three || exit 9\n\
         {program} copy -T tree copy && stat -c %i copy/*/* | uniq | wc -l"
    );
    let words = ["--mount", "sh", "-c", &script].map(Into::into).to_vec();
    let ran = folder.program("unshare".as_ref(), words).leaves("copy").leaves("tree").run();
    assert_eq!(ran.exits(0).stdout, "1\n", "{ran}");
}

/// A server may show files of several filesystems as those of one, with the numbers that they have there.
#[test]
fn files_of_one_number_keep_their_bytes() {
    let faulty = needs!(Faulty::new(Faults { is_one: true, ..Faults::default() }));
    let texts = [("a", "one text"), ("b", "other!!!"), ("c", "one text"), ("d", "longer text")];
    texts.iter().for_each(|(name, text)| faulty.put(name, text.as_bytes()));
    let folder = Folder::new();
    let from = faulty.path().to_str().unwrap();
    for words in [&["copy", "--threads=1"][..], &["copy"], &["cp", "-a"]] {
        let ran = folder.flatout([words, &["-T", from, "to"]].concat()).leaves("to").run();
        for (name, text) in texts {
            let found = fs::read_to_string(folder.join("to").join(name)).unwrap();
            assert_eq!(found, text, "{name} {ran}");
        }
        let is_said = ran.exits(0).stderr.contains("files of their own");
        assert_eq!(is_said, words[0] == "copy", "{ran}");
        fs::remove_dir_all(folder.join("to")).unwrap();
    }
    faulty.finish();
}

/// And a program may serve its own files so: what bears the name of a link, as long and as old as the copy, is
/// another file.
#[test]
fn a_file_of_the_same_number_is_not_taken_for_a_link() {
    let faulty = needs!(Faulty::new(Faults { is_one: true, ..Faults::default() }));
    let folder = folder();
    let to = faulty.path().to_str().unwrap();
    for words in
        ["copy --always --threads=1", "copy --checksum", "cp -a", "cp -a --remove-destination"]
    {
        ["a", "b", "c"].iter().for_each(|name| faulty.put(name, b"older!"));
        let words: Vec<&str> = words.split(' ').chain(["-T", "src", to]).collect();
        let ran = folder.flatout(words).run();
        for name in ["a", "b", "c"] {
            assert_eq!(faulty.bytes(name).unwrap(), b"linked", "{name}{ran}");
        }
    }
    faulty.finish();
}

/// Neither memory nor a file takes what is to be remembered of them.
#[test]
fn links_that_cannot_be_remembered_are_no_success() {
    needs!(under_test());
    let folder = Folder::new();
    let names: Vec<String> =
        (0..500).map(|number| format!("{number}{}", "n".repeat(100))).collect();
    for side in ["src/one", "src/two"] {
        fs::create_dir_all(folder.join(side)).unwrap();
    }
    for name in &names {
        fs::write(folder.join("src/one").join(name), name).unwrap();
        fs::hard_link(folder.join("src/one").join(name), folder.join("src/two").join(name))
            .unwrap();
    }
    let words = ["copy", "--threads=1", "--max-memory=64k", "-T", "src", "new"];
    let under = ["sh", "-c", "ulimit -f 1 && exec \"$@\"", "sh"];
    let ran = folder.under(&under, &words).leaves("new").run();
    assert!(ran.exits(1).stderr.contains("cannot be remembered"), "{ran}");
    for name in &names {
        for side in ["new/one", "new/two"] {
            assert_eq!(fs::read_to_string(folder.join(side).join(name)).unwrap(), *name);
        }
    }
}

/// A snapshot was made of the mirror, and shares its files.
#[test]
fn what_changes_of_a_file_of_several_names_does_not_change_in_a_snapshot() {
    needs!(under_test());
    let folder = folder();
    let copy = |words: &[&str]| {
        let run = folder.flatout([&["copy", "-T"], words].concat());
        run.leaves("mirror").leaves("snapshot").run().exits(0);
    };
    copy(&["src", "mirror"]);
    copy(&["--link-dest", "mirror", "src", "snapshot"]);
    let facts = |name: &str| fs::metadata(folder.join(name)).unwrap();
    assert_eq!(facts("snapshot/a").ino(), facts("mirror/a").ino());
    let before = facts("snapshot/a").mode();
    fs::set_permissions(folder.join("src/a"), Permissions::from_mode(0o604)).unwrap();
    for word in ["--quick-check", "--checksum"] {
        copy(&[word, "src", "mirror"]);
        assert_eq!(facts("snapshot/a").mode(), before, "{word}");
        assert_eq!(facts("mirror/b").mode() & 0o777, 0o604);
        assert_eq!((facts("mirror/b").nlink(), facts("snapshot/b").nlink()), (3, 3));
        assert_eq!(facts("mirror/a").ino(), facts("mirror/c").ino());
    }
}
