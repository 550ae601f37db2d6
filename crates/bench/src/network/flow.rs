//! One test as one end runs it: a thread per connection, and a coordinator that reads their
//! counters when the window begins, at each interval, and when it ends.
//!
//! Both ends run the same code; which end it is decides which flows it sends. Counters are read
//! beside a clock, so a coordinator that wakes late makes the window longer, not the rate wrong.
//! The coordinator: `flow/coordinator.rs`. The threads: `flow/bulk.rs` (TCP), `flow/datagrams.rs` (UDP), `flow/ping.rs` (latency).

pub mod bulk;
mod coordinator;
mod datagrams;
mod ping;
mod readings;
pub mod round;

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use flatout_io::cause_text;
use flatout_measure::Histogram;
use flatout_sys::call::Window;
use flatout_sys::{affinity, monotonic_ns, run_queue, socket, thread_cpu_ns};

use super::channel::{Channel, ChannelError};
use super::frame::{EndReport, FlowReport};
use super::spec::{Flow, Placement, Protocol, Spec, Traffic};
use crate::{cores, workers};
use coordinator::Coordinator;
use round::Part;

/// How long what is missing is waited for, once its sender has ended. On a busy machine the kernel's
/// thread that carries loopback waited more than 60 ms for a CPU.
const GRACE_NS: u64 = 300_000_000;

/// Which end of a session this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The one that asks for tests.
    Client,
    /// The one that serves.
    Server,
}

impl End {
    /// Whether this end sends the bulk of a flow.
    pub fn sends(self, traffic: Traffic) -> bool {
        matches!((self, traffic), (Self::Client, Traffic::Up) | (Self::Server, Traffic::Down))
    }

    /// Whether this end receives the bulk of a flow.
    pub fn receives(self, traffic: Traffic) -> bool {
        traffic != Traffic::Ping && !self.sends(traffic)
    }
}

/// A connected socket of a flow.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// UDP, connected to its peer.
    Udp(UdpSocket),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}

/// The connection of a flow.
#[derive(Debug)]
pub struct Connection {
    /// The flow.
    pub flow: Flow,
    /// Its socket.
    pub socket: Socket,
    counters: Counters,
}

impl Connection {
    /// A connection that has carried nothing yet.
    pub fn new(flow: Flow, socket: Socket) -> Self {
        Self { flow, socket, counters: Counters::default() }
    }
}

/// What the thread of a flow shares with the coordinator, in cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    /// Bytes received so far.
    bytes: AtomicU64,
    /// Datagrams: of a receiver, how many the other end says that it sent; of a sender that has
    /// ended, one more than it sent.
    expected: AtomicU64,
}

/// A test as all threads of this end see it.
struct Test {
    end: End,
    spec: Spec,
    /// Senders end.
    stop: AtomicBool,
    /// Receivers of datagrams know what they wait for.
    closing: AtomicBool,
    /// Nobody needs the test any more.
    aborted: AtomicBool,
    /// When it began; `None`: there is no beginning.
    start_ns: OnceLock<Option<u64>>,
    /// The CPUs that flows are tied to, in turn, and with which the first one begins; none where they are
    /// free.
    cpus: (Vec<usize>, usize),
}

impl Test {
    fn new((end, first_cpu): (End, usize), spec: Spec) -> Self {
        let cpus = match spec.placement {
            Placement::Free => Vec::new(),
            _ => cores::in_turn(if spec.shares_cpus { spec.turn.into() } else { 0 })
                .unwrap_or_default(),
        };
        Self {
            end,
            spec,
            stop: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            start_ns: OnceLock::new(),
            cpus: (cpus, first_of((end, first_cpu), &spec)),
        }
    }

    /// Lets the threads begin.
    fn begin(&self) {
        let _later = self.start_ns.set(Some(monotonic_ns()));
    }

    /// Ends all threads, whether they have begun or not.
    fn abort(&self) {
        for flag in [&self.aborted, &self.stop, &self.closing] {
            flag.store(true, Ordering::Relaxed);
        }
        let _later = self.start_ns.set(None);
    }

    /// Waits for the beginning. False: there is none.
    fn wait(&self) -> bool {
        self.start_ns.wait().is_some()
    }

    /// When it began.
    fn start_ns(&self) -> u64 {
        self.start_ns.get().copied().flatten().unwrap_or_else(monotonic_ns)
    }

    /// Whether senders should end.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Nanoseconds since the beginning.
    fn elapsed_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns())
    }
}

/// What the thread of a flow has to say in the end.
#[derive(Debug, Default)]
struct WorkerEnd {
    report: FlowReport,
    /// How long each answer took.
    latencies: Option<Histogram>,
    windows: Vec<Window>,
    failure: Option<ChannelError>,
}

/// What one end saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Each flow, in their order.
    pub flows: Vec<FlowReport>,
    /// The whole.
    pub end: EndReport,
    /// Latencies of all pings.
    pub latencies: Option<Histogram>,
    /// Pings between two probes of the core, where these tell something.
    pub windows: Vec<Window>,
}

/// Runs a test whose connections are all there. `begin` exchanges the last words and returns when
/// the test begins, with what this client is of a round of several. `end` says with which CPU it begins.
pub fn run(
    end: (End, usize),
    spec: Spec,
    connections: &[Connection],
    channel: &mut Channel,
    begin: impl FnOnce(&mut Channel) -> Result<Option<Part>, ChannelError>,
) -> Result<Seen, ChannelError> {
    let test = &Test::new(end, spec);
    thread::scope(|scope| {
        let start = |connection| {
            let thread = thread::Builder::new().name("flow".to_owned());
            run_queue::spawn(scope, thread, move || work(test, connection))
        };
        let threads: io::Result<Vec<_>> = connections.iter().map(start).collect();
        let threads = threads.map_err(|error| {
            test.abort();
            ChannelError::Failed(format!("cannot start a thread: {}", cause_text(&error)))
        })?;
        let result = Coordinator::run(test, connections, &threads, channel, begin);
        if result.is_err() {
            test.abort();
            for connection in connections {
                socket::stop(connection.socket.as_fd());
            }
        }
        let ends = threads.into_iter().map(workers::join).collect();
        finish(result?, ends)
    })
}

/// Puts the reports of the threads together.
fn finish(mut seen: Seen, ends: Vec<WorkerEnd>) -> Result<Seen, ChannelError> {
    let mut failures = Vec::new();
    for (report, end) in seen.flows.iter_mut().zip(ends) {
        failures.extend(end.failure);
        seen.windows.extend(end.windows);
        if let Some(latencies) = end.latencies {
            match &mut seen.latencies {
                Some(all) => all.merge(&latencies),
                all => *all = Some(latencies),
            }
        }
        let FlowReport { window_bytes, tcp, .. } = std::mem::take(report);
        *report = FlowReport { window_bytes, tcp, ..end.report };
    }
    // What the kernel cannot do explains the other failures.
    let is_unsupported = |failure: &ChannelError| matches!(failure, ChannelError::Unsupported(_));
    failures.sort_by_key(|failure| !is_unsupported(failure));
    failures.into_iter().next().map_or(Ok(seen), Err)
}

/// The work of one flow's thread, where it is placed.
fn work(test: &Test, connection: &Connection) -> WorkerEnd {
    let Connection { flow, counters, .. } = connection;
    if let Some(cpu) = cpu_of(&test.cpus, flow.index) {
        // Not being tied costs steadiness only.
        let _ = affinity::pin_to(cpu);
    }
    let mut end = WorkerEnd::default();
    let sends = test.end.sends(flow.traffic);
    let done = match (&connection.socket, flow.traffic) {
        (socket, Traffic::Ping) if test.end == End::Client => {
            ping::ask(test, socket.as_fd(), *flow, &mut end)
        }
        (socket, Traffic::Ping) => ping::answer(test, socket.as_fd(), *flow),
        (Socket::Tcp(stream), _) if sends => bulk::send(test, stream, &mut end),
        (Socket::Tcp(stream), _) => bulk::receive(test, stream, counters, &mut end),
        (Socket::Udp(socket), _) if sends => {
            let done = datagrams::send(test, socket, flow.index, &mut end);
            counters.expected.store(end.report.account.sent + 1, Ordering::Release);
            done
        }
        (Socket::Udp(socket), _) => {
            datagrams::receive(test, socket, (flow.index, counters), &mut end)
        }
    };
    end.report.flow = flow.index;
    if let Err(error) = done {
        // Who is told to stop in the middle of a call has not failed.
        if !test.is_over() {
            let way = match flow.protocol {
                Protocol::Tcp => test.spec.sender.name(),
                Protocol::Udp => test.spec.offload.name(),
            };
            let (protocol, index, why) = (flow.protocol.name(), flow.index, cause_text(&error));
            let text = format!("{protocol} connection {index} ({way}): {why}");
            let is_lacking = end.report.total_bytes == 0 && socket::is_unsupported(&error);
            let failure = if is_lacking { ChannelError::Unsupported } else { ChannelError::Failed };
            end.failure.get_or_insert(failure(text));
        }
    }
    end.report.cpu_ns = thread_cpu_ns();
    if end.report.worker_ns == 0 {
        end.report.worker_ns = test.elapsed_ns();
    }
    end
}

/// Each end takes the CPUs in turn, a server those first that no other test of its has; where both share
/// them, it begins with the second, so that the two ends of a flow have a core each, unless they are to
/// have one CPU together.
fn first_of((end, first_cpu): (End, usize), spec: &Spec) -> usize {
    match spec.shares_cpus {
        true => usize::from(end == End::Server && spec.placement == Placement::Apart),
        false => first_cpu,
    }
}

fn cpu_of((cpus, first): &(Vec<usize>, usize), flow: u16) -> Option<usize> {
    cpus.get((usize::from(flow) + first) % cpus.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::network::spec::Offload;

    #[test]
    fn a_kernel_that_neither_cuts_datagrams_nor_joins_them_has_not_failed() {
        let spec = Spec { protocol: Protocol::Udp, offload: Offload::Both, ..Spec::one_stream() };
        let spec = Spec { placement: Placement::Free, datagram_bytes: 100, ..spec };
        for end in [End::Client, End::Server] {
            // A socket that has no such options.
            let (near, _far) = UnixDatagram::pair().unwrap();
            let socket = Socket::Udp(UdpSocket::from(OwnedFd::from(near)));
            let end = work(&Test::new((end, 0), spec), &Connection::new(spec.flows()[0], socket));
            let Some(ChannelError::Unsupported(text)) = end.failure else { panic!("{end:?}") };
            assert!(text.starts_with("udp connection 0 (gso+gro): "), "{text}");
        }
    }

    #[test]
    fn both_ends_of_a_flow_have_cores_of_their_own_where_siblings_have_adjacent_numbers() {
        let siblings = [vec![0, 1], vec![2, 3]];
        let order = cores::spread(&[vec![0, 1, 2, 3]], &siblings);
        let spec = Spec { shares_cpus: true, placement: Placement::Apart, ..Spec::one_stream() };
        let core = |cpu: usize| siblings.iter().position(|set| set.contains(&cpu));
        let cpu = |end, spec: &Spec, flow| {
            cpu_of(&(order.clone(), first_of((end, 2), spec)), flow).unwrap()
        };
        for flow in 0..4 {
            let [own, other] = [End::Client, End::Server].map(|end| core(cpu(end, &spec, flow)));
            assert_ne!(own, other, "flow {flow}");
        }
        let together = Spec { placement: Placement::Together, ..spec };
        let ends = [End::Client, End::Server].map(|end| cpu(end, &together, 0));
        assert_eq!(ends, [order[0]; 2]);
        // The client of another machine is not the only one that the server has.
        let other = Spec { shares_cpus: false, ..spec };
        let beside = [0, 1, 2].map(|flow| cpu(End::Server, &other, flow));
        assert_eq!(beside, [order[2], order[3], order[0]]);
    }
}
