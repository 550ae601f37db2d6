//! The coordinator of a test: when the window begins and ends, what the two ends tell each other
//! afterwards, and whether the other end is there at all.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};

use flatout_sys::monotonic_ns;

use super::readings::Readings;
use super::round::Part;
use super::{Connection, Counters, End, Seen, Socket, Test, WorkerEnd};
use crate::network::channel::{Channel, ChannelError};
use crate::network::frame::Frame;
use crate::network::spec::{Protocol, Spec, Traffic, Work};

/// Intervals of a window.
const INTERVALS: u64 = 5;
/// How long the other end may take to say that it has ended.
const FINISH_NS: u64 = 5_000_000_000;
/// How long datagrams are sent on for a window of the other end that began late. Longer than that they
/// may be what fills a queue and keeps the other end's word, or this one's, from coming.
const LATE_NS: u64 = 1_000_000_000;
/// Longest time of a test that ends by bytes.
const MAX_BY_BYTES_NS: u64 = 60_000_000_000;
/// How often the coordinator looks whether all is well.
const CHECK_NS: u64 = 20_000_000;
/// How often it looks whether threads have ended.
const JOIN_NS: u64 = 1_000_000;

/// The thread of an end that speaks with the other one.
pub(super) struct Coordinator<'t, 's> {
    test: &'t Test,
    connections: &'t [Connection],
    workers: &'t [ScopedJoinHandle<'s, WorkerEnd>],
    channel: &'t mut Channel,
    /// What the other end said before it was asked.
    early: VecDeque<Frame>,
    /// When the other end said that its window was over, if it did before it was asked.
    finished_ns: Option<u64>,
    readings: Readings<'t>,
}

impl<'t, 's> Coordinator<'t, 's> {
    /// Runs the test once all threads are there.
    pub(super) fn run(
        test: &'t Test,
        connections: &'t [Connection],
        workers: &'t [ScopedJoinHandle<'s, WorkerEnd>],
        channel: &'t mut Channel,
        begin: impl FnOnce(&mut Channel) -> Result<Option<Part>, ChannelError>,
    ) -> Result<Seen, ChannelError> {
        let part = begin(channel)?;
        test.begin();
        let (early, finished_ns) = (VecDeque::new(), None);
        let readings = Readings::new(test, connections);
        let mut own = Self { test, connections, workers, channel, early, finished_ns, readings };
        if test.spec.bytes > 0 {
            own.until_sent()?;
        } else {
            let through = own.through_window(part.as_ref());
            through.inspect_err(|_| part.iter().for_each(Part::breaks_off))?;
            own.until_answered()?;
        }
        let seen = own.readings.seen();
        own.close()?;
        let due_ns = test.spec.warm_ns.saturating_add(test.spec.window_ns);
        match own.finished_ns {
            Some(finished_ns) if own.are_datagrams() && finished_ns + LATE_NS < due_ns => {
                let text = "the other end had stopped sending before the window was over";
                Err(ChannelError::Failed(text.to_owned()))
            }
            _ => Ok(seen),
        }
    }

    /// Whether datagrams are sent by time, as fast as it goes, with nothing that holds them back.
    fn are_datagrams(&self) -> bool {
        let spec = &self.test.spec;
        spec.protocol == Protocol::Udp && spec.work == Work::Throughput && spec.bytes == 0
    }

    /// By time: reads the counters at the edges of the window and in between.
    fn through_window(&mut self, part: Option<&Part>) -> Result<(), ChannelError> {
        let Spec { warm_ns, window_ns, .. } = self.test.spec;
        self.sleep_until(warm_ns)?;
        self.readings.open();
        part.inspect(|part| part.opened());
        for interval in 1..=INTERVALS {
            self.sleep_until(warm_ns + window_ns * interval / INTERVALS)?;
            part.filter(|_| interval == INTERVALS).inspect(|part| part.closes());
            self.readings.take();
        }
        self.readings.close();
        self.sleep_until(self.test.spec.whole_ns())
    }

    /// The last questions get their answers before the other end hears that it may stop.
    fn until_answered(&mut self) -> Result<(), ChannelError> {
        let deadline_ns = self.test.elapsed_ns().saturating_add(FINISH_NS);
        let asks = |of: &Connection| of.flow.traffic == Traffic::Ping;
        while self.test.end == End::Client && self.has_working(asks) {
            if self.test.elapsed_ns() > deadline_ns {
                return Err(ChannelError::Broken("the last answers did not come".to_owned()));
            }
            self.sleep_until(self.test.elapsed_ns() + JOIN_NS)?;
        }
        Ok(())
    }

    /// Whether the thread of one of these connections goes on.
    fn has_working(&self, mut of: impl FnMut(&Connection) -> bool) -> bool {
        let mut workers = self.workers.iter().zip(self.connections);
        workers.any(|(worker, connection)| of(connection) && !worker.is_finished())
    }

    /// By bytes: the window is from the beginning to the last byte.
    fn until_sent(&mut self) -> Result<(), ChannelError> {
        self.readings.open();
        // A receiver of datagrams goes on until the sender's end says that it has ended.
        let end = self.test.end;
        let ends_alone =
            |of: &Connection| of.flow.protocol == Protocol::Tcp || end.sends(of.flow.traffic);
        let has_dependent = !self.connections.iter().all(ends_alone);
        while self.has_working(ends_alone)
            || (has_dependent && !self.early.contains(&Frame::Finished))
        {
            let elapsed_ns = self.test.elapsed_ns();
            if elapsed_ns > MAX_BY_BYTES_NS {
                let text = format!("not sent in {} s", MAX_BY_BYTES_NS / 1_000_000_000);
                return Err(ChannelError::Broken(text));
            }
            self.sleep_until(elapsed_ns + JOIN_NS)?;
            self.readings.thin();
        }
        self.readings.take();
        self.readings.close();
        Ok(())
    }

    /// Sleeps until so long after the beginning, but looks now and then whether the other end is
    /// there.
    fn sleep_until(&mut self, after_ns: u64) -> Result<(), ChannelError> {
        loop {
            let now_ns = self.test.elapsed_ns();
            if now_ns >= after_ns {
                return Ok(());
            }
            match self.channel.receive((after_ns - now_ns).min(CHECK_NS)) {
                Ok(frame) => {
                    self.finished_ns.get_or_insert(self.test.elapsed_ns());
                    self.early.push_back(frame);
                }
                Err(ChannelError::Silent(_)) => {}
                Err(error) => return Err(error),
            }
            if self.early.len() > self.connections.len() + 1 {
                return Err(ChannelError::Garbage);
            }
        }
    }

    /// Each end says that its window is over and goes on sending until it hears that of the other:
    /// no window, however late it began, sees a sender that has ended. Then both tell each other
    /// what they sent, and receivers of datagrams wait for it.
    fn close(&mut self) -> Result<(), ChannelError> {
        let is_by_bytes = self.test.spec.bytes > 0;
        self.channel.send(&Frame::Finished)?;
        let mut next = self.next(if is_by_bytes { MAX_BY_BYTES_NS } else { LATE_NS });
        if let (false, Err(ChannelError::Silent(_))) = (is_by_bytes, &next) {
            self.test.stop.store(self.are_datagrams(), Ordering::Relaxed);
            next = self.next(FINISH_NS);
        }
        if next? != Frame::Finished {
            return Err(ChannelError::Garbage);
        }
        self.test.stop.store(true, Ordering::Relaxed);
        for Connection { flow, socket, counters } in self.connections {
            let is_datagrams = matches!(socket, Socket::Udp(_)) && flow.traffic != Traffic::Ping;
            if !is_datagrams && !is_by_bytes {
                flatout_sys::socket::stop(socket.as_fd());
            }
            if is_datagrams && self.test.end.sends(flow.traffic) {
                let datagrams = datagrams_sent(counters)?;
                self.channel.send(&Frame::Sent { flow: flow.index, datagrams })?;
            }
        }
        self.channel.send(&Frame::Finished)?;
        loop {
            match self.next(FINISH_NS)? {
                Frame::Sent { flow, datagrams } => self.expect(flow, datagrams)?,
                Frame::Finished => break,
                _ => return Err(ChannelError::Garbage),
            }
        }
        self.test.closing.store(true, Ordering::Release);
        Ok(())
    }

    /// The next frame, be it that it came early.
    fn next(&mut self, wait_ns: u64) -> Result<Frame, ChannelError> {
        self.early.pop_front().map_or_else(|| self.channel.receive(wait_ns), Ok)
    }

    fn expect(&self, flow: u16, datagrams: u64) -> Result<(), ChannelError> {
        let end = self.test.end;
        let is_meant = |of: &&Connection| of.flow.index == flow && end.receives(of.flow.traffic);
        let of = self.connections.iter().find(is_meant).ok_or(ChannelError::Garbage)?;
        of.counters.expected.store(datagrams, Ordering::Release);
        Ok(())
    }
}

/// A sender of datagrams ends within a call or two of being told to; its number is complete when
/// it says so.
fn datagrams_sent(counters: &Counters) -> Result<u64, ChannelError> {
    let deadline_ns = monotonic_ns().saturating_add(FINISH_NS);
    loop {
        match counters.expected.load(Ordering::Acquire) {
            0 if monotonic_ns() > deadline_ns => {
                return Err(ChannelError::Broken("a sender of datagrams did not end".to_owned()));
            }
            0 => thread::yield_now(),
            sent => return Ok(sent - 1),
        }
    }
}
