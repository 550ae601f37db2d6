//! The letters of cp mean to `flatout copy` what they mean to `cp -a`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::option::plant;
use super::{Compared, Pair, Trial};
use crate::bin::Folder;
use crate::copy::entry::date;
use crate::skip::skip;

/// Runs `cp -a` and `flatout copy` with the words of a line.
fn run(pair: &Pair, line: &str) -> Compared {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let trial = |side: &str, program: &Path, first: &[&str]| {
        let folder = pair.folder(side);
        let input = pair.input.as_deref();
        Trial { program, first, folder: &folder, user: None, input, environment: &[] }.run(&words)
    };
    let cp = trial("cp", "cp".as_ref(), &["-a"]);
    let flatout = trial("flatout", pair.program.as_ref(), &["copy"]);
    Compared { cp, flatout, differences: pair.differences() }
}

#[test]
fn letters_of_cp_mean_what_they_mean_to_cp() {
    let mut pair = Pair::new(plant);
    let mut different = Vec::new();
    for line in [
        "-n a b",
        "-n d full",
        "--no-clobber a new",
        "-u b full/a",
        "--update a b",
        "-i a b",
        "-i -n a b",
        "-n -i a b",
        "-l a new",
        "-l d new",
        "-l -f a b",
        "-s a new",
        "-s a b",
        "-b a b",
        "-b d/. full/d",
        "--backup=numbered a n",
        "--backup=wrong a b",
        "--backup=none a full/a there",
        "--backup=none a a there",
        "-b a full/a there",
        "-S .old a b",
        "-b -n a b",
        "-H ld new",
        "-L d new",
        "-L ld d there",
        "-L -P l new",
        "-P -L l new",
        "-H -L d new",
    ] {
        for input in ["", "y\ny\ny\n", "n\n"] {
            pair.input = Some(input.as_bytes().to_vec());
            pair.plant(plant);
            let compared = run(&pair, line);
            // Wrong use is 2 here.
            let codes = [&compared.cp, &compared.flatout].map(|output| output.status.success());
            if !compared.differences.is_empty() || codes[0] != codes[1] {
                different.push(format!("{line}: {compared}"));
            }
            if !line.contains("-i") {
                break;
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn what_contradicts_the_rules_of_cp_is_wrong_use() {
    let folder = Folder::new();
    fs::write(folder.join("a"), "a").unwrap();
    for words in [
        ["-u", "--atomic"],
        ["-u", "--resume=always"],
        ["-b", "--checksum"],
        ["-L", "--quick-check"],
        ["-l", "-s"],
    ] {
        let all = [&["copy"], words.as_slice(), &["a", "b"]].concat();
        folder.flatout(all).run().exits(2);
        assert!(!folder.join("b").exists(), "{words:?}");
    }
}

/// How fine the times of a filesystem are is found out by a file without a name.
#[test]
fn an_update_of_a_file_leaves_the_time_of_its_directory() {
    let folder = Folder::new();
    let unnamed = OFlags::TMPFILE | OFlags::WRONLY;
    if rustix::fs::open(folder.join("."), unnamed, Mode::RUSR | Mode::WUSR).is_err() {
        skip!("the directory of the tests takes no files without a name");
    }
    fs::create_dir(folder.join("there")).unwrap();
    for (name, seconds) in [("a", 3), ("there/a", 2)] {
        fs::write(folder.join(name), name).unwrap();
        date(&folder.join(name), 1_000_000_000 + seconds, 0);
    }
    date(&folder.join("there"), 1_000_000_000, 0);
    folder.flatout(["cp", "-p", "-u", "a", "there"]).run().exits(0);
    assert_eq!(fs::read(folder.join("there/a")).unwrap(), b"a");
    assert_eq!(fs::metadata(folder.join("there")).unwrap().mtime(), 1_000_000_000);
}
