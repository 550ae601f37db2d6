//! Wrong and odd command lines, as a stranger types them: one line that says what is wrong and what
//! may have been meant, the help that has the right use, and exit code 2.

use std::fs;
use std::process::Command;

use crate::bin::{Flatout, Folder, input};
use crate::fixture::random_file;
use crate::skip::skip;

/// A command line, and what is said of it.
const WRONG: &[(&str, &[&str])] = &[
    ("benhc", &["did you mean 'flatout bench'?", "(see flatout --help)"]),
    ("disk", &["did you mean 'flatout bench disk'?"]),
    (
        "nothing",
        &["there are bench, read, write, copy, cp, sum, versus, compare, tune, report, serve"],
    ),
    ("transfr a b", &["there is no command 'transfr'; there are bench"]),
    ("bench dsk", &["did you mean 'disk'?", "(see flatout bench --help)"]),
    ("bench disk cahce", &["did you mean 'cache'?", "(see flatout bench disk --help)"]),
    ("bench /data", &["a place is for disk and copy: flatout bench disk /data"]),
    ("bench help", &["did you mean 'flatout help bench'?"]),
    ("bench all", &["without one all are measured", "'flatout bench'"]),
    ("sum --sha256 data", &["did you mean '--digest sha256'?"]),
    ("bench disk a b", &["one place is measured at a time", "'b'"]),
    ("bench cpu --rw randread", &["--rw is for disk: flatout bench disk --rw"]),
    ("bench cpu memory --rw randread", &["(see flatout bench cpu memory --help)"]),
    ("bench --block-size 4K", &["--block-size is for disk, syscall, network"]),
    ("bench syscall disk -b 1K,4K", &["--block-size takes one value"]),
    ("bench disk --patern read", &["did you mean '--rw'?", "(see flatout bench disk --help)"]),
    ("bench disk --rw rand", &["did you mean 'randrw'?", "backward-read"]),
    ("bench disk --rw read -b 2G", &["--block-size <SIZE", "from 1 byte to 1 GiB"]),
    ("bench disk --rw read --iodepth 0", &["'0' for '--iodepth", "from 1 to"]),
    ("bench disk --rw read -t 5x", &["--time", "ms, s, m (minutes)"]),
    ("bench disk --rw read -t 0", &["--time", "longer than 0"]),
    ("bench disk --rw read --direct --caching buffered", &["--direct", "--caching"]),
    ("bench cpu -j many", &["'many'", "--threads", "it is no whole number"]),
    ("bench cpu -n 0", &["--runs", "it must be from 1 to 10000"]),
    ("bench network -P 0", &["'0' for '--streams", "from 1 to 64"]),
    // Options of several areas, each with bounds of its own.
    ("bench network --rate 0.5", &["--rate 0.5", "1 or more"]),
    ("bench network --rate 2T", &["'2T' for '--rate", "from 0.1 to 1000000000000"]),
    ("bench disk --rw randread --rate 2G", &["--rate 2147483648", "at most 1000000000"]),
    ("bench syscall -b 17M", &["--block-size 17 MiB", "at most 16 MiB"]),
    ("bench network -p 99", &["--connect"]),
    ("bench network -c host:99999", &["--connect", "\"99999\" is no port: 1 to 65535"]),
    ("bench ram", &["did you mean 'memory'?"]),
    ("fio", &["did you mean 'flatout bench disk'?"]),
    ("bench network -R --direction up", &["--reverse", "--direction"]),
    ("bench memory --size 10", &["--size 10 bytes", "2 KiB"]),
    ("bench --quik", &["did you mean '--quick'?"]),
    ("bench --format jason", &["did you mean 'json'?", "openmetrics"]),
    ("bench --color sometimes", &["auto, always, never"]),
    ("read", &["<FILE>", "(see flatout read --help)"]),
    ("read data -b 0", &["'0'", "--block-size", "from 1 byte to 1 GiB"]),
    ("read data -t 1 --min-time 1", &["--time", "--min-time"]),
    ("write -", &["standard output", "./-"]),
    ("write new --size 10M -b 3M", &["--size 10 MiB", "no whole number of blocks of 3 MiB"]),
    ("read data --size 4097 -b 4K", &["blocks of 4 KiB (--block-size): 1 byte too many"]),
    ("read data --size 4K --block-count 1", &["--size", "--block-count"]),
    ("copy", &["<SOURCE>", "(see flatout copy --help)"]),
    ("copy data", &["no target after \"data\""]),
    ("copy --out x data y", &["did you mean '--output'?"]),
    ("sum --quiet data", &["--quiet", "--check"]),
    ("sum --recursiv data", &["did you mean '--recursive'?"]),
    ("versus rsync-b", &["did you mean 'rsync-"]),
    ("versus --list nobody", &["\"nobody\" is no rival"]),
    ("versus --keep --list", &["--keep", "--list"]),
    ("compare data", &["two FILEs are needed, OLD and NEW"]),
    ("compare - -", &["standard input is read once"]),
    ("compare data data -o x.csv", &["no comparison is shown as csv", ".json, .html and .md"]),
    ("copy data x -o y.html", &["figures are a table", "--format"]),
    ("copy data x --itemize --manifest -", &["--itemize", "--manifest -"]),
    ("copy data x --format table --log -", &["--format and --log - would both be on standard"]),
    ("report data --format pdf", &["table, json, csv, markdown, html"]),
    ("serve -p 99999", &["--port", "65535"]),
    ("serve --bind 127.0.0.1:0 -p 99", &["--bind 127.0.0.1:0", "--port 99"]),
    ("completions tcsh", &["bash, zsh, fish]"]),
    ("man bench dik", &["did you mean 'disk'?"]),
    ("help bench disk more", &["there is no area 'more'", "(see flatout --help)"]),
    ("--versio", &["did you mean '--version'?"]),
];

#[test]
fn a_wrong_command_line_is_told_in_one_line_what_was_meant() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    for (line, words) in WRONG {
        let ran = folder.flatout(line.split(' ')).run();
        ran.complains(2, words);
        assert_eq!(ran.stdout, "", "{ran}");
        assert!(!ran.stderr.contains("transfer"), "hidden commands are not named: {ran}");
    }
}

#[test]
fn older_names_of_options_still_work() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    for line in [
        "read data --duration 10ms --depth 4 --engine uring",
        "read data --trials 2",
        "read data -n 2 -b 4K -j 1 -t 10ms -q --color never -o -",
        "read data --bs 4K --direct=0",
        "help bench disk",
    ] {
        folder.flatout(line.split(' ')).run().exits(0);
    }
    // Refused for what they ask for, not for their names.
    for (line, word) in [
        ("bench disk nowhere --pattern random-read --runtime 1s --rounds 1 --bytes 1M", "nowhere"),
        ("bench disk nowhere --rw mixed --mix 50 --depth 1", "nowhere"),
        ("bench network --duration 1us", "--time"),
        ("tune nowhere --rounds 1", "nowhere"),
    ] {
        let ran = folder.flatout(line.split(' ')).run();
        assert!(ran.stderr.contains(word) && !ran.stderr.contains("unexpected"), "{ran}");
    }
}

/// Command lines and their exit codes, by kind of event (docs/commands.md).
const EXITS: &[(&str, &[&str], i32)] = &[
    (
        "something is not there",
        &[
            "read gone",
            "write gone/new",
            "sum gone",
            "sum --check gone",
            "copy gone new",
            "cp gone new",
            "report gone",
            "tune gone",
            "bench disk gone",
            "bench copy gone",
            "bench cache --directory gone",
            "bench syscall --directory gone",
            "bench cpu --history gone",
            "versus dd --directory gone",
            "serve --token-file gone",
            "bench network --connect 127.0.0.1:1",
        ],
        1,
    ),
    (
        "there is no room",
        &[
            "bench disk --max-write 1",
            "bench cache --max-write 1",
            "bench copy --max-write 1",
            "tune --max-write 1",
            "versus dd --max-write 1",
            "write new -b 1G --block-count 1024 -j 1024 --engine uring --iodepth 1024",
        ],
        1,
    ),
    (
        "not one figure in the time",
        &[
            "bench syscall --max-time 1ms",
            "bench network --max-time 1ms",
            "bench copy --max-time 1ms",
            "tune --max-time 1ms",
            "versus dd --max-time 1ms",
        ],
        1,
    ),
    ("some of it in the time", &["read data --time 1ms"], 0),
    (
        "results that cannot be written",
        &["read data -o /dev/full", "sum data -o /dev/full", "report record -o /dev/full"],
        1,
    ),
    (
        "no sense, whatever the machine is like",
        &["read data -b 0", "bench cpu -n 0", "versus nobody", "report", "copy data", "tune -b 1"],
        2,
    ),
    (
        "whose code is an answer",
        &["compare gone gone", "compare --trend gone", "compare record record -o /dev/full"],
        2,
    ),
    ("as cp has it", &["cp data", "cp --nonsense data new"], 1),
];

#[test]
fn each_kind_of_event_has_one_exit_code() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    let record = "read data --format json --output record".split(' ');
    folder.flatout(record).leaves("record").run().exits(0);
    for (event, lines, code) in EXITS {
        for line in *lines {
            let ran = folder.flatout(line.split(' ')).run();
            assert_eq!(ran.code, Some(*code), "{event}: {line}: {ran}");
        }
    }
}

#[test]
fn a_dash_is_standard_output_or_input() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    let flatout = |line: &str| -> Flatout<'_> { folder.flatout(line.split(' ')) };
    let json = flatout("read data --format json --output -").run().exits(0).stdout.clone();
    fs::write(folder.join("record"), &json).unwrap();
    let shown = flatout("report - -o -").stdin(input(&folder.join("record"))).run();
    assert!(shown.exits(0).stdout.contains("data"), "{shown}");
    let sum = flatout("sum data -o -").run();
    assert!(sum.exits(0).stdout.ends_with("  data\n"), "{sum}");
    let copied = flatout("copy --log - data new").leaves("new").run();
    assert!(copied.exits(0).stdout.contains("\"action\""), "{copied}");
    let figures = flatout("copy --output - data newer").leaves("newer").run();
    assert!(figures.exits(0).stdout.contains("files"), "{figures}");
    assert!(!folder.names().contains("-"), "{:?}", folder.names());
}

#[test]
fn quiet_says_nothing_but_what_went_wrong() {
    let folder = Folder::new();
    let noisy = folder.flatout(["bench", "network", "-c", "127.0.0.1:1", "--quick"]).run();
    assert_eq!(noisy.exits(1).stderr.lines().count(), 2, "{noisy}");
    let quiet = folder.flatout(["bench", "network", "-c", "127.0.0.1:1", "--quick", "-q"]).run();
    quiet.complains(1, &["cannot connect"]);
    assert_eq!((&*noisy.stdout, &*quiet.stdout), ("", ""), "standard error said it all");
}

#[test]
fn colours_are_as_asked_for() {
    let folder = Folder::new();
    let shown = |color: &str| {
        let words = ["bench", "network", "-c", "127.0.0.1:1", "--verbose", "--color", color];
        folder.flatout(words).run().exits(1).stdout.contains('\u{1b}')
    };
    assert_eq!(["auto", "never", "always"].map(shown), [false, false, true]);
}

/// Whoever starts and ends within a millisecond would wait for the others: docs/decisions.md, "Building".
#[test]
fn the_program_loads_no_library_but_that_of_c() {
    let folder = Folder::new();
    let listed = |command: &mut Command| {
        command.env("LD_TRACE_LOADED_OBJECTS", "1");
    };
    let loaded = folder.flatout(["--version"]).with(listed).run().stdout;
    if !loaded.contains("libc.so") || loaded.contains("libmpi") {
        skip!("another loader, or another program: {loaded}");
    }
    assert!(!loaded.contains("libm.so") && !loaded.contains("libgcc_s.so"), "{loaded}");
}
