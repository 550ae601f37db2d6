//! `flatout serve`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use flatout_bench::network::PORT;
use flatout_bench::network::server::{CLIENTS, MAX_CLIENTS};

#[derive(Debug, Clone, Args)]
#[command(after_help = include_str!("help/serve.txt").trim_ascii_end())]
pub struct Serve {
    /// Name or address to listen at
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", value_hint = ValueHint::Hostname)]
    pub bind: String,
    /// Port to listen at; 0: any that is free
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// Clients to serve at once; further ones wait
    #[arg(long, value_name = "N", default_value_t = CLIENTS,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_CLIENTS)))]
    pub clients: u16,
    /// Measure N clients together: each trial begins when all are ready, and they are told the sum
    #[arg(long, value_name = "N", conflicts_with = "clients",
        value_parser = clap::value_parser!(u16).range(2..=i64::from(MAX_CLIENTS)))]
    pub together: Option<u16>,
    /// Serve one session, or those of one --together, and exit
    #[arg(short = '1', long, conflicts_with = "clients")]
    pub once: bool,
    /// File with the token that clients must know, at least 16 characters; - is standard input
    /// [default: off loopback a new one, which is printed; on loopback none]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}
