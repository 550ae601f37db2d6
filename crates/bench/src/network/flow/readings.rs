//! What the coordinator of a test reads while it runs: bytes received, TCP's own account, and the
//! time of all CPUs.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use flatout_sys::socket::tcp_info;
use flatout_sys::steal::{self, CpuTimes};

use super::{Connection, Seen, Socket, Test};
use crate::network::frame::{EndReport, FlowReport, MAX_POINTS, TcpPoint};
use crate::network::spec::Traffic;

/// Least time between readings of a test of unknown length, at its beginning.
const STEP_NS: u64 = 20_000_000;

/// The readings of one test.
#[derive(Debug)]
pub(super) struct Readings<'t> {
    test: &'t Test,
    connections: &'t [Connection],
    opened_ns: u64,
    first: Vec<u64>,
    last: Vec<u64>,
    curve: Vec<[u64; 2]>,
    tcp: Vec<Vec<TcpPoint>>,
    times: Option<CpuTimes>,
    end: EndReport,
    /// Least time between readings of a test of unknown length.
    step_ns: u64,
}

impl<'t> Readings<'t> {
    /// Nothing yet.
    pub(super) fn new(test: &'t Test, connections: &'t [Connection]) -> Self {
        Self {
            test,
            connections,
            opened_ns: 0,
            first: Vec::new(),
            last: Vec::new(),
            curve: Vec::new(),
            tcp: vec![Vec::new(); connections.len()],
            times: None,
            end: EndReport::default(),
            step_ns: STEP_NS,
        }
    }

    /// The window begins.
    pub(super) fn open(&mut self) {
        self.times = steal::cpu_times(Path::new("/"));
        self.take();
        self.first.clone_from(&self.last);
        self.opened_ns = self.curve.last().map_or(0, |point| point[0]);
    }

    /// Reads all counters beside the clock.
    pub(super) fn take(&mut self) {
        let now_ns = self.test.elapsed_ns();
        let bytes = |of: &Connection| of.counters.bytes.load(Ordering::Relaxed);
        self.last = self.connections.iter().map(bytes).collect();
        self.end.window_ns = now_ns.saturating_sub(self.opened_ns);
        if self.curve.len() == MAX_POINTS {
            return;
        }
        self.curve.push([now_ns, self.last.iter().sum()]);
        for (points, connection) in self.tcp.iter_mut().zip(self.connections) {
            points.extend(tcp_point(&connection.socket, now_ns));
        }
    }

    /// As [`Readings::take`], in a test whose length nobody knows: half of the points are dropped
    /// when there are many.
    pub(super) fn thin(&mut self) {
        let last_ns = self.curve.last().map_or(0, |point| point[0]);
        if self.test.elapsed_ns() < last_ns + self.step_ns {
            return;
        }
        if self.curve.len() + 1 >= MAX_POINTS {
            self.step_ns *= 2;
            halve(&mut self.curve);
            self.tcp.iter_mut().for_each(halve);
        }
        self.take();
    }

    /// The window ends.
    pub(super) fn close(&mut self) {
        let after = steal::cpu_times(Path::new("/"));
        let (Some(before), Some(after)) = (self.times, after) else { return };
        let ns = |ticks: u64| ticks.saturating_mul(steal::tick_ns());
        self.end.busy_ns = ns(after.busy().saturating_sub(before.busy()));
        self.end.softirq_ns = ns(after.softirq.saturating_sub(before.softirq));
        self.end.capacity_ns = self.end.window_ns.saturating_mul(after.cpus.into());
    }

    /// What there is to say, but for what only the threads know.
    pub(super) fn seen(&mut self) -> Seen {
        let end = self.test.end;
        let mut seen =
            Seen { end: self.end, curve: std::mem::take(&mut self.curve), ..Seen::default() };
        let bytes =
            self.last.iter().zip(&self.first).map(|(last, first)| last.saturating_sub(*first));
        let points = std::mem::take(&mut self.tcp);
        for ((Connection { flow, .. }, bytes), points) in
            self.connections.iter().zip(bytes).zip(points)
        {
            seen.flows.push(FlowReport {
                flow: flow.index,
                window_bytes: if end.receives(flow.traffic) { bytes } else { 0 },
                tcp: points.last().copied().unwrap_or_default(),
                ..FlowReport::default()
            });
            let is_sent = end.sends(flow.traffic) || flow.traffic == Traffic::Ping;
            if is_sent && !points.is_empty() {
                seen.tcp.push((flow.index, points));
            }
        }
        seen.flows.sort_by_key(|report| report.flow);
        seen
    }
}

/// Keeps every other point, the first among them.
fn halve<T>(points: &mut Vec<T>) {
    let mut keeps = false;
    points.retain(|_| {
        keeps = !keeps;
        keeps
    });
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
}
