//! `flatout serve` and `flatout bench network`: two programs on loopback, or in network namespaces
//! that a test makes. No datagram leaves the machine.

mod account;
mod beside;
mod hostile;
mod namespace;
mod session;

use std::io::{BufRead, BufReader, PipeReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use crate::bin::{Folder, LIMIT, Running};

/// One row, in little time.
pub const LITTLE: [&str; 8] =
    ["--quick", "--rounds", "3", "--duration", "20ms", "--format", "json", "--streams"];

/// A server that listens.
pub struct Serving<'f> {
    /// Its process.
    pub running: Running<'f>,
    /// Where it listens.
    pub address: SocketAddr,
    said: Receiver<String>,
}

impl<'f> Serving<'f> {
    /// Starts a server on loopback and waits until it listens.
    pub fn start(folder: &'f Folder, arguments: &[&str]) -> Self {
        Self::with(folder, arguments, |_| ())
    }

    /// The same, after `change`.
    pub fn with(folder: &'f Folder, arguments: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        let all = ["serve", "--port", "0"].iter().chain(arguments);
        let running = folder.flatout(all).stdout(writer).with(change).start();
        Self::of(running, reader)
    }

    /// A server whose output is `reader`.
    pub fn of(running: Running<'f>, reader: PipeReader) -> Self {
        let (sender, said) = channel();
        std::thread::spawn(move || {
            BufReader::new(reader)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let line = next(&said);
        let address = line.strip_prefix("listening at ").expect(&line).parse().unwrap();
        Self { running, address, said }
    }

    /// The next line that it says.
    pub fn says(&mut self) -> String {
        next(&self.said)
    }

    /// Its address as an argument.
    pub fn at(&self) -> String {
        self.address.to_string()
    }
}

/// A client that gave up makes a server say nothing more: that is no reason to wait for ever.
fn next(said: &Receiver<String>) -> String {
    said.recv_timeout(LIMIT).expect("the server says one line more").trim().to_owned()
}

/// A file with a token.
pub fn token(folder: &Folder, text: &str) -> PathBuf {
    let path = folder.join(&format!("token-{}", text.len()));
    std::fs::write(&path, text).unwrap();
    path
}

/// All rows of a document.
pub fn rows(document: &Value) -> &Vec<Value> {
    document["results"].as_array().unwrap()
}
