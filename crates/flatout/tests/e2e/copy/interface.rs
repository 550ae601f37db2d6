//! What `flatout copy` takes and what it says: options, figures, the log, exit codes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};

use flatout_sys::launcher::{EPERM, IO_URING_SETUP, deny};
use rustix::process::Signal;
use serde_json::Value;

use crate::bin::{Folder, assert_warned, closed_pipe};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, Mounted, needs_program};
use crate::fixture::random_bytes;
use crate::schema;
use crate::skip::needs;

/// Options that contradict each other or are out of bounds, and a word of the line that says so.
const WRONG: &[(&str, &str)] = &[
    ("--engine reflink --reflink=never", "--reflink=never"),
    ("--engine sync --reflink=always", "--reflink=always"),
    ("--engine uring --reflink", "--reflink=always"),
    ("--engine reflink --sparse=always", "--sparse=always"),
    ("--reflink=always --sparse=never", "--sparse=never"),
    ("--engine mmap --depth 4", "--iodepth"),
    ("--engine reflink --block-size 1M", "--block-size"),
    ("-t one -t new", "second directory: \"new\""),
    ("--always --link-dest src", "--link-dest"),
    ("--in-place --link-dest src", "--in-place"),
    ("--reflink=never --reflink-dest src", "--reflink-dest"),
    ("--sparse=always --reflink-dest src", "holes"),
    ("--preserve=modes", "modes"),
    ("--preserve=", "ambiguous argument"),
    ("--no-preserve=", "ambiguous argument"),
    ("--engine dd", "dd"),
    ("--sparse=often", "often"),
    ("--reflink=often", "often"),
    ("--format xml", "xml"),
    ("--threads 0", "it must be from 1 to"),
    ("--threads 100000", "1024"),
    ("--block-size 0", "64 MiB"),
    ("--block-size 1G", "64 MiB"),
    ("--depth 0", "it must be from 1 to"),
    ("--max-fds 3", "it must be 16 or more"),
    ("--max-memory 1", "64 KiB"),
    ("--bwlimit 1", "1 KiB a second"),
    ("--bwlimit 1000", "in bytes"),
    ("--min-size 2K --max-size 1K", "would be copied"),
    ("--files-from - --exclude-from -", "standard input"),
    ("--exclude-from - --exclude-from -", "standard input"),
    ("-i --files-from -", "standard input"),
    ("--bwlimit fast", "fast"),
    ("--no-such-option", "--no-such-option"),
];

/// Options that are accepted, alone and together.
const RIGHT: &[&str] = &[
    "",
    "--preserve",
    "--preserve=mode",
    "--preserve=all --no-preserve=ownership,xattr",
    "--no-preserve all",
    "--no-preserve=mode --no-preserve=links",
    "--in-place",
    "--bwlimit 0",
    "--atomic --sync",
    "--atomic --in-place --atomic",
    "--always --checksum --always",
    "--sync --sync -x -x --verify --verify --threads 2 --threads 3 -T -T",
    "--engine uring --engine sync --block-size 1M --block-size 2M --max-fds 64 --max-fds 65",
    "--reflink=always --reflink=never --sparse=always --sparse=auto",
    "--preserve=mode,links --no-preserve=links --preserve --no-preserve=all --preserve=all",
    "--always --verify",
    "--checksum --sparse=always",
    "-x --sparse never",
    "--reflink=auto --sparse=auto",
    "--reflink=never",
    "--engine auto --depth 8",
    "--engine sync --block-size 1000 --threads 3",
    "--engine uring --depth 2 --reflink=never",
    "--max-fds 64 --max-memory 1M",
    "--one-file-system",
    "--bwlimit 100M --bwlimit 200M/s --verify",
];

fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/f"), "contents").unwrap();
    fs::write(folder.join("a"), "a").unwrap();
    folder
}

fn words<'a>(text: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let options = text.split(' ').filter(|word| !word.is_empty());
    ["copy"].into_iter().chain(options).chain(more.iter().copied()).collect()
}

#[test]
fn contradictions_are_wrong_use_and_nothing_is_touched() {
    let folder = folder();
    for (options, word) in WRONG {
        let ran = folder.flatout(words(options, &["src", "new"])).run();
        ran.complains(2, &[word]);
        assert_eq!(ran.stdout, "", "{ran}");
    }
    // A pipe is one by whatever name.
    for options in [
        "--files-from /dev/stdin --exclude-from -",
        "--files-from - --exclude-from /proc/self/fd/0",
        "--files-from /dev/fd/0 --exclude-from /dev/stdin",
        "-i --exclude-from /dev/stdin",
    ] {
        let (list, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"f\n").unwrap();
        drop(writer);
        let ran = folder.flatout(words(options, &["src", "new"])).stdin(list).run();
        ran.complains(2, &["a pipe, is there once"]);
    }
    assert!(!folder.join("new").exists());
}

#[test]
fn options_are_taken_together_and_nothing_is_said() {
    let folder = folder();
    for options in RIGHT {
        let ran = folder.flatout(words(options, &["src", "new"])).leaves("new").run();
        assert_eq!((ran.exits(0).stdout.as_str(), ran.complaints().len()), ("", 0), "{ran}");
        assert_eq!(fs::read(folder.join("new/f")).unwrap(), b"contents", "{options}");
        fs::remove_dir_all(folder.join("new")).unwrap();
    }
}

#[test]
fn of_options_given_twice_the_last_one_counts() {
    let folder = folder();
    let kept = |options: &str| {
        let target = format!("new{}", options.len());
        let ran = folder.flatout(words(options, &["src/f", &target])).leaves(&target).run();
        ran.exits(0);
        let facts = fs::metadata(folder.join(&target)).unwrap();
        (facts.mode() & 0o777, facts.mtime() == 1)
    };
    let source = fs::File::options().write(true).open(folder.join("src/f")).unwrap();
    source.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
    source.set_modified(UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    drop(source);
    assert_eq!(kept("--no-preserve=timestamps"), (0o640, false));
    assert_eq!(kept("--no-preserve=timestamps --preserve=timestamps"), (0o640, true));
    assert_eq!(
        kept("--preserve=timestamps --no-preserve=timestamps --preserve=mode"),
        (0o640, false)
    );
    assert_eq!(kept("--preserve=mode --preserve=timestamps"), (0o640, true));
    let ran =
        folder.flatout(words("--format table --format json --log a --log log", &["src", "d"]));
    ran.leaves("d").leaves("log").run().exits(0).document();
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"a");
}

#[test]
fn the_figures_are_a_document_of_the_schema() {
    let folder = folder();
    let ran = folder.flatout(words("--format json", &["src", "new"])).leaves("new").run();
    let document = ran.exits(0).document();
    schema::assert_valid(&document);
    let result = ran.result();
    assert_eq!(result["id"], "copy/total");
    assert_eq!(result["status"], "ok");
    assert_eq!((&result["audit"]["files"], &result["audit"]["failed"]), (&1.into(), &0.into()));
    assert!(result["audit"]["elapsed_ns"].as_u64().unwrap() > 0);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_document_tells_of_what_was_not_copied() {
    let folder = folder();
    fs::create_dir(folder.join("d")).unwrap();
    let ran = folder.flatout(words("--format=json", &["gone", "a", "d"])).run();
    let document = ran.complains(1, &["cannot stat \"gone\": No such file"]).document();
    schema::assert_valid(&document);
    let result = ran.result();
    assert_eq!((&result["status"], &result["audit"]["failed"]), (&"degraded".into(), &1.into()));
    assert_warned(&result, "failed");
    assert_eq!(document["end"]["errors"][0], "cannot stat \"gone\": No such file or directory");
    assert_eq!(fs::read(folder.join("d/a")).unwrap(), b"a");
    let ran = folder.flatout(words("--format json", &["-T", "a"])).run();
    schema::assert_valid(&ran.complains(2, &["no target"]).document());
    let ran = folder.flatout(words("--format json --output no/such", &["a", "d"])).run();
    schema::assert_valid(&ran.complains(1, &["no/such"]).document());
}

#[test]
fn figures_go_where_they_are_wanted() {
    let folder = folder();
    let run = |options: &str| folder.flatout(words(options, &["src", "new"])).leaves("new");
    let ran = run("--format table").run();
    assert_eq!(ran.exits(0).field("files"), "1");
    let ran = run("--always --verbose").run();
    assert_eq!(ran.exits(0).stdout, "'src' -> 'new/src'\n'src/f' -> 'new/src/f'\n");
    assert!(ran.stderr.contains("1 file, "), "{ran}");
    let ran = run("--output figures").leaves("figures").run();
    assert_eq!((ran.exits(0).stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert!(fs::read_to_string(folder.join("figures")).unwrap().contains("files"));
    run("--always -o figures.json").leaves("figures.json").run().exits(0);
    let figures = fs::read_to_string(folder.join("figures.json")).unwrap();
    assert!(serde_json::from_str::<Value>(&figures).is_ok(), "{figures}");
    run("--format json").stdout(closed_pipe()).run().exits(0);
    for option in ["--output", "--log"] {
        let ran = folder.flatout(words("", &["a", "new", option, "a"])).run();
        ran.complains(1, &["results to \"a\":", "\"a\" is copied"]);
        let ran = folder.flatout(words("", &["a", "target", option, "target"])).run();
        ran.complains(1, &["results to \"target\":", "copies go to \"target\""]);
    }
    let same = folder.flatout(words("--log one --output one", &["a", "b"])).run();
    same.complains(1, &["same file"]);
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"a");
}

#[test]
fn an_engine_that_cannot_be_had_is_never_replaced_in_silence() {
    let tmpfs = needs!(Mounted::new(Kind::Tmpfs(16 << 20)));
    let folder = Folder::inside(&tmpfs.path());
    fs::write(folder.join("f"), random_bytes(100_000, 1)).unwrap();
    let ran = folder.flatout(words("--engine reflink", &["f", "new"])).run();
    ran.complains(1, &["cannot share the extents of", "f"]);
    let ran = folder.flatout(words("--engine uring", &["f", "new"])).leaves("new");
    let ran = ran.with(|command| _ = deny(command, &[(IO_URING_SETUP, EPERM)])).run();
    ran.exits(0).says(&["uring from ", "is not possible"]);
    assert_eq!(fs::read(folder.join("new")).unwrap(), random_bytes(100_000, 1));
    drop(folder);
    tmpfs.finish();
}

#[test]
fn a_log_has_a_line_for_each_thing_done_or_not() {
    let folder = folder();
    fs::create_dir(folder.join("d")).unwrap();
    let ran = folder.flatout(words("--log log", &["src", "gone", "d"])).leaves("log").run();
    ran.complains(1, &["gone"]);
    let text = fs::read_to_string(folder.join("log")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let with = |action: &str| lines.iter().filter(|line| line["action"] == action).count();
    assert_eq!((with("copied"), with("refused")), (1, 1), "{text}");
    let refused = lines.iter().find(|line| line["action"] == "refused").unwrap();
    assert_eq!(refused["path"], "gone");
    let copied = lines.iter().find(|line| line["action"] == "copied").unwrap();
    assert!(copied["path"].as_str().unwrap().starts_with("src"), "{copied}");
    for key in ["bytes", "method", "elapsed_ns"] {
        assert!(!copied[key].is_null(), "{copied}");
    }
    let ns = |line: &Value| line["elapsed_ns"].as_u64().unwrap();
    let directory = lines.iter().find(|line| line["action"] == "directory").unwrap();
    assert!(ns(directory) > ns(copied), "it has its attributes after what is in it: {text}");
}

#[test]
fn a_log_that_cannot_be_written_is_a_failure_after_the_copy() {
    let folder = folder();
    let ran = folder.flatout(words("--log /dev/full", &["src", "new"])).leaves("new").run();
    ran.complains(1, &["/dev/full", "No space left"]);
    assert_eq!(fs::read(folder.join("new/f")).unwrap(), b"contents");
    let figures = words("--format json --output /dev/full", &["src", "newer"]);
    let end = folder.flatout(figures).leaves("newer").run().exits(1).document()["end"].clone();
    assert_eq!((end["exit_code"].as_i64(), end["errors"].as_array().unwrap().len()), (Some(1), 1));
}

#[test]
fn somebody_who_looks_on_is_told_at_the_end() {
    needs!(needs_program("script"));
    let folder = folder();
    let command = format!("'{}' copy src new", crate::bin::executable().display());
    let words = ["-qec", command.as_str(), "/dev/null"].map(std::ffi::OsString::from).to_vec();
    let ran = folder.program("script".as_ref(), words).leaves("new").run();
    assert!(ran.exits(0).stdout.contains("flatout: 1 file, "), "{ran}");
}

#[test]
fn access_times_of_directories_are_kept_while_somebody_looks_on() {
    needs!(needs_program("script"));
    let folder = folder();
    // Whatever this machine says of access times: here each reading counts.
    let mounted = needs!(Mounted::new(Kind::Tmpfs(16 << 20)));
    needs!(mounted.remount("strictatime"));
    let source = mounted.path().join("tree");
    let old = UNIX_EPOCH + Duration::from_secs(1);
    let directories: Vec<_> = (0..600).map(|index| source.join(format!("d{index}"))).collect();
    for path in &directories {
        fs::create_dir_all(path.join("below")).unwrap();
    }
    let all = directories.iter().chain([&source]);
    for path in all.clone() {
        let times = fs::FileTimes::new().set_accessed(old).set_modified(old);
        fs::File::open(path).unwrap().set_times(times).unwrap();
    }
    let program = crate::bin::executable().display();
    let command = format!("'{program}' copy --threads 1 {} new", source.display());
    let words = ["-qec", command.as_str(), "/dev/null"].map(std::ffi::OsString::from).to_vec();
    folder.program("script".as_ref(), words).leaves("new").run().exits(0);
    let copies = all.map(|path| folder.join("new").join(path.strip_prefix(&source).unwrap()));
    // The copier looks at a directory before it reads it, as cp does.
    let changed = copies.filter(|copy| copy.metadata().unwrap().accessed().unwrap() != old);
    assert_eq!(changed.count(), 0);
    mounted.finish();
}

#[test]
fn an_interrupted_copy_says_how_to_go_on_and_goes_on() {
    let faults = Faults { delay: Duration::from_millis(100), ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let bytes = random_bytes(1 << 20, 5);
    for number in 0..4 {
        faulty.put(&format!("file{number}"), &bytes);
    }
    let folder = Folder::new();
    let source = format!("{}/.", faulty.path().display());
    let copy = |more: &str| folder.flatout(words(more, &[&source, "new"])).leaves("new");
    let mut running = copy("--format json --threads 1").start();
    running.wait_until("status", |_| faulty.read_bytes() > 0);
    running.interrupt();
    let ran = running.wait();
    ran.died_of(Signal::INT).says(&["interrupted", "same command again"]);
    let document = ran.document();
    schema::assert_valid(&document);
    assert_eq!(document["results"][0]["status"], "interrupted");
    faulty.change(|faults| faults.delay = Duration::ZERO);
    copy("").run().exits(0);
    for number in 0..4 {
        assert_eq!(fs::read(folder.join(&format!("new/file{number}"))).unwrap(), bytes);
    }
    assert_eq!(Folder::names_in(&folder.join("new")).len(), 4, "no litter");
    faulty.finish();
}
