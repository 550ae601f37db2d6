//! One file whose attributes are read or written, however it can be reached.
//!
//! No path of the tree is used, and no symlink followed: what is not open is pinned by `O_PATH`,
//! and reached through its own descriptor in /proc, for most attribute calls take no such
//! descriptor (xattr(7), open(2)). Extended attributes of directories that may be searched but not
//! read, and of names, need no /proc since Linux 6.13. It decides nothing.

use std::ffi::{CStr, CString, OsString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use flatout_sys::attribute_at::{self, Owned};
use rustix::fs::{
    Access, AtFlags, CWD, Gid, Mode, OFlags, Stat, StatxAttributes, StatxFlags, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::{Errno, Result};

use super::{Place, acl};
use crate::file_data::{self, errno_of, path_of};

/// Names of attributes, and a value, that fit without a second call.
const SMALL_LIST_BYTES: usize = 512;
const SMALL_VALUE_BYTES: usize = 1 << 10;
/// The most that the kernel hands out, for a list and for a value (xattr(7)).
const MOST_BYTES: usize = 64 << 10;

/// A file, and how it is reached.
#[derive(Debug, Clone, Copy)]
pub enum Node<'a> {
    /// Open for reading or writing.
    Open(BorrowedFd<'a>),
    /// Opened with `O_PATH`: whatever bears its name by now, it is the same file.
    Pinned(BorrowedFd<'a>),
    /// A name in a directory, for looking only.
    Named(Place<'a>),
}

/// Pins what bears a name, without opening it.
pub fn pin(place: Place<'_>) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(place.directory, place.name, flags, Mode::empty())
}

/// Has the kernel fill a buffer, and once more where that is too small for what there is.
fn filled(small_bytes: usize, get: impl Fn(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; small_bytes];
    let mut got = get(&mut bytes);
    if got == Err(Errno::RANGE) {
        bytes.resize(MOST_BYTES, 0);
        got = get(&mut bytes);
    }
    bytes.truncate(got?);
    Ok(bytes)
}

/// The names of extended attributes.
#[derive(Debug)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    is_part: bool,
}

impl Names {
    pub(super) const fn none() -> Self {
        Self { bytes: Vec::new(), is_part: false }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CStr> {
        let names = self.bytes.split_inclusive(|&byte| byte == 0);
        names.filter_map(|name| CStr::from_bytes_with_nul(name).ok())
    }

    /// Whether there are others, which nobody can list.
    pub(super) const fn is_part(&self) -> bool {
        self.is_part
    }

    pub(super) fn has(&self, wanted: &CStr) -> bool {
        self.iter().any(|name| name == wanted)
    }
}

impl<'a> Node<'a> {
    /// A directory by its descriptor, which may be one of `O_PATH`. Cost: fcntl(2).
    pub fn of_directory(directory: BorrowedFd<'a>) -> Self {
        match rustix::fs::fcntl_getfl(directory) {
            Ok(flags) if flags.contains(OFlags::PATH) => Self::Pinned(directory),
            _ => Self::Open(directory),
        }
    }

    /// A descriptor, a name in it (none: it is the file itself), and how the name is looked up.
    fn located(self) -> (BorrowedFd<'a>, &'a CStr, AtFlags) {
        match self {
            Self::Open(file) | Self::Pinned(file) => (file, c"", AtFlags::EMPTY_PATH),
            Self::Named(Place { directory, name }) => (directory, name, AtFlags::SYMLINK_NOFOLLOW),
        }
    }

    pub(crate) fn stat(self) -> Result<Stat> {
        let (file, name, flags) = self.located();
        match self {
            Self::Named(_) => rustix::fs::statat(file, name, flags),
            _ => rustix::fs::fstat(file),
        }
    }

    /// Its absolute path, for people: what the kernel knows of a descriptor.
    pub(super) fn shown(self) -> OsString {
        let (file, name, _) = self.located();
        let mut path = path_of(file).unwrap_or_else(|| b"?".to_vec());
        if !name.is_empty() {
            crate::path::push(&mut path, name.to_bytes());
        }
        OsString::from_vec(path)
    }

    /// Whether chattr(1) locked it; a filesystem that does not say has no such locks.
    pub(super) fn is_locked(self) -> bool {
        let (file, name, flags) = self.located();
        let locks = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        rustix::fs::statx(file, name, flags, StatxFlags::empty())
            .is_ok_and(|facts| facts.stx_attributes.intersects(locks))
    }

    pub(super) fn set_owner(self, user: Option<Uid>, group: Option<Gid>) -> Result<()> {
        let (file, name, flags) = self.located();
        match self {
            Self::Open(file) => rustix::fs::fchown(file, user, group),
            _ => rustix::fs::chownat(file, name, user, group, flags),
        }
    }

    pub(super) fn set_times(self, times: &Timestamps) -> Result<()> {
        let (file, name, flags) = self.located();
        match self {
            Self::Open(file) => rustix::fs::futimens(file, times),
            _ => rustix::fs::utimensat(file, name, times, flags),
        }
    }

    pub(super) fn set_mode(self, mode: u32) -> Result<()> {
        match self {
            Self::Open(file) => rustix::fs::fchmod(file, Mode::from_raw_mode(mode)),
            Self::Pinned(file) => {
                match rustix::fs::chmod(itself(file), Mode::from_raw_mode(mode)) {
                    Err(Errno::NOENT) => flatout_sys::descriptor::set_mode(file, mode)
                        .map_err(|error| errno_of(&error)),
                    set => set,
                }
            }
            Self::Named(_) => Err(Errno::BADF),
        }
    }

    /// The project that pays for it.
    pub(super) fn project(self) -> Result<u32> {
        self.owned(|owned| owned.project())
    }

    pub(super) fn set_project(self, project: u32) -> Result<()> {
        self.owned(|owned| owned.set_project(project))
    }

    fn owned<T>(self, act: impl FnOnce(Owned<'_>) -> T) -> T {
        match self {
            Self::Open(_) | Self::Named(_) => {
                let (directory, name, _) = self.located();
                act(Owned { directory, name, follows: false })
            }
            Self::Pinned(file) => act(Owned { directory: CWD, name: &itself(file), follows: true }),
        }
    }

    /// The names of its attributes; where the filesystem, or the kernel, lists none, of those that say what others
    /// may do: a server may have them all the same (FUSE). One call, or three more.
    ///
    /// Errors: `NOENT` when /proc is needed and missing, too.
    pub(crate) fn names(self) -> Result<Names> {
        match filled(SMALL_LIST_BYTES, |list| self.read_names(list)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(self.names_that_tell()),
            names => Ok(Names { bytes: names?, is_part: false }),
        }
    }

    /// The same; where there are more than the kernel lists, those of them that say what others may do.
    pub(super) fn known_names(self) -> Result<Names> {
        match self.names() {
            Err(Errno::TOOBIG) => Ok(Names { is_part: true, ..self.names_that_tell() }),
            names => names,
        }
    }

    /// Those that say what others may do: there, or not known not to be.
    pub(super) fn names_that_tell(self) -> Names {
        let mut names = Names::none();
        for name in [acl::ACCESS, acl::DEFAULT, c"security.capability"] {
            if matches!(self.value(name), Ok(None) | Err(Errno::OPNOTSUPP | Errno::NOSYS)) {
                continue;
            }
            names.bytes.extend_from_slice(name.to_bytes_with_nul());
        }
        names
    }

    /// Whether it has none.
    pub(super) fn has_no_names(self) -> bool {
        match self.read_names(&mut [0; 1]) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.names_that_tell().iter().next().is_none(),
            listed => listed == Ok(0),
        }
    }

    fn read_names(self, list: &mut [u8]) -> Result<usize> {
        match self.way() {
            Way::Open(file) => rustix::fs::flistxattr(file, list),
            Way::At(at) => attribute_at::names(at.directory, at.name, list),
            Way::Itself(path) => rustix::fs::listxattr(&path, list),
            Way::Below(path) => rustix::fs::llistxattr(&path, list),
        }
    }

    /// The value of an attribute; `None` if it is not there.
    pub(crate) fn value(self, name: &CStr) -> Result<Option<Vec<u8>>> {
        let way = self.way();
        let get = |value: &mut [u8]| match &way {
            Way::Open(file) => rustix::fs::fgetxattr(file, name, value),
            Way::At(at) => attribute_at::value(at.directory, at.name, name, value),
            Way::Itself(path) => rustix::fs::getxattr(path, name, value),
            Way::Below(path) => rustix::fs::lgetxattr(path, name, value),
        };
        match filled(SMALL_VALUE_BYTES, get) {
            Err(Errno::NODATA) => Ok(None),
            value => value.map(Some),
        }
    }

    /// An access control list; `None` where it has none, or can have none.
    pub(super) fn list(self, list: &CStr) -> Result<Option<Vec<u8>>> {
        match self.value(list) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
            value => value,
        }
    }

    pub(super) fn set_value(self, name: &CStr, value: &[u8]) -> Result<()> {
        match self.way_to_change()? {
            Way::Open(file) => rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()),
            Way::At(at) => attribute_at::set(at.directory, at.name, name, value),
            Way::Itself(path) | Way::Below(path) => {
                rustix::fs::setxattr(path, name, value, XattrFlags::empty())
            }
        }
    }

    /// Takes an attribute away; one that is not there is no error.
    pub(super) fn remove(self, name: &CStr) -> Result<()> {
        let removed = match self.way_to_change()? {
            Way::Open(file) => rustix::fs::fremovexattr(file, name),
            Way::At(at) => attribute_at::remove(at.directory, at.name, name),
            Way::Itself(path) | Way::Below(path) => rustix::fs::removexattr(path, name),
        };
        match removed {
            Err(Errno::NODATA) => Ok(()),
            removed => removed,
        }
    }

    fn way(self) -> Way<'a> {
        match self {
            Self::Open(file) => Way::Open(file),
            Self::Named(place) if attribute_at::is_there() => Way::At(place),
            Self::Named(place) => Way::Below(path(place)),
            // Of a directory; who may not search it may not look up even that.
            Self::Pinned(file) if attribute_at::is_there() && may_search(file) => {
                Way::At(Place { directory: file, name: c"." })
            }
            Self::Pinned(file) => Way::Itself(itself(file)),
        }
    }

    fn way_to_change(self) -> Result<Way<'a>> {
        match self {
            Self::Named(_) => Err(Errno::BADF),
            _ => Ok(self.way()),
        }
    }
}

/// How extended attributes are reached. Linux 6.13 takes a directory and a name, so that /proc is
/// needed only for what is pinned and no directory.
enum Way<'a> {
    Open(BorrowedFd<'a>),
    At(Place<'a>),
    /// A path to a pinned file itself.
    Itself(CString),
    /// A path to a name that is not followed.
    Below(CString),
}

fn may_search(directory: BorrowedFd<'_>) -> bool {
    rustix::fs::accessat(directory, c".", Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// A pinned file by a name that leads to nothing else ([`file_data::itself`]).
fn itself(file: BorrowedFd<'_>) -> CString {
    CString::new(file_data::itself(file)).expect("digits have no NUL")
}

/// A name below its directory. The directory is a descriptor, the name one component that the `l`
/// calls do not follow.
fn path(place: Place<'_>) -> CString {
    if place.directory.as_raw_fd() == CWD.as_raw_fd() {
        return place.name.to_owned();
    }
    let mut bytes = file_data::itself(place.directory).into_bytes();
    crate::path::push(&mut bytes, place.name.to_bytes());
    CString::new(bytes).expect("neither digits nor a C string have a NUL inside")
}
