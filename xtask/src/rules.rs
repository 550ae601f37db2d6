//! Rules: what a source file of the house may and must contain, one function per rule.
//!
//! Each takes a file and returns complaints as `path:line: text`. The rules about whole rooms
//! stand in `arrows`, `licences` and `packages`, the one about lengths in `sizes`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::sources::Source;

/// The only folder with unsafe code.
const UNSAFE_FOLDER: &str = "crates/sys/";

/// Folders that may write to the terminal.
const PRINTING_FOLDERS: [&str; 2] = ["crates/flatout/", "xtask/"];

const PRINTING_MACROS: [&str; 5] = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "misc", "types"];

/// How far above an unsafe block its comment may end.
const SAFETY_REACH_LINES: usize = 4;

/// All rules over one file.
pub fn complaints(source: &Source, crate_roots: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(unsafe_outside_sys(source));
    found.extend(unsafe_without_reason(source));
    found.extend(unwraps(source));
    found.extend(printing(source));
    found.extend(missing_module_doc(source));
    found.extend(empty_name(&source.path));
    if crate_roots.contains(&source.path) {
        found.extend(missing_forbid(source));
    }
    found
}

/// Unsafe code lives in one room.
fn unsafe_outside_sys(source: &Source) -> Vec<String> {
    if source.path.starts_with(UNSAFE_FOLDER) {
        return Vec::new();
    }
    source
        .numbered_code()
        .filter(|(_, line)| has_word(line, "unsafe"))
        .map(|(number, _)| format!("{}:{number}: unsafe outside {UNSAFE_FOLDER}", source.path))
        .collect()
}

/// Every other crate has the compiler hold it to that.
fn missing_forbid(source: &Source) -> Option<String> {
    let says_so = source
        .code
        .lines()
        .map(str::trim)
        .take_while(|line| line.is_empty() || line.starts_with("#!["))
        .any(|line| line == "#![forbid(unsafe_code)]");
    (!says_so && !source.path.starts_with(UNSAFE_FOLDER))
        .then(|| format!("{}:1: a crate root without `#![forbid(unsafe_code)]`", source.path))
}

/// Every unsafe block names the contract and who keeps it.
fn unsafe_without_reason(source: &Source) -> Vec<String> {
    let text: Vec<&str> = source.text.lines().collect();
    source
        .numbered_code()
        .filter(|(_, line)| opens_unsafe_block(line))
        .filter(|(number, _)| !has_safety_comment(&text[..number - 1]))
        .map(|(number, _)| {
            format!("{}:{number}: an unsafe block without a SAFETY comment", source.path)
        })
        .collect()
}

fn opens_unsafe_block(line: &str) -> bool {
    line.split_once("unsafe {").is_some_and(|(before, _)| {
        !before.ends_with(|last: char| last.is_alphanumeric() || last == '_')
    })
}

/// Whether a comment that ends within reach says SAFETY, however long the comment is.
fn has_safety_comment(above: &[&str]) -> bool {
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let nearest = above.iter().rev().take(SAFETY_REACH_LINES).position(|line| is_comment(line));
    nearest.is_some_and(|skipped| {
        above
            .iter()
            .rev()
            .skip(skipped)
            .take_while(|line| is_comment(line))
            .any(|line| line.contains("SAFETY"))
    })
}

/// What can fail is handled, or `expect` says why it cannot.
fn unwraps(source: &Source) -> Vec<String> {
    source
        .product_code()
        .filter(|(_, line)| line.contains(".unwrap()"))
        .map(|(number, _)| format!("{}:{number}: unwrap() outside tests", source.path))
        .collect()
}

/// Only the program itself and this tool talk to the terminal; build scripts talk to cargo.
fn printing(source: &Source) -> Vec<String> {
    let may_print = PRINTING_FOLDERS.iter().any(|folder| source.path.starts_with(folder))
        || source.path.ends_with("/build.rs");
    if may_print {
        return Vec::new();
    }
    source
        .product_code()
        .filter_map(|(number, line)| Some((number, printing_macro(line)?)))
        .map(|(number, name)| format!("{}:{number}: {name} outside crates/flatout", source.path))
        .collect()
}

fn printing_macro(line: &str) -> Option<&'static str> {
    PRINTING_MACROS.into_iter().find(|name| has_word(line, name))
}

/// A file opens with what it is for.
fn missing_module_doc(source: &Source) -> Option<String> {
    let opening = source
        .text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("#!["));
    (!opening.is_some_and(|line| line.starts_with("//!")))
        .then(|| format!("{}:1: no `//!` at the top that says what it is for", source.path))
}

/// A folder is a thing, a file is the noun that it defines.
fn empty_name(path: &str) -> Option<String> {
    let parts = Path::new(path).with_extension("");
    parts
        .iter()
        .find_map(|part| EMPTY_NAMES.into_iter().find(|&name| part == name))
        .map(|name| format!("{path}:1: `{name}` says nothing about what is inside"))
}

/// Whether the word stands there and not as the end or beginning of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, behind) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(is_name) && (word.ends_with('!') || !behind.starts_with(is_name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(text: &str) -> Source {
        Source::new("crates/io/src/a.rs", text)
    }

    fn sys(text: &str) -> Source {
        Source::new("crates/sys/src/a.rs", text)
    }

    #[test]
    fn unsafe_is_for_sys() {
        let text = "//! A.\n#![forbid(unsafe_code)]\n// unsafe\nfn a() { b(\"unsafe\") }\n";
        assert_eq!(unsafe_outside_sys(&io(text)), Vec::<String>::new());
        assert_eq!(unsafe_outside_sys(&sys("unsafe fn a() {}")), Vec::<String>::new());
        let found = unsafe_outside_sys(&io("//! A.\nunsafe impl Send for A {}\n"));
        assert_eq!(found, ["crates/io/src/a.rs:2: unsafe outside crates/sys/"]);
        let hidden = io("#[cfg(test)]\nmod tests {\n    fn a() { unsafe { b() } }\n}\n");
        assert_eq!(unsafe_outside_sys(&hidden).len(), 1, "tests are no exception");
    }

    #[test]
    fn crate_roots_forbid_unsafe_code() {
        for good in ["//! A.\n\n#![forbid(unsafe_code)]\nmod a;\n", "#![forbid(unsafe_code)]\n"] {
            assert_eq!(missing_forbid(&io(good)), None);
        }
        assert_eq!(missing_forbid(&sys("//! A.\n")), None);
        for bad in ["//! A.\nmod a;\n", "// #![forbid(unsafe_code)]\n", "#![deny(unsafe_code)]\n"] {
            let found = missing_forbid(&io(bad)).unwrap();
            assert!(found.contains("a.rs:1: a crate root without"), "{found}");
        }
    }

    #[test]
    fn unsafe_blocks_say_why() {
        let good = [
            "// SAFETY: the caller keeps it.\nunsafe { a() }",
            "// SAFETY: one,\n// two,\n// three,\n// four,\n// five.\nlet x = unsafe { a() };",
            "// SAFETY: b outlives c.\nlet x = b(\n    c,\n    unsafe { a() },\n);",
            "unsafe fn a() {}\n",
            "let not_unsafe = 1; // unsafe { in prose\n",
        ];
        for text in good {
            assert_eq!(unsafe_without_reason(&sys(text)), Vec::<String>::new(), "{text}");
        }
        let bad = [
            "unsafe { a() }",
            "// It is fine.\nunsafe { a() }",
            "// SAFETY: far away.\n\n\n\n\nunsafe { a() }",
            "// SAFETY: of another block.\nlet x = 1;\n// Prose.\nunsafe { a() }",
        ];
        for text in bad {
            assert_eq!(unsafe_without_reason(&sys(text)).len(), 1, "{text}");
        }
    }

    #[test]
    fn unwrap_is_for_tests() {
        let good = "fn a() { b.unwrap_or(1); c.expect(\"why\") }\n#[cfg(test)]\nmod tests {\n    fn a() { b.unwrap() }\n}\n";
        assert_eq!(unwraps(&io(good)), Vec::<String>::new());
        let found = unwraps(&io("//! A.\nfn a() { b.unwrap() }\n"));
        assert_eq!(found, ["crates/io/src/a.rs:2: unwrap() outside tests"]);
    }

    #[test]
    fn printing_is_for_the_program() {
        for text in ["fn a() { println!() }", "fn a() { eprint!() }", "fn a() { dbg!(b) }"] {
            assert_eq!(printing(&io(text)).len(), 1, "{text}");
            let examples = Source::new("crates/io/examples/a.rs", text);
            let program = Source::new("crates/flatout/src/main.rs", text);
            let tool = Source::new("xtask/src/main.rs", text);
            for allowed in [examples, program, tool] {
                assert_eq!(printing(&allowed), Vec::<String>::new(), "{text}");
            }
        }
        assert_eq!(printing(&io("fn a() { writeln!(b); my_println!() }")), Vec::<String>::new());
    }

    #[test]
    fn files_open_with_their_purpose() {
        assert_eq!(missing_module_doc(&io("//! A.\n")), None);
        assert_eq!(missing_module_doc(&io("#![forbid(unsafe_code)]\n\n//! A.\n")), None);
        for bad in ["", "// A.\n", "/// A.\nfn a() {}\n", "use b;\n//! A.\n"] {
            assert!(missing_module_doc(&io(bad)).is_some(), "{bad}");
        }
    }

    #[test]
    fn names_say_what_is_inside() {
        for good in ["crates/io/src/engine.rs", "crates/io/src/utility.rs", "xtask/src/main.rs"] {
            assert_eq!(empty_name(good), None);
        }
        for bad in ["crates/common/src/lib.rs", "crates/io/src/util.rs", "a/tests/helpers/mod.rs"] {
            assert!(empty_name(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn all_rules_are_applied() {
        let text = "fn a() { unsafe { b.unwrap() }; print!() }\n";
        let source = Source::new("crates/io/src/misc.rs", text);
        let roots = BTreeSet::from([source.path.clone()]);
        assert_eq!(complaints(&source, &roots).len(), 7);
    }
}
