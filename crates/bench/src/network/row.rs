//! Which rows there are: tests, and what tells them apart in the record. Pure.

use flatout_measure::{Chart, Label, Parameters, Row, Unit};

use super::memcpy::{self, Copies};
use super::sample::CLIENTS;
use super::selection::{Selection, or};
use super::spec::{
    Direction, HEADER_BYTES, MAX_DATAGRAM_BYTES, Offload, Placement, Protocol, Receiver, Sender,
    Spec, Waiting, Work,
};
use super::topology::Family;
use crate::{Extent, between_runs};

/// Streams of a whole run.
const STREAMS: [u16; 4] = [1, 2, 4, 8];
/// Messages whose latency is measured.
pub(super) const MESSAGES: [u32; 4] = [1, 64, 1400, 64 << 10];
/// Block unless the user wants another.
pub(super) const BLOCK_BYTES: u32 = 64 << 10;
/// Datagram of the rows about offloads, at most: iperf3's over Ethernet.
pub(super) const SMALL_DATAGRAM_BYTES: u32 = 1460;
/// Header of UDP.
pub(super) const UDP_BYTES: u32 = 8;
/// Questions per second of the open loop.
const OPEN_RATE: u64 = 2000;

/// A row of the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkRow {
    /// A test between two ends.
    Test(TestRow),
    /// The cross-core copy that loopback is held against.
    Memcpy(Copies),
}

/// A test as a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestRow {
    /// The test, without times.
    pub spec: Spec,
    /// Whether the sender is the best one measured.
    pub is_best_sender: bool,
    /// Whether its threads run where that one was measured to be fastest.
    pub is_best_placement: bool,
    /// Which session carries it.
    pub family: Family,
}

impl TestRow {
    /// A row with all settings as they are given.
    pub fn new(spec: Spec, family: Family) -> Self {
        Self { spec, is_best_sender: false, is_best_placement: false, family }
    }

    /// A row that is sent in the best way.
    fn best(spec: Spec, family: Family, selection: &Selection) -> Self {
        let is_best_placement = selection.placement.is_none();
        Self { is_best_sender: true, is_best_placement, ..Self::new(spec, family) }
    }

    /// Whether the ends are on two CPUs of one machine, or may be: of an `auto` row each run chooses.
    fn wakes_another_cpu(&self) -> bool {
        let may_be_apart = self.is_best_placement || self.spec.placement != Placement::Together;
        self.spec.shares_cpus && may_be_apart
    }

    fn parameters(&self) -> Parameters {
        let spec = &self.spec;
        let placement = if self.is_best_placement { "auto" } else { spec.placement.name() };
        let parameters = Parameters::default()
            .with("family", self.family.name())
            .with("streams", u64::from(spec.streams))
            .with("placement", placement);
        if spec.work == Work::Latency {
            return parameters
                .with("message_bytes", spec.block_bytes)
                .with("wait", spec.waiting.name())
                .with_known("questions_per_s", above_zero(spec.rate_per_s))
                .with_known("load_streams", above_zero(spec.load_streams.into()));
        }
        let parameters = parameters
            .with("direction", spec.direction.name())
            .with("block_bytes", spec.block_bytes)
            .with_known("bytes", above_zero(spec.bytes))
            .with_known("rate_bytes_per_s", above_zero(spec.rate_per_s));
        if spec.protocol == Protocol::Tcp {
            let sender = if self.is_best_sender { "auto" } else { spec.sender.name() };
            return parameters.with("sender", sender).with("receiver", spec.receiver.name());
        }
        parameters.with("datagram_bytes", spec.datagram_bytes).with("offload", spec.offload.name())
    }
}

fn above_zero(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

impl Row for NetworkRow {
    fn label(&self) -> Label {
        let label = match self {
            Self::Memcpy(copies) => Label::new("network/loopback-memcpy", Unit::BytesPerSecond)
                .with("copies_per_byte", *copies as u32)
                .with("block_bytes", memcpy::BLOCK_BYTES),
            Self::Test(test) => {
                let Spec { work, protocol, .. } = test.spec;
                let unit = match work {
                    Work::Throughput => Unit::BytesPerSecond,
                    Work::Latency => Unit::Nanoseconds,
                };
                let id = format!("network/{}-{}", protocol.name(), work.name());
                let unplaced = Spec { placement: Placement::Free, shares_cpus: false, ..test.spec };
                let is_headline = test.is_best_sender || unplaced == latency(protocol, 1, 64);
                Label::new(id, unit).of(test.parameters()).headline_if(is_headline)
            }
        };
        label.deviating_by(match self {
            Self::Test(test) if test.wakes_another_cpu() => between_runs::WAKE_UP,
            _ => between_runs::NETWORK,
        })
    }
}

/// A TCP throughput row with the best sender.
pub(super) fn tcp(streams: u16, direction: Direction) -> Spec {
    Spec { streams, direction, block_bytes: BLOCK_BYTES, ..Spec::default() }
}

/// A UDP throughput row: blocks above the limit of a datagram are sent as the longest ones, or cut
/// by the kernel.
pub(super) fn udp(streams: u16, block_bytes: u32, datagram_bytes: u32, offload: Offload) -> Spec {
    let datagram_bytes = datagram_bytes.min(block_bytes).min(MAX_DATAGRAM_BYTES);
    Spec {
        protocol: Protocol::Udp,
        streams,
        block_bytes,
        datagram_bytes,
        offload,
        ..Spec::default()
    }
}

/// A UDP throughput row of the longest datagrams.
fn longest_datagrams(streams: u16) -> Spec {
    udp(streams, BLOCK_BYTES, MAX_DATAGRAM_BYTES, Offload::Plain)
}

/// Where the ends of a round trip run if both are on one machine: on one CPU the answer costs two
/// switches, on two it costs two wake-ups of an idle CPU, which takes three to five times as long
/// in a guest (10.7 and 28 µs on Sapphire Rapids, 2026-11-22; 20 and 100 µs on Zen 3). These are
/// two figures. Where the scheduler decides, a trial is now the one and now the other.
pub(super) const ON_ONE_MACHINE: [Placement; 2] = [Placement::Apart, Placement::Together];
/// Where they run if each has a machine of its own.
pub(super) const ON_TWO_MACHINES: [Placement; 1] = [Placement::Free];

/// A row of round trips whose ends run wherever they are placed later.
pub(super) fn latency(protocol: Protocol, streams: u16, message_bytes: u32) -> Spec {
    let most = if protocol == Protocol::Udp { MAX_DATAGRAM_BYTES } else { u32::MAX };
    let block_bytes = message_bytes.min(most);
    let placement = Placement::Free;
    Spec { work: Work::Latency, protocol, streams, block_bytes, placement, ..Spec::default() }
}

/// The tests of a run.
pub fn tests(
    extent: Extent,
    selection: &Selection,
    family: Family,
    second: Option<Family>,
    placements: &[Placement],
) -> Vec<TestRow> {
    let specs =
        if selection.is_empty() { plan(extent, &selection.streams) } else { selection.specs() };
    let is_fixed = selection.placement.is_some();
    let mut specs: Vec<Spec> = specs
        .into_iter()
        .flat_map(|spec| match spec.work {
            Work::Latency if !is_fixed => placed(spec, placements),
            _ => vec![spec],
        })
        .collect();
    specs.dedup();
    let row = |spec: Spec| {
        let is_bulk_tcp = spec.work == Work::Throughput && spec.protocol == Protocol::Tcp;
        match is_bulk_tcp && selection.sender.is_none() {
            true => TestRow::best(spec, family, selection),
            false => TestRow::new(spec, family),
        }
    };
    let mut rows: Vec<TestRow> = specs.into_iter().map(row).collect();
    if selection.is_empty() && extent != Extent::Few {
        let base = tcp(1, Direction::Up);
        let each = Sender::ALL.iter().map(|&sender| Spec { sender, ..base });
        rows.extend(each.map(|spec| TestRow::new(spec, family)));
        if extent == Extent::Full {
            let discarding = Spec { receiver: Receiver::Discard, ..base };
            rows.push(TestRow::best(discarding, family, selection));
        }
    }
    if let Some(second) = second {
        rows.push(TestRow::best(tcp(1, Direction::Up), second, selection));
        rows.push(TestRow::new(longest_datagrams(1), second));
    }
    // Nothing is apart on one CPU, whatever was asked for.
    if let &[placement] = placements
        && (!is_fixed || placement == Placement::Together)
    {
        rows.iter_mut().for_each(|row| row.spec.placement = placement);
    }
    rows
}

/// Has datagrams whose length nobody chose fit into a frame, of which the kernel cuts none that is
/// longer, and of which a longer one takes two: 1452 bytes over IPv6 at an MTU of 1500.
pub(super) fn fit(tests: &mut [TestRow], selection: &Selection, mtu_bytes: u64) {
    let is_planned = selection.is_empty();
    for TestRow { spec, family, .. } in tests {
        let is_small = spec.datagram_bytes == SMALL_DATAGRAM_BYTES;
        let is_free = is_planned || spec.offload.cuts() && selection.datagram_bytes.is_none();
        let carried = mtu_bytes.saturating_sub(u64::from(family.header_bytes() + UDP_BYTES));
        if is_small && is_free && carried < SMALL_DATAGRAM_BYTES.into() {
            spec.datagram_bytes = (carried as u32).max(HEADER_BYTES);
            if !spec.offload.cuts() {
                spec.block_bytes = spec.datagram_bytes;
            }
        }
    }
}

/// A round trip in each of the placements; one of several streams, of a busy line, or that waits
/// in another way in the first alone.
fn placed(spec: Spec, placements: &[Placement]) -> Vec<Spec> {
    let is_plain = spec == latency(spec.protocol, 1, spec.block_bytes);
    let count = if is_plain { placements.len() } else { 1 };
    placements[..count].iter().map(|&placement| Spec { placement, ..spec }).collect()
}

/// The rows when the user fixes nothing but, perhaps, streams.
fn plan(extent: Extent, streams: &[u16]) -> Vec<Spec> {
    let usual = match extent {
        Extent::Full => &STREAMS[..],
        Extent::Quick => &[1, 4],
        Extent::Few => &[1],
    };
    let streams = or(streams, usual);
    let first = streams[0];
    let mut specs: Vec<Spec> = streams.iter().map(|&count| tcp(count, Direction::Up)).collect();
    specs.extend(streams.iter().map(|&count| longest_datagrams(count)));
    let messages = match extent {
        Extent::Full => &MESSAGES[..],
        Extent::Quick | Extent::Few => &[64],
    };
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for &bytes in messages {
            let counts = if extent == Extent::Quick { &streams[..1] } else { &streams[..] };
            specs.extend(counts.iter().map(|&count| latency(protocol, count, bytes)));
        }
    }
    let small = |offload: Offload| {
        let block = if offload.cuts() { BLOCK_BYTES } else { SMALL_DATAGRAM_BYTES };
        udp(first, block, SMALL_DATAGRAM_BYTES, offload)
    };
    match extent {
        Extent::Few => {}
        Extent::Quick => specs.extend([small(Offload::Plain), small(Offload::Both)]),
        Extent::Full => {
            specs.extend([tcp(first, Direction::Down), tcp(first, Direction::Both)]);
            specs.push(Spec { direction: Direction::Down, ..longest_datagrams(first) });
            specs.extend(Offload::ALL.iter().map(|&offload| small(offload)));
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let one = latency(protocol, 1, 64);
                specs.push(Spec { waiting: Waiting::Spinning, ..one });
                specs.push(Spec { rate_per_s: OPEN_RATE, ..one });
                specs.push(Spec { load_streams: 1, ..one });
            }
        }
    }
    specs
}

/// The pictures.
pub fn charts() -> Vec<Chart> {
    let chart = |title: &str, id: &str, lines: &[&str]| {
        Chart::new(title, id, "streams", lines).by_powers_of_two()
    };
    let tcp = ["family", "direction", "block_bytes", "sender", "receiver", "placement", CLIENTS];
    let udp =
        ["family", "direction", "block_bytes", "datagram_bytes", "offload", "placement", CLIENTS];
    let latency =
        ["family", "message_bytes", "wait", "placement", "questions_per_s", "load_streams"];
    vec![
        chart("TCP throughput by streams", "network/tcp-throughput", &tcp),
        chart("UDP throughput by streams", "network/udp-throughput", &udp),
        chart("TCP round trip by streams", "network/tcp-latency", &latency),
        chart("UDP round trip by streams", "network/udp-latency", &latency),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_has_what_it_promises() {
        let rows = tests(
            Extent::Full,
            &Selection::default(),
            Family::V4,
            Some(Family::V6),
            &ON_ONE_MACHINE,
        );
        let id = |row: &TestRow| NetworkRow::Test(*row).id();
        let count = |wanted: &str| rows.iter().filter(|row| id(row) == wanted).count();
        for streams in STREAMS {
            let has = |wanted: &str| {
                rows.iter().any(|row| {
                    id(row) == wanted
                        && row.spec.streams == streams
                        && row.spec.block_bytes == 65_536
                })
            };
            assert!(has("network/tcp-throughput") && has("network/udp-throughput"), "{streams}");
        }
        assert_eq!(count("network/tcp-latency"), 16 + 4 + 3);
        assert_eq!(count("network/udp-latency"), 16 + 4 + 3);
        let is_free = |row: &TestRow| row.spec.placement == Placement::Free;
        assert!(!rows.iter().any(is_free), "where the scheduler decides there are two figures");
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row.spec.check(), Ok(()));
            let alike =
                |other: &&TestRow| id(other) == id(row) && other.parameters() == row.parameters();
            assert_eq!(rows[index + 1..].iter().find(alike), None);
        }
    }

    #[test]
    fn the_short_set_is_short() {
        let short = |extent, placements: &[Placement]| {
            tests(extent, &Selection::default(), Family::V4, None, placements).len()
        };
        assert_eq!(short(Extent::Few, &ON_ONE_MACHINE), 6);
        assert_eq!(short(Extent::Few, &ON_TWO_MACHINES), 4);
        assert!(short(Extent::Quick, &ON_ONE_MACHINE) <= 16);
    }

    #[test]
    fn rows_whose_ends_wake_each_other_on_two_cpus_are_less_sure_than_those_on_one() {
        let deviation = |placement, shares_cpus, is_best_placement| {
            let spec = Spec { placement, shares_cpus, ..latency(Protocol::Tcp, 1, 64) };
            let test = TestRow { is_best_placement, ..TestRow::new(spec, Family::V4) };
            let label = NetworkRow::Test(test).label();
            assert!(label.is_headline, "wherever it runs");
            label.deviation_between_runs
        };
        use Placement::{Apart, Free, Together};
        let (sure, less) = (between_runs::NETWORK, between_runs::WAKE_UP);
        assert!(less > sure);
        assert_eq!(
            [Apart, Free, Together].map(|it| deviation(it, true, false)),
            [less, less, sure]
        );
        assert_eq!(deviation(Together, true, true), less, "the next run may choose the other");
        assert_eq!(
            [Apart, Free].map(|it| deviation(it, false, false)),
            [sure; 2],
            "of two machines"
        );
    }

    #[test]
    fn what_the_user_fixes_is_what_runs() {
        let selection = Selection {
            streams: vec![2],
            block_bytes: vec![1000],
            directions: vec![Direction::Down, Direction::Both],
            sender: Some(Sender::ZeroCopy),
            bytes: Some(1 << 20),
            ..Selection::default()
        };
        let rows = tests(Extent::Full, &selection, Family::V4, None, &ON_ONE_MACHINE);
        assert_eq!(rows.len(), 2, "a sender is TCP's alone");
        let spec = rows[0].spec;
        assert_eq!((spec.sender, spec.block_bytes, spec.bytes), (Sender::ZeroCopy, 1000, 1 << 20));
        assert!(!rows[0].is_best_sender);
        let reverse = Selection { is_reverse: true, ..Selection::default() };
        let rows = tests(Extent::Full, &reverse, Family::V4, None, &ON_ONE_MACHINE);
        assert!(rows.iter().all(|row| row.spec.direction == Direction::Down));
    }

    #[test]
    fn between_two_machines_and_on_one_cpu_there_is_one_placement() {
        let all = |placement, placements: &[Placement]| {
            let selection = Selection { placement, ..Selection::default() };
            let rows = tests(Extent::Full, &selection, Family::V4, Some(Family::V6), placements)
                .into_iter();
            let mut seen: Vec<Placement> = rows.map(|row| row.spec.placement).collect();
            seen.dedup();
            seen
        };
        assert_eq!(all(None, &ON_TWO_MACHINES), [Placement::Free]);
        let asked = Some(Placement::Apart);
        assert_eq!(all(asked, &ON_TWO_MACHINES), [Placement::Apart]);
        assert_eq!(all(asked, &ON_ONE_MACHINE[1..]), [Placement::Together]);
    }

    #[test]
    fn datagrams_that_nobody_chose_fit_into_a_frame() {
        let lengths = |selection: &Selection, family, mtu_bytes| {
            let mut rows = tests(Extent::Quick, selection, family, None, &ON_TWO_MACHINES);
            fit(&mut rows, selection, mtu_bytes);
            let lengths = rows.iter().map(|row| (row.spec.block_bytes, row.spec.datagram_bytes));
            lengths.filter(|&(_, datagram)| (1..10_000).contains(&datagram)).collect::<Vec<_>>()
        };
        let plan = Selection::default();
        assert_eq!(lengths(&plan, Family::V4, 1500), [(1460, 1460), (65_536, 1460)]);
        assert_eq!(lengths(&plan, Family::V6, 9000), [(1460, 1460), (65_536, 1460)]);
        assert_eq!(lengths(&plan, Family::V6, 1500), [(1452, 1452), (65_536, 1452)]);
        assert_eq!(lengths(&plan, Family::V4, 1280), [(1252, 1252), (65_536, 1252)]);
        let cut = Selection { offload: Some(Offload::Gso), ..plan.clone() };
        assert_eq!(lengths(&cut, Family::V6, 1500), [(65_536, 1452)]);
        let chosen = Selection { datagram_bytes: Some(1460), ..cut };
        assert_eq!(lengths(&chosen, Family::V6, 1500), [(65_536, 1460)]);
        let blocks = Selection { protocols: vec![Protocol::Udp], block_bytes: vec![1460], ..plan };
        assert_eq!(lengths(&blocks, Family::V6, 1500), [(1460, 1460)]);
    }

    #[test]
    fn datagrams_are_as_long_as_the_block_and_the_protocol_allow() {
        assert_eq!(udp(1, 65_536, 65_507, Offload::Plain).datagram_bytes, 65_507);
        assert_eq!(udp(1, 1000, 65_507, Offload::Plain).datagram_bytes, 1000);
        assert_eq!(latency(Protocol::Udp, 1, 65_536).block_bytes, 65_507);
        assert_eq!(latency(Protocol::Tcp, 1, 65_536).block_bytes, 65_536);
    }
}
