//! The phases in the order of IO500, and two more; what one operation of each is.

use serde::{Deserialize, Serialize};

/// Bytes of a block of the strided file, and of a small file, as IO500 has them.
pub(super) const STRIDED_BYTES: usize = 47_008;
pub(super) const SMALL_BYTES: usize = 3_901;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum Phase {
    OwnWrite,
    OwnCreate,
    StridedWrite,
    SharedCreate,
    Find,
    OwnRead,
    OwnStat,
    StridedRead,
    SharedStat,
    OwnDelete,
    SharedRead,
    SharedDelete,
    ContiguousWrite,
    ContiguousRead,
}

/// A file of data, or a directory of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A file of each process.
    OwnFile,
    /// A file of all: blocks in turn, or a range for each process.
    Strided,
    Contiguous,
    /// A directory of each process, and one of all.
    OwnDirectory,
    SharedDirectory,
}

impl Phase {
    /// As IO500 orders them; the last two are not among its phases.
    pub(super) const ALL: [Self; 14] = [
        Self::OwnWrite,
        Self::OwnCreate,
        Self::StridedWrite,
        Self::SharedCreate,
        Self::Find,
        Self::OwnRead,
        Self::OwnStat,
        Self::StridedRead,
        Self::SharedStat,
        Self::OwnDelete,
        Self::SharedRead,
        Self::SharedDelete,
        Self::ContiguousWrite,
        Self::ContiguousRead,
    ];

    /// Its id, the phase of IO500 that it is like, and the verb of its errors.
    fn words(self) -> (&'static str, Option<&'static str>, &'static str) {
        match self {
            Self::OwnWrite => ("disk/own-file-write", Some("ior-easy-write"), "write"),
            Self::OwnCreate => ("disk/own-directory-create", Some("mdtest-easy-write"), "create"),
            Self::StridedWrite => ("disk/shared-strided-write", Some("ior-hard-write"), "write"),
            Self::SharedCreate => {
                ("disk/shared-directory-create", Some("mdtest-hard-write"), "create and write")
            }
            Self::Find => ("disk/find", Some("find"), "list and examine"),
            Self::OwnRead => ("disk/own-file-read", Some("ior-easy-read"), "read"),
            Self::OwnStat => ("disk/own-directory-stat", Some("mdtest-easy-stat"), "examine"),
            Self::StridedRead => ("disk/shared-strided-read", Some("ior-hard-read"), "read"),
            Self::SharedStat => ("disk/shared-directory-stat", Some("mdtest-hard-stat"), "examine"),
            Self::OwnDelete => ("disk/own-directory-delete", Some("mdtest-easy-delete"), "remove"),
            Self::SharedRead => ("disk/shared-directory-read", Some("mdtest-hard-read"), "read"),
            Self::SharedDelete => {
                ("disk/shared-directory-delete", Some("mdtest-hard-delete"), "remove")
            }
            Self::ContiguousWrite => ("disk/shared-contiguous-write", None, "write"),
            Self::ContiguousRead => ("disk/shared-contiguous-read", None, "read"),
        }
    }

    pub(super) fn id(self) -> &'static str {
        self.words().0
    }

    pub(super) fn like(self) -> &'static str {
        self.words().1.unwrap_or("none")
    }

    pub(super) fn verb(self) -> &'static str {
        self.words().2
    }

    pub(super) fn target(self) -> Target {
        match self {
            Self::OwnWrite | Self::OwnRead => Target::OwnFile,
            Self::StridedWrite | Self::StridedRead => Target::Strided,
            Self::ContiguousWrite | Self::ContiguousRead => Target::Contiguous,
            Self::OwnCreate | Self::OwnStat | Self::OwnDelete | Self::Find => Target::OwnDirectory,
            Self::SharedCreate | Self::SharedStat | Self::SharedRead | Self::SharedDelete => {
                Target::SharedDirectory
            }
        }
    }

    /// Whether it makes what later phases read, stat or remove, and ends at the stonewall.
    pub(super) fn makes(self) -> bool {
        matches!(
            self,
            Self::OwnWrite
                | Self::OwnCreate
                | Self::StridedWrite
                | Self::SharedCreate
                | Self::ContiguousWrite
        )
    }

    /// Whether its figure is bytes per second.
    pub(super) fn is_of_bytes(self) -> bool {
        !matches!(self.target(), Target::OwnDirectory | Target::SharedDirectory)
    }

    pub(super) fn reads_bytes(self) -> bool {
        self.is_of_bytes() && !self.makes()
    }
}

impl Target {
    /// Bytes of one item, where those of files of their own and of ranges have so many.
    pub(super) fn item_bytes(self, block_bytes: usize) -> usize {
        match self {
            Self::OwnFile | Self::Contiguous => block_bytes,
            Self::Strided => STRIDED_BYTES,
            Self::OwnDirectory => 0,
            Self::SharedDirectory => SMALL_BYTES,
        }
    }
}
