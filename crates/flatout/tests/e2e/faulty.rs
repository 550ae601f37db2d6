//! A filesystem with the faults that a test chooses: files in memory, served over FUSE by a
//! thread of the tests.
//!
//! It knows no unnamed files, no extents and no room reserved beforehand, so whoever wants these
//! has to make do. What a file holds is put in and taken out behind the kernel's back, so the
//! page cache knows nothing of it. `faulty::server` answers the kernel; `faulty::passage` knows what
//! has gone through, and how long that takes.

mod behind;
mod folding;
mod passage;
mod server;
mod state;

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fuser::{BackgroundSession, Errno, MountOption};

use crate::filesystem::MountPoint;

use passage::Passage;
use server::Server;
use state::State;

/// Where reads or writes begin to fail.
#[derive(Debug, Clone, Copy)]
pub enum Begin {
    /// At this byte of a file.
    AtByte(u64),
    /// When this many bytes have gone through, of all files together.
    AfterBytes(u64),
}

/// How reads or writes fail.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub errno: Errno,
    pub begins: Begin,
}

impl Fault {
    /// The device is broken from here on.
    pub fn broken(begins: Begin) -> Option<Self> {
        Some(Self { errno: Errno::EIO, begins })
    }

    /// The device is full from here on.
    pub fn full(begins: Begin) -> Option<Self> {
        Some(Self { errno: Errno::ENOSPC, begins })
    }
}

/// A limit as clouds set it: full speed until the bucket is empty, then as fast as it fills.
/// When it is empty is a matter of time here, however many requests a busy machine gets done.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    pub burst: Duration,
    pub bytes_per_s: u64,
}

/// What is wrong with the filesystem; nothing by default.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    pub read: Option<Fault>,
    pub write: Option<Fault>,
    /// How closing a file fails.
    pub close: Option<Errno>,
    /// How removing a file fails.
    pub unlink: Option<Errno>,
    /// How changing an owner fails.
    pub owner: Option<Errno>,
    /// Whether a mode is accepted and forgotten, as owners and times always are.
    pub forgets_modes: bool,
    /// How long each request for bytes takes.
    pub delay: Duration,
    /// How much longer it takes to read a page for the first time.
    pub first_delay: Duration,
    /// A limit to the bytes of a second, reads and writes together.
    pub bucket: Option<Bucket>,
    /// The most that is read or written for a request.
    pub answer_bytes: usize,
    /// Whether every file is read and written around the page cache, whoever opens it.
    pub is_uncached: bool,
    /// Whether files and directories can be created.
    pub can_create: bool,
    /// Whether names that differ in nothing but case are one.
    pub folds: bool,
    /// Whether it cuts names to eight letters and three, and takes none that begins with a dot (msdos).
    pub cuts: bool,
    /// Whether each other spelling of a name has an inode number of its own, as libfuse gives it.
    pub numbers_spellings: bool,
    /// Whether files have holes where there are zeros; it does not tell where.
    pub has_holes: bool,
    /// Whether it says of each file that it has no data, from any place on.
    pub denies_data: bool,
    /// What it says about its room, and how it fails to.
    pub free_bytes: u64,
    pub statfs: Option<Errno>,
    /// How long the kernel may take attributes for those of now, whoever changes a file. By default it asks
    /// anew each time, because tests change files behind its back.
    pub remembered: Duration,
    /// Whether it is mounted read-only: otherwise the kernel asks for attributes after each read.
    pub is_read_only: bool,
    /// When files were changed, after 1970.
    pub changed: Duration,
    /// Whether a file that lost its name is changed, for it is asked for by its name (bindfs).
    pub asks_by_name: bool,
    /// Whether all files seem to be two names of one.
    pub is_one: bool,
    /// How many names it says that each file has, where it does not count them.
    pub names: Option<u32>,
    /// How it fails to tell the flags of a file; by default it has none.
    pub ioctl: Option<Errno>,
    /// The most that it says is the length of a file.
    pub told_bytes: u64,
    /// How much longer than it is it says that each file is.
    pub added_bytes: u64,
    /// Whether it lists each name twice.
    pub repeats: bool,
    /// Whether a listing goes on by what it has told already, so that it leaves out names when others are removed.
    pub leaves_out: bool,
    /// How long names are at most.
    pub name_bytes: usize,
    /// Whether attributes and lists are accepted and forgotten; otherwise there are none.
    pub forgets_attributes: bool,
    /// Whether each file has a list of its permissions, which cannot be removed (NFSv4).
    pub has_lists: bool,
    /// The access control list of each file, if any, of which it tells whoever asks for it and does not list it.
    pub unlisted: &'static [u8],
    /// Whether what is set of a symlink is set of what it leads to (sshfs).
    pub follows: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            read: None,
            write: None,
            close: None,
            unlink: None,
            owner: None,
            forgets_modes: false,
            delay: Duration::ZERO,
            first_delay: Duration::ZERO,
            bucket: None,
            answer_bytes: usize::MAX,
            is_uncached: false,
            can_create: true,
            folds: false,
            cuts: false,
            numbers_spellings: false,
            has_holes: false,
            denies_data: false,
            free_bytes: 8 << 30,
            statfs: None,
            remembered: Duration::ZERO,
            is_read_only: false,
            changed: Duration::ZERO,
            asks_by_name: false,
            is_one: false,
            names: None,
            ioctl: None,
            told_bytes: u64::MAX,
            added_bytes: 0,
            repeats: false,
            leaves_out: false,
            name_bytes: 255,
            forgets_attributes: false,
            has_lists: false,
            unlisted: &[],
            follows: false,
        }
    }
}

/// The filesystem, mounted until `finish`.
pub struct Faulty {
    state: Arc<Mutex<State>>,
    point: MountPoint,
    session: BackgroundSession,
}

impl Faulty {
    /// Mounts it, or says why that cannot be done here.
    pub fn new(faults: Faults) -> Result<Self, String> {
        let state = Arc::new(Mutex::new(State::new(faults)));
        let read_only = faults.is_read_only.then_some(MountOption::RO);
        let subtype = faults.follows.then(|| MountOption::CUSTOM("subtype=sshfs".to_owned()));
        let options = read_only.into_iter().chain(subtype);
        let (point, session) = MountPoint::served(Server::new(state.clone()), "faulty", options)?;
        Ok(Self { state, point, session })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.point.path()
    }

    /// Puts a file there.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        self.state().put(name, bytes);
    }

    /// Changes what a file holds, as another host would.
    pub fn rewrite(&self, name: &str, bytes: &[u8]) {
        self.state().rewrite(name, bytes);
    }

    /// What is in a file of the uppermost directory; none when there is no such file.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.state().bytes(name)
    }

    /// Everything that has a name here, in any directory.
    pub fn names(&self) -> Vec<OsString> {
        self.state().names()
    }

    /// Changes what is wrong, from the next request on.
    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state().faults);
    }

    /// Everything anew: no faults but these, and nothing has gone through.
    pub fn restart(&self, change: impl FnOnce(&mut Faults)) {
        let mut state = self.state();
        state.passage = Passage::new();
        (state.faults.read, state.faults.write, state.faults.close) = (None, None, None);
        change(&mut state.faults);
    }

    /// Bytes that have been read so far.
    pub fn read_bytes(&self) -> u64 {
        self.state().passage.read_bytes
    }

    /// Bytes that have been written so far.
    pub fn written_bytes(&self) -> u64 {
        self.state().passage.written_bytes
    }

    /// Unmounts it; fails the test when something still holds on to it.
    pub fn finish(self) {
        self.point.finish();
        self.session.join().unwrap();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

#[test]
fn a_faulty_filesystem_fails_where_it_was_told_to() {
    use crate::skip::needs;
    let faults = Faults { is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let path = faulty.path().join("data");
    faulty.put("data", &[7; 10_000]);
    assert_eq!(std::fs::read(&path).unwrap(), [7; 10_000]);
    faulty.change(|faults| {
        faults.read = Fault::broken(Begin::AtByte(9_999));
        faults.write = Fault::full(Begin::AfterBytes(6));
    });
    assert_eq!(std::fs::read(&path).unwrap_err().raw_os_error(), Some(5));
    let new = faulty.path().join("new");
    std::fs::write(&new, "123456").unwrap();
    assert_eq!(std::fs::write(&new, "7").unwrap_err().raw_os_error(), Some(28));
    assert_eq!(faulty.written_bytes(), 6);
    std::fs::remove_file(&new).unwrap();
    assert_eq!(faulty.names(), ["data"]);
    faulty.finish();
}
