//! Manifests there and back: b3sum, xxhsum, sha256sum and cksum check what flatout writes, and
//! flatout checks what they write.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{name, run, sum};
use crate::bin::{Folder, executable};
use crate::fixture::random_bytes;
use crate::skip::needs;

/// Names that every program here can do.
const ORDINARY: [&[u8]; 10] = [
    b"plain",
    b" leading and trailing ",
    b"quote's \"double\"",
    b"a) = b",
    b"SHA256 (x) = 00",
    b"tab\there",
    b"*star",
    b"#hash",
    "größe 日本".as_bytes(),
    b"%s\x1b[31m",
];
/// Names that begin as an option does.
const DASHED: [&[u8]; 2] = [b"-dash", b"--check"];
/// Names that must be escaped.
const ESCAPED: [&[u8]; 4] = [b"back\\slash", b"new\nline", b"\\", b"\\n\n\\"];
/// Names with what only coreutils escapes in every version; the others are read, not compared.
const RETURNS: [&[u8]; 2] = [b"carriage\rreturn", b"at the end\r"];
/// Names that are no text.
const BINARY: [&[u8]; 2] = [b"\xff\xfe", b"half \xc3"];

/// Lengths around the blocks, chunks and windows of the algorithms and of reading.
const LENGTHS: [usize; 20] = [
    0,
    1,
    3,
    4,
    16,
    17,
    63,
    64,
    65,
    128,
    129,
    240,
    241,
    1023,
    1024,
    1025,
    (16 << 10) - 1,
    (16 << 10) + 1,
    (1 << 20) - 1,
    (1 << 20) + 1,
];
/// One that is large, and no multiple of anything.
const LARGE: usize = (4 << 20) + 3;

/// A program that speaks manifests.
struct Rival {
    program: &'static str,
    /// What makes it print.
    print: &'static [&'static str],
    /// What makes it check standard files.
    check: &'static [&'static str],
    /// What makes flatout print the same.
    ours: &'static [&'static str],
    /// The names that it can do.
    names: &'static [&'static [&'static [u8]]],
}

const ALL_NAMES: &[&[&[u8]]] = &[&ORDINARY, &DASHED, &ESCAPED, &RETURNS, &BINARY];

const B3SUM: Rival = Rival {
    program: "b3sum",
    print: &["--"],
    check: &["--check", "--"],
    ours: &["--digest", "blake3"],
    names: &[&ORDINARY, &DASHED, &ESCAPED],
};

const XXHSUM: Rival = Rival {
    program: "xxhsum",
    print: &["-H2"],
    check: &["--check"],
    ours: &["--digest", "xxh3"],
    names: &[&ORDINARY, &BINARY],
};

const XXHSUM_TAGGED: Rival =
    Rival { print: &["-H2", "--tag"], ours: &["--digest", "xxh3", "--tag"], ..XXHSUM };

const SHA256SUM: Rival = Rival {
    program: "sha256sum",
    print: &["--"],
    check: &["--check", "--"],
    ours: &["--digest", "sha256"],
    names: ALL_NAMES,
};

const SHA256SUM_TAGGED: Rival =
    Rival { print: &["--tag", "--"], ours: &["--digest", "sha256", "--tag"], ..SHA256SUM };

const CKSUM: Rival = Rival {
    program: "cksum",
    print: &["-a", "sha256", "--"],
    check: &["-a", "sha256", "--check", "--"],
    ours: &["--digest", "sha256", "--tag"],
    names: ALL_NAMES,
};

impl Rival {
    /// Where it is, if it can do what is asked of it.
    fn found(&self) -> Result<PathBuf, String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut places = path.split(':').map(|folder| PathBuf::from(folder).join(self.program));
        let missing = || format!("{} is not installed", self.program);
        let program = places.find(|place| place.is_file()).ok_or_else(missing)?;
        let folder = Folder::new();
        std::fs::write(folder.join("x"), "").unwrap();
        let printed = run(folder.path(), &program, self.print.iter().chain(&["x"]));
        if printed.is_success {
            Ok(program)
        } else {
            Err(format!("{} does not know {:?}", self.program, self.print))
        }
    }
}

/// Files with these names in a folder `files`; each has its own contents.
fn files(folder: &Folder, names: &[&[&[u8]]]) -> Vec<OsString> {
    std::fs::create_dir(folder.join("files")).unwrap();
    let names: Vec<OsString> = names.iter().copied().flatten().map(|bytes| name(bytes)).collect();
    for (index, name) in names.iter().enumerate() {
        std::fs::write(folder.join("files").join(name), random_bytes(index * 37, 1)).unwrap();
    }
    names
}

fn lines_ending(text: &[u8], end: &[u8]) -> usize {
    text.split(|&byte| byte == b'\n').filter(|line| line.ends_with(end)).count()
}

/// Both directions, over these files.
fn exchange(rival: &Rival, program: &std::path::Path, folder: &Folder, names: &[OsString]) {
    let place = folder.join("files");
    let words = rival.print.iter().map(OsString::from).chain(names.iter().cloned());
    let theirs = run(&place, program, words);
    assert!(theirs.is_success, "{}", theirs.stderr);
    std::fs::write(folder.join("theirs"), &theirs.stdout).unwrap();
    let checked = run(&place, executable(), ["sum", "--check", "--strict", "../theirs"]);
    let shown = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.is_success, "{}{shown}", checked.stderr);
    assert_eq!(checked.stderr, "");
    assert_eq!(lines_ending(&checked.stdout, b": OK"), names.len(), "{shown}");

    let ours = sum(&place, rival.ours, names);
    std::fs::write(folder.join("ours"), &ours).unwrap();
    let checked = run(&place, program, rival.check.iter().chain(&["../ours"]));
    let shown = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.is_success, "{}{shown}", checked.stderr);
    assert_eq!(lines_ending(&checked.stdout, b": OK"), names.len(), "{shown}{}", checked.stderr);
    assert_eq!(
        String::from_utf8_lossy(&ours),
        String::from_utf8_lossy(&theirs.stdout),
        "{}",
        rival.program
    );
}

fn odd_names(rival: &Rival, program: &std::path::Path) {
    let folder = Folder::new();
    let names = files(&folder, rival.names);
    exchange(rival, program, &folder, &names);
}

/// Their lines about names with carriage returns, which not all of them escape or can read back.
fn names_with_returns(rival: &Rival, program: &std::path::Path) {
    let folder = Folder::new();
    let names = files(&folder, &[&ORDINARY, &RETURNS]);
    let place = folder.join("files");
    let words = rival.print.iter().map(OsString::from).chain(names.iter().cloned());
    let theirs = run(&place, program, words);
    std::fs::write(folder.join("theirs"), &theirs.stdout).unwrap();
    let checked = run(&place, executable(), ["sum", "--check", "--strict", "../theirs"]);
    assert!(checked.is_success, "{}: {}", rival.program, checked.stderr);
    assert_eq!(lines_ending(&checked.stdout, b": OK"), names.len());
}

fn boundary_lengths(rival: &Rival, program: &std::path::Path) {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("files")).unwrap();
    let mut names = Vec::new();
    for length in LENGTHS.into_iter().chain([LARGE]) {
        let name = format!("{length} bytes");
        std::fs::write(folder.join("files").join(&name), random_bytes(length, 9)).unwrap();
        names.push(name.into());
    }
    exchange(rival, program, &folder, &names);
}

#[test]
fn b3sum_and_flatout_understand_each_other() {
    let program = needs!(B3SUM.found());
    odd_names(&B3SUM, &program);
    names_with_returns(&B3SUM, &program);
    boundary_lengths(&B3SUM, &program);
}

#[test]
fn xxhsum_and_flatout_understand_each_other() {
    let program = needs!(XXHSUM.found());
    odd_names(&XXHSUM, &program);
    names_with_returns(&XXHSUM, &program);
    boundary_lengths(&XXHSUM, &program);
}

#[test]
fn xxhsum_with_tags_and_flatout_understand_each_other() {
    let program = needs!(XXHSUM_TAGGED.found());
    odd_names(&XXHSUM_TAGGED, &program);
    names_with_returns(&XXHSUM_TAGGED, &program);
    boundary_lengths(&XXHSUM_TAGGED, &program);
}

#[test]
fn xxhsum_in_little_endian_is_checked() {
    let little = Rival { print: &["-H2", "--tag", "--little-endian"], ..XXHSUM_TAGGED };
    let program = needs!(little.found());
    let folder = Folder::new();
    std::fs::write(folder.join("data"), random_bytes(1000, 2)).unwrap();
    let theirs = run(folder.path(), &program, little.print.iter().chain(&["data"]));
    assert!(theirs.stdout.starts_with(b"XXH128_LE"), "{}", theirs.stderr);
    std::fs::write(folder.join("theirs"), theirs.stdout).unwrap();
    let ran = folder.flatout(["sum", "--check", "theirs"]).run();
    assert_eq!(ran.exits(0).stdout, "data: OK\n");
}

#[test]
fn sha256sum_and_flatout_understand_each_other() {
    let program = needs!(SHA256SUM.found());
    odd_names(&SHA256SUM, &program);
    boundary_lengths(&SHA256SUM, &program);
}

#[test]
fn sha256sum_with_tags_and_flatout_understand_each_other() {
    let program = needs!(SHA256SUM_TAGGED.found());
    odd_names(&SHA256SUM_TAGGED, &program);
}

#[test]
fn cksum_and_flatout_understand_each_other() {
    let program = needs!(CKSUM.found());
    odd_names(&CKSUM, &program);
}

#[test]
fn lines_that_end_in_a_zero_byte_are_those_of_sha256sum() {
    let program = needs!(SHA256SUM.found());
    let folder = Folder::new();
    let names = files(&folder, ALL_NAMES);
    let place = folder.join("files");
    for tag in [None, Some("--tag")] {
        let words = ["--zero"].into_iter().chain(tag).chain(["--"]).map(OsString::from);
        let theirs = run(&place, &program, words.chain(names.iter().cloned()));
        let options: Vec<_> = ["--digest", "sha256", "-z"].into_iter().chain(tag).collect();
        let ours = sum(&place, &options, &names);
        assert!(ours == theirs.stdout, "{}", String::from_utf8_lossy(&ours));
        assert!(ours.windows(11).any(|piece| piece == b"  new\nline\0") || tag.is_some());
        std::fs::write(folder.join("theirs"), theirs.stdout).unwrap();
        let checked = run(&place, executable(), ["sum", "--check", "--zero", "../theirs"]);
        assert!(checked.is_success, "{}", checked.stderr);
        assert_eq!(lines_ending(&checked.stdout, b": OK"), names.len());
    }
}

#[test]
fn binary_mode_and_line_ends_of_other_systems_are_read() {
    let program = needs!(SHA256SUM.found());
    let folder = Folder::new();
    std::fs::write(folder.join("a b"), "abc").unwrap();
    let binary = run(folder.path(), &program, ["--binary", "a b"]);
    assert!(binary.stdout.contains(&b'*'));
    let text = String::from_utf8(binary.stdout).unwrap();
    std::fs::write(folder.join("SUMS"), text.replace('\n', "\r\n").to_uppercase()).unwrap();
    std::fs::write(folder.join("A B"), "abc").unwrap();
    let ran = folder.flatout(["sum", "--check", "--strict", "SUMS"]).run();
    assert_eq!(ran.exits(0).stdout, "A B: OK\n");
}

#[test]
fn every_digest_checks_what_it_printed_on_any_name() {
    let folder = Folder::new();
    let names = files(&folder, ALL_NAMES);
    let place = folder.join("files");
    for digest in ["blake3", "xxh3", "crc32c", "sha256", "xor32"] {
        for form in [&[][..], &["--tag"], &["--zero"], &["--tag", "--zero"]] {
            let options: Vec<_> = ["--digest", digest].iter().chain(form).copied().collect();
            let printed = sum(&place, &options, &names);
            std::fs::write(folder.join("SUMS"), printed).unwrap();
            let zero = form.contains(&"--zero").then_some("--zero");
            let words = ["sum", "--check", "--strict"].into_iter().chain(zero);
            let checked = run(&place, executable(), words.chain(["../SUMS"]));
            assert!(checked.is_success, "{digest} {form:?}: {}", checked.stderr);
            assert_eq!(lines_ending(&checked.stdout, b": OK"), names.len());
        }
    }
}

#[test]
fn names_are_printed_byte_for_byte() {
    let folder = Folder::new();
    let names = files(&folder, &[&BINARY]);
    let printed = sum(&folder.join("files"), &[], &names);
    for name in names {
        let end = [b"  ", name.as_bytes()].concat();
        assert_eq!(lines_ending(&printed, &end), 1);
    }
}
