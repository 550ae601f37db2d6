//! What of a tree is taken: names by rules, or by a list; files by size and age. Data, asked with the
//! path below the source before anything is opened.
//!
//! - [`rule`]: one rule, as rsync(1) or gitignore(5) has it;
//! - [`glob`]: its pattern;
//! - [`listed`]: paths that were listed by name;
//! - `ignored`: what `.gitignore` files say.

pub mod glob;
mod ignored;
pub mod listed;
pub mod rule;

use crate::file_data::kind_of;
use std::sync::Arc;

use rustix::fs::Stat;

pub(crate) use ignored::Ignored;
use listed::Listed;
use rule::{Rule, Verdict};

/// A moment: seconds and nanoseconds since 1970.
pub type Moment = (i64, u32);

/// What is taken. All of it, as long as nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The first one that means a path decides.
    pub rules: Vec<Rule>,
    /// Whether what `.gitignore` files of the source exclude is left out.
    pub obeys_gitignore: bool,
    /// Nothing but these.
    pub listed: Option<Listed>,
    /// The least that a regular file has, and the most.
    pub sizes: (Option<u64>, Option<u64>),
    /// When anything but a directory was modified: from this moment on, and before that one.
    pub modified: (Option<Moment>, Option<Moment>),
}

impl Selection {
    /// Whether some names are not taken.
    pub fn has_names(&self) -> bool {
        !self.rules.is_empty() || self.obeys_gitignore || self.listed.is_some()
    }

    /// Whether some files are not taken for what they are.
    pub fn has_limits(&self) -> bool {
        let (sizes, modified) = (&self.sizes, &self.modified);
        sizes.0.or(sizes.1).is_some() || modified.0.or(modified.1).is_some()
    }

    /// Whether rules exclude a path, in a source or a target; `ignored` are those of the directory that
    /// it lies in.
    pub(crate) fn excludes(
        &self,
        ignored: Option<&Arc<Ignored>>,
        path: &[u8],
        is_directory: bool,
    ) -> bool {
        let said = self.rules.iter().find_map(|rule| rule.verdict(path, is_directory));
        let said = said.or_else(|| ignored.and_then(|ignored| ignored.verdict(path, is_directory)));
        said == Some(Verdict::Exclude)
    }

    /// Whether a path of the source is taken by its name.
    pub(crate) fn takes(
        &self,
        ignored: Option<&Arc<Ignored>>,
        path: &[u8],
        is_directory: bool,
    ) -> bool {
        self.listed.as_ref().is_none_or(|listed| listed.takes(path, is_directory))
            && !self.excludes(ignored, path, is_directory)
    }

    /// Whether a file that the user names is taken, by its last name. Directories always are.
    pub fn takes_operand(&self, name: &[u8]) -> bool {
        self.takes(None, name, false)
    }

    /// Whether something is within the limits.
    pub fn is_within(&self, facts: &Stat) -> bool {
        let kind = kind_of(facts);
        if kind.is_dir() {
            return true;
        }
        let (size, (least, most)) = (facts.st_size as u64, self.sizes);
        let fits = !kind.is_file()
            || least.is_none_or(|least| size >= least) && most.is_none_or(|most| size <= most);
        let modified = (facts.st_mtime, facts.st_mtime_nsec as u32);
        let (from, before) = self.modified;
        fits && from.is_none_or(|from| modified >= from)
            && before.is_none_or(|before| modified < before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &[(Verdict, &str)]) -> Selection {
        let rule = |&(verdict, pattern): &(Verdict, &str)| Rule::new(verdict, pattern.as_bytes());
        let rules = rules.iter().map(|one| rule(one).unwrap()).collect();
        Selection { rules, ..Selection::default() }
    }

    #[test]
    fn the_first_rule_that_means_a_path_decides() {
        use Verdict::{Exclude, Include};
        let only_c = rules(&[(Include, "*/"), (Include, "*.c"), (Exclude, "*")]);
        assert!(only_c.takes(None, b"a", true) && only_c.takes(None, b"a/x.c", false));
        assert!(!only_c.takes(None, b"a/x.h", false));
        let but_one = rules(&[(Include, "keep.o"), (Exclude, "*.o")]);
        assert!(but_one.takes(None, b"keep.o", false) && !but_one.takes(None, b"x.o", false));
        assert!(Selection::default().takes(None, b"\xff", false));
    }

    #[test]
    fn sizes_are_those_of_files_and_ages_of_all_but_directories() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, [7; 100]).unwrap();
        std::os::unix::fs::symlink("file", place.path().join("link")).unwrap();
        let facts = |name: &str| rustix::fs::lstat(place.path().join(name)).unwrap();
        let sized = |least, most| Selection { sizes: (least, most), ..Selection::default() };
        assert!(sized(Some(100), Some(100)).is_within(&facts("file")));
        assert!(!sized(Some(101), None).is_within(&facts("file")));
        assert!(!sized(None, Some(99)).is_within(&facts("file")));
        assert!(sized(Some(101), None).is_within(&facts("link")), "it is no file");
        let found = facts("file");
        let moment = (found.st_mtime, found.st_mtime_nsec as u32);
        let aged = |from, before| Selection { modified: (from, before), ..Selection::default() };
        assert!(aged(Some(moment), None).is_within(&found));
        assert!(!aged(None, Some(moment)).is_within(&found));
        assert!(!aged(None, Some((0, 0))).is_within(&facts("link")));
        assert!(aged(None, Some((0, 0))).is_within(&facts("")), "a directory has no age");
    }
}
