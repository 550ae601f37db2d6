//! "This kernel or filesystem can't": another method takes over, and the record says so.
//!
//! Old and locked-down kernels are had by taking system calls away from the program.

use std::ffi::OsString;
use std::path::Path;

use flatout_sys::launcher::{
    CACHESTAT, CLOCK_NANOSLEEP, Denied, ENOSYS, EPERM, EVENTFD2, FSTATFS, GETRUSAGE,
    IO_URING_SETUP, IOCTL, PREADV2, Resource, STATFS, STATX, deny, limit,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::Value;

use crate::bin::{Folder, Ran, assert_warned, executable, warnings};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root, needs_storage, needs_uring};
use crate::fixture::{random_file, xor32_hex};
use crate::interruption::catches_interrupt;
use crate::skip::needs;

const LENGTH_BYTES: usize = (1 << 20) + 7;

/// Reads a known file with these calls denied; the bytes must be right in any case.
fn read_without(calls: &[Denied], options: &str) -> Value {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), LENGTH_BYTES, 1);
    let arguments = ["read", "data", "--format", "json"].into_iter().chain(options.split(' '));
    let ran = folder
        .flatout(arguments)
        .with(|command| {
            deny(command, calls);
        })
        .run();
    let result = ran.exits(0).result();
    assert_eq!(result["audit"]["bytes"], LENGTH_BYTES, "{ran}");
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "{ran}");
    result
}

#[test]
fn io_uring_where_it_is_denied_becomes_sync() {
    for errno in [EPERM, ENOSYS] {
        let result = read_without(&[(IO_URING_SETUP, errno)], "--engine uring");
        assert_warned(&result, "uring_refused");
        assert_eq!(result["parameters"]["engine"], "sync", "{result:#}");
        assert_eq!(result["parameters"]["depth"], 1, "one request at a time: {result:#}");
    }
}

#[test]
fn io_uring_where_it_works_is_used() {
    needs!(needs_uring());
    let result = read_without(&[], "--engine uring");
    assert_eq!(result["parameters"]["engine"], "uring", "{result:#}");
    assert!(!warnings(&result).contains(&"uring_refused"), "{result:#}");
}

#[test]
fn a_kernel_before_cachestat_reads_and_tells_residency() {
    read_without(&[(CACHESTAT, ENOSYS)], "--engine auto");
    read_without(&[(CACHESTAT, ENOSYS)], "--cold");
}

/// Its server has all reads come around the page cache, of which there is no shared mapping.
#[test]
fn a_cold_read_needs_no_shared_mapping() {
    let faults = Faults { is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    faulty.put("data", &[7; LENGTH_BYTES]);
    let data = faulty.path().join("data");
    let folder = Folder::new();
    let run = folder.flatout(["read", "--cold", "--format", "json", data.to_str().unwrap()]);
    let run = run.with(|command| {
        deny(command, &[(CACHESTAT, ENOSYS)]);
    });
    let result = run.run().exits(0).result();
    assert_eq!(result["audit"]["cached_before_bytes"], 0, "{result:#}");
    faulty.finish();
}

#[test]
fn direct_reads_begin_with_nothing_dirty_where_nobody_tells() {
    needs!(needs_program("strace"));
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    random_file(&folder.join("data"), LENGTH_BYTES, 1);
    let strace = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=fdatasync"];
    let run = folder.under(&strace, &["read", "data", "--caching", "direct"]).leaves("trace");
    let run = run.with(|command| {
        deny(command, &[(CACHESTAT, ENOSYS)]);
    });
    run.run().exits(0);
    let trace = std::fs::read_to_string(folder.join("trace")).unwrap();
    assert!(trace.contains("fdatasync("), "{trace}");
}

#[test]
fn a_kernel_before_preadv2_reads_through_the_cache() {
    let result = read_without(&[(PREADV2, ENOSYS)], "--engine sync --caching dontcache");
    assert_warned(&result, "dontcache_refused");
}

#[test]
fn a_runtime_that_denies_statx_is_no_obstacle() {
    for options in ["--engine auto", "--engine sync --caching direct", "--engine mmap"] {
        read_without(&[(STATX, EPERM)], options);
    }
}

/// As an old container's filter has it.
#[test]
fn a_kernel_that_tells_little_of_files_has_all_rows_of_the_disk() {
    let calls: [&[_]; 3] = [&[STATX], &[STATFS, FSTATFS], &[IOCTL]];
    for (calls, errno) in calls.into_iter().flat_map(|calls| [(calls, ENOSYS), (calls, EPERM)]) {
        let folder = Folder::new();
        let ran = folder
            .flatout("bench disk --quick --time 20ms --runs 1 --size 16M --format json".split(' '));
        let ran = ran.with(|command| {
            let denied: Vec<Denied> = calls.iter().map(|&call| (call, errno)).collect();
            deny(command, &denied);
        });
        let document = ran.run().exits(0).document();
        let results = document["results"].as_array().unwrap();
        for id in ["disk/random-read", "disk/create"] {
            let has_figure = |row: &Value| row["id"] == id && row["median"].is_f64();
            assert!(results.iter().any(has_figure), "{id}: {document:#}");
        }
        let storage = &document["start"]["environment"]["storage"][0];
        assert!(storage["layers"].as_array().is_some_and(|all| !all.is_empty()), "{storage:#}");
    }
}

#[test]
fn a_filter_on_sleeping_ends_no_run() {
    let folder = Folder::new();
    let ran = folder.flatout("bench network --quick --runs 1 --format json".split(' '));
    let ran = ran.with(|command| _ = deny(command, &[(CLOCK_NANOSLEEP, EPERM)])).run();
    let document = ran.exits(0).document();
    let results = document["results"].as_array().unwrap();
    let copied = results.iter().find(|row| row["id"] == "network/loopback-memcpy");
    assert!(copied.is_some_and(|row| row["median"].is_f64()), "{document:#}");
}

#[test]
fn where_eventfd_is_refused_runs_can_be_interrupted() {
    for errno in [EPERM, ENOSYS] {
        read_without(&[(EVENTFD2, errno)], "--engine auto");
        let folder = Folder::new();
        let path = folder.join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let run = folder.flatout(["read", "fifo", "--format", "json"]);
        let mut running = run.with(|command| _ = deny(command, &[(EVENTFD2, errno)])).start();
        running.wait_until("status", catches_interrupt);
        let writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        running.interrupt();
        running.wait().died_of(Signal::INT);
        drop(writer);
    }
}

#[test]
fn where_getrusage_is_refused_our_own_time_is_not_that_of_others() {
    for errno in [EPERM, ENOSYS] {
        let folder = Folder::new();
        let run = folder.flatout("bench syscall --quick --runs 1 --format json".split(' '));
        let ran = run.with(|command| _ = deny(command, &[(GETRUSAGE, errno)])).run();
        let document = ran.exits(0).document();
        let results = document["results"].as_array().unwrap();
        let faults = results.iter().find(|row| row["id"] == "syscall/minor-fault").unwrap();
        assert!(faults["median"].is_f64(), "{faults:#}");
        // Trials of 30 ms have ticks of our own, whoever else had the CPUs.
        let own_cpus = |row: &Value| row["audit"]["use_of_cpus"]["own_cpus"].as_f64();
        assert!(results.iter().filter_map(own_cpus).any(|cpus| cpus > 0.0), "{document:#}");
    }
}

#[test]
fn everything_new_denied_at_once_still_reads() {
    let calls = [(IO_URING_SETUP, ENOSYS), (CACHESTAT, ENOSYS), (PREADV2, ENOSYS), (STATX, ENOSYS)];
    for options in ["--engine auto --caching auto", "--threads 3 --split interleaved"] {
        read_without(&calls, options);
    }
}

fn read_direct_in(place: &Path, engine: &str) -> Value {
    let folder = Folder::inside(place);
    let bytes = random_file(&folder.join("data"), LENGTH_BYTES, 2);
    let arguments = "read data --caching direct --format json --engine";
    let ran = folder.flatout(arguments.split(' ').chain([engine])).run();
    let result = ran.exits(0).result();
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "{ran}");
    result
}

#[test]
fn direct_reads_where_they_are_refused_become_buffered() {
    let mounted = needs!(Mounted::new(Kind::Ramfs));
    for engine in ["sync", "uring"] {
        assert_warned(&read_direct_in(&mounted.path(), engine), "direct_refused");
    }
    mounted.finish();
}

#[test]
fn direct_reads_that_memory_serves_are_not_called_direct() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(16 << 20)));
    for engine in ["sync", "uring"] {
        let result = read_direct_in(&mounted.path(), engine);
        // Since Linux 6.6 tmpfs accepts O_DIRECT and goes through the page cache all the same.
        let codes = warnings(&result);
        let is_said = codes.iter().any(|code| ["direct_refused", "direct_cached"].contains(code));
        assert!(is_said, "{result:#}");
    }
    mounted.finish();
}

#[test]
fn direct_reads_on_storage_are_direct() {
    for kind in [Kind::Ext4, Kind::Xfs] {
        let mounted = needs!(Mounted::new(kind));
        for engine in ["sync", "uring"] {
            let result = read_direct_in(&mounted.path(), engine);
            assert_eq!(result["parameters"]["caching"], "direct", "{kind:?} {result:#}");
            assert!(!warnings(&result).contains(&"direct_refused"), "{kind:?} {result:#}");
        }
        mounted.finish();
    }
}

/// Runs this command with a limit that ulimit sets.
fn limited(folder: &Folder, limit: &str, command: &str) -> Ran {
    let script = format!("ulimit {limit} && exec \"$0\" {command}");
    let words = ["-c".into(), script.into(), executable().into()].to_vec();
    folder.program("bash".as_ref(), words).run()
}

/// With so few addresses one byte can be read. What the program itself needs differs from build to build.
fn least_addresses_kib(folder: &Folder) -> u32 {
    random_file(&folder.join("tiny"), 1, 4);
    let starts = |kib: &u32| {
        let ran = limited(folder, &format!("-v {kib}"), "read tiny --engine sync --threads 1");
        ran.code == Some(0)
    };
    (0..100).map(|step| 8 * 1024 + step * 4096).find(starts).unwrap()
}

#[test]
fn where_addresses_are_short_the_cause_is_named_and_nothing_is_aborted() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 20_000_000, 3);
    std::fs::create_dir(folder.join("new")).unwrap();
    let least_kib = least_addresses_kib(&folder);
    let mapped = [0, 2, 4, 8].map(|mib| format!("-v {}", least_kib + mib * 1024));
    let written = [6_000, 20_000, 26_000].map(|kib| format!("-d {kib}"));
    let works = ["sum data", "read data", "copy -j32 data new", "bench disk", "bench syscall"];
    for limit in mapped.into_iter().chain(written) {
        for work in works {
            let options = if work.starts_with("bench") { " --quick --max-time 1s" } else { "" };
            let ran = limited(&folder, &limit, &format!("{work}{options}"));
            let said = &ran.stderr;
            assert!(matches!(ran.code, Some(0 | 1)), "{work}, {limit}: {:?}, {said}", ran.code);
            assert!(!said.contains("(os error"), "{said}");
        }
    }
}

#[test]
fn addresses_that_do_not_hold_a_mapping_mean_sync() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 20_000_000, 3);
    let least_kib = least_addresses_kib(&folder);
    let mut engines = Vec::new();
    // Two threads and their buffers need some 6 to 8 MiB more than one that reads a byte.
    for step in 3..=14 {
        let limit = format!("-v {}", least_kib + step * 4096);
        let result = limited(&folder, &limit, "read data --format json").exits(0).result();
        assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes), "{limit}");
        let engine = result["parameters"]["engine"].as_str().unwrap().to_owned();
        // Whichever way was taken first: somebody may have emptied the page cache.
        let is_refused = |code: &&str| ["mmap_refused", "uring_refused"].contains(code);
        let is_said = warnings(&result).iter().any(is_refused);
        assert_eq!(engine == "sync", is_said, "{result:#}");
        engines.push(engine);
    }
    assert!(engines.contains(&"sync".to_owned()), "{engines:?}");
}

#[test]
fn too_few_descriptors_for_all_threads_are_named() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 20_000_000, 3);
    let run = folder.flatout(["read", "data", "--threads", "16"]);
    let ran = run.with(|command| _ = limit(command, Resource::Descriptors, 12)).run();
    ran.complains(1, &["Too many open files (ulimit -n: 12)"]);
}

#[test]
fn without_a_second_thread_the_one_that_is_there_reads() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    folder.admit_all();
    let bytes = random_file(&folder.join("data"), 20_000_000, 3);
    let nobody = |command: &str| {
        // The limit comes after the change of user: it is that of whoever is limited.
        let script = format!("ulimit -u 1 && exec ./program {command}");
        let words = ["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script];
        let words = words.map(OsString::from).to_vec();
        folder.program("setpriv".as_ref(), words).run()
    };
    let expected = folder.flatout(["sum", "--digest", "sha256", "data"]).run();
    for options in ["", "-j 1", "-j 8", "-r"] {
        let ran = nobody(&format!("sum {options} --digest sha256 data"));
        assert_eq!(ran.exits(0).stdout, expected.stdout, "{options}");
    }
    let result = nobody("read data --format json").exits(0).result();
    assert_eq!(result["audit"]["digest_xor32"], xor32_hex(&bytes));
    assert_eq!(result["parameters"]["threads"], 1, "{result:#}");
    nobody("read data --threads 2").complains(1, &["cannot start thread 1 of 2"]);
}
