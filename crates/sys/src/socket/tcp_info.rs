//! What TCP knows about one of its connections (`TCP_INFO`, tcp(7)).

use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;

use super::option;

/// Totals and states of one connection. Counters begin with the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent again.
    pub retransmits: u32,
    /// Round trip, smoothed.
    pub round_trip_ns: u64,
    /// Segments that may be on their way at once.
    pub window_segments: u32,
    /// Bytes in a full segment.
    pub segment_bytes: u32,
    /// Time in which there was something to send.
    pub busy_ns: u64,
    /// Part of it in which the receiver's window was shut.
    pub receiver_limited_ns: u64,
    /// Part of it in which the send buffer was too small.
    pub buffer_limited_ns: u64,
    /// Segments sent, again or not.
    pub segments: u32,
    /// Bytes that the other end's TCP has.
    pub acknowledged_bytes: u64,
}

/// Asks a connected TCP socket.
///
/// Units: nanoseconds; the kernel counts microseconds. Cost: one system call, which waits for the
/// socket's lock.
///
/// # Errors
/// Those of getsockopt(2); a kernel that knows less than the times of limits (4.10) is
/// `ENOPROTOOPT`.
pub fn of(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    // SAFETY: any bytes are a valid `tcp_info`, which holds integers only.
    let (raw, length) = unsafe { option::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO) }?;
    let raw: libc::tcp_info = raw;
    // The kernel only ever appends to it; this is the last member that is used here.
    if length < offset_of!(libc::tcp_info, tcpi_sndbuf_limited) + size_of::<u64>() {
        return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    let ns = |microseconds: u64| microseconds.saturating_mul(1000);
    Ok(TcpInfo {
        retransmits: raw.tcpi_total_retrans,
        round_trip_ns: ns(raw.tcpi_rtt.into()),
        window_segments: raw.tcpi_snd_cwnd,
        segment_bytes: raw.tcpi_snd_mss,
        busy_ns: ns(raw.tcpi_busy_time),
        receiver_limited_ns: ns(raw.tcpi_rwnd_limited),
        buffer_limited_ns: ns(raw.tcpi_sndbuf_limited),
        segments: raw.tcpi_segs_out,
        acknowledged_bytes: raw.tcpi_bytes_acked,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use super::*;
    use crate::socket::tests::tcp_pair;

    #[test]
    fn members_lie_where_the_kernel_has_them() {
        assert_eq!(offset_of!(libc::tcp_info, tcpi_snd_mss), 16);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_pmtu), 60);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_total_retrans), 100);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_sndbuf_limited), 184);
    }

    #[test]
    fn a_connection_tells_what_it_sent() {
        let (mut near, mut far) = tcp_pair();
        for _ in 0..10 {
            near.write_all(&[1; 1000]).unwrap();
            far.read_exact(&mut [0; 1000]).unwrap();
            far.write_all(&[1]).unwrap();
            near.read_exact(&mut [0]).unwrap();
        }
        let info = of(near.as_fd()).unwrap();
        assert!(info.segment_bytes > 500 && info.window_segments > 0, "{info:?}");
        assert!(info.round_trip_ns > 0 && info.retransmits == 0 && info.segments >= 10);
        assert!(info.receiver_limited_ns <= info.busy_ns, "{info:?}");
    }

    #[test]
    fn what_is_no_tcp_socket_has_no_answer() {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(of(udp.as_fd()).is_err());
    }
}
