//! `flatout transfer`: the bytes of one file into another, as dd moves them.

use std::fs;

use crate::bin::{Folder, Ran};
use crate::fixture::random_file;

fn transfer(folder: &Folder, source: &str, target: &str, block: &str) -> Ran {
    folder.flatout(["transfer", source, target, "--block-size", block]).leaves("target").run()
}

#[test]
fn bytes_arrive_and_what_was_there_is_cut_off() {
    let folder = Folder::new();
    for (length, block) in [(0, "512"), (1, "1"), (100_000, "512"), (100_000, "1M")] {
        let bytes = random_file(&folder.join("source"), length, 7);
        fs::write(folder.join("target"), vec![1; 200_000]).unwrap();
        assert_eq!(transfer(&folder, "source", "target", block).exits(0).stdout, "");
        assert!(fs::read(folder.join("target")).unwrap() == bytes, "{length} by {block}");
    }
}

#[test]
fn a_source_that_is_the_target_is_refused_by_whatever_name() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("source"), 5000, 7);
    fs::hard_link(folder.join("source"), folder.join("second")).unwrap();
    transfer(&folder, "source", "second", "512").complains(2, &["second", "it is the source"]);
    for target in ["source", "second"] {
        let input = fs::File::open(folder.join("source")).unwrap();
        let ran = folder.flatout(["transfer", "-", target]).stdin(input).run();
        ran.complains(2, &[target, "it is the source"]);
    }
    assert!(fs::read(folder.join("source")).unwrap() == bytes);
}

#[test]
fn what_cannot_be_done_is_one_line_and_leaves_nothing() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("source"), 5000, 7);
    fs::create_dir(folder.join("folder")).unwrap();
    std::os::unix::fs::symlink("source", folder.join("link")).unwrap();
    transfer(&folder, "source", "link", "512").complains(2, &["link", "it is the source"]);
    transfer(&folder, "gone", "target", "512").complains(1, &["gone", "No such file"]);
    transfer(&folder, "source", "folder", "512").complains(1, &["folder", "directory"]);
    transfer(&folder, "source", "/dev/null", "512").complains(1, &["/dev/null"]);
    transfer(&folder, "source", "target", "0").complains(2, &["'0' for '--block-size"]);
    assert!(!folder.join("target").exists());
    assert!(fs::read(folder.join("source")).unwrap() == bytes);
}
