//! Several clients at one server, over loopback within this process.

use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::thread::Scope;
use std::time::Duration;

use flatout_measure::TrialError;

use super::*;
use crate::network::channel::Channel;
use crate::network::client::Client;
use crate::network::frame::{Frame, VERSION};
use crate::network::session::SESSION_OVER;
use crate::network::spec::{MAX_TEST_NS, Protocol, Spec};

/// How often two clients run a test until both run at the same time.
const ATTEMPTS: u32 = 100;
const PATIENCE_NS: u64 = 60_000_000_000;

/// Ends the server also where the test fails.
struct Ending(CancelToken);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Does `work` with the address of a server for these clients.
fn with_server(clients: Clients, work: impl for<'s> FnOnce(&'s Scope<'s, '_>, SocketAddr)) {
    with_server_for((Lifetime::Forever, clients), work);
}

fn with_server_for(
    terms: (Lifetime, Clients),
    work: impl for<'s> FnOnce(&'s Scope<'s, '_>, SocketAddr),
) {
    let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], Key::open()).unwrap();
    let (at, stop) = (server.address().unwrap(), CancelToken::manual());
    thread::scope(|scope| {
        let _ending = Ending(stop);
        let serve = move || server.serve(terms, stop, &mut |_| ());
        scope.spawn(serve);
        work(scope, at);
    });
}

fn connect(at: SocketAddr, busy: &mut dyn FnMut(&str)) -> Result<Client, String> {
    Client::connect(&[at], &Key::open(), CancelToken::manual(), PATIENCE_NS, busy)
}

fn short(protocol: Protocol) -> Spec {
    let datagram_bytes = if protocol == Protocol::Udp { 1000 } else { 0 };
    let spec = Spec { protocol, datagram_bytes, streams: 4, block_bytes: 1000, ..Spec::default() };
    Spec { warm_ns: 5_000_000, window_ns: 50_000_000, tail_ns: 3_000_000, ..spec }
}

#[test]
fn sessions_run_side_by_side_and_each_test_knows_of_the_others() {
    with_server(Clients::UpTo(2), |scope, at| {
        let clients = [(); 2].map(|()| connect(at, &mut |_| ()).unwrap());
        let meet = |mut client: Client, protocol| {
            let mut others = || client.run(short(protocol)).unwrap().far.end.others;
            assert!((0..ATTEMPTS).any(|_| others() == 1));
            client.finish();
        };
        let [first, second] = clients;
        let first = scope.spawn(move || meet(first, Protocol::Tcp));
        let second = scope.spawn(move || meet(second, Protocol::Udp));
        first.join().unwrap();
        second.join().unwrap();
        let mut alone = connect(at, &mut |_| ()).unwrap();
        assert_eq!(alone.run(short(Protocol::Udp)).unwrap().far.end.others, 0);
    });
}

#[test]
fn streams_of_datagrams_that_are_proved_at_the_same_time_find_their_sessions() {
    with_server(Clients::UpTo(4), |scope, at| {
        let run = move || {
            let mut client = connect(at, &mut |_| ()).unwrap();
            for _ in 0..10 {
                let spec = Spec { window_ns: 2_000_000, streams: 8, ..short(Protocol::Udp) };
                let report = client.run(spec).unwrap();
                assert!(report.far.flows.iter().all(|flow| flow.account.foreign == 0));
            }
        };
        let clients = [(); 4].map(|()| scope.spawn(run));
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
}

#[test]
fn clients_that_are_measured_together_begin_at_the_same_moment_and_get_the_sum() {
    with_server(Clients::Together(3), |scope, at| {
        let run = move || {
            let mut client = connect(at, &mut |_| ()).unwrap();
            assert_eq!(client.together, 3);
            let spec = Spec { window_ns: 200_000_000, ..short(Protocol::Tcp) };
            let mut sums = Vec::new();
            // The others may have ended when the first one has its last.
            while let Ok(report) = client.run(spec) {
                assert_eq!(report.far.end.others, 2);
                sums.push(report.far.end.sum);
                if sums.len() == 3 {
                    break;
                }
            }
            client.finish();
            sums
        };
        let sums = [(); 3].map(|()| scope.spawn(run)).map(|client| client.join().unwrap());
        // All of them are told the same of each round.
        assert!(sums.iter().all(|of| *of == sums[0] && of.len() == 3), "{sums:?}");
        assert!(sums[0].iter().all(|sum| sum.clients == 3), "{sums:?}");
        assert!(sums[0].iter().any(|sum| sum.window_ns > 0 && sum.bytes > 0), "{sums:?}");
    });
}

#[test]
fn who_would_be_measured_with_one_that_has_gone_gets_no_more_trials() {
    with_server(Clients::Together(2), |scope, at| {
        let first = scope.spawn(move || connect(at, &mut |_| ()).unwrap());
        let mut second = connect(at, &mut |_| ()).unwrap();
        first.join().unwrap().finish();
        let error = second.run(short(Protocol::Tcp)).unwrap_err();
        assert!(matches!(error, TrialError::NoMore(_)), "{error:?}");
    });
}

#[test]
fn clients_that_wait_for_others_are_told_of_those_that_have_left() {
    with_server(Clients::Together(3), |scope, at| {
        let (told, heard) = channel();
        let cancel = CancelToken::manual();
        scope.spawn(move || {
            let mut tell = move |text: &str| _ = told.send(text.to_owned());
            Client::connect(&[at], &Key::open(), cancel, PATIENCE_NS, &mut tell)
        });
        let is_next = |of: &str| {
            let next = heard.recv_timeout(Duration::from_nanos(PATIENCE_NS)).unwrap();
            assert_eq!(next, format!("together with others: {of} clients are there"));
        };
        is_next("1 of 3");
        let hasty = Client::connect(&[at], &Key::open(), cancel, 2_000_000_000, &mut |_| ());
        assert!(hasty.unwrap_err().contains("2 of 3 clients are there"));
        is_next("2 of 3");
        is_next("1 of 3");
        cancel.cancel();
    });
}

#[test]
fn the_only_client_of_a_server_may_be_silent_as_long_as_a_test_takes() {
    // Over loopback it measures at another server meanwhile.
    assert!(Lifetime::Once.idle_ns() > MAX_TEST_NS);
    assert!(Lifetime::Forever.idle_ns() < MAX_TEST_NS, "others wait for its place");
}

#[test]
fn clients_beyond_those_that_wait_are_refused() {
    // The one that is served may be silent for long: on a busy machine handshakes take their time.
    with_server_for((Lifetime::Once, Clients::UpTo(1)), |scope, at| {
        let _served = connect(at, &mut |_| ()).unwrap();
        let (told, heard) = channel();
        let wait = |_| {
            let told = told.clone();
            // When the test is over nobody listens.
            let mut tell = move |_: &str| {
                let _nobody = told.send(());
            };
            scope.spawn(move || connect(at, &mut tell).map(drop))
        };
        let waiting: Vec<_> = (0..MAX_WAITING).map(wait).collect();
        for _ in &waiting {
            heard.recv().unwrap();
        }
        let error = connect(at, &mut |_| ()).unwrap_err();
        assert!(error.contains("busy, and 16 wait already"), "{error}");
    });
}

#[test]
fn a_client_that_speaks_another_version_is_told_so() {
    with_server(Clients::UpTo(1), |_, at| {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_nonblocking(true).unwrap();
        let cancel = CancelToken::manual();
        let mut channel = Channel::open(stream, &Key::open(), cancel, u64::MAX).unwrap();
        channel.send(&Frame::Hello { version: VERSION + 1 }).unwrap();
        let error = channel.receive(PATIENCE_NS).unwrap_err().to_string();
        let both = format!("speaks version {} of the protocol, the server {VERSION}", VERSION + 1);
        assert!(error.contains(&both), "{error}");
    });
}

#[test]
fn a_session_that_has_taken_its_time_says_so_whatever_is_asked_then() {
    let mut server = Server::bind(&["127.0.0.1:0".parse().unwrap()], Key::open()).unwrap();
    server.session_ns = 1_000_000_000;
    let (at, stop) = (server.address().unwrap(), CancelToken::manual());
    let mut told = None;
    thread::scope(|scope| {
        let _ending = Ending(stop);
        let mut notice = |notice| {
            if let Notice::Ended(_, Err(error)) = notice {
                told = Some(error.to_string());
            }
        };
        let terms = (Lifetime::Once, Clients::UpTo(1));
        let served = scope.spawn(move || server.serve(terms, stop, &mut notice));
        let mut client = connect(at, &mut |_| ()).unwrap();
        let mut run = || client.run(short(Protocol::Tcp)).err();
        let first = (0..ATTEMPTS).find_map(|_| run()).unwrap();
        for error in [first, run().unwrap()] {
            assert!(matches!(&error, TrialError::NoMore(_)), "{error:?}");
            assert!(error.to_string().ends_with(SESSION_OVER), "{error}");
        }
        served.join().unwrap().unwrap();
    });
    assert_eq!(told.as_deref(), Some(SESSION_OVER));
}
