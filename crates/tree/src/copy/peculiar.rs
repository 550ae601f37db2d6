//! Names that need care: those of one directory of the source that the target may take for one
//! (it folds case, for example), and those that look like temporary names of ours.
//!
//! What is kept is next to nothing: of most directories no name is peculiar. Whether a target folds
//! names is not asked; where two names are told apart after all, care costs a look at what was made.

mod key;
mod odd;
mod taken;

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::{FileType, Mode, OFlags, fstatvfs};

use super::existing::OVERWRITE;
use super::lane::split;
use super::temporary::is_temporary;
use super::{Copy, Directory, Entry, Identity, Operand, Pair, Trouble, identity, kind_of, refused};
use crate::file_data::look;
use crate::lock::lock;
pub(super) use key::key;
use odd::{Kept, is_odd};
use taken::{Taken, lists};

/// Names of one directory that are compared with each other at most.
const MOST_COMPARED: usize = 1 << 16;
pub(super) const ONE_NAME: &str = "another name of the source is the same name here";
pub(super) const MADE_UP: &str = "what is there has a longer name, and this one besides";

/// What is peculiar about the names of a directory.
#[derive(Debug, Default)]
pub(super) struct Peculiar {
    /// Keys that several names have.
    alike: HashSet<u64>,
    has_temporary: bool,
    has_odd: bool,
    home: Home,
    /// Locked as long as one of the names that the target may take for one is copied.
    taken: Mutex<Taken>,
}

/// Names of one directory, as they are listed.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Keys; in order when there are as many as are compared.
    seen: Vec<u64>,
    directories: HashMap<u64, CString>,
    found: Peculiar,
}

/// What a filesystem does with names.
#[derive(Debug, Clone, Copy, Default)]
struct Home {
    /// Bytes of the longest one, where it may leave away what is more (affs, hfs); msdos, with 12 letters of them,
    /// has eight, a dot and three.
    longest: Option<usize>,
    /// Whether odd ones may become others.
    may_rename: bool,
}

impl Home {
    fn of(directory: BorrowedFd<'_>) -> Self {
        let most = fstatvfs(directory).map_or(0, |found| found.f_namemax as usize);
        let home = flatout_sys::filesystem::of(directory);
        Self {
            longest: Some(most).filter(|most| (1..255).contains(most)),
            may_rename: home.is_ok_and(|home| home.is_served() || home.name == "udf"),
        }
    }

    /// The key of what is left of a name.
    fn key(self, name: &CStr) -> u64 {
        let bytes = name.to_bytes();
        let left = match self.longest {
            // Linux tells six bytes for each letter.
            Some(12 | 72) => {
                let mut parts = bytes.split(|byte| *byte == b'.');
                let [base, rest] = [8, 3].map(|most| {
                    let part = parts.next().unwrap_or_default();
                    &part[..part.len().min(most)]
                });
                [base, rest].join(&b'.')
            }
            Some(most) if most < bytes.len() => bytes[..most].to_vec(),
            _ => return key(name),
        };
        CString::new(left).map_or(0, |left| key(&left))
    }
}

impl Names {
    fn within(home: Home) -> Self {
        Self { found: Peculiar { home, ..Peculiar::default() }, ..Self::default() }
    }

    /// Takes note of a name.
    pub(super) fn add(&mut self, name: &CStr, kind: FileType) {
        let key = self.found.home.key(name);
        if self.seen.len() < MOST_COMPARED {
            self.seen.push(key);
            if kind.is_dir() {
                self.directories.entry(key).or_insert_with(|| name.to_owned());
            }
            if self.seen.len() == MOST_COMPARED {
                self.compare();
            }
        } else if self.seen.binary_search(&key).is_ok() {
            self.found.alike.insert(key);
        }
        self.found.has_temporary |= !kind.is_dir() && is_temporary(name);
        self.found.has_odd |= self.found.home.may_rename && is_odd(name);
    }

    fn compare(&mut self) {
        self.seen.sort_unstable();
        let pairs = self.seen.windows(2).filter(|pair| pair[0] == pair[1]);
        self.found.alike.extend(pairs.map(|pair| pair[0]));
    }

    /// What is peculiar about them all.
    fn finish(mut self) -> Option<Peculiar> {
        self.compare();
        let Peculiar { alike, has_temporary, has_odd, .. } = &self.found;
        let is_usual = alike.is_empty() && !has_temporary && !has_odd;
        (!is_usual).then_some(self.found)
    }
}

/// Directories with peculiar names, and what was made under such names. Shared by all threads.
#[derive(Debug, Default)]
pub(super) struct Peculiarities {
    has_any: AtomicBool,
    /// By the number of the directory.
    directories: Mutex<HashMap<u64, Arc<Peculiar>>>,
    /// By the number of the directory: keys of names that it has listed and that look as if they were made up.
    listed: Mutex<HashMap<u64, HashSet<u64>>>,
    /// The last device of a target, and what it does with names.
    home: Mutex<(u64, Home)>,
    kept: Kept,
    /// The last device of a source, and whether somebody else than this kernel lists its names.
    served: Mutex<(u64, bool)>,
}

/// Whether a name is as filesystems make them up for longer ones (`LONGFI~1.TXT`): at most eight letters, with a
/// number at their end, and three behind a dot.
fn looks_made_up(name: &CStr) -> bool {
    let mut parts = name.to_bytes().splitn(2, |byte| *byte == b'.');
    let [base, rest] = [(); 2].map(|()| parts.next().unwrap_or_default());
    let number = base.rsplit(|byte| *byte == b'~').next().unwrap_or_default();
    let has_number =
        !number.is_empty() && number.len() < base.len() && number.iter().all(u8::is_ascii_digit);
    has_number && base.len() <= 8 && rest.len() <= 3
}

impl Copy<'_> {
    /// The same copy, of operands that may lie in each other: a name that is copied twice must not
    /// count for two, or the last name of its file would be a file of its own.
    pub fn with_repeated_names(mut self) -> Self {
        self.links = self.links.for_repeated_names();
        self
    }

    /// The same copy, which is to be of these rounds of operands.
    pub fn with_rounds(self, rounds: &[Vec<Operand>]) -> Self {
        let targets = rounds.iter().flatten().map(|operand| split(&operand.target));
        self.peculiarities.expect(targets);
        self
    }

    /// Whether a directory may list a name twice: a server by mistake, and any filesystem where a file is
    /// replaced meanwhile. Then a file with several names would be forgotten before the last of them
    /// came, and by the rules of cp a backup be replaced by one of the new file.
    pub(super) fn may_repeat_names(&self, pair: &Pair) -> bool {
        let device = pair.found.facts.st_dev;
        let mut served = lock(&self.peculiarities.served);
        if served.0 != device {
            let home = flatout_sys::filesystem::of(pair.source());
            *served = (device, home.is_ok_and(|home| home.is_served()));
        }
        served.1 || self.rules().is_some()
    }
}

impl Peculiarities {
    /// Operands go to these names in these directories.
    fn expect<'p>(&self, mut targets: impl Iterator<Item = (&'p Path, CString)>) {
        let Some((target, first)) = targets.next() else { return };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(Path::new(".").join(target), flags, Mode::empty());
        let mut all =
            Names::within(opened.map_or(Home::default(), |found| Home::of(found.as_fd())));
        // Directories are merged, whatever they are called.
        let names = std::iter::once(first).chain(targets.map(|(_, name)| name));
        names.for_each(|name| all.add(&name, FileType::RegularFile));
        self.remember(Directory::NUMBER_OF_BASES, all.finish());
    }

    /// Takes the names of a directory.
    pub(super) fn names(&self, pair: &Pair) -> Names {
        let device = pair.found.target.0;
        let mut home = lock(&self.home);
        if home.0 != device {
            *home = (device, Home::of(pair.target()));
        }
        Names::within(home.1)
    }

    /// Remembers what is peculiar about the names of a directory. Directories that are there already have
    /// their names before any file.
    pub(super) fn remember_names(&self, directory: u64, mut names: Names, pair: &Pair) {
        let directories = std::mem::take(&mut names.directories);
        let peculiar = names.finish().inspect(|peculiar| {
            let mut taken = lock(&peculiar.taken);
            for (_, name) in directories.iter().filter(|(key, _)| peculiar.alike.contains(*key)) {
                let both = [pair.source(), pair.target()].map(|at| look(at, name));
                if let [Ok(source), Ok(found)] = both
                    && kind_of(found).is_dir()
                {
                    let key = peculiar.home.key(name);
                    taken.note(pair, (name, key), [&source, &found].map(identity));
                }
            }
        });
        self.remember(directory, peculiar);
    }

    fn remember(&self, directory: u64, peculiar: Option<Peculiar>) {
        match peculiar {
            Some(peculiar) => {
                lock(&self.directories).insert(directory, Arc::new(peculiar));
                self.has_any.store(true, Ordering::Relaxed);
            }
            None => self.forget(directory),
        }
    }

    /// The directory is complete.
    pub(super) fn forget(&self, directory: u64) {
        if self.has_any.load(Ordering::Relaxed) {
            lock(&self.directories).remove(&directory);
            lock(&self.listed).remove(&directory);
        }
    }

    /// Whether the filesystem made the name of an entry up for what has another one: it is not listed.
    ///
    /// Cost: the directory is listed, once for all that was there then, where the filesystem may do that.
    pub(super) fn is_made_up(&self, entry: Entry<'_>) -> bool {
        if !looks_made_up(entry.target) {
            return false;
        }
        let (directory, number) = (entry.pair.target(), entry.directory.number);
        let own = key(entry.target);
        let is_listed = || lock(&self.listed).get(&number).is_some_and(|keys| keys.contains(&own));
        if !flatout_sys::filesystem::of(directory)
            .is_ok_and(|found| found.is_served() || matches!(found.name, "vfat" | "ntfs3"))
            || look(directory, entry.target).is_err()
            || is_listed()
        {
            return false;
        }
        let mut keys = HashSet::new();
        let found = lists(directory, |name| {
            // It may be longer than it looks here, in letters with marks.
            if name.to_bytes().contains(&b'~') && keys.len() < MOST_COMPARED {
                keys.insert(key(name));
            }
            keys.len() == MOST_COMPARED && key(name) == own
        });
        let is_made_up = found == Some(false) && !keys.contains(&own);
        // What the user names may come to several directories.
        if entry.directory.parent.is_some() {
            lock(&self.listed).entry(number).or_default().extend(keys);
            self.has_any.store(true, Ordering::Relaxed);
        }
        is_made_up
    }

    /// Whether names of this directory need care.
    pub(super) fn knows(&self, directory: &Directory) -> bool {
        self.of(directory).is_some()
    }

    /// What is peculiar about the names of a directory, if anything is.
    pub(super) fn of(&self, directory: &Directory) -> Option<Arc<Peculiar>> {
        if !self.has_any.load(Ordering::Relaxed) {
            return None;
        }
        lock(&self.directories).get(&directory.number).cloned()
    }

    /// Whether names of this directory look like ours: then ours are to be names that nobody has.
    pub(super) fn has_temporary(&self, directory: &Directory) -> bool {
        self.of(directory).is_some_and(|peculiar| peculiar.has_temporary)
    }
}

impl Peculiar {
    /// Care for an entry of the directory.
    ///
    /// Errors: another name of the source has brought what bears the name, or the filesystem has another one for it.
    pub(super) fn care<'c>(&'c self, entry: Entry<'c>) -> Result<Care<'c>, Trouble> {
        let kept = Some(&entry.copy.peculiarities.kept).filter(|_| self.home.may_rename);
        kept.map_or(Ok(()), |kept| kept.expect(entry))?;
        let key = self.home.key(entry.target);
        let alike = match self.alike.contains(&key) {
            true => Some((lock(&self.taken), identity(&entry.look()?))),
            false => None,
        };
        let care = Care { alike, key, kept };
        if let (Some((taken, source)), Some(found)) = (&care.alike, care.in_the_way(entry)?)
            && taken.is_taken((entry, key), *source, found)
        {
            return Err(refused(OVERWRITE, ONE_NAME));
        }
        Ok(care)
    }
}

/// Care for an entry whose name needs it, until it is copied.
pub(super) struct Care<'c> {
    /// Of a name that several names of the source may mean: its source. One after the other: each
    /// must see what the one before it has made.
    alike: Option<(MutexGuard<'c, Taken>, Identity)>,
    key: u64,
    kept: Option<&'c Kept>,
}

impl Care<'_> {
    /// The entry was copied.
    pub(super) fn copied(mut self, entry: Entry<'_>) -> Result<(), Trouble> {
        let copy = entry.copy;
        self.kept.map_or(Ok(()), |kept| kept.look(entry))?;
        let Some(made) = self.in_the_way(entry)? else { return Ok(()) };
        if let Some((taken, source)) = &mut self.alike {
            taken.note(entry.pair, (entry.target, self.key), [*source, made]);
        }
        if is_temporary(entry.target) {
            copy.temporaries.keep(made);
            copy.tell_of_a_temporary_name(entry);
        }
        Ok(())
    }

    /// What bears the name in the target, where that matters.
    fn in_the_way(&self, entry: Entry<'_>) -> Result<Option<Identity>, Trouble> {
        if !is_temporary(entry.target) && self.alike.is_none() {
            return Ok(None);
        }
        Ok(entry.in_the_way()?.map(|found| identity(&found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_alike_that_a_filesystem_may_take_for_one() {
        for (one, other) in [
            (c"README", c"readme"),
            (c"Straße", c"STRASSE"),
            (c"STRA\u{1e9e}E", c"STRASSE"),
            (c"so\u{ad}ft", c"soft"),
            (c"\u{2764}\u{fe0f}.png", c"\u{2764}.png"),
            (c"\u{623}\u{62d}\u{645}\u{62f}", c"\u{627}\u{654}\u{62d}\u{645}\u{62f}"),
            (c"\u{9a6}\u{9cb}", c"\u{9a6}\u{9c7}\u{9be}"),
            (c"\u{b94}", c"\u{b92}\u{bd7}"),
            (c"\u{915}\u{93c}1", c"\u{958}1"),
            (c"\u{5e9}\u{5c1}", c"\u{fb2a}"),
            (c"a\u{2260}b", c"a=\u{338}b"),
            (c"\u{c9}t\u{e9}", c"\u{e9}T\u{c9}"),
            (c"\u{212a}", c"k"),
            (c"name. .", c"NAME"),
            (c"caf\u{e9}.txt", c"CAFE\u{301}.txt"),
            (c"\u{1ec7}a", c"e\u{323}\u{302}a"),
            (c"мой", c"мои\u{306}"),
            (c"\u{30ac}x", c"\u{30ab}\u{3099}x"),
            (c"\u{d55c}1", c"\u{1112}\u{1161}\u{11ab}1"),
            (c"\u{d55c}1", c"\u{d558}\u{11ab}1"),
            (c"\u{3071}\u{3065}\u{3094}", c"\u{306f}\u{309a}\u{3064}\u{3099}\u{3046}\u{3099}"),
            (c"\u{30f7}\u{30fe}\u{30c2}", c"\u{30ef}\u{3099}\u{30fd}\u{3099}\u{30c1}\u{3099}"),
        ] {
            assert_eq!(key(one), key(other), "{one:?} {other:?}");
        }
        for (one, other) in [
            (c"a", c"b"),
            (c"caf\u{e9}", c"cafe"),
            (c"мой", c"мои"),
            (c"\u{d55c}.txt", c"\u{ae00}.txt"),
            (c"\u{62d}\u{645}", c"\u{645}\u{62d}"),
            (c"\u{915}", c"\u{916}"),
            (c"\u{30e1}\u{30e2}", c"\u{30c6}\u{30b9}\u{30c8}"),
            (c"\u{304b}", c"\u{30ab}"),
        ] {
            assert_ne!(key(one), key(other), "{one:?} {other:?}");
        }
        assert_ne!(key(c"\xff"), key(c"\xfe"), "what is no text has no case");
    }

    #[test]
    fn of_most_directories_nothing_is_remembered() {
        let found = |names: &[&CStr]| {
            let mut all = Names::default();
            names.iter().for_each(|name| all.add(name, FileType::RegularFile));
            all.finish()
        };
        assert!(found(&[c"a", c"b", c"README", c".flatout-copy-notes"]).is_none());
        assert_eq!(found(&[c"a", c"b", c"B", c"c"]).unwrap().alike.len(), 1);
        assert!(found(&[c".flatout-copy-1-2-3"]).unwrap().has_temporary);
    }
}
