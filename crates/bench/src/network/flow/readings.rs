//! What the coordinator of a test reads while it runs: bytes received, TCP's own account, and the
//! time of all CPUs.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use flatout_sys::socket::tcp_info;
use flatout_sys::steal::{self, CpuTimes};

use super::{Connection, Seen, Socket, Test};
use crate::network::frame::{EndReport, FlowReport, MAX_POINTS, TcpPoint};

/// Least time between readings of a test of unknown length, at its beginning.
const STEP_NS: u64 = 20_000_000;

/// All counters at a moment.
struct Reading {
    at_ns: u64,
    bytes: Vec<u64>,
    tcp: Vec<Option<TcpPoint>>,
}

/// The readings of one test.
pub(super) struct Readings<'t> {
    test: &'t Test,
    connections: &'t [Connection],
    taken: Vec<Reading>,
    times: Option<CpuTimes>,
    end: EndReport,
    step_ns: u64,
}

impl<'t> Readings<'t> {
    /// Nothing yet.
    pub(super) fn new(test: &'t Test, connections: &'t [Connection]) -> Self {
        let end = EndReport::default();
        Self { test, connections, taken: Vec::new(), times: None, end, step_ns: STEP_NS }
    }

    /// The window begins.
    pub(super) fn open(&mut self) {
        self.times = steal::cpu_times(Path::new("/"));
        self.take();
    }

    /// Reads all counters beside the clock. When there are as many readings as a frame takes, the
    /// last one is replaced.
    pub(super) fn take(&mut self) {
        let at_ns = self.test.elapsed_ns();
        let bytes = |of: &Connection| of.counters.bytes.load(Ordering::Relaxed);
        let bytes = self.connections.iter().map(bytes).collect();
        let tcp = |of: &Connection| tcp_point(&of.socket, at_ns);
        let tcp = self.connections.iter().map(tcp).collect();
        self.taken.truncate(MAX_POINTS - 1);
        self.taken.push(Reading { at_ns, bytes, tcp });
    }

    /// As [`Readings::take`], in a test whose length nobody knows: half of the readings are dropped
    /// when there are many.
    pub(super) fn thin(&mut self) {
        let last_ns = self.taken.last().map_or(0, |reading| reading.at_ns);
        if self.test.elapsed_ns() < last_ns + self.step_ns {
            return;
        }
        if self.taken.len() + 1 >= MAX_POINTS {
            self.step_ns *= 2;
            halve(&mut self.taken);
        }
        self.take();
    }

    /// The window has ended with the last reading.
    pub(super) fn close(&mut self) {
        let after = steal::cpu_times(Path::new("/"));
        if let [first, .., last] = &self.taken[..] {
            self.end.window_ns = last.at_ns.saturating_sub(first.at_ns);
        }
        let (Some(before), Some(after)) = (self.times, after) else { return };
        account(&mut self.end, &before, &after);
    }

    /// What there is to say, but for what only the threads know.
    pub(super) fn seen(&self) -> Seen {
        let end = self.test.end;
        let point = |reading: &Reading| [reading.at_ns, reading.bytes.iter().sum()];
        let curve = self.taken.iter().map(point).collect();
        let flow = |(index, Connection { flow, .. }): (usize, &Connection)| {
            let at = |reading: Option<&Reading>| reading.map_or(0, |reading| reading.bytes[index]);
            let bytes = at(self.taken.last()).saturating_sub(at(self.taken.first()));
            let sent = self.taken.iter().filter(|_| end.sends(flow.traffic));
            FlowReport {
                flow: flow.index,
                window_bytes: if end.receives(flow.traffic) { bytes } else { 0 },
                tcp: sent.filter_map(|reading| reading.tcp[index]).collect(),
                ..FlowReport::default()
            }
        };
        let flows = self.connections.iter().enumerate().map(flow).collect();
        Seen { flows, end: EndReport { curve, ..self.end.clone() }, ..Seen::default() }
    }
}

/// What all CPUs did between two looks. Ticks are whole, so that in a short window more can end than
/// its length holds: what there was is counted in the same ticks, and no share of it is above 1.
fn account(end: &mut EndReport, before: &CpuTimes, after: &CpuTimes) {
    let ns = |after: u64, before| after.saturating_sub(before).saturating_mul(steal::tick_ns());
    end.busy_ns = ns(after.busy(), before.busy());
    end.softirq_ns = ns(after.softirq, before.softirq);
    end.capacity_ns = ns(after.all, before.all).max(end.busy_ns);
}

/// Keeps every other point, the first among them.
fn halve<T>(points: &mut Vec<T>) {
    *points = std::mem::take(points).into_iter().step_by(2).collect();
}

fn tcp_point(socket: &Socket, now_ns: u64) -> Option<TcpPoint> {
    let Socket::Tcp(stream) = socket else { return None };
    let info = tcp_info::of(stream.as_fd()).ok()?;
    let us = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
    Some(TcpPoint {
        time_us: us(now_ns),
        retransmits: info.retransmits,
        segments: info.segments,
        round_trip_us: us(info.round_trip_ns),
        window_segments: info.window_segments,
        segment_bytes: info.segment_bytes,
        busy_us: us(info.busy_ns),
        receiver_limited_us: us(info.receiver_limited_ns),
        buffer_limited_us: us(info.buffer_limited_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_keeps_the_first_point() {
        let mut points = vec![0, 1, 2, 3, 4];
        halve(&mut points);
        assert_eq!(points, [0, 2, 4]);
    }

    #[test]
    fn cpus_are_not_busy_for_longer_than_there_was_time() {
        // 60 ms of two CPUs, in which each of them saw seven ticks end.
        let mut end = EndReport { window_ns: 60_000_000, ..EndReport::default() };
        let before = CpuTimes { user: 100, all: 150, cpus: 2, ..CpuTimes::default() };
        let after = CpuTimes { user: 114, all: 164, ..before };
        account(&mut end, &before, &after);
        assert_eq!(end.busy_ns, 14 * steal::tick_ns());
        assert_eq!(end.capacity_ns, end.busy_ns);
    }
}
