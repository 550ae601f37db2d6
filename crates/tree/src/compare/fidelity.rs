//! What two trees may differ in, and which of it is looked at.

flatout_sys::words! {
    /// A way in which a copy differs from its source; the gravest first.
    #[derive(PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Kind: code, ALL {
        /// A file or directory is not in the copy.
        Missing = "missing",
        /// A symlink is not in the copy, or is something else there.
        MissingSymlink = "missing_symlink",
        /// A FIFO, socket or device is not in the copy, or is something else there.
        MissingSpecial = "missing_special",
        /// The copy has a name that the source has not.
        Extra = "extra",
        /// A file is a directory, or the like.
        Type = "type",
        /// A file has another length.
        Size = "size",
        /// A file has other bytes.
        Content = "content",
        /// A symlink points elsewhere.
        LinkTarget = "link_target",
        /// A device node has another number.
        Device = "device",
        /// Permissions of a file (rwx for all three).
        Mode = "mode",
        /// Permissions of a directory.
        DirectoryMode = "directory_mode",
        /// Set-user-id, set-group-id, sticky.
        SpecialBits = "special_bits",
        /// User or group.
        Owner = "owner",
        /// The time of a file's last change, in seconds.
        FileTime = "file_time",
        /// That of a directory.
        DirectoryTime = "directory_time",
        /// That of a symlink.
        SymlinkTime = "symlink_time",
        /// The fraction of a second in any of these.
        TimeFraction = "time_fraction",
        /// Two names that are one file in one tree, and two in the other.
        HardLink = "hard_link",
        /// Extended attributes, among them ACLs and capabilities.
        Attribute = "attribute",
        /// The copy takes clearly more space than the source with its holes.
        Hole = "hole",
        /// One of the two cannot be read, so nothing is known.
        Unreadable = "unreadable",
    }
}

impl Kind {
    const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// The kinds of difference that are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fidelity(u32);

impl Fidelity {
    /// Files and directories under their names, with their bytes.
    pub const CONTENTS: Self = Self(
        Kind::Missing.bit()
            | Kind::Extra.bit()
            | Kind::Type.bit()
            | Kind::Size.bit()
            | Kind::Content.bit()
            | Kind::Unreadable.bit(),
    );
    /// Besides, symlinks as symlinks.
    pub const CONTENTS_AND_SYMLINKS: Self =
        Self::CONTENTS.with(Kind::MissingSymlink).with(Kind::LinkTarget);
    /// Everything.
    pub const ALL: Self = Self(u32::MAX);

    /// This, and `kind`.
    pub const fn with(self, kind: Kind) -> Self {
        Self(self.0 | kind.bit())
    }

    /// This, but not `kind`.
    pub const fn without(self, kind: Kind) -> Self {
        Self(self.0 & !kind.bit())
    }

    /// Whether it is looked for.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_bits_and_words_of_their_own() {
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert!(Fidelity::ALL.has(kind) && !Fidelity::ALL.without(kind).has(kind));
            let others = &Kind::ALL[index + 1..];
            assert!(others.iter().all(|other| other.code() != kind.code()), "{kind:?}");
        }
        assert!(!Fidelity::CONTENTS.has(Kind::MissingSymlink));
        assert!(Fidelity::CONTENTS_AND_SYMLINKS.has(Kind::LinkTarget));
    }
}
