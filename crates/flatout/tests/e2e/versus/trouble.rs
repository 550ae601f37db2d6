//! Rivals that crash, hang, lie or are not there, and places without room.

use std::fs;
use std::path::Path;

use flatout_sys::launcher::{EPERM, PTRACE, deny};
use rustix::process::Signal;

use super::{Stable, left_in, rows};
use crate::bin::{Folder, wait_for};
use crate::filesystem::{Kind, Mounted};
use crate::schema::assert_valid;
use crate::skip::needs;

#[test]
fn a_rival_that_crashes_loses_its_row_and_the_run_says_so() {
    let stable = Stable::new();
    let ran = stable
        .rival("b3sum", "echo first >&2; echo out of luck >&2; exit 3")
        .race(&["b3sum", "--format", "json"]);
    let document = ran.exits(1).document();
    assert_valid(&document);
    assert!(ran.stderr.contains("b3sum failed with exit code 3: out of luck"), "{ran}");
    let contestants = rows(&document, "versus/sum-file");
    assert_eq!(
        (&contestants[0]["status"] == "failed", contestants[0]["median"].is_number()),
        (false, true)
    );
    assert_eq!(
        (&contestants[1]["status"], contestants[1]["median"].is_null()),
        (&"failed".into(), true)
    );
    for pair in rows(&document, "versus/ratio") {
        assert_eq!((&pair["status"], pair["median"].is_null()), (&"failed".into(), true));
    }
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn a_wrong_digest_is_found_out() {
    let stable = Stable::new();
    let text = "for file in \"$@\"; do echo \"$(printf %064d 0)  $file\"; done";
    let ran = stable.rival("b3sum", text).race(&["b3sum", "--format", "json"]);
    let document = ran.exits(1).document();
    assert!(ran.stderr.contains("b3sum: the digest of"), "{ran}");
    assert!(rows(&document, "versus/sum-file")[0]["median"].is_number(), "flatout is right");
    assert_eq!(rows(&document, "versus/sum-file")[1]["status"], "failed");
    let nonsense = Stable::new();
    let ran = nonsense.rival("b3sum", "echo hello").race(&["b3sum"]);
    assert!(ran.exits(1).stderr.contains("\"hello\" is no digest"), "{ran}");
}

#[test]
fn a_rival_that_hangs_ends_with_the_user() {
    let stable = Stable::new();
    let mark = stable.0.join("mark");
    let text = format!("trap '' INT; sleep 1000 & echo $! > {}; wait", mark.display());
    stable.rival("b3sum", &text);
    let place = stable.0.join("place");
    let running = stable.flatout(&place, &["b3sum", "--format", "json"]).leaves("mark").start();
    wait_for(|| fs::read_to_string(&mark).is_ok_and(|text| text.ends_with('\n')));
    running.interrupt();
    let ran = running.wait();
    let document = ran.died_of(Signal::INT).document();
    assert_valid(&document);
    assert!(ran.stderr.contains("interrupted"), "{ran}");
    assert!(rows(&document, "versus/sum-file").iter().all(|row| row["status"] == "interrupted"));
    let sleeper = fs::read_to_string(&mark).unwrap();
    wait_for(|| is_gone(sleeper.trim()));
    assert_eq!(stable.left().len(), 0);
}

/// Whether a process is dead, if perhaps not reaped yet by whoever adopted it.
fn is_gone(process: &str) -> bool {
    match fs::read_to_string(format!("/proc/{process}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])),
    }
}

#[test]
fn a_missing_rival_is_named_with_its_package() {
    let stable = Stable::new();
    let ran = stable.honest().race(&["b3sum", "fcp", "linpack", "--format", "json"]);
    let document = ran.exits(1).document();
    assert_valid(&document);
    assert!(ran.stderr.contains("not installed: fcp (cargo install fcp)"), "{ran}");
    assert!(ran.stderr.contains("linpack is not raced"), "{ran}");
    let missing = rows(&document, "versus/missing");
    assert_eq!(
        (&missing[0]["status"], &missing[0]["audit"]["package"]),
        (&"unsupported".into(), &"cargo install fcp".into())
    );
    assert_eq!(missing[0]["warnings"][0]["code"], "missing_rival");
    assert_eq!(rows(&document, "versus/ratio").len(), 2, "the other is raced");
}

#[test]
fn without_names_nobody_has_to_be_there() {
    let stable = Stable::new();
    let nowhere = stable.0.join("bin");
    let ran = stable
        .flatout(&stable.0.join("place"), &["--format", "json"])
        .with(|command| {
            command.env("PATH", nowhere);
        })
        .run();
    // They are named; a race of nobody has measured nothing.
    let document = ran.exits(1).document();
    assert_valid(&document);
    assert!(ran.stderr.contains("b3sum (package b3sum)"), "{ran}");
    assert!(rows(&document, "versus/missing").len() >= 6, "{document:#}");
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn an_unknown_name_is_wrong_use_and_the_names_are_said() {
    let stable = Stable::new();
    stable.race(&["b4sum"]).complains(2, &["'b4sum'", "did you mean 'b3sum'?"]);
    stable.race(&["nobody"]).complains(2, &["\"nobody\"", "b3sum", "rsync-r"]);
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn without_room_nothing_is_begun() {
    let stable = Stable::new();
    stable
        .honest()
        .race(&["b3sum", "--max-write", "1M"])
        .complains(1, &["--max-write", "only 1 MiB"]);
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn a_disk_that_is_full_ends_the_race_with_a_message_and_without_targets() {
    let place = needs!(Mounted::new(Kind::Tmpfs(200 << 20)));
    let stable = Stable::new();
    let text = "for word in \"$@\"; do case $word in of=*) \
                exec head -c 300000000 /dev/zero > \"${word#of=}\";; esac; done";
    stable.rival("dd", text);
    let arguments = ["dd", "--max-write", "190M", "--format", "json"];
    let ran = stable.flatout(&place.path(), &arguments).run();
    let document = ran.exits(1).document();
    assert_valid(&document);
    assert!(ran.stderr.contains("No space left on device"), "{ran}");
    assert_eq!(left_in(&place.path()).len(), 0);
    let refused = stable.flatout(&place.path(), &["dd"]).run();
    refused.complains(1, &["10 % of the free space; --max-write SIZE allows more"]);
    fs::write(place.path().join("full"), vec![1; 180 << 20]).unwrap();
    for words in [&["dd"][..], &["dd", "--max-write", "190M"]] {
        let refused = stable.flatout(&place.path(), words).run();
        refused.complains(1, &["no more is free; --directory DIR takes another place"]);
        assert!(!refused.stderr.contains("--max-write"), "{refused}");
    }
    place.finish();
}

#[test]
fn where_ptrace_is_denied_memory_is_said_to_be_perhaps_inherited() {
    let stable = Stable::new();
    stable.honest();
    let ran = stable
        .flatout(&stable.0.join("place"), &["b3sum", "--format", "json"])
        .with(|command| {
            deny(command, &[(PTRACE, EPERM)]);
        })
        .run();
    let document = ran.exits(0).document();
    for row in rows(&document, "versus/sum-file") {
        assert_ne!(row["audit"]["peak_memory_of"], "itself", "{row:#}");
        assert!(row["median"].is_number());
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let stable = Stable::new();
    let ran = stable.honest().flatout(Path::new("/no/such/folder"), &["b3sum"]).run();
    ran.complains(1, &["directory", "/no/such/folder"]);
    assert_eq!(Folder::names_in(&stable.0.join("place")).len(), 0);
}

#[test]
fn symlinks_in_the_place_of_the_race_are_refused_and_nothing_is_deleted() {
    for name in ["targets", ""] {
        let stable = Stable::new();
        stable.honest();
        let outside = stable.0.join("outside");
        fs::create_dir_all(outside.join("1/precious")).unwrap();
        let folder = stable.0.join("place").join(super::LEFT);
        let link = if name.is_empty() { folder } else { folder.join(name) };
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        stable.race(&["b3sum"]).complains(1, &["is a symlink"]);
        assert!(outside.join("1/precious").exists());
    }
}

#[test]
fn a_second_race_in_a_directory_and_its_cleaning_are_refused() {
    let stable = Stable::new();
    let mark = stable.0.join("mark");
    stable.rival("b3sum", &format!("echo > {}; sleep 1000", mark.display()));
    let place = stable.0.join("place");
    let running = stable.flatout(&place, &["b3sum"]).leaves("mark").start();
    wait_for(|| mark.exists());
    let message = "another race runs in";
    stable.race(&["b3sum"]).complains(1, &[message]);
    stable.race(&["--clean"]).complains(1, &[message]);
    running.interrupt();
    running.wait().died_of(Signal::INT);
    assert_eq!(stable.left().len(), 0);
}
