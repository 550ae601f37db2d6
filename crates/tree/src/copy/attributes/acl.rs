//! POSIX access control lists as the kernel hands them out: raw values of two attributes.
//!
//! They are carried as they are; only what decides about the permissions is read
//! (acl(5), `linux/posix_acl_xattr.h`).

use std::ffi::CStr;

/// The list that is in force.
pub(super) const ACCESS: &CStr = c"system.posix_acl_access";
/// The list that a directory hands on.
pub(super) const DEFAULT: &CStr = c"system.posix_acl_default";

/// That of a file of NFSv4, and what its entries have at most where they are the mode.
const NFS4: &CStr = c"system.nfs4_acl";
const NFS4_DENY: u32 = 1;
const NFS4_GROUP: u32 = 0x40;

const VERSION: u32 = 2;
const HEADER_BYTES: usize = 4;
/// Tag and permissions in two bytes each, and an id in four.
const ENTRY_BYTES: usize = 8;

/// A list of owner, group and others is their permissions in the mode, and is kept there.
pub(super) const MODE_BYTES: usize = HEADER_BYTES + 3 * ENTRY_BYTES;

const OWNER: u16 = 0x01;
const NAMED_USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const NAMED_GROUP: u16 = 0x08;
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

/// What the group of the file and all others may do at most when this list is lost, as six permission
/// bits. The mode does not say it: its group bits are the mask, which bounds the named users and groups,
/// too. And those whom an entry names are among the others from then on, or in the group: nobody may
/// do more than by the list.
pub(super) fn without_list(value: &[u8]) -> Option<u32> {
    let mask = entry(value, MASK).unwrap_or(0o7);
    let named = |tag| {
        let entries = value.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(ENTRY_BYTES);
        let of_tag = entries.filter(move |entry: &&[u8]| entry[..2] == u16::to_le_bytes(tag));
        of_tag.fold(0o7, |all, entry| all & u32::from(entry[2]) & mask)
    };
    let group = entry(value, GROUP)? & mask & named(NAMED_USER);
    let other = entry(value, OTHER)? & named(NAMED_USER) & named(NAMED_GROUP);
    Some(group << 3 | other)
}

/// The nine permission bits that a list stands for.
pub(super) fn permissions(value: &[u8]) -> Option<u32> {
    let group = entry(value, MASK).or_else(|| entry(value, GROUP))?;
    Some(entry(value, OWNER)? << 6 | group << 3 | entry(value, OTHER)?)
}

/// Whether a list of NFSv4 (RFC 7530, 6.2.1) names nobody but owner, group and everyone, and hands nothing on:
/// servers show such a one of each file, and it says what the mode does.
pub(super) fn is_mode(name: &CStr, value: &[u8]) -> bool {
    name == NFS4 && is_mode_of_nfs4(value)
}

fn is_mode_of_nfs4(value: &[u8]) -> bool {
    let word = |at: usize| {
        let bytes = value.get(at..)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes))
    };
    let (Some(count), mut at) = (word(0), 4) else { return false };
    for _ in 0..count {
        let (Some(kind), Some(flags), Some(length)) = (word(at), word(at + 4), word(at + 12))
        else {
            return false;
        };
        let who = value.get(at + 16..).and_then(|rest| rest.get(..length as usize));
        let is_plain = kind <= NFS4_DENY && flags & !NFS4_GROUP == 0;
        if !is_plain || !matches!(who, Some(b"OWNER@" | b"GROUP@" | b"EVERYONE@")) {
            return false;
        }
        at += 16 + (length as usize).next_multiple_of(4);
    }
    at == value.len()
}

#[cfg(test)]
mod tests {
    use super::super::tests::list;
    use super::*;

    #[test]
    fn the_mask_bounds_the_group() {
        let value =
            list(&[(OWNER, 7, !0), (2, 7, 99), (GROUP, 5, !0), (MASK, 3, !0), (OTHER, 1, !0)]);
        assert_eq!(without_list(&value), Some(0o11));
        assert_eq!(permissions(&value), Some(0o731));
        let plain = list(&[(OWNER, 6, !0), (GROUP, 4, !0), (OTHER, 0, !0)]);
        assert_eq!((without_list(&plain), permissions(&plain)), (Some(0o40), Some(0o640)));
    }

    #[test]
    fn whom_a_list_keeps_out_stays_out_when_it_is_lost() {
        let base = [(OWNER, 7, !0), (GROUP, 5, !0), (MASK, 6, !0), (OTHER, 7, !0)];
        let with = |tag, permissions| {
            let mut entries = base.to_vec();
            entries.push((tag, permissions, 99));
            without_list(&list(&entries))
        };
        assert_eq!(without_list(&list(&base)), Some(0o47), "the mask does not bound all others");
        assert_eq!(with(NAMED_USER, 0), Some(0));
        assert_eq!(with(NAMED_USER, 7), Some(0o46), "the mask bounds those who are named");
        assert_eq!(with(NAMED_GROUP, 4), Some(0o44));
    }

    #[test]
    fn a_list_of_nfs4_that_names_nobody_is_the_mode() {
        let list = |entries: &[(u32, u32, &str)]| {
            let mut value = (entries.len() as u32).to_be_bytes().to_vec();
            for (kind, flags, who) in entries {
                for word in [*kind, *flags, 0x16_01e7, who.len() as u32] {
                    value.extend(word.to_be_bytes());
                }
                value.extend(who.as_bytes());
                value.resize(value.len().next_multiple_of(4), 0);
            }
            value
        };
        let usual = [(1, 0, "OWNER@"), (0, 0, "OWNER@"), (0, 0x40, "GROUP@"), (0, 0, "EVERYONE@")];
        assert!(is_mode_of_nfs4(&list(&usual)));
        for other in [(0, 0, "1234@domain"), (0, 1, "OWNER@"), (2, 0, "EVERYONE@")] {
            assert!(!is_mode_of_nfs4(&list(&[usual[0], other])), "{other:?}");
        }
        let mut cut = list(&usual);
        cut.pop();
        assert!(!is_mode_of_nfs4(&cut) && !is_mode_of_nfs4(b""));
    }

    #[test]
    fn what_is_no_list_says_nothing() {
        for value in [&b""[..], b"\x02\0\0\0", b"\x03\0\0\0\x04\0\x07\0\0\0\0\0", b"\x02\0\0\0\x04"]
        {
            assert_eq!(without_list(value), None);
            assert_eq!(permissions(value), None);
        }
    }
}
