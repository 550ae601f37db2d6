//! One client's session, as the server sees it: test after test until the client says goodbye, is
//! silent for five seconds, or its time is over.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use flatout_io::cause_text;
use flatout_sys::socket::shared_udp;
use flatout_sys::{CancelToken, monotonic_ns};

use super::channel::{Channel, ChannelError};
use super::flow::round::Part;
use super::flow::{self, Connection, End, FlowError, Seen, Socket};
use super::frame::{EndReport, Frame};
use super::server::Shortage;
use super::server::group::{Group, Over};
use super::server::occupancy::Occupancy;
use super::spec::{Flow, Protocol, Spec};
use super::token::Proof;
use crate::counted;

/// How long a client may say nothing between tests.
pub const IDLE_NS: u64 = 5_000_000_000;
/// How long all data connections of a test may take to arrive.
pub const GATHER_NS: u64 = 5_000_000_000;
/// The same where the server lacks something, and time for others to leave it some.
const SHORTAGE_NS: u64 = 500_000_000;
/// The longest session, whatever happens in it.
pub const SESSION_NS: u64 = 3_600_000_000_000;
/// How often one who waits for connections looks whether the client is still there.
const LOOK: Duration = Duration::from_millis(10);
/// How long a datagram is waited for that a connected socket has not got yet.
pub const DATAGRAM_TIMEOUT: Duration = Duration::from_millis(20);

/// The data connections that have proved a session, as they come.
pub struct Arrivals {
    /// Over TCP.
    pub streams: Receiver<(Proof, TcpStream)>,
    /// Where streams of datagrams come from; most of them more than once.
    pub datagrams: Receiver<(Proof, SocketAddr)>,
}

/// A client's session.
pub struct Session {
    /// The control channel.
    pub channel: Channel,
    /// The key of its data connections.
    pub key: [u8; 32],
    /// Its data connections.
    pub arrivals: Arrivals,
    /// The wish to stop.
    pub cancel: CancelToken,
    /// What its connections lack.
    pub shortage: Shortage,
    /// The tests of all sessions.
    pub occupancy: Occupancy,
    /// Those that it is measured with, if it is.
    pub group: Option<Arc<Group>>,
}

/// What tells this machine from others, whatever its addresses: from the kernel's boot id.
pub fn machine() -> u64 {
    let id = std::fs::read(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
    let hash = blake3::hash(&id);
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
        let end_ns = monotonic_ns().saturating_add(SESSION_NS);
        let together = self.group.as_ref().map_or(0, |group| group.clients());
        self.channel.send(&Frame::Admitted { key: self.key, machine: machine(), together })?;
        let (mut tests, mut last_test) = (0, 0);
        loop {
            let left_ns = end_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                let text = "the session has taken an hour, which is the limit".to_owned();
                self.channel.send(&Frame::Refused { text: text.clone() })?;
                return Err(ChannelError::Refused(text));
            }
            match self.channel.receive(IDLE_NS.min(left_ns))? {
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
        let stay = match self.occupancy.take(spec.buffer_bytes()) {
            Ok(stay) => stay,
            Err(text) => return self.channel.send(&Frame::Refused { text }),
        };
        // What is left of a test before has no business in this one.
        while self.arrivals.streams.try_recv().is_ok() {}
        while self.arrivals.datagrams.try_recv().is_ok() {}
        // What is lacking from now on, be it before this thread looks.
        self.shortage.forget();
        self.channel.send(&Frame::Prepared)?;
        let connections: Arc<[Connection]> = match self.gather(&spec) {
            Ok(connections) => connections.into(),
            Err(FlowError::Channel(error)) => return Err(error),
            Err(error) => return self.channel.send(&Frame::Refused { text: error.to_string() }),
        };
        let (group, cancel) = (self.group.clone(), self.cancel);
        let mut round = None;
        let begin = |channel: &mut Channel| {
            let ready = group.map(|group| group.ready(&spec, || is_there(channel, cancel)));
            round = ready.transpose()?;
            let begun = round.as_ref().map(|round| round.clone().map_err(|_| ChannelError::Over));
            let begun = begun.transpose()?;
            channel.send(&Frame::Ready)?;
            match channel.receive(GATHER_NS)? {
                Frame::Go => stay.begin(),
                _ => return Err(ChannelError::Garbage),
            }
            Ok(begun.map(|round| Part { round, connections: connections.clone() }))
        };
        match flow::run(End::Server, spec, &connections, &mut self.channel, begin) {
            Ok(seen) => {
                let sum = round.and_then(Result::ok).map(|round| round.sum()).unwrap_or_default();
                let end = EndReport { others: stay.end(), sum, ..seen.end };
                self.report(Seen { end, ..seen })
            }
            Err(FlowError::Channel(ChannelError::Over)) => match round {
                Some(Err(Over::Refused(text))) => self.channel.send(&Frame::Refused { text }),
                _ => self.channel.send(&Frame::Bye),
            },
            Err(FlowError::Channel(error)) => Err(error),
            Err(error @ (FlowError::Failed(_) | FlowError::Unsupported(_))) => {
                self.channel.send(&Frame::Refused { text: error.to_string() })
            }
            Err(FlowError::Broken(text)) => {
                self.channel.send(&Frame::Refused { text: text.clone() })?;
                Err(ChannelError::Refused(text))
            }
        }
    }

    /// Waits for all data connections of a test.
    fn gather(&mut self, spec: &Spec) -> Result<Vec<Connection>, FlowError> {
        let begun_ns = monotonic_ns();
        let flows = spec.flows().into_iter().map(|flow| (flow.index, flow));
        let (udp, tcp) = flows.partition(|(_, flow)| flow.protocol == Protocol::Udp);
        let mut connections = self.gather_tcp(spec, tcp, begun_ns)?;
        connections.extend(self.gather_udp(spec, udp, begun_ns)?);
        connections.sort_by_key(|connection| connection.flow.index);
        Ok(connections)
    }

    fn gather_tcp(
        &mut self,
        spec: &Spec,
        mut awaited: BTreeMap<u16, Flow>,
        begun_ns: u64,
    ) -> Result<Vec<Connection>, FlowError> {
        let mut connections = Vec::new();
        while !awaited.is_empty() {
            self.look(begun_ns, awaited.len())?;
            match self.arrivals.streams.recv_timeout(LOOK) {
                Ok((proof, stream)) if proof.test == spec.test => {
                    // A flow is taken once: a proof that was recorded opens nothing later.
                    let Some(flow) = awaited.remove(&proof.flow) else { continue };
                    ready_tcp(&stream).map_err(|error| failed("a data connection", &error))?;
                    connections.push(Connection::new(flow, Socket::Tcp(stream)));
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ChannelError::Cancelled.into());
                }
            }
        }
        Ok(connections)
    }

    /// Sockets of datagrams share the server's port. One is made for each peer that has proved a stream,
    /// and connected to it; nothing is sent to anybody before.
    fn gather_udp(
        &mut self,
        spec: &Spec,
        mut awaited: BTreeMap<u16, Flow>,
        begun_ns: u64,
    ) -> Result<Vec<Connection>, FlowError> {
        let mut connections = Vec::new();
        let address =
            self.channel.stream().local_addr().map_err(|error| failed("getsockname", &error))?;
        while !awaited.is_empty() {
            self.look(begun_ns, awaited.len())?;
            match self.arrivals.datagrams.recv_timeout(LOOK) {
                Ok((proof, peer)) if proof.test == spec.test => {
                    let Some(flow) = awaited.remove(&proof.flow) else { continue };
                    let socket = datagrams_of(address, peer)
                        .map_err(|error| failed(&format!("UDP {address}"), &error))?;
                    connections.push(Connection::new(flow, Socket::Udp(socket)));
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ChannelError::Cancelled.into());
                }
            }
        }
        Ok(connections)
    }

    /// Whether to go on waiting for connections.
    fn look(&mut self, begun_ns: u64, missing: usize) -> Result<(), FlowError> {
        is_there(&mut self.channel, self.cancel)?;
        let shortage = self.shortage.text();
        let patience_ns = if shortage.is_some() { SHORTAGE_NS } else { GATHER_NS };
        if monotonic_ns().saturating_sub(begun_ns) > patience_ns {
            let text = match shortage {
                Some(shortage) => shortage,
                None => format!("{} did not arrive in 5 s", counted(missing, "data connection")),
            };
            return Err(FlowError::Failed(text));
        }
        Ok(())
    }

    fn report(&mut self, seen: Seen) -> Result<(), ChannelError> {
        for report in seen.flows {
            self.channel.send(&Frame::Flow { report })?;
        }
        self.channel.send(&Frame::End { report: seen.end })
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

fn failed(what: &str, error: &io::Error) -> FlowError {
    FlowError::Failed(format!("{what}: {}", cause_text(error)))
}

/// A socket at the server's port for the datagrams of one peer.
fn datagrams_of(address: SocketAddr, peer: SocketAddr) -> io::Result<UdpSocket> {
    let socket = shared_udp(address)?;
    socket.connect(peer)?;
    // What came in between may be anybody's.
    socket.set_nonblocking(true)?;
    while socket.recv(&mut [0; 1]).is_ok() {}
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
