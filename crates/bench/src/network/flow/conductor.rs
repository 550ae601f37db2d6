//! The coordinator of a test: when the window begins and ends, what the two ends tell each other
//! afterwards, and whether the other end is there at all.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};

use flatout_sys::clock::monotonic_ns;

use super::readings::Readings;
use super::{End, FlowError, Gate, Gauge, INTERVALS, LaneEnd, Seen, Socket, Stage, Wired};
use crate::network::channel::{Channel, ChannelError};
use crate::network::frame::Frame;
use crate::network::spec::{Cargo, Flow, Protocol, Spec};

/// How long the other end may take to say that it has ended.
const FINISH_NS: u64 = 5_000_000_000;
/// Longest time of a test that ends by bytes.
const MAX_BY_BYTES_NS: u64 = 60_000_000_000;
/// How often the coordinator looks whether all is well.
const LOOK_NS: u64 = 20_000_000;

/// The coordinator's view.
pub(super) struct Test<'t> {
    pub(super) end: End,
    pub(super) stage: &'t Stage,
    pub(super) wired: &'t [Wired],
    pub(super) gauges: &'t [Gauge],
    pub(super) channel: &'t mut Channel,
}

impl Test<'_> {
    /// Runs the test once all threads are there.
    pub(super) fn conduct(
        &mut self,
        begin: impl FnOnce(&mut Channel) -> Result<(), ChannelError>,
        lanes: &[ScopedJoinHandle<'_, LaneEnd>],
    ) -> Result<Seen, FlowError> {
        begin(self.channel)?;
        self.stage.open(Gate::Run);
        let mut readings = Readings::begin();
        let mut early = Vec::new();
        if self.stage.spec.bytes > 0 {
            self.until_sent(&mut readings, lanes, &mut early)?;
        } else {
            self.through_window(&mut readings, &mut early)?;
            self.until_answered(lanes, &mut early)?;
        }
        let mut seen = readings.seen(self.end, self.wired);
        self.close(&mut early)?;
        seen.flows.sort_by_key(|report| report.flow);
        Ok(seen)
    }

    /// By time: reads the counters at the edges of the window and in between.
    fn through_window(
        &mut self,
        readings: &mut Readings,
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

    /// The last questions get their answers before the other end hears that it may stop.
    fn until_answered(
        &mut self,
        lanes: &[ScopedJoinHandle<'_, LaneEnd>],
        early: &mut Vec<Frame>,
    ) -> Result<(), FlowError> {
        let deadline_ns = self.stage.elapsed_ns().saturating_add(FINISH_NS);
        let asks = |wired: &Wired| self.end == End::Client && wired.flow.cargo == Cargo::Ping;
        let asking: Vec<bool> = self.wired.iter().map(asks).collect();
        while lanes.iter().zip(&asking).any(|(lane, asks)| *asks && !lane.is_finished()) {
            if self.stage.elapsed_ns() > deadline_ns {
                return Err(FlowError::Broken("the last answers did not come".to_owned()));
            }
            self.sleep_until(self.stage.elapsed_ns() + 1_000_000, early)?;
        }
        Ok(())
    }

    /// By bytes: the window is from the beginning to the last byte.
    fn until_sent(
        &mut self,
        readings: &mut Readings,
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

    /// Each end says that its window is over and goes on sending until it hears that of the other:
    /// no window, however late it began, sees a sender that has ended. Then both tell each other
    /// what they sent, and receivers of datagrams wait for it.
    fn close(&mut self, early: &mut Vec<Frame>) -> Result<(), FlowError> {
        self.channel.send(&Frame::Finished)?;
        let mut early = std::mem::take(early).into_iter();
        let patience_ns = if self.stage.spec.bytes > 0 { MAX_BY_BYTES_NS } else { FINISH_NS };
        match early.next().map_or_else(|| self.channel.receive(patience_ns), Ok)? {
            Frame::Finished => {}
            _ => return Err(ChannelError::Garbage.into()),
        }
        self.stage.stop.store(true, Ordering::Relaxed);
        for wired in self.wired {
            let is_datagrams =
                matches!(wired.socket, Socket::Udp(_)) && wired.flow.cargo != Cargo::Ping;
            if !is_datagrams && self.stage.spec.bytes == 0 {
                flatout_sys::socket::stop(wired.socket.as_fd());
            }
        }
        for (wired, gauge) in self.wired.iter().zip(self.gauges) {
            if self.end.sends(wired.flow.cargo) && wired.flow.protocol == Protocol::Udp {
                let datagrams = datagrams_sent(gauge)?;
                self.channel.send(&Frame::Sent { flow: wired.flow.index, datagrams })?;
            }
        }
        self.channel.send(&Frame::Finished)?;
        loop {
            match early.next().map_or_else(|| self.channel.receive(FINISH_NS), Ok)? {
                Frame::Sent { flow, datagrams } => self.expect(flow, datagrams)?,
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
