//! POSIX access control lists as the kernel hands them out: raw values of two attributes.
//!
//! They are carried as they are; only what decides about the permissions is read
//! (acl(5), `linux/posix_acl_xattr.h`).

use std::ffi::CStr;

/// The list that is in force.
pub(super) const ACCESS: &CStr = c"system.posix_acl_access";
/// The list that a directory hands on.
pub(super) const DEFAULT: &CStr = c"system.posix_acl_default";

const VERSION: u32 = 2;
const HEADER_BYTES: usize = 4;
/// Tag and permissions in two bytes each, and an id in four.
const ENTRY_BYTES: usize = 8;

const OWNER: u16 = 0x01;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// The permissions of one entry; `None` if the list has no such entry, or is none.
fn entry(value: &[u8], tag: u16) -> Option<u32> {
    let (version, entries) = value.split_at_checked(HEADER_BYTES)?;
    if version != VERSION.to_le_bytes() || entries.len() % ENTRY_BYTES != 0 {
        return None;
    }
    let found = entries.chunks_exact(ENTRY_BYTES).find(|entry| entry[..2] == tag.to_le_bytes())?;
    Some(u32::from(u16::from_le_bytes([found[2], found[3]])) & 0o7)
}

/// What the group of the file may do by this list. The mode does not say it: its group bits are the
/// mask, which bounds the named users and groups, too.
pub(super) fn group_permissions(value: &[u8]) -> Option<u32> {
    Some(entry(value, GROUP)? & entry(value, MASK).unwrap_or(0o7))
}

/// The nine permission bits that a list stands for.
pub(super) fn permissions(value: &[u8]) -> Option<u32> {
    let group = entry(value, MASK).or_else(|| entry(value, GROUP))?;
    Some(entry(value, OWNER)? << 6 | group << 3 | entry(value, OTHER)?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::list;
    use super::*;

    #[test]
    fn the_mask_bounds_the_group() {
        let value =
            list(&[(OWNER, 7, !0), (2, 7, 99), (GROUP, 5, !0), (MASK, 3, !0), (OTHER, 1, !0)]);
        assert_eq!(group_permissions(&value), Some(1));
        assert_eq!(permissions(&value), Some(0o731));
        let plain = list(&[(OWNER, 6, !0), (GROUP, 4, !0), (OTHER, 0, !0)]);
        assert_eq!((group_permissions(&plain), permissions(&plain)), (Some(4), Some(0o640)));
    }

    #[test]
    fn what_is_no_list_says_nothing() {
        for value in [&b""[..], b"\x02\0\0\0", b"\x03\0\0\0\x04\0\x07\0\0\0\0\0", b"\x02\0\0\0\x04"]
        {
            assert_eq!(group_permissions(value), None);
            assert_eq!(permissions(value), None);
        }
    }
}
