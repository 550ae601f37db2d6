//! The options of the network area.

use std::path::PathBuf;

use clap::Args;
use flatout_bench::network::Selection;
use flatout_bench::network::client::Family;
use flatout_bench::network::spec::{
    Direction, MAX_BLOCK_BYTES, Offload, Placement, Protocol, Receiver, Sender, Waiting, Work,
};

use crate::arguments::quantity::{size, time};

/// Options that only the network area knows.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Network area")]
pub struct Network {
    /// Where `flatout serve` runs [default: a server of this process, on loopback]
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: Option<String>,
    /// The file with the token that the server asks for
    #[arg(long, value_name = "FILE", requires = "connect")]
    pub token_file: Option<PathBuf>,
    /// Use IPv4 only
    #[arg(long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(long)]
    pub ipv6: bool,
    /// throughput or latency alone [default: both]
    #[arg(long, value_name = "WHAT")]
    pub measure: Option<Work>,
    /// tcp, udp [default: both]
    #[arg(long, value_name = "PROTOCOL,…", value_delimiter = ',')]
    pub protocol: Vec<Protocol>,
    /// Streams at once, each with a thread of its own at either end [default: 1, 2, 4, 8]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub streams: Vec<u16>,
    /// up (to the server), down, both (at once) [default: up; the whole grid has all]
    #[arg(long, value_name = "WAY,…", value_delimiter = ',')]
    pub direction: Vec<Direction>,
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
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub datagram_size: Option<u64>,
    /// How answers are waited for: blocking, or busy-poll (asking again and again)
    /// [default: blocking]
    #[arg(long, value_name = "HOW")]
    pub wait: Option<Waiting>,
    /// Where the threads of a stream run: apart (each tied to a CPU, those of the two ends to
    /// different ones), together (both ends to one CPU), free (where the scheduler puts them)
    /// [default: TCP what is fastest here, UDP apart, latency free; the whole grid has all of
    /// latency]
    #[arg(long, value_name = "WHERE")]
    pub placement: Option<Placement>,
    /// The timed part of each trial [default: 60ms, of latency 30ms; longer on long ways]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<u64>,
}

impl Network {
    /// The family asked for.
    pub fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        }
    }

    /// What the user fixed.
    ///
    /// Errors: a block that no limit allows, in one line.
    pub fn selection(
        &self,
        block_bytes: &[u64],
        bytes: Option<u64>,
        rate_per_s: Option<f64>,
    ) -> Result<Selection, String> {
        let short = |option: &str, value: u64| {
            let fits =
                u32::try_from(value).ok().filter(|value| (1..=MAX_BLOCK_BYTES).contains(value));
            fits.ok_or(format!("{option} {value}: it must be from 1 to {MAX_BLOCK_BYTES} bytes"))
        };
        let blocks: Result<Vec<u32>, String> =
            block_bytes.iter().map(|&block| short("--block-size", block)).collect();
        let datagram =
            self.datagram_size.map(|bytes| short("--datagram-size", bytes)).transpose()?;
        if bytes == Some(0) {
            return Err("--bytes 0: there is nothing to send".to_owned());
        }
        if let Some(rate) = rate_per_s.filter(|rate| !(1.0..=1e12).contains(rate)) {
            return Err(format!("--rate {rate}: it must be from 1 to 1000000000000"));
        }
        Ok(Selection {
            work: self.measure,
            protocols: each_once(&self.protocol),
            streams: each_once(&self.streams),
            directions: each_once(&self.direction),
            block_bytes: each_once(&blocks?),
            datagram_bytes: datagram,
            sender: self.sender,
            receiver: self.receiver,
            offload: self.offload,
            waiting: self.wait,
            placement: self.placement,
            bytes,
            rate_per_s: rate_per_s.map(|rate| rate as u64),
        })
    }
}

fn each_once<T: Copy + PartialEq>(list: &[T]) -> Vec<T> {
    let mut known: Vec<T> = Vec::new();
    for &item in list {
        if !known.contains(&item) {
            known.push(item);
        }
    }
    known
}
