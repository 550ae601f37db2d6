//! Sessions as they should go, and everything that can be wrong with the other end.

use std::net::TcpListener;

use flatout_sys::launcher::{EPERM, IO_URING_SETUP, NO_THREADS, Resource, deny, limit};
use rustix::process::Signal;

use super::{LITTLE, Serving, rows, token};
use crate::bin::{Folder, Ran, assert_warned, in_enough_time};
use crate::filesystem::needs_uring;
use crate::schema::assert_valid;

pub fn bench<'f>(folder: &'f Folder, at: &str, arguments: &[&str]) -> crate::bin::Flatout<'f> {
    let all = ["bench", "network", "--connect", at];
    folder.flatout(all.iter().chain(&LITTLE).chain(&["1"]).chain(arguments))
}

pub fn succeeds(ran: &Ran) {
    let document = ran.exits(0).document();
    assert_valid(&document);
    for row in rows(&document) {
        let is_refused = row["parameters"]["sender"] == "uring-zc" && needs_uring().is_err();
        let is_measured = row["median"].as_f64().is_some_and(|median| median > 0.0);
        assert!(is_measured || is_refused && row["status"] == "unsupported", "{row:#}");
    }
}

#[test]
fn two_programs_measure_each_other() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &["--once"]);
    let ran = bench(&folder, &server.at(), &[]).run();
    succeeds(&ran);
    let document = ran.document();
    let ids: Vec<&str> = rows(&document).iter().map(|row| row["id"].as_str().unwrap()).collect();
    for id in ["tcp-throughput", "udp-throughput", "tcp-latency", "udp-latency"] {
        assert!(ids.contains(&format!("network/{id}").as_str()), "{ids:?}");
    }
    for row in rows(&document).iter().filter(|row| row["status"] != "unsupported") {
        let id = row["id"].as_str().unwrap();
        if !id.ends_with("memcpy") {
            assert_warned(row, "loopback");
            assert!(row["audit"]["cpu_busy_ns"].is_number(), "{row:#}");
        }
        if id.ends_with("throughput") {
            assert!(row["series"][0]["points"].as_array().unwrap().len() >= 5, "{row:#}");
            assert!(!row["ceiling"]["limiter"].as_str().unwrap().is_empty());
        }
    }
    assert!(server.says().contains("begins"));
    assert!(server.says().contains("ended after"));
    server.running.wait().exits(0);
}

#[test]
fn every_way_to_send_and_receive_works_or_says_why_not() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &[]);
    for arguments in [
        &["--sender", "write", "--direction", "up,down,both"][..],
        &["--sender", "sendfile", "--block-size", "1,1M"],
        &["--sender", "zerocopy", "--direction", "up,down"],
        &["--sender", "write", "--receiver", "discard"],
        &["--offload", "gso+gro", "--direction", "up,down,both"],
        &["--offload", "gso", "--datagram-size", "1000"],
        &["--protocol", "udp", "--block-size", "16,1M", "--rate", "20MB"],
        &["--protocol", "tcp", "--bytes", "3MB", "--direction", "up,both"],
        &["--protocol", "udp", "--bytes", "300kB", "--rate", "30MB"],
        &["--measure", "latency", "--block-size", "1,64K", "--wait", "busy-poll"],
        &["--measure", "latency", "--block-size", "64", "--rate", "500"],
    ] {
        succeeds(&bench(&folder, &server.at(), arguments).run());
    }
    let uring = ["--sender", "uring-zc"];
    let document = bench(&folder, &server.at(), &uring).run().document();
    let status = rows(&document)[0]["status"].as_str().unwrap().to_owned();
    assert!(status != "failed", "{document:#}");
    let denied = bench(&folder, &server.at(), &uring).with(|command| {
        deny(command, &[(IO_URING_SETUP, EPERM)]);
    });
    let document = denied.run().document();
    assert_eq!(rows(&document)[0]["status"], "unsupported", "{document:#}");
    server.running.signal(Signal::INT);
    server.running.wait().died_of(Signal::INT);
}

#[test]
fn a_way_that_the_server_cannot_send_leaves_the_choice_of_the_others() {
    let folder = Folder::new();
    // As in a container.
    let server = Serving::with(&folder, &[], |command| {
        deny(command, &[(IO_URING_SETUP, EPERM)]);
    });
    let words = ["-R", "--protocol", "tcp", "--measure", "throughput"];
    let document = bench(&folder, &server.at(), &words).run().exits(0).document();
    let audit = &rows(&document)[0]["audit"];
    assert!(audit["ways_compared"].as_u64().is_some_and(|ways| ways >= 3), "{audit:#}");
    let reason = audit["sender_reason"].as_str().unwrap();
    assert!(reason.contains("short runs") && !reason.contains("uring"), "{reason}");
    let asked = ["-R", "--sender", "uring-zc", "--measure", "throughput"];
    let document = bench(&folder, &server.at(), &asked).run().document();
    assert_eq!(rows(&document)[0]["status"], "unsupported", "{document:#}");
}

#[test]
fn an_end_that_can_start_no_thread_says_so() {
    let denied = |command: &mut std::process::Command| {
        deny(command, &NO_THREADS);
    };
    let folder = Folder::new();
    let server = Serving::with(&folder, &[], denied);
    // Others may be served: it goes on.
    for _ in 0..2 {
        let ran = bench(&folder, &server.at(), &[]).run();
        assert!(ran.exits(1).stderr.contains("refused: cannot start a thread"), "{ran}");
    }
    server.running.signal(Signal::INT);
    server.running.wait().died_of(Signal::INT);
    let server = Serving::start(&folder, &[]);
    let ran = bench(&folder, &server.at(), &["--protocol", "tcp"]).with(denied).run();
    assert!(ran.exits(1).stderr.contains("cannot start a thread"), "{ran}");
}

#[test]
fn datagrams_are_all_accounted_for() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &["-1"]);
    let arguments = ["--protocol", "udp", "--direction", "up,down"];
    let document = bench(&folder, &server.at(), &arguments).run().exits(0).document();
    let is_udp = |row: &&serde_json::Value| row["id"] == "network/udp-throughput";
    assert_eq!(rows(&document).iter().filter(is_udp).count(), 2);
    for row in rows(&document).iter().filter(is_udp) {
        let of = |key: &str| row["audit"][format!("datagrams_{key}")].as_u64().unwrap();
        assert_eq!(of("sent"), of("unique") + of("lost") + of("dropped"), "{row:#}");
        assert_eq!(of("received"), of("unique") + of("duplicate"), "{row:#}");
        assert!(of("unique") > 0 && of("foreign") == 0, "{row:#}");
        // Loopback drops datagrams where nobody takes them, and a sender that moves to another CPU may
        // overtake itself there; nothing doubles them.
        assert_eq!(of("duplicate"), 0, "{row:#}");
        assert!(row["audit"]["streams_last_trial"][0]["datagrams_sent"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_token_is_asked_for_off_loopback_and_must_be_right() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &["--once", "--bind", "0.0.0.0"]);
    let printed = server.says();
    let printed = printed.strip_prefix("token ").expect("it prints a token");
    let at = format!("127.0.0.1:{}", server.address.port());
    bench(&folder, &at, &[]).run().exits(1);
    let secrets = Folder::new();
    let wrong = token(&secrets, "a token of somebody else");
    let ran = bench(&folder, &at, &["--token-file", wrong.to_str().unwrap()]).run();
    assert!(ran.exits(1).stderr.contains("another token"), "{ran}");
    let right = token(&secrets, printed);
    let arguments = ["--token-file", right.to_str().unwrap(), "--protocol", "tcp"];
    succeeds(&bench(&folder, &at, &arguments).run());
    server.running.wait().exits(0);
}

#[test]
fn who_has_too_few_descriptors_is_told_so() {
    let folder = Folder::new();
    // None for the first connection, none for those of a test, and those of one stream alone.
    for most in [7, 9, 10, 11] {
        let is_said = |time: &str| {
            let run = folder.flatout(["bench", "network", "--quick", "--max-time", time]);
            let run = run.with(|command| {
                limit(command, Resource::Descriptors, most);
            });
            let ran = run.run();
            ran.code == Some(1) && ran.stderr.contains("Too many open files")
        };
        // Beside others, no row may be reached in a second.
        assert!(["1s", "4s", "16s"].into_iter().any(is_said), "{most}");
    }
}

#[test]
fn a_limit_on_addresses_is_named_and_ends_nothing() {
    let folder = Folder::new();
    // The two ends of 16 streams need 100 MiB: between what the program itself needs, which differs
    // from build to build, and enough for all, no limit is missed in steps of 16 MiB.
    let streams = ["-P", "16", "--protocol", "tcp", "--direction", "up", "--measure", "throughput"];
    let run = |most_mib: u32, time: &str| {
        let script = format!("ulimit -v {} && exec \"$@\"", most_mib << 10);
        let arguments = ["bench", "network", "--quick", "--max-time", time, "--format", "json"];
        let arguments = [&arguments[..], &streams].concat();
        folder.under(&["sh", "-c", &script, "sh"], &arguments).run()
    };
    let is_named = |most_mib: &u32| {
        let ran = run(*most_mib, "3s");
        let is_done = matches!(ran.code, Some(0 | 1)) && !ran.stdout.is_empty();
        if is_done {
            assert_valid(&ran.document());
        }
        is_done && ran.stderr.contains("of addresses are needed, and ulimit leaves")
    };
    let first = (3..32).map(|step| step * 16).find(is_named).unwrap();
    // Threads reserve no 64 MiB each, which would be 2 GiB here.
    in_enough_time(3, |time| run(first + 160, time).if_measured()).exits(0);
}

#[test]
fn a_server_has_a_name_and_serves_until_it_is_stopped() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &["--bind", "localhost"]);
    let port = server.address.port().to_string();
    for _ in 0..2 {
        let family = if server.address.is_ipv4() { "--ipv4" } else { "--ipv6" };
        let arguments = ["-p", &port, family, "-P", "1", "-R", "--protocol", "tcp"];
        let document = bench(&folder, "localhost", &arguments).run().exits(0).document();
        let row = &rows(&document)[0];
        assert_eq!(row["parameters"]["direction"], "down", "{row:#}");
    }
    server.running.signal(Signal::INT);
    server.running.wait().died_of(Signal::INT);
}

#[test]
fn a_client_beyond_those_served_at_once_waits_in_line_and_is_told() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &["--clients", "1"]);
    let one = ["--protocol", "tcp", "--direction", "up", "-P", "1", "--measure", "throughput"];
    let long = ["--runs", "2", "--duration", "400ms"];
    let all = ["bench", "network", "--connect", &server.at(), "--quick", "--format", "json"];
    let first = folder.flatout(all.iter().chain(&one).chain(&long)).start();
    assert!(server.says().contains("begins"));
    let hasty = ["--protocol", "tcp", "--max-time", "100ms"];
    let ran = bench(&folder, &server.at(), &hasty).run();
    assert!(ran.exits(1).stderr.contains("the server is busy, 1 waiting"), "{ran}");
    let ran = bench(&folder, &server.at(), &one).run();
    assert!(ran.stderr.contains("busy, 1 waiting"), "{ran}");
    succeeds(&ran);
    succeeds(&first.wait());
}

#[test]
fn what_cannot_be_reached_or_found_is_one_line() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = folder.flatout(["serve", "--port", &port]).run();
    ran.complains(1, &["cannot listen", &port]);
    let says = |at: &str, arguments: &[&str], words: &[&str]| {
        let ran = bench(&folder, at, arguments).run();
        ran.exits(1);
        for word in words {
            assert!(ran.stderr.contains(word), "`{word}` is missing: {ran}");
        }
        assert_valid(&ran.document());
    };
    // A port that no other test is given.
    says("127.0.0.1:1", &[], &["cannot connect to 127.0.0.1"]);
    says("no..host:7878", &[], &["cannot resolve", "no..host"]);
    says("127.0.0.1:7878", &["--ipv6"], &["has no ipv6 address"]);
    let none = folder.join("none");
    says("127.0.0.1:1", &["--token-file", none.to_str().unwrap()], &["token file"]);
    let short = token(&folder, "short");
    let ran = folder.flatout(["serve", "--token-file", short.to_str().unwrap()]).run();
    ran.complains(1, &["at least 16 characters"]);
    for (arguments, word) in [
        (&["--streams", "65"][..], "'65' for '--streams <N,…>': it must be from 1 to 64"),
        (&["--block-size", "0"], "'0' for '--block-size <SIZE,…>': it must be from 1 byte"),
        (&["--block-size", "2M"], "block bytes 2097152: it must be from 1 to 1048576"),
        (&["--bytes", "0"], "'0' for '--size <SIZE>': it must be 1 byte or more"),
        (&["--bytes", "2T"], "bytes of a test"),
        (&["--rate", "0"], "'0' for '--rate <N>': it must be from 0.1 to 1000000000000"),
        (&["--datagram-size", "8"], "'8' for '--datagram-size <SIZE>': it must be from 16 to"),
        (&["--duration", "2h"], "nanoseconds of a test"),
    ] {
        let ran = folder.flatout(["bench", "network"].iter().chain(arguments)).run();
        assert!(ran.exits(2).stderr.contains(word), "{ran}");
    }
}

#[test]
fn a_server_that_vanishes_ends_the_client_with_a_whole_document() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &["--once"]);
    let all = ["bench", "network", "--connect", &server.at(), "--protocol", "tcp"];
    let rest = ["--duration", "5s", "--format", "json"];
    let client = folder.flatout(all.iter().chain(&rest)).start();
    assert!(server.says().contains("begins"));
    server.running.signal(Signal::KILL);
    let ran = client.wait();
    let document = ran.exits(1).document();
    assert_valid(&document);
    assert!(!document["end"]["errors"].as_array().unwrap().is_empty());
}

#[test]
fn a_client_that_vanishes_ends_its_session_alone() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &[]);
    let all = ["bench", "network", "--connect", &server.at(), "--protocol", "udp"];
    let client = folder.flatout(all.iter().chain(&["--duration", "5s"])).start();
    assert!(server.says().contains("begins"));
    client.signal(Signal::KILL);
    client.wait();
    succeeds(&bench(&folder, &server.at(), &["--protocol", "tcp"]).run());
    server.running.signal(Signal::TERM);
    let ran = server.running.wait();
    assert!(ran.died_of(Signal::TERM).stderr.contains("broke off"), "{ran}");
}

#[test]
fn an_interrupted_client_leaves_a_document_and_frees_the_server() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &["--once"]);
    let all = ["bench", "network", "--connect", &server.at(), "--format", "json"];
    let client = folder.flatout(all.iter().chain(&["--duration", "5s"])).start();
    assert!(server.says().contains("begins"));
    client.interrupt();
    let ran = client.wait();
    assert_valid(&ran.died_of(Signal::INT).document());
    server.running.wait();
}
