//! A server whose port is open to everybody: garbage, replays, stalls and floods cost it nothing
//! that stays, and real clients are served all the while.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::{LITTLE, Serving};
use crate::bin::Folder;
use crate::fixture::{is_full, random_bytes};

/// Longer than the server waits for a handshake.
const PATIENCE: Duration = Duration::from_secs(100);
const MIB: u64 = 1 << 20;

fn is_served(folder: &Folder, server: &Serving<'_>) {
    let all = ["bench", "network", "--connect", &server.at(), "--protocol", "tcp"];
    folder.flatout(all.iter().chain(&LITTLE).chain(&["1"])).run().exits(0);
}

/// What the server answers until it hangs up.
fn answer_to(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    rest_of(&mut stream)
}

/// A reset is as good as an end: whoever reads not all that it got hangs up so.
fn rest_of(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return all,
            Ok(length) => all.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return all,
            // Whoever stops and continues the tests interrupts a read that has a timeout (signal(7)).
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => panic!("the server did not hang up: {error}"),
        }
    }
}

#[test]
fn whoever_proves_nothing_gets_no_answer() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &[]);
    let mut looks_like_one = vec![0, 48];
    looks_like_one.extend(random_bytes(48, 1));
    let mut data = vec![0xda, 0x7a];
    data.extend(random_bytes(48, 2));
    let all = [
        &b"GET / HTTP/1.1\r\nHost: example\r\n\r\nand some more of it to fill a message"[..],
        &looks_like_one,
        &data,
        &[0xff; 100],
        &[0; 50],
        // Cut short: the server hangs up when its patience ends.
        &looks_like_one[..20],
        b"",
    ];
    std::thread::scope(|scope| {
        for bytes in all {
            let at = server.address;
            scope.spawn(move || assert_eq!(answer_to(at, bytes), b"", "{bytes:?}"));
        }
    });
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.send_to(&data, server.address).unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(udp.recv(&mut [0; 64]).is_err(), "an unproven address gets nothing");
    is_served(&folder, &server);
}

#[test]
fn a_recorded_handshake_opens_no_session() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &[]);
    let thief = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = thief.local_addr().unwrap().to_string();
    let all = ["bench", "network", "--connect", &at];
    let client = folder.flatout(all.iter().chain(&LITTLE).chain(&["1"])).start();
    let mut message = [0; 50];
    let (mut stream, _) = thief.accept().unwrap();
    stream.read_exact(&mut message).unwrap();
    drop(stream);
    client.wait().exits(1);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&message).unwrap();
    stream.read_exact(&mut [0; 50]).unwrap();
    // Without the key of the recorded message nothing can follow; a guess ends it.
    let mut guess = vec![0, 19];
    guess.extend(random_bytes(19, 3));
    stream.write_all(&guess).unwrap();
    assert_eq!(rest_of(&mut stream), b"");
    is_served(&folder, &server);
}

/// A member of the server's status, in kB or a plain number.
fn status(server: &mut Serving<'_>, key: &str) -> u64 {
    let mut value = 0;
    let found = std::cell::Cell::new(0);
    server.running.wait_until("status", |text| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        found.set(number.unwrap_or(0));
        number.is_some()
    });
    value += found.get();
    value
}

#[test]
fn a_flood_of_garbage_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut server = Serving::start(&folder, &[]);
    is_served(&folder, &server);
    let before = status(&mut server, "VmRSS:");
    let most = if is_full() { 2000 } else { 300 };
    let address = server.address;
    let flood = std::thread::spawn(move || {
        let begun = Instant::now();
        let (mut count, mut open) = (0_u32, Vec::new());
        while count < most {
            // Two hundred a second: the next one is due when the clock says so.
            while f64::from(count) > begun.elapsed().as_secs_f64() * 200.0 {
                std::thread::sleep(crate::bin::POLL);
            }
            let Ok(mut stream) = TcpStream::connect(address) else { continue };
            let bytes = random_bytes(1 + (count % 80) as usize, count.into());
            let _ = stream.write_all(&bytes);
            // Some stay and stall.
            if count % 4 == 0 {
                open.push(stream);
            }
            count += 1;
        }
    });
    let mut served = 0;
    while !flood.is_finished() {
        is_served(&folder, &server);
        served += 1;
    }
    flood.join().unwrap();
    assert!(served >= 1);
    // Sessions and guests end; what is left is the thread that keeps the door.
    server.running.wait_until("status", |text| text.lines().any(|line| line == "Threads:\t1"));
    let after = status(&mut server, "VmRSS:");
    assert!(after.saturating_sub(before) * 1024 <= 8 * MIB, "{before} kB became {after} kB");
}

#[test]
fn a_client_that_stalls_is_sent_away() {
    let folder = Folder::new();
    let server = Serving::start(&folder, &["--clients", "1"]);
    // Stopped in mid-session it says nothing for longer than a session may be silent.
    let all = ["bench", "network", "--connect", &server.at(), "--duration", "50ms"];
    let mut server = server;
    let stalled = folder.flatout(all).start();
    assert!(server.says().contains("begins"));
    stalled.signal(rustix::process::Signal::STOP);
    is_served(&folder, &server);
    stalled.signal(rustix::process::Signal::KILL);
    stalled.signal(rustix::process::Signal::CONT);
    stalled.wait();
}
