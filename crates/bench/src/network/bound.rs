//! What the rows are held against, and what limits them: a link's speed less what headers and gaps
//! take, or, over loopback, a copy from core to core.

use flatout_measure::sampler::fact::{
    BETWEEN_RUNS, INTERVALS_DISTURBED, INTERVALS_SPOILED, OUTLIER_INDICES, SPOIL_REASONS,
    TRIALS_RUN,
};
use flatout_measure::{
    Ceiling, Facts, Key, Measured, MeasuredFurther, Provenance, ceiling, warning,
};
use flatout_sys::socket::interface::Interface;

use super::memcpy::Copies;
use super::row::{NetworkRow, TestRow, UDP_BYTES};
use super::spec::{Direction, Protocol, Receiver, Sender, Spec, Waiting, Work};
use super::topology::{Family, Topology};
use super::{account, fact};
use crate::fact::BYTES;

/// Preamble, start of frame, header, checksum and gap of an Ethernet frame.
const ETHERNET_BYTES: f64 = 38.0;
/// What a frame carries at least, padded.
const LEAST_BYTES: f64 = 46.0;
const TCP_BYTES: f64 = 20.0;
/// Time stamps, which Linux sends with each segment unless told otherwise.
const TCP_OPTION_BYTES: f64 = 12.0;
/// What a header of a fragment takes over IPv6.
const FRAGMENT_BYTES: f64 = 8.0;

/// A thread that works so much of its time does little but work.
const BUSY: f64 = 0.9;
/// So much of a link is all of it.
const FULL: f64 = 0.9;
/// So much of the time of one CPU held back by a quota is what makes a row slow.
const HELD_BACK: f64 = 0.1;
/// Part of the time that makes a limit the usual state.
const MOSTLY: f64 = 0.5;
/// Losses that TCP answers by slowing down. (A few segments are sent again over loopback, too, when
/// threads wait for CPUs; so a busy CPU is looked for first.)
const LOSSY: f64 = 0.001;
/// Losses of UDP that are more than a queue full for a moment.
const MANY: f64 = 0.01;

/// What is known of the figure of all clients, and not of one of them.
const OF_THE_SUM: [Key; 7] = [
    BYTES,
    TRIALS_RUN,
    INTERVALS_SPOILED,
    SPOIL_REASONS,
    INTERVALS_DISTURBED,
    OUTLIER_INDICES,
    BETWEEN_RUNS,
];

/// Gives each row its ratios, its bound, and the name of its bottleneck.
pub fn apply(rows: &mut [Measured<NetworkRow>], topology: &Topology) {
    let copied = rows.iter().filter_map(|measured| match measured.row {
        NetworkRow::Memcpy(copies) => Some((copies, measured.outcome.median?)),
        NetworkRow::Test(_) => None,
    });
    let copied: Vec<(Copies, f64)> = copied.collect();
    for Measured { row, outcome, facts, further } in rows {
        further.iter_mut().for_each(of_all_clients);
        fact::add_ratios(facts);
        warning::add_all(&mut outcome.warnings, account::warnings(facts));
        warning::add_all(&mut outcome.warnings, fact::shared(facts, outcome.n));
        let none = Ceiling::unknown("none is known");
        let bound = match row {
            NetworkRow::Memcpy(_) => {
                none.limited_by("copying, and lines that go from core to core")
            }
            NetworkRow::Test(test) if test.spec.work == Work::Latency => {
                none.limited_by(latency_limiter(&test.spec, topology))
            }
            NetworkRow::Test(test) => {
                let bound = throughput(test, &copied, topology);
                let share = |value| outcome.median.zip(value).map(|(median, of)| median / of);
                let link = bound.value.filter(|_| ceiling::is_derived(bound.provenance));
                let asked = (test.spec.rate_per_s > 0)
                    .then_some(test.spec.rate_per_s as f64 * ways(&test.spec));
                let has_path = !topology.is_loopback();
                bound.limited_by(bottleneck(facts, share(asked), share(link), has_path))
            }
        };
        ceiling::apply(outcome, bound);
    }
}

/// A row of what all clients carried: what else is known was seen by one of them alone.
fn of_all_clients(sum: &mut MeasuredFurther) {
    let mut facts = std::mem::take(&mut sum.facts);
    for key in OF_THE_SUM {
        sum.facts.set_known(key, facts.take(key));
    }
    let bound = Ceiling::unknown("unknown: the server's links and CPUs")
        .limited_by("not known here: what most of the clients' own rows name");
    ceiling::apply(&mut sum.outcome, bound);
}

/// What most likely holds a row back. Pure: facts in, a name out.
///
/// `asked`: figure ÷ the rate asked for, where one was. `link`: figure ÷ what the link can carry, where
/// that is known. Without a path between the ends nothing is lost on one, and nobody waits for it.
fn bottleneck(
    facts: &Facts,
    asked: Option<f64>,
    link: Option<f64>,
    has_path: bool,
) -> &'static str {
    let ratio = |key| facts.number(key).unwrap_or(0.0);
    let (sender_cpu, receiver_cpu) =
        (ratio(fact::SENDER_CPU_RATIO), ratio(fact::RECEIVER_CPU_RATIO));
    let held = fact::share(facts, fact::THROTTLED_NS, fact::TRIALS_NS).unwrap_or(0.0);
    let is_dropped = ratio(fact::DROPPED_RATIO) >= MANY && receiver_cpu >= sender_cpu.min(BUSY);
    // Without a rate a sender of datagrams waits for nothing but a CPU, and room in its socket.
    let waits_to_send = facts.number(fact::DATAGRAMS_SENT).is_some()
        && sender_cpu.max(ratio(fact::CPU_BUSY_RATIO)) < MOSTLY;
    // The first that is so.
    let signs = [
        ("the rate asked for", asked.is_some_and(|share| share >= 0.98)),
        ("the link", link.is_some_and(|share| (FULL..=ceiling::TOLERANCE).contains(&share))),
        ("the CPU quota", held >= HELD_BACK),
        ("receiver CPU", is_dropped),
        ("packet loss", ratio(fact::LOST_RATIO) >= MANY),
        ("sender CPU", sender_cpu >= BUSY && sender_cpu >= receiver_cpu),
        ("receiver CPU", receiver_cpu >= BUSY),
        ("all CPUs", ratio(fact::CPU_BUSY_RATIO) >= BUSY),
        ("packet loss", has_path && ratio(fact::RETRANSMIT_RATIO) >= LOSSY),
        ("the receiver's window", ratio(fact::RECEIVER_WINDOW_RATIO) >= MOSTLY),
        ("the send buffer", ratio(fact::SEND_BUFFER_RATIO) >= MOSTLY),
        (
            "the path: a link or a queue between the ends",
            has_path && (waits_for_path(facts) >= MOSTLY || asked.is_none() && waits_to_send),
        ),
    ];
    let found = signs.into_iter().find(|(_, is_so)| *is_so);
    found.map_or("unknown: no CPU, window, link or loss stands out", |(name, _)| name)
}

/// The share of time in which TCP waited for the path alone: something was on it, and neither the
/// receiver's window nor the send buffer held it back.
fn waits_for_path(facts: &Facts) -> f64 {
    let share = |part| fact::share(facts, part, fact::TCP_TIME_NS).unwrap_or(0.0);
    share(fact::TCP_BUSY_NS)
        - share(fact::TCP_RECEIVER_LIMITED_NS)
        - share(fact::TCP_BUFFER_LIMITED_NS)
}

fn throughput(test: &TestRow, copied: &[(Copies, f64)], topology: &Topology) -> Ceiling {
    match &topology.interface {
        Some(interface) if interface.is_loopback => of_copies(&test.spec, copied, topology.cpus),
        Some(interface) => of_link(test, interface, topology.is_virtual),
        None => Ceiling::unknown("unknown: no interface has the address"),
    }
}

/// What a round trip is made of: what lies between the ends, where it is not loopback.
fn latency_limiter(spec: &Spec, topology: &Topology) -> &'static str {
    match (spec.waiting, spec.load_streams) {
        (_, 1..) => "waiting behind the bulk stream",
        _ if !topology.is_loopback() => {
            "the path, there and back, and the network stack of each end"
        }
        (Waiting::Blocking, _) => "network stack, passed twice, and two wake-ups",
        (Waiting::Spinning, _) => "network stack, passed twice",
    }
}

/// Directions that carry data at the same time.
fn ways(spec: &Spec) -> f64 {
    if spec.direction == Direction::Both { 2.0 } else { 1.0 }
}

fn of_link(test: &TestRow, interface: &Interface, is_virtual: bool) -> Ceiling {
    let name = &interface.name;
    let Some(bits_per_s) = interface.bits_per_s else {
        return Ceiling::unknown(format!("unknown: {name} tells no speed, or has no hardware"));
    };
    let Some(mtu_bytes) = interface.mtu_bytes else {
        return Ceiling::unknown(format!("unknown: {name} tells no MTU"));
    };
    let share = goodput(&test.spec, test.family, mtu_bytes);
    // An emulated e1000 tells 1 Gbit/s whatever the host moves.
    let (whose, from) = match is_virtual {
        true => (", as the hypervisor says,", Provenance::Given),
        false => ("", Provenance::Link),
    };
    Ceiling::known(
        format!(
            "{name}: {bits_per_s} bit/s{whose} × {share:.4} (goodput at an MTU of {mtu_bytes})"
        ),
        Some(bits_per_s as f64 / 8.0 * share * ways(&test.spec)),
        from,
    )
}

/// The share of an Ethernet link's bits that are data of the program, at best.
///
/// TCP: (MTU − IP − TCP − 12) ÷ (MTU + 38). UDP: datagram ÷ what it takes in one frame, 84 bytes at
/// least, or in as many fragments as it needs, which carry a multiple of eight bytes each.
fn goodput(spec: &Spec, family: Family, mtu_bytes: u64) -> f64 {
    let mtu = mtu_bytes as f64;
    let ip = f64::from(family.header_bytes());
    let fragment = if family == Family::V6 { ip + FRAGMENT_BYTES } else { ip };
    if spec.protocol == Protocol::Tcp {
        let carried = mtu - ip - TCP_BYTES - TCP_OPTION_BYTES;
        return (carried / (mtu + ETHERNET_BYTES)).max(0.0);
    }
    let datagram = f64::from(spec.datagram_bytes.max(1));
    let carried = datagram + f64::from(UDP_BYTES);
    if carried + ip <= mtu {
        return datagram / ((carried + ip).max(LEAST_BYTES) + ETHERNET_BYTES);
    }
    let each = ((mtu - fragment) / 8.0).floor() * 8.0;
    let frames = (carried / each.max(8.0)).ceil();
    datagram / (carried + frames * (fragment + ETHERNET_BYTES))
}

/// The cross-core copy, times the pairs of CPUs that the streams of all directions can use.
fn of_copies(spec: &Spec, copied: &[(Copies, f64)], cpus: u32) -> Ceiling {
    let Some(copies) = copies(spec) else { return Ceiling::unknown("none: no byte is copied") };
    let rate = copied.iter().find(|(known, _)| *known == copies).map(|(_, rate)| rate);
    let Some(rate) = rate else { return Ceiling::unknown("unknown: the copy was not measured") };
    let pairs = (spec.flows().len() as u32).min((cpus / 2).max(1));
    let word = if copies == Copies::One { "1 copy" } else { "2 copies" };
    let name = format!("memcpy from core to core, {word}, {pairs} × 2 CPUs");
    Ceiling::best_seen(name, Some(rate * f64::from(pairs)))
}

/// How often a byte is copied on its way over loopback: zero-copy sends are copied there, by the
/// kernel, before the receiver gets them.
fn copies(spec: &Spec) -> Option<Copies> {
    let is_tcp = spec.protocol == Protocol::Tcp;
    let is_sent_in_place = is_tcp && spec.sender == Sender::SendFile;
    let is_thrown_away = is_tcp && spec.receiver == Receiver::Discard;
    match (is_sent_in_place, is_thrown_away) {
        (true, true) => None,
        (false, false) => Some(Copies::Two),
        _ => Some(Copies::One),
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::blank;

    use super::*;

    fn measured(row: NetworkRow, median: f64) -> Measured<NetworkRow> {
        let mut outcome = blank(&row);
        outcome.median = Some(median);
        Measured { row, outcome, facts: Facts::default(), further: Vec::new() }
    }

    fn test(spec: Spec) -> NetworkRow {
        NetworkRow::Test(TestRow::new(spec, Family::V4))
    }

    fn over(bits_per_s: Option<u64>, is_loopback: bool) -> Topology {
        let interface =
            Interface { name: "eth0".to_owned(), bits_per_s, mtu_bytes: Some(1500), is_loopback };
        let (is_one_machine, is_virtual) = (is_loopback, false);
        Topology { interface: Some(interface), is_one_machine, is_virtual, cpus: 4 }
    }

    fn bound(measured: &Measured<NetworkRow>) -> &Ceiling {
        measured.outcome.ceiling.as_ref().unwrap()
    }

    #[test]
    fn loopback_is_held_against_as_many_copies_as_it_makes() {
        let sendfile = Spec { sender: Sender::SendFile, ..Spec::one_stream() };
        let mut rows = [
            measured(test(Spec::one_stream()), 5e9),
            measured(test(Spec { streams: 8, ..sendfile }), 5e9),
            measured(test(Spec { receiver: Receiver::Discard, ..sendfile }), 5e9),
            measured(NetworkRow::Memcpy(Copies::One), 20e9),
            measured(NetworkRow::Memcpy(Copies::Two), 10e9),
        ];
        apply(&mut rows, &over(None, true));
        let values: Vec<_> = rows.iter().map(|row| bound(row).value).collect();
        assert_eq!(values[..3], [Some(10e9), Some(40e9), None], "two pairs of four CPUs");
        assert_eq!(bound(&rows[0]).ratio, None, "another way of moving bytes is no bound");
        assert_eq!(bound(&rows[0]).name, "memcpy from core to core, 2 copies, 1 × 2 CPUs");
    }

    #[test]
    fn streams_both_ways_are_held_against_two_pairs_of_cpus() {
        let both = Spec { direction: Direction::Both, ..Spec::one_stream() };
        let copy = measured(NetworkRow::Memcpy(Copies::Two), 10e9);
        let mut rows = [measured(test(both), 12e9), copy];
        apply(&mut rows, &over(None, true));
        assert_eq!(bound(&rows[0]).value, Some(20e9));
    }

    #[test]
    fn the_bottleneck_follows_from_the_facts_of_the_row() {
        let mut rows = [measured(test(Spec::one_stream()), 1e9)];
        rows[0].facts.set(fact::SENDER_CPU_NS, 95_u64);
        rows[0].facts.set(fact::SENDER_TIME_NS, 100_u64);
        apply(&mut rows, &over(None, true));
        assert_eq!(bound(&rows[0]).limiter, "sender CPU");
    }

    #[test]
    fn a_figure_above_the_link_is_refused() {
        let mut rows = [117e6, 130e6].map(|median| measured(test(Spec::one_stream()), median));
        apply(&mut rows, &over(Some(1_000_000_000), false));
        assert_eq!(bound(&rows[0]).limiter, "the link");
        assert_eq!((rows[0].outcome.median, rows[1].outcome.median), (Some(117e6), None));
    }

    #[test]
    fn a_figure_above_the_link_of_a_virtual_machine_stays() {
        let mut rows = [117e6, 400e6].map(|median| measured(test(Spec::one_stream()), median));
        let topology = Topology { is_virtual: true, ..over(Some(1_000_000_000), false) };
        apply(&mut rows, &topology);
        assert_eq!(bound(&rows[0]).limiter, "the link");
        assert_eq!(rows[1].outcome.median, Some(400e6));
        assert!(bound(&rows[1]).limiter.starts_with("unknown"), "{:?}", bound(&rows[1]));
        assert!(warning::has(&rows[1].outcome.warnings, warning::LIMIT_EXCEEDED));
        assert!(bound(&rows[1]).name.contains("as the hypervisor says"));
    }

    #[test]
    fn a_round_trip_between_machines_is_made_of_the_path() {
        let limiter = |is_loopback| {
            let spec = Spec { work: Work::Latency, ..Spec::one_stream() };
            let mut rows = [measured(test(spec), 48e6)];
            apply(&mut rows, &over(None, is_loopback));
            bound(&rows[0]).limiter.clone()
        };
        assert_eq!(limiter(true), "network stack, passed twice, and two wake-ups");
        assert!(limiter(false).starts_with("the path"), "{}", limiter(false));
    }

    fn udp(datagram_bytes: u32) -> Spec {
        Spec { protocol: Protocol::Udp, datagram_bytes, ..Spec::one_stream() }
    }

    #[test]
    fn goodput_is_that_of_the_textbook() {
        let near = |share: f64, expected: f64| assert!((share - expected).abs() < 1e-4, "{share}");
        near(goodput(&Spec::one_stream(), Family::V4, 1500), 1448.0 / 1538.0);
        near(goodput(&Spec::one_stream(), Family::V6, 1500), 1428.0 / 1538.0);
        near(goodput(&Spec::one_stream(), Family::V4, 9000), 8948.0 / 9038.0);
        near(goodput(&udp(1472), Family::V4, 1500), 1472.0 / 1538.0);
        near(goodput(&udp(100), Family::V4, 1500), 100.0 / 166.0);
        near(goodput(&udp(16), Family::V4, 1500), 16.0 / 84.0);
        // 65,515 bytes in fragments of 1480, and of 1448 with the fragment header of IPv6.
        near(goodput(&udp(65_507), Family::V4, 1500), 65_507.0 / (65_515.0 + 45.0 * 58.0));
        near(goodput(&udp(65_507), Family::V6, 1500), 65_507.0 / (65_515.0 + 46.0 * 86.0));
        near(goodput(&Spec::one_stream(), Family::V4, 10), 0.0);
    }

    #[test]
    fn a_link_without_speed_is_unknown_and_both_ways_are_two() {
        let link = |spec: Spec, bits_per_s| {
            let mut rows = [measured(test(spec), 1.0)];
            apply(&mut rows, &over(bits_per_s, false));
            bound(&rows[0]).clone()
        };
        let unknown = link(Spec::one_stream(), None);
        assert_eq!((unknown.value, unknown.provenance), (None, Provenance::Unknown));
        let one = link(Spec::one_stream(), Some(1_000_000_000));
        assert!((one.value.unwrap() - 125e6 * 1448.0 / 1538.0).abs() < 1.0);
        let both = Spec { direction: Direction::Both, ..Spec::one_stream() };
        let two = link(both, Some(1_000_000_000));
        assert_eq!(two.value.unwrap(), 2.0 * one.value.unwrap());
    }

    const IDLE: [(Key, f64); 3] = [
        (fact::SENDER_CPU_RATIO, 0.2),
        (fact::RECEIVER_CPU_RATIO, 0.2),
        (fact::CPU_BUSY_RATIO, 0.2),
    ];

    fn idle_with(more: &[(Key, f64)]) -> Facts {
        let mut facts = Facts::default();
        IDLE.iter().chain(more).for_each(|&(key, ratio)| facts.set(key, ratio));
        facts
    }

    #[test]
    fn a_quota_that_holds_an_end_back_is_the_limit_before_its_consequences() {
        let of = |throttled_ns: u64| {
            let facts = idle_with(&[(fact::RECEIVER_WINDOW_RATIO, 0.6)]);
            let facts = facts.with(fact::THROTTLED_NS, throttled_ns);
            bottleneck(&facts.with(fact::TRIALS_NS, 1000_u64), None, None, false)
        };
        assert_eq!([of(400), of(50)], ["the CPU quota", "the receiver's window"]);
    }

    #[test]
    fn each_bottleneck_has_its_facts() {
        use fact::{
            CPU_BUSY_RATIO, DATAGRAMS_SENT, DROPPED_RATIO, LOST_RATIO, RECEIVER_CPU_RATIO,
            RECEIVER_WINDOW_RATIO, RETRANSMIT_RATIO, SEND_BUFFER_RATIO, SENDER_CPU_RATIO,
            TCP_BUFFER_LIMITED_NS, TCP_BUSY_NS, TCP_RECEIVER_LIMITED_NS, TCP_TIME_NS,
        };
        let busy = idle_with(&[(SENDER_CPU_RATIO, 0.99)]);
        assert_eq!(bottleneck(&busy, None, Some(0.97), true), "the link");
        assert_eq!(bottleneck(&idle_with(&[]), Some(1.0), None, true), "the rate asked for");
        for (facts, expected) in [
            (&[(LOST_RATIO, 0.02), (SENDER_CPU_RATIO, 1.0)][..], "packet loss"),
            (&[(RETRANSMIT_RATIO, 0.01), (RECEIVER_WINDOW_RATIO, 0.6)], "packet loss"),
            (&[(RETRANSMIT_RATIO, 0.01), (SENDER_CPU_RATIO, 0.97)], "sender CPU"),
            (&[(SENDER_CPU_RATIO, 0.97), (RECEIVER_CPU_RATIO, 0.95)], "sender CPU"),
            (&[(SENDER_CPU_RATIO, 0.7), (RECEIVER_CPU_RATIO, 0.95)], "receiver CPU"),
            (
                &[(DROPPED_RATIO, 0.2), (SENDER_CPU_RATIO, 0.99), (RECEIVER_CPU_RATIO, 0.95)],
                "receiver CPU",
            ),
            (&[(CPU_BUSY_RATIO, 0.98)], "all CPUs"),
            (&[(RECEIVER_WINDOW_RATIO, 0.8)], "the receiver's window"),
            (&[(SEND_BUFFER_RATIO, 0.8)], "the send buffer"),
            (
                &[
                    (TCP_TIME_NS, 100.0),
                    (TCP_BUSY_NS, 98.0),
                    (TCP_RECEIVER_LIMITED_NS, 1.0),
                    (TCP_BUFFER_LIMITED_NS, 2.0),
                ],
                "the path: a link or a queue between the ends",
            ),
            (&[], "unknown: no CPU, window, link or loss stands out"),
            (&[(DATAGRAMS_SENT, 1e6)], "the path: a link or a queue between the ends"),
            (
                &[(DATAGRAMS_SENT, 1e6), (CPU_BUSY_RATIO, 0.8)],
                "unknown: no CPU, window, link or loss stands out",
            ),
        ] {
            assert_eq!(bottleneck(&idle_with(facts), None, None, true), expected, "{facts:?}");
        }
    }

    #[test]
    fn loopback_has_no_path_to_wait_for_and_no_loss_on_it() {
        let waiting = [(fact::TCP_TIME_NS, 100.0), (fact::TCP_BUSY_NS, 98.0)];
        let sent = [(fact::DATAGRAMS_SENT, 1e6)];
        for facts in [&[(fact::RETRANSMIT_RATIO, 0.01)][..], &waiting, &sent] {
            let name = bottleneck(&idle_with(facts), None, None, false);
            assert!(name.starts_with("unknown"), "{facts:?}");
        }
    }
}
