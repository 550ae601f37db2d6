//! Wrong use and bad input: one line that says what is wrong, and the right exit code.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

use crate::bin::{Flatout, Folder, Ran, assert_warned};
use crate::filesystem::{is_root, needs_program, needs_root, needs_storage};
use crate::fixture::{random_file, xor32_hex};
use crate::skip::needs;

/// Options that are refused, and the value as it was typed.
const WRONG: &[(&str, &str)] = &[
    ("--block-size", "0"),
    ("--block-size", "9223372036854775808"),
    ("--threads", "0"),
    ("--threads", "100000"),
];

fn folder_with_file() -> Folder {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    folder
}

/// Fails unless the line also names a limit: a number besides the value itself.
#[track_caller]
fn names_a_limit(ran: &Ran, value: &str) {
    let rest = ran.stderr.replace(value, "");
    assert!(rest.contains(|c: char| c.is_ascii_digit()), "no limit named: {ran}");
}

#[test]
fn options_out_of_range_are_wrong_use_that_names_the_limit() {
    let folder = folder_with_file();
    for command in [["read", "data"], ["write", "new"]] {
        for &(option, value) in WRONG {
            let ran = folder.flatout([command[0], command[1], option, value]).run();
            ran.complains(2, &[option, value]);
            names_a_limit(&ran, value);
            assert_eq!(ran.stdout, "", "{ran}");
        }
    }
}

#[test]
fn an_amount_beyond_the_largest_file_is_wrong_use() {
    let folder = folder_with_file();
    for command in [["read", "data"], ["write", "new"]] {
        for count in ["18446744073709551615", "8796093022208"] {
            let amount = ["--block-size", "1MiB", "--block-count", count];
            let ran = folder.flatout(command.into_iter().chain(amount)).run();
            ran.complains(2, &["--block-count", count]);
        }
    }
}

#[test]
fn words_that_are_no_choice_are_wrong_use() {
    let folder = folder_with_file();
    for (option, value) in [
        ("--engine", "aio"),
        ("--caching", "warm"),
        ("--split", "random"),
        ("--digest", "md5"),
        ("--format", "xml"),
        ("--block-size", "many"),
        ("--block-size", "-1"),
        ("--time", "5 parsecs"),
        ("--no-such-option", "1"),
    ] {
        let ran = folder.flatout(["read", "data", &format!("{option}={value}")]).run();
        ran.exits(2);
        assert!(ran.stderr.contains(option), "{ran}");
        assert_eq!(ran.stdout, "", "{ran}");
    }
    folder.flatout(["read"]).run().exits(2);
}

#[test]
fn in_json_mode_stdout_holds_a_document_or_nothing() {
    let folder = folder_with_file();
    for arguments in
        ["read data --threads 0", "read data --no-such-option", "write data", "read gone", "read ."]
    {
        let ran = folder.flatout(arguments.split(' ').chain(["--format", "json"])).run();
        assert!(matches!(ran.code, Some(1 | 2)), "{ran}");
        if ran.code == Some(1) || !ran.stdout.is_empty() {
            let document = ran.document();
            assert!(!document["end"]["errors"].as_array().unwrap().is_empty(), "{ran}");
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let folder = folder_with_file();
    folder.flatout(["read", "gone"]).run().complains(1, &["gone", "No such file"]);
    folder.flatout(["read", "data/below"]).run().complains(1, &["data/below", "Not a directory"]);
}

#[test]
fn a_directory_is_no_file() {
    let folder = folder_with_file();
    for engine in ["auto", "sync", "mmap", "uring"] {
        folder.flatout(["read", ".", "--engine", engine]).run().complains(1, &["."]);
    }
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    let folder = folder_with_file();
    std::fs::set_permissions(folder.join("data"), PermissionsExt::from_mode(0o000)).unwrap();
    let ran = if is_root() {
        needs!(needs_program("setpriv"));
        as_nobody(&folder, "read data").run()
    } else {
        folder.flatout(["read", "data"]).run()
    };
    ran.complains(1, &["data", "Permission denied"]);
}

/// The program run by nobody.
pub fn as_nobody<'a>(folder: &'a Folder, arguments: &str) -> Flatout<'a> {
    folder.admit_all();
    let words = format!("--reuid=65534 --regid=65534 --clear-groups ./program {arguments}");
    folder.program("setpriv".as_ref(), words.split(' ').map(OsString::from).collect())
}

#[test]
fn the_cache_share_of_somebody_elses_file_is_not_invented() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 8 << 20, 6);
    std::fs::set_permissions(folder.join("data"), PermissionsExt::from_mode(0o644)).unwrap();
    folder.flatout(["read", "data", "--cold"]).run().exits(0);
    folder.flatout(["read", "data", "--cold", "--caching", "direct"]).run().exits(0);
    let result = as_nobody(&folder, "read data --format json").run().exits(0).result();
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes));
    assert!(result["audit"]["cached_before_bytes"].is_null(), "{result:#}");
    let reason = result["audit"]["engine_reason"].as_str().unwrap();
    assert!(!reason.contains("100 %"), "{reason}");
    folder.flatout(["read", "data", "--caching", "buffered"]).run().exits(0);
    let result = as_nobody(&folder, "read data --format json").run().exits(0).result();
    let reason = result["audit"]["engine_reason"].as_str().unwrap();
    assert!(reason.contains("about 100 % in the page cache, by a sample"), "{reason}");
    let result = as_nobody(&folder, "read data --cold --format json").run().exits(0).result();
    assert_warned(&result, "not_cold");
    assert!(result.to_string().contains("cannot be proved"), "{result:#}");
}

#[test]
fn an_empty_path_names_no_file() {
    let folder = Folder::new();
    for command in ["read", "write", "sum"] {
        let size = ["--size", "1M"].into_iter().filter(|_| command == "write");
        let ran = folder.flatout([command, ""].into_iter().chain(size)).run();
        ran.complains(1, &["\"\": No such file or directory"]);
    }
}
