//! Sources: the Rust files and the documents of the repository; of a file, how much of it is the product.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// One file.
pub struct Source {
    /// From the root of the repository, with `/`.
    pub path: String,
    /// As it stands in the file.
    pub text: String,
}

impl Source {
    /// Number of lines without the tests of a product file, which end it (clippy sees to that).
    pub fn counted_lines(&self) -> usize {
        if self.path.ends_with("/tests.rs") && self.path.contains("/src/") {
            return 0;
        }
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.windows(2).position(|pair| {
            pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        });
        tests.unwrap_or(lines.len())
    }
}

/// Says of a file what cannot be done with it, and why.
pub fn cannot_be(done: &str, path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{} cannot be {done}: {error}", path.display())
}

/// Reads all files under the root whose names end like this, except those that a build has made.
pub fn read(root: &Path, suffix: &str) -> Result<Vec<Source>, String> {
    let source = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(cannot_be("read", &path))?;
        let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        Ok(Source { path, text })
    };
    files(root, suffix)?.into_iter().map(source).collect()
}

fn files(folder: &Path, suffix: &str) -> Result<Vec<PathBuf>, String> {
    let unreadable = cannot_be("listed", folder);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(&unreadable)? {
        let entry = entry.map_err(&unreadable)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().map_err(&unreadable)?;
        if kind.is_dir() {
            // Cargo marks every folder that it builds into with this file.
            let is_built = name == "target" || path.join("CACHEDIR.TAG").exists();
            if !name.starts_with('.') && !is_built {
                found.extend(files(&path, suffix)?);
            }
        } else if name.ends_with(suffix) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(path: &str, text: &str) -> usize {
        Source { path: path.to_owned(), text: text.to_owned() }.counted_lines()
    }

    #[test]
    fn tests_inside_a_file_do_not_count() {
        let text = "//! A.\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(counted("crates/io/src/a.rs", text), 4);
        assert_eq!(counted("crates/io/src/a/tests.rs", text), 0);
        assert_eq!(counted("crates/io/tests/a.rs", "fn a() {}\nfn b() {}\n"), 2);
    }

    #[test]
    fn the_files_of_this_package_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = read(root, ".rs").unwrap();
        assert!(sources.iter().any(|source| source.path == "src/sources.rs"));
    }
}
