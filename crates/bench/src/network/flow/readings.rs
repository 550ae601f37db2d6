//! What the coordinator of a test reads while it runs: bytes received, TCP's own account, and the
//! time of all CPUs.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use flatout_sys::socket::tcp_info;
use flatout_sys::steal::{self, CpuTimes};

use super::{End, Gauge, Seen, Socket, Stage, Wired};
use crate::network::frame::{EndReport, FlowReport, MAX_POINTS, TcpPoint};
use crate::network::spec::Cargo;

/// The readings of one test.
#[derive(Debug, Default)]
pub struct Readings {
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

impl Readings {
    /// Nothing yet.
    pub fn begin() -> Self {
        Self { step_ns: 20_000_000, ..Self::default() }
    }

    /// The window begins.
    pub fn open(&mut self, stage: &Stage, wired: &[Wired], gauges: &[Gauge]) {
        self.times = steal::cpu_times(Path::new("/"));
        self.tcp = vec![Vec::new(); wired.len()];
        self.take(stage, wired, gauges);
        self.first.clone_from(&self.last);
        self.opened_ns = self.curve.last().map_or(0, |point| point[0]);
    }

    /// Reads all counters beside the clock.
    pub fn take(&mut self, stage: &Stage, wired: &[Wired], gauges: &[Gauge]) {
        let now_ns = stage.elapsed_ns();
        self.last = gauges.iter().map(|gauge| gauge.bytes.load(Ordering::Relaxed)).collect();
        self.end.window_ns = now_ns.saturating_sub(self.opened_ns);
        if self.curve.len() == MAX_POINTS {
            return;
        }
        self.curve.push([now_ns, self.last.iter().sum()]);
        for (points, wired) in self.tcp.iter_mut().zip(wired) {
            points.extend(tcp_point(&wired.socket, now_ns));
        }
    }

    /// As [`Readings::take`], in a test whose length nobody knows: half of the points are dropped
    /// when there are many.
    pub fn thin(&mut self, stage: &Stage, wired: &[Wired], gauges: &[Gauge]) {
        let last_ns = self.curve.last().map_or(0, |point| point[0]);
        if stage.elapsed_ns() < last_ns + self.step_ns {
            return;
        }
        if self.curve.len() + 1 >= MAX_POINTS {
            self.step_ns *= 2;
            halve(&mut self.curve);
            self.tcp.iter_mut().for_each(halve);
        }
        self.take(stage, wired, gauges);
    }

    /// The window ends.
    pub fn close(&mut self) {
        let after = steal::cpu_times(Path::new("/"));
        let (Some(before), Some(after)) = (self.times, after) else { return };
        let ns = |ticks: u64| ticks.saturating_mul(steal::tick_ns());
        self.end.busy_ns = ns(after.busy().saturating_sub(before.busy()));
        self.end.softirq_ns = ns(after.softirq.saturating_sub(before.softirq));
        self.end.capacity_ns = self.end.window_ns.saturating_mul(after.cpus.into());
    }

    /// What there is to say, but for what only the threads know.
    pub fn seen(self, end: End, wired: &[Wired]) -> Seen {
        let flows = wired.iter().enumerate().map(|(index, wired)| {
            let receives = end.receives(wired.flow.cargo);
            let bytes = self.last[index].saturating_sub(self.first[index]);
            FlowReport {
                flow: wired.flow.index,
                window_bytes: if receives { bytes } else { 0 },
                tcp: self.tcp[index].last().copied().unwrap_or_default(),
                ..FlowReport::default()
            }
        });
        let flows: Vec<FlowReport> = flows.collect();
        let is_sent =
            |wired: &Wired| end.sends(wired.flow.cargo) || wired.flow.cargo == Cargo::Ping;
        let tcp = wired
            .iter()
            .zip(self.tcp)
            .filter(|(wired, points)| is_sent(wired) && !points.is_empty());
        let tcp = tcp.map(|(wired, points)| (wired.flow.index, points)).collect();
        Seen { flows, end: self.end, curve: self.curve, tcp, ..Seen::default() }
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
