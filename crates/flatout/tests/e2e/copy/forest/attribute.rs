//! What an entry carries: owner, mode, extended attributes, ACLs, capabilities and times.

use std::ffi::{CStr, OsStr};
use std::fs::Permissions;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::utimensat;
use rustix::fs::{AtFlags, CWD, Gid, Timespec, Timestamps, Uid, XattrFlags, chownat, lsetxattr};
use rustix::io::Errno;

use super::super::oracle::within;
use crate::filesystem::is_root;
use crate::fixture::{Random, random_bytes};

/// Seconds since 1970 that not every program expects: before 1901 there is no ext4, after 2446
/// neither, and xfs ends in 2486.
const SECONDS: [i64; 8] =
    [-2_000_000_000, -1, 0, 1, 1_700_000_000, 2_147_483_647, 2_147_483_648, 8_000_000_000];

const OWNERS: [u32; 4] = [0, 1000, 65_534, 4_000_000_000];

/// Modes of directories and of everything else; each can be read by its owner.
const DIRECTORY_MODES: [u32; 7] = [0o755, 0o700, 0o2775, 0o1777, 0o3711, 0o555, 0o500];
const MODES: [u32; 10] =
    [0o644, 0o600, 0o400, 0o444, 0o4755, 0o2755, 0o6711, 0o1644, 0o777, 0o7777];

/// Which of the two lists of a directory is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acl {
    Access,
    Default,
}

impl Acl {
    /// The extended attribute that holds it.
    pub fn attribute(self) -> &'static str {
        match self {
            Self::Access => "system.posix_acl_access",
            Self::Default => "system.posix_acl_default",
        }
    }
}

/// An access control list as the kernel takes it: one user and one group more than the mode has.
pub fn acl(permissions: [u16; 6]) -> Vec<u8> {
    const NOBODY_IN_PARTICULAR: u32 = u32::MAX;
    // Owner, a user, the owner's group, a group, the mask, all others (linux/posix_acl.h).
    const TAGS: [u16; 6] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions) in TAGS.into_iter().zip(permissions) {
        let id = if matches!(tag, 0x02 | 0x08) { 1234 } else { NOBODY_IN_PARTICULAR };
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// A file capability as the kernel keeps it (linux/capability.h): these bits, effective.
pub fn capability(permitted: u32) -> Vec<u8> {
    let words = [0x0200_0001, permitted, 0, 0, 0];
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Gives an entry everything, in an order in which nothing undoes another.
pub fn finish(directory: BorrowedFd<'_>, name: &CStr, random: &mut Random) {
    let path = within(directory, name);
    let kind = path.symlink_metadata().unwrap().file_type();
    if is_root() {
        let mut owner = || OWNERS[random.below(OWNERS.len())];
        let (user, group) = (Uid::from_raw(owner()), Gid::from_raw(owner()));
        chownat(CWD, &path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
    if !kind.is_symlink() {
        let modes = if kind.is_dir() { &DIRECTORY_MODES[..] } else { &MODES[..] };
        // Somebody without privilege could not remove the directory again.
        let least = if kind.is_dir() && !is_root() { 0o700 } else { 0 };
        let mode = modes[random.below(modes.len())] | least;
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    let is_plain = kind.is_file() || kind.is_dir();
    if is_plain {
        extended(&path, "user.", random);
    }
    if is_root() && random.below(3) == 0 {
        extended(&path, "trusted.", random);
    }
    if is_root() && kind.is_file() && random.below(4) == 0 {
        let value = capability(1 << random.below(30));
        set(&path, b"security.capability", &value);
    }
    // Its mask becomes the mode's group bits; the set-id bits stay.
    if !kind.is_symlink() && random.below(4) == 0 {
        set(
            &path,
            Acl::Access.attribute().as_bytes(),
            &acl([7, 5, 4, 6, random.below(8) as u16, 0]),
        );
    }
    if kind.is_dir() && random.below(3) == 0 {
        set(
            &path,
            Acl::Default.attribute().as_bytes(),
            &acl([7, 7, 5, 6, 7, random.below(8) as u16]),
        );
    }
    let mut time = || Timespec {
        tv_sec: SECONDS[random.below(SECONDS.len())],
        tv_nsec: [0, 1, 999_999_999, 123_456_789][random.below(4)],
    };
    let times = Timestamps { last_access: time(), last_modification: time() };
    utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// A few attributes of one namespace: an empty one, an odd name, bytes of any value.
fn extended(path: &Path, namespace: &str, random: &mut Random) {
    for _ in 0..random.below(3) {
        let name: &[u8] = match random.below(4) {
            0 => b"empty",
            1 => b"odd \xff\n name",
            2 => &[b'l'; 200],
            _ => b"plain",
        };
        let length = if name == b"empty" { 0 } else { 1 + random.below(300) };
        let value = random_bytes(length, random.next());
        set(path, &[namespace.as_bytes(), name].concat(), &value);
    }
}

/// A filesystem without such attributes gets none, nor does one that a container's root may not give them.
fn set(path: &Path, name: &[u8], value: &[u8]) {
    match lsetxattr(path, OsStr::from_bytes(name), value, XattrFlags::empty()) {
        Ok(()) | Err(Errno::OPNOTSUPP) => {}
        Err(Errno::PERM) if name.starts_with(b"trusted.") => {}
        Err(error) => panic!("{}: {error}", name.escape_ascii()),
    }
}
