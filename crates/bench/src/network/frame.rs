//! The frames of the control channel, as data and as bytes. Parsing allocates no more than the
//! frame is long, and trusts no number in it. docs/network.md lists who sends what when.

use super::account::Account;
use super::spec::Spec;
use super::wire::{Wire, wire_struct};

pub use super::wire::MAX_POINTS;

/// Longest frame on the wire, encrypted, without its two bytes of length.
pub const MAX_FRAME_BYTES: usize = 512;
/// What encryption adds.
pub const TAG_BYTES: usize = 16;
/// Version of the protocol; both ends must have the same.
pub const VERSION: u16 = 2;

/// Messages: a byte with the number of its kind, then its fields in their order.
macro_rules! frames {
    ($($(#[doc = $doc:literal])+ $number:literal $kind:ident $({ $($field:ident: $type:ty),+ })?,)+) => {
        /// One message.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant says what its numbers are")]
        pub enum Frame {
            $($(#[doc = $doc])+ $kind $({ $($field: $type),+ })?,)+
        }

        impl Frame {
            /// Its bytes, before encryption.
            pub fn encode(&self) -> Vec<u8> {
                let mut to = Vec::new();
                match self {
                    $(Self::$kind $({ $($field),+ })? => {
                        to.push($number);
                        $($($field.write(&mut to);)+)?
                    })+
                }
                debug_assert!(to.len() + TAG_BYTES <= MAX_FRAME_BYTES);
                to
            }

            /// From bytes; `None` if they are no frame, or more than one.
            pub fn decode(mut bytes: &[u8]) -> Option<Self> {
                let from = &mut bytes;
                let frame = match u8::read(from)? {
                    $($number => Self::$kind $({ $($field: Wire::read(from)?),+ })?,)+
                    _ => return None,
                };
                bytes.is_empty().then_some(frame)
            }
        }
    };
}

frames! {
    /// Client: it knows the key; its version of the protocol.
    1 Hello { version: u16 },
    /// Server: busy; how many wait before this client, itself included.
    2 Waiting { waiting: u16 },
    /// Server: this client's session begins. The key proves data connections.
    3 Admitted { key: [u8; 32], cpus: u16, machine: u64 },
    /// Either: it cannot or will not, and why.
    4 Refused { text: String },
    /// Client: the test to come.
    5 Prepare { spec: Spec },
    /// Server: it has room for it; data connections may come.
    6 Prepared,
    /// Server: all data connections are there.
    7 Ready,
    /// Client: begin.
    8 Go,
    /// Either: how many datagrams it sent on a flow.
    9 Sent { flow: u16, datagrams: u64 },
    /// Either: its window is over; and again, that it has said what it sent.
    10 Finished,
    /// Server: what it saw of a flow.
    11 Flow { report: FlowReport },
    /// Server: how TCP went on a flow, interval by interval.
    12 Tcp { flow: u16, points: Vec<TcpPoint> },
    /// Server: bytes received until each moment, all flows together.
    13 Curve { points: Vec<[u64; 2]> },
    /// Server: what it saw as a whole. The test is over.
    14 End { report: EndReport },
    /// Client: is it there? Keeps the session from being idle.
    15 Ping { number: u32 },
    /// Server: it is.
    16 Pong { number: u32 },
    /// Client: no more tests.
    17 Bye,
}

wire_struct! {
    /// What one end saw of one flow.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
        /// 1 if it ended before the window was over.
        pub ended_early: u64,
        /// The account of datagrams.
        pub account: Account,
        /// The last point of TCP, of a sender.
        pub tcp: TcpPoint,
    }
}

wire_struct! {
    /// What TCP said at a moment; counters since the connection began.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
}

wire_struct! {
    /// What one end saw as a whole.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct EndReport {
        /// Length of the window, as measured.
        pub window_ns: u64,
        /// CPU time of all CPUs in it, whoever used it.
        pub busy_ns: u64,
        /// Part of it in deferred interrupt work.
        pub softirq_ns: u64,
        /// CPU time that there was.
        pub capacity_ns: u64,
    }
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
            tcp: point,
            ..FlowReport::default()
        };
        vec![
            Frame::Hello { version: VERSION },
            Frame::Waiting { waiting: 3 },
            Frame::Admitted { key: [7; 32], cpus: 2, machine: u64::MAX },
            Frame::Refused { text: "no room".to_owned() },
            Frame::Prepare {
                spec: Spec { test: 7, streams: 8, rate_per_s: 12, ..Spec::one_stream() },
            },
            Frame::Prepared,
            Frame::Ready,
            Frame::Go,
            Frame::Sent { flow: 2, datagrams: 10 },
            Frame::Finished,
            Frame::Flow { report },
            Frame::Tcp { flow: 1, points: vec![point; MAX_POINTS] },
            Frame::Curve { points: vec![[1, 2]; MAX_POINTS] },
            Frame::End {
                report: EndReport { window_ns: 1, busy_ns: 2, softirq_ns: 3, capacity_ns: 4 },
            },
            Frame::Ping { number: 1 },
            Frame::Pong { number: 1 },
            Frame::Bye,
        ]
    }

    #[test]
    fn every_frame_comes_back_and_fits() {
        for (index, frame) in samples().into_iter().enumerate() {
            let bytes = frame.encode();
            assert_eq!(usize::from(bytes[0]), index + 1, "each kind is here once");
            assert!(bytes.len() + TAG_BYTES <= MAX_FRAME_BYTES, "{frame:?}: {}", bytes.len());
            assert_eq!(Frame::decode(&bytes), Some(frame));
        }
    }

    #[test]
    fn bytes_are_those_of_version_two() {
        let hex = |frame: Frame| -> String {
            frame.encode().iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(hex(Frame::Hello { version: VERSION }), "010002");
        assert_eq!(hex(Frame::Sent { flow: 2, datagrams: 10 }), "090002000000000000000a");
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
            shared_cpus: 1,
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
        let bytes = "050000000101010203010301020100080010000000090000000a00000000\
                     0000000b000000000000000c000000000000000d000000000000000e000000000000000f";
        assert_eq!(hex(Frame::Prepare { spec }), bytes);
    }

    #[test]
    fn the_fields_of_a_report_follow_one_another() {
        let account = Account {
            sent: 9,
            received: 10,
            unique: 11,
            duplicate: 12,
            reordered: 13,
            late: 14,
            dropped: 15,
            lost: 16,
            forgotten: 17,
            foreign: 18,
            socket_drops: 19,
        };
        let tcp = TcpPoint {
            time_us: 20,
            retransmits: 21,
            segments: 22,
            round_trip_us: 23,
            window_segments: 24,
            segment_bytes: 25,
            busy_us: 26,
            receiver_limited_us: 27,
            buffer_limited_us: 28,
        };
        let report = FlowReport {
            flow: 5,
            window_bytes: 1,
            total_bytes: 2,
            cpu_ns: 3,
            worker_ns: 4,
            calls: 5,
            copied: 6,
            buffer_bytes: 7,
            ended_early: 8,
            account,
            tcp,
        };
        let mut expected = vec![11, 0, 5];
        (1..20_u64).for_each(|long| expected.extend(long.to_be_bytes()));
        (20..29_u32).for_each(|word| expected.extend(word.to_be_bytes()));
        assert_eq!(Frame::Flow { report }.encode(), expected);
    }

    #[test]
    fn too_many_points_are_no_frame() {
        let mut bytes = Frame::Curve { points: vec![[1, 2]; MAX_POINTS] }.encode();
        bytes.extend([0; 16]);
        assert_eq!(Frame::decode(&bytes), None);
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
        fn a_frame_that_is_cut_or_longer_is_none(which in 0_usize..17, cut in 1_usize..40) {
            let bytes = samples()[which].encode();
            let is_list = matches!(which, 11 | 12);
            if cut < bytes.len() && !is_list {
                prop_assert_eq!(Frame::decode(&bytes[..bytes.len() - cut]), None);
            }
            let mut longer = bytes.clone();
            longer.extend(vec![0; cut]);
            if !is_list {
                prop_assert_eq!(Frame::decode(&longer), None);
            }
        }

        #[test]
        fn a_changed_frame_never_breaks_the_parser(
            which in 0_usize..17, place in any::<prop::sample::Index>(), byte in any::<u8>(),
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
