//! What TCP knows about one of its connections (`TCP_INFO`, tcp(7)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Totals and states of one connection. Counters begin with the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent again.
    pub retransmits: u32,
    /// Round trip, smoothed.
    pub round_trip_ns: u64,
    /// The shortest round trip seen.
    pub least_round_trip_ns: u64,
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
    /// Bytes that the peer has acknowledged.
    pub acknowledged_bytes: u64,
    /// Segments sent, again or not.
    pub segments: u32,
}

/// The head of `struct tcp_info` in linux/tcp.h, up to the last member that is used here. The
/// kernel only ever appends to it, and says how much it filled in.
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    states: [u8; 8],
    timeouts: [u32; 2],
    snd_mss: u32,
    rcv_mss: u32,
    queues: [u32; 5],
    ages: [u32; 4],
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
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
    let mut raw = std::mem::MaybeUninit::<Raw>::zeroed();
    let mut length = size_of::<Raw>() as libc::socklen_t;
    // SAFETY: getsockopt(2) writes at most `length` bytes through the pointer, which is valid for
    // that many; all bytes were zeroed, and any bytes are a valid `Raw`, which holds integers only.
    let (result, raw) = unsafe {
        let result = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            raw.as_mut_ptr().cast(),
            &mut length,
        );
        (result, raw.assume_init())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if (length as usize) < size_of::<Raw>() {
        return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    let ns = |microseconds: u64| microseconds.saturating_mul(1000);
    Ok(TcpInfo {
        retransmits: raw.total_retrans,
        round_trip_ns: ns(raw.rtt.into()),
        // A connection that has measured nothing yet says 2^32 − 1.
        least_round_trip_ns: if raw.min_rtt == u32::MAX { 0 } else { ns(raw.min_rtt.into()) },
        window_segments: raw.snd_cwnd,
        segment_bytes: raw.snd_mss,
        busy_ns: ns(raw.busy_time),
        receiver_limited_ns: ns(raw.rwnd_limited),
        buffer_limited_ns: ns(raw.sndbuf_limited),
        acknowledged_bytes: raw.bytes_acked,
        segments: raw.segs_out,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::mem::offset_of;
    use std::os::fd::AsFd;

    use super::*;
    use crate::socket::tests::tcp_pair;

    #[test]
    fn members_lie_where_the_kernel_has_them() {
        assert_eq!(offset_of!(Raw, snd_mss), 16);
        assert_eq!(offset_of!(Raw, pmtu), 60);
        assert_eq!(offset_of!(Raw, total_retrans), 100);
        assert_eq!(offset_of!(Raw, bytes_acked), 120);
        assert_eq!(offset_of!(Raw, min_rtt), 148);
        assert_eq!(offset_of!(Raw, sndbuf_limited), 184);
        assert_eq!(size_of::<Raw>(), 192);
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
        // The opening of the connection counts as one.
        assert!((10_000..=10_001).contains(&info.acknowledged_bytes), "{info:?}");
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
