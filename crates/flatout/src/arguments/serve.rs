//! `flatout serve`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

const AFTER: &str = "\
The other end is `flatout bench network --connect HOST:PORT --token-file FILE`. One client at a
time is served; others wait in line and are told so. Control and data use this one port, TCP and
UDP. Whoever does not know the token gets no answer.

Examples:
  flatout serve                              one session on loopback, without a token
  flatout serve --bind 0.0.0.0 --forever     for other machines; prints a token
  flatout serve --bind :: --token-file t     with the token in a file";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
pub struct Serve {
    /// Address to listen at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Port to listen at; 0: any that is free
    #[arg(long, value_name = "PORT", default_value_t = 7878)]
    pub port: u16,
    /// Serve one session and exit, as by default
    #[arg(long, conflicts_with = "forever")]
    pub once: bool,
    /// Serve until stopped
    #[arg(long)]
    pub forever: bool,
    /// File with the token that clients must know, at least 16 characters [default: off loopback
    /// a new one, which is printed; on loopback none]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}
