//! Sources that change while they are copied, and the edge of a filesystem.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::super::copier::{copier, copy};
use super::super::oracle::{Aspect, Kind as EntryKind, Leeway, Portrait, assert_same};
use super::super::race::held::Held;
use super::{ENGINES, under_test};
use crate::bin::{Folder, Ran, Running};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, Mounted, needs_program};
use crate::fixture::random_bytes;
use crate::skip::needs;
use flatout_sys::launcher::calls::OF_DESCRIPTORS;

const LENGTH_BYTES: usize = 12 << 20;

/// Slow enough to be changed in the middle.
fn slow() -> Faults {
    Faults { delay: Duration::from_millis(40), is_uncached: true, ..Faults::default() }
}

/// Copies two files, of which `victim` is changed when some of it has been read.
fn copy_while(faulty: &Faulty, engine: &str, change: impl FnOnce(&Path)) -> (Folder, Ran) {
    faulty.put("tree-victim", &random_bytes(LENGTH_BYTES, 1));
    let folder = Folder::new();
    fs::create_dir(folder.join("into")).unwrap();
    let source = faulty.path().join("tree-victim");
    let run = Folder::new();
    let target = folder.join("into");
    faulty.restart(|faults| faults.delay = slow().delay);
    let mut running = copier(&run, &["--engine", engine], (&source, &target)).start();
    // Whatever the method, it reads through the filesystem.
    running.wait_until("status", |_| faulty.read_bytes() >= LENGTH_BYTES as u64 / 12);
    change(&source);
    faulty.change(|faults| faults.delay = Duration::ZERO);
    let ran = running.wait();
    (folder, ran)
}

/// What changed in the middle is copied once more, as it is now, or it is named; unless all of it had
/// been read before.
#[track_caller]
fn assert_whole_or_named(faulty: &Faulty, folder: &Folder, ran: &Ran) {
    if ran.code == Some(0) {
        let copied = fs::read(folder.join("into/tree-victim")).unwrap();
        let both = [random_bytes(LENGTH_BYTES, 1), faulty.bytes("tree-victim").unwrap()];
        assert!(both.contains(&copied), "neither old nor new{ran}");
    } else {
        ran.complains(1, &["tree-victim"]);
    }
}

#[test]
fn a_source_that_shrinks_is_copied_as_it_is_now_or_named() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(slow()));
    for engine in ENGINES {
        let (folder, ran) = copy_while(&faulty, engine, |source| {
            OpenOptions::new().write(true).open(source).unwrap().set_len(1 << 20).unwrap();
        });
        assert_whole_or_named(&faulty, &folder, &ran);
    }
    faulty.finish();
}

/// A file that is only added to is copied up to a length that it had.
#[test]
fn a_source_that_grows_is_copied_up_to_a_length_that_it_had() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(slow()));
    for engine in ENGINES {
        let (folder, ran) = copy_while(&faulty, engine, |source| {
            let file = OpenOptions::new().write(true).open(source).unwrap();
            file.write_all_at(b"more", LENGTH_BYTES as u64 + 100).unwrap();
        });
        assert!(ran.exits(0).complaints().is_empty(), "{ran}");
        let copied = fs::read(folder.join("into/tree-victim")).unwrap();
        let now = faulty.bytes("tree-victim").unwrap();
        let lengths = [LENGTH_BYTES, now.len()];
        assert!(lengths.contains(&copied.len()) && now.starts_with(&copied), "{engine}{ran}");
    }
    faulty.finish();
}

/// What is written all the time is copied once more, and then taken as it is.
#[test]
fn a_source_that_is_written_all_the_time_is_copied_as_it_is_and_said() {
    needs!(under_test());
    let folder = Folder::new();
    let (source, target) = (folder.join("busy"), folder.join("copy"));
    fs::write(&source, vec![0; 2 << 20]).unwrap();
    let mut copies = Vec::new();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = OpenOptions::new().write(true).open(&source).unwrap();
            let mut turn = 0_u8;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                turn = turn.wrapping_add(1);
                file.write_all_at(&[turn; 512], u64::from(turn) * 8192).unwrap();
            }
        });
        for engine in ENGINES {
            let ran = copy(&["--engine", engine, "--threads", "1"], &source, &target);
            let length = fs::read(&target).map(|bytes| bytes.len());
            copies.push((engine, ran, length.unwrap_or(0)));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    for (engine, ran, length) in copies {
        assert_eq!(length, 2 << 20, "{engine}{ran}");
        // It may have been left alone for once.
        match ran.stderr.contains("changed again while it was copied") {
            true => ran.exits(1),
            false => ran.exits(0),
        };
    }
}

/// A write(2) sets the time of a file before its bytes, so that what is read while it goes on has the same times before
/// and after. Here its bytes come from a file that is slow to read, until the source is open.
#[test]
fn a_write_that_is_under_way_is_no_mixture() {
    needs!(under_test());
    needs!(needs_program("python3"));
    const WRITE: &str = "import mmap, os, sys\n\
        new = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)\n\
        assert os.pwrite(os.open(sys.argv[2], os.O_WRONLY), new, 0) == len(new)";
    let faulty = needs!(Faulty::new(Faults::default()));
    let folder = Folder::new();
    let source = folder.path().canonicalize().unwrap().join("source");
    let all = [&["copy"][..], &["copy", "--in-place"], &["cp"], &["sum"]];
    for (number, words) in all.iter().enumerate() {
        fs::write(&source, vec![b'o'; LENGTH_BYTES]).unwrap();
        let name = format!("new{number}");
        faulty.put(&name, &[b'n'; LENGTH_BYTES]);
        faulty.restart(|faults| faults.delay = Duration::from_millis(30));
        let mut writer = Command::new("python3");
        let mut writer =
            writer.args(["-c", WRITE]).arg(faulty.path().join(name)).arg(&source).spawn().unwrap();
        let reader = fs::File::open(&source).unwrap();
        let mut first = [0];
        while first != *b"n" {
            reader.read_exact_at(&mut first, 0).unwrap();
            assert!(writer.try_wait().unwrap().is_none_or(|status| status.success()));
        }
        let run = folder.flatout(words.iter().chain(&["source", "target"])).leaves("target");
        let mut running = run.start();
        wait_until_open(&mut running, &source);
        faulty.restart(|faults| faults.delay = Duration::ZERO);
        let ran = running.wait();
        assert!(writer.wait().unwrap().success());
        let copied = fs::read(folder.join("target")).unwrap();
        assert!(copied == [b'n'; LENGTH_BYTES], "{words:?}: a part is old{}", ran.exits(0));
        // Of both files.
        let mut digests = ran.stdout.lines().filter_map(|line| line.split(' ').next());
        assert_eq!(digests.next(), digests.next(), "{words:?}: a part is old{ran}");
    }
    faulty.finish();
}

/// Waits until the process has this file open, or has ended.
fn wait_until_open(running: &mut Running<'_>, file: &Path) {
    let folder = format!("/proc/{}/fd", running.child.id());
    let is_it = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|it| it == file);
    while !fs::read_dir(&folder).into_iter().flatten().flatten().any(is_it) {
        if running.step().is_some() {
            return;
        }
    }
}

/// Whole it arrives, the old one or the new one, or the failure is named.
#[test]
fn a_source_that_is_replaced_is_never_a_mixture() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(slow()));
    let old = random_bytes(LENGTH_BYTES, 1);
    for engine in ENGINES {
        let (folder, ran) = copy_while(&faulty, engine, |_| {
            faulty.put("tree-victim", &vec![b'n'; LENGTH_BYTES]);
        });
        assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
        match fs::read(folder.join("into/tree-victim")) {
            Ok(copied) => {
                let is_new = copied == faulty.bytes("tree-victim").unwrap();
                assert!(copied == old || is_new, "{engine}: old bytes or new ones{ran}");
            }
            Err(_) => assert_eq!(ran.code, Some(1), "{ran}"),
        }
    }
    faulty.finish();
}

/// A file that is written to all the time would never end for one who reads to its end.
#[test]
fn a_source_that_grows_all_the_time_comes_to_an_end() {
    needs!(under_test());
    let folder = Folder::new();
    let source = folder.join("log");
    fs::write(&source, random_bytes(1 << 20, 2)).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(&source).unwrap();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                std::io::Write::write_all(&mut file, &[7; 4096]).unwrap();
                if file.metadata().unwrap().len() > 1 << 28 {
                    file.set_len(1 << 20).unwrap();
                }
            }
        });
        for engine in ENGINES {
            let ran = copy(&["--engine", engine, "--always"], &source, &folder.join("copy"));
            assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// The directory in which a filesystem is mounted is the tree here.
#[test]
fn one_filesystem_ends_where_another_is_mounted() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    let tree = mounted.path().parent().unwrap().to_owned();
    fs::write(tree.join("here"), "x").unwrap();
    fs::write(mounted.path().join("there"), "x").unwrap();
    let folder = Folder::new();
    let before = Portrait::of(&tree);
    let ran = copy::<&str>(&[], &tree, &folder.join("all"));
    let read = Leeway::but(&[Aspect::Accessed]);
    assert_same(&before, &Portrait::of(&folder.join("all")), read, ran.exits(0));
    for option in ["--one-file-system", "-x"] {
        let target = folder.join(option);
        copy(&[option], &tree, &target).exits(0);
        let after = Portrait::of(&target);
        assert!(!after.entries.contains_key(&b"mounted/there"[..]), "{option}");
        assert_eq!(after.entry("mounted").kind, EntryKind::Directory, "{option}");
        assert_eq!(after.entry("here").length_bytes, 1);
    }
    mounted.finish();
}

/// No file ends before the length that this kernel itself tells of it.
#[test]
fn an_end_before_the_length_is_a_failure() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::write(folder.join("src"), [b'x'; 300_000]).unwrap();
    for options in ["--engine=sync", "--verify"] {
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", "src"];
        let wrapper = [&wrapper[..], &["-e", "inject=pread64:retval=0"]].concat();
        let ran = folder.under(&wrapper, &["copy", options, "src", "new"]).run();
        let why = "it ended before the end that its length tells";
        assert!(ran.exits(1).stderr.contains(why), "{ran}");
        assert!(!folder.join("new").exists());
    }
}

/// Two parts of a file that are compared one after the other are like those of an older file, each at another time:
/// the file never was, nor is it now.
#[test]
fn a_source_that_changes_while_it_is_compared_is_copied() {
    const PART_BYTES: usize = 256 << 10;
    needs!(under_test());
    let whole = |parts: [u8; 2]| parts.map(|byte| vec![byte; PART_BYTES]).concat();
    for more in [&["old"][..], &["--link-dest=snapshot", "new"]] {
        let folder = Folder::new();
        for directory in ["source", "old", "snapshot"] {
            fs::create_dir(folder.join(directory)).unwrap();
            fs::write(folder.join(directory).join("f"), whole(*b"ab")).unwrap();
        }
        let source = folder.path().canonicalize().unwrap().join("source/f");
        let write = |parts| {
            let modified = folder.join("snapshot/f").metadata().unwrap().modified().unwrap();
            let file = OpenOptions::new().write(true).open(&source).unwrap();
            file.write_all_at(&whole(parts), 0).unwrap();
            file.set_modified(modified).unwrap();
        };
        write(*b"ax");
        let words = [&["copy", "--checksum", "--threads=1", "-T", "source"], more].concat();
        let flatout = folder.flatout(words).leaves("new");
        let mut held = needs!(Held::start(flatout, OF_DESCRIPTORS));
        let mut changes = 0;
        while let Some(stop) = held.next() {
            let [file, _, _, place] = [0, 1, 2, 3].map(|index| stop.arguments[index]);
            let file = fs::read_link(format!("/proc/{}/fd/{file}", stop.thread));
            if changes == 0 && place == PART_BYTES as u64 && file.is_ok_and(|file| file == source) {
                changes += 1;
                write(*b"yb");
            }
            held.go_on(stop);
        }
        let ran = held.finish();
        let copied = fs::read(folder.join(more.last().unwrap()).join("f")).unwrap();
        assert!(changes == 1 && copied == whole(*b"yb"), "{changes} {more:?}{}", ran.exits(0));
    }
}
