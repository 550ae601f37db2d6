//! Walks over real trees.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, UNIX_EPOCH};

use flatout_io::digest::Algorithm;
use flatout_sys::cancel::CancelToken;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, mknodat, openat};
use tempfile::TempDir;

use super::*;
use crate::compare::{Asked, Fidelity, compare};
use crate::directory_stack::HELD;

fn walk(path: impl Into<PathBuf>) -> Walk {
    Walk::new(path.into(), Wanted::Digest(Algorithm::Blake3))
}

/// What is yielded, as it is shown, less the path of the top; errors with their text.
fn shown(top: &Path, walk: Walk) -> Vec<String> {
    let cut = |shown: &OsStr| {
        let text = shown.to_string_lossy().into_owned();
        text.strip_prefix(&*top.to_string_lossy()).map(str::to_owned).unwrap_or(text)
    };
    walk.map(|yielded| match yielded {
        Ok(item) => cut(&item.shown),
        Err((name, failure)) => {
            let text = failure.to_string();
            format!("{}: {}", cut(&name), text.split_whitespace().next().unwrap())
        }
    })
    .collect()
}

#[test]
fn files_come_in_the_order_of_their_paths_component_by_component() {
    let folder = TempDir::new().unwrap();
    let top = folder.path();
    for directory in ["a", "a.b", "b/c", "empty"] {
        fs::create_dir_all(top.join(directory)).unwrap();
    }
    for file in ["a/z", "a.b/x", "a!", "b/c/deep", "b/a", "b/d", "Z", "é"] {
        fs::write(top.join(file), file).unwrap();
    }
    let order = ["/Z", "/a/z", "/a!", "/a.b/x", "/b/a", "/b/c/deep", "/b/d", "/é"];
    assert_eq!(shown(top, walk(top)), order);
    let slash = format!("{}/", top.display());
    assert_eq!(shown(top, walk(slash)), order, "no slash is doubled");
}

#[test]
fn links_pipes_and_sockets_are_left_out_and_not_opened() {
    let folder = TempDir::new().unwrap();
    let top = folder.path().join("top");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("file"), "x").unwrap();
    symlink("/etc", top.join("to-directory")).unwrap();
    symlink("file", top.join("to-file")).unwrap();
    symlink("..", top.join("round")).unwrap();
    mknodat(CWD, top.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(top.join("socket")).unwrap();
    assert_eq!(shown(&top, walk(&top)), ["/file"]);
    let link = folder.path().join("link");
    symlink("top", &link).unwrap();
    assert_eq!(shown(&link, walk(&link)), ["/file"], "what is given may be a link");
}

#[test]
fn what_is_no_directory_is_yielded_as_it_is_given() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let items: Vec<_> = walk(&file).collect();
    assert!(matches!(&items[..], [Ok(Item { place: Place::Path(path), .. })] if *path == file));
    let fifo = folder.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_eq!(walk(&fifo).count(), 1, "without waiting for a writer");
    let missing: Vec<_> = walk(folder.path().join("missing")).collect();
    assert!(matches!(&missing[..], [Err((_, failure))] if failure.is_missing()));
}

/// Directories in each other, with a file before and one behind the way down in each; returns
/// how many files there are.
fn deep(top: &Path, depth: usize, name: &str) -> usize {
    let mut directory = openat(CWD, top, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..depth {
        for file in ["a", "z"] {
            openat(&directory, file, OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
        }
        mkdirat(&directory, name, Mode::RWXU).unwrap();
        directory = openat(&directory, name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    2 * depth
}

#[test]
fn a_tree_deeper_than_any_path_is_walked_with_few_descriptors() {
    let folder = TempDir::new().unwrap();
    let name = "m".repeat(100);
    let files = deep(folder.path(), 300, &name);
    let mut walk = walk(folder.path());
    let (mut seen, mut longest, mut most) = (0, 0, 0);
    while let Some(yielded) = walk.next() {
        let item = yielded.unwrap();
        let Place::In { directory, name } = &item.place else { panic!("{item:?}") };
        openat(directory, name, OFlags::NOFOLLOW, Mode::empty()).unwrap();
        seen += 1;
        longest = longest.max(item.shown.len());
        // Not those of the process: other tests open files beside this one.
        most = most.max(walk.stack.as_ref().map_or(0, DirectoryStack::held));
    }
    assert_eq!(seen, files);
    assert!(longest > 2 * PATH_MAX_BYTES, "{longest}");
    assert!(most <= HELD, "{most} directories held open");
}

#[test]
fn the_way_back_is_only_taken_to_the_directory_that_one_came_from() {
    let folder = TempDir::new().unwrap();
    let top = folder.path().join("top");
    fs::create_dir(&top).unwrap();
    deep(&top, HELD + 20, "m");
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("zz"), "not of this tree").unwrap();
    let mut walk = walk(&top);
    let mut yielded = Vec::new();
    // The files before the way down: the walk is at the bottom then.
    yielded.extend(walk.by_ref().take(HELD + 20));
    fs::rename(top.join("m/m/m/m"), elsewhere.join("m")).unwrap();
    yielded.extend(walk);
    let (files, errors): (Vec<_>, Vec<_>) = yielded.into_iter().partition(Result::is_ok);
    assert!(!files.iter().flatten().any(|item| item.shown.as_bytes().ends_with(b"zz")));
    let top_file = top.join("z");
    assert!(files.iter().flatten().any(|item| item.shown == top_file.as_os_str()));
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn the_file_of_the_results_is_left_out() {
    let folder = TempDir::new().unwrap();
    for name in ["a", "results", "z"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    let facts = fstat(fs::File::open(folder.path().join("results")).unwrap()).unwrap();
    let walk = walk(folder.path()).without(facts.st_dev, facts.st_ino);
    assert_eq!(shown(folder.path(), walk), ["/a", "/z"]);
}

#[test]
fn a_path_longer_than_the_kernel_takes_is_reached_by_steps() {
    let folder = TempDir::new().unwrap();
    let name = "n".repeat(200);
    deep(folder.path(), 50, &name);
    let last = walk(folder.path()).flatten().max_by_key(|item| item.shown.len()).unwrap();
    assert!(last.shown.len() > 2 * PATH_MAX_BYTES);
    let Place::In { directory, name } = place_of(Path::new(&last.shown)) else {
        panic!("{last:?}")
    };
    openat(&directory, &name, OFlags::NOFOLLOW, Mode::empty()).unwrap();
    assert!(matches!(place_of(Path::new("/etc/passwd")), Place::Path(_)));
    let missing = format!("/no{last:?}/x");
    assert!(matches!(place_of(Path::new(&missing)), Place::Path(_)));
}

#[test]
fn a_walk_and_a_comparison_change_no_access_time_of_a_directory() {
    let folder = TempDir::new().unwrap();
    // Deep enough for directories that are let go and opened again.
    let mut paths = vec![folder.path().to_owned()];
    for depth in 0..2 * HELD {
        let below = paths[depth].join("a");
        fs::create_dir_all(&below).unwrap();
        fs::create_dir(paths[depth].join("b")).unwrap();
        paths.push(below);
    }
    let old = UNIX_EPOCH + Duration::from_secs(1);
    for path in &paths {
        let times = fs::FileTimes::new().set_accessed(old);
        fs::File::open(path).unwrap().set_times(times).unwrap();
    }
    assert_eq!(walk(folder.path()).count(), 0);
    let asked = Asked { fidelity: Fidelity::ALL, most_named: 1, cancel: CancelToken::manual() };
    compare(folder.path(), folder.path(), asked).unwrap();
    for path in &paths {
        assert_eq!(path.metadata().unwrap().accessed().unwrap(), old, "{path:?}");
    }
}

#[test]
fn names_come_by_their_bytes() {
    let sorted = ["12345678", "12345678a", "12345678b", "B", "a", "a.b", "a/", "b", "\u{e9}"];
    let mut entries: Vec<Entry> = Vec::new();
    for name in [7, 5, 4, 7, 6, 3, 8, 2, 0, 1].map(|place| sorted[place]) {
        entries.push((name.into(), FileType::RegularFile, 1));
    }
    sort(&mut entries);
    let names: Vec<_> = entries.into_iter().rev().map(|(name, ..)| name).collect();
    assert_eq!(names, sorted);
}
