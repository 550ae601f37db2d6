//! What the rows say together: shares of the sums, the cost in CPU time, ceilings, and the name of
//! the bottleneck.

use flatout_measure::ceiling::apply;
use flatout_measure::record::{Ceiling, Outcome, Provenance};
use flatout_sys::socket::interface::Interface;
use serde_json::{Value, json};

use super::bottleneck::{self, Facts};
use super::ceiling::of_link;
use super::row::{MEMCPY, Row};
use super::spec::{Direction, Protocol, Receiver, Sender, Work};

/// What is known about the place.
#[derive(Debug, Clone)]
pub struct Place {
    /// The interface that carries the data.
    pub interface: Option<Interface>,
    /// Whether the data stay on this machine's loopback.
    pub is_loopback: bool,
    /// CPUs that may be used.
    pub cpus: u32,
}

/// Finishes the rows; `outcomes` are those of `rows` in order, then those of the cross-core copy.
pub fn finish(outcomes: &mut [Outcome], rows: &[Row], place: &Place) {
    let memcpy = |copies: u32| {
        let mut of = outcomes.iter().filter(|outcome| outcome.id == MEMCPY);
        let row = of.find(|outcome| number(outcome, "copies_per_byte") == f64::from(copies));
        row.and_then(|row| row.median)
    };
    let copied = [memcpy(1), memcpy(2)];
    for (outcome, row) in outcomes.iter_mut().zip(rows) {
        shares(outcome);
        let ceiling = match row.spec.work {
            Work::Latency => Ceiling { name: "none is known".to_owned(), ..Ceiling::default() },
            Work::Throughput if place.is_loopback => of_memory(row, copied, place.cpus),
            Work::Throughput => match &place.interface {
                Some(interface) => of_link(&row.spec, row.family, interface),
                None => Ceiling {
                    name: "unknown: no interface has the address".to_owned(),
                    ..Ceiling::default()
                },
            },
        };
        let limiter = match row.spec.work {
            Work::Latency => latency_limiter(row),
            Work::Throughput => {
                let mut facts = facts(outcome, row, &ceiling);
                if place.is_loopback {
                    // There is no way in between, and no link that loses anything.
                    (facts.way, facts.sent_again) = (0.0, 0.0);
                }
                bottleneck::of(&facts).to_owned()
            }
        };
        apply(outcome, Ceiling { limiter, ..ceiling });
    }
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.id == MEMCPY) {
        let limiter = "copying, and lines that go from core to core".to_owned();
        apply(outcome, Ceiling { name: "none is known".to_owned(), limiter, ..Ceiling::default() });
    }
}

fn latency_limiter(row: &Row) -> String {
    use super::spec::Waiting;
    match (row.spec.waiting, row.spec.load_streams) {
        (_, 1..) => "waiting behind the bulk stream",
        (Waiting::Blocking, _) => "two trips through the kernels, two wake-ups",
        (Waiting::Spinning, _) => "two trips through the kernels",
    }
    .to_owned()
}

fn number(outcome: &Outcome, key: &str) -> f64 {
    let value = outcome.audit.get(key).or_else(|| outcome.parameters.get(key));
    value.and_then(Value::as_f64).unwrap_or(0.0)
}

/// 0 where there is nothing to divide by.
fn share(outcome: &Outcome, part: &str, whole: &str) -> f64 {
    let whole = number(outcome, whole);
    if whole > 0.0 { number(outcome, part) / whole } else { 0.0 }
}

/// The shares of the sums.
fn shares(outcome: &mut Outcome) {
    let pairs = [
        ("sender_cpu_ratio", "sender_cpu_ns", "sender_time_ns"),
        ("receiver_cpu_ratio", "receiver_cpu_ns", "receiver_time_ns"),
        ("cpu_busy_ratio", "cpu_busy_ns", "cpu_capacity_ns"),
        ("retransmit_ratio", "retransmits", "segments"),
        ("receiver_window_ratio", "tcp_receiver_limited_ns", "tcp_busy_ns"),
        ("send_buffer_ratio", "tcp_buffer_limited_ns", "tcp_busy_ns"),
        ("lost_ratio", "datagrams_lost", "datagrams_sent"),
        ("dropped_ratio", "datagrams_dropped", "datagrams_sent"),
    ];
    for (key, part, whole) in pairs {
        if number(outcome, whole) > 0.0 {
            let ratio = share(outcome, part, whole);
            outcome.audit.insert(key.to_owned(), json!(ratio));
        }
    }
    let gigabits = number(outcome, "bytes") * 8.0 / 1e9;
    if gigabits > 0.0 && outcome.audit.contains_key("cpu_busy_ns") {
        let cost = number(outcome, "cpu_busy_ns") / 1e9 / gigabits;
        outcome.audit.insert("cpu_s_per_gbit".to_owned(), json!(cost));
        let softirq = number(outcome, "cpu_softirq_ns") / 1e9 / gigabits;
        outcome.audit.insert("softirq_s_per_gbit".to_owned(), json!(softirq));
    }
}

fn facts(outcome: &Outcome, row: &Row, ceiling: &Ceiling) -> Facts {
    let is_link = ceiling.provenance == Provenance::Link;
    let of = |value: Option<f64>| outcome.median.zip(value).map(|(median, value)| median / value);
    let ways = if row.spec.direction == Direction::Both { 2.0 } else { 1.0 };
    let asked = (row.spec.rate_per_s > 0).then_some(row.spec.rate_per_s as f64 * ways);
    Facts {
        sender_cpu: number(outcome, "sender_cpu_ratio"),
        receiver_cpu: number(outcome, "receiver_cpu_ratio"),
        all_cpus: number(outcome, "cpu_busy_ratio"),
        receiver_window: number(outcome, "receiver_window_ratio"),
        send_buffer: number(outcome, "send_buffer_ratio"),
        way: share(outcome, "tcp_busy_ns", "tcp_time_ns")
            - share(outcome, "tcp_receiver_limited_ns", "tcp_time_ns")
            - share(outcome, "tcp_buffer_limited_ns", "tcp_time_ns"),
        lost: number(outcome, "lost_ratio"),
        sent_again: number(outcome, "retransmit_ratio"),
        dropped: number(outcome, "dropped_ratio"),
        link: if is_link { of(ceiling.value) } else { None },
        asked: of(asked),
    }
}

/// How often a byte is copied on its way over loopback: zero-copy sends are copied there, by the
/// kernel, before the receiver gets them.
fn copies(row: &Row) -> usize {
    let sent = match (row.spec.protocol, row.spec.sender) {
        (Protocol::Tcp, Sender::SendFile) => 0,
        _ => 1,
    };
    let received = match (row.spec.protocol, row.spec.receiver) {
        (Protocol::Tcp, Receiver::Discard) => 0,
        _ => 1,
    };
    sent + received
}

/// The cross-core copy, times the pairs of CPUs that the streams can use.
fn of_memory(row: &Row, copied: [Option<f64>; 2], cpus: u32) -> Ceiling {
    let copies = copies(row);
    let Some(rate) = copies.checked_sub(1).and_then(|index| copied[index]) else {
        let name = if copies == 0 {
            "none: no byte is copied"
        } else {
            "unknown: the copy was not measured"
        };
        return Ceiling { name: name.to_owned(), ..Ceiling::default() };
    };
    let pairs = u32::from(row.spec.streams).min((cpus / 2).max(1));
    let word = if copies == 1 { "copy" } else { "copies" };
    Ceiling {
        name: format!("memcpy from core to core, {copies} {word}, {pairs} × 2 CPUs"),
        value: Some(rate * f64::from(pairs)),
        provenance: Provenance::Measured,
        ..Ceiling::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::client::Family;
    use crate::network::spec::Spec;

    fn row(spec: Spec) -> Row {
        Row { spec, is_best_sender: false, is_best_placement: false, family: Family::V4 }
    }

    fn outcome(median: f64, audit: Value) -> Outcome {
        Outcome {
            id: "network/tcp-throughput".to_owned(),
            median: Some(median),
            audit: audit.as_object().cloned().unwrap(),
            ..Outcome::default()
        }
    }

    fn memcpy(copies: u32, rate: f64) -> Outcome {
        let parameters = super::super::row::memcpy_parameters(copies);
        Outcome { id: MEMCPY.to_owned(), median: Some(rate), parameters, ..Outcome::default() }
    }

    const LOOPBACK: Place = Place { interface: None, is_loopback: true, cpus: 4 };

    #[test]
    fn loopback_is_held_against_as_many_copies_as_it_makes() {
        let rows = [
            row(Spec::default()),
            row(Spec { sender: Sender::SendFile, streams: 8, ..Spec::default() }),
            row(Spec { sender: Sender::SendFile, receiver: Receiver::Discard, ..Spec::default() }),
        ];
        let row = outcome(5e9, json!({}));
        let mut outcomes = vec![row.clone(), row.clone(), row, memcpy(1, 20e9), memcpy(2, 10e9)];
        finish(&mut outcomes, &rows, &LOOPBACK);
        let values: Vec<_> = outcomes.iter().map(|o| o.ceiling.as_ref().unwrap().value).collect();
        assert_eq!(values[..3], [Some(10e9), Some(40e9), None], "two pairs of four CPUs");
        assert_eq!(outcomes[0].ceiling.as_ref().unwrap().ratio, Some(0.5));
    }

    #[test]
    fn cost_counts_all_cpus_per_bit() {
        let audit = json!({"bytes": 125_000_000, "cpu_busy_ns": 500_000_000, "cpu_softirq_ns": 100_000_000,
            "sender_cpu_ns": 95, "sender_time_ns": 100});
        let mut outcomes = vec![outcome(1e9, audit)];
        finish(&mut outcomes, &[row(Spec::default())], &LOOPBACK);
        assert_eq!(outcomes[0].audit["cpu_s_per_gbit"], json!(0.5));
        assert_eq!(outcomes[0].audit["softirq_s_per_gbit"], json!(0.1));
        assert_eq!(outcomes[0].ceiling.as_ref().unwrap().limiter, "sender CPU");
    }

    #[test]
    fn a_figure_above_the_link_is_refused() {
        let interface = Interface {
            name: "eth0".to_owned(),
            bits_per_s: Some(1_000_000_000),
            mtu_bytes: Some(1500),
            is_loopback: false,
        };
        let place = Place { interface: Some(interface), is_loopback: false, cpus: 4 };
        let rows = [row(Spec::default()), row(Spec::default())];
        let mut outcomes = vec![outcome(117e6, json!({})), outcome(130e6, json!({}))];
        finish(&mut outcomes, &rows, &place);
        assert_eq!(outcomes[0].ceiling.as_ref().unwrap().limiter, "the link");
        assert_eq!((outcomes[0].median, outcomes[1].median), (Some(117e6), None));
    }
}
