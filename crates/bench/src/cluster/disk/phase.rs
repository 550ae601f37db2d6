//! The phases in the order of IO500, and two more; what one operation of each is.

use serde::{Deserialize, Serialize};

/// Bytes of a block of the strided file, and of a small file, as IO500 has them.
pub(super) const STRIDED_BYTES: usize = 47_008;
pub(super) const SMALL_BYTES: usize = 3_901;

flatout_sys::words! {
    /// What is done, as IO500 orders it; the last two are not among its phases.
    #[derive(Default, Serialize, Deserialize)]
    pub(in super::super) enum Phase: id, ALL {
        #[default]
        OwnWrite = "disk/own-file-write",
        OwnCreate = "disk/own-directory-create",
        StridedWrite = "disk/shared-strided-write",
        SharedCreate = "disk/shared-directory-create",
        Find = "disk/find",
        OwnRead = "disk/own-file-read",
        OwnStat = "disk/own-directory-stat",
        StridedRead = "disk/shared-strided-read",
        SharedStat = "disk/shared-directory-stat",
        OwnDelete = "disk/own-directory-delete",
        SharedRead = "disk/shared-directory-read",
        SharedDelete = "disk/shared-directory-delete",
        ContiguousWrite = "disk/shared-contiguous-write",
        ContiguousRead = "disk/shared-contiguous-read",
    }
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
    /// The phase of IO500 that it is like, the verb of its errors, and where it is done.
    fn known(self) -> (&'static str, &'static str, Target) {
        use Target::{Contiguous, OwnDirectory, OwnFile, SharedDirectory, Strided};

        match self {
            Self::OwnWrite => ("ior-easy-write", "write", OwnFile),
            Self::OwnCreate => ("mdtest-easy-write", "create", OwnDirectory),
            Self::StridedWrite => ("ior-hard-write", "write", Strided),
            Self::SharedCreate => ("mdtest-hard-write", "create and write", SharedDirectory),
            Self::Find => ("find", "list and examine", OwnDirectory),
            Self::OwnRead => ("ior-easy-read", "read", OwnFile),
            Self::OwnStat => ("mdtest-easy-stat", "examine", OwnDirectory),
            Self::StridedRead => ("ior-hard-read", "read", Strided),
            Self::SharedStat => ("mdtest-hard-stat", "examine", SharedDirectory),
            Self::OwnDelete => ("mdtest-easy-delete", "remove", OwnDirectory),
            Self::SharedRead => ("mdtest-hard-read", "read", SharedDirectory),
            Self::SharedDelete => ("mdtest-hard-delete", "remove", SharedDirectory),
            Self::ContiguousWrite => ("none", "write", Contiguous),
            Self::ContiguousRead => ("none", "read", Contiguous),
        }
    }

    pub(super) fn like(self) -> &'static str {
        self.known().0
    }

    pub(super) fn verb(self) -> &'static str {
        self.known().1
    }

    pub(super) fn target(self) -> Target {
        self.known().2
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
