//! How long the parts of a trial take, and how long a window must be for what comes in it.

use flatout_measure::Sample;

use super::client::Report;
use super::spec::{MAX_TEST_NS, Protocol, Spec, Work};

/// Time before the window, and the window, of a throughput trial; both grow with the round trip.
/// So short that the whole grid has six trials of each row within half a minute.
pub const WARM_NS: u64 = 15_000_000;
pub const WINDOW_NS: u64 = 60_000_000;
/// The window of a throughput trial where a quota leaves the ends a part of the time: two of the usual
/// periods of 100 ms. In a shorter one they would have their CPUs all the time, or hardly.
pub const CONTAINED_NS: u64 = 200_000_000;
/// The same of a latency trial.
const LATENCY_WARM_NS: u64 = 2_000_000;
const LATENCY_WINDOW_NS: u64 = 30_000_000;
/// Time after the window.
const TAIL_NS: u64 = 3_000_000;
/// Round trips that a connection gets before the window, in it, and after it; and all of them.
const WARM_ROUND_TRIPS: u64 = 20;
const WINDOW_ROUND_TRIPS: u64 = 40;
const TAIL_ROUND_TRIPS: u64 = 2;
const ROUND_TRIPS: u64 = WARM_ROUND_TRIPS + WINDOW_ROUND_TRIPS + TAIL_ROUND_TRIPS;
/// Datagrams of each stream in a window, or blocks of TCP at a rate: with fewer, whether one came just before an edge or just
/// after it shows in the figure.
const WINDOW_DATAGRAMS: u64 = 40;

/// How long the parts of a trial take.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// That of a path without load.
    pub round_trip_ns: u64,
    /// The window that the user asked for.
    pub window_ns: Option<u64>,
    /// Whether a quota leaves the ends a part of the time.
    pub is_contained: bool,
    /// The least window that turned out to be enough.
    pub least_ns: u64,
}

impl Times {
    /// With fewer round trips in a trial where the way is so long that all of them would take more than half
    /// of the time that is left, or than a test may take.
    pub fn within(self, left_ns: u64) -> Self {
        let most_ns = (left_ns / 2).min(MAX_TEST_NS) / ROUND_TRIPS;
        Self { round_trip_ns: self.round_trip_ns.min(most_ns), ..self }
    }

    /// A test with its times.
    pub fn of(self, spec: Spec) -> Spec {
        let (warm_ns, usual_ns) = match spec.work {
            Work::Throughput if self.is_contained => (WARM_NS, CONTAINED_NS),
            Work::Throughput => (WARM_NS, WINDOW_NS),
            Work::Latency => (LATENCY_WARM_NS, LATENCY_WINDOW_NS),
        };
        let trips = |count: u64| self.round_trip_ns.saturating_mul(count);
        let window_ns = usual_ns.max(trips(WINDOW_ROUND_TRIPS)).max(self.least_ns);
        let warm_ns = warm_ns.max(trips(WARM_ROUND_TRIPS)).max(self.least_ns / 2);
        Spec {
            warm_ns: warm_ns.max(self.window_ns.map_or(0, |ns| ns / 5)),
            window_ns: self.window_ns.unwrap_or(window_ns),
            tail_ns: TAIL_NS.max(trips(TAIL_ROUND_TRIPS)),
            ..spec
        }
    }

    /// With a window of so much at least, and half of that before it.
    pub fn lengthened(self, least_ns: u64) -> Self {
        Self { least_ns: self.least_ns.max(least_ns), ..self }
    }

    /// How long a window has to be for what came in that of a trial. Where queues make the round
    /// trip longer than it was without load, what was lost before a window comes within it, and what
    /// is lost within it after it: as much as is on its way.
    pub fn wanted_ns(self, report: &Report, sample: &Sample, is_loopback: bool) -> u64 {
        let spec = &report.spec;
        if spec.work == Work::Latency || spec.bytes > 0 {
            return 0;
        }
        let is_tcp = spec.protocol == Protocol::Tcp;
        if is_tcp && spec.rate_per_s == 0 {
            let flows = report.near.flows.iter().chain(&report.far.flows);
            let trips_us = flows.flat_map(|flow| &flow.tcp).map(|at| at.round_trip_us);
            let trips_us = trips_us.max().filter(|_| !is_loopback).unwrap_or(0);
            return u64::from(trips_us) * 1000 * WINDOW_ROUND_TRIPS;
        }
        // At a rate TCP is sent block by block, too.
        let each_bytes = if is_tcp { spec.block_bytes } else { spec.datagram_bytes };
        let wanted = (WINDOW_DATAGRAMS * spec.flows().len() as u64) as f64;
        let came = sample.amount / f64::from(each_bytes.max(1));
        (spec.window_ns as f64 * wanted / came.max(1.0)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::flow::Seen;
    use crate::network::frame::{FlowReport, TcpPoint};

    #[test]
    fn a_window_holds_forty_of_what_comes_in_it() {
        let times = Times::default();
        let report = |protocol, round_trip_us| {
            let point = TcpPoint { round_trip_us, ..TcpPoint::default() };
            let flow = FlowReport { tcp: vec![point], ..FlowReport::default() };
            let near = Seen { flows: vec![flow], ..Seen::default() };
            let spec = times.of(Spec { protocol, datagram_bytes: 65_507, ..Spec::one_stream() });
            Report { spec, start_ns: 0, near, far: Seen::default() }
        };
        let of = |amount| Sample { amount, ..Sample::default() };
        let wanted = |report: &Report, amount| times.wanted_ns(report, &of(amount), false);
        let six = wanted(&report(Protocol::Udp, 0), 6.0 * 65_507.0);
        assert_eq!(six, 400_000_000);
        let longer = times.lengthened(six).of(Spec::one_stream());
        assert_eq!((longer.warm_ns, longer.window_ns), (200_000_000, 400_000_000));
        let queued = report(Protocol::Tcp, 50_000);
        assert_eq!(wanted(&queued, 7e5), 2_000_000_000);
        assert_eq!(times.wanted_ns(&queued, &of(7e5), true), 0, "loopback has no queue");
        let mut paced = report(Protocol::Tcp, 0);
        paced.spec.rate_per_s = 10_000_000;
        let blocks = 10.0 * f64::from(paced.spec.block_bytes);
        assert_eq!(times.wanted_ns(&paced, &of(blocks), true), 240_000_000);
        let asked = Times { window_ns: Some(60_000_000), ..times }.lengthened(six);
        assert_eq!(asked.of(Spec::one_stream()).window_ns, 60_000_000);
    }

    #[test]
    fn trials_on_the_longest_ways_end_in_time() {
        for round_trip_ns in [100_000_000, 1_500_000_000, u64::MAX] {
            let of = |left_ns| {
                let times = Times { round_trip_ns, ..Times::default() }.within(left_ns);
                times.of(Spec::one_stream())
            };
            assert_eq!(of(u64::MAX).check(), Ok(()), "what a server takes");
            assert!((1_500_000_000..=2_500_000_000).contains(&of(5_000_000_000).whole_ns()));
        }
    }
}
