//! What kernels, limits and full filesystems answer.

use std::process::Command;

use flatout_sys::launcher::{
    COPY_FILE_RANGE, ENOSYS, EPERM, FALLOCATE, IO_URING_SETUP, Resource, SPLICE, deny, limit,
};

use super::mounted::Mounted;
use super::*;
use crate::copy::limits::Limits;

const METHODS: [Option<Method>; 6] = [
    None,
    Some(Method::CopyFileRange),
    Some(Method::Splice),
    Some(Method::Sync),
    Some(Method::Mmap),
    Some(Method::Uring),
];

/// This very test again, in a process of its own.
fn again(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("copy::content::tests::faults::{name}");
    command.args(["--exact", &name, "--nocapture"]).env("FLATOUT_TEST_CHILD", "1");
    command
}

fn is_child() -> bool {
    std::env::var_os("FLATOUT_TEST_CHILD").is_some()
}

fn assert_passes(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn calls_that_are_not_there_are_done_without() {
    if !is_child() {
        for errno in [ENOSYS, EPERM] {
            let calls =
                [COPY_FILE_RANGE, SPLICE, IO_URING_SETUP, FALLOCATE].map(|call| (call, errno));
            assert_passes(deny(&mut again("calls_that_are_not_there_are_done_without"), &calls));
        }
        return;
    }
    let methods = Methods::default();
    for method in METHODS {
        for length in [5, 100_000, 10 << 20] {
            let options = CopyOptions { method, reflink: When::Never, ..options() };
            let (source, target) = (random(length), tempfile::tempfile().unwrap());
            let copied = copy(&source, &target, &options, &methods).unwrap();
            assert_same(&source, &target);
            let expected = if method == Some(Method::Mmap) { Method::Mmap } else { Method::Sync };
            assert_eq!(copied.method, Some(expected), "{method:?}");
        }
    }
    assert!(methods.refused().iter().any(|refused| refused.1 == Method::Uring));
}

#[test]
fn the_limit_of_a_files_size_is_an_error_of_the_target() {
    const LIMIT: u64 = (1 << 20) + 100;
    const NAME: &str = "the_limit_of_a_files_size_is_an_error_of_the_target";
    if !is_child() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("3"), vec![7; 3 << 20]).unwrap();
        std::fs::write(folder.path().join("9"), vec![7; 9 << 20]).unwrap();
        let mut command = again(NAME);
        command.env("FLATOUT_TEST_FOLDER", folder.path());
        return assert_passes(limit(&mut command, Resource::FileSize, LIMIT));
    }
    flatout_sys::cancel::outlive_file_limit();
    let folder = std::path::PathBuf::from(std::env::var_os("FLATOUT_TEST_FOLDER").unwrap());
    for method in METHODS {
        for name in ["3", "9"] {
            let options = CopyOptions { method, ..options() };
            let source = File::open(folder.join(name)).unwrap();
            let target = tempfile::tempfile().unwrap();
            let refusal = copy(&source, &target, &options, &Methods::default()).unwrap_err();
            assert_eq!(refusal, Refusal::of(WRITE)(Errno::FBIG), "{method:?} {name}");
            assert!(target.metadata().unwrap().len() <= LIMIT);
        }
    }
}

#[test]
fn a_full_filesystem_is_a_final_error_of_the_target() {
    for (kind, size, length) in [("tmpfs", 1 << 20, 3 << 20), ("ext4", 16 << 20, 32 << 20)] {
        let Some(home) = Mounted::new(kind, size) else { continue };
        for method in METHODS {
            for sparse in [When::Auto, When::Always] {
                let options = CopyOptions { method, sparse, ..options() };
                let refusal =
                    copy(&random(length), &home.file(), &options, &Methods::default()).unwrap_err();
                assert_eq!(refusal, Refusal::of(WRITE)(Errno::NOSPC), "{kind} {method:?}");
                assert!(refusal.is_final());
            }
        }
    }
}

#[test]
fn the_side_that_fails_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    for method in METHODS {
        let options = CopyOptions { method, reflink: When::Never, ..options() };
        std::fs::write(&name, b"").unwrap();
        let (source, target) = (random(10_000), File::open(&name).unwrap());
        let refusal = copy(&source, &target, &options, &Methods::default()).unwrap_err();
        assert_eq!(refusal, Refusal::of(WRITE)(Errno::BADF), "{method:?}");

        std::fs::write(&name, [7; 10_000]).unwrap();
        let source = File::options().write(true).open(&name).unwrap();
        let target = tempfile::tempfile().unwrap();
        let refusal = copy(&source, &target, &options, &Methods::default()).unwrap_err();
        assert_eq!(refusal, Refusal::of(READ)(Errno::BADF), "{method:?}");
    }
}

#[test]
fn a_program_that_a_ring_copied_can_be_started_at_once() {
    const NAME: &str = "a_program_that_a_ring_copied_can_be_started_at_once";
    // Among other tests that start programs, a child of theirs could have the target open.
    if !is_child() {
        return assert_passes(&mut again(NAME));
    }
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("program");
    let options = CopyOptions { method: Some(Method::Uring), ..options() };
    let methods = Methods::default();
    let mut content = Content::new(&options, &methods);
    let (source, target) = (File::open("/bin/true").unwrap(), File::create(&name).unwrap());
    let (facts, moved) = (rustix::fs::fstat(&source).unwrap(), AtomicU64::new(0));
    content.copy(job(&source, &target, (&facts, &moved)), || ()).unwrap();
    target.set_permissions(source.metadata().unwrap().permissions()).unwrap();
    drop(target);
    // The ring lives on, and must not hold the target open for writing.
    assert!(Command::new(&name).status().unwrap().success());
}

/// What comes out of a pipe counts as any bytes do, and in no larger pieces than are allowed.
#[test]
fn a_rate_holds_for_streams_too() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, &[7; 3000]).unwrap();
    drop(writer);
    let (source, target) = (File::from(std::os::fd::OwnedFd::from(reader)), tempfile::tempfile());
    let (target, options) = (target.unwrap(), options());
    let mut methods = Methods::default();
    methods.limits = Limits::new(Some(1 << 20), false);
    let (facts, moved) = (rustix::fs::fstat(&source).unwrap(), AtomicU64::new(0));
    let copied = Content::new(&options, &methods).stream(job(&source, &target, (&facts, &moved)));
    assert_eq!((copied.unwrap().bytes_moved, target.metadata().unwrap().len()), (3000, 3000));
    let free_ns = methods.limits.admit(1, 0);
    assert!(free_ns > 0, "nobody asked whether the bytes may be moved");
}
