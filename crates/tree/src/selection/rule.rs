//! One rule: what it means, and for which paths. `--include` and `--exclude` follow rsync(1), lines of
//! `.gitignore` gitignore(5); they differ in where a pattern with a slash in it begins.

use super::glob::{Dialect, Glob};

/// What becomes of what a rule means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is taken.
    Include,
    /// It is left out.
    Exclude,
}

/// Which part of a path a pattern is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// So many of its last names; of a path that has fewer, none.
    Last(u32),
    /// All of it.
    Path,
    /// All of it, with a slash before it: `**/NAME` means one without a slash, too.
    Rooted,
    /// All of it, or what follows any of its slashes.
    Tail,
}

/// A pattern and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    verdict: Verdict,
    glob: Glob,
    scope: Scope,
    only_directories: bool,
    /// `DIR/***`: the directory, and what is in it.
    with_contents: bool,
}

impl Rule {
    /// A rule of `--include` or `--exclude`.
    ///
    /// Errors: the pattern is none.
    pub fn new(verdict: Verdict, pattern: &[u8]) -> Result<Self, &'static str> {
        let rest = pattern.strip_prefix(b"/").unwrap_or(pattern);
        let anchored = rest.len() < pattern.len();
        let only_directories = rest.ends_with(b"/");
        let rest = rest.strip_suffix(b"/").unwrap_or(rest);
        let with_contents = rest.ends_with(b"/***");
        let has_stars = rest.windows(2).any(|two| two == b"**");
        let scope = match anchored {
            true => Scope::Path,
            false if rest.starts_with(b"**") => Scope::Rooted,
            false if has_stars => Scope::Tail,
            // One in brackets counts, too, and matches none: so rsync has it.
            false => Scope::Last(rest.split(|&byte| byte == b'/').count() as u32),
        };
        let is_plain = !rest.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
        let dialect = if is_plain { Dialect::Literal } else { Dialect::Rsync };
        let glob = Glob::new(rest, dialect)?;
        Ok(Self { verdict, glob, scope, only_directories, with_contents })
    }

    /// A line of `.gitignore`; `None`: it says nothing.
    pub fn of_git(line: &[u8]) -> Option<Self> {
        let line = trimmed(line);
        if line.starts_with(b"#") {
            return None;
        }
        let (verdict, line) = match line.strip_prefix(b"!") {
            Some(rest) => (Verdict::Include, rest),
            None => (Verdict::Exclude, line),
        };
        let only_directories = line.ends_with(b"/");
        let line = line.strip_suffix(b"/").unwrap_or(line);
        let scope = if line.contains(&b'/') { Scope::Path } else { Scope::Last(1) };
        let pattern = line.strip_prefix(b"/").unwrap_or(line);
        // What git cannot understand matches nothing.
        let glob = Glob::new(pattern, Dialect::Git).ok()?;
        Some(Self { verdict, glob, scope, only_directories, with_contents: false })
    }

    /// What it says of this path below the directory that it is about; `None`: nothing.
    pub fn verdict(&self, path: &[u8], is_directory: bool) -> Option<Verdict> {
        let is_meant = (is_directory || !self.only_directories) && self.means(path, is_directory);
        is_meant.then_some(self.verdict)
    }

    fn means(&self, path: &[u8], is_directory: bool) -> bool {
        if self.with_contents && is_directory {
            return self.is_in_scope(&[path, b"/"].concat());
        }
        self.is_in_scope(path)
    }

    fn is_in_scope(&self, path: &[u8]) -> bool {
        let after = |slash: usize| path.get(slash + 1..).unwrap_or_default();
        let mut slashes = (0..path.len()).filter(|&at| path[at] == b'/');
        match self.scope {
            Scope::Last(names) => match slashes.clone().nth_back(names as usize - 1) {
                Some(slash) => self.glob.matches(after(slash)),
                None => slashes.count() + 1 == names as usize && self.glob.matches(path),
            },
            Scope::Path => self.glob.matches(path),
            Scope::Rooted => self.glob.matches(&[b"/", path].concat()),
            Scope::Tail => {
                self.glob.matches(path) || slashes.any(|slash| self.glob.matches(after(slash)))
            }
        }
    }
}

/// Without the spaces at the end, unless they are escaped, and without a carriage return.
fn trimmed(mut line: &[u8]) -> &[u8] {
    line = line.strip_suffix(b"\r").unwrap_or(line);
    while let Some(rest) = line.strip_suffix(b" ") {
        let escapes = rest.iter().rev().take_while(|&&byte| byte == b'\\').count();
        if escapes % 2 == 1 {
            break;
        }
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: bool = false;
    const DIRECTORY: bool = true;

    fn excludes(pattern: &str, path: &str, is_directory: bool) -> bool {
        let rule = Rule::new(Verdict::Exclude, pattern.as_bytes()).unwrap();
        rule.verdict(path.as_bytes(), is_directory).is_some()
    }

    #[test]
    fn patterns_of_the_command_line_mean_what_they_mean_to_rsync() {
        for (pattern, path, is_directory, expected) in [
            ("*.o", "a/b.o", FILE, true),
            ("*.o", "a.o/b", FILE, false),
            ("/a", "a", FILE, true),
            ("/a", "b/a", FILE, false),
            ("a/b", "x/a/b", FILE, true),
            ("a/b", "xa/b", FILE, false),
            ("[a/b]c", "ac", FILE, false),
            ("[a/b]c", "x/ac", FILE, false),
            ("/[a/b]c", "ac", FILE, true),
            ("x/[a/b]c", "y/x/ac", FILE, false),
            ("/a/b", "x/a/b", FILE, false),
            ("tmp/", "x/tmp", DIRECTORY, true),
            ("tmp/", "x/tmp", FILE, false),
            ("a**z", "x/ab/cz", FILE, true),
            ("**/a", "a", FILE, true),
            ("**/a", "x/y/a", FILE, true),
            ("/**/a", "a", FILE, false),
            ("/a/***", "a", DIRECTORY, true),
            ("/a/***", "a/b/c", FILE, true),
            ("/a/***", "a", FILE, false),
            ("/a/**", "a", DIRECTORY, false),
            ("a/***/", "x/a", DIRECTORY, true),
            ("/a/***/", "a", DIRECTORY, true),
            ("/a/***/", "a/b", DIRECTORY, true),
            ("/a/***/", "a/b", FILE, false),
            ("a\\b", "a\\b", FILE, true),
            ("a\\*b", "a*b", FILE, true),
            ("a\\*b", "axb", FILE, false),
        ] {
            assert_eq!(excludes(pattern, path, is_directory), expected, "{pattern} {path}");
        }
        assert!(Rule::new(Verdict::Exclude, b"/").is_err());
    }

    #[test]
    fn lines_of_a_gitignore_mean_what_they_mean_to_git() {
        for (line, path, is_directory, expected) in [
            ("*.o", "a/b.o", FILE, Some(Verdict::Exclude)),
            ("!*.o", "a/b.o", FILE, Some(Verdict::Include)),
            ("a/b", "x/a/b", FILE, None),
            ("a/b", "a/b", FILE, Some(Verdict::Exclude)),
            ("/a", "x/a", FILE, None),
            ("tmp/", "x/tmp", DIRECTORY, Some(Verdict::Exclude)),
            ("tmp/", "x/tmp", FILE, None),
            ("**/a", "x/y/a", FILE, Some(Verdict::Exclude)),
            ("\\#a", "#a", FILE, Some(Verdict::Exclude)),
            ("\\!a", "!a", FILE, Some(Verdict::Exclude)),
            ("a  ", "a", FILE, Some(Verdict::Exclude)),
            ("a\\ ", "a ", FILE, Some(Verdict::Exclude)),
            ("a\r", "a", FILE, Some(Verdict::Exclude)),
        ] {
            let rule = Rule::of_git(line.as_bytes()).unwrap();
            assert_eq!(rule.verdict(path.as_bytes(), is_directory), expected, "{line} {path}");
        }
        for line in ["", "# a", "   ", "!", "/", "[a"] {
            assert_eq!(Rule::of_git(line.as_bytes()), None, "{line}");
        }
    }
}
