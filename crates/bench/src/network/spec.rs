//! What one test is: which connections there are, what they carry, and for how long. Both ends
//! work from the same [`Spec`]; the server checks it before it allocates anything.

use std::iter::repeat_n;

use serde::{Deserialize, Serialize};

/// Most streams of a test.
pub const MAX_STREAMS: u16 = 64;
/// Most connections of a test: streams of both directions, or of questions and bulk.
pub const MAX_FLOWS: usize = 2 * MAX_STREAMS as usize;
/// Longest block.
pub const MAX_BLOCK_BYTES: u32 = 1 << 20;
/// Most memory for all blocks of one end.
pub const MAX_BUFFER_BYTES: u64 = 256 << 20;
/// Longest test, warm-up and tail included.
pub const MAX_TEST_NS: u64 = 60_000_000_000;
/// Most bytes of a test that ends by bytes.
pub const MAX_BYTES: u64 = 1 << 40;
/// Bytes of a datagram that carry its number.
pub const HEADER_BYTES: u32 = 16;
/// Longest datagram.
pub const MAX_DATAGRAM_BYTES: u32 = flatout_sys::socket::LONGEST_DATAGRAM_BYTES as u32;
/// Most datagrams that the kernel cuts one block into (`UDP_MAX_SEGMENTS` before Linux 6.9).
pub const MAX_SEGMENTS: u32 = 64;

flatout_sys::words! {
    /// What is measured.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Work: name, ALL, text {
        /// Bytes per second.
        #[default]
        Throughput = "throughput",
        /// Time from a question to its answer.
        Latency = "latency",
    }

    /// Which protocol carries the data.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Protocol: name, ALL, text {
        /// TCP.
        #[default]
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }

    /// Which way bulk data flows.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Direction: name, ALL, text {
        /// From the client to the server.
        #[default]
        Up = "up",
        /// From the server to the client.
        Down = "down",
        /// Both at once, over connections of their own.
        Both = "both",
    }

    /// How a TCP sender hands its bytes to the kernel.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Sender: name, ALL, text {
        /// send(2) of a buffer, which the kernel copies.
        #[default]
        Write = "write",
        /// sendfile(2) from a file in memory.
        SendFile = "sendfile",
        /// send(2) with `MSG_ZEROCOPY`.
        ZeroCopy = "zerocopy",
        /// io_uring's zero-copy send.
        RingSend = "uring-zc",
    }

    /// What a TCP receiver does.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Receiver: name, ALL, text {
        /// recv(2) into a buffer.
        #[default]
        Read = "read",
        /// recv(2) with `MSG_TRUNC`: the kernel throws the bytes away.
        Discard = "discard",
    }

    /// Which offloads UDP uses.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Offload: name, ALL, text {
        /// None: each datagram goes through the stack on its own.
        #[default]
        Plain = "none",
        /// The kernel cuts blocks into datagrams (`UDP_SEGMENT`).
        Gso = "gso",
        /// The kernel joins datagrams (`UDP_GRO`).
        Gro = "gro",
        /// Both.
        Both = "gso+gro",
    }

    /// How an end waits for the next message.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Waiting: name, ALL, text {
        /// In the kernel.
        #[default]
        Blocking = "blocking",
        /// In a loop that asks again and again.
        Spinning = "busy-poll",
    }

    /// Where the threads of a flow run.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Placement: name, ALL, text {
        /// Each tied to a CPU of its own; where both ends are one machine, those of a flow to two.
        #[default]
        Apart = "apart",
        /// Each tied; where both ends are one machine, those of a flow to one CPU.
        Together = "together",
        /// Where the scheduler puts them.
        Free = "free",
    }
}

impl Offload {
    /// Whether the sender's kernel cuts.
    pub fn cuts(self) -> bool {
        matches!(self, Self::Gso | Self::Both)
    }

    /// Whether the receiver's kernel joins.
    pub fn joins(self) -> bool {
        matches!(self, Self::Gro | Self::Both)
    }
}

/// One test; by default each choice is the first of its kind, and all numbers are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Number of the test in its session.
    pub test: u32,
    /// What is measured.
    pub work: Work,
    /// Which protocol carries it.
    pub protocol: Protocol,
    /// Which way.
    pub direction: Direction,
    /// How TCP sends.
    pub sender: Sender,
    /// How TCP receives.
    pub receiver: Receiver,
    /// What UDP leaves to the kernel.
    pub offload: Offload,
    /// How messages are waited for.
    pub waiting: Waiting,
    /// Where threads run.
    pub placement: Placement,
    /// Whether client and server share CPUs.
    pub shares_cpus: bool,
    /// Which CPUs those that share them begin with: each trial of a row has others.
    pub turn: u16,
    /// Streams in each direction.
    pub streams: u16,
    /// Bulk TCP streams from client to server beside a latency test.
    pub load_streams: u16,
    /// Bytes handed to the kernel per call; of latency, bytes of a message.
    pub block_bytes: u32,
    /// Bytes of a datagram, its number included; 0 for TCP.
    pub datagram_bytes: u32,
    /// Time before the window.
    pub warm_ns: u64,
    /// The timed window.
    pub window_ns: u64,
    /// Time after the window in which senders go on.
    pub tail_ns: u64,
    /// Bytes of all streams of a direction together; 0: by time.
    pub bytes: u64,
    /// Bytes per second of all streams of a direction together, or of latency questions per
    /// second; 0: as fast as it goes.
    pub rate_per_s: u64,
}

/// One connection of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Number within the test.
    pub index: u16,
    /// What it carries.
    pub traffic: Traffic,
    /// Over which protocol.
    pub protocol: Protocol,
}

/// What a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Bulk from client to server.
    Up,
    /// Bulk from server to client.
    Down,
    /// Questions of the client and the server's answers.
    Ping,
}

impl Spec {
    /// The connections that the test has.
    pub fn flows(&self) -> Vec<Flow> {
        let own: &[Traffic] = match (self.work, self.direction) {
            (Work::Latency, _) => &[Traffic::Ping],
            (_, Direction::Up) => &[Traffic::Up],
            (_, Direction::Down) => &[Traffic::Down],
            (_, Direction::Both) => &[Traffic::Up, Traffic::Down],
        };
        let each = |&traffic: &Traffic| repeat_n((traffic, self.protocol), self.streams.into());
        let load = repeat_n((Traffic::Up, Protocol::Tcp), self.load_streams.into());
        (0..)
            .zip(own.iter().flat_map(each).chain(load))
            .map(|(index, (traffic, protocol))| Flow { index, traffic, protocol })
            .collect()
    }

    /// Time from the beginning to the end of sending.
    pub fn whole_ns(&self) -> u64 {
        self.warm_ns.saturating_add(self.window_ns).saturating_add(self.tail_ns)
    }

    /// Refuses what is out of bounds, before anything is allocated for it.
    ///
    /// Errors: what is too much, in words.
    pub fn check(&self) -> Result<(), String> {
        let most = |what: &str, value: u64, least: u64, most: u64| match value {
            value if (least..=most).contains(&value) => Ok(()),
            _ => Err(format!("{what} {value}: it must be from {least} to {most}")),
        };
        most("streams", self.streams.into(), 1, MAX_STREAMS.into())?;
        most("load streams", self.load_streams.into(), 0, MAX_STREAMS.into())?;
        most("block bytes", self.block_bytes.into(), 1, MAX_BLOCK_BYTES.into())?;
        most("nanoseconds of a test", self.whole_ns(), 0, MAX_TEST_NS)?;
        most("bytes of a test", self.bytes, 0, MAX_BYTES)?;
        if self.protocol == Protocol::Udp && self.work == Work::Throughput {
            let datagram = self.datagram_bytes.into();
            most("datagram bytes", datagram, HEADER_BYTES.into(), MAX_DATAGRAM_BYTES.into())?;
        }
        if self.protocol == Protocol::Udp && self.work == Work::Latency {
            most("message bytes", self.block_bytes.into(), 1, MAX_DATAGRAM_BYTES.into())?;
        }
        most("bytes of buffers", self.buffer_bytes(), 0, MAX_BUFFER_BYTES)
    }

    /// Memory for the blocks of one end.
    pub fn buffer_bytes(&self) -> u64 {
        let each = match (self.work, self.protocol) {
            (Work::Throughput, Protocol::Udp) => DATAGRAMS_BYTES,
            _ => u64::from(self.block_bytes) * BUFFERS_PER_FLOW,
        };
        (self.flows().len() as u64).saturating_mul(each)
    }
}

/// Blocks that an end holds per connection at most.
const BUFFERS_PER_FLOW: u64 = 2;
/// What an end holds of datagrams per connection at most: those of a call, and the account of them.
const DATAGRAMS_BYTES: u64 = (1 << 20) + (256 << 10);

#[cfg(test)]
mod tests {
    use super::*;

    impl Spec {
        /// One TCP stream to the server, for tests.
        pub fn one_stream() -> Self {
            Self { streams: 1, block_bytes: 64 << 10, ..Self::default() }
        }
    }

    #[test]
    fn what_is_too_much_is_named() {
        let fine = Spec { window_ns: 1, ..Spec::one_stream() };
        assert_eq!(fine.check(), Ok(()));
        let udp = Spec { protocol: Protocol::Udp, datagram_bytes: 1460, ..fine };
        assert_eq!(udp.check(), Ok(()));
        for (spec, word) in [
            (Spec { streams: 0, ..fine }, "streams 0"),
            (Spec { streams: 65, ..fine }, "streams 65"),
            (Spec { block_bytes: 0, ..fine }, "block bytes 0"),
            (Spec { block_bytes: (1 << 20) + 1, ..fine }, "block bytes"),
            (Spec { window_ns: u64::MAX, ..fine }, "nanoseconds"),
            (Spec { bytes: u64::MAX, ..fine }, "bytes of a test"),
            (Spec { datagram_bytes: 15, ..udp }, "datagram bytes 15"),
            (Spec { datagram_bytes: 65_508, ..udp }, "datagram bytes 65508"),
            (Spec { work: Work::Latency, block_bytes: 65_508, ..udp }, "message bytes"),
            (Spec { load_streams: 65, ..fine }, "load streams"),
        ] {
            let text = spec.check().unwrap_err();
            assert!(text.starts_with(word), "{text}");
        }
    }

    #[test]
    fn both_directions_have_connections_of_their_own() {
        let spec = Spec { streams: 2, direction: Direction::Both, ..Spec::one_stream() };
        let traffic: Vec<_> = spec.flows().iter().map(|flow| flow.traffic).collect();
        assert_eq!(traffic, [Traffic::Up, Traffic::Up, Traffic::Down, Traffic::Down]);
        let spec = Spec {
            work: Work::Latency,
            protocol: Protocol::Udp,
            load_streams: 1,
            ..Spec::one_stream()
        };
        let flows = spec.flows();
        assert_eq!((flows[0].traffic, flows[0].protocol), (Traffic::Ping, Protocol::Udp));
        assert_eq!((flows[1].traffic, flows[1].protocol), (Traffic::Up, Protocol::Tcp));
        assert_eq!(flows[1].index, 1);
    }

    #[test]
    fn words_are_read_and_wrong_ones_answered_with_the_right_ones() {
        assert_eq!("sendfile".parse(), Ok(Sender::SendFile));
        let error = "tpc".parse::<Protocol>().unwrap_err();
        assert_eq!(error, "\"tpc\" is none of tcp, udp");
    }
}
