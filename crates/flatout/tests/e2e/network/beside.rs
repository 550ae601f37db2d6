//! Several clients at one server at the same time: each is served, each says that it was not alone,
//! and none suffers from what befalls another.

use rustix::process::Signal;
use serde_json::Value;

use super::session::{bench, succeeds};
use super::{Serving, rows};
use crate::bin::{Folder, Running, assert_warned, warnings};
use crate::schema::assert_valid;

/// One row.
const ONE: [&str; 6] = ["--protocol", "tcp", "--direction", "up", "--measure", "throughput"];
/// How often a client comes until its trials meet another's.
const ATTEMPTS: usize = 20;

/// A client that goes on until it is stopped, once its session has begun.
fn busy<'f>(folder: &'f Folder, server: &mut Serving<'_>) -> Running<'f> {
    let all = ["bench", "network", "--connect", &server.at(), "--sender", "write", "-P", "1"];
    let rest = ["--runs", "6", "--duration", "10s", "--format", "json"];
    let client = folder.flatout(all.iter().chain(&ONE).chain(&rest)).start();
    assert!(server.says().contains("begins"));
    client
}

/// The row of a client whose trials met another's: with nothing else to do they all do.
fn met(folder: &Folder, server: &Serving<'_>) -> Value {
    let one = || {
        let ran = bench(folder, &server.at(), &ONE).run();
        succeeds(&ran);
        rows(&ran.document())[0].clone()
    };
    let is_met = |row: &Value| warnings(row).contains(&"shared_server");
    (0..ATTEMPTS).map(|_| one()).find(is_met).expect("a trial meets another client's")
}

#[test]
fn two_clients_at_once_are_both_served_and_told() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &[]);
    let first = busy(&folder, &mut server);
    let row = met(&folder, &server);
    assert_warned(&row, "shared_server");
    assert_eq!(row["audit"]["other_clients_most"], 1, "{row:#}");
    assert!(row["audit"]["shared_trials"].as_u64().is_some_and(|trials| trials > 0), "{row:#}");
    assert!(row["audit"]["cpu_s_per_gbit"].is_null(), "the other's bytes are unknown: {row:#}");
    assert!(server.says().ends_with("beside 1 other"), "the session of the second one");
    // Who is alone again does not say so.
    first.signal(Signal::KILL);
    first.wait();
    let alone = || {
        let ran = bench(&folder, &server.at(), &ONE).run();
        succeeds(&ran);
        !warnings(&rows(&ran.document())[0]).contains(&"shared_server")
    };
    assert!((0..ATTEMPTS).any(|_| alone()));
}

#[test]
fn streams_of_datagrams_of_two_clients_find_their_sessions() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &[]);
    let arguments = ["--protocol", "udp", "-P", "8", "--direction", "up,down", "--rate", "1MB"];
    let clients: Vec<_> =
        (0..3).map(|_| bench(&folder, &server.at(), &arguments).start()).collect();
    for client in clients {
        let ran = client.wait();
        succeeds(&ran);
        for row in rows(&ran.document()).iter().filter(|row| row["id"] == "network/udp-throughput")
        {
            assert_eq!(row["audit"]["datagrams_foreign"], 0, "{row:#}");
        }
    }
}

#[test]
fn a_client_that_is_killed_does_not_disturb_the_others() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &[]);
    let first = busy(&folder, &mut server);
    let long = ["--runs", "3", "--duration", "500ms"];
    let all = ["bench", "network", "--connect", &server.at(), "-P", "1", "--format", "json"];
    let second = folder.flatout(all.iter().chain(&ONE).chain(&long)).start();
    assert!(server.says().contains("begins"));
    first.signal(Signal::KILL);
    first.wait();
    succeeds(&second.wait());
    server.running.signal(Signal::TERM);
    let ran = server.running.wait();
    assert_eq!(ran.died_of(Signal::TERM).stderr.matches("broke off").count(), 1, "{ran}");
}

#[test]
fn the_end_of_the_server_ends_all_sessions() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &["--clients", "2"]);
    let clients = [(); 2].map(|()| busy(&folder, &mut server));
    let hasty = ["--protocol", "tcp", "--max-time", "100ms"];
    let ran = bench(&folder, &server.at(), &hasty).run();
    assert!(ran.exits(1).stderr.contains("the server is busy, 1 waiting"), "{ran}");
    server.running.signal(Signal::INT);
    server.running.wait().died_of(Signal::INT);
    for client in clients {
        let ran = client.wait();
        let document = ran.exits(1).document();
        assert_valid(&document);
        assert!(!document["end"]["errors"].as_array().unwrap().is_empty(), "{document:#}");
    }
}

#[test]
fn clients_that_are_measured_together_have_the_sum_beside_their_own_row() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &["--together", "2", "--once"]);
    let hasty = ["--protocol", "tcp", "--max-time", "100ms"];
    let ran = bench(&folder, &server.at(), &hasty).run();
    assert!(ran.exits(1).stderr.contains("1 of 2 clients are there"), "{ran}");
    // Long trials: the moment at which each begins matters little, whoever else has the CPUs.
    let long = ["--runs", "4", "--duration", "500ms"];
    let all = ["bench", "network", "--connect", &server.at(), "-P", "1", "--format", "json"];
    let clients = [(); 2].map(|()| folder.flatout(all.iter().chain(&ONE).chain(&long)).start());
    for client in clients {
        let ran = client.wait();
        succeeds(&ran);
        let document = ran.document();
        let [own, sum] = &rows(&document)[..] else { panic!("{document:#}") };
        assert_warned(own, "shared_server");
        assert_eq!(own["audit"]["other_clients_most"], 1, "{own:#}");
        assert_eq!((&sum["id"], &sum["parameters"]["clients"]), (&own["id"], &2.into()));
        assert!(sum["audit"]["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{sum:#}");
        assert!(sum["audit"]["streams_last_trial"].is_null(), "of one client: {sum:#}");
    }
    server.running.wait().exits(0);
}

#[test]
fn clients_that_are_measured_together_must_measure_the_same_row() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &["--together", "2"]);
    let start = |arguments: &[&str]| {
        let own = ["--measure", "throughput"];
        bench(&folder, &server.at(), &[&own, arguments].concat()).start()
    };
    let [first, second] = ["up", "down"]
        .map(|direction| start(&["--protocol", "tcp", "--direction", direction]))
        .map(Running::wait);
    for ran in [first, second] {
        assert!(ran.exits(1).stderr.contains("give all of them the same options"), "{ran}");
    }
    let [first, second] = [&[][..], &["--protocol", "tcp", "--direction", "up"]].map(start);
    let ran = first.wait();
    assert!(ran.exits(1).stderr.contains("options that leave one row"), "{ran}");
    let ran = second.wait();
    assert_warned(&rows(&ran.document())[0], "others_ended");
}
