//! One test as one end runs it: a thread per connection, and a coordinator that reads their
//! counters when the window begins, at each interval, and when it ends.
//!
//! Both ends run the same code; which end it is decides which flows it sends. Counters are read
//! beside a clock, so a coordinator that wakes late makes the window longer, not the rate wrong.
//! The threads: `flow/bulk.rs` (TCP), `flow/datagrams.rs` (UDP), `flow/ping.rs` (latency).

pub mod bulk;
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
use super::frame::{EndReport, FlowReport, Frame, TcpPoint};
use super::spec::{Cargo, Flow, Protocol, Spec};

/// Intervals of a window.
pub const INTERVALS: u64 = 5;
/// How long the other end may take to say that it has ended.
const FINISH_NS: u64 = 5_000_000_000;
/// Longest time of a test that ends by bytes.
pub const MAX_BY_BYTES_NS: u64 = 60_000_000_000;
/// How often the coordinator looks whether all is well.
const LOOK_NS: u64 = 20_000_000;
/// How long what is missing is waited for, once its sender has ended.
pub const GRACE_NS: u64 = 60_000_000;

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
    /// What went wrong at this end.
    pub failure: Option<String>,
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
        let mut test = Test { end, stage: &stage, wired, gauges: &gauges, channel };
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
    for end in ends {
        if let Some(text) = end.failure {
            seen.failure.get_or_insert(text);
        }
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
    match seen.failure.take() {
        Some(text) => Err(FlowError::Failed(text)),
        None => Ok(seen),
    }
}

/// The work of one flow's thread, tied to its CPU.
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
/// second, so that the two ends of a flow have a CPU each.
fn pin(end: End, spec: &Spec, flow: Flow) {
    let Ok(cpus) = affinity::allowed_cpus() else { return };
    let shift = usize::from(end == End::Server && spec.shared_cpus != 0);
    if let Some(&cpu) = cpus.get((usize::from(flow.index) + shift) % cpus.len().max(1)) {
        // Not being tied costs steadiness only.
        let _ = affinity::pin_to(cpu);
    }
}

/// The coordinator's view.
struct Test<'t> {
    end: End,
    stage: &'t Stage,
    wired: &'t [Wired],
    gauges: &'t [Gauge],
    channel: &'t mut Channel,
}

impl Test<'_> {
    fn conduct(
        &mut self,
        begin: impl FnOnce(&mut Channel) -> Result<(), ChannelError>,
        lanes: &[ScopedJoinHandle<'_, LaneEnd>],
    ) -> Result<Seen, FlowError> {
        begin(self.channel)?;
        self.stage.open(Gate::Run);
        let mut readings = readings::Readings::begin();
        let mut early = Vec::new();
        if self.stage.spec.bytes > 0 {
            self.until_sent(&mut readings, lanes, &mut early)?;
        } else {
            self.through_window(&mut readings, &mut early)?;
        }
        let mut seen = readings.seen(self.end, self.wired);
        self.close(&mut early)?;
        seen.flows.sort_by_key(|report| report.flow);
        Ok(seen)
    }

    /// By time: reads the counters at the edges of the window and in between.
    fn through_window(
        &mut self,
        readings: &mut readings::Readings,
        early: &mut Vec<Frame>,
    ) -> Result<(), FlowError> {
        let Spec { warm_ns, window_ns, .. } = self.stage.spec;
        self.sleep_until(warm_ns, early)?;
        readings.open(self.stage, self.wired, self.gauges);
        for interval in 1..=INTERVALS {
            self.sleep_until(warm_ns + window_ns * interval / INTERVALS, early)?;
            readings.take(self.stage, self.wired, self.gauges);
        }
        readings.close();
        self.sleep_until(self.stage.spec.whole_ns(), early)
    }

    /// By bytes: the window is from the beginning to the last byte.
    fn until_sent(
        &mut self,
        readings: &mut readings::Readings,
        lanes: &[ScopedJoinHandle<'_, LaneEnd>],
        early: &mut Vec<Frame>,
    ) -> Result<(), FlowError> {
        readings.open(self.stage, self.wired, self.gauges);
        let ends_alone = |flow: Flow| flow.protocol == Protocol::Tcp || self.end.sends(flow.cargo);
        let ends_alone: Vec<bool> = self.wired.iter().map(|wired| ends_alone(wired.flow)).collect();
        let is_working = |early: &[Frame]| {
            let mut lanes = lanes.iter().zip(&ends_alone);
            // A receiver of datagrams goes on until the sender's end says that it has ended.
            lanes.any(|(lane, alone)| match alone {
                true => !lane.is_finished(),
                false => !early.contains(&Frame::Finished),
            })
        };
        while is_working(early) {
            let elapsed_ns = self.stage.elapsed_ns();
            if elapsed_ns > MAX_BY_BYTES_NS {
                let text = format!("not sent in {} s", MAX_BY_BYTES_NS / 1_000_000_000);
                return Err(FlowError::Broken(text));
            }
            self.sleep_until(elapsed_ns + 1_000_000, early)?;
            readings.thin(self.stage, self.wired, self.gauges);
        }
        readings.take(self.stage, self.wired, self.gauges);
        readings.close();
        Ok(())
    }

    /// Sleeps until so long after the beginning, but looks now and then whether the other end is
    /// there.
    fn sleep_until(&mut self, after_ns: u64, early: &mut Vec<Frame>) -> Result<(), FlowError> {
        loop {
            let now_ns = self.stage.elapsed_ns();
            if now_ns >= after_ns {
                return Ok(());
            }
            let slice_ns = (after_ns - now_ns).min(LOOK_NS);
            match self.channel.receive(slice_ns) {
                Ok(frame) => early.push(frame),
                Err(ChannelError::Silent(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if early.len() > self.wired.len() + 1 {
                return Err(ChannelError::Garbage.into());
            }
        }
    }

    /// Senders end, both ends tell each other what they sent, receivers of datagrams wait for it.
    fn close(&mut self, early: &mut Vec<Frame>) -> Result<(), FlowError> {
        self.stage.stop.store(true, Ordering::Relaxed);
        for wired in self.wired {
            let is_datagrams =
                matches!(wired.socket, Socket::Udp(_)) && wired.flow.cargo != Cargo::Ping;
            if !is_datagrams && self.stage.spec.bytes == 0 {
                flatout_sys::socket::stop(wired.socket.as_fd());
            }
        }
        for (wired, gauge) in self.wired.iter().zip(self.gauges) {
            if self.end.sends(wired.flow.cargo) {
                let datagrams = match wired.flow.protocol {
                    Protocol::Tcp => 0,
                    Protocol::Udp => datagrams_sent(gauge)?,
                };
                let bytes = gauge.bytes.load(Ordering::Acquire);
                self.channel.send(&Frame::Sent { flow: wired.flow.index, datagrams, bytes })?;
            }
        }
        self.channel.send(&Frame::Finished)?;
        let mut early = std::mem::take(early).into_iter();
        loop {
            let frame = match early.next() {
                Some(frame) => frame,
                None => self.channel.receive(FINISH_NS)?,
            };
            match frame {
                Frame::Sent { flow, datagrams, .. } => self.expect(flow, datagrams)?,
                Frame::Finished => break,
                _ => return Err(ChannelError::Garbage.into()),
            }
        }
        self.stage.closing.store(true, Ordering::Release);
        Ok(())
    }

    fn expect(&self, flow: u16, datagrams: u64) -> Result<(), FlowError> {
        let place = self.wired.iter().position(|wired| wired.flow.index == flow);
        let place = place.filter(|&place| self.end.receives(self.wired[place].flow.cargo));
        let gauge = &self.gauges[place.ok_or(ChannelError::Garbage)?];
        gauge.expected.store(datagrams, Ordering::Release);
        Ok(())
    }
}

/// A sender of datagrams ends within a call or two of being told to; its number is complete when
/// it says so.
fn datagrams_sent(gauge: &Gauge) -> Result<u64, FlowError> {
    let deadline_ns = monotonic_ns().saturating_add(FINISH_NS);
    loop {
        match gauge.expected.load(Ordering::Acquire) {
            0 if monotonic_ns() > deadline_ns => {
                return Err(FlowError::Broken("a sender of datagrams did not end".to_owned()));
            }
            0 => thread::yield_now(),
            sent => return Ok(sent - 1),
        }
    }
}
