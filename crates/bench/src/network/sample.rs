//! What both ends report of a test, as one sample: the figure, and the facts that the record keeps.
//! Pure.

use flatout_measure::guard::Spoil;
use flatout_measure::{
    CLOCK_READS, Facts, Further, Key, Latencies, LoopKind, Parameters, Sample, Series, TrialError,
    Value, warning,
};

use super::client::Report;
use super::fact;
use super::flow::End;
use super::frame::{FlowReport, Sum, TcpPoint};
use super::spec::{Direction, Protocol, Receiver, Sender, Traffic, Work};
use super::topology::Topology;
use crate::counted;
use crate::fact::BYTES;

const SECOND_NS: f64 = 1e9;
/// What tells the row of what several clients carried together from that of each of them.
pub const CLIENTS: &str = "clients";

/// The sample of a test. Its amount is 0 where nothing came within the window.
///
/// Errors: the account of datagrams does not match, or a window has no length.
pub fn sample(report: &Report, topology: &Topology) -> Result<Sample, TrialError> {
    let mut sample = match report.spec.work {
        Work::Throughput => throughput(report)?,
        Work::Latency => latency(report),
    };
    add_cpu_time(&mut sample.facts, report, topology);
    add_tcp(&mut sample, report);
    let others = u64::from(report.far.end.others);
    if others > 0 {
        sample.facts.set(fact::OTHER_CLIENTS_MOST, others);
        sample.facts.set(fact::SHARED_TRIALS, 1_u64);
    }
    match report.far.end.sum {
        Sum { clients: 0, .. } => {}
        // The windows had nothing in common.
        Sum { window_ns: 0, .. } => sample.spoil = Some(Spoil::Apart),
        Sum { clients, bytes, window_ns } => sample.further.push(Further {
            parameters: Parameters::default().with(CLIENTS, u64::from(clients)),
            amount: bytes as f64,
            elapsed_ns: window_ns,
            facts: Facts::default().with(BYTES, bytes),
        }),
    }
    let spec = &report.spec;
    let mut warn = |code, text: &str| {
        sample.warn(code, text);
    };
    let threads = topology.threads(spec);
    if threads > topology.cpus {
        let text = format!("{threads} threads on {}", counted(topology.cpus, "CPU"));
        warn(warning::OVERSUBSCRIBED, &text);
    }
    if let (true, Some(name)) = (topology.is_one_machine, topology.between()) {
        let text = format!(
            "both ends are on this machine, {name} between them: its kernel and memory, no network"
        );
        warn(warning::ONE_MACHINE, &text);
    } else if topology.is_one_machine {
        let text = "both ends are on this machine: its kernel and memory, no network";
        warn(warning::LOOPBACK, text);
    }
    let is_tcp = spec.protocol == Protocol::Tcp && spec.work == Work::Throughput;
    if is_tcp && spec.receiver == Receiver::Discard {
        let text = "the receiver has the kernel throw the bytes away (MSG_TRUNC)";
        warn(warning::DISCARDED, text);
    }
    Ok(sample)
}

/// The figure of a bulk test, with the curve of each way and, over UDP, the account of its datagrams.
///
/// Errors: as [`sample`].
pub fn throughput(report: &Report) -> Result<Sample, TrialError> {
    let (mut rate, mut elapsed_ns, mut bytes) = (0.0, 0, 0);
    let (mut streams, mut curves) = (Vec::new(), Vec::new());
    for (traffic, way) in [(Traffic::Up, Direction::Up), (Traffic::Down, Direction::Down)] {
        // The receiver knows, and its reports of the flows that carried it say.
        let seen = if End::Client.receives(traffic) { &report.near } else { &report.far };
        let flows = report.spec.flows().into_iter().zip(&seen.flows);
        let flows = flows.filter(|(flow, _)| flow.traffic == traffic).map(|(_, seen)| seen);
        let flows: Vec<&FlowReport> = flows.collect();
        if flows.is_empty() {
            continue;
        }
        let (moved, time_ns): (u64, u64) = if report.spec.bytes > 0 {
            let last_ns = flows.iter().map(|flow| flow.worker_ns).max().unwrap_or(0);
            (flows.iter().map(|flow| flow.total_bytes).sum(), last_ns)
        } else {
            (flows.iter().map(|flow| flow.window_bytes).sum(), seen.end.window_ns)
        };
        if time_ns == 0 {
            return Err(TrialError::Failed("the other end reports a window of 0 ns".to_owned()));
        }
        rate += moved as f64 * SECOND_NS / time_ns as f64;
        elapsed_ns = elapsed_ns.max(time_ns);
        bytes += moved;
        streams.extend(flows);
        let name = match report.spec.direction {
            Direction::Both => format!("rate, {}", way.name()),
            _ => "rate".to_owned(),
        };
        curves.push(rate_curve(name, report.start_ns, &seen.end.curve));
    }
    let mut sample =
        Sample { amount: rate * elapsed_ns as f64 / SECOND_NS, elapsed_ns, ..Sample::default() };
    sample.facts.set(BYTES, bytes);
    if report.spec.protocol == Protocol::Udp {
        add_datagrams(&mut sample, &streams)?;
    }
    sample.series.extend(curves);
    Ok(sample)
}

/// Rates between adjacent points of a curve of bytes, over the time since the session began.
fn rate_curve(name: String, start_ns: u64, curve: &[[u64; 2]]) -> Series {
    let points = curve.windows(2).filter(|pair| pair[1][0] > pair[0][0]).map(|pair| {
        let bytes = pair[1][1].saturating_sub(pair[0][1]);
        let rate = bytes as f64 * SECOND_NS / (pair[1][0] - pair[0][0]) as f64;
        [seconds(start_ns.saturating_add(pair[1][0])), rate]
    });
    series(name, "bytes/s", points.collect())
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND_NS
}

fn series(name: String, y: &str, points: Vec<[f64; 2]>) -> Series {
    Series { name, x: "time_s".to_owned(), y: y.to_owned(), points }
}

/// What became of the datagrams of each stream.
fn add_datagrams(sample: &mut Sample, streams: &[&FlowReport]) -> Result<(), TrialError> {
    if let Some(flow) = streams.iter().find(|flow| !flow.account.is_balanced()) {
        return Err(TrialError::Failed(format!(
            "the account of datagrams does not match: {:?}",
            flow.account
        )));
    }
    let each: Vec<Facts> = streams.iter().map(|flow| flow.account.facts()).collect();
    let total = Facts::merged(each.iter());
    let streams = streams.iter().zip(each).map(|(flow, facts)| {
        let facts = facts.with(fact::STREAM, u64::from(flow.flow));
        facts.with(fact::BUFFER_BYTES, flow.buffer_bytes)
    });
    let streams: Value = streams.collect();
    sample.facts.extend(total);
    sample.facts.set(fact::STREAMS_LAST_TRIAL, streams);
    Ok(())
}

fn latency(report: &Report) -> Sample {
    let histogram = report.near.latencies.clone();
    let histogram = histogram.filter(|histogram| histogram.operations() > 0);
    // No answer within the window: an amount of nothing, which the caller knows what to do with.
    let Some(histogram) = histogram else { return Sample::default() };
    let operations = histogram.operations();
    let median_ns = histogram.quantile_ns(0.5).unwrap_or(0);
    let mut sample = Sample {
        amount: operations as f64,
        elapsed_ns: median_ns.saturating_mul(operations),
        facts: Facts::default().with(fact::QUESTIONS, operations),
        ..Sample::default()
    };
    if report.spec.protocol == Protocol::Udp {
        let accounts = || report.near.flows.iter().map(|flow| flow.account);
        sample.facts.set(fact::DATAGRAMS_SENT, accounts().map(|account| account.sent).sum::<u64>());
        sample.facts.set(fact::DATAGRAMS_LOST, accounts().map(|account| account.lost).sum::<u64>());
    }
    let is_open = report.spec.rate_per_s > 0;
    if is_open {
        let wanted = report.spec.rate_per_s as f64 * seconds(report.spec.window_ns);
        if (operations as f64) < 0.95 * wanted - 1.0 {
            let asked = counted(operations, "question");
            let text = format!("{asked} instead of {wanted:.0}: answers took too long");
            sample.warn(warning::LATE_STARTS, text);
        }
    } else {
        sample.facts.set(CLOCK_READS, operations);
    }
    let loop_kind = if is_open { LoopKind::Open } else { LoopKind::Closed };
    sample.latencies = Some(Latencies { histogram, loop_kind });
    sample
}

/// Adds to a count of this trial.
fn add(facts: &mut Facts, key: Key, more: u64) {
    facts.set(key, facts.count(key).unwrap_or(0).saturating_add(more));
}

/// CPU time of both ends: of all CPUs, interrupts included, and of the threads of the flows.
fn add_cpu_time(facts: &mut Facts, report: &Report, topology: &Topology) {
    // One machine's CPUs count once.
    let ends = &[&report.near.end, &report.far.end][..if topology.is_one_machine { 1 } else { 2 }];
    for end in ends {
        add(facts, fact::CPU_BUSY_NS, end.busy_ns);
        add(facts, fact::CPU_SOFTIRQ_NS, end.softirq_ns);
        add(facts, fact::CPU_CAPACITY_NS, end.capacity_ns);
    }
    let sender = (fact::SENDER_CPU_NS, fact::SENDER_TIME_NS);
    let receiver = (fact::RECEIVER_CPU_NS, fact::RECEIVER_TIME_NS);
    for key in [sender.0, sender.1, receiver.0, receiver.1] {
        facts.set(key, 0_u64);
    }
    for (end, seen) in [(End::Client, &report.near), (End::Server, &report.far)] {
        for (flow, of) in report.spec.flows().into_iter().zip(&seen.flows) {
            let sends = end.sends(flow.traffic);
            let (cpu, time) = if sends { sender } else { receiver };
            add(facts, cpu, of.cpu_ns);
            add(facts, time, of.worker_ns);
            if sends && report.spec.sender == Sender::ZeroCopy && of.calls > 0 {
                // Zero-copy calls.
                add(facts, Key::sum("zero_copy_calls"), of.calls);
                // Those that the kernel has answered for so far, and copied after all.
                add(facts, Key::sum("zero_copy_copied"), of.copied);
            }
        }
    }
}

/// TCP as the senders saw it: sums over the streams, each stream, and its curves.
fn add_tcp(sample: &mut Sample, report: &Report) {
    let mut streams = Vec::new();
    let reports = report.near.flows.iter().chain(&report.far.flows);
    let mut reports: Vec<&FlowReport> = reports.filter(|flow| !flow.tcp.is_empty()).collect();
    reports.sort_by_key(|report| report.flow);
    for FlowReport { flow, tcp: points, .. } in reports {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let within =
            |value: fn(&TcpPoint) -> u32| u64::from(value(last).saturating_sub(value(first)));
        let ns_within = |value| within(value) * 1000;
        let counts = [
            (fact::RETRANSMITS, within(|point| point.retransmits)),
            (fact::SEGMENTS, within(|point| point.segments)),
            (fact::TCP_TIME_NS, ns_within(|point| point.time_us)),
            (fact::TCP_BUSY_NS, ns_within(|point| point.busy_us)),
            (fact::TCP_RECEIVER_LIMITED_NS, ns_within(|point| point.receiver_limited_us)),
            (fact::TCP_BUFFER_LIMITED_NS, ns_within(|point| point.buffer_limited_us)),
        ];
        counts.iter().for_each(|&(key, count)| add(&mut sample.facts, key, count));
        let state = [
            ("stream", u64::from(*flow)),
            ("round_trip_ns", u64::from(last.round_trip_us) * 1000),
            ("window_segments", last.window_segments.into()),
            ("segment_bytes", last.segment_bytes.into()),
        ];
        // Of a stream that TCP carries.
        let counts = counts.map(|(key, count)| (key.name().trim_start_matches("tcp_"), count));
        streams.push(Value::fields(state.into_iter().chain(counts)));
        curves(sample, report.start_ns, *flow, points);
    }
    if !streams.is_empty() {
        sample.facts.set(fact::STREAMS_LAST_TRIAL, streams);
    }
}

/// A stream's curves: round trip, window, retransmits, and the time limited.
fn curves(sample: &mut Sample, start_ns: u64, stream: u16, points: &[TcpPoint]) {
    let at = |point: &TcpPoint| seconds(start_ns.saturating_add(u64::from(point.time_us) * 1000));
    let mut push = |name: &str, y: &str, points: Vec<[f64; 2]>| {
        sample.series.push(series(format!("{name}, stream {stream}"), y, points));
    };
    let states = |value: fn(&TcpPoint) -> u32, scale: f64| -> Vec<[f64; 2]> {
        points.iter().map(|point| [at(point), f64::from(value(point)) * scale]).collect()
    };
    let between = |value: fn(&TcpPoint) -> u32, scale: f64| -> Vec<[f64; 2]> {
        let more = |pair: &[TcpPoint]| value(&pair[1]).saturating_sub(value(&pair[0]));
        points.windows(2).map(|pair| [at(&pair[1]), f64::from(more(pair)) * scale]).collect()
    };
    push("round trip", "ns", states(|point| point.round_trip_us, 1e3));
    push("congestion window", "segments", states(|point| point.window_segments, 1.0));
    push("retransmits", "segments", between(|point| point.retransmits, 1.0));
    push("limited by receiver", "ns", between(|point| point.receiver_limited_us, 1e3));
    push("limited by send buffer", "ns", between(|point| point.buffer_limited_us, 1e3));
}

#[cfg(test)]
mod tests {
    use flatout_sys::socket::interface::Interface;

    use super::*;
    use crate::network::account::Account;
    use crate::network::flow::Seen;
    use crate::network::frame::EndReport;
    use crate::network::spec::Spec;

    const TWO: Topology =
        Topology { interface: None, is_one_machine: false, is_virtual: false, cpus: 8 };
    const ONE: Topology = Topology { is_one_machine: true, ..TWO };

    fn seen(flows: &[(u16, u64)], window_ns: u64) -> Seen {
        Seen {
            flows: flows
                .iter()
                .map(|&(flow, window_bytes)| FlowReport {
                    flow,
                    window_bytes,
                    ..FlowReport::default()
                })
                .collect(),
            end: EndReport { window_ns, busy_ns: 10, ..EndReport::default() },
            ..Seen::default()
        }
    }

    fn report(spec: Spec, near: Seen, far: Seen) -> Report {
        Report { spec, start_ns: 0, near, far }
    }

    #[test]
    fn what_was_received_counts_and_each_way_has_its_own_window() {
        let spec = Spec { direction: Direction::Both, ..Spec::one_stream() };
        // Up: 4000 bytes in 2 s at the server. Down: 3000 bytes in 1 s at the client.
        let near = seen(&[(0, 99), (1, 3000)], 1_000_000_000);
        let far = seen(&[(0, 4000), (1, 99)], 2_000_000_000);
        let sample = sample(&report(spec, near, far), &TWO).unwrap();
        let rate = sample.amount / (sample.elapsed_ns as f64 / 1e9);
        assert!((rate - 5000.0).abs() < 1e-6, "{rate}");
        assert_eq!(sample.facts.count(fact::CPU_BUSY_NS), Some(20), "both machines");
        let near = seen(&[(0, 0)], 1_000_000_000);
        let far = seen(&[(0, 1000)], 1_000_000_000);
        let sample = super::sample(&report(Spec::one_stream(), near, far), &ONE).unwrap();
        assert_eq!(sample.facts.count(fact::CPU_BUSY_NS), Some(10), "one machine, counted once");
        assert!(warning::has(&sample.warnings, warning::LOOPBACK));
    }

    #[test]
    fn an_interface_between_two_ends_of_one_machine_is_not_called_loopback() {
        let over = |is_loopback| {
            let interface = Interface {
                name: "veth7".to_owned(),
                bits_per_s: None,
                mtu_bytes: Some(1500),
                is_loopback,
            };
            let topology = Topology { interface: Some(interface), ..ONE };
            let received = [(); 2].map(|()| seen(&[(0, 1000)], 1_000_000_000));
            let [near, far] = received;
            let sample = sample(&report(Spec::one_stream(), near, far), &topology).unwrap();
            sample.warnings
        };
        let warnings = over(false);
        assert!(!warning::has(&warnings, warning::LOOPBACK));
        let told = warnings.iter().find(|told| told.code == warning::ONE_MACHINE).unwrap();
        assert!(told.text.contains("veth7 between them"), "{}", told.text);
        assert!(!warning::has(&over(true), warning::ONE_MACHINE));
    }

    #[test]
    fn what_all_clients_carried_is_a_figure_of_its_own_if_there_was_a_common_time() {
        let sample = |sum| {
            let near = seen(&[(0, 0)], 1_000_000_000);
            let mut far = seen(&[(0, 1000)], 1_000_000_000);
            (far.end.others, far.end.sum) = (2, sum);
            sample(&report(Spec::one_stream(), near, far), &TWO).unwrap()
        };
        let together = sample(Sum { clients: 3, bytes: 2_900, window_ns: 950_000_000 });
        let [sum] = &together.further[..] else { panic!("{together:?}") };
        assert_eq!((sum.amount, sum.elapsed_ns), (2_900.0, 950_000_000));
        assert_eq!(sum.parameters.to_json()[CLIENTS], 3);
        assert_eq!((together.amount, together.spoil), (1000.0, None), "a share of it");
        let apart = sample(Sum { clients: 3, ..Sum::default() });
        assert_eq!(apart.spoil, Some(Spoil::Apart), "else it would count as if it had been beside");
        let alone = sample(Sum::default());
        assert_eq!((alone.further.len(), alone.spoil), (0, None));
    }

    #[test]
    fn an_account_that_does_not_match_is_no_figure() {
        let spec = Spec { protocol: Protocol::Udp, datagram_bytes: 100, ..Spec::one_stream() };
        let mut far = seen(&[(0, 1000)], 1_000_000_000);
        let near = seen(&[(0, 0)], 1_000_000_000);
        far.flows[0].account = Account { sent: 10, received: 9, unique: 9, ..Account::default() };
        let error = sample(&report(spec, near, far), &TWO).unwrap_err();
        assert!(error.to_string().contains("does not match"), "{error}");
    }

    #[test]
    fn lost_datagrams_are_counted() {
        let spec = Spec { protocol: Protocol::Udp, datagram_bytes: 100, ..Spec::one_stream() };
        let mut far = seen(&[(0, 1000)], 1_000_000_000);
        let near = seen(&[(0, 0)], 1_000_000_000);
        far.flows[0].account = Account {
            sent: 10,
            received: 8,
            unique: 7,
            duplicate: 1,
            dropped: 2,
            lost: 1,
            ..Account::default()
        };
        let sample = sample(&report(spec, near, far), &TWO).unwrap();
        assert_eq!(sample.facts.count(fact::DATAGRAMS_LOST), Some(1));
        let record = sample.facts.to_json();
        assert_eq!(record["streams_last_trial"][0]["datagrams_dropped"], 2);
        assert_eq!(record["streams_last_trial"][0]["stream"], 0);
    }

    #[test]
    fn tcp_counts_from_the_first_point_to_the_last() {
        let point = |time_us, retransmits, busy_us| TcpPoint {
            time_us,
            retransmits,
            busy_us,
            round_trip_us: 7,
            ..TcpPoint::default()
        };
        let spec = Spec { streams: 2, ..Spec::one_stream() };
        let mut near = seen(&[(0, 0), (1, 0)], 1_000_000_000);
        let far = seen(&[(0, 1000), (1, 1000)], 1_000_000_000);
        near.flows[0].tcp = vec![point(100, 5, 90), point(200, 6, 150), point(300, 8, 190)];
        near.flows[1].tcp = vec![point(100, 0, 0), point(300, 1, 50)];
        let sample = sample(&report(spec, near, far), &TWO).unwrap();
        let count = |key| sample.facts.count(key);
        assert_eq!(count(fact::RETRANSMITS), Some(4));
        assert_eq!(count(fact::TCP_TIME_NS), Some(400_000));
        assert_eq!(count(fact::TCP_BUSY_NS), Some(150_000));
        let record = sample.facts.to_json();
        assert_eq!(record["streams_last_trial"][0]["busy_ns"], 100_000);
        assert_eq!(record["streams_last_trial"][1]["round_trip_ns"], 7000);
        let curve = sample.series.iter().find(|curve| curve.name == "retransmits, stream 0");
        assert_eq!(curve.unwrap().points, [[0.0002, 1.0], [0.0003, 2.0]]);
    }

    #[test]
    fn a_window_of_no_time_is_a_failure_not_infinity() {
        let sample =
            sample(&report(Spec::one_stream(), seen(&[(0, 0)], 0), seen(&[(0, 9)], 0)), &TWO);
        assert!(sample.is_err());
    }

    #[test]
    fn rates_lie_between_points_and_time_is_the_sessions() {
        let curve = [[0, 0], [500_000_000, 100], [500_000_000, 100]];
        let series = rate_curve("rate".to_owned(), 1_000_000_000, &curve);
        assert_eq!(series.points, [[1.5, 200.0]]);
    }

    #[test]
    fn each_way_has_a_curve_of_what_its_receiver_saw() {
        let curves = |direction| {
            let end = |bytes| {
                let mut seen = seen(&[(0, bytes), (1, bytes)], 1_000_000_000);
                seen.end.curve = vec![[0, 0], [1_000_000_000, bytes]];
                seen
            };
            let spec = Spec { direction, ..Spec::one_stream() };
            let sample = throughput(&report(spec, end(7), end(9))).unwrap();
            sample.series.into_iter().map(|one| (one.name, one.points[0][1])).collect::<Vec<_>>()
        };
        let named = |name: &str, rate| (name.to_owned(), rate);
        assert_eq!(curves(Direction::Up), [named("rate", 9.0)]);
        assert_eq!(curves(Direction::Down), [named("rate", 7.0)]);
        let both = [named("rate, up", 9.0), named("rate, down", 7.0)];
        assert_eq!(curves(Direction::Both), both, "their sum is the figure");
    }

    #[test]
    fn only_tcp_has_the_kernel_throw_bytes_away() {
        let is_told = |protocol| {
            let receiver = Receiver::Discard;
            let spec = Spec { protocol, receiver, datagram_bytes: 100, ..Spec::one_stream() };
            let [near, far] = [0, 1000].map(|bytes| seen(&[(0, bytes)], 1_000_000_000));
            let sample = sample(&report(spec, near, far), &TWO).unwrap();
            warning::has(&sample.warnings, warning::DISCARDED)
        };
        assert_eq!([Protocol::Tcp, Protocol::Udp].map(is_told), [true, false]);
    }
}
