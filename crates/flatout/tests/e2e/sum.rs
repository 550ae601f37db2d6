//! `flatout sum`: digests printed and checked, against the programs whose lines it speaks.

mod check;
mod document;
mod exchange;
mod interruption;
mod large;
mod tree;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::bin::{Folder, closed_pipe, executable, input};
use crate::fixture::{random_bytes, random_file, xor32_hex};

/// The BLAKE3 digest of nothing.
const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
/// The BLAKE3 and the SHA-256 digest of `abc`.
const ABC: &str = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
const ABC_SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// What a program printed, byte for byte, and whether it was content.
struct Printed {
    is_success: bool,
    stdout: Vec<u8>,
    stderr: String,
}

/// Runs a program in a folder.
fn run<A: AsRef<OsStr>>(
    folder: &Path,
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Printed {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().unwrap();
    Printed {
        is_success: output.status.success(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the program under test on these files, and expects success.
fn sum(folder: &Path, options: &[&str], names: &[OsString]) -> Vec<u8> {
    let options = options.iter().map(OsString::from);
    let words = std::iter::once("sum".into()).chain(options).chain(["--".into()]);
    let printed = run(folder, executable(), words.chain(names.iter().cloned()));
    assert!(printed.is_success, "{}", printed.stderr);
    assert_eq!(printed.stderr, "");
    printed.stdout
}

#[test]
fn files_are_printed_in_the_order_in_which_they_are_named() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    std::fs::write(folder.join("empty"), "").unwrap();
    let ran = folder.flatout(["sum", "empty", "abc", "empty"]).run();
    let expected = format!("{EMPTY}  empty\n{ABC}  abc\n{EMPTY}  empty\n");
    assert_eq!(ran.exits(0).stdout, expected);
    assert_eq!(ran.stderr, "");
    let ran = folder.flatout(["sum", "--tag", "--zero", "abc"]).run();
    assert_eq!(ran.exits(0).stdout, format!("BLAKE3 (abc) = {ABC}\0"));
}

#[test]
fn no_file_and_a_dash_are_standard_input() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    for words in [vec!["sum"], vec!["sum", "-"], vec!["sum", "-r", "-"]] {
        let ran = folder.flatout(words).stdin(input(&folder.join("abc"))).run();
        assert_eq!(ran.exits(0).stdout, format!("{ABC}  -\n"));
    }
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"abc").unwrap();
    drop(writer);
    let ran = folder.flatout(["sum", "--digest", "sha256"]).stdin(reader).run();
    assert_eq!(ran.exits(0).stdout, format!("{ABC_SHA256}  -\n"), "from a pipe");
}

/// CRC-32C bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0x82f6_3b78 * (sum & 1)))
    })
}

#[test]
fn digests_without_a_rival_follow_their_definitions() {
    let folder = Folder::new();
    for length in [0, 1, 3, 4, 63, 64, 65, 4095, 100_001, (1 << 20) + 1] {
        let bytes = random_file(&folder.join("data"), length, length as u64);
        for (digest, expected) in
            [("xor32", xor32_hex(&bytes)), ("crc32c", format!("{:08x}", crc32c(&bytes)))]
        {
            let ran = folder.flatout(["sum", "--digest", digest, "data"]).run();
            assert_eq!(ran.exits(0).stdout, format!("{expected}  data\n"), "{digest} {length}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_digest() {
    let folder = Folder::new();
    let names: Vec<OsString> = (0..40).map(|n| format!("file-{n:02}").into()).collect();
    for (index, name) in names.iter().enumerate() {
        std::fs::write(folder.path().join(name), random_bytes(index * index * 997, 3)).unwrap();
    }
    for digest in ["blake3", "xxh3", "crc32c", "sha256", "xor32"] {
        let of = |threads| sum(folder.path(), &["--digest", digest, "--threads", threads], &names);
        let one = of("1");
        assert_eq!(one.iter().filter(|&&byte| byte == b'\n').count(), 40);
        assert_eq!(of("2"), one, "{digest}");
        assert_eq!(of("7"), one, "{digest}");
    }
}

#[test]
fn one_file_that_cannot_be_read_does_not_stop_the_others() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    std::fs::create_dir(folder.join("directory")).unwrap();
    let ran = folder.flatout(["sum", "missing", "directory", "abc"]).run();
    assert_eq!(ran.exits(1).stdout, format!("{ABC}  abc\n"));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{ran}");
    assert_eq!(lines[0], "flatout: cannot open \"missing\": No such file or directory");
    assert!(lines[1].contains("directory\": Is a directory"), "{ran}");
}

#[test]
fn complaints_hold_no_control_characters() {
    let folder = Folder::new();
    let ran = folder.flatout(["sum", "miss\x1b[31ming\n"]).run();
    ran.complains(1, &["miss\\u{1b}[31ming\\n"]);
}

#[test]
fn options_that_make_no_sense_together_are_wrong_use() {
    let folder = Folder::new();
    for (options, word) in [
        ("--tag --check", "--tag"),
        ("-r --check", "--recursive"),
        ("--quiet", "--check"),
        ("--status", "--check"),
        ("--warn", "--check"),
        ("--strict", "--check"),
        ("--ignore-missing", "--ignore-missing"),
        ("--digest md5", "md5"),
        ("--threads 0", "--threads"),
        ("--threads 100000", "1024"),
        ("--format table", "table"),
        ("- -", "read once"),
        ("--check - file -", "read once"),
    ] {
        let ran = folder.flatout(["sum"].into_iter().chain(options.split(' '))).run();
        ran.complains(2, &[word]);
        assert_eq!(ran.stdout, "", "{ran}");
    }
    for options in ["--format json --tag", "--format json --zero"] {
        let ran = folder.flatout(["sum"].into_iter().chain(options.split(' '))).run();
        ran.complains(2, &["JSON"]).document();
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = Folder::new();
    let names: Vec<String> = (0..3000).map(|n| format!("a-rather-long-name-{n:04}")).collect();
    for name in &names {
        std::fs::write(folder.join(name), "").unwrap();
    }
    let words = ["sum".to_owned(), "-r".to_owned(), ".".to_owned()];
    let ran = folder.flatout(words).stdout(closed_pipe()).run();
    ran.exits(0);
    assert_eq!(ran.stderr, "", "{ran}");
}

#[test]
fn results_go_into_a_file_that_appears_when_it_is_whole() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    std::fs::write(folder.join("SUMS"), "old").unwrap();
    let ran = folder.flatout(["sum", "abc", "--output", "SUMS"]).run();
    assert_eq!(ran.exits(0).stdout, "");
    let written = std::fs::read_to_string(folder.join("SUMS")).unwrap();
    assert_eq!(written, format!("{ABC}  abc\n"));
    let ran = folder.flatout(["sum", "abc", "--output", "abc"]).run();
    ran.complains(1, &["abc", "worked on"]);
    let ran = folder.flatout(["sum", "abc", "--output", "no/such/place"]).run();
    ran.complains(1, &["no/such/place"]);
}

#[test]
fn a_place_that_is_full_is_said() {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    let ran = folder.flatout(["sum", "abc", "--output", "/dev/full"]).run();
    ran.exits(1);
    assert!(ran.stderr.contains("No space left"), "{ran}");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = folder.flatout(["sum", "abc"]).stdout(full).run();
    ran.complains(1, &["standard output", "No space left"]);
}

/// A name of any bytes.
fn name(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}
