//! A dry run changes nothing, and says what the run after it does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::garden::change;
use super::plant;
use crate::bin::Folder;
use crate::filesystem::{needs_program, needs_root};
use crate::fixture::{Random, is_full, seed};
use crate::input::as_nobody;
use crate::skip::needs;

const OPTIONS: [&[&str]; 12] = [
    &[],
    &["--delete"],
    &["--delete", "--checksum", "--threads=1"],
    &["--delete", "--quick-check", "--exclude=*.o"],
    &["--delete-excluded", "--exclude=tmp", "--max-fds=16"],
    &["--include=*/", "--include=*.txt", "--exclude=*", "--atomic"],
    &["--max-size=2K", "--delete", "--in-place"],
    &["-u"],
    &["-n", "--delete"],
    &["-b", "--delete"],
    &["-l"],
    &["-sf", "--update"],
];

/// What the kernel says of all things below a directory, and of itself.
fn states(root: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, u32)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let facts = path.symlink_metadata().unwrap();
        if facts.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let state = (facts.ino(), facts.ctime(), facts.ctime_nsec(), facts.mode());
        found.insert(path, state);
    }
    found
}

/// What was done, or would be, and to what.
fn actions(log: &Path) -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(log).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    lines.map(|line| (word(&line, "action"), word(&line, "path"))).collect()
}

/// By the rules of cp a file is written into a pipe, from which somebody would have to read, and
/// through a symlink, which a plan does not see coming.
fn remove_ways(root: &Path) {
    for path in states(root).into_keys() {
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_fifo() || kind.is_symlink() && !path.is_dir() {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_the_run_does() {
    let seed = seed();
    let mut random = Random::new(seed);
    for series in 0..if is_full() { 70 } else { OPTIONS.len() } {
        let options = OPTIONS[series % OPTIONS.len()];
        let folder = Folder::new();
        let [source, target] = ["source", "target"].map(|name| folder.join(name));
        fs::create_dir(&source).unwrap();
        change(&source, &mut random, 80);
        plant(&folder, &["source/linked/one"]);
        fs::hard_link(source.join("linked/one"), source.join("linked/two")).unwrap();
        for round in 0..if is_full() { 3 } else { 2 } {
            let context = format!("FLATOUT_TEST_SEED={seed} series {series} round {round}");
            let run = |log: &str, more: &[&str]| {
                let base = ["copy", "-T", "source", "target", "--format=json", "--log", log];
                let words = [&base, options, more].concat();
                folder.flatout(words).leaves("target").leaves("dry").leaves("wet").run()
            };
            let before = target.exists().then(|| states(&target));
            let dry = run("dry", &["--dry-run"]);
            let after = target.exists().then(|| states(&target));
            assert_eq!(before, after, "{context}{dry}");
            let wet = run("wet", &[]);
            assert_eq!(dry.code, wet.code, "{context}{dry}{wet}");
            let [planned, done] = ["dry", "wet"].map(|log| actions(&folder.join(log)));
            let [extra, missing] = [
                planned.difference(&done).collect::<Vec<_>>(),
                done.difference(&planned).collect(),
            ];
            assert_eq!((extra, missing), (vec![], vec![]), "{context} {options:?}{dry}{wet}");
            let [planned, done] = [&dry, &wet].map(|ran| ran.result()["audit"].clone());
            assert_eq!(planned["dry_run"], true, "{context}");
            for key in ["files", "directories", "others", "linked", "unchanged", "bytes", "deleted"]
            {
                assert_eq!(planned[key], done[key], "{key} {context} {options:?}{dry}{wet}");
            }
            change(&source, &mut random, 10);
            change(&target, &mut random, 10);
            remove_ways(&target);
        }
    }
}

#[test]
fn a_plan_is_one_line_with_what_would_be_overwritten_and_deleted() {
    let folder = Folder::new();
    plant(&folder, &["source/new", "source/dir/old", "target/dir/old", "target/gone/1"]);
    let words = ["copy", "-T", "source", "target", "--delete", "--dry-run"];
    let ran = folder.flatout(words).run();
    let expected = "dry run: 2 files, 24 B to be copied; 2 directories; 1 to be overwritten; 2 to be deleted\n";
    assert_eq!(ran.exits(0).stdout, expected, "{ran}");
    let ran = folder.flatout([&words[..], &["-v"]].concat()).run();
    let lines: BTreeSet<&str> = ran.exits(0).stdout.lines().collect();
    for line in ["'source/new' -> 'target/new'", "removed 'target/gone/1'", expected.trim_end()] {
        assert!(lines.contains(line), "{line}: {ran}");
    }
    assert!(!folder.join("target/new").exists() && folder.join("target/gone/1").exists());
}

#[test]
fn names_of_one_file_that_make_room_first_are_planned_as_links() {
    let folder = Folder::new();
    plant(&folder, &["source/one", "target/one/in", "target/two/in"]);
    fs::hard_link(folder.join("source/one"), folder.join("source/two")).unwrap();
    let words = ["copy", "-T", "source", "target", "--delete", "--dry-run"];
    let ran = folder.flatout(words).run();
    let expected = "dry run: 1 file, 10 B to be copied; 1 directory; 2 to be overwritten; \
                    1 to be linked; 2 to be deleted\n";
    assert_eq!(ran.exits(0).stdout, expected, "{ran}");
}

#[test]
fn a_symlink_that_is_the_source_itself_stays_in_a_plan_too() {
    let folder = Folder::new();
    plant(&folder, &["source/", "target/"]);
    std::os::unix::fs::symlink("loop", folder.join("source/loop")).unwrap();
    fs::hard_link(folder.join("source/loop"), folder.join("target/loop")).unwrap();
    for more in [&["--dry-run"][..], &[]] {
        let ran = folder.flatout([&["copy", "-T", "source", "target"], more].concat());
        let ran = ran.leaves("target").run();
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
    }
}

#[test]
fn a_dangling_symlink_is_not_written_through_in_a_plan_either() {
    let folder = Folder::new();
    plant(&folder, &["source/a", "target/"]);
    std::os::unix::fs::symlink("nowhere", folder.join("target/a")).unwrap();
    for more in [&["--dry-run"][..], &[]] {
        let words = [&["copy", "-T", "-u", "source", "target"], more].concat();
        let ran = folder.flatout(words).leaves("target").run();
        assert!(ran.exits(1).stderr.contains("it is a dangling symlink"), "{ran}");
    }
}

#[test]
fn a_dry_run_opens_nothing_for_writing() {
    needs!(needs_program("strace"));
    let folder = Folder::new();
    plant(&folder, &["source/new/deep/er", "source/dir/old", "target/dir/old", "target/gone/1"]);
    let options = ["--delete", "--dry-run", "--quick-check", "--resume=always", "--sync"];
    let words = [&["copy", "-T", "source", "target"][..], &options].concat();
    let wrapper = ["strace", "-f", "-e", "trace=%file,fchmod,ftruncate,utimensat", "-o", "trace"];
    folder.under(&wrapper, &words).leaves("trace").run().exits(0);
    let trace = fs::read_to_string(folder.join("trace")).unwrap();
    let calls = ["mkdir", "unlink", "rename", "O_WRONLY", "O_RDWR", "O_CREAT", "chmod", "utimens"];
    let writes = |line: &&str| calls.iter().any(|call| line.contains(call));
    assert_eq!(trace.lines().find(writes), None);
    assert!(trace.contains("\"er\""), "{trace}");
}

#[test]
fn what_becomes_a_link_to_a_snapshot_is_planned_as_one() {
    let folder = Folder::new();
    plant(&folder, &["source/one", "source/two", "source/new", "source/old"]);
    fs::hard_link(folder.join("source/two"), folder.join("source/twin")).unwrap();
    folder.flatout(["copy", "-T", "source", "snapshot"]).leaves("snapshot").run().exits(0);
    fs::write(folder.join("source/new"), "other bytes").unwrap();
    let words = ["copy", "--link-dest", "snapshot", "-T", "source", "target", "--format=json"];
    folder.flatout(words).leaves("target").run().exits(0);
    fs::remove_file(folder.join("target/one")).unwrap();
    fs::remove_file(folder.join("target/two")).unwrap();
    fs::remove_file(folder.join("target/old")).unwrap();
    fs::write(folder.join("target/old"), "to be overwritten").unwrap();
    let dry = folder.flatout([&words[..], &["--dry-run"]].concat()).run();
    let wet = folder.flatout(words).run();
    let [planned, done] = [&dry, &wet].map(|ran| ran.exits(0).result()["audit"].clone());
    assert_eq!(planned["linked"], 3, "{dry}");
    for key in ["files", "linked", "unchanged", "bytes"] {
        assert_eq!(planned[key], done[key], "{key}{dry}{wet}");
    }
}

#[test]
fn a_protected_file_becomes_no_link_to_a_snapshot_in_a_plan_either() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    plant(&folder, &["source/f", "target/f"]);
    folder.flatout(["copy", "-T", "source", "snapshot"]).leaves("snapshot").run().exits(0);
    fs::set_permissions(folder.join("target/f"), fs::Permissions::from_mode(0o444)).unwrap();
    let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(folder.path()).status();
    assert!(owned.unwrap().success());
    for more in ["--dry-run ", ""] {
        let words = format!("copy {more}--link-dest snapshot -T source target");
        let ran = as_nobody(&folder, &words).run();
        assert!(ran.exits(1).stderr.contains("cannot overwrite \"target/f\""), "{ran}");
    }
}

#[test]
fn what_two_names_lead_to_is_planned_as_one_file() {
    let folder = Folder::new();
    plant(&folder, &["source/file"]);
    std::os::unix::fs::symlink("file", folder.join("source/link")).unwrap();
    let words = ["copy", "-L", "-T", "source", "target", "--format=json"];
    let [planned, done] = [&["--dry-run"][..], &[]].map(|more| {
        let ran = folder.flatout([&words[..], more].concat()).leaves("target").run();
        ran.exits(0).result()["audit"].clone()
    });
    assert_eq!(done["linked"], 1);
    for key in ["files", "linked", "bytes"] {
        assert_eq!(planned[key], done[key], "{key}");
    }
}
