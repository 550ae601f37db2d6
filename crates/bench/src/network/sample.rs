//! What both ends report of a test, as one sample: the figure, and what the record keeps of it.
//! Pure.
//!
//! Numbers in the audit are summed over trials; `finish.rs` makes shares and means of them.

use flatout_measure::case::{Latencies, Sample, TrialError};
use flatout_measure::histogram::LoopKind;
use flatout_measure::record::Series;
use flatout_measure::warning::{self, Warning};
use serde_json::{Map, Value, json};

use super::account::Account;
use super::client::Report;
use super::flow::{End, Seen};
use super::frame::{FlowReport, TcpPoint};
use super::spec::{Cargo, Flow, Protocol, Receiver, Sender, Work};

const SECOND_NS: f64 = 1e9;

/// Who is where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Whether both ends are one machine, whose CPUs must be counted once.
    pub is_one_machine: bool,
    /// CPUs of this end.
    pub near_cpus: u32,
}

/// The sample of a test.
///
/// Errors: the account does not match, or nothing came.
pub fn sample(report: &Report, ends: Ends) -> Result<Sample, TrialError> {
    let mut sample = match report.spec.work {
        Work::Throughput => throughput(report)?,
        Work::Latency => latency(report)?,
    };
    note_cost(&mut sample.audit, report, ends);
    note_tcp(&mut sample, report);
    let spec = &report.spec;
    let threads = u32::try_from(spec.flows().len()).unwrap_or(u32::MAX);
    let of_one_end = if ends.is_one_machine { threads.saturating_mul(2) } else { threads };
    if of_one_end > ends.near_cpus {
        let text = format!("{of_one_end} threads on {} CPUs", ends.near_cpus);
        warning::add(&mut sample.warnings, Warning::new(warning::OVERSUBSCRIBED, text));
    }
    if ends.is_one_machine {
        let text = "both ends are on this machine: its kernel and memory, no network";
        warning::add(&mut sample.warnings, Warning::new(warning::LOOPBACK, text));
    }
    if spec.receiver == Receiver::Discard && spec.work == Work::Throughput {
        let text = "the receiver has the kernel throw the bytes away (MSG_TRUNC)";
        warning::add(&mut sample.warnings, Warning::new(warning::DISCARDED, text));
    }
    Ok(sample)
}

/// The reports of the receivers of bulk flows, and the length of their window.
fn received(report: &Report, cargo: Cargo) -> (impl Iterator<Item = &FlowReport>, &Seen) {
    let seen = if End::Client.receives(cargo) { &report.near } else { &report.far };
    let flows = report.spec.flows();
    let is_one = move |flow: &u16| {
        flows.iter().any(|known: &Flow| known.index == *flow && known.cargo == cargo)
    };
    (seen.flows.iter().filter(move |flow| is_one(&flow.flow)), seen)
}

fn throughput(report: &Report) -> Result<Sample, TrialError> {
    let is_by_bytes = report.spec.bytes > 0;
    let (mut rate, mut elapsed_ns, mut bytes) = (0.0, 0, 0);
    let mut total = Account::default();
    for cargo in [Cargo::Up, Cargo::Down] {
        let (flows, seen) = received(report, cargo);
        let flows: Vec<&FlowReport> = flows.collect();
        if flows.is_empty() {
            continue;
        }
        let (moved, time_ns) = if is_by_bytes {
            let last_ns = flows.iter().map(|flow| flow.lane_ns).max().unwrap_or(0);
            (flows.iter().map(|flow| flow.total_bytes).sum::<u64>(), last_ns)
        } else {
            (flows.iter().map(|flow| flow.window_bytes).sum(), seen.end.window_ns)
        };
        if time_ns == 0 {
            return Err(TrialError::Failed("the other end reports a window of 0 ns".to_owned()));
        }
        rate += moved as f64 * SECOND_NS / time_ns as f64;
        elapsed_ns = elapsed_ns.max(time_ns);
        bytes += moved;
        flows.iter().for_each(|flow| total.add(&flow.account));
    }
    let mut sample =
        Sample { amount: rate * elapsed_ns as f64 / SECOND_NS, elapsed_ns, ..Sample::default() };
    sample.audit.insert("bytes".to_owned(), json!(bytes));
    if report.spec.protocol == Protocol::Udp {
        note_account(&mut sample, report, &total)?;
    }
    let curve = if report.near.curve.len() > 1 && End::Client.receives(first_cargo(report)) {
        &report.near.curve
    } else {
        &report.far.curve
    };
    sample.series.push(rate_curve(report.start_ns, curve));
    Ok(sample)
}

fn first_cargo(report: &Report) -> Cargo {
    report.spec.flows().first().map_or(Cargo::Up, |flow| flow.cargo)
}

/// Rates between neighbouring points of a curve of bytes, over the time since the session began.
fn rate_curve(start_ns: u64, curve: &[[u64; 2]]) -> Series {
    let seconds = |ns: u64| start_ns.saturating_add(ns) as f64 / SECOND_NS;
    let points = curve.windows(2).filter(|pair| pair[1][0] > pair[0][0]).map(|pair| {
        let bytes = pair[1][1].saturating_sub(pair[0][1]);
        [seconds(pair[1][0]), bytes as f64 * SECOND_NS / (pair[1][0] - pair[0][0]) as f64]
    });
    Series {
        name: "rate".to_owned(),
        x: "time_s".to_owned(),
        y: "bytes/s".to_owned(),
        points: points.collect(),
    }
}

/// What became of the datagrams.
fn note_account(sample: &mut Sample, report: &Report, total: &Account) -> Result<(), TrialError> {
    if !total.is_balanced() {
        return Err(TrialError::Failed(format!(
            "the account of datagrams does not match: {total:?}"
        )));
    }
    sample.audit.extend(account_members(total));
    let streams: Vec<Value> = [Cargo::Up, Cargo::Down]
        .into_iter()
        .flat_map(|cargo| received(report, cargo).0.collect::<Vec<_>>())
        .map(|flow| {
            let mut members = Map::new();
            members.insert("stream".to_owned(), json!(flow.flow));
            members.extend(account_members(&flow.account));
            members.insert("buffer_bytes".to_owned(), json!(flow.buffer_bytes));
            Value::Object(members)
        })
        .collect();
    sample.audit.insert("streams_last_trial".to_owned(), Value::Array(streams));
    let missing = total.lost + total.dropped;
    if missing > 0 {
        let text = format!(
            "{missing} of {} datagrams did not arrive: {} dropped at the receiver's socket, {} lost \
             on the way",
            total.sent, total.dropped, total.lost
        );
        warning::add(&mut sample.warnings, Warning::new(warning::DATAGRAMS_LOST, text));
    }
    if total.forgotten > 0 {
        let text = format!("{} datagrams came more than a million too late", total.forgotten);
        warning::add(&mut sample.warnings, Warning::new(warning::ACCOUNT_INCOMPLETE, text));
    }
    Ok(())
}

fn account_members(account: &Account) -> Map<String, Value> {
    let mut members = Map::new();
    for (key, value) in [
        ("datagrams_sent", account.sent),
        ("datagrams_received", account.received),
        ("datagrams_unique", account.unique),
        ("datagrams_duplicate", account.duplicate),
        ("datagrams_reordered", account.reordered),
        ("datagrams_late", account.late),
        ("datagrams_dropped", account.dropped),
        ("datagrams_lost", account.lost),
        ("datagrams_forgotten", account.forgotten),
        ("datagrams_foreign", account.foreign),
        ("socket_drops", account.socket_drops),
    ] {
        members.insert(key.to_owned(), json!(value));
    }
    members
}

fn latency(report: &Report) -> Result<Sample, TrialError> {
    let histogram = report.near.latencies.clone();
    let histogram = histogram.filter(|histogram| histogram.operations() > 0);
    // No answer within the window: an amount of nothing, which the caller knows what to do with.
    let Some(histogram) = histogram else { return Ok(Sample::default()) };
    let operations = histogram.operations();
    let median_ns = histogram.quantile_ns(0.5).unwrap_or(0);
    let is_open = report.spec.rate_per_s > 0;
    let loop_kind = if is_open { LoopKind::Open } else { LoopKind::Closed };
    let mut sample = Sample {
        amount: operations as f64,
        elapsed_ns: median_ns.saturating_mul(operations),
        ..Sample::default()
    };
    sample.audit.insert("questions".to_owned(), json!(operations));
    if !is_open {
        sample.audit.insert("clock_reads".to_owned(), json!(operations));
    }
    if is_open {
        let window_s = report.spec.window_ns as f64 / SECOND_NS;
        let wanted = report.spec.rate_per_s as f64 * window_s;
        if (operations as f64) < 0.95 * wanted - 1.0 {
            let text =
                format!("{operations} questions instead of {wanted:.0}: answers took too long");
            warning::add(&mut sample.warnings, Warning::new(warning::LATE_STARTS, text));
        }
    }
    sample.latencies = Some(Latencies { histogram, loop_kind });
    Ok(sample)
}

/// CPU time of both ends: of all CPUs, interrupts included, and of the threads of the flows.
fn note_cost(audit: &mut Map<String, Value>, report: &Report, ends: Ends) {
    let (near, far) = (&report.near.end, &report.far.end);
    let both = |value: fn(&super::frame::EndReport) -> u64| match ends.is_one_machine {
        true => value(near),
        false => value(near).saturating_add(value(far)),
    };
    let mut put = |key: &str, value: u64| _ = audit.insert(key.to_owned(), json!(value));
    put("cpu_busy_ns", both(|end| end.busy_ns));
    put("cpu_softirq_ns", both(|end| end.softirq_ns));
    put("cpu_capacity_ns", both(|end| end.capacity_ns));
    let (mut sender, mut receiver) = ((0, 0), (0, 0));
    let mut zero_copy = (0, 0);
    for flow in report.spec.flows() {
        for (end, seen) in [(End::Client, &report.near), (End::Server, &report.far)] {
            let Some(of) = seen.flows.iter().find(|known| known.flow == flow.index) else {
                continue;
            };
            let side = if end.sends(flow.cargo) { &mut sender } else { &mut receiver };
            side.0 += of.cpu_ns;
            side.1 += of.lane_ns;
            if end.sends(flow.cargo) && report.spec.sender == Sender::ZeroCopy {
                zero_copy.0 += of.calls;
                zero_copy.1 += of.copied;
            }
        }
    }
    put("sender_cpu_ns", sender.0);
    put("sender_time_ns", sender.1);
    put("receiver_cpu_ns", receiver.0);
    put("receiver_time_ns", receiver.1);
    if zero_copy.0 > 0 {
        // Those that the kernel has answered for so far, and copied after all.
        put("zero_copy_calls", zero_copy.0);
        put("zero_copy_copied", zero_copy.1);
    }
}

/// TCP of the senders: sums for means, the streams of the last trial, and curves.
fn note_tcp(sample: &mut Sample, report: &Report) {
    let mut streams = Vec::new();
    let mut sums = [0_u64; 7];
    for flow in report.spec.flows() {
        if flow.protocol != Protocol::Tcp || flow.cargo == Cargo::Ping {
            continue;
        }
        let seen = if End::Client.sends(flow.cargo) { &report.near } else { &report.far };
        let Some((_, points)) = seen.tcp.iter().find(|(index, _)| *index == flow.index) else {
            continue;
        };
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let within =
            |value: fn(&TcpPoint) -> u32| u64::from(value(last).saturating_sub(value(first)));
        let ns = |us: u64| us * 1000;
        let (retransmits, segments) = (within(|p| p.retransmits), within(|p| p.segments));
        let busy_ns = ns(within(|p| p.busy_us));
        let receiver_ns = ns(within(|p| p.receiver_limited_us));
        let buffer_ns = ns(within(|p| p.buffer_limited_us));
        let time_ns = ns(within(|p| p.time_us));
        let more = [retransmits, segments, busy_ns, receiver_ns, buffer_ns, time_ns, 1];
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        streams.push(json!({
            "stream": flow.index,
            "retransmits": retransmits,
            "segments": segments,
            "round_trip_ns": ns(last.round_trip_us.into()),
            "window_segments": last.window_segments,
            "segment_bytes": last.segment_bytes,
            "busy_ns": busy_ns,
            "receiver_limited_ns": receiver_ns,
            "buffer_limited_ns": buffer_ns,
        }));
        curves(sample, report.start_ns, flow.index, points);
    }
    if streams.is_empty() {
        return;
    }
    let keys = [
        "retransmits",
        "segments",
        "tcp_busy_ns",
        "tcp_receiver_limited_ns",
        "tcp_buffer_limited_ns",
        "tcp_time_ns",
        "tcp_streams",
    ];
    for (key, sum) in keys.into_iter().zip(sums) {
        sample.audit.insert(key.to_owned(), json!(sum));
    }
    sample.audit.insert("streams_last_trial".to_owned(), Value::Array(streams));
}

/// A stream's curves: round trip, window, segments sent again, and the share of time limited.
fn curves(sample: &mut Sample, start_ns: u64, stream: u16, points: &[TcpPoint]) {
    let seconds = |point: &TcpPoint| {
        start_ns.saturating_add(u64::from(point.time_us) * 1000) as f64 / SECOND_NS
    };
    let mut push = |name: &str, y: &str, values: Vec<[f64; 2]>| {
        let name = format!("{name}, stream {stream}");
        let (x, y) = ("time_s".to_owned(), y.to_owned());
        sample.series.push(Series { name, x, y, points: values });
    };
    let plain = |value: fn(&TcpPoint) -> f64| -> Vec<[f64; 2]> {
        points.iter().map(|point| [seconds(point), value(point)]).collect()
    };
    push("round trip", "ns", plain(|point| f64::from(point.round_trip_us) * 1000.0));
    push("congestion window", "segments", plain(|point| f64::from(point.window_segments)));
    let between = |value: fn(&TcpPoint) -> u32| -> Vec<[f64; 2]> {
        let pairs = points.windows(2);
        pairs
            .map(|pair| {
                [seconds(&pair[1]), f64::from(value(&pair[1]).saturating_sub(value(&pair[0])))]
            })
            .collect()
    };
    push("retransmits", "segments", between(|point| point.retransmits));
    let ns = |curve: Vec<[f64; 2]>| curve.into_iter().map(|[x, us]| [x, us * 1000.0]).collect();
    push("limited by receiver", "ns", ns(between(|point| point.receiver_limited_us)));
    push("limited by send buffer", "ns", ns(between(|point| point.buffer_limited_us)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::frame::EndReport;
    use crate::network::spec::{Direction, Spec};

    const ENDS: Ends = Ends { is_one_machine: false, near_cpus: 8 };

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
        let spec = Spec { direction: Direction::Both, ..Spec::default() };
        // Up: 4000 bytes in 2 s at the server. Down: 3000 bytes in 1 s at the client.
        let near = seen(&[(0, 99), (1, 3000)], 1_000_000_000);
        let far = seen(&[(0, 4000), (1, 99)], 2_000_000_000);
        let sample = sample(&report(spec, near, far), ENDS).unwrap();
        let rate = sample.amount / (sample.elapsed_ns as f64 / 1e9);
        assert!((rate - 5000.0).abs() < 1e-6, "{rate}");
        assert_eq!(sample.audit["cpu_busy_ns"], json!(20), "both machines");
        let one = Ends { is_one_machine: true, ..ENDS };
        let near = seen(&[(0, 0)], 1_000_000_000);
        let far = seen(&[(0, 1000)], 1_000_000_000);
        let sample = super::sample(&report(Spec::default(), near, far), one).unwrap();
        assert_eq!(sample.audit["cpu_busy_ns"], json!(10), "one machine, counted once");
        assert!(warning::has(&sample.warnings, warning::LOOPBACK));
    }

    #[test]
    fn an_account_that_does_not_match_is_no_figure() {
        let spec = Spec { protocol: Protocol::Udp, datagram_bytes: 100, ..Spec::default() };
        let mut far = seen(&[(0, 1000)], 1_000_000_000);
        let near = seen(&[(0, 0)], 1_000_000_000);
        far.flows[0].account = Account { sent: 10, received: 9, unique: 9, ..Account::default() };
        let error = sample(&report(spec, near, far), ENDS).unwrap_err();
        assert!(error.to_string().contains("does not match"), "{error}");
    }

    #[test]
    fn lost_datagrams_are_told() {
        let spec = Spec { protocol: Protocol::Udp, datagram_bytes: 100, ..Spec::default() };
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
        let sample = sample(&report(spec, near, far), ENDS).unwrap();
        assert_eq!(sample.warnings[0].code, warning::DATAGRAMS_LOST);
        assert_eq!(sample.audit["datagrams_lost"], json!(1));
        assert_eq!(sample.audit["streams_last_trial"][0]["datagrams_dropped"], json!(2));
    }

    #[test]
    fn a_window_of_no_time_is_a_failure_not_infinity() {
        let sample = sample(&report(Spec::default(), seen(&[(0, 0)], 0), seen(&[(0, 9)], 0)), ENDS);
        assert!(sample.is_err());
    }

    #[test]
    fn rates_lie_between_points_and_time_is_the_sessions() {
        let series = rate_curve(1_000_000_000, &[[0, 0], [500_000_000, 100], [500_000_000, 100]]);
        assert_eq!(series.points, [[1.5, 200.0]]);
    }
}
