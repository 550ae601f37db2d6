//! One client's session, as the server sees it: test after test until the client says goodbye, is
//! silent for too long, or its time is over.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flatout_io::cause_text;
use flatout_sys::socket::shared_udp;
use flatout_sys::{CancelToken, monotonic_ns};

use super::channel::{Channel, ChannelError};
use super::flow::round::Part;
use super::flow::{self, Connection, End, Seen, Socket};
use super::frame::{EndReport, Frame};
use super::server::Shortage;
use super::server::group::Group;
use super::server::occupancy::Occupancy;
use super::spec::{Flow, Protocol, Spec};
use super::token::{Proof, random};
use crate::{counted, workers};

/// How long a client may say nothing between tests while others may want to be served.
pub const IDLE_NS: u64 = 5_000_000_000;
/// How long each data connection of a test may take to arrive after the one before.
pub const GATHER_NS: u64 = 5_000_000_000;
/// What is said where no datagram comes in that time.
pub const NO_DATAGRAMS: &str =
    "no datagram of a stream arrived in 5 s: does a firewall let UDP through?";
/// The same where the server lacks something, and time for others to leave it some.
const SHORTAGE_NS: u64 = 500_000_000;
/// The longest session, whatever happens in it.
pub const SESSION_NS: u64 = 3_600_000_000_000;
/// What is said at its end.
pub const SESSION_OVER: &str = "the session has taken an hour, which is the server's limit";
/// How often one who waits for connections looks whether the client is still there.
const LOOK: Duration = Duration::from_millis(10);
/// Datagrams that a socket has got before it was connected, at most: more than it holds.
const MOST_BETWEEN: u32 = 1 << 14;
/// How long a datagram is waited for that a connected socket has not got yet.
pub const DATAGRAM_TIMEOUT: Duration = Duration::from_millis(20);

/// A data connection that has proved a session.
pub enum Arrival {
    /// Over TCP.
    Stream(TcpStream),
    /// Where a stream of datagrams comes from; most come more than once.
    Datagrams(SocketAddr),
}

/// A client's session.
pub struct Session {
    /// The control channel.
    pub channel: Channel,
    /// The key of its data connections.
    pub key: [u8; 32],
    /// Its data connections.
    pub arrivals: Receiver<(Proof, Arrival)>,
    /// The wish to stop.
    pub cancel: CancelToken,
    /// How long the client may say nothing between tests.
    pub idle_ns: u64,
    /// How long it may take.
    pub most_ns: u64,
    /// What its connections lack.
    pub shortage: Shortage,
    /// The tests of all sessions.
    pub occupancy: Occupancy,
    /// Those that it is measured with, if it is.
    pub group: Option<Arc<Group>>,
}

/// What tells this machine from others, whatever its addresses.
pub fn machine() -> u64 {
    static MACHINE: OnceLock<u64> = OnceLock::new();
    *MACHINE.get_or_init(|| machine_of(Path::new("/proc/sys/kernel/random/boot_id")))
}

/// From the kernel's boot id. Where a sandbox has none this process stands for the machine: two that have
/// none need not be one.
fn machine_of(boot_id: &Path) -> u64 {
    let id = std::fs::read(boot_id).or_else(|_| random::<16>().map(Vec::from));
    let hash = blake3::hash(&id.unwrap_or_default());
    let head: [u8; 8] = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(head)
}

impl Session {
    /// Serves the client until it goes. Returns how many tests it ran.
    ///
    /// Errors: why it ended otherwise than by goodbye.
    pub fn serve(&mut self) -> Result<u32, ChannelError> {
        let served = self.try_serve();
        if let Some(group) = &self.group {
            group.leave();
        }
        served
    }

    fn try_serve(&mut self) -> Result<u32, ChannelError> {
        let end_ns = monotonic_ns().saturating_add(self.most_ns);
        let together = self.group.as_ref().map_or(0, |group| group.clients);
        self.channel.send(&Frame::Admitted { key: self.key, machine: machine(), together })?;
        let (mut tests, mut last_test) = (0, 0);
        loop {
            let left_ns = end_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                let text = SESSION_OVER.to_owned();
                self.channel.send(&Frame::Refused { text: text.clone() })?;
                return Err(ChannelError::Broken(text));
            }
            let said = match self.channel.receive(self.idle_ns.min(left_ns)) {
                Err(ChannelError::Silent(_)) if left_ns < self.idle_ns => continue,
                said => said?,
            };
            match said {
                Frame::Ping { number } => self.channel.send(&Frame::Pong { number })?,
                Frame::Bye => return Ok(tests),
                Frame::Prepare { spec } if spec.test > last_test => {
                    last_test = spec.test;
                    tests += 1;
                    self.test(spec)?;
                }
                _ => return Err(ChannelError::Garbage),
            }
        }
    }

    fn test(&mut self, spec: Spec) -> Result<(), ChannelError> {
        if let Err(text) = spec.check() {
            return self.channel.send(&Frame::Refused { text });
        }
        let stay = match self.occupancy.take(spec.flows().len(), spec.buffer_bytes()) {
            Ok(stay) => stay,
            Err(text) => return self.channel.send(&Frame::Refused { text }),
        };
        // What is left of a test before has no business in this one.
        while self.arrivals.try_recv().is_ok() {}
        // What is lacking from now on, be it before this thread looks.
        let begun_ns = monotonic_ns();
        self.channel.send(&Frame::Prepared)?;
        let connections: Arc<[Connection]> = match self.gather(&spec, begun_ns) {
            Ok(connections) => connections.into(),
            Err(ChannelError::Failed(text)) => {
                return self.channel.send(&Frame::Refused { text });
            }
            Err(error) => return Err(error),
        };
        let (group, cancel) = (self.group.clone(), self.cancel);
        let mut round = None;
        let begin = |channel: &mut Channel| {
            let ready = group.map(|group| group.ready(&spec, || is_there(channel, cancel)));
            round = ready.transpose()?;
            channel.send(&Frame::Ready)?;
            match channel.receive(GATHER_NS)? {
                Frame::Go => stay.begin(),
                _ => return Err(ChannelError::Garbage),
            }
            Ok(round.clone().map(|round| Part { round, connections: connections.clone() }))
        };
        let end = (End::Server, stay.first_cpu);
        match flow::run(end, spec, &connections, &mut self.channel, begin) {
            Ok(Seen { flows, end, .. }) => {
                let sum = round.map(|round| round.sum()).unwrap_or_default();
                let report = EndReport { others: stay.end(), sum, ..end };
                for report in flows {
                    self.channel.send(&Frame::Flow { report })?;
                }
                self.channel.send(&Frame::End { report })
            }
            Err(ChannelError::Refused(text) | ChannelError::Failed(text)) => {
                self.channel.send(&Frame::Refused { text })
            }
            Err(ChannelError::Unsupported(text)) => self.channel.send(&Frame::Unsupported { text }),
            Err(ChannelError::OthersLeft) => self.channel.send(&Frame::Bye),
            Err(error) => {
                if let ChannelError::Broken(text) = &error {
                    self.channel.send(&Frame::Refused { text: text.clone() })?;
                }
                Err(error)
            }
        }
    }

    /// Waits for all data connections of a test. Sockets of datagrams share the server's port: one is made for
    /// each peer that has proved a stream, and connected to it; nothing is sent to anybody before.
    fn gather(&mut self, spec: &Spec, begun_ns: u64) -> Result<Vec<Connection>, ChannelError> {
        let stream = self.channel.stream();
        let (address, peer) = stream.local_addr().and_then(|own| Ok((own, stream.peer_addr()?)))?;
        let flows = spec.flows().into_iter();
        let mut awaited: BTreeMap<u16, Flow> = flows.map(|flow| (flow.index, flow)).collect();
        let mut connections = Vec::new();
        let mut last_ns = begun_ns;
        while let Some(next) = awaited.values().next() {
            self.look((begun_ns, last_ns), (awaited.len(), next.protocol))?;
            let (proof, arrival) = match self.arrivals.recv_timeout(LOOK) {
                Ok((proof, arrival)) if proof.test == spec.test => (proof, arrival),
                Ok(_) | Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(ChannelError::Cancelled),
            };
            // A flow is taken once: a proof that was recorded opens nothing later.
            let protocol = awaited.get(&proof.flow).map(|flow| flow.protocol);
            let socket = match (protocol, arrival) {
                (Some(Protocol::Tcp), Arrival::Stream(stream)) => {
                    ready_tcp(&stream).map(|()| Socket::Tcp(stream))
                }
                // Who sends a proof may have forged where it comes from; who is connected cannot.
                (Some(Protocol::Udp), Arrival::Datagrams(from)) if from.ip() == peer.ip() => {
                    datagrams_of(address, from).map(Socket::Udp)
                }
                _ => continue,
            };
            let socket = socket.map_err(|error| {
                ChannelError::Failed(format!("a data connection: {}", cause_text(&error)))
            })?;
            last_ns = monotonic_ns();
            let flow = awaited.remove(&proof.flow);
            connections.extend(flow.map(|flow| Connection::new(flow, socket)));
        }
        connections.sort_by_key(|connection| connection.flow.index);
        Ok(connections)
    }

    /// Whether to go on waiting for connections, since a test has begun and the last one has come.
    fn look(
        &mut self,
        (begun_ns, last_ns): (u64, u64),
        (missing, protocol): (usize, Protocol),
    ) -> Result<(), ChannelError> {
        is_there(&mut self.channel, self.cancel)?;
        let shortage = workers::lock(&self.shortage).clone();
        let shortage = shortage.filter(|(at_ns, _)| *at_ns >= begun_ns);
        let patience_ns = if shortage.is_some() { SHORTAGE_NS } else { GATHER_NS };
        if monotonic_ns().saturating_sub(last_ns) > patience_ns {
            let text = match shortage {
                Some((_, shortage)) => shortage,
                None if protocol == Protocol::Udp => NO_DATAGRAMS.to_owned(),
                None => format!("{} did not arrive in 5 s", counted(missing, "data connection")),
            };
            return Err(ChannelError::Failed(text));
        }
        Ok(())
    }
}

/// Whether a client that has nothing to say is there.
fn is_there(channel: &mut Channel, cancel: CancelToken) -> Result<(), ChannelError> {
    match channel.poll()? {
        _ if cancel.is_cancelled() => Err(ChannelError::Cancelled),
        None => Ok(()),
        Some(_) => Err(ChannelError::Garbage),
    }
}

/// A socket at the server's port for the datagrams of one peer.
fn datagrams_of(address: SocketAddr, peer: SocketAddr) -> io::Result<UdpSocket> {
    let socket = shared_udp(address)?;
    socket.connect(peer)?;
    // What came in between may be anybody's.
    socket.set_nonblocking(true)?;
    let _dropped = (0..MOST_BETWEEN).take_while(|_| socket.recv(&mut [0; 1]).is_ok()).count();
    ready_udp(&socket)?;
    Ok(socket)
}

/// A data connection as the threads want it.
pub fn ready_tcp(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)
}

/// As [`ready_tcp`], for datagrams: a lost one must not be waited for.
pub fn ready_udp(socket: &UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(DATAGRAM_TIMEOUT))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::*;
    use crate::network::channel::{Inbox, answer};
    use crate::network::token::{Key, PROOF_BYTES};

    /// Both ends of an open channel.
    fn channels(cancel: CancelToken) -> (Channel, Channel) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        let open = move || {
            near.set_nonblocking(true).unwrap();
            Channel::open(near, &Key::open(), cancel, u64::MAX).unwrap()
        };
        thread::scope(|scope| {
            let client = scope.spawn(open);
            let mut inbox = Inbox::default();
            let first = loop {
                match inbox.first() {
                    Some(first) => break first,
                    None => assert!(inbox.fill(&far, PROOF_BYTES).unwrap()),
                }
            };
            let (message, noise) = answer(&first, &Key::open()).unwrap();
            far.write_all(&message).unwrap();
            far.set_nonblocking(true).unwrap();
            (client.join().unwrap(), Channel::of(far, noise, inbox, cancel))
        })
    }

    #[test]
    fn machines_without_a_boot_id_are_not_taken_for_one() {
        let [one, other] = ["/nowhere/boot_id"; 2].map(|path| machine_of(Path::new(path)));
        assert_ne!(one, other);
        assert_eq!(machine(), machine());
    }

    #[test]
    fn what_the_server_lacked_is_told_to_those_who_waited_then_whatever_others_begin() {
        let (cancel, shortage) = (CancelToken::manual(), Shortage::default());
        let ((_client, channel), (_arrivals, arrivals)) = (channels(cancel), sync_channel(1));
        let mut session = Session {
            channel,
            key: [0; 32],
            arrivals,
            cancel,
            idle_ns: IDLE_NS,
            most_ns: SESSION_NS,
            shortage: shortage.clone(),
            occupancy: Occupancy::default(),
            group: None,
        };
        let ago_ns = |ns| monotonic_ns() - ns;
        let before_ns = ago_ns(2 * SHORTAGE_NS);
        *workers::lock(&shortage) = Some((before_ns, "no descriptors".to_owned()));
        // This test began later.
        let missing = (2, Protocol::Tcp);
        session.look((before_ns + 1, ago_ns(2 * SHORTAGE_NS)), missing).unwrap();
        let told = session.look((before_ns, before_ns), missing).unwrap_err();
        assert_eq!(told.to_string(), "no descriptors");
        // Connections go on to come.
        session.look((before_ns, ago_ns(0)), missing).unwrap();
        *workers::lock(&shortage) = None;
        let late = (0, ago_ns(GATHER_NS + 1));
        let told = session.look(late, missing).unwrap_err();
        assert_eq!(told.to_string(), "2 data connections did not arrive in 5 s");
        let told = session.look(late, (2, Protocol::Udp)).unwrap_err();
        assert!(told.to_string().ends_with("let UDP through?"), "{told}");
    }
}
