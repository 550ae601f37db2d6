//! The rules of cp(1) where they are other than ours: what is followed, made, written to, skipped.

use rustix::fs::OFlags;

use super::directory::DIRECTORY;
use super::{Appearance, Copy, CopyOptions, Directory};

/// What cp does with entries. Ours hold where a copy has none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Which symlinks of the source stand for what they lead to.
    pub follow: Follow,
    /// What becomes of an entry that is no directory.
    pub form: Form,
    /// Whether no bytes are copied (`--attributes-only`).
    pub attributes_only: bool,
    /// What becomes of FIFOs, sockets and devices.
    pub specials: Specials,
    /// What has to go before something is made.
    pub clearing: Clearing,
    /// What is left as it is.
    pub skip: Skip,
    /// Whether the user is asked before anything is overwritten ([`super::event::Watch::consents`]).
    pub asks: bool,
    /// Whether a symlink of the target that leads to a directory stands for it
    /// (`--keep-directory-symlink`).
    pub into_symlinks: bool,
    /// Whether a file is made where a dangling symlink of the target leads (POSIX wants it).
    pub through_dangling: bool,
}

/// Which symlinks of the source are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// None (`-P`).
    Never,
    /// Those that the user names (`-H`).
    Named,
    /// All (`-L`).
    Always,
}

/// What becomes of an entry that is no directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A copy.
    Copy,
    /// Another name of it (`-l`).
    HardLink,
    /// A symlink that leads to it (`-s`).
    Symlink,
}

/// What becomes of FIFOs, sockets and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// One of the same kind (`-R`).
    Made,
    /// A file with what can be read from them.
    Read,
}

/// What has to go before something is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    /// Nothing.
    Nothing,
    /// What cannot be opened (`--force`).
    Refused,
    /// Whatever is there (`--remove-destination`).
    First,
}

/// What is left as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Skip {
    /// Nothing.
    #[default]
    Nothing,
    /// What is as new as its source (`--update`).
    NotOlder,
    /// Whatever is there (`--no-clobber`).
    Existing,
    /// The same, and it is a failure (`--update=none-fail`).
    ExistingFails,
}

/// How directories of the source are opened, and those of the target.
pub(super) fn opening(options: &CopyOptions) -> (OFlags, OFlags) {
    let way = |follows: bool| if follows { DIRECTORY - OFlags::NOFOLLOW } else { DIRECTORY };
    let (source, target) = match options.appearance {
        Appearance::AsFound(Rules { follow, into_symlinks, .. }) => {
            (way(follow != Follow::Never), way(into_symlinks))
        }
        _ => (DIRECTORY, DIRECTORY),
    };
    (source | OFlags::NOATIME, target)
}

impl Copy<'_> {
    /// The rules of cp for what lies in this directory, if they hold: what is not named by the user
    /// is not followed for being named.
    pub(super) fn rules_in(&self, directory: &Directory) -> Option<Rules> {
        self.rules().map(|rules| match rules.follow {
            Follow::Named if directory.parent.is_some() => Rules { follow: Follow::Never, ..rules },
            _ => rules,
        })
    }

    /// The rules of cp, if they hold.
    pub(super) fn rules(&self) -> Option<Rules> {
        match self.options.appearance {
            Appearance::AsFound(rules) => Some(rules),
            _ => None,
        }
    }

    /// Whether symlinks of a directory of the source stand for what they lead to.
    pub(super) fn follows(&self, directory: &Directory) -> bool {
        self.rules().is_some_and(|rules| match rules.follow {
            Follow::Never => false,
            Follow::Named => directory.parent.is_none(),
            Follow::Always => true,
        })
    }
}
