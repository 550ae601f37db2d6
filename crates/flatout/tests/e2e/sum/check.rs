//! `flatout sum --check`: what it says about files and lines, and how it ends.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{ABC, ABC_SHA256, EMPTY};
use crate::bin::{Folder, POLL, Ran};
use crate::filesystem::{is_root, needs_program};
use crate::input::as_nobody;
use crate::skip::needs;

/// A folder with the files `abc` and `empty`, and a manifest of these lines.
fn folder(lines: &[&str]) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.join("abc"), "abc").unwrap();
    std::fs::write(folder.join("empty"), "").unwrap();
    std::fs::write(folder.join("SUMS"), lines.join("\n")).unwrap();
    folder
}

fn check(folder: &Folder, options: &str) -> Ran {
    let options = options.split(' ').filter(|word| !word.is_empty());
    folder.flatout(["sum", "--check", "SUMS"].into_iter().chain(options)).run()
}

/// What was complained of, without the name of the program.
fn complaints(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().map(|line| line.strip_prefix("flatout: ").unwrap()).collect()
}

#[test]
fn files_are_ok_or_failed_or_cannot_be_read() {
    let (good, bad) = (format!("{ABC}  abc"), format!("{ABC}  empty"));
    let missing = format!("{ABC}  missing");
    let folder = folder(&[&good, "junk", &bad, &missing, &bad, "# comment", ""]);
    let ran = check(&folder, "");
    let expected = "abc: OK\nempty: FAILED\nmissing: FAILED open or read\nempty: FAILED\n";
    assert_eq!(ran.exits(1).stdout, expected);
    let closing = [
        "cannot open \"missing\": No such file or directory",
        "WARNING: 1 line is improperly formatted",
        "WARNING: 1 listed file could not be read",
        "WARNING: 2 computed digests did NOT match",
    ];
    assert_eq!(complaints(&ran), closing);

    let ran = check(&folder, "--quiet");
    assert_eq!(ran.exits(1).stdout, expected.strip_prefix("abc: OK\n").unwrap());
    let ran = check(&folder, "--status");
    assert_eq!((ran.exits(1).stdout.as_str(), complaints(&ran)), ("", closing[..1].to_vec()));
    let ran = check(&folder, "--warn");
    assert!(complaints(&ran).contains(&"\"SUMS\": line 2: not the line of a digest"), "{ran}");
    let ran = check(&folder, "--ignore-missing");
    assert_eq!(ran.exits(1).stdout, "abc: OK\nempty: FAILED\nempty: FAILED\n");
}

/// Nobody may ever write into it. What is handed to the program is read.
#[test]
fn a_listed_file_that_became_a_fifo_is_not_waited_for() {
    let lines = [format!("{ABC}  abc"), format!("{EMPTY}  empty"), format!("{ABC}  /dev/stdin")];
    let folder = folder(&lines.each_ref().map(String::as_str));
    std::fs::remove_file(folder.join("empty")).unwrap();
    mknodat(CWD, folder.join("empty"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"abc").unwrap();
    drop(writer);
    let ran = folder.flatout(["sum", "--check", "SUMS"]).stdin(reader).run();
    let expected = "abc: OK\nempty: FAILED open or read\n/dev/stdin: OK\n";
    assert_eq!(ran.exits(1).stdout, expected);
    assert!(complaints(&ran)[0].contains("\"empty\": it is a FIFO"), "{ran}");
}

/// As that of a file in a very deep tree: it lists a file at which nobody has looked.
#[test]
fn a_line_that_is_too_long_is_no_success() {
    let folder = folder(&[&format!("{ABC}  abc"), &format!("{ABC}  {}abc", "d/".repeat(600_000))]);
    let ran = check(&folder, "");
    assert_eq!(ran.exits(1).stdout, "abc: OK\n");
    assert_eq!(complaints(&ran), ["\"SUMS\": line 2: longer than 1048576 bytes"]);
}

#[test]
fn a_line_that_is_no_digest_fails_only_where_that_is_asked_for() {
    let folder = folder(&[&format!("{ABC}  abc"), "junk"]);
    check(&folder, "").complains(0, &["1 line is improperly formatted"]);
    check(&folder, "--strict").complains(1, &["1 line is improperly formatted"]);
    check(&folder, "--strict --status").exits(1);
}

#[test]
fn a_file_that_is_no_manifest_is_an_error() {
    let folder = folder(&["junk"]);
    check(&folder, "")
        .complains(1, &["\"SUMS\": no properly formatted lines found of blake3, xxh3"]);
    std::fs::write(folder.join("SUMS"), "").unwrap();
    check(&folder, "")
        .complains(1, &["\"SUMS\": no properly formatted lines found of blake3, xxh3"]);
    check(&folder, "--digest sha256").complains(1, &["lines found of sha256"]);
    std::fs::remove_file(folder.join("SUMS")).unwrap();
    check(&folder, "").complains(1, &["cannot open \"SUMS\": No such file or directory"]);
    std::fs::create_dir(folder.join("SUMS")).unwrap();
    check(&folder, "").complains(1, &["cannot read \"SUMS\": Is a directory"]);
}

#[test]
fn missing_files_may_be_passed_over_but_not_all_of_them() {
    let (good, missing) = (format!("{ABC}  abc"), format!("{ABC}  missing"));
    let some = folder(&[&good, &missing]);
    let ran = check(&some, "--ignore-missing");
    assert_eq!((ran.exits(0).stdout.as_str(), ran.stderr.as_str()), ("abc: OK\n", ""));
    let none = folder(&[&missing]);
    let ran = check(&none, "--ignore-missing");
    ran.complains(1, &["\"SUMS\": no file was verified"]);
    assert_eq!(check(&none, "--ignore-missing --status").exits(1).stderr, "");
}

#[test]
fn an_untagged_line_is_taken_for_any_digest_of_its_length() {
    let sha256 = format!("{ABC_SHA256}  abc");
    let folder = folder(&[&sha256, &format!("{EMPTY}  empty"), &sha256, "00000000  empty"]);
    let ran = check(&folder, "");
    assert_eq!(ran.exits(0).stdout, "abc: OK\nempty: OK\nabc: OK\nempty: OK\n");
    let ran = check(&folder, "--digest blake3");
    assert_eq!(ran.exits(1).stdout, "abc: FAILED\nempty: OK\nabc: FAILED\n");
}

#[test]
fn digests_that_are_not_computed_here_are_errors_by_line() {
    let md5 = "MD5 (abc) = 900150983cd24fb0d6963f7d28e17f72";
    let folder = folder(&[&format!("BLAKE3 (abc) = {ABC}"), md5]);
    let ran = check(&folder, "");
    ran.complains(1, &["\"SUMS\": line 2: MD5 is not among the digests"]);
    assert_eq!(ran.stdout, "abc: OK\n");
    let ran = check(&folder, "--digest sha256");
    assert!(ran.stderr.contains("line 1: BLAKE3 is not the digest asked for"), "{ran}");
}

#[test]
fn manifests_are_read_one_after_the_other_and_from_standard_input() {
    let folder = folder(&[&format!("{ABC}  abc")]);
    let input = std::fs::File::open(folder.join("SUMS")).unwrap();
    let ran = folder.flatout(["sum", "-c", "nowhere", "SUMS", "-"]).stdin(input).run();
    assert_eq!(ran.exits(1).stdout, "abc: OK\nabc: OK\n");
    assert_eq!(complaints(&ran), ["cannot open \"nowhere\": No such file or directory"]);
    std::fs::write(folder.join("dash"), format!("{ABC}  -\n")).unwrap();
    let input = std::fs::File::open(folder.join("abc")).unwrap();
    let ran = folder.flatout(["sum", "-c", "dash"]).stdin(input).run();
    assert_eq!(ran.exits(0).stdout, "-: OK\n");
    let input = std::fs::File::open(folder.join("dash")).unwrap();
    let ran = folder.flatout(["sum", "-c"]).stdin(input).run();
    ran.complains(1, &["line 1", "the manifest itself"]);
}

#[test]
fn names_in_the_report_are_escaped_as_in_a_manifest() {
    let folder = Folder::new();
    std::fs::write(folder.join("a\nb\\"), "abc").unwrap();
    std::fs::write(folder.join("SUMS"), format!("\\{ABC}  a\\nb\\\\\n")).unwrap();
    assert_eq!(check(&folder, "").exits(0).stdout, "\\a\\nb\\\\: OK\n");
}

#[test]
fn a_file_that_may_not_be_read_does_not_stop_the_check() {
    let folder = folder(&[&format!("{EMPTY}  empty"), &format!("{ABC}  abc")]);
    std::fs::set_permissions(folder.join("empty"), PermissionsExt::from_mode(0o000)).unwrap();
    let ran = if is_root() {
        needs!(needs_program("setpriv"));
        as_nobody(&folder, "sum -c SUMS").run()
    } else {
        check(&folder, "")
    };
    assert_eq!(ran.exits(1).stdout, "empty: FAILED open or read\nabc: OK\n");
    assert!(ran.stderr.contains("cannot open \"empty\": Permission denied"), "{ran}");
}

/// They are as long as digests of xxh3.
#[test]
fn a_list_of_md5sum_is_not_taken_for_damage_without_a_word() {
    const MD5: &str = "900150983cd24fb0d6963f7d28e17f72  abc";
    const HINT: &str = "those of md5sum, as many, cannot be checked";
    let md5 = folder(&[MD5]);
    let ran = check(&md5, "");
    let last = ran.exits(1).stderr.lines().last().unwrap();
    assert!(last.contains(HINT), "{ran}");
    let is_silent = |ran: Ran| !ran.exits(1).stderr.contains(HINT);
    assert!(is_silent(check(&md5, "--status")) && is_silent(check(&md5, "--digest xxh3")));
    let right = format!("{ABC_SHA256}  abc");
    assert!(is_silent(check(&folder(&[&right, MD5]), "")), "another digest is known");
    let tagged = "XXH128 (abc) = 900150983cd24fb0d6963f7d28e17f72";
    assert!(is_silent(check(&folder(&[tagged]), "")), "it says what it is");
}

#[test]
fn a_directory_that_is_listed_is_no_reason_to_read_all_below_it() {
    let folder = folder(&[&format!("{ABC}  directory")]);
    std::fs::create_dir(folder.join("directory")).unwrap();
    let ran = check(&folder, "");
    let first = ran.exits(1).stderr.lines().next().unwrap();
    assert_eq!(first, "flatout: cannot open \"directory\": Is a directory", "{ran}");
}

/// A pipe may give its first line in pieces.
#[test]
fn a_manifest_of_a_copy_is_known_however_a_pipe_hands_it_out() {
    let folder = folder(&[]);
    let run = folder.flatout(["copy", "--manifest", "list", "-T", "abc", "new"]);
    run.leaves("list").leaves("new").run().exits(0);
    let list = std::fs::read(folder.join("list")).unwrap();
    for first in [1, 7, 16, 17] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let ours = reader.try_clone().unwrap();
        let checking = folder.flatout(["sum", "--check", "--strict", "--quiet", "-"]).stdin(reader);
        let checking = checking.start();
        writer.write_all(&list[..first]).unwrap();
        while rustix::io::ioctl_fionread(&ours).unwrap() > 0 {
            std::thread::sleep(POLL);
        }
        drop(ours);
        writer.write_all(&list[first..]).unwrap();
        drop(writer);
        let ran = checking.wait();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{first}{ran}");
    }
}
