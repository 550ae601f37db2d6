//! Results lie aside: neither among what is copied nor where copies go. A log in a source would take
//! the place of what it is to tell of.
//!
//! Names prove nothing: directories are told by identity, on the way up from the file, and by their
//! place inside the filesystem, so that no symlink and no bind mount leads round this.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flatout_io::quote;
use flatout_sys::storage::Location;
use flatout_tree::copy::Operand;
use flatout_tree::copy::operand::{parent, way_up_from, without_slashes};
use flatout_tree::copy::options::Reach;
use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::output::place::{Identity, Place, identity};

/// What is to be copied, as far as files of our own may not lie in it.
pub struct Kept<'a> {
    /// All that is named as a source, whether or not it can be copied.
    pub sources: &'a [PathBuf],
    /// What is read besides: lists of names and rules, snapshots.
    pub read: &'a [PathBuf],
    /// What is copied where.
    pub operands: &'a [Operand],
    /// How far the copy goes.
    pub reach: Reach,
}

/// Where a file of our own would be.
struct OwnPlace {
    /// The directories from the one that it is in up to the root.
    above: Vec<Identity>,
    /// Its name in the first of them.
    name: Vec<u8>,
    /// What is there.
    existing: Option<Identity>,
    locations: Vec<Location>,
}

impl Kept<'_> {
    /// Says why results cannot be written to `place`. Nothing of devices and pipes is lost when
    /// something is written there, wherever they are.
    ///
    /// Cost: a few calls for each operand, and one for each directory above the place.
    pub fn obstacle(&self, place: &Place) -> Option<String> {
        let site = OwnPlace::of(place)?;
        let shown = place.shown();
        let sources = self.sources.iter().chain(self.operands.iter().map(|one| &one.source));
        let read = self.read.iter().map(|path| (path, "read"));
        for (source, what) in sources.map(|path| (path, "copied")).chain(read) {
            if self.is_in_source(&site, source) {
                return Some(format!(
                    "cannot write results to {shown}: {} is {what}",
                    quote(source)
                ));
            }
        }
        let target = self.operands.iter().map(|one| &one.target).find(|one| site.is_at(one))?;
        Some(format!("cannot write results to {shown}: copies go to {}", quote(target)))
    }

    /// Says which operand a file of ours is that was made just now: a filesystem may take `LOG` and
    /// `log` for one name, and somebody else may have been quick.
    pub fn mistaken(&self, made: Identity) -> Option<String> {
        let targets = self.operands.iter().map(|one| &one.target);
        let is_it =
            |path: &&PathBuf| rustix::fs::lstat(*path).is_ok_and(|facts| identity(&facts) == made);
        let found = targets.chain(self.sources).chain(self.read).find(is_it)?;
        Some(format!("cannot write results to {}: it is to be copied or replaced", quote(found)))
    }

    fn is_in_source(&self, site: &OwnPlace, source: &Path) -> bool {
        let goes_there = |facts: &Stat| {
            let place = site.above.first().or(site.existing.as_ref());
            self.reach == Reach::Everything || place.is_some_and(|place| place.0 == facts.st_dev)
        };
        let facts = [rustix::fs::lstat(source), rustix::fs::stat(source)];
        let facts: Vec<Stat> = facts.into_iter().flatten().filter(goes_there).collect();
        if facts.is_empty() {
            return false;
        }
        facts.iter().any(|facts| site.is_in(facts)) || site.is_mounted_in(source)
    }
}

impl OwnPlace {
    fn of(place: &Place) -> Option<Self> {
        let existing = place.existing();
        let mut site = Self {
            above: Vec::new(),
            name: Vec::new(),
            existing: existing.as_ref().map(|(identity, _)| *identity),
            locations: existing.iter().filter_map(|(_, file)| Location::of(file)).collect(),
        };
        match place.named() {
            Some((directory, name)) => {
                site.above = way_up_from(rustix::io::fcntl_dupfd_cloexec(directory, 0));
                site.name = name.as_bytes().to_vec();
                site.locations.extend(Location::of(directory));
            }
            // A file that is open already has a directory only as long as it has a name.
            None => {
                existing?;
            }
        }
        Some(site)
    }

    /// Whether this is what it would take the place of, or a directory above it.
    fn is_in(&self, facts: &Stat) -> bool {
        let found = identity(facts);
        if FileType::from_raw_mode(facts.st_mode).is_dir() {
            self.above.contains(&found)
        } else {
            self.existing == Some(found)
        }
    }

    /// Whether a copy goes here, or to a directory above.
    fn is_at(&self, target: &Path) -> bool {
        let facts = [rustix::fs::lstat(target), rustix::fs::stat(target)];
        if facts.iter().flatten().any(|facts| self.is_in(facts)) || self.is_mounted_in(target) {
            return true;
        }
        // A name that is still to be made.
        let target = without_slashes(target);
        target.file_name().is_some_and(|name| name.as_bytes() == self.name)
            && rustix::fs::stat(parent(target))
                .is_ok_and(|facts| self.above.first() == Some(&identity(&facts)))
    }

    /// Whether it lies in this directory by way of a mount that is not on the way up.
    fn is_mounted_in(&self, directory: &Path) -> bool {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::open(directory, flags, Mode::empty()) else { return false };
        let tree = Location::of_tree(opened);
        self.locations.iter().any(|location| tree.iter().any(|root| location.is_in(root)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_lie_neither_in_a_source_nor_where_a_copy_goes() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("source/sub")).unwrap();
        std::fs::create_dir(at("target")).unwrap();
        std::fs::create_dir(at("snapshot")).unwrap();
        std::fs::write(at("names"), "a").unwrap();
        std::os::unix::fs::symlink("source", at("link")).unwrap();
        let is_refused = |name: &str, target: &str| {
            let operand = Operand { source: at("source"), target: at(target) };
            let kept = Kept {
                sources: std::slice::from_ref(&operand.source),
                read: &[at("names"), at("snapshot")],
                operands: std::slice::from_ref(&operand),
                reach: Reach::Everything,
            };
            kept.obstacle(&Place::find(&at(name)).unwrap()).is_some()
        };
        let bad = ["source/log", "source/sub/log", "link/log", "target/source"];
        for bad in bad.into_iter().chain(["names", "snapshot/log"]) {
            assert!(is_refused(bad, "target/source"), "{bad}");
        }
        for good in ["log", "target/log", "target/source.log", "source.log"] {
            assert!(!is_refused(good, "target/source"), "{good}");
        }
        assert!(is_refused("target/log", "target"));
        assert!(is_refused("new", "new/"));
    }
}
