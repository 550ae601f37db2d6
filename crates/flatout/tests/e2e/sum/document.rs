//! `flatout sum --format json`: one document, a row per file and one for all.

use serde_json::Value;

use super::{ABC, ABC_SHA256};
use crate::bin::{Folder, assert_warned};
use crate::schema;

fn rows(document: &Value) -> &[Value] {
    schema::assert_valid(document);
    document["results"].as_array().unwrap()
}

#[test]
fn files_are_rows_and_the_last_row_is_for_all() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    std::fs::write(folder.join("new\nline \u{202e}"), "").unwrap();
    let names = ["abc", "missing", "new\nline \u{202e}", "."];
    let ran = folder.flatout(["sum", "--format", "json"].iter().chain(&names)).run();
    let document = ran.exits(1).document();
    let rows = rows(&document);
    assert_eq!(rows.len(), 5, "{ran}");
    assert!(!ran.stdout.contains('\u{202e}'), "no name turns the text around");
    assert_eq!(rows[0]["id"], "sum/file");
    assert_eq!(rows[0]["parameters"]["file"], "abc");
    assert_eq!(rows[0]["parameters"]["digest"], "blake3");
    assert_eq!(rows[0]["audit"]["digest"], ABC);
    assert_eq!(rows[0]["audit"]["bytes"], 3);
    assert!(rows[0]["audit"]["elapsed_ns"].as_u64().unwrap() > 0);
    assert_eq!(rows[0]["status"], "ok");
    assert_eq!(rows[1]["status"], "failed");
    assert_warned(&rows[1], "missing");
    assert_eq!(rows[2]["parameters"]["file"], names[2]);
    assert_warned(&rows[3], "failed");
    let total = &rows[4];
    assert_eq!((&total["id"], &total["unit"]), (&"sum/total".into(), &"bytes/s".into()));
    assert_eq!(total["n"], 1);
    let audit = &total["audit"];
    assert_eq!(audit["files"], 2);
    assert_eq!(audit["failed"], 2);
    assert_eq!(audit["missing"], 1);
    let rate = 3.0 / (audit["elapsed_ns"].as_f64().unwrap() / 1e9);
    assert!((total["median"].as_f64().unwrap() / rate - 1.0).abs() < 1e-9);
    assert_eq!(document["end"]["errors"].as_array().unwrap().len(), 2);
}

#[test]
fn a_check_has_rows_with_what_was_found() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    std::fs::write(folder.join("empty"), "").unwrap();
    let manifest = format!("{ABC_SHA256}  abc\n{ABC}  empty\n{ABC}  missing\n");
    std::fs::write(folder.join("SUMS"), manifest).unwrap();
    let ran = folder.flatout(["sum", "-c", "SUMS", "--format", "json"]).run();
    let document = ran.exits(1).document();
    let rows = rows(&document);
    let statuses: Vec<_> = rows.iter().map(|row| row["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["ok", "failed", "failed", "degraded"]);
    assert_eq!(rows[0]["parameters"]["digest"], "sha256");
    assert_warned(&rows[1], "mismatch");
    assert_warned(&rows[2], "missing");
    let audit = &rows[3]["audit"];
    assert_eq!((&audit["matched"], &audit["mismatched"]), (&1.into(), &1.into()));
}

/// What ends with exit code 1 has its reasons in the record, as on standard error.
#[test]
fn why_a_check_failed_stands_at_the_end_of_its_record() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    std::fs::write(folder.join("empty"), "").unwrap();
    std::fs::write(folder.join("SUMS"), format!("{ABC}  abc\n{ABC}  empty\nnonsense\n")).unwrap();
    let errors = |options: &str| {
        let words = "sum -c SUMS --format json".split(' ').chain(options.split_terminator(' '));
        let document = folder.flatout(words).run().exits(1).document();
        document["end"]["errors"].to_string()
    };
    assert_eq!(errors(""), r#"["WARNING: 1 computed digest did NOT match"]"#);
    let strict = errors("--strict");
    assert!(strict.contains("1 line is improperly formatted"), "{strict}");
}

#[test]
fn nothing_to_read_and_a_file_of_results_leave_a_document_too() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("tree")).unwrap();
    let words = ["sum", "-r", "tree", "--format", "json", "--output", "out"];
    folder.flatout(words).leaves("out").run().exits(0);
    let text = std::fs::read_to_string(folder.join("out")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let rows = rows(&document);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["median"], Value::Null);
    for (words, is_json) in
        [(&["--output", "o.json"][..], true), (&["-o", "o.json", "--format", "manifest"], false)]
    {
        let words = ["sum", "-r", "tree"].iter().chain(words);
        folder.flatout(words).leaves("o.json").run().exits(0);
        let text = std::fs::read_to_string(folder.join("o.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).is_ok(), is_json, "{text}");
    }
    let ran = folder.flatout(["sum", "--format", "json", "--output", "no/such"]).run();
    schema::assert_valid(&ran.complains(1, &["no/such"]).document());
}
