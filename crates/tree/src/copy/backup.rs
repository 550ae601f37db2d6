//! What cp(1) moves aside before something else gets its name (`--backup`).

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::listing::Lister;
use super::reason::IS_BACKUP;
use super::temporary::move_to_free;
use super::{Entry, Trouble, identity, refused, target};
use crate::file_data;

const BACK_UP: &str = "back up";
/// Others may make backups of the same file at the same time.
const ATTEMPTS: u32 = 100;

/// How backups are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// With the suffix.
    Simple,
    /// Numbered where there are numbered ones, else with the suffix.
    Existing,
    /// With a number: `.~1~`.
    Numbered,
}

/// What is overwritten is kept under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backups {
    /// How it is called.
    pub naming: Naming,
    /// What follows the name.
    pub suffix: Vec<u8>,
}

impl Backups {
    /// The name of a backup of this file in that directory, which the file itself need not be in.
    ///
    /// Errors: the directory cannot be listed.
    pub fn name_of(&self, directory: BorrowedFd<'_>, name: &CStr) -> Result<CString, Errno> {
        let number = match self.naming {
            Naming::Simple => Vec::new(),
            Naming::Existing | Naming::Numbered => highest(directory, name)?,
        };
        let tail = match self.naming {
            Naming::Simple => self.suffix.clone(),
            Naming::Existing if number.is_empty() => self.suffix.clone(),
            _ => [b".~", following(number).as_slice(), b"~"].concat(),
        };
        CString::new([name.to_bytes(), &tail].concat()).map_err(|_| Errno::INVAL)
    }

    /// Refuses to move something to a name under which the source lies.
    pub(super) fn refuse_source(
        &self,
        entry: Entry<'_>,
        source: &rustix::fs::Stat,
    ) -> Result<(), Trouble> {
        let simple = [entry.target.to_bytes(), &self.suffix].concat();
        if self.naming == Naming::Numbered || entry.source.to_bytes() != simple {
            return Ok(());
        }
        let there = rustix::fs::statat(entry.pair.target(), entry.source, AtFlags::empty());
        match there {
            Ok(there) if identity(&there) == identity(source) => Err(refused(BACK_UP, IS_BACKUP)),
            _ => Ok(()),
        }
    }

    /// Moves what bears the name aside; returns what it is called now, `None` where it is gone.
    pub(super) fn make(&self, entry: Entry<'_>) -> Result<Option<CString>, Trouble> {
        let is_copied = |backup: &CStr| match entry.directory.parent {
            Some(_) => may_be_in(entry.pair.source(), backup),
            // What lies beside a file that the user named is not copied, unless that is named, too.
            None => {
                let entry = Entry { target: backup, ..entry };
                entry.in_the_way().is_ok_and(|found| {
                    found.is_some_and(|found| entry.copy.brought.has(entry, &found))
                })
            }
        };
        self.move_aside(entry.pair.target(), entry.target, is_copied).map_err(target(BACK_UP))
    }

    /// The same for a name in a directory. What `is_copied` from the source to the name of the backup
    /// is not replaced by it: the backup gets a number then.
    pub(super) fn move_aside(
        &self,
        at: BorrowedFd<'_>,
        name: &CStr,
        is_copied: impl Fn(&CStr) -> bool,
    ) -> Result<Option<CString>, Errno> {
        let numbered = Self { naming: Naming::Numbered, suffix: self.suffix.clone() };
        for _ in 0..ATTEMPTS {
            let mut backup = self.name_of(at, name)?;
            if is_copied(&backup) {
                backup = numbered.name_of(at, name)?;
            }
            // A numbered one takes nobody's place.
            let is_numbered = backup.to_bytes() != [name.to_bytes(), &self.suffix].concat();
            let moved = if is_numbered {
                move_to_free(at, name, &backup)
            } else {
                rustix::fs::renameat(at, name, at, &backup)
            };
            match moved {
                Ok(()) => return Ok(Some(backup)),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::EXIST) if is_numbered => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    /// Whether a name is that of a backup.
    pub(super) fn has_made(&self, name: &CStr) -> bool {
        let (name, tail) = (name.to_bytes(), b".~");
        let is_numbered = name.ends_with(b"~") && {
            let begin = name.windows(tail.len()).rposition(|window| window == tail);
            begin.is_some_and(|begin| begin > 0 && number_of(&name[..begin], name).is_some())
        };
        is_numbered || name.len() > self.suffix.len() && name.ends_with(&self.suffix)
    }
}

/// Whether a directory may have a name: it has, or nobody knows. That it has not is asked in two ways:
/// what bears that name in the target would be gone.
pub(super) fn may_be_in(directory: BorrowedFd<'_>, name: &CStr) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let looked = file_data::look(directory, name).err();
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty()).err();
    [looked, opened] != [Some(Errno::NOENT); 2]
}

/// The highest number of a backup of this file, of however many digits; none where there is none.
fn highest(directory: BorrowedFd<'_>, name: &CStr) -> Result<Vec<u8>, Errno> {
    let flags = super::directory::DIRECTORY;
    let listed = rustix::fs::openat(directory, c".", flags, Mode::empty())?;
    let mut highest = Vec::new();
    let result = Lister::default().each(std::os::fd::AsFd::as_fd(&listed), |found, _| {
        let number = number_of(name.to_bytes(), found.to_bytes()).unwrap_or_default();
        if (number.len(), number) > (highest.len(), &highest[..]) {
            highest = number.to_vec();
        }
        Ok(())
    });
    result.map_err(|refusal: super::Refusal| refusal.errno().unwrap_or(Errno::IO))?;
    Ok(highest)
}

/// The digits of the number after this one.
fn following(mut digits: Vec<u8>) -> Vec<u8> {
    let nines = digits.iter().rev().take_while(|&&digit| digit == b'9').count();
    let rest = digits.len() - nines;
    digits[rest..].fill(b'0');
    match rest.checked_sub(1) {
        Some(last) => digits[last] += 1,
        None => digits.insert(0, b'1'),
    }
    digits
}

/// The digits of the number of a backup of `name`; `None`: it is none.
fn number_of<'f>(name: &[u8], found: &'f [u8]) -> Option<&'f [u8]> {
    let digits = found.strip_prefix(name)?.strip_prefix(b".~")?.strip_suffix(b"~")?;
    let is_number =
        !digits.is_empty() && digits[0] != b'0' && digits.iter().all(u8::is_ascii_digit);
    is_number.then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_with_a_number_count() {
        for (found, number) in [
            ("a.~1~", Some("1")),
            ("a.~12~", Some("12")),
            ("a.~0~", None),
            ("a.~01~", None),
            ("a.~~", None),
            ("a.~1x~", None),
            ("a~", None),
            ("ab.~1~", None),
            ("a.~99999999999999999999~", Some("99999999999999999999")),
        ] {
            let expected = number.map(str::as_bytes);
            assert_eq!(number_of(b"a", found.as_bytes()), expected, "{found}");
        }
    }

    #[test]
    fn numbers_go_on_however_many_digits_they_have() {
        let backups = Backups { naming: Naming::Numbered, suffix: b"~".to_vec() };
        let place = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(place.path()).unwrap();
        for (found, next) in [
            ("", "a.~1~"),
            ("a.~9~", "a.~10~"),
            ("a.~18~", "a.~19~"),
            ("a.~18446744073709551615~", "a.~18446744073709551616~"),
            ("a.~99999999999999999999~", "a.~100000000000000000000~"),
        ] {
            if !found.is_empty() {
                std::fs::write(place.path().join(found), "").unwrap();
            }
            let name = backups.name_of(std::os::fd::AsFd::as_fd(&directory), c"a").unwrap();
            assert_eq!(name.to_str(), Ok(next));
        }
        assert!(backups.has_made(c"a.~18446744073709551616~"));
    }
}
