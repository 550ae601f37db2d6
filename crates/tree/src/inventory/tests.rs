//! Lines written and read again, and what differs.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::*;

fn record(place: &std::path::Path, name: &[u8], shown: &[u8]) -> Record {
    let directory = File::open(place).unwrap();
    let name = CString::new(name).unwrap();
    Record::of(Node::Named(Place { directory: directory.as_fd(), name: &name }), shown).unwrap().0
}

#[test]
fn what_is_written_is_read_again_whatever_the_name() {
    let place = tempfile::tempdir().unwrap();
    let names: [&[u8]; 9] = [
        b"plain",
        b" a b ",
        b"line\nfeed",
        b"#x=\\y",
        b"\xff\x01\x7f",
        b"\\012",
        b"-",
        b"*[a]",
        b"caf\xc3\xa9",
    ];
    for name in names {
        let path = place.path().join(std::ffi::OsStr::from_bytes(name));
        fs::write(&path, name).unwrap();
        let mut shown = record(place.path(), name, name);
        let digest = shown.read(
            File::open(place.path()).unwrap().as_fd(),
            &CString::new(name).unwrap(),
            CancelToken::manual(),
        );
        shown.digest = Some(digest.unwrap());
        let mut line = Vec::new();
        shown.append(&mut line);
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert!(line.is_ascii());
        assert_eq!(parse(&line[..line.len() - 1]), Some(Line::Entry(Box::new(shown.clone()))));
        assert!(shown.differences(&shown).is_empty());
    }
    symlink(std::ffi::OsStr::from_bytes(b"to\nwhere #=\\"), place.path().join("link")).unwrap();
    for name in [&b"link"[..], b"."] {
        let shown = record(place.path(), name, b"/there//is/./it/");
        assert_eq!(shown.name, "/there/is/it");
        let mut line = Vec::new();
        shown.append(&mut line);
        assert_eq!(parse(&line[..line.len() - 1]), Some(Line::Entry(Box::new(shown))));
    }
}

#[test]
fn each_difference_is_named() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "text").unwrap();
    let wanted = record(place.path(), b"file", b"file");
    let mut found = wanted.clone();
    found.mode ^= 0o111;
    found.owner.1 += 1;
    found.time.1 ^= 1;
    found.length_bytes += 1;
    found.device = Some((1, 5));
    let mut listed = wanted.clone();
    listed.device = Some((8, 3));
    assert!(listed.differences(&found).contains(&"device 1:5 instead of 8:3".to_owned()));
    found.attributes = Some(Hasher::new(Algorithm::Blake3).finish());
    let words = wanted.differences(&found).join("; ");
    for word in ["mode", "owner", "time", "size 5 instead of 4", "extended attributes"] {
        assert!(words.contains(word), "{words}");
    }
    fs::remove_file(place.path().join("file")).unwrap();
    fs::create_dir(place.path().join("file")).unwrap();
    assert_eq!(
        wanted.differences(&record(place.path(), b"file", b"file")),
        ["dir instead of file"]
    );
}

#[test]
fn what_is_no_line_is_none() {
    for line in [&b"./name"[..], b"#end many", b"0123456789abcdef  name"] {
        assert_eq!(parse(line), None, "{:?}", String::from_utf8_lossy(line));
    }
    let attributes = "uid=0 gid=0 mode=0644 time=1.0";
    for words in [
        "./name type=dir size",
        "./name type=door",
        "./na\\9me type=dir",
        "./na\\0 type=dir",
        "./name\\000 type=dir",
        "./name type=file blake3=12",
        "./name type=file size=5",
        "./name type=link size=5",
        "./name type=char",
    ] {
        let line = format!("{words} {attributes}");
        assert_eq!(parse(line.as_bytes()), None, "{line}");
    }
    // What a line does not say would not be compared, or with nothing.
    for word in attributes.split(' ') {
        let line = format!("./name type=dir {}", attributes.replace(word, "later=1"));
        assert_eq!(parse(line.as_bytes()), None, "{line}");
    }
    assert_eq!(parse(b"# a comment"), Some(Line::Comment));
    assert_eq!(parse(b"#end 12"), Some(Line::End(12)));
    assert_eq!(parse(b"#root ./a\\040b"), Some(Line::Root("a b".into())));
    let later = format!("./name type=dir {attributes} later=1");
    assert!(matches!(parse(later.as_bytes()), Some(Line::Entry(_))));
}
