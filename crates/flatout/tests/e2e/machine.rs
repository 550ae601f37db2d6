//! `flatout bench cpu` and `flatout bench memory`: documents that hold, figures that can be, and bad
//! input.

use flatout_sys::affinity;
use flatout_sys::launcher::{
    ENOSYS, EPERM, GETRLIMIT, NO_THREADS, PRLIMIT64, SCHED_GETAFFINITY, SCHED_SETAFFINITY, deny,
    without_huge_pages,
};
use serde_json::Value;

use crate::bin::{Flatout, Folder, Ran, in_enough_time};
use crate::schema::assert_valid;
use crate::skip::{needs, skip};
use crate::throttle::Throttle;

/// Where sizes are not what is tested: arrays and matrices that are made in an instant.
const SMALL_ARRAYS: [&str; 2] = ["--bytes", "8M"];
const SMALL_MATRICES: [&str; 2] = ["--order", "300"];

/// With more addresses arrays and working sets are several times the last level of the caches, which may
/// be 300 MiB: making them takes most of the time.
const FEW_ADDRESSES: [&str; 4] = ["sh", "-c", "ulimit -v 1000000 && exec \"$@\"", "sh"];

/// What a derived ceiling may be exceeded by: clocks are no better.
const TOLERANCE: f64 = 1.02;

fn bench(arguments: &[&str]) -> Ran {
    begun(&Folder::new(), arguments).run()
}

/// A run that has not begun; of memory within few addresses.
fn begun<'f>(folder: &'f Folder, arguments: &[&str]) -> Flatout<'f> {
    let words = [&["bench"], arguments].concat();
    match arguments[0] {
        "memory" => folder.under(&FEW_ADDRESSES, &words),
        _ => folder.flatout(words),
    }
}

fn rows<'a>(document: &'a Value, id: &str) -> Vec<&'a Value> {
    let all = document["results"].as_array().unwrap();
    all.iter().filter(|row| row["id"] == id).collect()
}

fn codes(row: &Value) -> Vec<&str> {
    let warnings = row["warnings"].as_array().unwrap();
    warnings.iter().filter_map(|warning| warning["code"].as_str()).collect()
}

/// What holds for each row of these areas, whatever the machine is.
fn assert_possible(document: &Value) {
    assert_valid(document);
    for row in document["results"].as_array().unwrap() {
        let status = row["status"].as_str().unwrap();
        assert_ne!(status, "failed", "{row:#}");
        if let Some(median) = row["median"].as_f64() {
            assert!(median > 0.0 && median.is_finite(), "{row:#}");
        } else {
            assert!(!codes(row).is_empty(), "a row without a figure says why: {row:#}");
        }
        let ceiling = &row["ceiling"];
        let is_derived = ceiling["provenance"] == "inferred";
        if let Some(ratio) = ceiling["ratio"].as_f64()
            && is_derived
        {
            assert!(ratio <= TOLERANCE || status == "invalid", "{row:#}");
        }
    }
}

#[test]
fn the_units_of_the_cpu_are_held_against_their_peak() {
    let document = bench(&short("cpu", "3")).exits(0).document();
    assert_possible(&document);
    let throughput = rows(&document, "cpu/throughput");
    for number in ["f32", "f64", "i32", "i64"] {
        let of = |row: &&&Value| row["parameters"]["type"] == number;
        assert!(throughput.iter().any(|row| of(&row)), "no row of {number}");
    }
    for id in ["cpu/dgemm", "cpu/linpack"] {
        let row = rows(&document, id)[0];
        let trials = row["audit"]["trials"].as_array().unwrap();
        assert!(!trials.is_empty(), "{row:#}");
        for trial in trials {
            let normalised = trial["normalised_residual"].as_f64().unwrap();
            assert!(trial["passed"] == true && normalised < 16.0, "{trial}");
        }
    }
}

#[test]
fn memory_has_latencies_levels_and_rates() {
    let words = ["memory", "--bytes", "64M", "--quick", "--rounds", "2", "--format", "json"];
    let document = bench(&words).exits(0).document();
    assert_possible(&document);
    let latency = rows(&document, "memory/latency");
    assert!(latency.len() >= 4, "{}", latency.len());
    let of = |bytes: &dyn Fn(u64, u64) -> u64| {
        let sizes = latency.iter().filter(|row| row["median"].is_number());
        sizes
            .filter_map(|row| row["parameters"]["working_set_bytes"].as_u64())
            .reduce(bytes)
            .unwrap()
    };
    let (least, most) = (of(&u64::min), of(&u64::max));
    let median = |bytes: u64| {
        let row = latency.iter().find(|row| {
            row["parameters"]["working_set_bytes"] == bytes && row["median"].is_number()
        });
        row.unwrap()["median"].as_f64().unwrap()
    };
    assert!(median(most) > median(least), "memory is farther away than the first cache");
    assert!(!rows(&document, "memory/working-set").is_empty());
}

#[test]
fn levels_are_found_on_base_pages_where_there_are_no_others() {
    let folder = Folder::new();
    let document = in_enough_time(4, |time| {
        let ran = folder.flatout(["bench"].iter().chain(&hasty("memory", time)));
        let ran = ran.with(without_huge_pages).run().if_measured()?;
        let document = ran.exits(0).document();
        (rows(&document, "memory/level").len() > 1).then_some(document)
    });
    assert_possible(&document);
    for row in rows(&document, "memory/level") {
        assert!(codes(row).contains(&"no_huge_pages"), "{row:#}");
    }
    let base = &document["start"]["environment"]["page_bytes"];
    let on_others = |row: &&Value| row["parameters"]["page_bytes"] != *base;
    assert!(!rows(&document, "memory/latency").iter().any(on_others), "{document:#}");
}

#[test]
fn more_threads_than_cpus_are_called_so() {
    let many = affinity::allowed_cpu_count() * 2;
    let threads = many.to_string();
    let words = [&short("cpu", "1")[..], &["--threads", &threads]].concat();
    let document = bench(&words).exits(0).document();
    assert_possible(&document);
    let named = |row: &&Value| row["parameters"]["threads"] == many;
    let crowded: Vec<_> = rows(&document, "cpu/throughput").into_iter().filter(named).collect();
    assert!(!crowded.is_empty());
    for row in crowded.iter().filter(|row| row["median"].is_number()) {
        assert!(codes(row).contains(&"oversubscribed"), "{row:#}");
    }
}

/// The short set of an area, each row so often.
fn short<'a>(area: &'a str, rounds: &'a str) -> Vec<&'a str> {
    let small = if area == "memory" { SMALL_ARRAYS } else { SMALL_MATRICES };
    [&[area], &small[..], &["--quick", "--rounds", rounds, "--format", "json"]].concat()
}

/// The short set of an area, as much of it as that time allows.
fn hasty<'a>(area: &'a str, time: &'a str) -> Vec<&'a str> {
    let small = match area {
        "memory" => &SMALL_ARRAYS[..],
        "cpu" => &SMALL_MATRICES,
        _ => &[],
    };
    [&[area], small, &["--quick", "--max-time", time, "--format", "json"]].concat()
}

#[test]
fn where_no_thread_can_be_started_rows_say_so() {
    let folder = Folder::new();
    let ran = folder.flatout(["bench"].iter().chain(&short("cpu", "1")));
    let ran = ran.with(|command| {
        deny(command, &NO_THREADS);
    });
    let document = ran.run().document();
    for row in rows(&document, "cpu/throughput") {
        let is_told = row["warnings"][0]["text"].as_str().unwrap().contains("cannot start thread");
        assert!(is_told || row["status"] == "unsupported", "{row:#}");
    }
}

#[test]
fn limits_that_a_sandbox_does_not_tell_are_not_taken_for_nothing_left() {
    let words = ["syscall", "--quick", "--rounds", "1", "--format", "json"];
    for denied in [&[(PRLIMIT64, EPERM)][..], &[(PRLIMIT64, EPERM), (GETRLIMIT, EPERM)]] {
        let folder = Folder::new();
        let ran = begun(&folder, &words).with(|command| {
            deny(command, denied);
        });
        ran.run().exits(0);
    }
}

#[test]
fn where_a_filter_hides_the_allowed_cpus_all_of_them_are_measured() {
    let cpus = affinity::allowed_cpu_count();
    for area in ["cpu", "memory"] {
        let folder = Folder::new();
        let ran = begun(&folder, &short(area, "1"));
        let ran = ran.with(|command| _ = deny(command, &[(SCHED_GETAFFINITY, EPERM)])).run();
        let document = ran.exits(0).document();
        assert_possible(&document);
        let all = document["results"].as_array().unwrap();
        assert!(all.iter().any(|row| row["parameters"]["threads"] == cpus), "{document:#}");
    }
}

#[test]
fn where_no_thread_can_be_tied_rows_say_so_and_those_that_need_it_have_no_figure() {
    if affinity::allowed_cpu_count() < 2 {
        skip!("two CPUs are needed, one is allowed");
    }
    let without = |words: &[&str], errno| {
        let folder = Folder::new();
        let ran = begun(&folder, words).with(|command| {
            deny(command, &[(SCHED_SETAFFINITY, errno)]);
        });
        ran.run().exits(0).document()
    };
    let needing = |document: &Value, id: &str| {
        let rows = rows(document, id);
        assert!(!rows.is_empty(), "{id}");
        for row in rows {
            assert_eq!(row["status"], "unsupported", "{row:#}");
            assert!(row["warnings"].to_string().contains("cannot be tied"), "{row:#}");
        }
    };
    let telling = |document: &Value, id: &str| {
        let measured = rows(document, id).into_iter().filter(|row| row["median"].is_number());
        let measured: Vec<_> = measured.collect();
        assert!(!measured.is_empty(), "{id}: {document:#}");
        assert!(measured.iter().all(|row| codes(row).contains(&"cpus_changed")), "{measured:#?}");
    };
    let document = without(&short("cpu", "1"), EPERM);
    telling(&document, "cpu/throughput");
    needing(&document, "cpu/core-sharing");
    let document = without(&short("memory", "1"), ENOSYS);
    telling(&document, "memory/latency");
    needing(&document, "memory/hand-over");
    let words = ["network", "--quick", "--rounds", "1", "--duration", "20ms", "--format", "json"];
    let document = without(&words, EPERM);
    telling(&document, "network/tcp-latency");
    needing(&document, "network/loopback-memcpy");
    let words = ["syscall", "--quick", "--rounds", "1", "--format", "json"];
    needing(&without(&words, EPERM), "syscall/pipe-ping-pong");
}

#[test]
fn a_quota_lowers_the_peak_and_is_named() {
    let half = needs!(Throttle::half_a_cpu());
    let wrapper = half.wrapper();
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).chain(FEW_ADDRESSES).collect();
    let folder = Folder::new();
    let measured = |document: &'_ Value, id: &str| -> Vec<Value> {
        let all = rows(document, id).into_iter();
        all.filter(|row| row["median"].is_number()).cloned().collect()
    };
    // With a figure of `id` at least.
    let document_of = |area: &str, id: &str, options: &[&str]| {
        in_enough_time(4, |time| {
            let words = [&["bench"], &hasty(area, time)[..], options].concat();
            let ran = folder.under(&wrapper, &words).run().if_measured()?;
            let document = ran.exits(0).document();
            (!measured(&document, id).is_empty()).then_some(document)
        })
    };
    let document = document_of("cpu", "cpu/throughput", &["--threads", "1"]);
    assert_possible(&document);
    for row in &measured(&document, "cpu/throughput") {
        assert!(codes(row).contains(&"cpu_quota"), "{row:#}");
        let name = row["ceiling"]["name"].as_str().unwrap();
        assert!(!name.contains("peak of 1 core"), "the peak of a whole core: {row:#}");
    }
    let all = document["results"].as_array().unwrap();
    assert!(all.iter().all(|row| row["status"] != "invalid"), "bursts are possible");
    let document = document_of("memory", "memory/sequential-copy", &["--threads", "1"]);
    assert_possible(&document);
    let copies = measured(&document, "memory/sequential-copy");
    assert!(copies.iter().all(|row| codes(row).contains(&"cpu_quota")), "{copies:#?}");
    let document = document_of("network", "network/tcp-throughput", &[]);
    for id in ["network/tcp-throughput", "network/udp-throughput"] {
        let streams = measured(&document, id);
        assert!(streams.iter().all(|row| codes(row).contains(&"cpu_quota")), "{streams:#?}");
    }
    let document = document_of("syscall", "syscall/read", &[]);
    let all = document["results"].as_array().unwrap();
    let several = all.iter().filter(|row| row["parameters"]["threads"].as_u64() > Some(1));
    for row in several.filter(|row| row["median"].is_number()) {
        assert!(codes(row).contains(&"cpu_quota"), "{row:#}");
    }
}

#[test]
fn cpus_that_are_taken_away_meanwhile_are_noticed() {
    let cpus = affinity::allowed_cpus().unwrap();
    let [kept, _, ..] = cpus[..] else {
        skip!("two CPUs are needed, one is allowed");
    };
    for area in ["cpu", "memory"] {
        let folder = Folder::new();
        in_enough_time(5, |time| {
            let mut running = begun(&folder, &hasty(area, time)).start();
            // Threads of trials come and go: the first of them, beside the main thread and the
            // watchdog, is a sign that measuring has begun.
            running.wait_until("status", |status| {
                let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
                threads.is_some_and(|count| count.trim().parse().is_ok_and(|count: u32| count > 2))
            });
            running.confine(kept);
            let document = running.wait().if_measured()?.exits(0).document();
            assert_possible(&document);
            let all = document["results"].as_array().unwrap();
            // Beside others there may be no trial after that.
            all.iter().any(|row| codes(row).contains(&"cpus_changed")).then_some(())
        });
    }
}

#[test]
fn one_cpu_is_enough_and_a_program_on_it_makes_no_figure_impossible() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let cpu = affinity::allowed_cpus().unwrap()[0];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            affinity::pin_to(cpu).unwrap();
            while !done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let run = |area: &'static str| {
            // Programs inherit the CPUs of the thread that starts them.
            let confined = scope.spawn(move || {
                affinity::pin_to(cpu).unwrap();
                in_enough_time(5, |time| bench(&hasty(area, time)).if_measured())
            });
            confined.join()
        };
        let ran = ["cpu", "memory"].map(run);
        // Before anything can fail, or that program would never end.
        done.store(true, Ordering::Relaxed);
        for ran in ran {
            assert_possible(&ran.unwrap().exits(0).document());
        }
    });
}

#[test]
fn a_limit_on_addresses_leaves_less_to_measure() {
    let folder = Folder::new();
    let wrapper = ["sh", "-c", "ulimit -v 400000 && exec \"$@\"", "sh"];
    let arguments = ["bench", "memory", "--quick", "--rounds", "2", "--format", "json"];
    let document = folder.under(&wrapper, &arguments).run().exits(0).document();
    assert_possible(&document);
    let all = document["results"].as_array().unwrap();
    assert!(all.iter().any(|row| codes(row).contains(&"size_reduced")));
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_line() {
    for (arguments, said) in [
        (&["cpu", "--threads", "1,0"][..], "'0' for '--threads <N,…>': it must be from 1 to 1024"),
        (&["memory", "--threads", "0"], "'0' for '--threads <N,…>': it must be from 1 to 1024"),
        (&["cpu", "--threads", "1025"], "'1025' for '--threads <N,…>': it must be from 1 to 1024"),
        (&["cpu", "--order", "0"], "'0' for '--order <N>': it must be from 1 to"),
        (&["cpu", "--order", "18446744073709551615"], "'--order <N>': it must be from 1 to"),
        (&["memory", "--size", "8192P"], "'--size <SIZE>': it is too large"),
        (&["cpu", "--order", "1000000"], "order 1000000"),
        (&["cpu", "--trials", "0"], "--runs"),
        (&["memory", "--bytes", "0"], "'0' for '--size <SIZE>': it must be 1 byte or more"),
        (&["memory", "--bytes", "1", "--threads", "2"], "--size 1 byte"),
        (&["memory", "--order", "100"], "--order is for cpu"),
        (&["cpu", "--bytes", "1G"], "--size is for disk, memory, network"),
    ] {
        let ran = bench(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran}");
        assert!(ran.stderr.contains(said), "{arguments:?}: {ran}");
        assert_eq!(ran.stderr.lines().count(), 1, "{arguments:?}: {ran}");
    }
}
