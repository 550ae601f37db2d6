//! Sockets made safe where the standard library stops: options, what TCP knows of itself, many
//! datagrams per call, and ways to send without a copy.
//!
//! Sockets are made, connected and closed by the standard library; this room only takes them by
//! descriptor. "This kernel can't" is an error that [`is_unsupported`] knows. See socket(7),
//! tcp(7), udp(7) and Documentation/networking/msg_zerocopy.rst.
//!
//! Read next: [`datagrams`], [`zero_copy`].

pub mod datagrams;
pub mod interface;
pub(crate) mod option;
pub mod ring_send;
pub mod tcp_info;
pub mod zero_copy;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::sockopt;
use rustix::net::{RecvFlags, SendFlags};

pub use option::{drops, set_busy_poll, set_gro, set_zero_copy};

/// The longest datagram of UDP over IPv4: 65,535 bytes less the headers of IP and UDP.
pub const LONGEST_DATAGRAM_BYTES: usize = 65_507;

/// Whether an error says that this kernel, driver or protocol cannot do it.
pub fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOPROTOOPT
                | libc::EOPNOTSUPP
                | libc::ENOSYS
                | libc::EINVAL
                | libc::EPERM
                | libc::EIO
        )
    )
}

/// Sends a part of `bytes` over a connected socket; a peer that has gone is an error, no signal.
///
/// # Errors
/// Those of send(2).
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)?)
}

/// Receives into `buffer`; 0 is the end.
///
/// # Errors
/// Those of recv(2).
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, buffer, RecvFlags::empty())?.0)
}

/// As [`receive`], without waiting: `WouldBlock` where nothing is there.
///
/// # Errors
/// Those of recv(2).
pub fn receive_now(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT)?.0)
}

/// Takes up to `buffer.len()` bytes off a TCP connection and throws them away in the kernel
/// (`MSG_TRUNC`): nothing is copied. 0 is the end.
///
/// # Errors
/// Those of recv(2).
pub fn discard(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // TCP reports what it took off the queue as the second number, and copies nothing.
    Ok(rustix::net::recv(socket, buffer, RecvFlags::TRUNC)?.1)
}

/// A file in memory with `bytes` in it, to be sent from.
///
/// # Errors
/// Those of memfd_create(2) and write(2).
pub fn memory_file(bytes: &[u8]) -> io::Result<std::fs::File> {
    use std::io::Write;
    let mut file = std::fs::File::from(memfd_create("flatout-send", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

/// Sends up to `length_bytes` of `file` from `offset_bytes` on, without a copy into this process.
///
/// # Errors
/// Those of sendfile(2).
pub fn send_file(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset_bytes: u64,
    length_bytes: usize,
) -> io::Result<usize> {
    let mut offset = offset_bytes;
    Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), length_bytes)?)
}

/// What the kernel grants of a buffer that was asked for: it doubles what is asked, for its own
/// bookkeeping, and stops at `net.core.rmem_max`.
///
/// # Errors
/// Those of setsockopt(2).
pub fn ask_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    sockopt::set_socket_recv_buffer_size(socket, bytes)?;
    Ok(sockopt::socket_recv_buffer_size(socket)?)
}

/// The sizes of both buffers now, sending and receiving.
///
/// # Errors
/// Those of getsockopt(2).
pub fn buffers(socket: BorrowedFd<'_>) -> io::Result<(usize, usize)> {
    Ok((sockopt::socket_send_buffer_size(socket)?, sockopt::socket_recv_buffer_size(socket)?))
}

/// Ends both directions of a connection: whoever waits in a call on it comes back. Errors are of
/// no use here: a socket that is not connected has nobody waiting.
pub fn stop(socket: BorrowedFd<'_>) {
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
}

/// A UDP socket at `address`, which others of this process may share (`SO_REUSEPORT`): each is
/// then connected to one peer, and the kernel hands it that peer's datagrams alone.
///
/// # Errors
/// Those of socket(2), setsockopt(2) and bind(2).
pub fn shared_udp(address: SocketAddr) -> io::Result<UdpSocket> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(socket.as_fd(), &address)?;
    Ok(socket.into())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Two ends of one TCP connection on loopback.
    pub fn tcp_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        (near, far)
    }

    #[test]
    fn what_is_discarded_is_gone_and_counted() {
        let (mut near, mut far) = tcp_pair();
        near.write_all(&[7; 1000]).unwrap();
        near.write_all(b"end").unwrap();
        let mut buffer = [0; 600];
        let mut left = 1000;
        while left > 0 {
            let most = left.min(600);
            left -= discard(far.as_fd(), &mut buffer[..most]).unwrap();
        }
        assert!(buffer.iter().all(|&byte| byte == 0), "nothing was copied");
        let mut rest = [0; 3];
        far.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"end");
        drop(near);
        assert_eq!(discard(far.as_fd(), &mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_file_in_memory_arrives_as_it_is() {
        let (near, mut far) = tcp_pair();
        let bytes: Vec<u8> = (0..10_000_u32).map(|number| (number % 251) as u8).collect();
        let file = memory_file(&bytes).unwrap();
        let mut sent = 0;
        while sent < bytes.len() {
            let left = bytes.len() - sent;
            sent += send_file(near.as_fd(), file.as_fd(), sent as u64, left).unwrap();
        }
        let mut got = vec![0; bytes.len()];
        far.read_exact(&mut got).unwrap();
        assert_eq!(got, bytes);
    }

    #[test]
    fn a_stopped_socket_sends_home_who_waits() {
        let (near, far) = tcp_pair();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| receive(far.as_fd(), &mut [0; 8]).unwrap());
            stop(far.as_fd());
            assert_eq!(waiter.join().unwrap(), 0);
        });
        assert!(send(far.as_fd(), b"x").is_err(), "an error, not a signal");
        drop(near);
    }

    #[test]
    fn sockets_that_share_an_address_are_told_apart_by_their_peer() {
        let first = shared_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = first.local_addr().unwrap();
        let peers: Vec<UdpSocket> =
            (0..2).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        first.connect(peers[0].local_addr().unwrap()).unwrap();
        let second = shared_udp(address).unwrap();
        second.connect(peers[1].local_addr().unwrap()).unwrap();
        let third = shared_udp(address).unwrap();
        for (peer, text) in peers.iter().zip([b"to first ", b"to second"]) {
            peer.send_to(text, address).unwrap();
        }
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(b"stranger ", address).unwrap();
        for (socket, text) in [(first, b"to first "), (second, b"to second"), (third, b"stranger ")]
        {
            let mut buffer = [0; 9];
            socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer, text);
        }
    }
}
