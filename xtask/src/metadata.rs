//! What cargo knows about the workspace, reduced to what the rules ask for.
//!
//! Only the two platforms that flatout is written for are resolved, so that no crate of another
//! system is downloaded or counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// The workspace and everything that it depends on.
#[derive(Debug, Default)]
pub struct Graph {
    /// Where cargo puts what it builds.
    pub target_directory: PathBuf,
    /// Members first, in the order of cargo.
    pub packages: Vec<Package>,
    /// Ids of the packages that a bare `cargo build` starts from.
    pub default_members: Vec<String>,
    /// Package id to the ids that it needs at run time or to be built (not for its tests).
    pub needs: BTreeMap<String, BTreeSet<String>>,
}

/// One package of the graph.
#[derive(Debug, Default)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// The SPDX expression; none when the manifest gives none.
    pub licence: Option<String>,
    /// Whether it belongs to this repository.
    pub is_member: bool,
    /// Names of the packages in its manifest, for whatever purpose.
    pub declared: BTreeSet<String>,
    /// The first source file of each of its targets, absolute.
    pub crate_roots: Vec<PathBuf>,
}

/// Asks cargo about the workspace in this folder.
///
/// Errors: cargo cannot be started, refuses the manifests, or answers in another format.
pub fn read(root: &Path) -> Result<Graph, String> {
    let mut command = Command::new(crate::steps::cargo());
    command.args(["metadata", "--format-version", "1"]).current_dir(root);
    for platform in PLATFORMS {
        command.args(["--filter-platform", platform]);
    }
    let output =
        command.output().map_err(|error| format!("cargo metadata cannot be started: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata: {}", why.trim_end()));
    }
    parse(&output.stdout)
}

/// Reads the answer of `cargo metadata --format-version 1`.
pub fn parse(json: &[u8]) -> Result<Graph, String> {
    let all: Value =
        serde_json::from_slice(json).map_err(|error| format!("cargo metadata: {error}"))?;
    let members: BTreeSet<String> = strings(&all["workspace_members"]).collect();
    let mut graph = Graph {
        target_directory: PathBuf::from(text(&all, "target_directory")?),
        default_members: strings(&all["workspace_default_members"]).collect(),
        ..Graph::default()
    };
    for package in list(&all["packages"]) {
        graph.packages.push(Package {
            is_member: members.contains(&text(package, "id")?),
            name: text(package, "name")?,
            version: text(package, "version")?,
            licence: package["license"].as_str().map(str::to_owned),
            declared: list(&package["dependencies"])
                .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
                .collect(),
            crate_roots: list(&package["targets"])
                .filter_map(|target| target["src_path"].as_str().map(PathBuf::from))
                .collect(),
        });
    }
    graph.packages.sort_by_key(|package| !package.is_member);
    for node in list(&all["resolve"]["nodes"]) {
        let needed = list(&node["deps"])
            .filter(|edge| list(&edge["dep_kinds"]).any(|kind| kind["kind"] != "dev"))
            .filter_map(|edge| edge["pkg"].as_str().map(str::to_owned));
        graph.needs.insert(text(node, "id")?, needed.collect());
    }
    Ok(graph)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn strings(value: &Value) -> impl Iterator<Item = String> {
    list(value).filter_map(|entry| entry.as_str().map(str::to_owned))
}

fn text(value: &Value, key: &str) -> Result<String, String> {
    value[key]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("cargo metadata: an entry without `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{
        "packages": [
            {"id": "dep 1", "name": "dep", "version": "1.0.0", "license": "MIT",
             "dependencies": [], "targets": [{"src_path": "/registry/dep/src/lib.rs"}]},
            {"id": "own", "name": "flatout-io", "version": "0.1.0", "license": null,
             "dependencies": [{"name": "dep", "kind": null}, {"name": "probe", "kind": "dev"}],
             "targets": [{"src_path": "/r/crates/io/src/lib.rs"}]}],
        "workspace_members": ["own"], "workspace_default_members": ["own"],
        "resolve": {"nodes": [
            {"id": "own", "deps": [
                {"pkg": "dep 1", "dep_kinds": [{"kind": null}]},
                {"pkg": "probe 2", "dep_kinds": [{"kind": "dev"}]},
                {"pkg": "cc 3", "dep_kinds": [{"kind": "dev"}, {"kind": "build"}]}]},
            {"id": "dep 1", "deps": []}]},
        "target_directory": "/r/target"}"#;

    #[test]
    fn the_answer_of_cargo_is_reduced_to_what_the_rules_ask() {
        let graph = parse(ANSWER.as_bytes()).unwrap();
        assert_eq!(graph.target_directory, Path::new("/r/target"));
        let names: Vec<&str> = graph.packages.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["flatout-io", "dep"]);
        assert!(graph.packages[0].is_member && !graph.packages[1].is_member);
        assert!(graph.packages[0].declared.contains("probe"));
        assert_eq!(graph.packages[1].licence.as_deref(), Some("MIT"));
        let needed: Vec<&str> = graph.needs["own"].iter().map(String::as_str).collect();
        assert_eq!(needed, ["cc 3", "dep 1"], "what only tests use is not needed");
    }

    #[test]
    fn an_answer_in_another_format_is_refused() {
        assert!(parse(b"no json").unwrap_err().starts_with("cargo metadata: "));
        assert!(parse(b"{}").unwrap_err().contains("target_directory"));
    }
}
