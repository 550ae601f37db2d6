//! Where the results of a comparison go.

use std::fs;

use super::{compare, put_runs};
use crate::bin::Folder;

#[test]
fn no_run_of_a_folder_is_replaced_and_no_table_is_called_csv() {
    let folder = Folder::new();
    for name in ["old", "new"] {
        put_runs(&folder, name, &[("a/x", 1e9)]);
    }
    let kept = fs::read(folder.join("new/1.json")).unwrap();
    for words in [&["old", "new"][..], &["--trend", "old", "new"], &["--noise", "old", "new"]] {
        let ran = compare(&folder, &[words, &["-o", "new/1.json"]].concat()).run();
        assert!(ran.exits(2).stderr.contains("worked on"), "{ran}");
    }
    assert_eq!(fs::read(folder.join("new/1.json")).unwrap(), kept);
    for name in ["x.csv", "x.prom"] {
        let ran = compare(&folder, &["old", "new", "-o", name]).run();
        ran.complains(2, &["no comparison is shown as", ".json, .html and .md"]);
    }
    let asked = compare(&folder, &["old", "new", "-o", "x.csv", "--format", "markdown"]);
    asked.leaves("x.csv").run().exits(0);
    compare(&folder, &["old", "new", "-o", "X.JSON"]).leaves("X.JSON").run().exits(0);
    assert!(fs::read_to_string(folder.join("X.JSON")).unwrap().starts_with('{'));
}
