//! 64 descriptors, whatever the shape of the tree.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use flatout_sys::launcher::{Resource, limit};

use crate::bin::{Folder, Ran, executable};
use crate::copy::likeness::{assert_alike, likeness};
use crate::filesystem::{needs_program, needs_root};
use crate::skip::needs;

const FEW: u64 = 64;

fn copy_with(most: u64, folder: &Folder, options: &str) -> Ran {
    let words = format!("copy -T{options} tree copy");
    let run = folder.flatout(words.split_ascii_whitespace()).leaves("copy").with(|command| {
        limit(command, Resource::Descriptors, most);
    });
    let ran = run.run();
    assert!(ran.exits(0).complaints().is_empty(), "{ran}");
    let source = likeness(&folder.join("tree"));
    assert_alike(&source, &likeness(&folder.join("copy")), &ran);
    fs::remove_dir_all(folder.join("copy")).unwrap();
    ran
}

fn file_in(directory: &Path, name: &str) {
    fs::write(directory.join(name), name).unwrap();
}

/// Each of `width` directories holds as many, down to `depth`.
fn bushy(directory: &Path, width: usize, depth: usize) {
    fs::create_dir(directory).unwrap();
    file_in(directory, "file");
    for index in 0..if depth == 0 { 0 } else { width } {
        bushy(&directory.join(index.to_string()), width, depth - 1);
    }
}

#[test]
fn a_wide_and_a_bushy_tree_need_no_more_than_64_descriptors() {
    let folder = Folder::new();
    let tree = folder.join("tree");
    bushy(&tree, 5, 4);
    for index in 0..400 {
        fs::create_dir(tree.join(format!("wide-{index}"))).unwrap();
        file_in(&tree.join(format!("wide-{index}")), "inside");
    }
    for options in ["", " --threads 1", " --threads 32", " --threads 3 --max-fds 32"] {
        copy_with(FEW, &folder, options);
    }
}

#[test]
fn directories_above_operands_need_no_descriptors() {
    let folder = Folder::new();
    let mut words = vec!["cp".to_owned(), "-p".to_owned(), "--parents".to_owned()];
    for index in 0..100 {
        let directory = format!("tree/{index}");
        fs::create_dir_all(folder.join(&directory)).unwrap();
        file_in(&folder.join(&directory), "file");
        words.push(format!("{directory}/file"));
    }
    fs::create_dir(folder.join("there")).unwrap();
    let run = folder.flatout(words.iter().chain([&"there".to_owned()])).leaves("there");
    let run = run.with(|command| {
        limit(command, Resource::Descriptors, FEW);
    });
    let ran = run.run();
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    let source = likeness(&folder.join("tree"));
    assert_alike(&source, &likeness(&folder.join("there/tree")), &ran);
}

#[test]
fn several_deep_branches_need_no_more_than_64_descriptors() {
    const BRANCHES: usize = 12;
    const DEPTH: usize = 100;
    let folder = Folder::new();
    for branch in 0..BRANCHES {
        let mut path: PathBuf = folder.join("tree").join(branch.to_string());
        for level in 0..DEPTH {
            path.push("d");
            fs::create_dir_all(&path).unwrap();
            if level % 10 == 0 {
                file_in(&path, "file");
                fs::hard_link(path.join("file"), path.join("other-name")).unwrap();
            }
        }
    }
    for options in ["", " --threads 1", " --threads 32", " --engine uring", " --atomic --sync"] {
        copy_with(FEW, &folder, options);
    }
}

/// Methods that open more than two files have to do with what there is.
#[test]
fn files_of_each_method_need_no_more_than_64_descriptors() {
    let folder = Folder::new();
    fs::create_dir(folder.join("tree")).unwrap();
    for index in 0..60 {
        let bytes = crate::fixture::random_bytes(1 << (index % 22), index);
        fs::write(folder.join("tree").join(index.to_string()), bytes).unwrap();
    }
    for engine in ["auto", "copy-file-range", "splice", "sync", "mmap", "uring"] {
        copy_with(FEW, &folder, &format!(" --threads 32 --engine {engine}"));
    }
    copy_with(FEW, &folder, " --verify --threads 32");
}

/// Nobody can copy with so few, but that is said.
#[test]
fn too_few_descriptors_are_an_error_and_no_panic() {
    let folder = Folder::new();
    bushy(&folder.join("tree"), 2, 5);
    // Each number is too few for another call.
    for (most, command) in (4..=20).flat_map(|most| ["copy -T", "cp -aT"].map(|it| (most, it))) {
        let ran = folder
            .flatout(command.split(' ').chain(["tree", "copy"]))
            .leaves("copy")
            .with(|command| {
                limit(command, Resource::Descriptors, most);
            })
            .run();
        // With so few that its libraries cannot be opened, it has not begun.
        if ran.code == Some(127) && ran.stderr.contains("error while loading shared libraries") {
            continue;
        }
        assert!(matches!(ran.code, Some(0 | 1)) && !ran.stderr.contains("panicked"), "{ran}");
        if ran.code == Some(0) {
            assert_alike(&likeness(&folder.join("tree")), &likeness(&folder.join("copy")), &ran);
        } else {
            assert!(ran.stderr.contains("Too many open files"), "{ran}");
            let names_nothing = ["\"\"", "''"].iter().any(|name| ran.stderr.contains(name));
            assert!(!names_nothing, "{ran}");
        }
        let _ = fs::remove_dir_all(folder.join("copy"));
    }
}

#[test]
fn that_too_few_files_may_be_open_is_said_once_with_what_is_enough() {
    let folder = Folder::new();
    bushy(&folder.join("tree"), 2, 5);
    let said = (9..=16).map(|most| {
        let run = folder.flatout(["copy", "-T", "tree", "copy"]).leaves("copy");
        let ran = run.with(|command| _ = limit(command, Resource::Descriptors, most)).run();
        let _ = fs::remove_dir_all(folder.join("copy"));
        let said = ran.stderr.matches("64 open files are enough for any tree").count();
        assert!(said <= 1 && (said == 1 || !ran.stderr.contains("\"copy/")), "{ran}");
        said
    });
    assert!(said.sum::<usize>() > 0, "none of these limits is met within the tree");
}

/// Each filesystem of the target would be held open until it is synced, were there no bound: others are
/// opened again. sync(2) would tell no errors.
#[test]
fn many_filesystems_of_the_target_are_synced_with_few_descriptors() {
    const FILESYSTEMS: usize = 70;
    needs!(needs_root("mounts filesystems"));
    needs!(needs_program("unshare"));
    needs!(needs_program("strace"));
    let folder = Folder::new();
    for index in 0..FILESYSTEMS {
        fs::create_dir_all(folder.join(&format!("copy/{index}"))).unwrap();
        fs::create_dir_all(folder.join(&format!("tree/{index}"))).unwrap();
        file_in(&folder.join(&format!("tree/{index}")), "file");
    }
    let program = executable().display();
    let script = format!(
        "for mount in copy/*; do mount -t tmpfs none $mount || exit 9; done\n\
         ulimit -n {FEW}\n\
         strace -f -qq -o trace -e trace=sync,syncfs {program} copy --sync -T tree copy || exit\n\
         diff -r tree copy || exit\n\
         ! strace -f -qq -o failed -e inject=syncfs:error=EIO:when=60 {program} copy --sync -T tree copy"
    );
    // The mounts go with the namespace.
    let words = ["--mount", "sh", "-c", &script].map(OsString::from).to_vec();
    let ran = folder.program("unshare".as_ref(), words).leaves("trace").leaves("failed").run();
    assert!(ran.exits(0).stderr.contains("Input/output error"), "{ran}");
    let trace = fs::read_to_string(folder.join("trace")).unwrap();
    let calls = ["syncfs(", "sync()"].map(|call| trace.matches(call).count());
    assert_eq!(calls, [FILESYSTEMS + 1, 0], "{trace}");
}
