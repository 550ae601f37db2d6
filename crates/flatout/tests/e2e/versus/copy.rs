//! Races of copiers: real ones, and scripts that lose something on the way.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Stable, rows, warnings};
use crate::schema::assert_valid;
use crate::skip::needs;

/// A tiny corpus.
const TINY: [&str; 6] = ["--files", "5", "--file-size", "3K", "--tree-depth", "2"];

fn installed(program: &str) -> Result<(), String> {
    let is_there =
        ["/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if is_there { Ok(()) } else { Err(format!("{program} is not installed")) }
}

fn words<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more, &["--format", "json"]].concat()
}

fn row_of(document: &Value, name: &str) -> Value {
    let found = rows(document, "versus/copy");
    found.into_iter().find(|row| row["parameters"]["contestant"] == name).unwrap()
}

#[test]
fn flatout_races_each_copier_and_keeps_all_that_cp_a_keeps() {
    needs!(installed("rsync"));
    let stable = Stable::new();
    let ran = stable.race(&words(&["cp-r", "rsync-a", "cp-a", "tar"], &TINY));
    let document = ran.exits(0).document();
    assert_valid(&document);
    let pairs = rows(&document, "versus/ratio");
    let against: Vec<_> = pairs.iter().map(|pair| &pair["parameters"]["against"]).collect();
    assert_eq!(against, ["cp-r", "rsync-a", "cp-a", "tar"]);
    for pair in &pairs {
        assert_eq!(pair["parameters"]["subject"], "flatout");
        assert_eq!(pair["parameters"]["corpus"], "5x3K@2");
        assert_eq!(pair["audit"]["fidelity"], "archive");
    }
    let kept_less = |row: &Value| row["warnings"].to_string().contains("keeps_less");
    for pair in &pairs {
        let is_plain = pair["parameters"]["against"] == "cp-r";
        assert_eq!(kept_less(pair), is_plain, "{pair:#}");
    }
    assert!(!kept_less(&row_of(&document, "cp-a")) && kept_less(&row_of(&document, "cp-r")));
    let plain = row_of(&document, "cp-r");
    assert_eq!(plain["audit"]["fidelity"], "contents+symlinks");
    assert_eq!(plain["parameters"]["bytes"], 5 * 3072);
    for name in ["cp-a", "flatout"] {
        let whole = row_of(&document, name);
        assert_eq!((&whole["audit"]["lacks"], &whole["n"]), (&"".into(), &2.into()));
    }
    let ours = row_of(&document, "flatout");
    assert!(
        ours["audit"]["command"].as_str().unwrap().contains(" copy -T --resume=never /"),
        "{ours:#}"
    );
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn without_names_copiers_are_raced_too() {
    let stable = Stable::new();
    stable.rival("fcp", "exec /bin/cp -a \"$1\" \"$2\"");
    let bin = stable.0.join("bin");
    let race = stable.flatout(&stable.0.join("place"), &words(&[], &TINY));
    let ran = race
        .with(|command| {
            command.env("PATH", bin);
        })
        .run();
    let document = ran.exits(0).document();
    assert!(ran.stderr.contains("racing fcp: 1 race, files of "), "{ran}");
    assert!(ran.stderr.contains("not raced yet: linpack"), "{ran}");
    let [pair] = &rows(&document, "versus/ratio")[..] else { panic!("{document:#}") };
    let parameters = &pair["parameters"];
    assert_eq!(
        (&parameters["subject"], &parameters["against"]),
        (&"flatout".into(), &"fcp".into())
    );
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn without_a_path_rivals_are_where_execvp_looks() {
    let stable = Stable::new();
    let race = stable.flatout(&stable.0.join("place"), &words(&["cp-a"], &TINY));
    let ran = race
        .with(|command| {
            command.env_remove("PATH");
        })
        .run();
    assert_eq!(rows(&ran.exits(0).document(), "versus/ratio").len(), 1);
}

#[test]
fn one_file_is_copied_as_a_file_and_without_attributes_where_that_is_asked() {
    let stable = Stable::new();
    let asked = ["cp-a", "tar", "dd-1m", "--corpus", "file-4K,2x1K:2"];
    let document = stable.race(&words(&asked, &["--no-preserve=all"])).exits(0).document();
    let pairs = rows(&document, "versus/ratio");
    let raced = pairs.iter().map(|pair| {
        let text = |key: &str| pair["parameters"][key].as_str().unwrap();
        (text("corpus"), text("against"))
    });
    let wanted = [("file-4K", "cp-a"), ("file-4K", "dd-1m"), ("2x1K:2", "cp-a"), ("2x1K:2", "tar")];
    assert_eq!(raced.collect::<Vec<_>>(), wanted);
    let ours = row_of(&document, "flatout");
    let command = ours["audit"]["command"].as_str().unwrap();
    assert!(command.contains("--no-preserve=all") && command.contains("/file-000000"), "{command}");
    assert_eq!(row_of(&document, "cp-a")["audit"]["lacks"], "");
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn durable_refresh_and_cold_are_states_of_their_own() {
    let stable = Stable::new();
    let states = ["cp-a", "--state", "hot,cold,durable,refresh"];
    let document = stable.race(&words(&states, &TINY)).exits(0).document();
    let found = rows(&document, "versus/copy");
    let states: Vec<_> =
        found.iter().map(|row| row["parameters"]["cache_state"].as_str().unwrap()).collect();
    let wanted = ["hot", "cold", "durable", "refresh"].map(|state| [state; 2]);
    assert_eq!(states, wanted.concat(), "flatout and cp-a in each");
    assert!(found.iter().all(|row| row["n"] == 2), "{found:#?}");
    for one in 0..2 {
        assert_eq!(found[2 + one]["audit"]["source_cached_bytes"], 0);
        assert_eq!(found[6 + one]["audit"]["targets"], "deleted just before each run");
    }
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn a_copier_that_loses_something_fails_and_the_path_is_named() {
    for (harm, said) in [
        ("rm \"$2\"/d/d/file-000003", "missing \\\"d/d/file-000003\\\""),
        ("truncate -s 9 \"$2\"/d/d/file-000001", "size \\\"d/d/file-000001\\\""),
    ] {
        let stable = Stable::new();
        stable.rival("fcp", &format!("cp -a \"$1\" \"$2\" && {harm}"));
        let document = stable.race(&words(&["cp-a", "fcp"], &TINY)).exits(1).document();
        let row = row_of(&document, "fcp");
        assert_eq!((&row["status"], &row["median"]), (&"failed".into(), &Value::Null));
        let text = row["warnings"].to_string();
        assert!(text.contains(said), "{text}");
        assert_eq!(row_of(&document, "cp-a")["n"], 2, "the others go on");
        assert_eq!(stable.left().len(), 0);
    }
}

#[test]
fn a_tree_of_the_user_is_raced_and_left_alone_and_a_lost_symlink_fails() {
    let stable = Stable::new();
    let tree = stable.0.join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "x").unwrap();
    std::os::unix::fs::symlink("nowhere", tree.join("link")).unwrap();
    stable.rival("fcp", "cp -a \"$1\" \"$2\" && rm \"$2/link\"");
    let tree = tree.to_str().unwrap();
    let document = stable.race(&words(&["cp-a", "fcp"], &["--tree", tree])).exits(1).document();
    let text = row_of(&document, "fcp")["warnings"].to_string();
    assert!(text.contains("missing symlink \\\"link\\\""), "{text}");
    assert_eq!(fs::read_dir(tree).unwrap().count(), 2);
    assert!(stable.left().is_empty(), "{:?}", stable.left());
}

#[test]
fn a_corpus_that_nobody_knows_is_refused_with_those_that_there_are() {
    let stable = Stable::new();
    let ran = stable.race(&["cp-a", "--corpus", "nonsense"]);
    ran.complains(2, &["nonsense", "source-tree"]);
    assert!(stable.left().is_empty());
}

#[test]
fn what_does_not_fit_is_left_out_with_the_reason() {
    let stable = Stable::new();
    let corpora = ["cp-a", "--corpus", "1x1K,1x64M", "--max-write", "1M"];
    let ran = stable.race(&words(&corpora, &[]));
    let document = ran.exits(0).document();
    assert_eq!(rows(&document, "versus/copy").len(), 2, "flatout and cp-a");
    assert!(ran.stderr.contains("1x64M is left out"), "{}", ran.stderr);
    // Who reads the page has not seen that.
    let told = rows(&document, "versus/missing")[0]["warnings"][0]["text"].to_string();
    assert!(told.contains("1x64M is left out: "), "{document:#}");
    // Where nothing is left, the record says why.
    let ran = stable.race(&words(&["cp-a", "--corpus", "1x64M", "--max-write", "1M"], &[]));
    let error = &ran.exits(1).document()["end"]["errors"][0];
    assert!(error.as_str().unwrap().starts_with("1x64M is left out: "), "{error}");
}

#[test]
fn where_the_usual_trees_do_not_fit_those_of_quick_are_raced() {
    let stable = Stable::new();
    let words = ["cp-a", "--max-write", "200M", "--rounds", "1", "--format", "json"];
    let ran = stable.versus(&stable.0.join("place"), &words).run();
    let document = ran.exits(0).document();
    assert!(ran.stderr.contains("no room for the usual work: that of --quick is raced"), "{ran}");
    let figures = rows(&document, "versus/copy");
    let is_small = |row: &Value| {
        let corpus = row["parameters"]["corpus"].as_str().unwrap();
        ["4x4M", "1000x4K"].contains(&corpus) && warnings(row).contains(&"size_reduced")
    };
    assert!(figures.len() == 4 && figures.iter().all(is_small), "{ran}");
}

#[test]
fn a_tree_that_holds_the_place_of_the_race_is_refused_before_anything_is_made() {
    let stable = Stable::new();
    let place = stable.0.join("place");
    fs::write(place.join("file"), "x").unwrap();
    for tree in [place.clone(), place.parent().unwrap().to_owned()] {
        let ran = stable.race(&["cp-a", "tar", "--tree", tree.to_str().unwrap()]);
        ran.complains(2, &["--tree", "--directory"]);
        assert_eq!(crate::bin::Folder::names_in(&place), ["file".to_owned()].into());
    }
}

#[test]
fn options_of_trees_without_a_copier_are_wrong_use() {
    let stable = Stable::new();
    stable.honest();
    let state = ["--state", "warm,durable"];
    for option in [["--files", "5"], ["--corpus", "large"], ["--tree", "/nowhere"], state] {
        stable.race(&[&["b3sum"], &option[..]].concat()).complains(2, &["--corpus", "cp-a"]);
    }
    assert!(stable.left().is_empty());
}

#[test]
fn a_link_to_the_source_is_no_copy() {
    let stable = Stable::new();
    stable.rival("fcp", "ln -s \"$1\" \"$2\"");
    let document = stable.race(&words(&["cp-a", "fcp"], &TINY)).exits(1).document();
    assert_eq!(row_of(&document, "fcp")["status"], "failed");
    assert_eq!(row_of(&document, "cp-a")["n"], 2);
    assert_eq!(stable.left().len(), 0);
}
