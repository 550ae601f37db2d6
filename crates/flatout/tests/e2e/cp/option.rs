//! Each option once, on a small tree.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use super::{NOBODY, Pair, complaints};
use crate::copy::entry::chmod;

/// A tree `d`, a file `a` with another name, and what may be in the way.
pub fn plant(folder: &Path) {
    let at = |name: &str| folder.join(name);
    for directory in ["d/sub/deep", "there", "full/d/sub"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    for (name, text) in [
        ("a", "a"),
        ("d/f", "f"),
        ("d/sub/g", "g"),
        ("full/d/f", "old"),
        ("full/a", "older"),
        ("b", "bb"),
    ] {
        fs::write(at(name), text).unwrap();
        let file = fs::File::options().write(true).open(at(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000))
            .unwrap();
    }
    chmod(&at("a"), 0o6751);
    chmod(&at("d/sub"), 0o750);
    chmod(&at("full/a"), 0o604);
    fs::hard_link(at("d/f"), at("d/h")).unwrap();
    fs::hard_link(at("d/f"), at("d/sub/i")).unwrap();
    fs::hard_link(at("full/a"), at("full/twin")).unwrap();
    for (text, name) in
        [("a", "l"), ("f", "d/l"), ("d", "ld"), ("nowhere", "dangling"), ("../a", "there/way")]
    {
        symlink(text, at(name)).unwrap();
    }
    fs::write(at("n.~3~"), "").unwrap();
    fs::write(at("n"), "n").unwrap();
    fs::write(at("hole"), vec![0; 1 << 20]).unwrap();
}

const LINES: &[&str] = &[
    // A plain file: the mode less the umask; what is there keeps its inode, mode and links.
    "a new",
    "a full",
    "a full/a",
    "a b there",
    "l new",
    "d new",
    "ld new",
    "a d there",
    "a dangling",
    "a there/way",
    "a a",
    "a l",
    "l a",
    "a a there",
    "d/f full/d/f there",
    "nowhere new",
    "a nowhere/new",
    "a b nowhere",
    "a new/",
    "a full/twin full/a there",
    // Trees.
    "-r d new",
    "-R d full",
    "-r d a",
    "-r d/. full",
    "-rT d full/d",
    "-T a b",
    "-T a there",
    "-T a b there",
    "-a d new",
    "-a d full",
    "-a a full",
    "-dR d new",
    "-p a new",
    "-p a full/a",
    "-rp d new",
    "-t there a b",
    "--target-directory=there a",
    "-t nowhere a",
    "-t=there a",
    "-rt=there a",
    "-t there -t full a",
    "-t there -T a",
    // Symlinks.
    "-P l new",
    "-d l new",
    "-rP ld new",
    "-rH ld new",
    "-rL d new",
    "-rL ld d there",
    "-L dangling new",
    "-P dangling new",
    "-r dangling l there",
    "-P l b",
    "-P l a",
    "-P l l",
    // Links instead of copies.
    "-l a new",
    "-l a b",
    "-lf a b",
    "-l a a",
    "-rl d new",
    "-al d new",
    "-s a new",
    // The text of a symlink is the path as it was given.
    "-sv d/./f .",
    "-sv d//f d/sub/../h d/sub//.//g .",
    "-rs d/.// .",
    "-s a b",
    "-sf a b",
    "-ls a new",
    // What is there.
    "-n a full",
    "-n d/f full/d",
    "-rn d full",
    "-u a full",
    "-u b full/a",
    "-ru d full",
    "-f a full/a",
    "--remove-destination a full/a",
    "--remove-destination a l",
    "--remove-destination a a",
    "-b a b",
    "-b a new",
    "-b a a",
    "-bf a a",
    "-b n a~",
    "--backup=numbered a n",
    "--backup=existing a n",
    "--backup=simple a n",
    "--backup=t a b",
    "--backup=none a b",
    "--backup=off a b",
    "--backup=wrong a b",
    "-S .bak a b",
    "-S=.bak a b",
    "-bS= a b",
    "-S -t=there a b",
    "--suffix=.bak --backup=simple a b",
    "-bn a b",
    // Attributes.
    "--preserve a new",
    "--preserve=mode a new",
    "--preserve=mode,ti a new",
    "--preserve=links d/f d/h there",
    "--preserve=all a new",
    "--preserve=context a new",
    "--preserve=wrong a new",
    "-p --no-preserve=mode a new",
    "--no-preserve=mode a new",
    "--no-preserve=mode,timestamps -a d new",
    "-a --no-preserve=all d new",
    "--attributes-only -p a b",
    "--attributes-only a new",
    // Paths.
    "--parents d/sub/g there",
    "-p --parents d/sub/g there",
    "-r --parents d/sub there",
    "-r --parents d/./. there",
    "-rv d/./sub there//",
    "-v d//f there/./",
    "--parents d/f d/sub/g there",
    "--parents a b",
    "-a --parents d/f d/sub/i there",
    "--strip-trailing-slashes a/ there",
    "-r --strip-trailing-slashes ld/ there",
    // The rest.
    "-x -r d new",
    "-v a new",
    "-rv d new",
    "-bv a b",
    "--sparse=always hole new",
    "--sparse=never hole new",
    "--sparse=wrong hole new",
    "--reflink=auto a new",
    "--reflink=never a new",
    "--reflink=always --sparse=always a new",
    "--copy-contents -r d new",
    "-Z a new",
    "--context a new",
    "--context=word a new",
    // Abbreviations, repetitions, the last one.
    "--recur d new",
    "--re d new",
    "--no-deref l new",
    "-r -r -v -v d new",
    "-P -L l new",
    "-L -P l new",
    "-n -f a b",
    "-i -n a b",
    "-a -L d new",
    "-h a b",
    "--wrong a b",
    "a",
    "-r",
];

#[test]
fn each_option_does_what_it_does_in_cp() {
    let mut pair = Pair::new(plant);
    let mut different = Vec::new();
    for line in LINES {
        pair.plant(plant);
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let compared = pair.run(&words);
        let lines = |output: &std::process::Output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.retain(|line| !line.starts_with("removed"));
            lines.sort();
            lines
        };
        let is_said = lines(&compared.cp) == lines(&compared.flatout);
        if !compared.is_same() || !is_said {
            different.push(format!("cp {line}: {compared}"));
        }
    }
    // Who may not write something is not stopped by --force, which removes it.
    if rustix::process::geteuid().is_root() {
        pair.as_nobody();
        for line in ["a b", "-f a b", "-p a new", "-a d new", "-n a b", "--remove-destination a b"]
        {
            pair.plant(|folder| {
                plant(folder);
                chmod(&folder.join("b"), 0o444);
                chmod(&folder.join("a"), 0o644);
                // Whose owner cannot be kept.
                fs::create_dir(folder.join("d/shared")).unwrap();
                chmod(&folder.join("d/shared"), 0o1777);
                std::os::unix::fs::chown(folder, Some(NOBODY), None).unwrap();
                std::os::unix::fs::chown(folder.join("b"), Some(NOBODY), None).unwrap();
            });
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let compared = pair.run(&words);
            if !compared.is_same() {
                different.push(format!("cp {line} by nobody: {compared}"));
            }
        }
    }
    assert!(different.is_empty(), "{} lines\n{}", different.len(), different.join("\n"));
}

#[test]
fn questions_are_answered_and_no_answer_is_no_consent() {
    let mut pair = Pair::new(plant);
    for input in [None, Some("y\n"), Some("Yes\n"), Some("n\n"), Some("\n"), Some("maybe y\n")] {
        for line in ["-i a b", "-i a new", "-ib a b", "-i -n a b", "-n -i a b", "-il a b"] {
            pair.plant(plant);
            pair.input = input.map(|input| input.as_bytes().to_vec());
            pair.same(line);
        }
    }
}

#[test]
fn the_environment_is_obeyed() {
    let mut pair = Pair::new(plant);
    for (name, value) in [
        ("POSIXLY_CORRECT", "1"),
        ("SIMPLE_BACKUP_SUFFIX", ".old"),
        ("SIMPLE_BACKUP_SUFFIX", "a/b"),
        ("VERSION_CONTROL", "numbered"),
        ("VERSION_CONTROL", "wrong"),
        ("VERSION_CONTROL", ""),
    ] {
        pair.environment = vec![(name, value)];
        for line in ["a dangling", "-b a b", "-b -S .x a b", "a there -v", "-t there a -v"] {
            pair.plant(plant);
            pair.same(line);
        }
    }
}

/// What cp 9.1 does not have yet.
#[test]
fn younger_options_do_what_their_manual_says() {
    let pair = Pair::new(plant);
    let place = pair.folder("flatout");
    let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
    for (line, code, text) in [
        ("--update=none a b", 0, "bb"),
        ("--update=none-fail a b", 1, "bb"),
        ("--update=older a b", 0, "bb"),
        ("--update=all a b", 0, "a"),
        ("--update=none --update a b", 0, "bb"),
        ("--update=sometimes a b", 1, "bb"),
        // A question stays one, and what stays in any case is not asked about.
        ("-i --update=all a b", 0, "bb"),
        ("-i -u --update=all a b", 0, "bb"),
        ("--update=none -i a b", 0, "bb"),
        ("-n --update=all a b", 0, "bb"),
        ("--debug a b", 0, "a"),
        ("--keep-directory-symlink a b", 0, "a"),
    ] {
        pair.plant(plant);
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let compared = pair.run(&words);
        let found = (compared.flatout.status.code(), read("b"));
        assert_eq!(found, (Some(code), text.to_owned()), "{line}: {compared}");
        assert_eq!(complaints(&compared.flatout), code as usize, "{line}: {compared}");
    }
}

#[test]
fn debug_says_how_a_file_is_copied_or_that_it_is_not() {
    let pair = Pair::new(plant);
    let place = pair.folder("flatout");
    let say = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        String::from_utf8(pair.run(&words).flatout.stdout).unwrap()
    };
    let said = say("--debug a new");
    assert!(said.starts_with("'a' -> 'new'\ncopy offload: "), "{said}");
    assert!(said.contains(", reflink: ") && said.contains(", sparse detection: "), "{said}");
    assert_eq!(say("--debug --update=none a b"), "skipped 'a'\n");
    assert!(!say("--debug --attributes-only a new2").contains("offload"));
    assert!(place.join("new2").exists());
}

#[test]
fn a_symlink_of_the_target_may_stand_for_its_directory() {
    let pair = Pair::new(|folder| {
        plant(folder);
        fs::create_dir_all(folder.join("target/real")).unwrap();
        symlink("real", folder.join("target/sub")).unwrap();
    });
    let place = pair.folder("flatout");
    let run = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        pair.run(&words).flatout
    };
    assert_eq!(run(&["-r", "d/.", "target"]).status.code(), Some(1));
    assert!(!place.join("target/real/g").exists());
    let output = run(&["-r", "--keep-directory-symlink", "d/.", "target"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(place.join("target/real/g")).unwrap(), "g");
    assert!(place.join("target/sub").is_symlink() && place.join("target/real/deep").is_dir());
    assert_eq!(run(&["-rT", "--keep-directory-symlink", "d", "ld"]).status.code(), Some(1));
}

#[test]
fn a_symlink_to_a_directory_above_it_moves_no_time() {
    let pair = Pair::new(|folder| {
        fs::create_dir_all(folder.join("s/d/deep")).unwrap();
        fs::create_dir_all(folder.join("t/s/d/deep")).unwrap();
        fs::write(folder.join("s/f"), "f").unwrap();
        symlink("..", folder.join("s/d/deep/up")).unwrap();
        symlink(".", folder.join("s/here")).unwrap();
        for path in ["t/s/d/deep", "t/s/d", "t/s"] {
            let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
            fs::File::open(folder.join(path)).unwrap().set_modified(past).unwrap();
        }
    });
    let compared = pair.same("-rL s t");
    assert_eq!(complaints(&compared.flatout), 2, "{compared}");
    assert_eq!(fs::metadata(pair.folder("flatout/t/s/d/deep")).unwrap().mtime(), 1_000_000_000);
}

#[test]
fn backups_lie_beside_what_they_are_of() {
    let pair = Pair::new(plant);
    let place = pair.folder("flatout");
    for (line, backup) in [
        ("-b a full", "full/a~"),
        ("--backup=numbered a full", "full/a.~1~"),
        ("-S .old -t full a", "full/a.old"),
    ] {
        pair.plant(plant);
        pair.run(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(fs::read_to_string(place.join(backup)).unwrap(), "older", "{line}");
        assert_eq!(fs::read_to_string(place.join("full/a")).unwrap(), "a", "{line}");
        assert_eq!(fs::metadata(place.join("full/twin")).unwrap().nlink(), 2, "{line}");
    }
}
