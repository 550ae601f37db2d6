//! Which rows there are: tests, and what tells them apart in the record. Pure.

use flatout_measure::record::Chart;
use serde_json::{Map, Value, json};

use super::client::Family;
use super::spec::{
    Direction, MAX_DATAGRAM_BYTES, Offload, Placement, Protocol, Receiver, Sender, Spec, Waiting,
    Work,
};
use crate::area::Extent;

/// Id of the rows of a cross-core copy.
pub const MEMCPY: &str = "network/loopback-memcpy";
/// Streams of a whole run.
const STREAMS: [u16; 4] = [1, 2, 4, 8];
/// Messages whose latency is measured.
const MESSAGES: [u32; 4] = [1, 64, 1400, 64 << 10];
/// Block unless the user wants another.
const BLOCK_BYTES: u32 = 64 << 10;
/// Datagram of the rows about offloads: iperf3's over Ethernet.
const SMALL_DATAGRAM_BYTES: u32 = 1460;
/// Questions per second of the open loop.
const OPEN_RATE: u64 = 2000;

/// What the user fixed; empty lists and `None` leave it to the plan.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Throughput or latency alone.
    pub work: Option<Work>,
    /// Protocols.
    pub protocols: Vec<Protocol>,
    /// Numbers of streams.
    pub streams: Vec<u16>,
    /// Directions.
    pub directions: Vec<Direction>,
    /// Bytes of a block, or of a message.
    pub block_bytes: Vec<u32>,
    /// Bytes of a datagram.
    pub datagram_bytes: Option<u32>,
    /// How TCP sends.
    pub sender: Option<Sender>,
    /// How TCP receives.
    pub receiver: Option<Receiver>,
    /// What UDP leaves to the kernel.
    pub offload: Option<Offload>,
    /// How answers are waited for.
    pub waiting: Option<Waiting>,
    /// Where threads run.
    pub placement: Option<Placement>,
    /// Bytes of a test, all streams together.
    pub bytes: Option<u64>,
    /// Bytes per second, or questions per second.
    pub rate_per_s: Option<u64>,
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its test, without times.
    pub spec: Spec,
    /// Whether the sender is the best one measured.
    pub is_best_sender: bool,
    /// Whether its threads run where that one was measured to be fastest.
    pub is_best_placement: bool,
    /// Which session carries it.
    pub family: Family,
}

impl Row {
    fn new(spec: Spec, family: Family) -> Self {
        Self { spec, is_best_sender: false, is_best_placement: false, family }
    }

    /// A row that is sent in the best way.
    fn best(spec: Spec, family: Family, selection: &Selection) -> Self {
        let is_best_placement = selection.placement.is_none();
        Self { is_best_sender: true, is_best_placement, ..Self::new(spec, family) }
    }

    /// Id of the row.
    pub fn id(&self) -> &'static str {
        match (self.spec.work, self.spec.protocol) {
            (Work::Throughput, Protocol::Tcp) => "network/tcp-throughput",
            (Work::Throughput, Protocol::Udp) => "network/udp-throughput",
            (Work::Latency, Protocol::Tcp) => "network/tcp-latency",
            (Work::Latency, Protocol::Udp) => "network/udp-latency",
        }
    }

    /// What tells it from others of the same id.
    pub fn parameters(&self) -> Map<String, Value> {
        let spec = &self.spec;
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| _ = map.insert(key.to_owned(), value);
        put("family", self.family.name().into());
        put("streams", spec.streams.into());
        let placement = if self.is_best_placement { "auto" } else { spec.placement.name() };
        put("placement", placement.into());
        match spec.work {
            Work::Latency => {
                put("message_bytes", spec.block_bytes.into());
                put("wait", spec.waiting.name().into());
                if spec.rate_per_s > 0 {
                    put("questions_per_s", spec.rate_per_s.into());
                }
                if spec.load_streams > 0 {
                    put("load_streams", spec.load_streams.into());
                }
            }
            Work::Throughput => {
                put("direction", spec.direction.name().into());
                put("block_bytes", spec.block_bytes.into());
                if spec.bytes > 0 {
                    put("bytes", spec.bytes.into());
                }
                if spec.rate_per_s > 0 {
                    put("rate_bytes_per_s", spec.rate_per_s.into());
                }
            }
        }
        match (spec.work, spec.protocol) {
            (Work::Throughput, Protocol::Tcp) => {
                let sender = if self.is_best_sender { "auto" } else { spec.sender.name() };
                put("sender", sender.into());
                put("receiver", spec.receiver.name().into());
            }
            (Work::Throughput, Protocol::Udp) => {
                put("datagram_bytes", spec.datagram_bytes.into());
                put("offload", spec.offload.name().into());
            }
            (Work::Latency, _) => {}
        }
        map
    }
}

/// A TCP throughput row with the best sender.
fn tcp(streams: u16, direction: Direction) -> Spec {
    Spec { streams, direction, block_bytes: BLOCK_BYTES, ..Spec::default() }
}

/// A UDP throughput row: blocks above the limit of a datagram are sent as the longest ones, or cut
/// by the kernel.
fn udp(streams: u16, block_bytes: u32, datagram_bytes: u32, offload: Offload) -> Spec {
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

/// A row of round trips. Threads that wait for each other are placed by the scheduler, as those of programs are:
/// on one CPU the answer costs two switches, on two it costs two wake-ups of an idle CPU, which
/// takes three times as long in a guest (10.7 and 28 µs on Sapphire Rapids, 2026-11-22).
fn latency(protocol: Protocol, streams: u16, message_bytes: u32) -> Spec {
    let most = if protocol == Protocol::Udp { MAX_DATAGRAM_BYTES } else { u32::MAX };
    let block_bytes = message_bytes.min(most);
    let placement = Placement::Free;
    Spec { work: Work::Latency, protocol, streams, block_bytes, placement, ..Spec::default() }
}

/// The rows of a run.
pub fn rows(extent: Extent, selection: &Selection, family: Family, has_second: bool) -> Vec<Row> {
    let mut specs =
        if selection.is_empty() { plan(extent, &selection.streams) } else { selection.specs() };
    specs.dedup();
    let is_auto = |spec: &Spec| {
        spec.work == Work::Throughput
            && spec.protocol == Protocol::Tcp
            && selection.sender.is_none()
    };
    let mut rows: Vec<Row> = specs
        .into_iter()
        .map(|spec| match is_auto(&spec) {
            true => Row::best(spec, family, selection),
            false => Row::new(spec, family),
        })
        .collect();
    if selection.is_empty() && extent != Extent::Few {
        rows.extend(ladder(extent, family));
    }
    if has_second {
        let other = Family::V6;
        rows.push(Row::best(tcp(1, Direction::Up), other, selection));
        rows.push(Row::new(udp(1, BLOCK_BYTES, MAX_DATAGRAM_BYTES, Offload::Plain), other));
    }
    rows
}

/// One row for each way to send, and one for a receiver that throws away.
fn ladder(extent: Extent, family: Family) -> Vec<Row> {
    let base = tcp(1, Direction::Up);
    let mut rows: Vec<Row> =
        Sender::ALL.iter().map(|&sender| Row::new(Spec { sender, ..base }, family)).collect();
    if extent == Extent::Full {
        let receiver = Receiver::Discard;
        rows.push(Row::best(Spec { receiver, ..base }, family, &Selection::default()));
    }
    rows
}

/// The rows when the user fixes nothing but, perhaps, streams.
fn plan(extent: Extent, streams: &[u16]) -> Vec<Spec> {
    let streams = match (streams.is_empty(), extent) {
        (false, _) => streams.to_vec(),
        (true, Extent::Full) => STREAMS.to_vec(),
        (true, Extent::Quick) => vec![1, 4],
        (true, Extent::Few) => vec![1],
    };
    let first = streams[0];
    let mut specs: Vec<Spec> = streams.iter().map(|&count| tcp(count, Direction::Up)).collect();
    let longest = |count| udp(count, BLOCK_BYTES, MAX_DATAGRAM_BYTES, Offload::Plain);
    specs.extend(streams.iter().map(|&count| longest(count)));
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
            specs.push(Spec { direction: Direction::Down, ..longest(first) });
            specs.extend(Offload::ALL.iter().map(|&offload| small(offload)));
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let one = latency(protocol, 1, 64);
                specs.push(Spec { waiting: Waiting::Spinning, ..one });
                specs.push(Spec { rate_per_s: OPEN_RATE, ..one });
                specs.push(Spec { load_streams: 1, ..one });
                let tied = [Placement::Apart, Placement::Together];
                specs.extend(tied.map(|placement| Spec { placement, ..one }));
            }
        }
    }
    specs
}

impl Selection {
    /// Whether the usual plan is wanted; the number of streams only fills it in.
    pub fn is_empty(&self) -> bool {
        self.work.is_none()
            && self.protocols.is_empty()
            && self.directions.is_empty()
            && self.block_bytes.is_empty()
            && self.datagram_bytes.is_none()
            && self.sender.is_none()
            && self.receiver.is_none()
            && self.offload.is_none()
            && self.waiting.is_none()
            && self.placement.is_none()
            && self.bytes.is_none()
            && self.rate_per_s.is_none()
    }

    /// All combinations of what the user fixed.
    fn specs(&self) -> Vec<Spec> {
        let or = |list: &[u16]| if list.is_empty() { vec![1] } else { list.to_vec() };
        let protocols = match (self.protocols.is_empty(), self.of_one_protocol()) {
            (false, _) => self.protocols.clone(),
            (true, Some(protocol)) => vec![protocol],
            (true, None) => Protocol::ALL.to_vec(),
        };
        let directions =
            if self.directions.is_empty() { vec![Direction::Up] } else { self.directions.clone() };
        let is_latency = self.work == Some(Work::Latency) || self.waiting.is_some();
        let mut specs = Vec::new();
        for &protocol in &protocols {
            for &streams in &or(&self.streams) {
                if is_latency {
                    let sizes = if self.block_bytes.is_empty() {
                        &MESSAGES[..]
                    } else {
                        &self.block_bytes[..]
                    };
                    specs.extend(sizes.iter().map(|&bytes| Spec {
                        waiting: self.waiting.unwrap_or(Waiting::Blocking),
                        rate_per_s: self.rate_per_s.unwrap_or(0),
                        placement: self.placement.unwrap_or(Placement::Free),
                        ..latency(protocol, streams, bytes)
                    }));
                    continue;
                }
                let blocks = if self.block_bytes.is_empty() {
                    vec![BLOCK_BYTES]
                } else {
                    self.block_bytes.clone()
                };
                for &block in &blocks {
                    specs.extend(
                        directions
                            .iter()
                            .map(|&direction| self.throughput(protocol, streams, block, direction)),
                    );
                }
            }
        }
        specs
    }

    /// The protocol that options for one protocol alone are about.
    fn of_one_protocol(&self) -> Option<Protocol> {
        if self.sender.is_some() || self.receiver.is_some() {
            Some(Protocol::Tcp)
        } else if self.offload.is_some() || self.datagram_bytes.is_some() {
            Some(Protocol::Udp)
        } else {
            None
        }
    }

    fn throughput(
        &self,
        protocol: Protocol,
        streams: u16,
        block: u32,
        direction: Direction,
    ) -> Spec {
        let offload = self.offload.unwrap_or(Offload::Plain);
        let usual = if offload.cuts() { SMALL_DATAGRAM_BYTES } else { MAX_DATAGRAM_BYTES };
        let base = match protocol {
            Protocol::Tcp => tcp(streams, direction),
            Protocol::Udp => udp(streams, block, self.datagram_bytes.unwrap_or(usual), offload),
        };
        Spec {
            direction,
            block_bytes: block,
            sender: self.sender.unwrap_or(Sender::Write),
            receiver: self.receiver.unwrap_or(Receiver::Read),
            bytes: self.bytes.unwrap_or(0),
            rate_per_s: self.rate_per_s.unwrap_or(0),
            placement: self.placement.unwrap_or(Placement::Apart),
            ..base
        }
    }
}

/// The pictures.
pub fn charts() -> Vec<Chart> {
    let chart = |title: &str, id: &str, lines: &[&str]| Chart {
        title: title.to_owned(),
        id: id.to_owned(),
        x_parameter: "streams".to_owned(),
        x_log2: true,
        line_parameters: lines.iter().map(|&line| line.to_owned()).collect(),
    };
    let tcp = ["family", "direction", "block_bytes", "sender", "receiver", "placement"];
    let udp = ["family", "direction", "block_bytes", "datagram_bytes", "offload", "placement"];
    let latency =
        ["family", "message_bytes", "wait", "placement", "questions_per_s", "load_streams"];
    vec![
        chart("TCP throughput by streams", "network/tcp-throughput", &tcp),
        chart("UDP throughput by streams", "network/udp-throughput", &udp),
        chart("TCP round trip by streams", "network/tcp-latency", &latency),
        chart("UDP round trip by streams", "network/udp-latency", &latency),
    ]
}

/// Parameters of a row of the cross-core copy.
pub fn memcpy_parameters(copies: u32) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("copies_per_byte".to_owned(), json!(copies));
    map.insert("block_bytes".to_owned(), json!(BLOCK_BYTES));
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_has_what_it_promises() {
        let rows = rows(Extent::Full, &Selection::default(), Family::V4, true);
        let count = |id: &str| rows.iter().filter(|row| row.id() == id).count();
        for streams in STREAMS {
            let has = |id: &str| {
                rows.iter().any(|row| {
                    row.id() == id && row.spec.streams == streams && row.spec.block_bytes == 65_536
                })
            };
            assert!(has("network/tcp-throughput") && has("network/udp-throughput"), "{streams}");
        }
        assert_eq!(count("network/tcp-latency"), 16 + 5);
        assert_eq!(count("network/udp-latency"), 16 + 5);
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row.spec.check(), Ok(()));
            let alike =
                |other: &&Row| other.id() == row.id() && other.parameters() == row.parameters();
            assert_eq!(rows[index + 1..].iter().find(alike), None);
        }
    }

    #[test]
    fn the_short_set_is_short() {
        let few = rows(Extent::Few, &Selection::default(), Family::V4, false);
        assert_eq!(few.len(), 4);
        assert!(rows(Extent::Quick, &Selection::default(), Family::V4, false).len() <= 14);
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
        let rows = rows(Extent::Full, &selection, Family::V4, false);
        assert_eq!(rows.len(), 2, "a sender is TCP's alone");
        let spec = rows[0].spec;
        assert_eq!((spec.sender, spec.block_bytes, spec.bytes), (Sender::ZeroCopy, 1000, 1 << 20));
        assert!(!rows[0].is_best_sender);
    }

    #[test]
    fn datagrams_are_as_long_as_the_block_and_the_protocol_allow() {
        assert_eq!(udp(1, 65_536, 65_507, Offload::Plain).datagram_bytes, 65_507);
        assert_eq!(udp(1, 1000, 65_507, Offload::Plain).datagram_bytes, 1000);
        assert_eq!(latency(Protocol::Udp, 1, 65_536).block_bytes, 65_507);
        assert_eq!(latency(Protocol::Tcp, 1, 65_536).block_bytes, 65_536);
    }
}
