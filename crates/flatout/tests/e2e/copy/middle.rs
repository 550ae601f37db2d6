//! What happens in the middle of a file: it is written, or the copy ends there.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use flatout_sys::launcher::{PWRITE, Resource, limit};

use super::copier::under_test;
use super::race::held::{Call, Held};
use crate::bin::{Folder, Ran};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, MountPoint, Mounted};
use crate::fixture::random_bytes;
use crate::skip::needs;

const LENGTH_BYTES: usize = 3 << 20;

/// A file `f`, and an empty `t`.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("t")).unwrap();
    fs::write(folder.join("f"), random_bytes(LENGTH_BYTES, 1)).unwrap();
    folder
}

fn begun<'a>(folder: &'a Folder, words: &[&str], from: &Path) -> Result<Held<'a>, String> {
    let from = from.to_str().unwrap();
    let all = [words, &["--engine=sync", "--threads=1", "-T", from, "t/f"]].concat();
    Held::start(folder.flatout(all), &[PWRITE])
}

/// A copy of `f` to `t/f` that something happens to when a part of it has been written.
fn copied_while(folder: &Folder, words: &[&str], happens: impl FnOnce()) -> Result<Ran, String> {
    copied_from(folder, words, Path::new("f"), happens)
}

/// The same of a file that lies elsewhere.
fn copied_from(
    folder: &Folder,
    words: &[&str],
    from: &Path,
    happens: impl FnOnce(),
) -> Result<Ran, String> {
    let mut held = begun(folder, words, from)?;
    let (mut happens, mut writes) = (Some(happens), 0);
    while let Some(stop) = held.next() {
        writes += u32::from(stop.number == PWRITE);
        if writes == 2
            && let Some(happens) = happens.take()
        {
            happens();
        }
        held.go_on(stop);
    }
    Ok(held.finish())
}

fn set_time(path: &Path, seconds_ago: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds_ago);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[track_caller]
fn is_copied(folder: &Folder, context: &Ran) {
    let is_same = fs::read(folder.join("t/f")).unwrap() == fs::read(folder.join("f")).unwrap();
    assert!(is_same, "{context}");
    assert_eq!(Folder::names_in(&folder.join("t")).len(), 1, "{context}");
}

/// Whoever writes may put the modification time back.
#[test]
fn a_change_whose_time_is_put_back_is_seen() {
    needs!(under_test());
    let folder = folder();
    let source = folder.join("f");
    let ran = needs!(copied_while(&folder, &["copy"], || {
        let (file, before) =
            (File::options().write(true).open(&source).unwrap(), || fs::metadata(&source).unwrap());
        let (modified, changed) = (before().modified().unwrap(), before().ctime_nsec());
        // A clock may not have ticked since the file was made.
        while before().ctime_nsec() == changed {
            file.write_all_at(b"other", 0).unwrap();
            file.write_all_at(b"other", LENGTH_BYTES as u64 - 5).unwrap();
            file.set_modified(modified).unwrap();
        }
    }));
    assert!(ran.exits(0).stderr.contains("changed while it was copied"), "{ran}");
    is_copied(&folder, &ran);
}

/// Where times are whole seconds, two changes within one of them have the same.
#[test]
fn a_change_within_the_second_of_a_coarse_clock_is_seen() {
    needs!(under_test());
    let point = needs!(MountPoint::with_coarse_times());
    for words in [&["copy"][..], &["copy", "--in-place"]] {
        let folder = folder();
        fs::write(folder.join("t/f"), "old").unwrap();
        let (source, other) = (point.path().join("f"), random_bytes(LENGTH_BYTES, 2));
        fs::copy(folder.join("f"), &source).unwrap();
        let ran = needs!(copied_from(&folder, words, &source, || {
            File::options().write(true).open(&source).unwrap().write_all_at(&other, 0).unwrap();
        }));
        assert!(ran.exits(0).stderr.contains("changed while it was copied"), "{ran}");
        assert!(fs::read(folder.join("t/f")).unwrap() == other, "{ran}");
    }
    point.finish();
}

/// The kernel may take for true what a server told some time ago; it is asked anew.
#[test]
fn a_change_by_another_host_is_seen() {
    needs!(under_test());
    let remembered = Duration::from_secs(3600);
    let faults = Faults { remembered, is_read_only: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let (folder, other) = (folder(), random_bytes(LENGTH_BYTES, 2));
    faulty.put("f", &fs::read(folder.join("f")).unwrap());
    let ran = needs!(copied_from(&folder, &["copy"], &faulty.path().join("f"), || {
        faulty.rewrite("f", &other);
    }));
    assert!(ran.exits(0).stderr.contains("changed while it was copied"), "{ran}");
    assert!(fs::read(folder.join("t/f")).unwrap() == other, "{ran}");
    faulty.finish();
}

/// A server need not know how long a file is before somebody reads it.
#[test]
fn a_file_that_is_longer_than_its_server_tells_is_copied_whole() {
    let faults = Faults { is_uncached: true, told_bytes: 5000, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = folder();
    for length in [5000, 5001, 300_000] {
        let bytes = random_bytes(length, 3);
        faulty.put("f", &bytes);
        for words in [&["copy"][..], &["copy", "--verify"], &["cp"]] {
            let from = faulty.path().join("f");
            let all = [words, &["-T", from.to_str().unwrap(), "t/f"]].concat();
            let ran = folder.flatout(all).run();
            ran.exits(0);
            assert!(fs::read(folder.join("t/f")).unwrap() == bytes, "{length} {ran}");
        }
        // Over an older one, by what differs.
        for there in [0, 5000, 400_000] {
            fs::write(folder.join("t/f"), random_bytes(there, 4)).unwrap();
            let from = faulty.path().join("f");
            let words = ["copy", "--in-place", "--delta", "-T", from.to_str().unwrap(), "t/f"];
            let ran = folder.flatout(words).run();
            ran.exits(0);
            assert!(fs::read(folder.join("t/f")).unwrap() == bytes, "{length} {there} {ran}");
        }
    }
    faulty.finish();
}

/// Whatever keeps the rest of its bytes away, nobody may take what came for the file.
#[test]
fn a_file_that_is_shorter_than_its_server_tells_is_no_success() {
    let faults = Faults { is_uncached: true, added_bytes: 5000, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = folder();
    for length in [1, 300_000, 5 << 20] {
        let bytes = random_bytes(length, 3);
        faulty.put("f", &bytes);
        let from = faulty.path().join("f");
        let why =
            ["it ended before the end that its length tells", "less was read than the length"];
        for words in [&["copy"][..], &["copy", "--verify"], &["copy", "--in-place"], &["cp"]] {
            let all = [words, &["-T", from.to_str().unwrap(), "t/f"]].concat();
            let ran = folder.flatout(all).run();
            let said = &ran.exits(1).stderr;
            assert!(why.iter().any(|why| said.contains(why)), "{length} {ran}");
            assert!(fs::read(folder.join("t/f")).unwrap() == bytes, "{length} {ran}");
        }
        let ran = folder.flatout(["sum", from.to_str().unwrap()]).run();
        assert!(ran.exits(1).stderr.contains(why[0]), "{length} {ran}");
        // Nobody has room for so much.
        faulty.change(|faults| faults.added_bytes = 1 << 40);
        let words = ["copy", "--sparse=never", "-T", from.to_str().unwrap(), "t/f"];
        let ran = folder.flatout(words).run();
        assert!(ran.exits(1).stderr.contains(why[0]), "{length} {ran}");
        assert!(fs::read(folder.join("t/f")).unwrap() == bytes, "{length} {ran}");
        faulty.change(|faults| faults.added_bytes = 5000);
    }
    faulty.finish();
}

/// The same below an overlay, which says nothing of it either.
#[test]
fn a_file_that_is_shorter_below_an_overlay_is_no_success() {
    let faults = Faults { is_uncached: true, added_bytes: 5000, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let (folder, upper) = (folder(), needs!(Mounted::new(Kind::Tmpfs(1 << 20))));
    let bytes = random_bytes(300_000, 3);
    faulty.put("f", &bytes);
    let overlay = needs!(Mounted::overlay(faulty.path(), &upper.path()));
    let from = overlay.path().join("f");
    let why = "it ended before the end that its length tells";
    let ran = folder.flatout(["copy", "-T", from.to_str().unwrap(), "t/f"]).run();
    assert!(ran.exits(1).stderr.contains(why), "{ran}");
    assert!(fs::read(folder.join("t/f")).unwrap() == bytes, "{ran}");
    let ran = folder.flatout(["sum", from.to_str().unwrap()]).run();
    assert!(ran.exits(1).stderr.contains(why), "{ran}");
    overlay.finish();
    upper.finish();
    faulty.finish();
}

/// Neither costs a second attempt.
#[test]
fn a_new_mode_or_name_of_the_source_is_no_failure() {
    needs!(under_test());
    let folder = folder();
    let ran = needs!(copied_while(&folder, &["copy"], || {
        fs::hard_link(folder.join("f"), folder.join("t/other")).unwrap();
    }));
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    fs::remove_file(folder.join("t/other")).unwrap();
    is_copied(&folder, &ran);
    let ran = needs!(copied_while(&folder, &["copy", "--always"], || {
        fs::set_permissions(folder.join("f"), Permissions::from_mode(0o604)).unwrap();
    }));
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    assert_eq!(fs::metadata(folder.join("t/f")).unwrap().mode() & 0o7777, 0o604, "{ran}");
}

/// A log may be renamed meanwhile: what is open is copied.
#[test]
fn a_source_that_loses_its_name_is_copied() {
    needs!(under_test());
    for words in [&["copy"][..], &["copy", "--in-place"], &["copy", "-u"]] {
        let folder = folder();
        let (source, moved) = (folder.join("f"), folder.join("t/moved"));
        let ran = needs!(copied_while(&folder, words, || fs::rename(&source, &moved).unwrap()));
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
        assert!(fs::read(folder.join("t/f")).unwrap() == fs::read(&moved).unwrap(), "{ran}");
    }
}

/// What is written in place is compared with a source that grew, too.
#[test]
fn a_source_that_grows_is_copied_once_where_it_is_written_in_place() {
    needs!(under_test());
    for words in [&["copy", "--in-place"][..], &["copy", "--in-place", "--verify"]] {
        let folder = folder();
        fs::write(folder.join("t/f"), "old").unwrap();
        let source = folder.join("f");
        let ran = needs!(copied_while(&folder, words, || {
            let file = File::options().write(true).open(&source).unwrap();
            file.write_all_at(b"more", LENGTH_BYTES as u64).unwrap();
        }));
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
        let copied = fs::read(folder.join("t/f")).unwrap();
        assert!(copied == fs::read(&source).unwrap()[..LENGTH_BYTES], "{ran}");
    }
}

/// Who shares extents has what the source had by then.
#[test]
fn a_source_that_grows_before_its_extents_are_shared_is_no_failure() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    let (source, into) = (mounted.path().join("f"), mounted.path().join("into"));
    fs::write(&source, random_bytes(LENGTH_BYTES, 1)).unwrap();
    fs::create_dir(&into).unwrap();
    let (folder, mut length) = (Folder::new(), LENGTH_BYTES);
    let words = ["copy", "--verify", "--threads=1"].map(Path::new);
    let all = words.into_iter().chain([source.as_path(), &into]);
    let mut held = needs!(Held::start(folder.flatout(all), &[]));
    while let Some(stop) = held.next() {
        let call = Call::of(&stop);
        if call.is_some_and(|call| call.path == "f" && call.directory.ends_with("/into")) {
            let file = File::options().write(true).open(&source).unwrap();
            file.write_all_at(b"more", length as u64).unwrap();
            length += 4;
        }
        held.go_on(stop);
    }
    let ran = held.finish();
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    let (copied, now) = (fs::read(into.join("f")).unwrap(), fs::read(&source).unwrap());
    assert!(now.len() > LENGTH_BYTES && copied.len() >= LENGTH_BYTES, "{ran}");
    assert!(now.starts_with(&copied), "{ran}");
    mounted.finish();
}

/// Where what is there may stay as it is, nothing that is not complete is taken for that.
#[test]
fn a_new_file_that_was_not_completed_is_not_taken_for_up_to_date() {
    needs!(under_test());
    for words in [&["copy", "-u"][..], &["copy", "-n"], &["copy", "--update=none-fail"]] {
        let folder = folder();
        let mut held = needs!(begun(&folder, words, Path::new("f")));
        while let Some(stop) = held.next() {
            if stop.number == PWRITE {
                break;
            }
            held.go_on(stop);
        }
        let ran = held.kill();
        assert!(!folder.join("t/f").exists(), "{ran}");
        let again = [words, &["-T", "f", "t/f"]].concat();
        is_copied(&folder, folder.flatout(again).run().exits(0));
    }
}

#[test]
fn a_file_whose_update_failed_is_updated_by_the_next_run() {
    needs!(under_test());
    for words in [&["copy", "-u"][..], &["copy", "-u", "-L"], &["cp", "-u"], &["cp", "-pu"]] {
        let folder = folder();
        fs::write(folder.join("t/f"), "old").unwrap();
        set_time(&folder.join("f"), 1_000);
        set_time(&folder.join("t/f"), 2_000);
        let all = [words, &["-T", "f", "t/f"]].concat();
        let failed = folder.flatout(&all).with(|command| {
            limit(command, Resource::FileSize, 1 << 20);
        });
        failed.run().exits(1);
        is_copied(&folder, folder.flatout(&all).run().exits(0));
    }
}

/// What was copied before would take the place of the backups of what was there.
#[test]
fn who_stopped_a_copy_with_backups_is_not_told_to_lose_them() {
    needs!(under_test());
    for (words, hint) in [
        (&["copy", "-b"][..], "with --backup=numbered the same command goes on"),
        (&["copy", "--backup=numbered"], "give the same command again"),
    ] {
        let folder = folder();
        let mut held = needs!(begun(&folder, words, Path::new("f")));
        let mut is_interrupted = false;
        while let Some(stop) = held.next() {
            if stop.number == PWRITE && !is_interrupted {
                is_interrupted = true;
                held.running().interrupt();
            }
            held.go_on(stop);
        }
        let ran = held.finish();
        assert!(is_interrupted && ran.stderr.contains(hint), "{ran}");
    }
}
