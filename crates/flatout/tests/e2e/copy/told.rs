//! What is told of a copy: names without loss, and bytes of what is complete.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use serde_json::Value;

use crate::bin::{Folder, executable};
use crate::filesystem::{Kind, Mounted, needs_program};
use crate::skip::needs;

/// Names that are easily taken for one another.
const NAMES: [&[u8]; 10] = [
    b"a\xff",
    b"a\xfe",
    b"a\\xff",
    b"a\\\\xff",
    "a\u{85}".as_bytes(),
    b"a\x85",
    b"a\n",
    b"a\\n",
    "a\u{fffd}".as_bytes(),
    b"a \"b\"",
];

fn at(folder: &Path, name: &[u8]) -> std::path::PathBuf {
    folder.join(OsStr::from_bytes(name))
}

/// Undoes `\xNN` and `\\` in the name of an entry of `src`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        rest = match (first, more) {
            (b'\\', [b'\\', more @ ..]) => {
                bytes.push(b'\\');
                more
            }
            (b'\\', [b'x', high, low, more @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                more
            }
            (b'\\', _) => panic!("{text} has an escape of its own"),
            _ => {
                bytes.push(first);
                more
            }
        };
    }
    bytes.strip_prefix(b"src/").unwrap_or_else(|| panic!("{text}")).to_vec()
}

#[test]
fn names_that_differ_in_one_byte_are_told_apart() {
    let folder = Folder::new();
    for name in ["src", "new"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    for name in NAMES {
        fs::write(at(&folder.join("src"), name), "").unwrap();
        // A directory is not replaced by a file.
        fs::create_dir(at(&folder.join("new"), name)).unwrap();
    }
    let words = "copy --format json --log log -T src new".split(' ');
    let ran = folder.flatout(words).leaves("log").run();
    ran.exits(1);
    let lines: BTreeSet<&str> = ran.stderr.lines().collect();
    assert_eq!((lines.len(), ran.stderr.lines().count()), (NAMES.len(), NAMES.len()), "{ran}");
    let document = ran.document();
    let errors = document["end"]["errors"].as_array().unwrap();
    let errors: BTreeSet<&str> = errors.iter().map(|error| error.as_str().unwrap()).collect();
    assert_eq!(errors.len(), NAMES.len(), "{ran}");
    let log = fs::read_to_string(folder.join("log")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let failed = lines.filter(|line| line["action"] == "failed");
    let logged: BTreeSet<Vec<u8>> = failed
        .map(|line| {
            let path = line["path"].as_str().unwrap();
            let shown = path.replace("new/", "src/");
            assert!(
                errors.iter().any(|error| error.contains(&path.replace('"', "\\\""))),
                "{path}: {ran}"
            );
            unescaped(&shown)
        })
        .collect();
    let names: BTreeSet<Vec<u8>> = NAMES.iter().map(|name| name.to_vec()).collect();
    assert_eq!(logged, names, "{log}");
}

#[test]
fn operands_that_are_not_there_are_named_without_loss() {
    let folder = Folder::new();
    fs::create_dir(folder.join("d")).unwrap();
    let names = NAMES.map(|name| OsString::from_vec(name.to_vec()));
    let words = [OsString::from("copy")].into_iter().chain(names).chain(["d".into()]);
    let ran = folder.flatout(words).run();
    let lines: BTreeSet<&str> = ran.exits(1).stderr.lines().collect();
    assert_eq!(lines.len(), NAMES.len(), "{ran}");
    for shown in [r#""a\xff":"#, r#""a\\xff":"#, r#""a\n":"#, r#""a\\n":"#, r#""a \"b\"":"#] {
        assert!(ran.stderr.contains(shown), "{shown}: {ran}");
    }
}

/// Others have always some pages that are not written yet.
#[test]
fn what_is_not_on_disk_is_at_most_what_was_copied_and_never_said_of_memory() {
    let folder = Folder::new();
    fs::write(folder.join("source"), [7; 100_000]).unwrap();
    fs::write(folder.join("others"), [7; 1 << 20]).unwrap();
    for kind in [Kind::Ext4, Kind::Tmpfs(1 << 20), Kind::Ramfs] {
        let mounted = needs!(Mounted::new(kind));
        let target = mounted.path().join("copy");
        let copy = |options: &[&str]| {
            let words = [&["copy", "source"], options].concat();
            let words = words.iter().map(OsStr::new).chain([target.as_os_str()]);
            folder.flatout(words).run()
        };
        let document = copy(&["--format=json"]).exits(0).result();
        let unwritten = &document["audit"]["unwritten_bytes"];
        let ran = copy(&["-v", "--always"]);
        let is_said = ran.exits(0).stderr.contains("not on disk yet");
        match kind {
            Kind::Ext4 => {
                assert!(unwritten.as_u64().is_some_and(|bytes| bytes <= 100_000), "{document:#}");
                assert!(!is_said || ran.stderr.contains("; at most "), "{ran}");
            }
            _ => assert!(unwritten.is_null() && !is_said, "{document:#}{ran}"),
        }
        mounted.finish();
    }
}

#[test]
fn the_bytes_of_a_file_that_failed_are_none_of_the_figures() {
    needs!(needs_program("bash"));
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/small"), [7; 1000]).unwrap();
    fs::write(folder.join("src/large"), [7; 100_000]).unwrap();
    // bash counts in units of 1024 bytes.
    let script = "ulimit -f 16 && exec \"$@\"";
    let wrapper = ["bash", "-c", script, "bash"];
    let arguments = ["copy", "--engine", "sync", "--block-size", "4K", "--format", "json"];
    let words = wrapper[1..].iter().map(OsString::from);
    let words = words.chain([executable().into()]).chain(arguments.map(OsString::from));
    let words = words.chain(["src", "new"].map(OsString::from)).collect();
    let ran = folder.program("bash".as_ref(), words).leaves("new").run();
    ran.complains(1, &["large", "File too large"]);
    let audit = &ran.result()["audit"];
    assert_eq!((&audit["files"], &audit["failed"]), (&1.into(), &1.into()), "{ran}");
    assert_eq!(audit["bytes"], 1000, "{ran}");
}
