//! `flatout read` on files, pipes and what looks like files: amounts, digests and formats.

mod trials;

use std::ffi::OsStr;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::bin::{Folder, Ran, assert_warned, closed_pipe, input, warnings};
use crate::filesystem::LoopDevice;
use crate::fixture::{endless_file, random_bytes, random_file, xor32, xor32_hex};
use crate::skip::{needs, skip};
use crate::throttle::Throttle;

const MEBIBYTE: usize = 1 << 20;

/// Fails unless a run has read these bytes, and all of them.
#[track_caller]
fn assert_read(ran: &Ran, bytes: &[u8]) {
    let audit = ran.exits(0).result()["audit"].clone();
    assert_eq!(audit["bytes"], bytes.len(), "{ran}");
    assert_eq!(audit["digest_xor32"], xor32_hex(bytes), "{ran}");
}

#[test]
fn where_memory_is_short_fewer_requests_are_in_flight() {
    let group = needs!(Throttle::memory(32 << 20));
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 20 * MEBIBYTE, 1);
    let wrapper = group.wrapper();
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let words = ["read", "data", "--cold", "--format", "json"];
    assert_read(&folder.under(&wrapper, &words).run(), &bytes);
}

#[test]
fn the_text_names_what_was_read_and_its_digest() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), MEBIBYTE + 1, 1);
    let ran = folder.flatout(["read", "data"]).run();
    ran.exits(0);
    for key in ["file", "bytes", "blocks", "threads", "seconds", "rate", "engine"] {
        assert!(!ran.field(key).is_empty(), "{key}: {ran}");
    }
    let digest = xor32(&bytes);
    assert_eq!(ran.field("digest"), format!("xor32 {digest:08x} ({digest})"));
    assert_eq!(ran.stderr, "", "not a terminal: no progress");
}

#[test]
fn the_document_names_what_was_read_and_how() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), MEBIBYTE, 2);
    let ran = folder.flatout(["read", "data", "--format", "json", "--threads", "2"]).run();
    let result = ran.exits(0).result();
    assert_eq!(result["id"], "read/file");
    assert_eq!(result["unit"], "bytes/s");
    for key in ["file", "block_bytes", "threads", "split", "engine", "caching", "depth"] {
        assert!(!result["parameters"][key].is_null(), "parameters.{key}: {result:#}");
    }
    let audit = &result["audit"];
    for key in ["bytes", "blocks", "seconds", "passes", "digest_xor32", "engine_reason"] {
        assert!(!audit[key].is_null(), "audit.{key}: {result:#}");
    }
    assert_eq!(audit["bytes"], MEBIBYTE);
    assert_eq!(audit["digest_xor32"], xor32_hex(&bytes));
}

#[test]
fn size_and_count_are_obeyed_from_the_start_of_the_file() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 5 * MEBIBYTE, 3);
    for engine in ["auto", "sync", "mmap", "uring"] {
        let arguments = "read data --block-size 4096 --block-count 1024 --format json --engine";
        let ran = folder.flatout(arguments.split(' ').chain([engine])).run();
        let audit = ran.exits(0).result()["audit"].clone();
        assert_eq!(audit["bytes"], 4 * MEBIBYTE, "{ran}");
        assert_eq!(audit["blocks"], 1024, "{ran}");
        assert_eq!(audit["digest_xor32"], xor32_hex(&bytes[..4 * MEBIBYTE]), "{ran}");
    }
}

#[test]
fn a_file_that_ends_early_is_read_to_its_end_and_the_shortfall_is_said() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 10_000, 4);
    let arguments = "read data --block-size 4096 --block-count 1024 --format json";
    let ran = folder.flatout(arguments.split(' ')).run();
    let result = ran.exits(0).result();
    assert_warned(&result, "short_file");
    assert_eq!(result["audit"]["bytes"], 10_000, "{ran}");
    assert_eq!(result["audit"]["blocks"], 3, "{ran}");
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "{ran}");
}

#[test]
fn a_file_as_long_as_asked_is_no_shortfall() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 8192, 5);
    let arguments = "read data --block-size 4096 --block-count 2 --format json";
    let result = folder.flatout(arguments.split(' ')).run().exits(0).result();
    assert!(!warnings(&result).contains(&"short_file"), "{result:#}");
}

#[test]
fn an_empty_file_is_read_to_its_end() {
    let folder = Folder::new();
    std::fs::write(folder.join("empty"), "").unwrap();
    for engine in ["auto", "sync", "mmap", "uring"] {
        let ran = folder.flatout(["read", "empty", "--engine", engine]).run();
        assert_eq!(ran.exits(0).field("digest"), "xor32 00000000 (0)", "{ran}");
        let ran = folder.flatout(["read", "empty", "--engine", engine, "--format", "json"]).run();
        assert_eq!(ran.exits(0).result()["audit"]["bytes"], 0, "{ran}");
    }
}

#[test]
fn a_minimal_time_doubles_the_amount_from_one_block() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 8 * MEBIBYTE, 6);
    let arguments = "read data --block-size 512 --min-time 50ms --format json";
    let ran = folder.flatout(arguments.split(' ')).run();
    let audit = ran.exits(0).result()["audit"].clone();
    let read = audit["bytes"].as_u64().unwrap() as usize;
    assert!(audit["blocks"].as_u64().unwrap().is_power_of_two(), "{ran}");
    assert!(audit["seconds"].as_f64().unwrap() >= 0.05, "{ran}");
    // Where the file is too short it is read again; the digest stays that of one pass.
    let first_pass = &bytes[..read.min(bytes.len())];
    assert_eq!(audit["digest_xor32"], xor32_hex(first_pass), "{ran}");
}

#[test]
fn a_duration_ends_on_time_and_says_how_far_it_got() {
    let folder = Folder::new();
    endless_file(&folder.join("endless"));
    for engine in ["sync", "mmap", "uring"] {
        let arguments = "read endless --duration 100ms --format json --engine";
        let ran = folder.flatout(arguments.split(' ').chain([engine])).run();
        let audit = ran.exits(0).result()["audit"].clone();
        assert!(audit["bytes"].as_u64().unwrap() > 0, "{ran}");
        assert!(audit["seconds"].as_f64().unwrap() >= 0.1, "{ran}");
        assert!(audit["ended_early"].as_str().unwrap().contains(" % of the file"), "{ran}");
    }
}

#[test]
fn a_file_that_ends_before_the_duration_says_after_how_long() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 100_000, 7);
    let ran = folder.flatout("read data --duration 50s --format json".split(' ')).run();
    let audit = ran.exits(0).result()["audit"].clone();
    assert_eq!(audit["bytes"], bytes.len(), "{ran}");
    let seconds = audit["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 50.0, "{ran}");
    assert!(audit["ended_early"].as_str().unwrap().contains("whole file"), "{ran}");
    assert_eq!(audit["digest_xor32"], xor32_hex(&bytes), "{ran}");
}

#[test]
fn standard_input_is_read_whether_file_or_pipe() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 300_001, 8);
    for name in ["-", "/dev/stdin"] {
        let from_file = folder.flatout(["read", name, "--format", "json"]);
        let ran = from_file.stdin(input(&folder.join("data"))).run();
        assert_eq!(ran.exits(0).result()["audit"]["digest_xor32"], xor32_hex(&bytes), "{ran}");

        let (reader, mut writer) = std::io::pipe().unwrap();
        let running = folder.flatout(["read", name, "--format", "json"]).stdin(reader).start();
        // Pieces that fit no block and no word.
        bytes.chunks(1001).for_each(|piece| writer.write_all(piece).unwrap());
        drop(writer);
        let ran = running.wait();
        assert_read(&ran, &bytes);
    }
}

#[test]
fn a_device_that_is_made_cold_is_not_taken_for_memory() {
    let device = needs!(LoopDevice::new(&random_bytes(8 * MEBIBYTE, 1)));
    let folder = Folder::new();
    let ran = folder.flatout(["read", device.path().to_str().unwrap(), "--cold"]).run();
    let engine = ran.exits(0).field("engine");
    assert!(engine.contains("(0 % in the page cache"), "{ran}");
}

#[test]
fn a_named_pipe_is_read_to_the_end_of_its_writer() {
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let bytes = random_bytes(200_003, 9);
    for engine in ["auto", "sync", "mmap", "uring"] {
        let arguments = "read fifo --threads 2 --format json --engine";
        let running = folder.flatout(arguments.split(' ').chain([engine])).start();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&bytes).unwrap();
        let ran = running.wait();
        assert_read(&ran, &bytes);
    }
}

#[test]
fn a_named_pipe_of_zeros_is_not_opened_twice() {
    let folder = Folder::new();
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let running = folder.flatout(["read", "fifo", "--format", "json"]).start();
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all(&[0; 300_000]).unwrap();
    drop(writer);
    assert_eq!(running.wait().exits(0).result()["audit"]["bytes"], 300_000);
}

#[test]
fn a_file_of_the_kernel_with_a_false_size_is_read_to_its_end() {
    let folder = Folder::new();
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Ok(bytes) = std::fs::read(path) else { skip!("no {path} here") };
    let result = folder.flatout(["read", path, "--format", "json"]).run().exits(0).result();
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "{result:#}");
}

#[test]
fn standard_input_is_read_from_where_it_stands() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 10_000, 4);
    let mut file = input(&folder.join("data"));
    file.seek(SeekFrom::Start(1000)).unwrap();
    let ran = folder.flatout(["read", "-", "--format", "json"]).stdin(file).run();
    assert_eq!(ran.exits(0).result()["audit"]["digest_xor32"], xor32_hex(&bytes[1000..]));
}

#[test]
fn a_device_as_standard_input_is_read_from_where_it_stands() {
    let (folder, bytes) = (Folder::new(), random_bytes(MEBIBYTE, 6));
    let device = needs!(LoopDevice::new(&bytes));
    for start in [0, 1000] {
        let mut file = input(device.path());
        file.seek(SeekFrom::Start(start as u64)).unwrap();
        let ran = folder.flatout(["read", "-", "--format", "json"]).stdin(file).run();
        assert_read(&ran, &bytes[start..]);
    }
}

#[test]
fn the_result_never_replaces_what_is_read() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 1000, 5);
    folder.flatout(["read", "data", "--output", "data"]).run().complains(1, &["data"]);
    let redirected = folder.flatout(["read", "-", "--output", "data"]);
    redirected.stdin(input(&folder.join("data"))).run().complains(1, &["data"]);
    assert_eq!(std::fs::read(folder.join("data")).unwrap(), bytes);
}

#[test]
fn a_file_of_the_kernel_without_a_size_is_read_to_its_end() {
    let folder = Folder::new();
    let bytes = std::fs::read("/proc/version").unwrap();
    for engine in ["auto", "sync", "mmap", "uring"] {
        let ran = folder.flatout(["read", "/proc/version", "--format", "json", "--engine", engine]);
        let ran = ran.run();
        assert_read(&ran, &bytes);
    }
}

#[test]
fn several_files_give_a_result_each() {
    let folder = Folder::new();
    let digests: Vec<String> = ["a", "b", "c"]
        .iter()
        .enumerate()
        .map(|(index, name)| xor32_hex(&random_file(&folder.join(name), 5000, index as u64)))
        .collect();
    let ran = folder.flatout(["read", "a", "b", "c", "--format", "json"]).run();
    let document = ran.exits(0).document();
    let found: Vec<&str> = document["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["audit"]["digest_xor32"].as_str().unwrap())
        .collect();
    assert_eq!(found, digests);
}

#[test]
fn a_missing_file_among_others_fails_the_run_but_not_the_others() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("here"), 5000, 1);
    let ran = folder.flatout(["read", "gone", "here", "--format", "json"]).run();
    ran.complains(1, &["gone"]);
    let document = ran.document();
    assert_eq!(document["end"]["errors"].as_array().unwrap().len(), 1, "{ran}");
    let results = document["results"].as_array().unwrap();
    let digest = xor32_hex(&bytes);
    assert!(results.iter().any(|result| result["audit"]["digest_xor32"] == digest), "{ran}");
}

#[test]
fn without_a_digest_none_is_given() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    let ran = folder.flatout(["read", "data", "--digest", "none", "--format", "json"]).run();
    let audit = ran.exits(0).result()["audit"].clone();
    assert!(audit["digest_xor32"].is_null(), "{ran}");
    assert_eq!(audit["bytes"], 5000, "{ran}");
}

#[test]
fn every_trial_is_accounted_for_and_the_digest_is_that_of_one_pass() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 5000, 1);
    for trials in [2, 8] {
        let asked = trials.to_string();
        let ran = folder.flatout(["read", "data", "--trials", &asked, "--format", "json"]).run();
        let result = ran.exits(0).result();
        let audit = &result["audit"];
        let count = result["samples"].as_array().unwrap().len() as u64;
        assert_eq!(result["n"], count, "{ran}");
        assert_eq!(result["ci95"].is_array(), count >= 6, "{ran}");
        // Trials of the warm-up are dropped, shown, and made up for.
        let run = count + audit["warmup_dropped"].as_u64().unwrap();
        assert!(run >= trials && audit["trials_run"].as_u64().unwrap() >= run, "{ran}");
        assert_eq!(
            audit["digest_xor32"],
            xor32_hex(&bytes),
            "an even number of passes is no zero: {ran}"
        );
    }
}

#[test]
fn every_format_can_go_to_a_file() {
    let folder = Folder::new();
    let digest = xor32_hex(&random_file(&folder.join("data"), 5000, 1));
    // Rows of CSV and Markdown are figures and what identifies them; facts stand in the others.
    let formats =
        [("table", digest.as_str()), ("json", &digest), ("csv", "read/file"), ("markdown", "data")];
    for (format, content) in formats {
        let ran = folder.flatout(["read", "data", "--format", format]).run();
        assert!(ran.exits(0).stdout.contains(content), "{ran}");
        let arguments = ["read", "data", "--format", format, "--output", "result"];
        let ran = folder.flatout(arguments).leaves("result").run();
        assert_eq!(ran.exits(0).stdout, "", "{ran}");
        let written = std::fs::read_to_string(folder.join("result")).unwrap();
        assert!(written.contains(content), "{format}: {written}");
        std::fs::remove_file(folder.join("result")).unwrap();
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    for format in ["table", "json", "csv", "markdown"] {
        let ran = folder.flatout(["read", "data", "--format", format]).stdout(closed_pipe()).run();
        assert_eq!(ran.exits(0).stderr, "", "{ran}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    folder.flatout(["read", "data"]).stdout(full).run().complains(1, &["No space left"]);
    let words = ["read", "data", "--format", "json", "--output", "/dev/full"];
    let end = folder.flatout(words).run().exits(1).document()["end"].clone();
    assert_eq!((end["exit_code"].as_i64(), end["errors"].as_array().unwrap().len()), (Some(1), 1));
    let ran = folder.flatout(["read", "data", "--output", "no/such/folder"]).run();
    ran.complains(1, &["no/such/folder"]);
}

#[test]
fn names_that_are_no_text_are_read_and_shown_without_harm() {
    let folder = Folder::new();
    let name = OsStr::from_bytes(b"a\xff\x1b[31m b\n");
    let bytes = random_file(&folder.path().join(name), 5000, 1);
    let ran = folder.flatout([OsStr::new("read"), name]).run();
    let digest = xor32(&bytes);
    assert_eq!(ran.exits(0).field("digest"), format!("xor32 {digest:08x} ({digest})"));
    assert!(!ran.stdout.contains('\x1b'), "{}", ran.stdout.escape_debug());
    let json = folder.flatout([OsStr::new("read"), name, "--format=json".as_ref()]).run();
    assert_eq!(json.exits(0).result()["audit"]["digest_xor32"], xor32_hex(&bytes));
}

#[test]
fn documents_follow_the_schema() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    for arguments in ["read data", "read data --trials 8", "read gone", "write new --block-count 2"]
    {
        let words = arguments.split(' ').chain(["--format", "json"]);
        let ran = folder.flatout(words).leaves("new").run();
        crate::schema::assert_valid(&ran.document());
    }
}
