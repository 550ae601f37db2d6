//! The frames of the control channel, as data and as bytes. Parsing allocates no more than the
//! frame is long, and trusts no number in it. docs/network.md lists who sends what when.

use serde::{Deserialize, Serialize, Serializer};

use super::account::Account;
use super::spec::Spec;

/// Longest frame on the wire, encrypted, without its two bytes of length.
pub const MAX_FRAME_BYTES: usize = 4096;
/// What encryption adds.
pub const TAG_BYTES: usize = 16;
/// Version of the protocol; both ends must have the same.
pub const VERSION: u16 = 6;

/// Longest text.
const MAX_TEXT_BYTES: usize = 200;
/// Most points of a list.
pub const MAX_POINTS: usize = 10;

/// One message: on the wire JSON, encrypted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "each variant says what its numbers are")]
pub enum Frame {
    /// Client: it knows the key; its version of the protocol.
    Hello { version: u16 },
    /// Server: so many wait before this client, itself included. Of clients that are measured together, how
    /// many are there; 0: each is measured for itself.
    Waiting { waiting: u16, together: u16 },
    /// Server: this client's session begins. The key proves data connections. Above 0: with so many
    /// clients, itself included, it is measured together.
    Admitted { key: [u8; 32], machine: u64, together: u16 },
    /// Either: it cannot or will not, and why.
    Refused {
        #[serde(serialize_with = "cut")]
        text: String,
    },
    /// Server: its kernel cannot do what the test asks for, and why.
    Unsupported {
        #[serde(serialize_with = "cut")]
        text: String,
    },
    /// Client: the test to come.
    Prepare { spec: Spec },
    /// Server: it has room for it; data connections may come.
    Prepared,
    /// Server: all data connections are there.
    Ready,
    /// Client: begin.
    Go,
    /// Either: how many datagrams it sent on a flow.
    Sent { flow: u16, datagrams: u64 },
    /// Either: its window is over; and again, that it has said what it sent.
    Finished,
    /// Server: what it saw of a flow; all of them, in their order.
    Flow { report: FlowReport },
    /// Server: what it saw as a whole. The test is over.
    End { report: EndReport },
    /// Client: is it there? Keeps the session from being idle.
    Ping { number: u32 },
    /// Server: it is.
    Pong { number: u32 },
    /// Client: no more tests. Server, in answer to one: those that it would be measured with have gone.
    Bye,
}

/// Writes so much of a text that the frame is none too long, whole characters.
fn cut<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    to.serialize_str(&text[..end])
}

impl Frame {
    /// Its bytes, before encryption.
    pub fn encode(&self) -> Vec<u8> {
        let bytes = serde_json::to_vec(self).expect("its parts are numbers, words and lists");
        debug_assert!(bytes.len() + TAG_BYTES <= MAX_FRAME_BYTES);
        bytes
    }

    /// From bytes; `None` if they are no frame, or more than one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let frame: Self = serde_json::from_slice(bytes).ok()?;
        let points = match &frame {
            Self::Flow { report } => report.tcp.len(),
            Self::End { report } => report.curve.len(),
            _ => 0,
        };
        (points <= MAX_POINTS && bytes.len() + TAG_BYTES <= MAX_FRAME_BYTES).then_some(frame)
    }
}

/// What one end saw of one flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowReport {
    /// Number of the flow.
    pub flow: u16,
    /// Bytes received within the window.
    pub window_bytes: u64,
    /// Bytes received or sent in all.
    pub total_bytes: u64,
    /// CPU time of the flow's thread.
    pub cpu_ns: u64,
    /// How long that thread worked.
    pub worker_ns: u64,
    /// Zero-copy calls of a sender.
    pub calls: u64,
    /// Those that were copied after all.
    pub copied: u64,
    /// Bytes of the receive buffer, as the kernel granted it.
    pub buffer_bytes: u64,
    /// The account of datagrams.
    pub account: Account,
    /// How TCP went, of a sender, interval by interval.
    pub tcp: Vec<TcpPoint>,
}

/// What TCP said at a moment; counters since the connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpPoint {
    /// Since the beginning of the test.
    pub time_us: u32,
    /// Retransmitted segments.
    pub retransmits: u32,
    /// All segments sent.
    pub segments: u32,
    /// Smoothed round trip.
    pub round_trip_us: u32,
    /// Congestion window in segments.
    pub window_segments: u32,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Time with something to send.
    pub busy_us: u32,
    /// Part of it with the receiver's window shut.
    pub receiver_limited_us: u32,
    /// Part of it with the send buffer too small.
    pub buffer_limited_us: u32,
}

/// What several clients carried in the time that their windows had in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// How many they were; 0: there is no sum.
    pub clients: u16,
    /// Bytes of all of them.
    pub bytes: u64,
    /// The time.
    pub window_ns: u64,
}

/// What one end saw as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndReport {
    /// Length of the window, as measured.
    pub window_ns: u64,
    /// CPU time of all CPUs in it, whoever used it.
    pub busy_ns: u64,
    /// Part of it in deferred interrupt work.
    pub softirq_ns: u64,
    /// CPU time that there was.
    pub capacity_ns: u64,
    /// Of a server: the most tests of other clients that ran at the same time.
    pub others: u16,
    /// Of a server: what clients that are measured together carried together.
    pub sum: Sum,
    /// Bytes received until each moment since the beginning, all flows together.
    pub curve: Vec<[u64; 2]>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::spec::{
        Direction, Offload, Placement, Protocol, Receiver, Sender, Waiting, Work,
    };

    fn samples() -> Vec<Frame> {
        let point =
            TcpPoint { time_us: 1, round_trip_us: 3, window_segments: 4, ..TcpPoint::default() };
        let report = FlowReport {
            flow: 5,
            window_bytes: 1 << 40,
            account: Account { sent: 9, duplicate: 2, ..Account::default() },
            tcp: vec![point; MAX_POINTS],
            ..FlowReport::default()
        };
        vec![
            Frame::Hello { version: VERSION },
            Frame::Waiting { waiting: 3, together: 4 },
            Frame::Admitted { key: [7; 32], machine: u64::MAX, together: 4 },
            Frame::Refused { text: "no room".to_owned() },
            Frame::Unsupported { text: "no such call".to_owned() },
            Frame::Prepare {
                spec: Spec { test: 7, streams: 8, rate_per_s: 12, ..Spec::one_stream() },
            },
            Frame::Prepared,
            Frame::Ready,
            Frame::Go,
            Frame::Sent { flow: 2, datagrams: 10 },
            Frame::Finished,
            Frame::Flow { report },
            Frame::End {
                report: EndReport {
                    window_ns: 1,
                    busy_ns: 2,
                    softirq_ns: 3,
                    capacity_ns: 4,
                    others: 5,
                    sum: Sum { clients: 6, bytes: 7, window_ns: 8 },
                    curve: vec![[1, 2]; MAX_POINTS],
                },
            },
            Frame::Ping { number: 1 },
            Frame::Pong { number: 1 },
            Frame::Bye,
        ]
    }

    #[test]
    fn every_frame_comes_back_and_fits() {
        for frame in samples() {
            let bytes = frame.encode();
            assert!(bytes.len() + TAG_BYTES <= MAX_FRAME_BYTES, "{frame:?}: {}", bytes.len());
            assert_eq!(Frame::decode(&bytes), Some(frame));
        }
    }

    #[test]
    fn the_longest_frame_fits() {
        let point = TcpPoint {
            time_us: u32::MAX,
            retransmits: u32::MAX,
            segments: u32::MAX,
            round_trip_us: u32::MAX,
            window_segments: u32::MAX,
            segment_bytes: u32::MAX,
            busy_us: u32::MAX,
            receiver_limited_us: u32::MAX,
            buffer_limited_us: u32::MAX,
        };
        let account = Account {
            sent: u64::MAX,
            received: u64::MAX,
            unique: u64::MAX,
            duplicate: u64::MAX,
            reordered: u64::MAX,
            late: u64::MAX,
            dropped: u64::MAX,
            lost: u64::MAX,
            forgotten: u64::MAX,
            foreign: u64::MAX,
            socket_drops: u64::MAX,
        };
        let report = FlowReport {
            flow: u16::MAX,
            window_bytes: u64::MAX,
            total_bytes: u64::MAX,
            cpu_ns: u64::MAX,
            worker_ns: u64::MAX,
            calls: u64::MAX,
            copied: u64::MAX,
            buffer_bytes: u64::MAX,
            account,
            tcp: vec![point; MAX_POINTS],
        };
        let frame = Frame::Flow { report };
        assert_eq!(Frame::decode(&frame.encode()), Some(frame));
        let long = Frame::Refused { text: "\u{1}".repeat(200) };
        assert!(Frame::decode(&long.encode()).is_some(), "each character takes six");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let sent = |text: String| match Frame::decode(&Frame::Refused { text }.encode()) {
            Some(Frame::Refused { text }) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(sent("ä".repeat(150)), "ä".repeat(100));
        assert_eq!(sent(format!("a{}", "ä".repeat(150))), format!("a{}", "ä".repeat(99)));
        assert_eq!(Frame::decode(b"{\"Refused\":{\"text\":\"\xff\"}}"), None, "no UTF-8");
    }

    #[test]
    fn bytes_are_those_of_version_six() {
        let text = |frame: Frame| String::from_utf8(frame.encode()).unwrap();
        assert_eq!(text(Frame::Hello { version: VERSION }), r#"{"Hello":{"version":6}}"#);
        assert_eq!(text(Frame::Go), r#""Go""#);
        let waiting = Frame::Waiting { waiting: 3, together: 4 };
        assert_eq!(text(waiting), r#"{"Waiting":{"waiting":3,"together":4}}"#);
        let sent = Frame::Sent { flow: 2, datagrams: 10 };
        assert_eq!(text(sent), r#"{"Sent":{"flow":2,"datagrams":10}}"#);
        let spec = Spec {
            test: 1,
            work: Work::Latency,
            protocol: Protocol::Udp,
            direction: Direction::Both,
            sender: Sender::RingSend,
            receiver: Receiver::Discard,
            offload: Offload::Both,
            waiting: Waiting::Spinning,
            placement: Placement::Free,
            shares_cpus: true,
            turn: 7,
            streams: 8,
            load_streams: 16,
            block_bytes: 9,
            datagram_bytes: 10,
            warm_ns: 11,
            window_ns: 12,
            tail_ns: 13,
            bytes: 14,
            rate_per_s: 15,
        };
        let expected = concat!(
            r#"{"Prepare":{"spec":{"test":1,"work":"Latency","protocol":"Udp","direction":"Both","#,
            r#""sender":"RingSend","receiver":"Discard","offload":"Both","waiting":"Spinning","#,
            r#""placement":"Free","shares_cpus":true,"turn":7,"streams":8,"load_streams":16,"block_bytes":9,"#,
            r#""datagram_bytes":10,"warm_ns":11,"window_ns":12,"tail_ns":13,"bytes":14,"#,
            r#""rate_per_s":15}}}"#
        );
        assert_eq!(text(Frame::Prepare { spec }), expected);
    }

    #[test]
    fn what_is_missing_or_unknown_is_no_frame() {
        for text in [
            r#"{"Hello":{}}"#,
            r#"{"Hello":{"version":4,"more":1}}"#,
            r#"{"Hello":{"version":70000}}"#,
            r#"{"Nothing":{}}"#,
            r#""Go" "Go""#,
        ] {
            assert_eq!(Frame::decode(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn too_many_points_are_no_frame() {
        let curve = vec![[1, 2]; MAX_POINTS + 1];
        let end = Frame::End { report: EndReport { curve, ..EndReport::default() } };
        let tcp = vec![TcpPoint::default(); MAX_POINTS + 1];
        let flow = Frame::Flow { report: FlowReport { tcp, ..FlowReport::default() } };
        for frame in [end, flow] {
            assert_eq!(Frame::decode(&serde_json::to_vec(&frame).unwrap()), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_bytes_are_a_frame_or_none(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Some(frame) = Frame::decode(&bytes) {
                prop_assert_eq!(frame.encode().len() <= MAX_FRAME_BYTES, true);
            }
        }

        #[test]
        fn a_frame_that_is_cut_or_longer_is_none(which in 0_usize..16, cut in 1_usize..40) {
            let bytes = samples()[which].encode();
            if cut < bytes.len() {
                prop_assert_eq!(Frame::decode(&bytes[..bytes.len() - cut]), None);
            }
            let mut longer = bytes.clone();
            longer.extend(vec![0; cut]);
            prop_assert_eq!(Frame::decode(&longer), None);
        }

        #[test]
        fn a_changed_frame_never_breaks_the_parser(
            which in 0_usize..16, place in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut bytes = samples()[which].encode();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            if let Some(Frame::Prepare { spec }) = Frame::decode(&bytes) {
                let _ = spec.check();
            }
        }
    }
}
