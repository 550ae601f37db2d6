//! Manifests as other programs write them, and any name there and back.

use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStringExt;

use flatout_io::digest::Algorithm;
use proptest::prelude::*;

use super::*;

const SHA: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const XXH: &str = "06b05ab6733a618578af5f94892f3950";

fn read(text: &[u8], end: LineEnd, asked: Option<Algorithm>) -> Vec<Line> {
    Reader::new(BufReader::with_capacity(7, text), end, asked).map(Result::unwrap).collect()
}

/// Name and algorithms of the only line.
fn one(text: &str) -> (String, Vec<Algorithm>) {
    let lines = read(text.as_bytes(), LineEnd::Feed, None);
    assert_eq!(lines.len(), 1, "{text:?}");
    let entry = lines[0].content.as_ref().unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
    let algorithms = entry.digests.iter().map(Digest::algorithm).collect();
    (entry.name.to_str().unwrap().to_owned(), algorithms)
}

fn fault(text: &str) -> Fault {
    let lines = read(text.as_bytes(), LineEnd::Feed, None);
    lines[0].content.clone().expect_err(text)
}

#[test]
fn lines_of_all_kinds_are_read() {
    let both = vec![Algorithm::Blake3, Algorithm::Sha256];
    for (line, name) in [
        (format!("{SHA}  a b"), "a b"),
        (format!("{SHA} *a b"), "a b"),
        (format!("{SHA}  *a"), "*a"),
        (format!("{SHA}   a"), " a"),
        (format!("{SHA} a"), "a"),
        (format!("{SHA}  a\r\n"), "a"),
        (format!("  {}  a\n", SHA.to_uppercase()), "a"),
        (format!(r"\{SHA}  a\\b\nc\rd"), "a\\b\nc\rd"),
        (format!(r"{SHA}  a\b"), "a\\b"),
        (format!("{SHA}  SHA256 (x) = 00"), "SHA256 (x) = 00"),
    ] {
        assert_eq!(one(&line), (name.to_owned(), both.clone()), "{line:?}");
    }
    for (line, name, algorithm) in [
        (format!("SHA256 (a) = {SHA}"), "a", Algorithm::Sha256),
        (format!("BLAKE3 (a) = {SHA}\r\n"), "a", Algorithm::Blake3),
        (format!("SHA256 (a) = b) = {SHA}"), "a) = b", Algorithm::Sha256),
        (
            format!("SHA256 (SHA256 (a) = {SHA}) = {SHA}"),
            &format!("SHA256 (a) = {SHA}"),
            Algorithm::Sha256,
        ),
        (format!(r"\SHA256 (a\nb\\) = {SHA}"), "a\nb\\", Algorithm::Sha256),
        (format!("SHA2-256(a)= {SHA}"), "a", Algorithm::Sha256),
        (
            "SHA256 (a) = ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=".into(),
            "a",
            Algorithm::Sha256,
        ),
        (format!("XXH128 (a) = {XXH}"), "a", Algorithm::Xxh3),
        ("CRC32C (a) = 8a9136aa".into(), "a", Algorithm::Crc32c),
        ("XOR32 (a) = 8a9136aa".into(), "a", Algorithm::Xor32),
        (format!("{XXH}  a"), "a", Algorithm::Xxh3),
    ] {
        assert_eq!(one(&line), (name.to_owned(), vec![algorithm]), "{line:?}");
    }
    let eight = vec![Algorithm::Crc32c, Algorithm::Xor32];
    assert_eq!(one("8A9136AA  a"), ("a".to_owned(), eight));
}

#[test]
fn a_little_endian_digest_of_xxhsum_is_turned() {
    let turned = "50392f89945faf7885613a73b65ab006";
    let text = format!("XXH128_LE (a) = {turned}\nXXH128 (a) = {XXH}\n");
    let lines = read(text.as_bytes(), LineEnd::Feed, None);
    assert_eq!(lines[0].content, lines[1].content);
}

#[test]
fn comments_and_empty_lines_are_passed_over_but_counted() {
    let text = format!("# one\n\n \t\n\r\n{SHA}  a");
    let lines = read(text.as_bytes(), LineEnd::Feed, None);
    assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [5]);
    assert!(read(b"", LineEnd::Feed, None).is_empty());
}

/// The names in a manifest of these lines.
fn names(text: &str) -> Vec<String> {
    let lines = read(text.as_bytes(), LineEnd::Feed, None);
    let name = |line: &Line| line.content.as_ref().unwrap().name.to_str().unwrap().to_owned();
    lines.iter().map(name).collect()
}

#[test]
fn the_first_line_tells_whether_a_carriage_return_ends_lines_or_names() {
    let feeds = format!("{SHA}  a\n{SHA}  b\r\n\r\nSHA256 (c) = {SHA}\r\n{SHA}  d\r");
    assert_eq!(names(&feeds), ["a", "b\r", "c", "d\r"]);
    let returns = format!("{SHA}  a\r\n{SHA}  b\r\r\n\r\nSHA256 (c) = {SHA}\r\n{SHA}  d");
    assert_eq!(names(&returns), ["a", "b\r", "c", "d"]);
    for (first, name) in [("# comment\n", "a\r"), ("# comment\r\n", "a"), ("\r\n", "a")] {
        assert_eq!(names(&format!("{first}{SHA}  a\r\n")), [name], "{first:?}");
    }
    let zero = read(format!("{SHA}  a\r\0").as_bytes(), LineEnd::Zero, None);
    assert_eq!(zero[0].content.as_ref().unwrap().name, "a\r");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let text = format!("\u{feff}{SHA}  a\r\n{SHA}  b\r\n{SHA}  \u{feff}c\r\n");
    assert_eq!(names(&text), ["a", "b", "\u{feff}c"]);
    assert_eq!(names(&format!("\u{feff}SHA256 (a) = {SHA}\n")), ["a"]);
}

#[test]
fn what_is_no_line_of_a_manifest_is_a_fault() {
    for line in [
        "junk",
        SHA,
        &format!("{SHA} "),
        &format!("{SHA}0  a"),
        &format!("{SHA}x  a"),
        &format!(r"\{SHA}  a\tb"),
        &format!(r"\{SHA}  a\"),
        &format!("{SHA}  a\0b"),
        &format!("SHA256 () = {SHA}"),
        &format!("SHA256 (a = {SHA}"),
        "SHA256 (a) = 00",
        "SHA256 (a) = ",
        "SHA256 (a) = x",
        "(a) = 00",
    ] {
        assert_eq!(fault(line), Fault::Malformed, "{line:?}");
    }
    let md5 = fault("MD5 (a) = 900150983cd24fb0d6963f7d28e17f72");
    assert_eq!(md5.to_string(), "MD5 is not among the digests");
    assert_eq!(fault("XXH3 (a) = 78af5f94892f3950"), Fault::Foreign("XXH3".to_owned()));
}

#[test]
fn an_algorithm_asked_for_is_the_only_one() {
    let text = format!("{SHA}  a\nSHA256 (a) = {SHA}\nBLAKE3 (a) = {SHA}\n{XXH}  a\n");
    let lines = read(text.as_bytes(), LineEnd::Feed, Some(Algorithm::Sha256));
    let said: Vec<_> =
        lines.iter().map(|line| line.content.as_ref().map(|e| e.digests.len())).collect();
    let unasked = Fault::Unasked("BLAKE3");
    assert_eq!(said, [Ok(1), Ok(1), Err(&unasked), Err(&Fault::Malformed)]);
}

#[test]
fn a_line_without_end_is_passed_over_with_little_memory() {
    let text = format!("SHA256 (b) = {SHA}\n{SHA}  ");
    let endless = io::repeat(b'x').take(40 << 20);
    let input = text.as_bytes().chain(endless).chain(b"\nSHA256 (c) = 00\n".as_slice());
    let mut reader = Reader::new(BufReader::new(input), LineEnd::Feed, None);
    assert!(reader.next().unwrap().unwrap().content.is_ok());
    assert_eq!(reader.next().unwrap().unwrap().content, Err(Fault::TooLong));
    assert!(reader.line.capacity() <= 2 * MAX_LINE_BYTES);
    assert_eq!(reader.next().unwrap().unwrap().number, 3);
    assert!(reader.next().is_none());
}

#[test]
fn the_algorithm_that_matched_last_comes_first() {
    let lines = read(format!("{SHA}  a").as_bytes(), LineEnd::Feed, None);
    let mut entry = lines[0].content.clone().unwrap();
    entry.prefer(Algorithm::Sha256);
    assert_eq!(entry.digests[0].algorithm(), Algorithm::Sha256);
    entry.prefer(Algorithm::Xxh3);
    assert_eq!(entry.digests.len(), 2);
}

fn any_algorithm() -> impl Strategy<Value = Algorithm> {
    proptest::sample::select(Algorithm::ALL.to_vec())
}

/// Names of all bytes that a file can have, with the difficult ones often.
fn any_name() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        3 => 1_u8..=255,
        2 => proptest::sample::select(b"\\\n\r )(=*#-nr".to_vec()),
    ];
    proptest::collection::vec(byte, 1..60)
}

proptest! {
    #[test]
    fn any_name_and_digest_come_back(
        files in proptest::collection::vec((any_name(), any_algorithm(), any::<[u8; 32]>()), 1..5),
        is_tagged in any::<bool>(),
        end in proptest::sample::select(vec![LineEnd::Feed, LineEnd::Zero]),
    ) {
        let manifest = Manifest { is_tagged, end };
        let mut text = Vec::new();
        for (name, algorithm, bytes) in &files {
            let digest = Digest::new(*algorithm, &bytes[..algorithm.length_bytes()]);
            manifest.append(&mut text, &digest, &OsString::from_vec(name.clone()));
        }
        let lines = read(&text, end, None);
        prop_assert_eq!(lines.len(), files.len());
        for (line, (name, algorithm, bytes)) in lines.iter().zip(&files) {
            let entry = line.content.as_ref().unwrap();
            prop_assert_eq!(entry.name.as_bytes(), &name[..]);
            let digest = Digest::new(*algorithm, &bytes[..algorithm.length_bytes()]);
            prop_assert!(entry.digests.contains(&digest));
            prop_assert!(!is_tagged || entry.digests.len() == 1);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_stumble(text in proptest::collection::vec(any::<u8>(), 0..300)) {
        read(&text, LineEnd::Feed, None);
        read(&text, LineEnd::Zero, Some(Algorithm::Sha256));
    }
}
