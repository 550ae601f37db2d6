//! Limits of the process, and calls that the kernel does not have or a container denies.

use std::fs;

use flatout_sys::launcher::{Denied, ENOSYS, EPERM, IO_URING_SETUP, Resource, STATX, deny, limit};

use super::super::copier::copier;
use super::super::forest::{Plan, plant};
use super::super::oracle::{Aspect, Leeway, Portrait, assert_same};
use super::{ENGINES, assert_no_litter, pair, under_test};
use crate::bin::Folder;
use crate::fixture::{random_bytes, seed};
use crate::skip::needs;

const READ: Leeway = Leeway::but(&[Aspect::Accessed]);

/// Numbers of calls as x86-64 and aarch64 share them; the second is another one on each.
const OPENAT2: i64 = 437;
const FCHMODAT2: i64 = 452;
#[cfg(target_arch = "x86_64")]
const COPY_FILE_RANGE: i64 = 326;
#[cfg(not(target_arch = "x86_64"))]
const COPY_FILE_RANGE: i64 = 285;
#[cfg(target_arch = "x86_64")]
const FALLOCATE: i64 = 285;
#[cfg(not(target_arch = "x86_64"))]
const FALLOCATE: i64 = 47;

#[test]
fn a_tree_is_copied_without_calls_that_the_kernel_lacks() {
    needs!(under_test());
    let seed = seed();
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    plant(&tree, Plan::new(seed));
    let lists: [&[Denied]; 8] = [
        &[(IO_URING_SETUP, EPERM)],
        &[(IO_URING_SETUP, ENOSYS)],
        &[(OPENAT2, ENOSYS)],
        &[(OPENAT2, EPERM)],
        &[(COPY_FILE_RANGE, ENOSYS), (FCHMODAT2, ENOSYS)],
        &[(STATX, ENOSYS)],
        &[(STATX, EPERM), (FALLOCATE, ENOSYS)],
        &[
            (OPENAT2, ENOSYS),
            (STATX, ENOSYS),
            (COPY_FILE_RANGE, EPERM),
            (IO_URING_SETUP, EPERM),
            (FCHMODAT2, EPERM),
        ],
    ];
    for denied in lists {
        let before = Portrait::of(&tree);
        let run = Folder::new();
        let ran = copier::<&str>(&run, &[], (&tree, &target))
            .with(|command| {
                deny(command, denied);
            })
            .run();
        ran.exits(0);
        let context = format!("FLATOUT_TEST_SEED={seed} without {denied:?}{ran}");
        assert_same(&before, &Portrait::of(&target), READ, context);
        fs::remove_dir_all(&target).unwrap();
    }
}

/// The kernel sends a signal with it that ends who does not expect it.
#[test]
fn a_limit_to_the_length_of_files_is_an_error_of_the_files_that_exceed_it() {
    needs!(under_test());
    for engine in ENGINES {
        let folder = Folder::new();
        let (tree, target) = pair(&folder);
        fs::create_dir(&tree).unwrap();
        for (name, length) in [("a-small", 10_000), ("b-long", 3 << 20), ("c-small", 1)] {
            fs::write(tree.join(name), random_bytes(length, 7)).unwrap();
        }
        let run = Folder::new();
        let ran = copier(&run, &["--engine", engine], (&tree, &target))
            .with(|command| {
                limit(command, Resource::FileSize, 1 << 20);
            })
            .run();
        let complaints = ran.exits(1).complaints();
        let is_named = |line: &str| line.contains("b-long") && line.contains("File too large");
        assert!(matches!(complaints[..], [line] if is_named(line)), "{ran}");
        for name in ["a-small", "c-small"] {
            assert!(fs::read(tree.join(name)).unwrap() == fs::read(target.join(name)).unwrap());
        }
        assert_no_litter(&tree, &target);
        assert!(!target.join("b-long").exists() || is_unfinished(&target.join("b-long")));
    }
}

/// What is not whole is private and cannot be taken for its source.
fn is_unfinished(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o7777 == 0o600
}
