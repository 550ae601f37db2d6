//! Operands on real directories. What cp(1) makes of the same words is compared in the end-to-end
//! tests.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// `src` with files, two empty directories, and files and symlinks beside them.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for directory in ["src/sub", "d", "other/src/sub"] {
        fs::create_dir_all(path.join(directory)).unwrap();
    }
    for file in ["a", "b", "src/f", "src/sub/g", "other/a", "other/src/h"] {
        fs::write(path.join(file), file).unwrap();
    }
    for (text, name) in [("a", "link"), ("src", "to-src"), ("d", "to-d"), ("nowhere", "dangling")] {
        symlink(text, path.join(name)).unwrap();
    }
    folder
}

/// The plan in words: `source → target` for each operand, with the folder left out.
fn planned(folder: &TempDir, sources: &[&str], destination: &Destination) -> Vec<Vec<String>> {
    let plan = plan_of(folder, sources, destination);
    assert!(plan.objections.is_empty(), "{:?}", plan.objections);
    let words = |operand: &Operand| {
        let [source, target] = [&operand.source, &operand.target]
            .map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string());
        format!("{source} → {target}")
    };
    plan.rounds.iter().map(|round| round.iter().map(words).collect()).collect()
}

fn plan_of(folder: &TempDir, sources: &[&str], destination: &Destination) -> Plan {
    let sources: Vec<_> = sources.iter().map(|name| folder.path().join(name)).collect();
    plan(&sources, destination, Reach::Everything, None)
}

/// The only objection, with the folder left out.
fn objection(folder: &TempDir, sources: &[&str], destination: &Destination) -> String {
    let objections = plan_of(folder, sources, destination).objections;
    assert_eq!(objections.len(), 1, "{objections:?}");
    objections[0].to_string().replace(&format!("{}/", folder.path().display()), "")
}

fn named(folder: &TempDir, target: &str) -> Destination {
    Destination::Named(folder.path().join(target))
}

fn exactly(folder: &TempDir, target: &str) -> Destination {
    Destination::Exactly(folder.path().join(target))
}

#[test]
fn a_directory_takes_sources_by_their_last_names() {
    let folder = folder();
    let into = named(&folder, "d");
    assert_eq!(planned(&folder, &["src", "a"], &into), [["src → d/src", "a → d/a"]]);
    assert_eq!(planned(&folder, &["src/"], &into), [["src → d/src"]]);
    assert_eq!(planned(&folder, &["src"], &named(&folder, "to-d")), [["src → to-d/src"]]);
    assert_eq!(planned(&folder, &["src"], &named(&folder, "new")), [["src → new"]]);
    assert_eq!(planned(&folder, &["src"], &exactly(&folder, "new//")), [["src → new"]]);
    assert_eq!(planned(&folder, &["src"], &exactly(&folder, "d")), [["src → d"]]);
    assert_eq!(planned(&folder, &["to-src"], &named(&folder, "new")), [["to-src → new"]]);
}

#[test]
fn what_has_no_name_fills_the_directory_itself() {
    let folder = folder();
    let plan = plan_of(&folder, &["src/.", "src/sub/.."], &named(&folder, "d"));
    let target = &plan.rounds[0][0].target;
    assert!(target.as_os_str().as_encoded_bytes().ends_with(b"d/."), "{target:?}");
    assert_eq!(plan.rounds.len(), 1);
    assert_eq!(plan.repeated.len(), 1, "it is the same directory: {plan:?}");
}

#[test]
fn a_file_is_not_written_over_itself_however_it_is_named() {
    let folder = folder();
    fs::hard_link(folder.path().join("a"), folder.path().join("hard")).unwrap();
    for (source, target) in
        [("a", "a"), ("a", "hard"), ("hard", "a"), ("a", "link"), ("link", "a"), ("link", "link")]
    {
        let said = objection(&folder, &[source], &named(&folder, target));
        assert!(said.ends_with(SAME), "{source} {target}: {said}");
    }
    let said = objection(&folder, &["to-src"], &exactly(&folder, "src"));
    assert_eq!(said, format!("cannot copy \"to-src\" to \"src\": {SAME}"));
    assert_eq!(
        objection(&folder, &["src"], &exactly(&folder, "to-src")),
        format!("cannot copy \"src\" to \"to-src\": {SAME}")
    );
    assert!(objection(&folder, &["src/f"], &named(&folder, "src")).ends_with(SAME));
}

#[test]
fn a_directory_is_not_copied_into_itself() {
    let folder = folder();
    symlink("src/sub", folder.path().join("inner")).unwrap();
    for target in ["src", "src/new", "src/sub", "src/sub/new", "inner", "inner/new", "to-src"] {
        let said = objection(&folder, &["src"], &named(&folder, target));
        assert!(said.ends_with(INSIDE), "{target}: {said}");
    }
    assert!(objection(&folder, &["."], &named(&folder, "new")).ends_with(INSIDE));
    assert_eq!(planned(&folder, &["src/sub"], &named(&folder, "src/new")).len(), 1);
}

#[test]
fn kinds_that_do_not_fit_are_refused() {
    let folder = folder();
    fs::create_dir(folder.path().join("d/b")).unwrap();
    fs::write(folder.path().join("d/src"), "").unwrap();
    let said = |source, destination: &Destination| objection(&folder, &[source], destination);
    assert!(said("b", &named(&folder, "d")).ends_with(OVER_DIRECTORY));
    assert!(said("a", &exactly(&folder, "d")).ends_with(OVER_DIRECTORY));
    assert!(said("src", &named(&folder, "d")).ends_with(OVER_OTHER));
    assert!(said("src", &named(&folder, "a")).ends_with(OVER_OTHER));
    assert!(said("src", &exactly(&folder, "to-d")).ends_with(OVER_OTHER));
    assert!(said("a", &named(&folder, "dangling")).ends_with(DANGLING));
    assert!(said("a", &Destination::Named("/dev/null".into())).ends_with(SPECIAL));
}

#[test]
fn what_is_not_there_is_named() {
    let folder = folder();
    let said = |sources: &[&str], target| objection(&folder, sources, &named(&folder, target));
    assert_eq!(said(&["gone", "a"], "d"), r#"cannot stat "gone": No such file or directory"#);
    assert_eq!(said(&["a/"], "d"), r#"cannot stat "a/": Not a directory"#);
    assert_eq!(said(&["a"], "no/such"), r#"cannot create "no/such": No such file or directory"#);
    assert_eq!(said(&["a"], "new/"), r#"cannot create "new/": Not a directory"#);
    assert_eq!(said(&["src"], "new/."), r#"cannot create "new/.": No such file or directory"#);
    assert_eq!(said(&["a"], "b/x"), r#"cannot create "b/x": Not a directory"#);
    assert_eq!(said(&["a", "b"], "new"), r#"cannot copy into "new": No such file or directory"#);
    assert_eq!(said(&["a", "src"], "b"), r#"cannot copy into "b": Not a directory"#);
}

#[test]
fn a_symlink_that_the_user_names_is_followed_to_the_file_that_is_rewritten() {
    let folder = folder();
    let plan = plan_of(&folder, &["b"], &named(&folder, "link"));
    assert_eq!(plan.rounds[0][0].target, folder.path().canonicalize().unwrap().join("a"));
    fs::hard_link(folder.path().join("a"), folder.path().join("hard")).unwrap();
    let plan = plan_of(&folder, &["b"], &named(&folder, "link"));
    assert_eq!(plan.rounds[0][0].target, folder.path().join("link"), "as cp does");
    let plan = plan_of(&folder, &["link"], &named(&folder, "dangling"));
    assert_eq!(plan.rounds[0][0].target, folder.path().join("dangling"), "a link replaces a link");
}

#[test]
fn one_source_does_not_replace_what_another_one_brings() {
    let folder = folder();
    let into = named(&folder, "d");
    assert_eq!(
        objection(&folder, &["a", "other/a"], &into),
        r#"cannot copy "other/a" to "d/a": "a" goes there too, and neither may replace the other"#
    );
    fs::write(folder.path().join("other/src/a"), "").unwrap();
    let said = objection(&folder, &["src", "other/src/a", "a"], &into);
    assert!(said.contains(r#"other/src/a" goes there too"#), "{said}");
}

#[test]
fn trees_are_merged_one_after_the_other() {
    let folder = folder();
    fs::write(folder.path().join("other/src/f"), "").unwrap();
    let into = named(&folder, "d");
    let rounds = planned(&folder, &["src", "a", "other/src"], &into);
    assert_eq!(rounds, [vec!["src → d/src", "a → d/a"], vec!["other/src → d/src"]]);
    let rounds = planned(&folder, &["a", "other/.", "b", "src/."], &into);
    assert_eq!(
        rounds,
        [vec!["a → d/a", "b → d/b"], vec!["other → d"], vec!["src → d"]],
        "what is later replaces"
    );
    let rounds = planned(&folder, &["other/.", "a"], &into);
    assert_eq!(rounds, [vec!["other → d"], vec!["a → d/a"]]);
}

/// Whichever of them comes first has been read, or written, before the other one begins.
#[test]
fn operands_of_which_one_reads_where_another_one_writes_take_turns() {
    let folder = folder();
    fs::create_dir_all(folder.path().join("d/src/sub")).unwrap();
    fs::write(folder.path().join("d/src/sub/g"), "").unwrap();
    let into = named(&folder, "d");
    let rounds = |sources: &[&str]| planned(&folder, sources, &into).len();
    // A source in a tree that another one fills, in both orders, at whatever depth.
    assert_eq!(rounds(&["d/src/sub", "src"]), 2);
    assert_eq!(rounds(&["src", "d/src/sub"]), 2);
    assert_eq!(rounds(&["d/src/sub/g", "src"]), 2);
    assert_eq!(rounds(&["d/src/sub/g", "src/."]), 2);
    assert_eq!(rounds(&["src/.", "d/src/sub/g"]), 2);
    // One that stands beside what is written is nobody's concern.
    assert_eq!(rounds(&["d/src/sub/g", "other/a"]), 1);
    assert_eq!(rounds(&["d/src/sub", "d/src/sub/g", "a", "b"]), 1);
    symlink("d/src/sub", folder.path().join("way")).unwrap();
    assert_eq!(rounds(&["src", "way/g"]), 2, "symlinks lead there, too");
    assert_eq!(rounds(&["src", "way/"]), 2);
    assert_eq!(rounds(&["src", "d/src/sub/../sub/."]), 2);
    fs::hard_link(folder.path().join("d/src/sub/g"), folder.path().join("d/b")).unwrap();
    assert_eq!(rounds(&["d/src/sub/g", "b"]), 2, "another name of what may be written in place");
}

#[test]
fn a_source_that_is_named_twice_is_copied_once() {
    let folder = folder();
    let plan = plan_of(&folder, &["a", "a", "src", "src/", "src"], &named(&folder, "d"));
    assert_eq!(plan.rounds.concat().len(), 2);
    assert_eq!(plan.repeated.len(), 3);
    assert!(plan.objections.is_empty());
}

#[test]
fn names_and_parents_are_those_of_cp() {
    let name = |path: &str| {
        place::last_name(Path::new(path)).map(|name| name.to_str().unwrap().to_owned())
    };
    for (path, expected) in [
        ("a", Some("a")),
        ("a//", Some("a")),
        ("x/-b", Some("-b")),
        ("a/.", None),
        ("a/..", None),
        ("/", None),
        ("", None),
        ("a/...", Some("...")),
    ] {
        assert_eq!(name(path).as_deref(), expected, "{path}");
    }
}

/// What comes into it later changes its time.
#[test]
fn as_with_cp_what_fills_a_directory_and_what_goes_there_take_turns() {
    let folder = folder();
    let rules = crate::copy::tests::RULES;
    let wording = Wording { rules, recursive: true, parents: false, repeats: false };
    for sources in [["a", "src/."], ["src/.", "a"]] {
        let sources = sources.map(|name| folder.path().join(name));
        let planned = plan(&sources, &named(&folder, "d"), Reach::Everything, Some(wording));
        assert_eq!(planned.rounds.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1], "{sources:?}");
    }
}
