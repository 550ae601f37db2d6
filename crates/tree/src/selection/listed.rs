//! Paths that were listed by name (`--files-from`): nothing else is taken, but the directories in
//! which they lie. Kept as they came, one after the other; 4 bytes besides for each.

/// Paths below a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Each with a NUL behind it.
    text: Vec<u8>,
    /// Where they begin, in the order of their bytes.
    starts: Vec<u32>,
    has_all: bool,
    /// Whether some directory is taken with all that is in it.
    has_whole: bool,
}

impl Listed {
    /// Understands paths. One that ends with a slash stands for all that is in the directory, too.
    /// Empty ones say nothing.
    ///
    /// Errors: the first that does not lie below the source, with the reason.
    pub fn new<'p>(paths: impl Iterator<Item = &'p [u8]>) -> Result<Self, (Vec<u8>, &'static str)> {
        let mut listed = Self::default();
        for path in paths.filter(|path| !path.is_empty()) {
            listed.add(path).map_err(|why| (path.to_vec(), why))?;
        }
        let Self { text, starts, .. } = &mut listed;
        starts.sort_unstable_by_key(|&start| path_at(text, start));
        starts.dedup_by_key(|start| path_at(text, *start));
        Ok(listed)
    }

    fn add(&mut self, path: &[u8]) -> Result<(), &'static str> {
        if path.starts_with(b"/") {
            return Err("it is absolute");
        }
        let start = u32::try_from(self.text.len()).map_err(|_| "the list is too long")?;
        let is_whole = path.ends_with(b"/") || path.ends_with(b"/.");
        for name in path.split(|&byte| byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => return Err("it has .. in it"),
                name => {
                    self.text.extend_from_slice(name);
                    self.text.push(b'/');
                }
            }
        }
        if self.text.len() == start as usize {
            self.has_all |= is_whole;
            return Ok(());
        }
        self.has_whole |= is_whole;
        if !is_whole {
            self.text.pop();
        }
        self.text.push(0);
        self.starts.push(start);
        Ok(())
    }

    /// Whether a path is taken: it is listed, or lies in a directory that is taken as a whole, or
    /// something listed lies in it.
    pub fn takes(&self, path: &[u8], is_directory: bool) -> bool {
        let inside = [path, b"/"].concat();
        let mut slashes = inside.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        self.has_all
            || self.has(path)
            || self.has_whole && slashes.any(|(at, _)| self.has(&inside[..=at]))
            || is_directory && self.first_from(&inside).is_some_and(|it| it.starts_with(&inside))
    }

    /// All of them, without the slash at the end.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.starts.iter().map(|&start| {
            let path = path_at(&self.text, start);
            path.strip_suffix(b"/").unwrap_or(path)
        })
    }

    fn has(&self, path: &[u8]) -> bool {
        self.first_from(path) == Some(path)
    }

    /// The first one that does not come before `path`.
    fn first_from(&self, path: &[u8]) -> Option<&[u8]> {
        let before = |start: &u32| path_at(&self.text, *start) < path;
        self.starts.get(self.starts.partition_point(before)).map(|&at| path_at(&self.text, at))
    }
}

fn path_at(text: &[u8], start: u32) -> &[u8] {
    let path = &text[start as usize..];
    &path[..path.iter().position(|&byte| byte == 0).unwrap_or(path.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(paths: &[&str]) -> Listed {
        Listed::new(paths.iter().map(|path| path.as_bytes())).unwrap()
    }

    #[test]
    fn what_is_listed_and_the_way_to_it_are_taken() {
        let list = listed(&["a/b/c", "./d//e", "whole/", "a-b", "", "dir"]);
        for (path, is_directory, expected) in [
            ("a", true, true),
            ("a", false, false),
            ("a/b", true, true),
            ("a/b/c", false, true),
            ("a/b/c/d", false, false),
            ("a/x", false, false),
            ("d/e", false, true),
            ("whole", true, true),
            ("whole/x/y", false, true),
            ("wholes", false, false),
            ("dir", true, true),
            ("dir/x", false, false),
            ("a-b", false, true),
        ] {
            assert_eq!(list.takes(path.as_bytes(), is_directory), expected, "{path}");
        }
        assert!(listed(&["./"]).takes(b"x/y", false));
        assert!(!listed(&["."]).takes(b"x", true), "the source itself, no more");
        let paths: Vec<&[u8]> = list.paths().collect();
        assert_eq!(paths, [&b"a-b"[..], b"a/b/c", b"d/e", b"dir", b"whole"]);
    }

    #[test]
    fn nothing_outside_is_listed() {
        for (path, why) in [
            ("/etc/passwd", "it is absolute"),
            ("../x", "it has .. in it"),
            ("a/../../x", "it has .. in it"),
            ("a/..", "it has .. in it"),
        ] {
            let found = Listed::new([path.as_bytes()].into_iter());
            assert_eq!(found, Err((path.into(), why)), "{path}");
        }
    }
}
