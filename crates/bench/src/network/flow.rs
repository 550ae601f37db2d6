//! One test as one end runs it: a thread per connection, and a coordinator that reads their
//! counters when the window begins, at each interval, and when it ends.
//!
//! Both ends run the same code; which end it is decides which flows it sends. Counters are read
//! beside a clock, so a coordinator that wakes late makes the window longer, not the rate wrong.
//! The coordinator: `flow/conductor.rs`. The threads: `flow/bulk.rs` (TCP), `flow/datagrams.rs` (UDP), `flow/ping.rs` (latency).

pub mod bulk;
mod conductor;
pub mod datagrams;
pub mod ping;
pub mod readings;

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use flatout_measure::histogram::Histogram;
use flatout_sys::affinity;
use flatout_sys::clock::{monotonic_ns, thread_cpu_ns};

use super::channel::{Channel, ChannelError};
use super::frame::{EndReport, FlowReport, TcpPoint};
use super::spec::{Cargo, Flow, Placement, Spec};

/// Intervals of a window.
pub const INTERVALS: u64 = 5;
/// How long what is missing is waited for, once its sender has ended. On a busy machine the kernel's
/// thread that carries loopback waited more than 60 ms for a CPU.
pub const GRACE_NS: u64 = 300_000_000;

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
    pub fn sends(self, cargo: Cargo) -> bool {
        matches!((self, cargo), (Self::Client, Cargo::Up) | (Self::Server, Cargo::Down))
    }

    /// Whether this end receives the bulk of a flow.
    pub fn receives(self, cargo: Cargo) -> bool {
        matches!((self, cargo), (Self::Client, Cargo::Down) | (Self::Server, Cargo::Up))
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

/// A flow and its socket.
#[derive(Debug)]
pub struct Wired {
    /// The flow.
    pub flow: Flow,
    /// Its socket.
    pub socket: Socket,
}

/// What the thread of a flow shares with the coordinator. Each has cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Gauge {
    /// Bytes received so far.
    pub bytes: AtomicU64,
    /// Datagrams: of a receiver, how many the other end says that it sent; of a sender that has
    /// ended, one more than it sent.
    pub expected: AtomicU64,
}

/// What all threads of a test look at.
#[derive(Debug)]
pub struct Stage {
    /// The test.
    pub spec: Spec,
    /// When it began; 0 before.
    pub start_ns: AtomicU64,
    /// Senders end.
    pub stop: AtomicBool,
    /// Receivers of datagrams know what they wait for.
    pub closing: AtomicBool,
    /// Nobody needs the test any more.
    pub aborted: AtomicBool,
    gate: Mutex<Option<bool>>,
    opened: Condvar,
}

impl Stage {
    fn new(spec: Spec) -> Self {
        Self {
            spec,
            start_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            gate: Mutex::new(None),
            opened: Condvar::new(),
        }
    }

    /// Lets the threads begin, or sends them home.
    fn open(&self, goes: Gate) {
        if goes == Gate::Run {
            self.start_ns.store(monotonic_ns(), Ordering::Release);
        }
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(goes == Gate::Run);
        self.opened.notify_all();
    }

    /// Waits for the beginning. False: go home.
    pub fn wait(&self) -> bool {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(goes) = *gate {
                return goes;
            }
            gate = self.opened.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether senders should end.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Nanoseconds since the beginning.
    pub fn elapsed_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns.load(Ordering::Acquire))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Run,
    Home,
}

/// What the thread of a flow has to say in the end.
#[derive(Debug, Default)]
pub struct LaneEnd {
    /// Its report.
    pub report: FlowReport,
    /// How long each answer took.
    pub latencies: Option<Histogram>,
    /// What went wrong.
    pub failure: Option<String>,
    /// What this kernel cannot do.
    pub unsupported: Option<String>,
}

/// What one end saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Each flow.
    pub flows: Vec<FlowReport>,
    /// The whole.
    pub end: EndReport,
    /// Bytes received until each moment since the beginning.
    pub curve: Vec<[u64; 2]>,
    /// TCP of the flows that this end sent.
    pub tcp: Vec<(u16, Vec<TcpPoint>)>,
    /// Latencies of all pings.
    pub latencies: Option<Histogram>,
}

/// Why a test gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The control channel broke, or the other end refused.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// This end could not do it.
    #[error("{0}")]
    Failed(String),
    /// The kernel of this end has no such call, or denies it.
    #[error("{0}")]
    Unsupported(String),
    /// The two ends no longer know what the other one does: the session is over.
    #[error("{0}")]
    Broken(String),
}

/// Runs a test whose connections are all there. `begin` exchanges the last words and returns when
/// the test begins.
pub fn run(
    end: End,
    spec: Spec,
    wired: &[Wired],
    channel: &mut Channel,
    begin: impl FnOnce(&mut Channel) -> Result<(), ChannelError>,
) -> Result<Seen, FlowError> {
    let stage = Stage::new(spec);
    let gauges: Vec<Gauge> = wired.iter().map(|_| Gauge::default()).collect();
    thread::scope(|scope| {
        let lanes: Result<Vec<_>, io::Error> = wired
            .iter()
            .zip(&gauges)
            .map(|(wired, gauge)| {
                let stage = &stage;
                thread::Builder::new()
                    .name("flow".to_owned())
                    .spawn_scoped(scope, move || lane(end, wired, gauge, stage))
            })
            .collect();
        let lanes = match lanes {
            Ok(lanes) => lanes,
            Err(error) => {
                stage.open(Gate::Home);
                return Err(FlowError::Failed(format!("cannot start a thread: {error}")));
            }
        };
        let mut test = conductor::Test { end, stage: &stage, wired, gauges: &gauges, channel };
        let result = test.conduct(begin, &lanes);
        if result.is_err() {
            stage.aborted.store(true, Ordering::Relaxed);
            stage.stop.store(true, Ordering::Relaxed);
            stage.closing.store(true, Ordering::Relaxed);
            stage.open(Gate::Home);
            stop_all(wired);
        }
        let ends = lanes.into_iter().map(join).collect::<Vec<_>>();
        result.and_then(|seen| finish(seen, ends))
    })
}

fn join(lane: ScopedJoinHandle<'_, LaneEnd>) -> LaneEnd {
    lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn stop_all(wired: &[Wired]) {
    wired.iter().for_each(|wired| flatout_sys::socket::stop(wired.socket.as_fd()));
}

/// Puts the reports of the threads together.
fn finish(mut seen: Seen, ends: Vec<LaneEnd>) -> Result<Seen, FlowError> {
    let (mut failure, mut unsupported) = (None, None);
    for end in ends {
        failure = failure.or(end.failure);
        unsupported = unsupported.or(end.unsupported);
        if let Some(latencies) = end.latencies {
            match &mut seen.latencies {
                Some(all) => all.merge(&latencies),
                all => *all = Some(latencies),
            }
        }
        if let Some(report) = seen.flows.iter_mut().find(|known| known.flow == end.report.flow) {
            let FlowReport { window_bytes, tcp, .. } = *report;
            *report = FlowReport { window_bytes, tcp, ..end.report };
        }
    }
    match (unsupported, failure) {
        (Some(text), _) => Err(FlowError::Unsupported(text)),
        (_, Some(text)) => Err(FlowError::Failed(text)),
        (None, None) => Ok(seen),
    }
}

/// The work of one flow's thread, where it is placed.
fn lane(end: End, wired: &Wired, gauge: &Gauge, stage: &Stage) -> LaneEnd {
    let flow = wired.flow;
    pin(end, &stage.spec, flow);
    let mut result = LaneEnd::default();
    let done = match (&wired.socket, flow.cargo, end) {
        (Socket::Tcp(stream), cargo, end) if end.sends(cargo) => {
            bulk::send(stream, stage, &mut result)
        }
        (Socket::Tcp(stream), Cargo::Up | Cargo::Down, _) => {
            bulk::receive(stream, gauge, stage, &mut result)
        }
        (Socket::Udp(socket), cargo, end) if end.sends(cargo) => {
            let done = datagrams::send(socket, flow.index, stage, &mut result);
            gauge.expected.store(result.report.account.sent + 1, Ordering::Release);
            done
        }
        (Socket::Udp(socket), Cargo::Up | Cargo::Down, _) => {
            datagrams::receive(socket, flow.index, gauge, stage, &mut result)
        }
        (socket, Cargo::Ping, End::Client) => ping::ask(socket.as_fd(), flow, stage, &mut result),
        (socket, Cargo::Ping, End::Server) => ping::answer(socket.as_fd(), flow, stage),
    };
    result.report.flow = flow.index;
    if let Err(error) = done {
        // Who is told to stop in the middle of a call has not failed.
        if !stage.is_over() {
            result.failure.get_or_insert(format!("{}: {error}", describe(flow)));
        }
    }
    result.report.cpu_ns = thread_cpu_ns();
    if result.report.lane_ns == 0 {
        result.report.lane_ns = stage.elapsed_ns();
    }
    result
}

fn describe(flow: Flow) -> String {
    format!("{} connection {}", flow.protocol.name(), flow.index)
}

/// Each end takes the allowed CPUs in turn; where both share them, the server begins with the
/// second, so that the two ends of a flow have a CPU each, unless they are to have one together.
fn pin(end: End, spec: &Spec, flow: Flow) {
    if spec.placement == Placement::Free {
        return;
    }
    let Ok(cpus) = affinity::allowed_cpus() else { return };
    let is_apart = spec.placement == Placement::Apart && spec.shared_cpus != 0;
    let shift = usize::from(end == End::Server && is_apart);
    if let Some(&cpu) = cpus.get((usize::from(flow.index) + shift) % cpus.len().max(1)) {
        // Not being tied costs steadiness only.
        let _ = affinity::pin_to(cpu);
    }
}
