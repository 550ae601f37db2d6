//! Part: the tests of one crate or of one area, for whoever works on it.

use std::path::Path;

use crate::{sources, steps, tidy, workspace};

/// Runs format, tidy and the tests of this name: those of a crate, else all tests of all crates
/// that have it as a module in their path.
///
/// Errors: the first step that fails, or nothing has this name.
pub fn test(root: &Path, name: &str) -> Result<(), String> {
    let rooms = workspace::read(root)?.rooms;
    let room = rooms.iter().find(|room| [name, &format!("flatout-{name}")].contains(&&*room.name));
    let sources = sources::read(root, ".rs")?;
    if room.is_none() && !sources.iter().any(|source| has_module(&source.path, name)) {
        return Err(format!("no crate and no module is called `{name}`"));
    }
    let mut steps = steps::Steps::new(root);
    steps.cargo("fmt", &["fmt", "--all", "--check"])?;
    steps.inside("tidy", || tidy::check(root))?;
    match room {
        Some(room) => steps.cargo("test", &["test", "--package", &room.name])?,
        None => {
            let filter = format!("{name}::");
            let rooms = crate::rooms(crate::Extent::Sampled);
            let all = [&["test"], &rooms[..], &crate::FEATURES, &["--", &filter]];
            steps.cargo("test", &all.concat())?;
        }
    }
    steps.finish();
    Ok(())
}

/// Whether a file is a module of this name, or lies in one.
fn has_module(path: &str, name: &str) -> bool {
    let inside = path.split_once("/src/").or_else(|| path.split_once("/tests/"));
    let modules = inside.and_then(|(_, inside)| inside.strip_suffix(".rs"));
    modules.is_some_and(|modules| modules.split('/').any(|module| module == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_a_module_anywhere() {
        for path in ["crates/tree/src/copy/links.rs", "crates/flatout/tests/e2e/copy.rs"] {
            assert!(has_module(path, "copy"), "{path}");
        }
        for path in ["crates/tree/src/copy_file.rs", "xtask/copy.rs"] {
            assert!(!has_module(path, "copy"), "{path}");
        }
    }
}
