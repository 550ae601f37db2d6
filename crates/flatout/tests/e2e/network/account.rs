//! The account of datagrams, through a proxy that drops, doubles and reorders those it knows.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::{Serving, rows};
use crate::bin::{Folder, assert_warned, in_enough_time};

/// Datagrams of a trial: as many as a socket holds for a proxy that gets no CPU meanwhile.
const DATAGRAMS: u64 = 200;
const DATAGRAM_BYTES: u64 = 200;
const QUESTION_BYTES: u64 = 100;
/// Datagrams of this length go nowhere.
const REFUSED_BYTES: u64 = 300;

/// Passes TCP on, and what becomes of datagrams is decided by their number.
struct Proxy {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Proxy {
    /// Each connection takes so long until it goes on.
    fn before(server: SocketAddr, delay: Duration) -> Self {
        // The same port for both protocols, as the server has.
        let (tcp, udp) = std::iter::repeat_with(|| {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let udp = UdpSocket::bind(tcp.local_addr().unwrap());
            udp.map(|udp| (tcp, udp))
        })
        .find_map(Result::ok)
        .unwrap();
        let address = tcp.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        std::thread::spawn(move || {
            for near in tcp.incoming().map_while(Result::ok) {
                std::thread::sleep(delay);
                let Ok(far) = TcpStream::connect(server) else { return };
                pass_on(near.try_clone().unwrap(), far.try_clone().unwrap());
                pass_on(far, near);
            }
        });
        let stopped = Arc::clone(&stop);
        std::thread::spawn(move || pass_datagrams(&udp, server, &stopped));
        Self { address, stop }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// The number in a datagram of a test, or of a question; none in what proves a session.
fn number_of(datagram: &[u8]) -> Option<u64> {
    match datagram.len() as u64 {
        DATAGRAM_BYTES => Some(u64::from_be_bytes(datagram[8..16].try_into().unwrap())),
        QUESTION_BYTES => Some(u64::from_le_bytes(datagram[..8].try_into().unwrap())),
        _ => None,
    }
}

/// Answers; until there has been none for longer than anybody waits.
fn pass_back(far: &UdpSocket, near: &UdpSocket, client: SocketAddr) {
    far.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let (far, near) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok(length) = far.recv(&mut buffer) {
            let _ = near.send_to(&buffer[..length], client);
        }
    });
}

fn pass_datagrams(near: &UdpSocket, server: SocketAddr, stop: &AtomicBool) {
    near.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut far: HashMap<SocketAddr, (UdpSocket, Option<Vec<u8>>)> = HashMap::new();
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, client)) = near.recv_from(&mut buffer) else { continue };
        let datagram = &buffer[..length];
        let (socket, held) = far.entry(client).or_insert_with(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(server).unwrap();
            pass_back(&socket, near, client);
            (socket, None)
        });
        let send = |bytes: &[u8]| _ = socket.send(bytes);
        match number_of(datagram).map(|number| number % 10) {
            _ if length as u64 == REFUSED_BYTES => {}
            Some(3) => {}
            Some(5) => (0..3).for_each(|_| send(datagram)),
            Some(7) => *held = Some(datagram.to_vec()),
            Some(8) => {
                send(datagram);
                held.take().iter().for_each(|held| send(held));
            }
            _ => send(datagram),
        }
    }
}

/// The row of a test through a proxy, and what was said of it.
fn proxied(options: &[&str], code: i32) -> (Value, String) {
    let folder = Folder::new();
    let server = Serving::start(&folder, &["--once"]);
    let proxy = Proxy::before(server.address, Duration::ZERO);
    let address = proxy.address.to_string();
    let mut words = vec!["bench", "network", "--connect", &address, "--protocol", "udp"];
    words.extend(["--streams", "1", "--rounds", "2", "--format", "json"]);
    words.extend(options);
    let ran = folder.flatout(words).run();
    let document = ran.exits(code).document();
    (rows(&document)[0].clone(), ran.stderr.clone())
}

#[test]
fn many_streams_over_a_long_way_are_waited_for_as_long_as_they_come() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &["--once"]);
    // 64 connections, one after the other, take longer than the server waits for the next one.
    let proxy = Proxy::before(server.address, Duration::from_millis(90));
    let address = proxy.address.to_string();
    let words = ["bench", "network", "--connect", &address, "--protocol", "tcp", "--streams", "64"];
    let few = ["--direction", "up", "--sender", "write", "--rate", "10MB", "--time", "50ms"];
    let rest = ["--measure", "throughput", "--runs", "1", "--format", "json"];
    let ran = folder.flatout(words.iter().chain(&few).chain(&rest)).run();
    let row = rows(&ran.exits(0).document())[0].clone();
    assert!(row["median"].as_f64().is_some_and(|median| median > 0.0), "{row:#}");
}

fn row_of_proxied(options: &[&str]) -> Value {
    proxied(options, 0).0
}

#[test]
fn a_window_in_which_nothing_comes_is_made_no_longer_than_there_is_time() {
    let size = REFUSED_BYTES.to_string();
    let (asked_ms, window_ms) = in_enough_time(1, |time| {
        let (row, _) = proxied(&["--block-size", &size, "--max-time", time], 1);
        assert_warned(&row, "time_short");
        let said = row["warnings"].to_string();
        let (_, window) = said.split_once("nothing arrived within a window of ")?;
        let window_ms = window.split_once(" ms").unwrap().0.parse::<f64>().unwrap();
        Some((time.strip_suffix('s').unwrap().parse::<f64>().unwrap() * 1e3, window_ms))
    });
    assert!(window_ms < asked_ms, "{window_ms} of {asked_ms}");
}

#[test]
fn questions_that_are_lost_are_counted_and_end_no_row() {
    let size = QUESTION_BYTES.to_string();
    let row = row_of_proxied(&["--measure", "latency", "--block-size", &size, "--time", "1500ms"]);
    let of = |key: &str| row["audit"][key].as_u64().unwrap();
    assert!(of("datagrams_lost") >= 2, "{row:#}");
    assert!(row["median"].as_f64().unwrap() < 1e9, "{row:#}");
    assert!(row["warnings"].to_string().contains("datagrams_lost"), "{row:#}");
}

#[test]
fn what_a_proxy_does_to_datagrams_is_told_to_the_last_one() {
    let tenth = DATAGRAMS / 10;
    let sum = |row: &Value, key: &str| row["audit"][format!("datagrams_{key}")].as_u64().unwrap();
    // A proxy that gets no CPU until the test is over loses the last ones besides.
    let is_whole =
        |row: &Value| sum(row, "unique") == row["n"].as_u64().unwrap() * (DATAGRAMS - tenth);
    let (size, bytes) = (DATAGRAM_BYTES.to_string(), (DATAGRAMS * DATAGRAM_BYTES).to_string());
    let mut options = vec!["--direction", "up", "--rate", "1MB", "--block-size", &size];
    options.extend(["--datagram-size", &size, "--bytes", &bytes]);
    let row = &(0..8).map(|_| row_of_proxied(&options)).find(is_whole).unwrap();
    let stream = &row["audit"]["streams_last_trial"][0];
    let of = |key: &str| stream[format!("datagrams_{key}")].as_u64().unwrap();
    assert_eq!(of("sent"), DATAGRAMS, "{row:#}");
    assert_eq!(of("lost"), tenth, "{row:#}");
    assert_eq!(of("dropped"), 0, "{row:#}");
    assert_eq!(of("duplicate"), 2 * tenth, "{row:#}");
    assert_eq!(of("reordered"), tenth, "{row:#}");
    assert_eq!(of("unique"), DATAGRAMS - tenth, "{row:#}");
    assert_eq!(of("received"), DATAGRAMS + tenth, "{row:#}");
    let trials = row["n"].as_u64().unwrap();
    assert_eq!(
        (sum(row, "lost"), sum(row, "duplicate")),
        (trials * tenth, 2 * trials * tenth),
        "{row:#}"
    );
    assert!(row["warnings"].to_string().contains("datagrams_lost"));
}
