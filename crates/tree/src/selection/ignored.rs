//! What the `.gitignore` files say that lie between a source and one of its directories. The nearest
//! one that means a path decides, and in it the last line.

use std::io::Read;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::rule::{Rule, Verdict};
use crate::file_data::{self, errno_of, kind_of};

/// Bytes of a file of rules at most.
const MOST_BYTES: u64 = 1 << 20;

/// The rules of one directory, and of those above it.
#[derive(Debug)]
pub(crate) struct Ignored {
    above: Option<Arc<Ignored>>,
    /// Bytes of a path up to the names in this directory.
    prefix: usize,
    rules: Vec<Rule>,
}

impl Drop for Ignored {
    /// One after the other: a tree may be deeper than the stack.
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(ignored) = above {
            above = Arc::into_inner(ignored).and_then(|mut ignored| ignored.above.take());
        }
    }
}

impl Ignored {
    /// Those of a directory of the source, whose path below it is `path`, empty for itself. Where it has
    /// no file of rules, those above count.
    ///
    /// Errors: the file cannot be read, or is no file.
    pub(crate) fn of(
        directory: BorrowedFd<'_>,
        path: &[u8],
        above: Option<Arc<Self>>,
    ) -> Result<Option<Arc<Self>>, Errno> {
        let file = match file_data::open(directory, c".gitignore") {
            // git does not follow symlinks there either.
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(above),
            opened => opened?,
        };
        if !kind_of(rustix::fs::fstat(&file)?).is_file() {
            return Ok(above);
        }
        let mut text = Vec::new();
        let read = std::fs::File::from(file).take(MOST_BYTES + 1).read_to_end(&mut text);
        read.map_err(|error| errno_of(&error))?;
        if text.len() as u64 > MOST_BYTES {
            return Err(Errno::FBIG);
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let rules = text.split(|&byte| byte == b'\n').filter_map(Rule::of_git).collect();
        let prefix = if path.is_empty() { 0 } else { path.len() + 1 };
        Ok(Some(Arc::new(Self { above, prefix, rules })))
    }

    /// What is said of a path below the source, which lies in this directory or below it.
    pub(crate) fn verdict(&self, path: &[u8], is_directory: bool) -> Option<Verdict> {
        let mut here = Some(self);
        while let Some(ignored) = here {
            let path = path.get(ignored.prefix..).unwrap_or_default();
            let mut rules = ignored.rules.iter().rev();
            if let Some(said) = rules.find_map(|rule| rule.verdict(path, is_directory)) {
                return Some(said);
            }
            here = ignored.above.as_deref();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::{FileType, Mode};

    use super::*;

    #[test]
    fn rules_of_any_number_of_directories_are_forgotten() {
        let mut above = None;
        for _ in 0..1_000_000 {
            above = Some(Arc::new(Ignored { above, prefix: 0, rules: Vec::new() }));
        }
        drop(above);
    }

    #[test]
    fn the_nearest_file_decides_and_in_it_the_last_line() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("a");
        std::fs::create_dir(&below).unwrap();
        std::fs::write(place.path().join(".gitignore"), "*.o\n!keep.o\n/top\n").unwrap();
        std::fs::write(below.join(".gitignore"), "!x.o\n/top\n").unwrap();
        let open = |path: &std::path::Path| std::fs::File::open(path).unwrap();
        let root = Ignored::of(open(place.path()).as_fd(), b"", None).unwrap();
        let inner = Ignored::of(open(&below).as_fd(), b"a", root.clone()).unwrap().unwrap();
        let root = root.unwrap();
        use Verdict::{Exclude, Include};
        assert_eq!(root.verdict(b"x.o", false), Some(Exclude));
        assert_eq!(root.verdict(b"keep.o", false), Some(Include));
        assert_eq!(root.verdict(b"top", true), Some(Exclude));
        assert_eq!(root.verdict(b"a/top", true), None);
        assert_eq!(inner.verdict(b"a/x.o", false), Some(Include));
        assert_eq!(inner.verdict(b"a/y.o", false), Some(Exclude));
        assert_eq!(inner.verdict(b"a/top", false), Some(Exclude));
        assert_eq!(inner.verdict(b"a/b/top", false), None);
    }

    #[test]
    fn a_fifo_or_symlink_of_that_name_is_none() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(".gitignore");
        let of = || Ignored::of(std::fs::File::open(place.path()).unwrap().as_fd(), b"", None);
        assert!(of().unwrap().is_none());
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(of().unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        let at = rustix::fs::CWD;
        rustix::fs::mknodat(at, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(of().unwrap().is_none());
    }
}
