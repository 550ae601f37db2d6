//! Tests of the way back to a copy: what was swapped is refused, and long ways are walked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use flatout_sys::launcher::{ENOSYS, EPERM, OPENAT2, deny};
use tempfile::TempDir;

use super::*;
use crate::copy::failure::Cause;

/// Set in a process that has no openat2(2).
const WITHOUT_OPENAT2: &str = "FLATOUT_TEST_WITHOUT_OPENAT2";

/// A target with `way/to/leaf`, and a place outside of it.
struct Fixture {
    place: TempDir,
    root: OwnedFd,
    copy: Copy,
}

impl Fixture {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("root/way/to")).unwrap();
        fs::create_dir_all(place.path().join("outside/to")).unwrap();
        fs::write(place.path().join("root/way/to/leaf"), "copy").unwrap();
        fs::write(place.path().join("outside/to/leaf"), "secret").unwrap();
        let copy = copy(&place.path().join("root"), "way/to/leaf");
        Self { root: opened(&place.path().join("root")), copy, place }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.place.path().join(path)
    }

    fn link(&self) -> Result<Linking, Refusal> {
        link(self.root.as_fd(), &self.copy, self.root.as_fd(), c"new")
    }

    /// The link is not made: the copy is not where it was.
    fn is_lost(&self) {
        assert_eq!(self.link(), Ok(Linking::Lost));
        assert!(fs::symlink_metadata(self.path("root/new")).is_err());
    }
}

fn link(
    root: BorrowedFd<'_>,
    copy: &Copy,
    to: BorrowedFd<'_>,
    name: &CStr,
) -> Result<Linking, Refusal> {
    super::link(Placed { root, copy, file: None }, to, name)
}

fn opened(directory: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::empty()).unwrap()
}

fn copy(root: &Path, path: &str) -> Copy {
    let facts = rustix::fs::lstat(root.join(path)).unwrap();
    Copy { path: path.into(), mark: mark(&facts), was_there: false }
}

#[test]
fn every_kind_gets_another_name_by_either_way() {
    let fixture = Fixture::new();
    let root = fixture.path("root");
    symlink("nowhere", root.join("way/symlink")).unwrap();
    let fifo = (rustix::fs::FileType::Fifo, Mode::RUSR);
    rustix::fs::mknodat(CWD, root.join("way/fifo"), fifo.0, fifo.1, 0).unwrap();
    for path in ["way/to/leaf", "way/symlink", "way/fifo", "way/./to//leaf"] {
        let copy = copy(&root, path);
        let made = link(fixture.root.as_fd(), &copy, fixture.root.as_fd(), c"new");
        assert_eq!(made, Ok(Linking::Made), "{path}");
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inode = rustix::fs::open(root.join("new"), flags, Mode::empty()).unwrap();
        link_through_proc(inode.as_fd(), fixture.root.as_fd(), c"other").unwrap();
        for name in ["new", "other"] {
            assert_eq!(self::copy(&root, name).mark, copy.mark, "{path} {name}");
            fs::remove_file(root.join(name)).unwrap();
        }
    }
}

#[test]
fn a_path_longer_than_the_kernel_takes_is_walked_in_pieces() {
    let place = tempfile::tempdir().unwrap();
    let root = opened(place.path());
    let name = "d".repeat(255);
    let mut here = opened(place.path());
    for _ in 0..40 {
        rustix::fs::mkdirat(&here, &name, Mode::RWXU).unwrap();
        here = rustix::fs::openat(&here, &name, DIRECTORY, Mode::empty()).unwrap();
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let leaf = rustix::fs::openat(&here, "leaf", flags, Mode::RUSR).unwrap();
    let facts = rustix::fs::fstat(&leaf).unwrap();
    let path = format!("{}leaf", format!("{name}/").repeat(40)).into_bytes();
    assert!(path.len() > 10_000);
    let mut copy = Copy { path, mark: mark(&facts), was_there: false };
    assert_eq!(link(root.as_fd(), &copy, root.as_fd(), c"new"), Ok(Linking::Made));
    assert_eq!(rustix::fs::fstat(&leaf).unwrap().st_nlink, 2);
    // The last component but one is another one now.
    let above = resolve(root.as_fd(), &copy.path[..copy.path.len() - 5]).unwrap().unwrap();
    rustix::fs::renameat(&above, &name, &root, "away").unwrap();
    rustix::fs::symlinkat(place.path().join("away"), &above, &name).unwrap();
    assert_eq!(link(root.as_fd(), &copy, root.as_fd(), c"other"), Ok(Linking::Lost));
    copy.path = b"away/leaf".to_vec();
    assert_eq!(link(root.as_fd(), &copy, root.as_fd(), c"other"), Ok(Linking::Made));
}

#[test]
fn a_swapped_leaf_gets_no_new_name() {
    let fixture = Fixture::new();
    fs::rename(fixture.path("outside/to/leaf"), fixture.path("root/way/to/leaf")).unwrap();
    fixture.is_lost();
    let fixture = Fixture::new();
    fs::rename(fixture.path("root/way/to/leaf"), fixture.path("root/away")).unwrap();
    fixture.is_lost();
    // Not even a symlink that leads to the copy itself.
    symlink("../../away", fixture.path("root/way/to/leaf")).unwrap();
    fixture.is_lost();
}

#[test]
fn a_swapped_directory_is_not_followed() {
    for (component, away) in [("root/way", "away"), ("root/way/to", "away")] {
        let fixture = Fixture::new();
        fs::rename(fixture.path(component), fixture.path(away)).unwrap();
        fixture.is_lost();
        symlink(fixture.path(away), fixture.path(component)).unwrap();
        fixture.is_lost();
        fs::remove_file(fixture.path(component)).unwrap();
        fs::write(fixture.path(component), "no directory").unwrap();
        fixture.is_lost();
    }
    let fixture = Fixture::new();
    fs::rename(fixture.path("root/way"), fixture.path("away")).unwrap();
    fs::rename(fixture.path("outside"), fixture.path("root/way")).unwrap();
    fixture.is_lost();
}

#[test]
fn a_path_that_could_not_be_ours_is_refused() {
    let fixture = Fixture::new();
    let long = "d".repeat(5_000);
    for path in ["", "/", ".", "..", "way/../way/to/leaf", &format!("{long}/leaf"), "way/\0/leaf"] {
        let copy = Copy { path: path.into(), mark: fixture.copy.mark, was_there: false };
        let made = link(fixture.root.as_fd(), &copy, fixture.root.as_fd(), c"new");
        assert!(!matches!(made, Ok(Linking::Made)), "{path:?}");
    }
    let root = resolve(fixture.root.as_fd(), b"leaf").unwrap().unwrap();
    let same = [root.as_fd(), fixture.root.as_fd()].map(|fd| rustix::fs::fstat(fd).unwrap().st_ino);
    assert_eq!(same[0], same[1]);
}

#[test]
fn a_name_that_is_there_is_an_error() {
    let fixture = Fixture::new();
    fs::write(fixture.path("root/new"), "there").unwrap();
    assert_eq!(fixture.link().unwrap_err().cause, Cause::System(Errno::EXIST));
    assert_eq!(fs::read(fixture.path("root/new")).unwrap(), b"there");
}

#[test]
fn a_filesystem_that_makes_no_link_is_a_value() {
    let fixture = Fixture::new();
    let elsewhere = match tempfile::tempdir_in("/dev/shm") {
        Ok(elsewhere)
            if rustix::fs::stat(elsewhere.path()).unwrap().st_dev != fixture.copy.mark.0 =>
        {
            elsewhere
        }
        _ => return eprintln!("skipped: no second filesystem at /dev/shm"),
    };
    let to = opened(elsewhere.path());
    let made = link(fixture.root.as_fd(), &fixture.copy, to.as_fd(), c"new");
    assert_eq!(made, Ok(Linking::Cannot(Errno::XDEV)));
}

#[test]
fn too_many_links_are_a_value() {
    /// More than ext4 (65,000) and btrfs (65,535) have.
    const MOST: u32 = 66_000;
    let fixture = Fixture::new();
    for number in 0..MOST {
        let name = CString::new(number.to_string()).unwrap();
        match link(fixture.root.as_fd(), &fixture.copy, fixture.root.as_fd(), &name).unwrap() {
            Linking::Made => {}
            Linking::Cannot(errno) => return assert_eq!(errno, Errno::MLINK),
            other => panic!("{other:?}: it is where it was, and the name is free"),
        }
    }
    eprintln!("skipped: this filesystem makes more than {MOST} links");
}

#[test]
fn no_openat2_is_noticed() {
    let fixture = Fixture::new();
    assert_eq!(fixture.link(), Ok(Linking::Made));
    let is_denied = std::env::var_os(WITHOUT_OPENAT2).is_some();
    if is_denied {
        assert!(OPENAT2_IS_MISSING.load(Ordering::Relaxed));
    }
}

#[test]
fn without_openat2_all_of_this_is_the_same() {
    if std::env::var_os(WITHOUT_OPENAT2).is_some() {
        return;
    }
    for errno in [ENOSYS, EPERM] {
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.args(["copy::links::path::tests::", "--skip", "too_many_links"]);
        own.env(WITHOUT_OPENAT2, "1");
        let output = deny(&mut own, &[(OPENAT2, errno)]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("no_openat2_is_noticed ... ok"), "{text}");
    }
}
