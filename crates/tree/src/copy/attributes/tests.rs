//! Attributes on real files. What needs privilege is skipped without, and says so; what must work
//! without is run by a thread that gives its privilege up.

use std::ffi::CString;
use std::fs::{self, File, Metadata, Permissions};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{AtFlags, CWD, Gid, OFlags, Timespec, Timestamps, Uid, XattrFlags};

use super::inheritance::DefaultAcl;
use super::*;
use crate::copy::event::Event;
use crate::copy::failure::Cause;

mod lists;
mod mended;
mod outsider;
mod special;

impl Inheritance {
    /// Any, for tests of others.
    pub fn of_tests(device: u64, owner: (u32, u32), acl: Option<u32>) -> Self {
        let acl = acl.map_or(DefaultAcl::Unknown, DefaultAcl::Present);
        Self { device, owner, group_is_certain: true, acl }
    }
}

/// A user and a group that no process here is.
const STRANGER: u32 = 4711;
/// Who the thread without privilege is.
const NOBODY: u32 = 65534;
const CAPABILITY: &CStr = c"security.capability";
/// CAP_NET_BIND_SERVICE, permitted and effective, as setcap(8) writes it.
const CAPABILITY_VALUE: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The value of a list with these entries: tag, permissions, id.
pub(super) fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    value
}

/// A list that lets a stranger do anything, and the group of the file only read.
fn generous_list() -> Vec<u8> {
    list(&[(1, 6, !0), (2, 7, STRANGER), (4, 4, !0), (0x10, 7, !0), (0x20, 0, !0)])
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Leaves the test, visibly, unless what it needs can be had.
macro_rules! needs {
    ($there:expr, $what:literal) => {
        if !$there {
            return eprintln!("skipped: {}", $what);
        }
    };
}
use needs;

/// What was said, as codes.
#[derive(Default)]
struct Heard(Mutex<Vec<&'static str>>);

impl Watch for Heard {
    fn event(&self, event: &Event) {
        if let Event::Notice(notice) = event {
            let is_said = notice.text.starts_with("cannot keep")
                || notice.text.contains("their copies are not");
            assert!(is_said, "{notice:?}");
            self.0.lock().unwrap().push(notice.code);
        }
    }
}

impl Heard {
    fn codes(&self) -> Vec<&'static str> {
        let mut codes = self.0.lock().unwrap().clone();
        codes.sort();
        codes
    }
}

/// A directory with the source and one for the target.
struct Folders {
    _place: tempfile::TempDir,
    source: PathBuf,
    target: PathBuf,
    heard: Heard,
}

impl Folders {
    fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    fn below(parent: &Path) -> Self {
        // What others may read is read by others here, whatever whoever starts the tests keeps to himself.
        rustix::process::umask(Mode::from_raw_mode(0o022));
        let place = tempfile::tempdir_in(parent).unwrap();
        let [source, target] = ["source", "target"].map(|name| place.path().join(name));
        for folder in [&source, &target] {
            fs::create_dir(folder).unwrap();
        }
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        Self { _place: place, source, target, heard: Heard::default() }
    }

    fn source_file(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.source.join(name);
        fs::write(&path, name).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn attributes(&self) -> Attributes<'_> {
        Attributes::new(Preserve::ALL, None, &self.heard)
    }

    /// Makes a file in the target as the copier does, and finishes it.
    fn copy(&self, name: &str) -> Result<Metadata, Refusal> {
        self.copy_with(&self.attributes(), name)
    }

    fn copy_with(&self, attributes: &Attributes<'_>, name: &str) -> Result<Metadata, Refusal> {
        let source = File::open(self.source.join(name)).unwrap();
        let directory = File::open(&self.target).unwrap();
        let made = Made::new(Inheritance::of(directory.as_fd()));
        let path = self.target.join(name);
        let target = File::options().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        let facts = rustix::fs::fstat(&source).unwrap();
        attributes.file(source.as_fd(), target.as_fd(), &facts, made, None)?;
        Ok(target.metadata().unwrap())
    }

    /// The same of a directory.
    fn copy_directory(&self, name: &str) -> Result<Metadata, Refusal> {
        let source = File::open(self.source.join(name)).unwrap();
        let parent = File::open(&self.target).unwrap();
        let made = Made::new(Inheritance::of(parent.as_fd()));
        let path = self.target.join(name);
        rustix::fs::mkdirat(&parent, name, Mode::RWXU).unwrap();
        let target = File::open(&path).unwrap();
        let facts = rustix::fs::fstat(&source).unwrap();
        self.attributes().directory(source.as_fd(), target.as_fd(), &facts, made)?;
        Ok(target.metadata().unwrap())
    }

    /// The same of what cannot be opened.
    fn copy_entry(&self, name: &CStr, text: Option<&CStr>) -> Result<Stat, Refusal> {
        let [source, target] = [&self.source, &self.target].map(|path| File::open(path).unwrap());
        let [source, target] =
            [&source, &target].map(|folder| Place { directory: folder.as_fd(), name });
        let facts = Node::Named(source).stat().unwrap();
        let attributes = self.attributes();
        let source = Special { place: source, facts: &facts, text, called: name };
        attributes.make(&source, target)?;
        attributes.entry(&source, target, None, |made| made.st_nlink == 1)?;
        Ok(Node::Named(target).stat().unwrap())
    }

    fn repair(&self, name: &CStr) -> Result<bool, Refusal> {
        let path = |folder: &Path| folder.join(OsStr::from_bytes(name.to_bytes()));
        let source = File::open(path(&self.source)).unwrap();
        let directory = File::open(&self.target).unwrap();
        let target = Place { directory: directory.as_fd(), name };
        let facts = rustix::fs::fstat(&source).unwrap();
        let found = Node::Named(target).stat().unwrap();
        self.attributes().repair(Node::Open(source.as_fd()), target, &facts, &found)
    }
}

fn set(path: &Path, name: &CStr, value: &[u8]) -> rustix::io::Result<()> {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())
}

fn get(path: &Path, name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0; 64 << 10];
    let length = rustix::fs::lgetxattr(path, name, value.as_mut_slice()).ok()?;
    value.truncate(length);
    Some(value)
}

fn names(path: &Path) -> Vec<String> {
    let mut list = vec![0; 64 << 10];
    let length = rustix::fs::llistxattr(path, list.as_mut_slice()).unwrap();
    let names = list[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let mut names: Vec<_> = names.map(|name| String::from_utf8(name.to_vec()).unwrap()).collect();
    // What the system writes by itself, and what xfs shows twice.
    names.retain(|name| name != "security.selinux" && !name.starts_with("trusted.SGI_ACL"));
    names.sort();
    names
}

fn chown(path: &Path, user: u32, group: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(group)).unwrap();
}

fn set_times(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = |shift: i64| Timespec { tv_sec: seconds - shift, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time(60), last_modification: time(0) };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn mode(facts: &Metadata) -> u32 {
    facts.mode() & MODE_BITS
}

/// Runs `work` as nobody; as whoever we are, if that is not root. The privilege belongs to the
/// thread alone, as long as the C library is not asked.
fn as_nobody<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let run = || {
        if is_root() {
            let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_res_gid(group, group, group).unwrap();
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        }
        work()
    };
    std::thread::scope(|scope| match scope.spawn(run).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[test]
fn set_id_bits_survive_another_owner() {
    needs!(is_root(), "only root gives files away");
    let folders = Folders::new();
    let source = folders.source_file("file", 0o600);
    chown(&source, STRANGER, STRANGER + 1);
    fs::set_permissions(&source, Permissions::from_mode(0o7755)).unwrap();
    let facts = folders.copy("file").unwrap();
    assert_eq!((mode(&facts), facts.uid(), facts.gid()), (0o7755, STRANGER, STRANGER + 1));
    assert_eq!(folders.heard.codes(), [""; 0]);
}

#[test]
fn capabilities_survive_another_owner() {
    needs!(is_root(), "only root sets capabilities");
    let folders = Folders::new();
    let source = folders.source_file("file", 0o755);
    chown(&source, STRANGER, STRANGER);
    set(&source, CAPABILITY, &CAPABILITY_VALUE).unwrap();
    let facts = folders.copy("file").unwrap();
    assert_eq!((mode(&facts), facts.uid()), (0o755, STRANGER));
    let copied = get(&folders.target.join("file"), CAPABILITY);
    assert_eq!(copied.as_deref(), Some(&CAPABILITY_VALUE[..]));
}

#[test]
fn extended_attributes_are_carried_whatever_their_size() {
    let folders = Folders::new();
    let source = folders.source_file("file", 0o440);
    fs::set_permissions(&source, Permissions::from_mode(0o640)).unwrap();
    needs!(set(&source, c"user.empty", b"").is_ok(), "no user attributes here");
    set(&source, c"user.binary", b"\0\xff\n").unwrap();
    needs!(set(&source, c"user.long", &[7; 2000]).is_ok(), "no room for long attributes here");
    // The list of names is longer than what is tried first.
    let many: Vec<_> = (0..4).map(|i| format!("user.{}{i}", "n".repeat(200))).collect();
    for name in &many {
        let name = CString::new(name.as_str()).unwrap();
        needs!(set(&source, &name, b"x").is_ok(), "no room for many attributes here");
    }
    // Root may, unless it is that of a container.
    let _is_set = set(&source, c"trusted.secret", b"t");
    fs::set_permissions(&source, Permissions::from_mode(0o440)).unwrap();
    let facts = folders.copy("file").unwrap();
    let target = folders.target.join("file");
    assert_eq!(mode(&facts), 0o440);
    assert_eq!(names(&source), names(&target));
    for name in names(&source) {
        let name = CString::new(name).unwrap();
        assert_eq!(get(&source, &name), get(&target, &name), "{name:?}");
    }
    assert_eq!(folders.heard.codes(), [""; 0]);
}

#[test]
fn an_attribute_that_does_not_fit_fails_the_file_and_not_the_copy() {
    // tmpfs takes any value, ext4 only what fits into a block.
    let shared = Path::new("/dev/shm");
    needs!(shared.is_dir(), "no tmpfs");
    let (from, to) = (Folders::below(shared), Folders::new());
    let path = from.source_file("file", 0o640);
    needs!(set(&path, c"user.large", &[7; 60_000]).is_ok(), "no user attributes on tmpfs");
    set_times(&path, 1_000_000_000, 5);
    let probe = to.source_file("probe", 0o600);
    needs!(set(&probe, c"user.large", &[7; 60_000]).is_err(), "large attributes fit here");
    let source = File::open(&path).unwrap();
    let folder = File::open(&to.target).unwrap();
    let target = File::create_new(to.target.join("file")).unwrap();
    let facts = rustix::fs::fstat(&source).unwrap();
    let made = Made::new(Inheritance::of(folder.as_fd()));
    let refusal =
        to.attributes().file(source.as_fd(), target.as_fd(), &facts, made, None).unwrap_err();
    assert!(matches!(refusal.cause, Cause::Reason(_)) && !refusal.is_final(), "{refusal:?}");
    let facts = target.metadata().unwrap();
    assert_eq!((mode(&facts), facts.mtime(), facts.mtime_nsec()), (0o640, 1_000_000_000, 5));
}

#[test]
fn times_are_kept_to_the_nanosecond_far_from_today() {
    for (seconds, nanoseconds) in [(-300_000_000, 1), (4_200_000_000, 999_999_999), (1, 0)] {
        let folders = Folders::new();
        let file = folders.source_file("file", 0o600);
        let directory = folders.source.join("directory");
        fs::create_dir(&directory).unwrap();
        let link = folders.source.join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let fifo = folders.source.join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, PRIVATE, 0).unwrap();
        for path in [&file, &directory, &link, &fifo] {
            set_times(path, seconds, nanoseconds);
        }
        let read = fs::symlink_metadata(&file).unwrap();
        needs!(read.mtime() == seconds, "times like that are not kept here");
        folders.copy("file").unwrap();
        folders.copy_directory("directory").unwrap();
        folders.copy_entry(c"link", Some(c"nowhere")).unwrap();
        folders.copy_entry(c"fifo", None).unwrap();
        for name in ["file", "directory", "link", "fifo"] {
            let facts = fs::symlink_metadata(folders.target.join(name)).unwrap();
            assert_eq!((facts.mtime(), facts.mtime_nsec()), (seconds, nanoseconds), "{name}");
            assert_eq!((facts.atime(), facts.atime_nsec()), (seconds - 60, nanoseconds), "{name}");
        }
    }
}

#[test]
fn fractions_that_mean_something_else_to_the_kernel_are_cut() {
    let mut facts = rustix::fs::stat("/").unwrap();
    facts.st_mtime_nsec = rustix::fs::UTIME_OMIT as _;
    facts.st_atime_nsec = rustix::fs::UTIME_NOW as _;
    assert_eq!(times(&facts).map(|time| time.tv_nsec), [999_999_999; 2]);
}

#[test]
fn what_is_not_asked_for_is_not_kept() {
    let folders = Folders::new();
    let source = folders.source_file("file", 0o755);
    set_times(&source, 1_000_000_000, 5);
    let has_attribute = set(&source, c"user.x", b"x").is_ok();
    for (preserve, expected) in [(Preserve::PLAIN_MODE, 0o666), (Preserve::NOTHING, 0o755)] {
        let attributes = Attributes::new(preserve, None, &folders.heard);
        let facts = folders.copy_with(&attributes, "file").unwrap();
        assert_eq!(mode(&facts), expected & attributes.unmasked());
        let _again = fs::remove_file(folders.target.join("file"));
    }
    let attributes = Attributes::new(Preserve::NOTHING, None, &folders.heard);
    let facts = folders.copy_with(&attributes, "file").unwrap();
    assert!(facts.mtime() > 1_000_000_000);
    assert!(names(&folders.target.join("file")).is_empty() || !has_attribute);
    assert_eq!(attributes.unmasked() & !0o777, 0);
}

#[test]
fn what_one_file_got_tells_nothing_of_the_umask() {
    let folders = Folders::new();
    let (directory, attributes) = (
        File::open(&folders.target).unwrap(),
        Attributes::new(Preserve::ALL, Some(0o277), &folders.heard),
    );
    // The first one lies on a filesystem that knows no umask.
    for (name, made) in [("whole", 0o600), ("masked", 0o400)] {
        let path = folders.target.join(name);
        let file = File::options().write(true).create_new(true).mode(made).open(path).unwrap();
        attributes.let_owner_in(file.as_fd(), Inheritance::of(directory.as_fd()));
        assert_eq!(file.metadata().unwrap().mode() & MODE_BITS, 0o600, "{name}");
    }
}

#[test]
fn the_group_of_a_directory_is_known_or_asked_for() {
    needs!(is_root(), "only root gives files away");
    for hands_on in [0o755, 0o2755] {
        let folders = Folders::new();
        chown(&folders.target, 0, STRANGER);
        fs::set_permissions(&folders.target, Permissions::from_mode(hands_on)).unwrap();
        let attributes = folders.attributes();
        for (name, group) in [("a", 0), ("b", STRANGER), ("c", STRANGER + 1), ("d", 0)] {
            chown(&folders.source_file(name, 0o644), 0, group);
            let facts = folders.copy_with(&attributes, name).unwrap();
            assert_eq!(facts.gid(), group, "{name} {hands_on:o}");
        }
    }
}

#[test]
fn an_owner_that_was_expected_in_vain_is_found_out() {
    needs!(is_root(), "only root gives files away");
    let folders = Folders::new();
    let attributes = folders.attributes();
    let directory = File::open(&folders.target).unwrap();
    let made = Made::new(Inheritance::of(directory.as_fd()));
    for name in ["a", "b"] {
        let source = File::open(folders.source_file(name, 0o644)).unwrap();
        let target = File::create_new(folders.target.join(name)).unwrap();
        // As if a mount option had given the file to somebody else.
        chown(&folders.target.join(name), STRANGER, STRANGER);
        let facts = rustix::fs::fstat(&source).unwrap();
        attributes.file(source.as_fd(), target.as_fd(), &facts, made, None).unwrap();
        assert_eq!(target.metadata().unwrap().uid(), 0, "{name}");
    }
}
