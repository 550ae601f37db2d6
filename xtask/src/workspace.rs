//! Workspace: what cargo says about the packages of this repository, and how many others they need.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::steps;

/// The most packages that the default build may consist of, the own rooms included.
const LIMIT_PACKAGES: usize = 150;

/// The members of the workspace.
#[derive(Debug)]
pub struct Workspace {
    /// Where cargo puts what it builds.
    pub target_directory: PathBuf,
    pub rooms: Vec<Room>,
}

/// A package of this repository.
#[derive(Debug, Default)]
pub struct Room {
    pub name: String,
    pub manifest: PathBuf,
    /// Names of the packages in its manifest, for whatever purpose.
    pub declared: BTreeSet<String>,
    /// Its files of tests, without those that need a feature.
    pub tests: Vec<String>,
}

/// Asks cargo about the members of the workspace in this folder.
///
/// Errors: cargo cannot be started, refuses the manifests, or answers in another format.
pub fn read(root: &Path) -> Result<Workspace, String> {
    parse(&ask(root, &["metadata", "--format-version", "1", "--no-deps"])?)
}

fn ask(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(steps::cargo());
    steps::answer(command.args(arguments).current_dir(root), &format!("cargo {}", arguments[0]))
}

fn parse(json: &str) -> Result<Workspace, String> {
    let answer: Value =
        serde_json::from_str(json).map_err(|error| format!("cargo metadata: {error}"))?;
    let text = |value: &Value, key: &str| {
        let found = value[key].as_str().map(str::to_owned);
        found.ok_or_else(|| format!("cargo metadata: an entry without `{key}`"))
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let target_directory = PathBuf::from(text(&answer, "target_directory")?);
    let room = |package: &Value| {
        let declared = list(&package["dependencies"]);
        let is_test = |target: &Value| {
            list(&target["kind"]).contains(&"test".into())
                && list(&target["required-features"]).is_empty()
        };
        let tests = list(&package["targets"]).into_iter().filter(is_test);
        Ok(Room {
            name: text(package, "name")?,
            manifest: text(package, "manifest_path")?.into(),
            declared: declared.iter().map(|other| text(other, "name")).collect::<Result<_, _>>()?,
            tests: tests.map(|test| text(&test, "name")).collect::<Result<_, _>>()?,
        })
    };
    let rooms = list(&answer["packages"]).iter().map(room).collect::<Result<_, String>>()?;
    Ok(Workspace { target_directory, rooms })
}

/// How many packages a bare `cargo build` compiles.
///
/// Errors: they are more than the house allows.
pub fn default_packages(root: &Path) -> Result<usize, String> {
    let edges = ["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let count = distinct(&ask(root, &edges)?);
    if count > LIMIT_PACKAGES {
        return Err(format!(
            "the default build has {count} packages, {LIMIT_PACKAGES} are allowed (see `cargo tree`)"
        ));
    }
    Ok(count)
}

/// Lines of `cargo tree` that name a package for the first time; ` (*)` marks a repetition.
fn distinct(tree: &str) -> usize {
    let lines = tree.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.trim_end_matches(" (*)")).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_cargo_is_reduced_to_what_the_rules_ask() {
        let workspace = parse(
            r#"{"packages": [{"name": "flatout-io", "manifest_path": "/r/crates/io/Cargo.toml",
                "dependencies": [{"name": "a", "kind": null}, {"name": "b", "kind": "dev"}],
                "targets": [{"name": "io", "kind": ["lib"]}, {"name": "x", "kind": ["test"]},
                    {"name": "y", "kind": ["test"], "required-features": ["z"]}]}],
                "target_directory": "/r/target"}"#,
        )
        .unwrap();
        assert_eq!(workspace.target_directory, Path::new("/r/target"));
        let room = &workspace.rooms[0];
        assert_eq!(room.name, "flatout-io");
        assert_eq!(room.manifest, Path::new("/r/crates/io/Cargo.toml"));
        assert_eq!(room.declared, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        assert_eq!(room.tests, ["x"]);
    }

    #[test]
    fn an_answer_in_another_format_is_refused() {
        assert!(parse("no json").unwrap_err().starts_with("cargo metadata: "));
        assert!(parse("{}").unwrap_err().contains("target_directory"));
    }

    #[test]
    fn a_package_is_counted_once() {
        assert_eq!(distinct("own v1 (/r)\na v1\nb v2\na v1 (*)\n\nother v1 (/r)\nb v2\n"), 4);
    }
}
