//! The frames of the control channel, as data and as bytes. Parsing allocates no more than the
//! frame is long, and trusts no number in it. docs/network.md lists who sends what when.

use super::account::Account;
use super::spec::Spec;
use super::wire::{Reader, Writer};

/// Longest frame on the wire, encrypted, without its two bytes of length.
pub const MAX_FRAME_BYTES: usize = 512;
/// What encryption adds.
pub const TAG_BYTES: usize = 16;
/// Version of the protocol; both ends must have the same.
pub const VERSION: u16 = 2;
/// Most points of a curve in one frame.
pub const MAX_POINTS: usize = 10;

/// One message.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant says what its numbers are")]
pub enum Frame {
    /// Client: it knows the key; its version of the protocol.
    Hello { version: u16 },
    /// Server: busy; how many wait before this client, itself included.
    Waiting { waiting: u16 },
    /// Server: it is this client's turn. The key proves data connections.
    Admitted { key: [u8; 32], cpus: u16, machine: u64 },
    /// Either: it cannot or will not, and why.
    Refused { text: String },
    /// Client: the test to come.
    Prepare(Spec),
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
    /// Server: what it saw of a flow.
    Flow(FlowReport),
    /// Server: how TCP went on a flow, interval by interval.
    Tcp { flow: u16, points: Vec<TcpPoint> },
    /// Server: bytes received until each moment, all flows together.
    Curve { points: Vec<[u64; 2]> },
    /// Server: what it saw as a whole. The test is over.
    End(EndReport),
    /// Client: is it there? Keeps the session from being idle.
    Ping { number: u32 },
    /// Server: it is.
    Pong { number: u32 },
    /// Client: no more tests.
    Bye,
}

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
    pub lane_ns: u64,
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

/// What TCP said at a moment; counters since the connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpPoint {
    /// Since the beginning of the test.
    pub time_us: u32,
    /// Segments sent again.
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

impl FlowReport {
    const LONGS: usize = 8;

    fn write(&self, to: &mut Writer) {
        to.short(self.flow);
        let longs: [u64; Self::LONGS] = [
            self.window_bytes,
            self.total_bytes,
            self.cpu_ns,
            self.lane_ns,
            self.calls,
            self.copied,
            self.buffer_bytes,
            self.ended_early,
        ];
        longs.into_iter().chain(self.account.to_longs()).for_each(|long| to.long(long));
        self.tcp.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            flow: from.short()?,
            window_bytes: from.long()?,
            total_bytes: from.long()?,
            cpu_ns: from.long()?,
            lane_ns: from.long()?,
            calls: from.long()?,
            copied: from.long()?,
            buffer_bytes: from.long()?,
            ended_early: from.long()?,
            account: Account::from_longs(|| from.long())?,
            tcp: TcpPoint::read(from)?,
        })
    }
}

impl TcpPoint {
    fn write(&self, to: &mut Writer) {
        for word in [
            self.time_us,
            self.retransmits,
            self.segments,
            self.round_trip_us,
            self.window_segments,
            self.segment_bytes,
            self.busy_us,
            self.receiver_limited_us,
            self.buffer_limited_us,
        ] {
            to.word(word);
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            time_us: from.word()?,
            retransmits: from.word()?,
            segments: from.word()?,
            round_trip_us: from.word()?,
            window_segments: from.word()?,
            segment_bytes: from.word()?,
            busy_us: from.word()?,
            receiver_limited_us: from.word()?,
            buffer_limited_us: from.word()?,
        })
    }
}

impl Frame {
    /// Its bytes, before encryption.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.byte(self.number());
        match self {
            Self::Hello { version: short } | Self::Waiting { waiting: short } => to.short(*short),
            Self::Admitted { key, cpus, machine } => {
                to.bytes(key);
                to.short(*cpus);
                to.long(*machine);
            }
            Self::Refused { text } => to.text(text),
            Self::Prepare(spec) => spec.write(&mut to),
            Self::Prepared | Self::Ready | Self::Go | Self::Finished | Self::Bye => {}
            Self::Sent { flow, datagrams } => {
                to.short(*flow);
                to.long(*datagrams);
            }
            Self::Flow(report) => report.write(&mut to),
            Self::Tcp { flow, points } => {
                to.short(*flow);
                points.iter().take(MAX_POINTS).for_each(|point| point.write(&mut to));
            }
            Self::Curve { points } => {
                points.iter().take(MAX_POINTS).flatten().for_each(|long| to.long(*long));
            }
            Self::End(end) => {
                for long in [end.window_ns, end.busy_ns, end.softirq_ns, end.capacity_ns] {
                    to.long(long);
                }
            }
            Self::Ping { number } | Self::Pong { number } => to.word(*number),
        }
        debug_assert!(to.0.len() + TAG_BYTES <= MAX_FRAME_BYTES);
        to.0
    }

    fn number(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Waiting { .. } => 2,
            Self::Admitted { .. } => 3,
            Self::Refused { .. } => 4,
            Self::Prepare(_) => 5,
            Self::Prepared => 6,
            Self::Ready => 7,
            Self::Go => 8,
            Self::Sent { .. } => 9,
            Self::Finished => 10,
            Self::Flow(_) => 11,
            Self::Tcp { .. } => 12,
            Self::Curve { .. } => 13,
            Self::End(_) => 14,
            Self::Ping { .. } => 15,
            Self::Pong { .. } => 16,
            Self::Bye => 17,
        }
    }

    /// From bytes; `None` if they are no frame, or more than one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let frame = Self::read(&mut from)?;
        from.is_empty().then_some(frame)
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(match from.byte()? {
            1 => Self::Hello { version: from.short()? },
            2 => Self::Waiting { waiting: from.short()? },
            3 => Self::Admitted { key: from.array()?, cpus: from.short()?, machine: from.long()? },
            4 => Self::Refused { text: from.text()? },
            5 => Self::Prepare(Spec::read(from)?),
            6 => Self::Prepared,
            7 => Self::Ready,
            8 => Self::Go,
            9 => Self::Sent { flow: from.short()?, datagrams: from.long()? },
            10 => Self::Finished,
            11 => Self::Flow(FlowReport::read(from)?),
            12 => Self::Tcp { flow: from.short()?, points: points(from, TcpPoint::read)? },
            13 => Self::Curve { points: points(from, |from| Some([from.long()?, from.long()?]))? },
            14 => Self::End(EndReport {
                window_ns: from.long()?,
                busy_ns: from.long()?,
                softirq_ns: from.long()?,
                capacity_ns: from.long()?,
            }),
            15 => Self::Ping { number: from.word()? },
            16 => Self::Pong { number: from.word()? },
            17 => Self::Bye,
            _ => return None,
        })
    }
}

/// Points up to the end of the frame, within bounds.
fn points<T>(
    from: &mut Reader<'_>,
    mut read: impl FnMut(&mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut points = Vec::new();
    while !from.is_empty() {
        if points.len() == MAX_POINTS {
            return None;
        }
        points.push(read(from)?);
    }
    Some(points)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            Frame::Prepare(Spec { test: 7, streams: 8, rate_per_s: 12, ..Spec::default() }),
            Frame::Prepared,
            Frame::Ready,
            Frame::Go,
            Frame::Sent { flow: 2, datagrams: 10 },
            Frame::Finished,
            Frame::Flow(report),
            Frame::Tcp { flow: 1, points: vec![point; MAX_POINTS] },
            Frame::Curve { points: vec![[1, 2]; MAX_POINTS] },
            Frame::End(EndReport { window_ns: 1, busy_ns: 2, softirq_ns: 3, capacity_ns: 4 }),
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
            if let Some(Frame::Prepare(spec)) = Frame::decode(&bytes) {
                let _ = spec.check();
            }
        }
    }
}
