//! What two trees may differ in, and which of it is looked at.

/// A way in which a copy differs from its source; the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A file or directory is not in the copy.
    Missing,
    /// A symlink is not in the copy, or is something else there.
    MissingSymlink,
    /// A FIFO, socket or device is not in the copy, or is something else there.
    MissingSpecial,
    /// The copy has a name that the source has not.
    Extra,
    /// A file is a directory, or the like.
    Type,
    /// A file has another length.
    Size,
    /// A file has other bytes.
    Content,
    /// A symlink points elsewhere.
    LinkTarget,
    /// A device node has another number.
    Device,
    /// Permissions of a file (rwx for all three).
    Mode,
    /// Permissions of a directory.
    DirectoryMode,
    /// Set-user-id, set-group-id, sticky.
    SpecialBits,
    /// User or group.
    Owner,
    /// The time of a file's last change, in seconds.
    FileTime,
    /// That of a directory.
    DirectoryTime,
    /// That of a symlink.
    SymlinkTime,
    /// The fraction of a second in any of these.
    TimeFraction,
    /// Two names that are one file in one tree, and two in the other.
    HardLink,
    /// Extended attributes, among them ACLs and capabilities.
    Attribute,
    /// The copy takes clearly more space than the source with its holes.
    Hole,
    /// One of the two cannot be read, so nothing is known.
    Unreadable,
}

impl Kind {
    /// Every kind, and a word for it, for programs.
    pub const ALL: [(Self, &'static str); 21] = [
        (Self::Missing, "missing"),
        (Self::MissingSymlink, "missing_symlink"),
        (Self::MissingSpecial, "missing_special"),
        (Self::Extra, "extra"),
        (Self::Type, "type"),
        (Self::Size, "size"),
        (Self::Content, "content"),
        (Self::LinkTarget, "link_target"),
        (Self::Device, "device"),
        (Self::Mode, "mode"),
        (Self::DirectoryMode, "directory_mode"),
        (Self::SpecialBits, "special_bits"),
        (Self::Owner, "owner"),
        (Self::FileTime, "file_time"),
        (Self::DirectoryTime, "directory_time"),
        (Self::SymlinkTime, "symlink_time"),
        (Self::TimeFraction, "time_fraction"),
        (Self::HardLink, "hard_link"),
        (Self::Attribute, "attribute"),
        (Self::Hole, "hole"),
        (Self::Unreadable, "unreadable"),
    ];

    /// A word for it, for programs.
    pub fn code(self) -> &'static str {
        Self::ALL[self as usize].1
    }

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
        for (index, (kind, code)) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert!(Fidelity::ALL.has(kind) && !Fidelity::ALL.without(kind).has(kind));
            let others = &Kind::ALL[index + 1..];
            assert!(others.iter().all(|other| other.1 != code), "{kind:?}");
        }
        assert!(!Fidelity::CONTENTS.has(Kind::MissingSymlink));
        assert!(Fidelity::CONTENTS_AND_SYMLINKS.has(Kind::LinkTarget));
    }
}
