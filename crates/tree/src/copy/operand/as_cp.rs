//! What goes where by the rules of cp(1): what bears a name already is looked at when its turn comes,
//! and symlinks are followed as the user wants it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::super::reason::{INSIDE, OVER_OTHER, SAME};
use super::{Naming, Objection, Planner, failed, place, refused};
use crate::copy::standing::is_read;
use crate::copy::written::{LINK, MAKE_SYMLINK};
use crate::copy::{Failure, Follow, Form, Operand, Rules, Skip, identity, kind_of};

/// How cp takes its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wording {
    /// What becomes of them.
    pub rules: Rules,
    /// Whether directories are copied at all (`-R`).
    pub recursive: bool,
    /// Whether a source goes to its whole path (`--parents`).
    pub parents: bool,
    /// Whether a source that is named twice is copied twice: the first copy is backed up.
    pub repeats: bool,
}

impl Wording {
    /// What is made of a source, in the words of a failure.
    pub(super) fn making(&self, source: &Stat) -> &'static str {
        match (self.rules.form, kind_of(source)) {
            (_, FileType::Directory) => "make the directory",
            (Form::HardLink, _) => LINK,
            (Form::Symlink, _) => MAKE_SYMLINK,
            _ if is_read(&self.rules, source) => "create",
            (_, FileType::Symlink) => "make the symlink",
            (_, FileType::Fifo) => "make the FIFO",
            _ => "make the device",
        }
    }
}

impl<'a> Planner<'a> {
    pub(super) fn add_as_cp(
        &mut self,
        source: &'a Path,
        wording: Wording,
    ) -> Result<(), Objection> {
        let facts = match wording.rules.follow {
            Follow::Never => rustix::fs::lstat(source),
            Follow::Named | Follow::Always => rustix::fs::stat(source),
        };
        let facts = facts.map_err(failed("examine", source))?;
        let is_directory = kind_of(facts).is_dir();
        if is_directory && !wording.recursive {
            return Err(Objection::Omitted { directory: source.to_owned() });
        }
        let name = match (wording.parents, self.place) {
            (true, Naming::Into(_)) => Some(relative(source).as_os_str()),
            _ => place::last_name(source),
        };
        let of_both = |failure| Failure { other: Some(source.into()), ..failure };
        let target = self.target(name, &facts).map_err(of_both)?;
        if let Naming::Exactly(_) = self.place {
            let above = rustix::fs::stat(place::parent(&target).join("."));
            above.map_err(|errno| {
                let is_missing = errno == Errno::NOENT;
                let operation = if is_missing { wording.making(&facts) } else { "stat" };
                of_both(failed(operation, &target)(errno))
            })?;
        }
        let operand = Operand { source: source.to_owned(), target };
        if is_directory {
            let Rules { skip, form, .. } = wording.rules;
            match self.examine_directory(&operand, &facts) {
                // Nothing in it can be lost.
                Err(Objection::Refused { reason: SAME, .. })
                    if skip == Skip::Existing || form == Form::HardLink =>
                {
                    return Ok(());
                }
                examined => examined?,
            }
        }
        self.accept(operand, name, &facts)
    }

    /// Refuses what cp would find out half way.
    fn examine_directory(&self, operand: &Operand, facts: &Stat) -> Result<(), Objection> {
        let followed = self.wording.filter(|wording| wording.rules.into_symlinks);
        let start = match written(&operand.target, followed) {
            Some(found) if !kind_of(found).is_dir() => return refused(operand, OVER_OTHER),
            Some(found) if identity(&found) == identity(facts) => return refused(operand, SAME),
            Some(_) => operand.target.clone(),
            None => place::parent(&operand.target),
        };
        match place::lies_inside(&start, facts, self.reach) {
            true => refused(operand, INSIDE),
            false => Ok(()),
        }
    }
}

/// What is there already where a copy goes: by the rules of cp, what a symlink leads to.
pub(super) fn written(target: &Path, wording: Option<Wording>) -> Option<Stat> {
    match wording {
        Some(_) => rustix::fs::stat(target).ok(),
        None => rustix::fs::lstat(target).ok(),
    }
}

/// A path as it is appended to another one.
fn relative(path: &Path) -> &Path {
    let bytes = place::without_slashes(path).as_os_str().as_bytes();
    let start = bytes.iter().position(|&byte| byte != b'/').unwrap_or(bytes.len());
    Path::new(std::ffi::OsStr::from_bytes(&bytes[start..]))
}
