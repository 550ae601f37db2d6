//! The options of the network area that fix rows, and the tests that follow from them. Pure.

use clap::Args;

use super::row::{BLOCK_BYTES, MESSAGES, SMALL_DATAGRAM_BYTES, latency, tcp, udp};
use super::spec::{
    Direction, HEADER_BYTES, MAX_BLOCK_BYTES, MAX_DATAGRAM_BYTES, MAX_STREAMS, Offload, Placement,
    Protocol, Receiver, Sender, Spec, Waiting, Work,
};
use crate::option::{MAX_BYTES, chosen_or, distinct, rate, size, size_to};

/// What the user fixed; empty lists and `None` leave it to the plan.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[group(skip)]
pub struct Selection {
    /// throughput or latency alone [default: both]
    #[arg(long = "measure", value_name = "WHAT")]
    pub work: Option<Work>,
    /// tcp, udp [default: both]
    #[arg(long = "protocol", value_name = "PROTOCOL,…", value_delimiter = ',')]
    pub protocols: Vec<Protocol>,
    /// Streams at once, each with a thread of its own at either end [default: 1, 2, 4, 8]
    #[arg(short = 'P', long, value_name = "N,…", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_STREAMS)))]
    pub streams: Vec<u16>,
    /// up (to the server), down, both (at once) [default: up; the whole grid has all]
    #[arg(long = "direction", value_name = "WAY,…", value_delimiter = ',')]
    pub directions: Vec<Direction>,
    /// The server sends: the same as --direction down
    #[arg(short = 'R', long = "reverse", conflicts_with = "directions")]
    pub is_reverse: bool,
    /// Bytes of a call, or of a message; several make rows [default: 64K]
    #[arg(id = "block_size", short = 'b', long = "block-size", alias = "bs", value_name = "SIZE,…",
        value_parser = size_to(MAX_BLOCK_BYTES.into()), value_delimiter = ',')]
    pub block_bytes: Vec<u64>,
    /// How TCP sends: write, sendfile, zerocopy (MSG_ZEROCOPY), uring-zc (io_uring) [default: what
    /// is fastest here, measured beforehand]
    #[arg(long, value_name = "HOW")]
    pub sender: Option<Sender>,
    /// How TCP receives: read, or discard (MSG_TRUNC: the kernel throws the bytes away)
    /// [default: read]
    #[arg(long, value_name = "HOW")]
    pub receiver: Option<Receiver>,
    /// What UDP leaves to the kernel: none, gso (cutting blocks), gro (joining datagrams), gso+gro
    /// [default: none; the whole grid has all]
    #[arg(long, value_name = "OFFLOAD")]
    pub offload: Option<Offload>,
    /// Bytes of a UDP datagram, 16 of which carry its number [default: the block, at most 65507;
    /// with gso 1460]
    #[arg(long = "datagram-size", value_name = "SIZE", value_parser = datagram)]
    pub datagram_bytes: Option<u64>,
    /// How answers are waited for: blocking, or busy-poll (asking again and again)
    /// [default: blocking]
    #[arg(long = "wait", value_name = "HOW")]
    pub waiting: Option<Waiting>,
    /// Where the threads of a stream run: apart (each tied to a CPU, those of the two ends to
    /// different ones), together (both ends to one CPU), free (where the scheduler puts them)
    /// [default: TCP what is fastest here, UDP apart, latency apart and together; between two
    /// machines free]
    #[arg(long, value_name = "WHERE")]
    pub placement: Option<Placement>,
    /// Bytes of a trial, all streams together, instead of a time
    #[arg(id = "bytes", long = "size", alias = "bytes", value_name = "SIZE",
        value_parser = size_to(MAX_BYTES))]
    pub bytes: Option<u64>,
    /// Bytes per second (as 12.5MB), all streams of a direction together; with --measure latency
    /// questions per second
    #[arg(id = "rate", long, value_name = "N", value_parser = rate)]
    pub rate_per_s: Option<f64>,
}

impl Selection {
    /// Whether the usual plan is wanted; the number of streams only fills it in.
    pub fn is_empty(&self) -> bool {
        Self { streams: Vec::new(), ..self.clone() } == Self::default()
    }

    fn rate_per_s(&self) -> u64 {
        self.rate_per_s.map_or(0, |rate| rate as u64)
    }

    /// All combinations of what the user fixed.
    pub(super) fn specs(&self) -> Vec<Spec> {
        let is_latency = self.work == Some(Work::Latency) || self.waiting.is_some();
        let usual_blocks = if is_latency { &MESSAGES[..] } else { &[BLOCK_BYTES] };
        let directions = match (is_latency, self.is_reverse) {
            (true, _) => vec![Direction::Up],
            (false, true) => vec![Direction::Down],
            (false, false) => or(&self.directions, &[Direction::Up]),
        };
        let blocks: Vec<u32> = self.block_bytes.iter().map(|&bytes| bytes as u32).collect();
        let mut specs = Vec::new();
        for protocol in or(&self.protocols, self.usual_protocols()) {
            for streams in or(&self.streams, &[1]) {
                for block in or(&blocks, usual_blocks) {
                    specs.extend(directions.iter().map(|&direction| match is_latency {
                        true => self.latency(protocol, streams, block),
                        false => self.throughput(protocol, streams, block, direction),
                    }));
                }
            }
        }
        specs
    }

    /// The protocol that options for one protocol alone are about, or all.
    fn usual_protocols(&self) -> &'static [Protocol] {
        if self.sender.is_some() || self.receiver.is_some() {
            &[Protocol::Tcp]
        } else if self.offload.is_some() || self.datagram_bytes.is_some() {
            &[Protocol::Udp]
        } else {
            &Protocol::ALL
        }
    }

    fn latency(&self, protocol: Protocol, streams: u16, message_bytes: u32) -> Spec {
        Spec {
            waiting: self.waiting.unwrap_or(Waiting::Blocking),
            rate_per_s: self.rate_per_s(),
            placement: self.placement.unwrap_or(Placement::Free),
            ..latency(protocol, streams, message_bytes)
        }
    }

    fn throughput(
        &self,
        protocol: Protocol,
        streams: u16,
        block_bytes: u32,
        direction: Direction,
    ) -> Spec {
        let offload = self.offload.unwrap_or(Offload::Plain);
        let usual = if offload.cuts() { SMALL_DATAGRAM_BYTES } else { MAX_DATAGRAM_BYTES };
        let datagram_bytes = self.datagram_bytes.map_or(usual, |bytes| bytes as u32);
        let base = match protocol {
            Protocol::Tcp => tcp(streams, direction),
            Protocol::Udp => udp(streams, block_bytes, datagram_bytes, offload),
        };
        Spec {
            direction,
            block_bytes,
            sender: self.sender.unwrap_or(Sender::Write),
            receiver: self.receiver.unwrap_or(Receiver::Read),
            bytes: self.bytes.unwrap_or(0),
            rate_per_s: self.rate_per_s(),
            placement: self.placement.unwrap_or(Placement::Apart),
            ..base
        }
    }
}

/// The size of a datagram.
fn datagram(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if (HEADER_BYTES.into()..=MAX_DATAGRAM_BYTES.into()).contains(&bytes) => Ok(bytes),
        _ => Err(format!("it must be from {HEADER_BYTES} to {MAX_DATAGRAM_BYTES} bytes")),
    }
}

/// What was chosen, each value once, or the usual.
pub(super) fn or<T: Copy + PartialEq>(chosen: &[T], usual: &[T]) -> Vec<T> {
    distinct(chosen_or(chosen, usual), T::eq)
}
