//! Sources: the Rust files of the repository, each with what the rules need to know about it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::masked::masked;

/// One Rust file.
#[derive(Debug)]
pub struct Source {
    /// From the root of the repository, with `/`.
    pub path: String,
    /// As it stands in the file.
    pub text: String,
    /// Without comments and literals, line for line.
    pub code: String,
    /// For each line, whether it is compiled for tests only.
    pub is_test: Vec<bool>,
}

impl Source {
    /// Reads a file that is already in memory.
    pub fn new(path: &str, text: &str) -> Self {
        let code = masked(text);
        let is_test =
            if is_test_path(path) { vec![true; code.lines().count()] } else { test_lines(&code) };
        Self { path: path.to_owned(), text: text.to_owned(), code, is_test }
    }

    /// Number of lines that the product is made of.
    pub fn product_lines(&self) -> usize {
        if is_test_path(&self.path) {
            return self.is_test.len();
        }
        self.is_test.iter().filter(|&&test| !test).count()
    }

    /// Line number from 1 and masked line, of the lines that are not for tests only.
    pub fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.numbered_code().filter(|(number, _)| !self.is_test[number - 1])
    }

    /// Line number from 1 and masked line.
    pub fn numbered_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    fn become_test(&mut self) {
        self.is_test.fill(true);
    }
}

/// Reads all Rust files under the root, except those that a build has made.
pub fn read(root: &Path) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    for path in rust_files(root)? {
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        sources.push(Source::new(&relative(root, &path), &text));
    }
    mark_test_modules(&mut sources);
    Ok(sources)
}

/// The path below the root, with `/`.
pub fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

/// Files that `#[cfg(test)] mod name;` brings in are for tests only, although they do not say so.
fn mark_test_modules(sources: &mut [Source]) {
    let modules: BTreeSet<String> = sources.iter().flat_map(test_module_paths).collect();
    for source in sources.iter_mut().filter(|source| modules.contains(&source.path)) {
        source.become_test();
    }
}

fn test_module_paths(source: &Source) -> Vec<String> {
    let path = Path::new(&source.path);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let inner = match stem.as_str() {
        "lib" | "main" | "mod" => folder.to_path_buf(),
        _ => folder.join(stem),
    };
    let mut found: Vec<PathBuf> = Vec::new();
    for (text, _) in source.text.lines().zip(&source.is_test).filter(|(_, is_test)| **is_test) {
        let line = text.trim();
        if let Some(name) =
            line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]"))
        {
            found.push(folder.join(name));
        } else if let Some((_, name)) =
            line.strip_suffix(';').and_then(|rest| rest.rsplit_once("mod "))
        {
            found.push(inner.join(format!("{name}.rs")));
            found.push(inner.join(name).join("mod.rs"));
        }
    }
    found.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Integration tests, benches and examples are tests as a whole.
fn is_test_path(path: &str) -> bool {
    Path::new(path)
        .components()
        .any(|part| ["tests", "benches", "examples"].iter().any(|name| part.as_os_str() == *name))
}

/// For each line of masked code, whether it belongs to an item under `#[cfg(test)]`.
///
/// An item ends at the first line that closes a brace at its own indentation, or at the first
/// line that ends in `;` before any brace; rustfmt guarantees both.
fn test_lines(code: &str) -> Vec<bool> {
    let mut marks = Vec::new();
    let mut indent_of_item = None;
    let mut is_open = false;
    for line in code.lines() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        if indent_of_item.is_none() && trimmed.starts_with("#[cfg(test)]") {
            (indent_of_item, is_open) = (Some(indent), false);
        }
        marks.push(indent_of_item.is_some());
        if indent_of_item.is_none() {
            continue;
        }
        is_open |= trimmed.ends_with('{');
        let ends_block = indent_of_item == Some(indent) && trimmed.starts_with('}');
        let ends_line = !is_open && (trimmed.ends_with(';') || trimmed.ends_with('}'));
        if ends_block || ends_line {
            indent_of_item = None;
        }
    }
    marks
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable =
        |error: std::io::Error| format!("{} cannot be listed: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            // Cargo marks every folder that it builds into with this file.
            let is_built = name == "target" || path.join("CACHEDIR.TAG").exists();
            if !name.starts_with('.') && !is_built {
                found.extend(rust_files(&path)?);
            }
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_items_are_told_from_the_product() {
        let text = "\
fn a() {}
#[cfg(test)]
mod fake;
#[cfg(test)]
use x::{
    y,
};
fn b() {}
impl T {
    #[cfg(test)]
    fn c() {
        if x {
        }
    }
    fn d() {}
}
#[cfg(test)]
mod tests {
    fn e() {}
}
";
        let source = Source::new("crates/io/src/a.rs", text);
        let product: Vec<&str> = source.product_code().map(|(_, line)| line.trim()).collect();
        // The `use` over several lines closes its own brace.
        assert_eq!(product, ["fn a() {}", "fn b() {}", "impl T {", "fn d() {}", "}"]);
        assert_eq!(source.product_lines(), 5);
    }

    #[test]
    fn integration_tests_are_tests_but_keep_their_size() {
        let source = Source::new("crates/io/tests/a.rs", "fn a() {}\nfn b() {}\n");
        assert_eq!(source.product_code().count(), 0);
        assert_eq!(source.product_lines(), 2);
    }

    #[test]
    fn a_file_that_only_tests_include_is_a_test() {
        let mut sources = vec![
            Source::new("crates/io/src/lib.rs", "#[cfg(test)]\nmod fake;\nmod real;\n"),
            Source::new("crates/io/src/fake.rs", "fn a() {}\n"),
            Source::new("crates/io/src/real.rs", "#[cfg(test)]\nmod naive;\n"),
            Source::new("crates/io/src/real/naive.rs", "fn a() {}\n"),
            Source::new("crates/io/src/a.rs", "#[cfg(test)]\n#[path = \"b.rs\"]\nmod tests;\n"),
            Source::new("crates/io/src/b.rs", "fn a() {}\n"),
        ];
        mark_test_modules(&mut sources);
        let all_test: Vec<bool> =
            sources.iter().map(|source| source.is_test.iter().all(|&test| test)).collect();
        assert_eq!(all_test, [false, true, true, true, true, true]);
        assert_eq!(sources[0].is_test, [true, true, false]);
    }

    #[test]
    fn the_files_of_this_package_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = read(root).unwrap();
        assert!(sources.iter().any(|source| source.path == "src/sources.rs"));
    }
}
