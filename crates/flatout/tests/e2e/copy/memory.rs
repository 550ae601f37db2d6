//! Peak resident memory of a copy, as the kernel accounts for it, whatever the tree.
//!
//! A million files take minutes and a filesystem of their own: that is for `--full`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use flatout_sys::cancel::CancelToken;
use flatout_sys::process::{Account, End, Limits, MemoryOf, Program, run};
use flatout_tree::remove::remove_tree;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::bin::{Folder, executable};
use crate::filesystem::{Backing, Kind, Mounted, needs_uring};
use crate::fixture::{is_full, random_bytes};
use crate::skip::needs;

/// What a copy may take.
const MOST_BYTES: u64 = 32 << 20;
/// Directories among which one half of the files is spread; the other half lies in one.
const DIRECTORIES: usize = 10;
/// ext4 has an inode for each 16 KiB: enough of them for the source, its links and the copy.
const IMAGE_BYTES: u64 = 48 << 30;
/// Beyond this a run hangs. A million files take half a minute here, ten times that elsewhere.
const PATIENCE_NS: u64 = 600_000_000_000;

/// Copies, and prints what it took: `VmHWM` of the process as it ends.
#[track_caller]
fn assert_small(what: &str, options: &[&str], source: &Path, target: &Path) {
    // Each thread has buffers of its own, and there are as many as CPUs where nobody asks.
    let words = ["copy", "--threads=4"].iter().chain(options).map(OsString::from);
    assert_run_small(what, words.chain([source.into(), target.into()]).collect(), None);
}

/// The same of any command line, in that directory.
#[track_caller]
fn assert_run_small(what: &str, mut argv: Vec<OsString>, directory: Option<&Path>) {
    let directory = directory.unwrap_or(Path::new("."));
    // What somebody measured on this machine decides nothing here.
    let env = vec!["env".into(), "-C".into(), directory.into(), "FLATOUT_PROFILE=".into()];
    argv.splice(0..0, env.into_iter().chain([executable().into()]));
    let program = Program { argv: &argv, stdout_bytes: 64 << 10 };
    let limits = Limits { time_ns: Some(PATIENCE_NS), cancel: CancelToken::manual() };
    let account = run(&program, &limits).unwrap();
    let Account { exit_code, end, peak_memory_bytes, peak_memory_of, elapsed_ns, .. } = account;
    let said = String::from_utf8_lossy(&account.stderr);
    assert_eq!((exit_code, end, &*said), (0, End::Itself, ""), "{what}");
    let kib = peak_memory_bytes >> 10;
    println!("{what}: peak resident memory {kib} KiB, {} ms", elapsed_ns / 1_000_000);
    // Without ptrace(2) it may be the memory of whoever started it.
    if peak_memory_of == MemoryOf::Itself {
        assert!(peak_memory_bytes <= MOST_BYTES, "{what}: {kib} KiB");
    }
}

/// Plants empty files, and links to files that lie outside of the tree.
fn plant(place: &Path, files: usize, links: usize) {
    let (tree, outside) = (place.join("tree"), place.join("outside"));
    for directory in 0..=DIRECTORIES {
        fs::create_dir_all(tree.join(directory.to_string())).unwrap();
        fs::create_dir_all(outside.join(directory.to_string())).unwrap();
    }
    for index in 0..files {
        // The directory 0 has half of them.
        let directory = if index % 2 == 0 { 0 } else { index % DIRECTORIES + 1 };
        File::create(tree.join(format!("{directory}/file-{index:07}"))).unwrap();
    }
    for index in 0..links {
        let name = format!("{}/link-{index:07}", index % (DIRECTORIES + 1));
        File::create(outside.join(&name)).unwrap();
        fs::hard_link(outside.join(&name), tree.join(&name)).unwrap();
    }
}

/// How many files are in a copy. Their other names are not, so each has one name.
fn count(tree: &Path) -> usize {
    let directories = fs::read_dir(tree).unwrap().map(|entry| entry.unwrap().path());
    let files = directories.flat_map(|directory| fs::read_dir(directory).unwrap());
    files.filter(|entry| entry.as_ref().unwrap().metadata().unwrap().nlink() == 1).count()
}

fn copy_many(place: &Path, files: usize, links: usize) {
    plant(place, files, links);
    let what = format!("{files} empty files and {links} links");
    assert_small(&what, &[], &place.join("tree"), &place.join("copy"));
    assert_eq!(count(&place.join("copy")), files + links);
    assert_small(&format!("{what}, again"), &["-T"], &place.join("tree"), &place.join("copy"));
}

/// In full a million files and a hundred thousand links, which want a filesystem of their own.
#[test]
fn many_files_and_links_take_little_memory() {
    if !is_full() {
        return copy_many(Folder::new().path(), 20_000, 5_000);
    }
    let mounted = needs!(Mounted::on_image(Kind::Ext4, IMAGE_BYTES, Backing::Cached));
    copy_many(&mounted.path(), 1_000_000, 100_000);
    mounted.finish();
}

/// Makes directories, one in the other, with a file at the bottom. No path is as long.
fn dig(root: &Path, depth: usize) {
    fs::create_dir(root).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = rustix::fs::openat(&here, "d", flags, Mode::empty()).unwrap();
    }
    rustix::fs::openat(&here, "bottom", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
}

/// How many directories lie in each other, down to the file.
fn depth(root: &Path) -> usize {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for depth in 0.. {
        match rustix::fs::openat(&here, "d", flags, Mode::empty()) {
            Ok(below) => here = below,
            Err(Errno::NOENT) => {
                rustix::fs::statat(&here, "bottom", AtFlags::SYMLINK_NOFOLLOW).unwrap();
                return depth;
            }
            Err(errno) => panic!("{depth} deep: {errno}"),
        }
    }
    unreachable!("no chain is endless")
}

#[test]
fn a_deep_chain_of_directories_takes_little_memory() {
    let levels = if is_full() { 150_000 } else { 20_000 };
    // In memory, where there is some: a disk's journal takes a minute for as many directories.
    let folder = Folder::in_memory().unwrap_or_else(|_| Folder::new());
    let (source, target) = (folder.join("source"), folder.join("copy"));
    dig(&source, levels);
    assert_small(&format!("{levels} directories in each other"), &[], &source, &target);
    assert_eq!(depth(&target), levels);
    // The folder cannot remove what is so deep.
    remove_tree(&source).unwrap();
    remove_tree(&target).unwrap();
}

#[test]
fn a_large_file_takes_little_memory_by_each_method() {
    let folder = Folder::new();
    let source = folder.join("source");
    let piece = random_bytes(20 << 20, 1);
    let file = File::create(&source).unwrap();
    for _ in 0..10 {
        std::io::Write::write_all(&mut &file, &piece).unwrap();
    }
    for engine in ["auto", "copy-file-range", "splice", "sync", "mmap", "uring"] {
        if engine == "uring" && needs_uring().is_err() {
            continue;
        }
        let target = folder.join("copy");
        let options = ["--reflink=never", "--engine", engine];
        assert_small(&format!("200 MiB by {engine}"), &options, &source, &target);
        assert_eq!(target.metadata().unwrap().len(), 200 << 20);
        fs::remove_file(target).unwrap();
    }
    file.set_len(20 << 20).unwrap();
    assert_small("20 MiB verified", &["--verify"], &source, &folder.join("copy"));
}

/// As many words as a shell makes of the names of a directory.
#[test]
fn many_operands_take_little_memory() {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { Folder::inside(memory) } else { Folder::new() };
    for directory in ["s", "t", "u"] {
        fs::create_dir(folder.join(directory)).unwrap();
    }
    let names: Vec<String> = (0..40_000).map(|index| format!("s/{index}")).collect();
    names.iter().for_each(|name| drop(File::create(folder.join(name)).unwrap()));
    for (first, target) in [("copy", "t"), ("cp", "u")] {
        let words = [first].into_iter().chain(names.iter().map(String::as_str)).chain([target]);
        let argv = words.map(OsString::from).collect();
        assert_run_small(&format!("40,000 operands of {first}"), argv, Some(folder.path()));
        assert_eq!(fs::read_dir(folder.join(target)).unwrap().count(), names.len());
    }
}
