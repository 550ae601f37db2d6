//! The near end: a session with a server, and tests run in it one after the other.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread::{self, Builder};
use std::time::Duration;

use flatout_io::cause_text;
use flatout_measure::{TrialError, Warning, size_text, warning};
use flatout_sys::memory::address_space_left_bytes;
use flatout_sys::thread::spawn;
use flatout_sys::{CancelToken, monotonic_ns};

use super::channel::{Channel, ChannelError};
use super::flow::{self, Connection, End, Seen, Socket};
use super::frame::{Frame, VERSION};
use super::server::HANDSHAKE_NS;
use super::server::group::PATIENCE_NS;
use super::session::{GATHER_NS, NO_DATAGRAMS, machine, ready_tcp, ready_udp};
use super::spec::{Flow, Protocol, Spec};
use super::token::{Key, Proof};
use super::topology::Family;
use crate::workers;

/// How long a connection may take, and how long it may where no time is left.
const CONNECT: Duration = Duration::from_secs(5);
const LEAST_CONNECT_NS: u64 = 1_000_000;
/// How long a client waits for its session at most.
pub const QUEUE_NS: u64 = 600_000_000_000;
/// How long the server may take for an answer.
const ANSWER_NS: u64 = 5_000_000_000;
/// How much longer each time it takes until a proof in a datagram is repeated, since the server takes them one
/// by one: so much, or a part of the time, so that those of a client that waits for others fill no socket.
const PROOF_GROWTH_NS: u64 = 500_000;
const PROOF_GROWTH_PART: u64 = 8;
/// What an end of a flow takes of the addresses of a process (`ulimit -v`, `-d`): a stack of 2 MiB, its
/// latencies and buffers; and what must be left to everything else, which has no other answer to a
/// want of memory than the end of the process.
const FLOW_END_BYTES: u64 = 3 << 20;
const SPARE_BYTES: u64 = 4 << 20;
/// Questions that tell the round trip.
const PINGS: u32 = 5;

/// What both ends saw of a test.
#[derive(Debug)]
pub struct Report {
    /// The test.
    pub spec: Spec,
    /// When it began, since the session did.
    pub start_ns: u64,
    /// This end.
    pub near: Seen,
    /// The other one.
    pub far: Seen,
}

/// A session.
#[derive(Debug)]
pub struct Client {
    channel: Channel,
    server: SocketAddr,
    key: [u8; 32],
    tests: u32,
    started_ns: u64,
    /// Why there can be no more tests.
    over: Option<String>,
    /// Whether datagrams come through, once a test has shown that: where those of the first one did not, no
    /// other one waits for its own.
    datagrams_come: Option<bool>,
    /// With how many clients, itself included, it is measured together; 0: for itself.
    pub together: u16,
    /// Whether both ends are one machine.
    pub shares_machine: bool,
    /// The shortest round trip of the control channel.
    pub round_trip_ns: u64,
}

/// A channel to a server that knows the key, for which a connection may be tried until so late.
fn open(
    server: SocketAddr,
    key: &Key,
    (cancel, end_ns): (CancelToken, u64),
) -> Result<Channel, String> {
    let left_ns = end_ns.saturating_sub(monotonic_ns()).max(LEAST_CONNECT_NS);
    let stream = TcpStream::connect_timeout(&server, CONNECT.min(Duration::from_nanos(left_ns)));
    let failed = |error: io::Error| format!("cannot connect to {server}: {}", cause_text(&error));
    let stream = stream.map_err(failed)?;
    stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).map_err(failed)?;
    let deadline_ns = monotonic_ns().saturating_add(HANDSHAKE_NS);
    Channel::open(stream, key, cancel, deadline_ns).map_err(|error| complaint(server, error))
}

/// What is said of a server that was not to be had.
fn complaint(server: SocketAddr, error: ChannelError) -> String {
    let has_hung_up = match &error {
        ChannelError::Io(error) => error.kind() == io::ErrorKind::ConnectionReset,
        error => matches!(error, ChannelError::Closed | ChannelError::Garbage),
    };
    match error {
        ChannelError::Silent(_) => format!("{server}: no flatout serve answers there"),
        _ if has_hung_up => {
            format!("{server}: it hung up during the handshake: another token, or no flatout serve")
        }
        error => format!("{server}: {error}"),
    }
}

/// How long after the last proofs the next ones are sent.
fn next_proofs_ns(wait_ns: u64) -> u64 {
    wait_ns + PROOF_GROWTH_NS.max(wait_ns / PROOF_GROWTH_PART)
}

impl Client {
    /// Begins a session with the first of `addresses` at which a server answers. `busy` hears what it
    /// waits for, each time that this changes; `patience_ns` is how long it does.
    ///
    /// Errors: one line: who does not answer, is busy, or does not know the key.
    pub fn connect(
        addresses: &[SocketAddr],
        key: &Key,
        cancel: CancelToken,
        patience_ns: u64,
        busy: &mut dyn FnMut(&str),
    ) -> Result<Self, String> {
        let end_ns = monotonic_ns().saturating_add(patience_ns);
        let mut failures = Vec::new();
        let opened = addresses.iter().find_map(|&server| {
            let is_over = cancel.is_cancelled() && !failures.is_empty();
            let opened = (!is_over).then(|| open(server, key, (cancel, end_ns)))?;
            opened.map_err(|text| failures.push(text)).ok().map(|channel| (channel, server))
        });
        let (mut channel, server) = opened.ok_or_else(|| failures.join("; "))?;
        let complain = |error| complaint(server, error);
        channel.send(&Frame::Hello { version: VERSION }).map_err(complain)?;
        let (mut wait_ns, mut in_line) = (HANDSHAKE_NS, None);
        let (key, far_machine, together) = loop {
            match (channel.receive(wait_ns), in_line) {
                (Ok(Frame::Waiting { waiting, together }), before) => {
                    wait_ns = end_ns.saturating_sub(monotonic_ns());
                    let text = match together {
                        0 => format!("the server is busy, {waiting} waiting (with this one)"),
                        _ => format!(
                            "together with others: {waiting} of {together} clients are there"
                        ),
                    };
                    if before.as_ref() != Some(&text) {
                        busy(&text);
                    }
                    in_line = Some(text);
                }
                (Ok(Frame::Admitted { key, machine, together }), _) => {
                    break (key, machine, together);
                }
                (Err(ChannelError::Silent(_)), Some(text)) => {
                    return Err(format!("{server}: no session began in time: {text}"));
                }
                (Err(error), _) => return Err(complain(error)),
                (Ok(_), _) => return Err(complain(ChannelError::Garbage)),
            }
        };
        let mut client = Self {
            channel,
            server,
            key,
            tests: 0,
            started_ns: monotonic_ns(),
            over: None,
            datagrams_come: None,
            together,
            shares_machine: far_machine == machine(),
            round_trip_ns: u64::MAX,
        };
        for number in 0..PINGS {
            client.ping(number).map_err(complain)?;
        }
        Ok(client)
    }

    /// Over which addresses it goes.
    pub fn family(&self) -> Family {
        Family::of(self.server)
    }

    /// The address of the other end.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// The address of this end.
    pub fn address(&self) -> Option<SocketAddr> {
        self.channel.stream().local_addr().ok()
    }

    /// Asks whether the server is there; keeps the session alive.
    fn ping(&mut self, number: u32) -> Result<(), ChannelError> {
        let start_ns = monotonic_ns();
        self.channel.send(&Frame::Ping { number })?;
        match self.channel.receive(ANSWER_NS)? {
            Frame::Pong { number: same } if same == number => {
                self.round_trip_ns = self.round_trip_ns.min(monotonic_ns() - start_ns);
                Ok(())
            }
            _ => Err(ChannelError::Garbage),
        }
    }

    /// Keeps the session from being idle while something else is measured.
    pub fn keep_alive(&mut self) {
        if self.over.is_none()
            && let Err(error) = self.ping(0)
        {
            self.over = Some(error.to_string());
        }
    }

    /// Runs a test; its number is given here.
    ///
    /// Errors: the test failed, or the session is over.
    pub fn run(&mut self, spec: Spec) -> Result<Report, TrialError> {
        let lost = |text: String| TrialError::NoMore(Warning::new(warning::FAILED, text));
        if let Some(why) = &self.over {
            return Err(lost(format!("{}: {why}", self.server)));
        }
        self.tests += 1;
        let spec = Spec { test: self.tests, shares_cpus: self.shares_machine, ..spec };
        spec.check().map_err(TrialError::Failed)?;
        let ends = spec.flows().len() as u64 * if self.shares_machine { 2 } else { 1 };
        check_room(ends, address_space_left_bytes())?;
        if spec.protocol == Protocol::Udp && self.datagrams_come == Some(false) {
            return Err(TrialError::Failed(format!("{}: {NO_DATAGRAMS}", self.server)));
        }
        let tried = self.try_test(spec);
        if spec.protocol == Protocol::Udp && tried.is_ok() {
            self.datagrams_come = Some(true);
        }
        tried.map_err(|error| {
            let text = format!("{}: {error}", self.server);
            match &error {
                ChannelError::Unsupported(text) => return TrialError::Unsupported(text.clone()),
                ChannelError::OthersLeft => {
                    let text =
                        format!("another one of the {} clients ended before it", self.together);
                    return TrialError::NoMore(Warning::new(warning::OTHERS_ENDED, text));
                }
                ChannelError::Failed(_) | ChannelError::Refused(_) => {
                    if text.ends_with(NO_DATAGRAMS) {
                        self.datagrams_come.get_or_insert(false);
                    }
                    return TrialError::Failed(text);
                }
                _ => {}
            }
            self.over = Some(error.to_string());
            match error {
                ChannelError::Cancelled => TrialError::Interrupted,
                _ => lost(text),
            }
        })
    }

    fn try_test(&mut self, spec: Spec) -> Result<Report, ChannelError> {
        self.channel.send(&Frame::Prepare { spec })?;
        match self.channel.receive(ANSWER_NS)? {
            Frame::Prepared => {}
            _ => return Err(ChannelError::Garbage),
        }
        let connections = self.connect_flows(&spec).map_err(ChannelError::Broken)?;
        let (key, others_ns) = (self.key, if self.together > 0 { PATIENCE_NS } else { 0 });
        let mut has_begun = false;
        let begin = |channel: &mut Channel| {
            let prove = || send_proofs(&connections, spec.test, &key);
            until_ready(channel, 2 * GATHER_NS + others_ns, prove)?;
            has_begun = true;
            channel.send(&Frame::Go).map(|()| None)
        };
        let start_ns = monotonic_ns().saturating_sub(self.started_ns);
        let near = flow::run((End::Client, 0), spec, &connections, &mut self.channel, begin);
        let near = match near {
            // The other end waits for a word, and would not understand the next test.
            Err(ChannelError::Failed(text)) if !has_begun => {
                return Err(ChannelError::Broken(text));
            }
            // Even where this end failed the other one reports, and has to be heard.
            Err(error @ (ChannelError::Failed(_) | ChannelError::Unsupported(_))) => Err(error),
            near => Ok(near?),
        };
        match (near, self.hear(&spec)) {
            (Ok(near), Ok(far)) => Ok(Report { spec, start_ns, near, far }),
            (Err(error), Ok(_) | Err(ChannelError::Refused(_))) => Err(error),
            (_, Err(error)) => Err(error),
        }
    }

    /// The other end's report.
    fn hear(&mut self, spec: &Spec) -> Result<Seen, ChannelError> {
        let flows: Vec<u16> = spec.flows().iter().map(|flow| flow.index).collect();
        let mut seen = Seen::default();
        loop {
            match self.channel.receive(ANSWER_NS)? {
                Frame::Flow { report } if flows.get(seen.flows.len()) == Some(&report.flow) => {
                    seen.flows.push(report);
                }
                Frame::End { report } if seen.flows.len() == flows.len() => {
                    return Ok(Seen { end: report, ..seen });
                }
                _ => return Err(ChannelError::Garbage),
            }
        }
    }

    /// Makes the data connections of a test, at once: each waits for a way there and back.
    fn connect_flows(&self, spec: &Spec) -> Result<Vec<Connection>, String> {
        let mut own = self.address().ok_or("the control connection has no address")?;
        own.set_port(0);
        let (server, key, test) = (self.server, self.key, spec.test);
        let open = |flow: Flow| -> io::Result<Connection> {
            let socket = match flow.protocol {
                Protocol::Tcp => {
                    let mut stream = TcpStream::connect_timeout(&server, CONNECT)?;
                    stream.write_all(&Proof { test, flow: flow.index }.encode(&key))?;
                    ready_tcp(&stream)?;
                    Socket::Tcp(stream)
                }
                Protocol::Udp => {
                    let socket = UdpSocket::bind(own)?;
                    socket.connect(server)?;
                    ready_udp(&socket)?;
                    Socket::Udp(socket)
                }
            };
            Ok(Connection::new(flow, socket))
        };
        let opened = thread::scope(|scope| {
            // Not counted: they wait for the other end.
            let begin = |flow| (flow, spawn(scope, Builder::new(), move || open(flow)));
            let begun: Vec<_> = spec.flows().into_iter().map(begin).collect();
            // Where no thread is to be had, the test will say so.
            let end = |(flow, thread)| Result::map_or_else(thread, |_| open(flow), workers::join);
            begun.into_iter().map(end).collect::<io::Result<Vec<_>>>()
        });
        opened.map_err(|error| format!("cannot open a data connection: {}", cause_text(&error)))
    }

    /// Ends the session.
    pub fn finish(mut self) {
        if self.over.is_none() {
            // Whoever does not hear it sees the end of the connection.
            let _ = self.channel.send(&Frame::Bye);
        }
    }
}

/// Waits at most so long until the server has all connections, and proves those of datagrams meanwhile.
fn until_ready(channel: &mut Channel, most_ns: u64, prove: impl Fn()) -> Result<(), ChannelError> {
    let deadline_ns = monotonic_ns().saturating_add(most_ns);
    let mut wait_ns = 0;
    loop {
        prove();
        wait_ns = next_proofs_ns(wait_ns);
        match channel.receive(wait_ns) {
            Ok(Frame::Ready) => return Ok(()),
            Ok(Frame::Bye) => return Err(ChannelError::OthersLeft),
            Ok(_) => return Err(ChannelError::Garbage),
            Err(ChannelError::Silent(_)) if monotonic_ns() < deadline_ns => {}
            Err(ChannelError::Silent(_)) => {
                return Err(ChannelError::Silent(most_ns / 1_000_000));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Proves the session on every flow of datagrams. One that is lost, or comes too early, is
/// repeated until the server says that it has all.
fn send_proofs(connections: &[Connection], test: u32, key: &[u8; 32]) {
    for connection in connections {
        if let Socket::Udp(socket) = &connection.socket {
            let proof = Proof { test, flow: connection.flow.index };
            // Refused means only that the server's socket is not there yet.
            let _ = socket.send(&proof.encode(key));
        }
    }
}

/// Refuses a test whose flows, with so many ends here, have no room where this process may map `left_bytes` more.
fn check_room(ends: u64, left_bytes: Option<u64>) -> Result<(), TrialError> {
    let needed_bytes = SPARE_BYTES + ends * FLOW_END_BYTES;
    match left_bytes {
        Some(left_bytes) if left_bytes < needed_bytes => Err(TrialError::Failed(format!(
            "{} of addresses are needed, and ulimit leaves {}",
            size_text(needed_bytes),
            size_text(left_bytes),
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::server::{Clients, Lifetime, Server};
    use crate::network::spec::Direction;

    #[test]
    fn a_test_for_whose_flows_there_are_no_addresses_is_refused() {
        let refused = |ends, left_mib: u64| check_room(ends, Some(left_mib << 20)).is_err();
        assert_eq!([13, 12].map(|left_mib| refused(3, left_mib)), [false, true]);
        assert_eq!([22, 21].map(|left_mib| refused(6, left_mib)), [false, true]);
        assert!(check_room(1 << 20, None).is_ok(), "there is no limit");
    }

    #[test]
    fn all_addresses_of_a_name_get_no_more_time_than_there_is() {
        // A listener that accepts nobody, with as many in its queue as it holds.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&at, Duration::from_millis(50)).ok();
        // One that took long on a busy machine does not show that it is full.
        let next = || connect().or_else(connect).or_else(connect);
        let _queue: Vec<TcpStream> = std::iter::from_fn(next).take(10_000).collect();
        let begun_ns = monotonic_ns();
        let cancel = CancelToken::manual();
        let error = Client::connect(&[at; 3], &Key::open(), cancel, 60_000_000, &mut |_| ());
        let error = error.unwrap_err();
        assert_eq!(error.matches("cannot connect").count(), 3, "{error}");
        assert!(monotonic_ns() - begun_ns < 5_000_000_000, "one address alone had so much");
    }

    #[test]
    fn connections_of_a_test_are_on_their_way_at_once() {
        let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], Key::open()).unwrap();
        let (at, stop) = (server.address().unwrap(), CancelToken::manual());
        // A listener that accepts nobody yet, with as many in its queue as it holds.
        let full = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let full_at = full.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&full_at, Duration::from_millis(50)).ok();
        let queue: Vec<TcpStream> = std::iter::from_fn(connect).take(10_000).collect();
        // See proc(5): the address of the other end, and the state, SYN_SENT.
        let sought = format!("0100007F:{:04X} 02", full_at.port());
        let on_their_way = || {
            let all = std::fs::read_to_string("/proc/net/tcp").unwrap();
            all.lines().filter(|line| line.contains(&sought)).count()
        };
        thread::scope(|scope| {
            let terms = (Lifetime::Once, Clients::UpTo(1));
            scope.spawn(move || server.serve(terms, stop, &mut |_| ()));
            let mut client =
                Client::connect(&[at], &Key::open(), stop, QUEUE_NS, &mut |_| ()).unwrap();
            client.server = full_at;
            let spec = Spec { streams: 3, ..Spec::one_stream() };
            let connecting = scope.spawn(move || client.connect_flows(&spec).map(|all| all.len()));
            while on_their_way() < 3 && !connecting.is_finished() {
                thread::yield_now();
            }
            queue.iter().for_each(|_| drop(full.accept().unwrap()));
            assert_eq!(connecting.join().unwrap(), Ok(3));
            stop.cancel();
        });
    }

    #[test]
    fn a_name_whose_first_address_is_another_programs_is_found_at_the_next() {
        let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], Key::open()).unwrap();
        let (stop, at) = (CancelToken::manual(), server.address().unwrap());
        let addresses = [stranger.local_addr().unwrap(), at];
        thread::scope(|scope| {
            // It hangs up.
            scope.spawn(|| stranger.accept().map(drop));
            let terms = (Lifetime::Once, Clients::UpTo(1));
            scope.spawn(move || server.serve(terms, stop, &mut |_| ()));
            let client = Client::connect(&addresses, &Key::open(), stop, QUEUE_NS, &mut |_| ());
            stop.cancel();
            assert_eq!(client.unwrap().server(), at);
        });
    }

    #[test]
    fn where_no_datagram_comes_through_no_further_test_waits_for_one() {
        let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], Key::open()).unwrap();
        let (at, stop) = (server.address().unwrap(), CancelToken::manual());
        thread::scope(|scope| {
            let terms = (Lifetime::Once, Clients::UpTo(1));
            scope.spawn(move || server.serve(terms, stop, &mut |_| ()));
            let mut client =
                Client::connect(&[at], &Key::open(), stop, QUEUE_NS, &mut |_| ()).unwrap();
            client.datagrams_come = Some(false);
            let spec = Spec { window_ns: 1_000_000, datagram_bytes: 100, ..Spec::one_stream() };
            let told = client.run(Spec { protocol: Protocol::Udp, ..spec }).unwrap_err();
            client.run(spec).unwrap();
            stop.cancel();
            assert!(
                matches!(&told, TrialError::Failed(text) if text.contains("firewall")),
                "{told}"
            );
        });
    }

    #[test]
    fn proofs_of_a_client_that_waits_for_others_fit_into_a_socket() {
        let (mut all_ns, mut wait_ns, mut count) = (0, 0, 0);
        while all_ns < PATIENCE_NS {
            wait_ns = next_proofs_ns(wait_ns);
            (all_ns, count) = (all_ns + wait_ns, count + 1);
        }
        // Each takes 768 bytes of 212,992, the usual size.
        assert!((50..200).contains(&count), "{count}");
    }

    #[test]
    fn a_server_that_says_nothing_was_waited_for_as_long_as_is_told() {
        let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], Key::open()).unwrap();
        let (at, stop) = (server.address().unwrap(), CancelToken::manual());
        let terms = (Lifetime::Once, Clients::UpTo(1));
        thread::scope(|scope| {
            scope.spawn(move || server.serve(terms, stop, &mut |_| ()));
            let mut client =
                Client::connect(&[at], &Key::open(), stop, QUEUE_NS, &mut |_| ()).unwrap();
            let told = until_ready(&mut client.channel, 20_000_000, || ()).unwrap_err();
            stop.cancel();
            assert!(matches!(told, ChannelError::Silent(20)), "{told}");
        });
    }

    #[test]
    fn datagrams_go_to_nobody_but_the_client() {
        let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], Key::open()).unwrap();
        let (at, stop) = (server.address().unwrap(), CancelToken::manual());
        let terms = (Lifetime::Once, Clients::UpTo(1));
        thread::scope(|scope| {
            scope.spawn(move || server.serve(terms, stop, &mut |_| ()));
            let mut client =
                Client::connect(&[at], &Key::open(), stop, QUEUE_NS, &mut |_| ()).unwrap();
            let spec = Spec { protocol: Protocol::Udp, datagram_bytes: 100, ..Spec::one_stream() };
            let spec = Spec { direction: Direction::Down, test: 1, window_ns: 1_000_000, ..spec };
            client.channel.send(&Frame::Prepare { spec }).unwrap();
            assert_eq!(client.channel.receive(ANSWER_NS).unwrap(), Frame::Prepared);
            // A proof whose sender is forged, as far as one can do that here.
            let proof = Proof { test: 1, flow: 0 }.encode(&client.key);
            let [forged, own] = ["127.0.0.2:0", "127.0.0.1:0"].map(|from| {
                let socket = UdpSocket::bind(from).unwrap();
                socket.connect(at).unwrap();
                socket.send(&proof).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                socket
            });
            while !matches!(client.channel.receive(1_000_000), Ok(Frame::Ready)) {
                own.send(&proof).unwrap();
            }
            client.channel.send(&Frame::Go).unwrap();
            assert_eq!(own.recv(&mut [0; 200]).unwrap(), 100);
            forged.set_nonblocking(true).unwrap();
            assert!(forged.recv(&mut [0; 200]).is_err(), "who asked for nothing gets nothing");
            stop.cancel();
        });
    }
}
