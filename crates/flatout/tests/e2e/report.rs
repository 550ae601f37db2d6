//! `flatout report`: what runs left comes back in every form, and nothing else is taken for it.

mod hostile;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::bin::{Folder, input};
use crate::schema::assert_valid;

/// A record that was made by hand, of the room that shows them.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../report/tests/fixtures/{name}.json"))
}

/// A folder with a record in it, under a name that does not tell its form.
fn folder_with(name: &str) -> Folder {
    let folder = Folder::new();
    fs::copy(fixture(name), folder.join("result")).unwrap();
    folder
}

#[test]
fn a_run_is_shown_again_as_the_command_showed_it() {
    let folder = Folder::new();
    fs::write(folder.join("data"), vec![7; 100_000]).unwrap();
    let read = "read data --engine sync --format json --output record".split(' ');
    folder.flatout(read).leaves("record").run().exits(0);
    let shown = folder.flatout(["report", "record"]).run();
    assert!(shown.exits(0).field("digest").starts_with("xor32 "), "{shown}");
    assert_eq!(shown.stderr, "");
    let again = folder.flatout(["report", "record", "--format", "json"]).run();
    assert_eq!(again.exits(0).stdout, fs::read_to_string(folder.join("record")).unwrap());
}

#[test]
fn a_copy_is_shown_again_as_the_command_showed_it_and_under_its_name() {
    let folder = Folder::new();
    fs::write(folder.join("data"), vec![7; 100_000]).unwrap();
    let copy = "copy data there --format json --output record".split(' ');
    folder.flatout(copy).leaves("record").leaves("there").run().exits(0);
    let shown = folder.flatout(["report", "record"]).run();
    assert!(shown.exits(0).field("bytes").starts_with("100,000 bytes"), "{shown}");
    let page = folder.flatout(["report", "record", "--format", "html"]).run();
    assert!(page.exits(0).stdout.contains("<title>flatout copy: "), "{page}");
}

#[test]
fn what_is_said_of_a_file_can_be_used() {
    let folder = folder_with("disk");
    fs::rename(folder.join("result"), folder.join("my result")).unwrap();
    let shown = folder.flatout(["report", "my result"]).run();
    let rest = "All 15 rows: flatout report --verbose 'my result'\n";
    assert!(shown.exits(0).stdout.ends_with(rest), "{shown}");
    // Two names that are no text stay two names.
    let names = [b"\xfe", b"\xff"].map(|name| OsStr::from_bytes(name).to_owned());
    for name in &names {
        fs::copy(folder.join("my result"), folder.join(".").join(name)).unwrap();
    }
    let csv = ["report", "--format", "csv"].map(OsString::from).into_iter().chain(names);
    let csv = folder.flatout(csv).run();
    let names: Vec<&str> =
        csv.exits(0).stdout.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert!(names.starts_with(&["\\xfe"]) && names.ends_with(&["\\xff"]), "{names:?}");
}

#[test]
fn forms_that_say_nothing_of_earlier_records_take_none() {
    let folder = folder_with("disk");
    let refused = folder.flatout(["report", "result", "--history", ".", "--format", "csv"]).run();
    let why = "--history means nothing with --format csv";
    assert!(refused.exits(2).stderr.contains(why), "{refused}");
    let refused = folder.flatout("bench syscall --history . --format json".split(' ')).run();
    assert!(refused.exits(2).stderr.contains("with --format json"), "{refused}");
}

#[test]
fn a_record_without_rows_says_why_there_are_none() {
    let shown = folder_with("empty").flatout(["report", "result"]).run();
    let expected = "no results\n\nFAIL  interrupted before the first trial: figures are missing\n";
    assert_eq!(shown.exits(0).stdout, expected);
}

#[test]
fn every_form_comes_out_of_a_document_and_of_a_page() {
    let folder = folder_with("disk");
    let page = ["report", "result", "--format", "html", "--identify", "--output", "page"];
    folder.flatout(page).leaves("page").run().exits(0);
    let head = [
        ("table", "flatout 0.1.0"),
        ("json", "{\n  \"schema\": \"flatout/1\""),
        ("csv", "id,"),
        ("markdown", "# flatout"),
        ("html", "<!doctype html>"),
        ("openmetrics", "# TYPE flatout_machine_info gauge\n"),
        ("go-bench", "# flatout 0.1.0"),
        ("fio-json", "{\n"),
    ];
    for (format, begins) in head {
        let of_document = folder.flatout(["report", "-v", "result", "--format", format]).run();
        let of_page = folder.flatout(["report", "-v", "page", "--format", format]).run();
        assert!(of_document.exits(0).stdout.starts_with(begins), "{of_document}");
        assert_eq!((&of_page.stdout, of_page.code), (&of_document.stdout, Some(0)), "{format}");
        assert_eq!(of_document.stderr, "", "{format}");
    }
}

#[test]
fn the_json_of_a_page_is_the_record_that_it_holds() {
    let folder = folder_with("disk");
    let page = folder.flatout(["report", "result", "--format", "html"]).run();
    fs::write(folder.join("page"), &page.exits(0).stdout).unwrap();
    let json = folder.flatout(["report", "page", "--format", "json"]).run();
    let document: Value = serde_json::from_str(&json.exits(0).stdout).unwrap();
    assert_valid(&document);
    assert!(!json.stdout.contains("/home/anna"), "{json}");
    let whole = folder.flatout(["report", "result", "--format", "json"]).run();
    assert!(whole.exits(0).stdout.contains("/home/anna"));
}

#[test]
fn host_and_paths_are_told_only_when_asked_for() {
    let folder = folder_with("disk");
    fs::copy(fixture("read"), folder.join("read")).unwrap();
    let cases = [
        ("result", "html", "/home/anna"),
        ("result", "openmetrics", "workbench"),
        ("result", "fio-json", "/home/anna"),
        ("read", "go-bench", "%2Fhome%2Fanna"),
    ];
    for (name, format, told) in cases {
        let shown = folder.flatout(["report", name, "--format", format]).run();
        for secret in ["workbench", "/home/anna", "%2Fhome", "0b51c8d2"] {
            assert!(!shown.exits(0).stdout.contains(secret), "{format}: {secret}");
        }
        let all = folder.flatout(["report", name, "--format", format, "--identify"]).run();
        assert!(all.exits(0).stdout.contains(told), "{all}");
    }
}

#[test]
fn several_records_come_one_after_the_other_or_are_refused() {
    let folder = folder_with("disk");
    fs::copy(fixture("write"), folder.join("other")).unwrap();
    let both = |format: &str| {
        let words = ["report", "result", "-", "--format", format];
        folder.flatout(words).stdin(input(&folder.join("other"))).run()
    };
    let table = both("table");
    assert!(table.exits(0).stdout.starts_with("==> result <==\n"), "{table}");
    assert!(table.stdout.contains("\n\n==> standard input <==\n"), "{table}");
    assert!(both("markdown").exits(0).stdout.contains("\nRecord `standard input`:\n"));
    let csv = both("csv");
    let mut lines = csv.exits(0).stdout.split("\r\n");
    assert!(lines.next().unwrap().starts_with("record,id,"), "{csv}");
    assert!(lines.next().unwrap().starts_with("result,disk/"), "{csv}");
    assert_eq!(lines.filter(|line| line.starts_with("standard input,write/")).count(), 1, "{csv}");
    let lines = both("go-bench");
    assert!(lines.exits(0).stdout.matches("\ngoos: linux\n").count() == 2, "{lines}");
    for format in ["json", "html", "openmetrics", "fio-json"] {
        let refused = both(format);
        assert!(refused.exits(2).stderr.contains("takes one FILE"), "{refused}");
        let is_json = format == "json";
        assert_eq!(refused.stdout.is_empty(), !is_json, "{refused}");
    }
    let twice = folder.flatout(["report", "-", "-"]).run();
    twice.complains(2, &["- can be given once"]);
    folder.flatout(["report"]).run().exits(2);
    let mixed = folder.flatout(["report", "result", "missing"]).run();
    mixed.complains(1, &["missing", "No such file"]);
    assert_eq!(mixed.stdout, "", "all files are read before anything is shown");
}

#[test]
fn results_go_where_a_link_leads_and_keep_what_is_private() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder_with("disk");
    symlink("/proc/self/fd/1", folder.join("out")).unwrap();
    symlink("private", folder.join("kept")).unwrap();
    fs::write(folder.join("private"), "").unwrap();
    fs::set_permissions(folder.join("private"), PermissionsExt::from_mode(0o600)).unwrap();
    let csv = |place| ["report", "result", "--format", "csv", "--output", place];
    let shown = folder.flatout(csv("-")).run().stdout;
    let into = fs::File::create(folder.join("shown")).unwrap();
    folder.flatout(csv("out")).stdout(into).leaves("shown").run().exits(0);
    assert_eq!(fs::read_to_string(folder.join("shown")).unwrap(), shown);
    folder.flatout(csv("kept")).run().exits(0);
    assert!(folder.join("out").is_symlink() && folder.join("kept").is_symlink());
    assert_eq!(fs::read_to_string(folder.join("private")).unwrap(), shown);
    let mode = fs::metadata(folder.join("private")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn results_go_into_a_file_as_a_whole_or_not_at_all() {
    let folder = folder_with("disk");
    let words = "report result --format openmetrics --output flatout.prom".split(' ');
    folder.flatout(words).leaves("flatout.prom").run().exits(0);
    let text = fs::read_to_string(folder.join("flatout.prom")).unwrap();
    assert!(text.ends_with("\n# EOF\n") && text.contains("flatout_result_bytes_per_second{id="));
    let same = folder.flatout(["report", "result", "--output", "result"]).run();
    same.complains(1, &["it is the file that is worked on"]);
    let missing = folder.flatout(["report", "none", "--output", "flatout.prom"]).run();
    missing.complains(1, &["none"]);
    assert_eq!(fs::read_to_string(folder.join("flatout.prom")).unwrap(), text);
    let nowhere = folder.flatout(["report", "result", "--output", "no/such/file"]).run();
    nowhere.complains(1, &["cannot write", "no/such/file"]);
    let under = ["sh", "-c", "ulimit -f 1 && exec \"$@\"", "sh"];
    let ran = folder.under(&under, &["report", "result", "--output", "page.html"]).run();
    ran.complains(1, &["cannot write", "page.html", "File too large (ulimit -f: "]);
}

#[test]
fn a_record_of_another_program_follows_the_schema() {
    let folder = Folder::new();
    let document = r#"{"results": [{"command": "true", "times": [0.001, 0.002]}]}"#;
    fs::write(folder.join("result"), document).unwrap();
    let ran = folder.flatout(["report", "result", "--format", "json"]).run();
    assert_valid(&serde_json::from_str(&ran.exits(0).stdout).unwrap());
}

#[test]
fn a_folder_gets_a_file_per_row_for_fio_plot() {
    let folder = folder_with("disk");
    fs::create_dir(folder.join("plots")).unwrap();
    let words = "report result --format fio-json --output plots".split(' ');
    let ran = folder.flatout(words).run();
    assert!(ran.exits(0).stderr.contains("files in \"plots\""), "{ran}");
    let mut files = 0;
    for rows in fs::read_dir(folder.join("plots")).unwrap() {
        for file in fs::read_dir(rows.unwrap().path()).unwrap() {
            let text = fs::read(file.unwrap().path()).unwrap();
            let document: Value = serde_json::from_slice(&text).unwrap();
            let jobs = document["jobs"].as_array().unwrap();
            assert_eq!(jobs.len(), 1, "fio-plot adds up the jobs of a file");
            for option in ["rw", "bs", "iodepth", "numjobs"] {
                assert!(jobs[0]["job options"][option].is_string(), "{option}: {document:#}");
            }
            files += 1;
        }
    }
    assert!(files > 0);
    let none = folder_with("read");
    fs::create_dir(none.join("plots")).unwrap();
    let words = "report result --format fio-json --output plots".split(' ');
    none.flatout(words).run().complains(1, &["no row that has a place"]);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = folder_with("bench");
    let words = ["report", "result", "--format", "html"];
    let ran = folder.flatout(words).stdout(crate::bin::closed_pipe()).run();
    assert_eq!((ran.exits(0).stderr.as_str(), ran.stdout.as_str()), ("", ""));
}

#[test]
fn earlier_records_of_a_folder_say_what_is_usual() {
    let folder = folder_with("whole");
    let text = fs::read_to_string(folder.join("result")).unwrap();
    fs::create_dir(folder.join("earlier")).unwrap();
    for (name, seed) in [("a.json", 1), ("b.json", 2), ("result.json", 0)] {
        let mut record: Value = serde_json::from_str(&text).unwrap();
        if seed > 0 {
            record["start"]["seed"] = seed.into();
        }
        fs::write(folder.join("earlier").join(name), record.to_string()).unwrap();
    }
    fs::write(folder.join("earlier/note.json"), "no record").unwrap();
    // Who opens a pipe waits for a writer.
    let made = std::process::Command::new("mkfifo").arg(folder.join("earlier/pipe.json")).status();
    assert!(made.unwrap().success());
    let ran = folder.flatout(["report", "result", "--history", "earlier"]).run();
    let shown = &ran.exits(0).stdout;
    assert!(shown.contains("usual: this machine in 2 other records"), "{ran}");
    assert!(shown.contains("All 64 rows: flatout report --verbose result\n"), "{ran}");
    let ran = folder.flatout(["report", "result", "--history", "nowhere"]).run();
    ran.complains(1, &["nowhere"]);
}
