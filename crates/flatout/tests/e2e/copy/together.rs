//! Small files of a new directory, which are copied several at a time.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use flatout_sys::launcher::calls::OF_DESCRIPTORS;

use super::copier::under_test;
use super::oracle::{Aspect, Leeway, Portrait, assert_same};
use super::race::held::Held;
use crate::bin::{Folder, Ran};
use crate::filesystem::{Kind, Mounted, needs_program};
use crate::fixture::{Random, is_full, random_bytes, seed};
use crate::skip::needs;

const READ: Leeway = Leeway::but(&[Aspect::Accessed]);
const COPY: [&str; 5] = ["copy", "--threads=1", "-T", "tree", "copy"];
const FILES: u64 = 40;

/// Files of many lengths and modes in one directory; every fifth one is not as usual.
fn plant(tree: &Path) {
    let _none_yet = fs::remove_dir_all(tree);
    fs::create_dir_all(tree.join("d")).unwrap();
    let lengths = [0, 1, 4096, 5000, 8192, 30_000, 65_535, 65_536];
    for index in 0..FILES as usize {
        let path = tree.join(format!("d/f{index}"));
        fs::write(&path, random_bytes(lengths[index % lengths.len()], index as u64)).unwrap();
        let mode = [0o644, 0o600, 0o755, 0o640, 0o604][index % 5];
        let unusual = [0o444, 0o4755, 0o666, 0o200, 0o1644];
        let mode = if index % 5 == 4 { unusual[index / 5 % 5] } else { mode };
        let file = File::open(&path).unwrap();
        let time =
            SystemTime::UNIX_EPOCH + Duration::new(1_600_000_000 + index as u64, 123_456_789);
        file.set_modified(time).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    fs::hard_link(tree.join("d/f1"), tree.join("d/again")).unwrap();
    fs::write(tree.join("d/long"), random_bytes(1 << 20, 1)).unwrap();
    File::create(tree.join("d/sparse")).unwrap().set_len(20_000).unwrap();
    let name = tree.join("d/f6");
    let flags = rustix::fs::XattrFlags::empty();
    let _where_there_are_any = rustix::fs::setxattr(&name, "user.mark", b"value", flags);
}

/// Calls of one kind that a trace has.
fn count(trace: &str, call: &str) -> usize {
    trace.lines().filter(|line| line.contains(&format!("{call}("))).count()
}

#[test]
fn small_files_get_their_mode_at_once_and_have_everything() {
    needs!(under_test());
    needs!(needs_program("strace"));
    for kind in [Kind::Ext4, Kind::Xfs, Kind::Btrfs, Kind::Tmpfs(64 << 20)] {
        let mounted = needs!(Mounted::new(kind));
        let folder = Folder::inside(&mounted.path());
        plant(&folder.join("tree"));
        let before = Portrait::of(&folder.join("tree"));
        let strace =
            ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=fchmod,ioctl,copy_file_range"];
        File::create(folder.join("trace")).unwrap();
        let ran = folder.under(&strace, &COPY).leaves("copy").run();
        assert_eq!(ran.exits(0).stderr, "", "{kind:?} {ran}");
        assert_same(&before, &Portrait::of(&folder.join("copy")), READ, &ran);
        let trace = fs::read_to_string(folder.join("trace")).unwrap();
        let set = count(&trace, "fchmod");
        assert!(set < FILES as usize * 3 / 4, "{kind:?} {set}\n{trace}");
        folder.flatout(["cp", "-aT", "tree", "as-cp"]).leaves("as-cp").run().exits(0);
        assert_same(&before, &Portrait::of(&folder.join("as-cp")), READ, "cp -a");
        let plain = ["copy", "--no-preserve=all", "-T", "tree", "plain"];
        folder.flatout(plain).leaves("plain").run().exits(0);
        let plain = fs::metadata(folder.join("plain/d/f4")).unwrap();
        let made = Command::new("sh").args(["-c", "touch new"]).current_dir(folder.path()).status();
        assert!(made.unwrap().success());
        let new = fs::metadata(folder.join("new")).unwrap();
        assert_eq!(plain.mode(), new.mode(), "{kind:?}");
        assert_eq!(fs::read(folder.join("plain/d/f5")).unwrap(), random_bytes(30_000, 5));
        drop(folder);
        mounted.finish();
    }
}

/// What is made with its mode was not copied by itself: only directories and long files get it afterwards.
#[test]
fn few_small_files_and_those_after_long_ones_are_not_copied_by_themselves() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let mounted = needs!(Mounted::new(Kind::Ext4));
    let folder = Folder::inside(&mounted.path());
    let (alone, long, small) = (40, 8, 200);
    let make = |name: String, bytes: usize| {
        let path = folder.join(&format!("tree/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, random_bytes(bytes, 1)).unwrap();
    };
    (0..alone).for_each(|index| make(format!("d{index}/only"), 1000));
    (0..long).for_each(|index| make(format!("long/f{index}"), 200_000));
    (0..small).for_each(|index| make(format!("small{}/f{index}", index % 4), 1000));
    let strace = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=fchmod"];
    File::create(folder.join("trace")).unwrap();
    let ran = folder.under(&strace, &COPY).leaves("copy").run();
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    let trace = fs::read_to_string(folder.join("trace")).unwrap();
    let directories = 1 + alone + 1 + 4;
    // The first of all shows what its filesystem does; two groups of long ones leave a few to themselves.
    let most = directories + long + 1 + 2 + 8 + 16;
    let set = count(&trace, "fchmod");
    assert!(set <= most, "{set} of {most}\n{trace}");
    drop(folder);
    mounted.finish();
}

/// Fails when a file has length and time of its source and other bytes.
fn assert_not_mistaken(folder: &Folder, context: &str) {
    let Ok(entries) = fs::read_dir(folder.join("copy/d")) else { return };
    for entry in entries.map(Result::unwrap) {
        let source = folder.join("tree/d").join(entry.file_name());
        let state = |facts: fs::Metadata| (facts.len(), facts.mtime(), facts.mtime_nsec());
        let both = [entry.path(), source];
        let [copy, original] = both.each_ref().map(|path| state(fs::metadata(path).unwrap()));
        if copy == original {
            let [copy, original] = both.each_ref().map(|path| fs::read(path).unwrap());
            assert!(copy == original, "{entry:?} looks done\n{context}");
        }
    }
}

/// Lets a copy of the tree come to a call that the seed chooses, and does something there; returns what
/// is to be said where anything is wrong.
fn at_any_call(
    folder: &Folder,
    random: &mut Random,
    act: impl FnOnce(Held<'_>) -> Ran,
) -> Result<String, String> {
    let _none_yet = fs::remove_dir_all(folder.join("copy"));
    let mut held = Held::start(folder.flatout(COPY).leaves("copy"), OF_DESCRIPTORS)?;
    let index = 100 + random.below(500);
    for _ in 0..index {
        let Some(stop) = held.next() else { break };
        held.go_on(stop);
    }
    Ok(format!("before call {index}{}", act(held)))
}

#[test]
fn small_files_that_a_kill_left_are_completed() {
    needs!(under_test());
    let (seed, rounds) = (seed(), if is_full() { 400 } else { 12 });
    let (mut random, folder) = (Random::new(seed), Folder::new());
    plant(&folder.join("tree"));
    let before = Portrait::of(&folder.join("tree"));
    for _ in 0..rounds {
        let context = needs!(at_any_call(&folder, &mut random, |held| held.kill()));
        let context = format!("FLATOUT_TEST_SEED={seed} {context}");
        assert_not_mistaken(&folder, &context);
        let ran = folder.flatout(COPY).leaves("copy").run();
        assert_eq!(ran.exits(0).stderr, "", "{context}{ran}");
        assert_same(&before, &Portrait::of(&folder.join("copy")), READ, &context);
    }
}

#[test]
fn small_files_that_are_written_meanwhile_are_no_mixture() {
    needs!(under_test());
    let (seed, rounds) = (seed(), if is_full() { 400 } else { 12 });
    let (mut random, folder) = (Random::new(seed), Folder::new());
    for _ in 0..rounds {
        plant(&folder.join("tree"));
        let mut states = Vec::new();
        let write = |mut held: Held<'_>| {
            // Stopped before a call, which happens behind this.
            let stop = held.next();
            for index in [10, 12, 13, 25, 37] {
                let path = folder.join(&format!("tree/d/f{index}"));
                let old = fs::read(&path).unwrap();
                let new = vec![index as u8; old.len()];
                fs::write(&path, &new).unwrap();
                states.push((folder.join(&format!("copy/d/f{index}")), [old, new]));
            }
            stop.into_iter().for_each(|stop| held.go_on(stop));
            held.finish()
        };
        let context = needs!(at_any_call(&folder, &mut random, write));
        let context = format!("FLATOUT_TEST_SEED={seed} {context}");
        assert_not_mistaken(&folder, &context);
        for (path, states) in states {
            assert!(states.contains(&fs::read(&path).unwrap()), "{} {context}", path.display());
        }
    }
}

/// What is as it was in a snapshot is looked at, pinned and linked, and neither it nor its source is opened.
#[test]
fn unchanged_files_of_a_snapshot_are_linked_without_being_opened() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    let files = 60;
    for index in 0..files {
        let path = folder.join(&format!("tree/d{}/f{index}", index % 3));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, random_bytes(1000, index)).unwrap();
    }
    folder.flatout(["copy", "-T", "tree", "mon"]).leaves("mon").run().exits(0);
    let strace = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=openat,openat2,linkat"];
    File::create(folder.join("trace")).unwrap();
    let words = ["copy", "--threads=1", "-T", "--link-dest", "mon", "tree", "tue"];
    let ran = folder.under(&strace, &words).leaves("tue").run();
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    let trace = fs::read_to_string(folder.join("trace")).unwrap();
    let of_files = trace.lines().filter(|line| line.contains("\"f") && line.contains("openat("));
    let (pinned, opened): (Vec<&str>, Vec<&str>) =
        of_files.partition(|line| line.contains("O_PATH"));
    assert_eq!((pinned.len(), opened), (files as usize, Vec::new()));
    assert_eq!(count(&trace, "linkat"), files as usize, "{trace}");
    assert!(count(&trace, "openat2") <= 6, "{trace}");
    for index in 0..files {
        let name = format!("d{}/f{index}", index % 3);
        let [old, new] = ["mon", "tue"].map(|root| fs::metadata(folder.join(root).join(&name)));
        assert_eq!(old.unwrap().ino(), new.unwrap().ino(), "{name}");
    }
}
