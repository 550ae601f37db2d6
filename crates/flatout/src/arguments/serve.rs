//! `flatout serve`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use flatout_bench::network::server::{CLIENTS, MAX_CLIENTS};
use flatout_bench::network::{PORT, address};

#[derive(Debug, Clone, Args)]
#[command(after_help = include_str!("help/serve.txt").trim_ascii_end(), allow_negative_numbers = true)]
pub struct Serve {
    /// Name or address to listen at; HOST:PORT names the port, too
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", value_hint = ValueHint::Hostname)]
    pub bind: String,
    /// Port to listen at; 0: any that is free [default: 7878]
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
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

impl Serve {
    /// The port that is listened at where the name has none of its own.
    ///
    /// Errors: both name one.
    pub fn port(&self) -> Result<u16, String> {
        match (address::parts(&self.bind), self.port) {
            (Ok((_, Some(_))), Some(port)) => {
                Err(format!("--bind {} names a port already: leave out --port {port}", self.bind))
            }
            (_, port) => Ok(port.unwrap_or(PORT)),
        }
    }
}
