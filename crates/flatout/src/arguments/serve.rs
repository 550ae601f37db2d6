//! `flatout serve`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use flatout_bench::network::PORT;

const AFTER: &str = "\
It serves until it is stopped. The other end is `flatout bench network --connect HOST[:PORT]
--token-file FILE`. One client at a time is served; others wait in line and are told so. Control and
data use this one port, TCP and UDP. Whoever does not know the token gets no answer.

Examples:
  flatout serve                              on loopback, without a token
  flatout serve --bind 0.0.0.0               for other machines; prints a token
  flatout serve --bind :: --token-file t     with the token in a file
  flatout serve -1 -p 9999                   one session, on another port";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
pub struct Serve {
    /// Name or address to listen at
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", value_hint = ValueHint::Hostname)]
    pub bind: String,
    /// Port to listen at; 0: any that is free
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    pub port: u16,
    /// Serve one session and exit
    #[arg(short = '1', long)]
    pub once: bool,
    /// File with the token that clients must know, at least 16 characters; - is standard input
    /// [default: off loopback a new one, which is printed; on loopback none]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}
