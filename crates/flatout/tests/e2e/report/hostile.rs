//! Files that are no record, or one that was made to harm: one line that names the file, a document
//! where JSON was asked for, and never much memory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;

use flatout_sys::cancel::CancelToken;
use flatout_sys::process::{Account, Limits, MemoryOf, Program, run};
use serde_json::{Value, json};

use super::{fixture, folder_with};
use crate::bin::{Folder, LIMIT, executable};

/// What a refusal may take: three times the longest document that is read, and the memory that one
/// is given. `MAX_DOCUMENT_BYTES` and `MAX_MEMORY_BYTES` of the reader.
const MOST_BYTES: u64 = 3 * (64 << 20) + (512 << 20);

/// The text of a record of one row, in which the member at `pointer` is `value`.
fn changed(pointer: &str, value: Value) -> String {
    let text = fs::read_to_string(fixture("write")).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    *document.pointer_mut(pointer).expect("the fixture has it") = value;
    document.to_string()
}

#[test]
fn what_is_no_record_is_refused_in_one_line_that_names_it() {
    let whole = fs::read_to_string(fixture("write")).unwrap();
    let page_of = folder_with("write");
    let page = page_of.flatout(["report", "result", "--format", "html"]).run().stdout;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", Vec::new(), "it is empty"),
        ("cut", whole.as_bytes()[..whole.len() / 2].to_vec(), "it is cut off"),
        ("cut page", page.as_bytes()[..page.len() - 60].to_vec(), "it is cut off"),
        ("page", b"<!doctype html><html></html>".to_vec(), "a page that holds none"),
        ("fio", br#"{"fio version": "fio-3.33", "jobs": []}"#.to_vec(), "it is JSON of fio"),
        ("hyperfine", br#"{"results": [{"command": "ls"}]}"#.to_vec(), "hyperfine"),
        ("newer", changed("/schema", json!("flatout/2")).into(), "made by a newer flatout"),
        ("junk", b"\x7fELF\x02\x01\x01\x00\xff\xfe\xfd".to_vec(), "byte 8 is no text"),
        ("deep", deep.clone().into(), "recursion limit"),
        (
            "deep inside",
            changed("/start/environment", json!(0)).replace(":0,", &format!(":{deep},")).into(),
            "recursion limit",
        ),
        (
            "not a number",
            whole.replacen("\"median\":", "\"median\": NaN, \"x\":", 1).into(),
            "no JSON",
        ),
        (
            "too large",
            whole.replacen("\"samples\": [", "\"samples\": [1e999, ", 1).into(),
            "out of range",
        ),
        (
            "negative",
            changed("/results/0/parameters/block_bytes", json!(-1)).into(),
            "a size below zero",
        ),
        ("negative count", changed("/results/0/n", json!(-1)).into(), "integer `-1`"),
        ("wrong count", changed("/results/0/n", json!(1_u64 << 40)).into(), "there are"),
        ("digits", b"7".repeat(1 << 20), "out of range"),
    ];
    let folder = Folder::new();
    for (name, bytes, said) in cases {
        fs::write(folder.join(name), bytes).unwrap();
        let ran = folder.flatout(["report", name]).run();
        ran.complains(1, &["cannot read", name, said]);
        assert_eq!(ran.stdout, "", "{ran}");
        let json = folder.flatout(["report", name, "--format", "json"]).run();
        let document = json.document();
        let error = document["end"]["errors"][0].as_str().unwrap();
        assert_eq!(format!("flatout: {error}\n"), json.stderr, "{json}");
    }
    folder.flatout(["report", "missing"]).run().complains(1, &["\"missing\"", "No such file"]);
    folder.flatout(["report", "."]).run().complains(1, &["\".\"", "directory"]);
}

#[test]
fn hostile_text_is_shown_escaped_in_every_form() {
    let folder = folder_with("hostile");
    for format in
        ["table", "json", "csv", "markdown", "html", "openmetrics", "go-bench", "fio-json"]
    {
        let ran = folder.flatout(["report", "result", "--format", format]).run();
        let raw = |c: char| c.is_control() && !matches!(c, '\n' | '\r');
        assert!(!ran.exits(0).stdout.contains(raw), "{format}");
        let is_markup = ["html", "markdown"].contains(&format);
        assert!(!(is_markup && ran.stdout.contains("<script>alert")), "{format}");
    }
}

/// Peak memory of `flatout report` of this file, which must be refused with these words.
fn refused_with(folder: &Folder, name: &str, said: &str) -> Option<u64> {
    let argv: Vec<OsString> = vec![executable().into(), "report".into(), folder.join(name).into()];
    let program = Program { argv: &argv, stdout_bytes: 64 << 10 };
    let limits = Limits { time_ns: Some(LIMIT.as_nanos() as u64), cancel: CancelToken::manual() };
    let Account { exit_code, stderr, peak_memory_bytes, peak_memory_of, .. } =
        run(&program, &limits).unwrap();
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(exit_code, 1, "{name}: {stderr}");
    assert!(stderr.contains(said), "{name}: {stderr}");
    println!("{name}: peak resident memory {} KiB", peak_memory_bytes >> 10);
    // Without ptrace(2) it may be the memory of whoever started it.
    (peak_memory_of == MemoryOf::Itself).then_some(peak_memory_bytes)
}

#[test]
fn a_gigabyte_of_anything_takes_little_memory() {
    let folder = Folder::new();
    let pipe = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let writer = std::thread::spawn(move || {
        let mut out = File::options().write(true).open(pipe).unwrap();
        let digits = vec![b'7'; 1 << 20];
        // It ends with an error: who reads has seen enough.
        (0..1024).take_while(|_| out.write_all(&digits).is_ok()).count()
    });
    let long = refused_with(&folder, "pipe", "longer than 64 MiB");
    assert!(writer.join().unwrap() < 1024, "nobody reads a gigabyte");

    // A hole: it has the length and takes no room.
    File::create(folder.join("hole")).unwrap().set_len(1 << 30).unwrap();
    let hole = refused_with(&folder, "hole", "longer than 64 MiB");
    assert!(hole.is_none_or(|bytes| bytes < 32 << 20), "not even read");

    // Just short enough to be read, and gigabytes once it is parsed.
    let many = "{\"a\":0},".repeat(7 << 20);
    let text = format!("{{\"schema\":\"flatout/1\",\"start\":[{many}0]}}");
    fs::write(folder.join("many"), text).unwrap();
    let many = refused_with(&folder, "many", "it would take more than 512 MiB of memory");

    let digits = format!("{{\"schema\":\"flatout/1\",\"start\":{}}}", "7".repeat(60 << 20));
    fs::write(folder.join("digits"), digits).unwrap();
    let digits = refused_with(&folder, "digits", "out of range");
    for bytes in [long, many, digits].into_iter().flatten() {
        assert!(bytes < MOST_BYTES, "{} MiB", bytes >> 20);
    }
}
