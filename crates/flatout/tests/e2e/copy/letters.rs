//! Letters of cp for `flatout copy`, together with what it promises.

use std::fs::{self, File};
use std::time::{Duration, UNIX_EPOCH};

use super::copier::is_control;
use crate::bin::{Folder, executable};
use crate::filesystem::{needs_program, needs_root};
use crate::skip::needs;

fn under_test() -> Result<(), String> {
    if is_control() { Err("cp stands in for the copier".into()) } else { Ok(()) }
}

/// `src` with two files, and `dst` with an older version of one.
fn folder() -> Folder {
    let folder = Folder::new();
    for name in ["src/there", "src/new", "dst/there"] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), name).unwrap();
    }
    let old = File::options().write(true).open(folder.join("dst/there")).unwrap();
    old.set_modified(UNIX_EPOCH + Duration::from_secs(1_000)).unwrap();
    folder
}

#[test]
fn what_is_copied_by_a_letter_of_cp_is_verified() {
    needs!(under_test());
    for letter in ["-u", "-L", "-H", "-n", "-b", "--update=older", "--backup=numbered", "-s", "-l"]
    {
        let folder = folder();
        let source = format!("{}/.", folder.join("src").display());
        let ran = folder.flatout(["copy", "--verify", "-f", letter, &source, "dst"]).run();
        assert_eq!(ran.exits(0).stderr, "", "{letter}{ran}");
        let there = if letter == "-n" { "dst/there" } else { "src/there" };
        assert_eq!(fs::read_to_string(folder.join("dst/there")).unwrap(), there, "{letter}");
        assert_eq!(fs::read_to_string(folder.join("dst/new")).unwrap(), "src/new", "{letter}");
    }
}

/// A file may lie on another filesystem than its directory: it is mounted, or a symlink leads there.
#[test]
fn files_of_another_filesystem_than_their_directory_are_synced() {
    needs!(under_test());
    needs!(needs_root("mounts a filesystem"));
    needs!(needs_program("unshare"));
    needs!(needs_program("strace"));
    let program = executable().display();
    for (place, letter) in
        [("mount --bind box/there dst/there", ""), ("ln -sf ../box/there dst/there", "-u")]
    {
        let folder = folder();
        fs::create_dir(folder.join("box")).unwrap();
        let script = format!(
            "mount -t tmpfs none box && cp -a dst/there box && {place} || exit 9\n\
             strace -f -qq -o trace -e trace=syncfs {program} copy {letter} --sync -T src dst\n\
             cat box/there trace"
        );
        let words = ["--mount", "sh", "-c", &script].map(Into::into).to_vec();
        let ran = folder.program("unshare".as_ref(), words).leaves("trace").run();
        ran.exits(0);
        assert!(ran.stdout.starts_with("src/there"), "{ran}");
        assert_eq!(ran.stdout.matches("syncfs(").count(), 2, "{ran}");
    }
}
