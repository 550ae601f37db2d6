//! Options of sockets that rustix does not know: offloads, zero copy, busy polling, and how many
//! datagrams were dropped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::cause::answered;

/// Index of the drops in what `SO_MEMINFO` answers (`SK_MEMINFO_DROPS`, linux/sock_diag.h).
const MEMINFO_DROPS: usize = 8;
/// Numbers that `SO_MEMINFO` answers at most.
const MEMINFO_NUMBERS: usize = 16;
/// `SO_MEMINFO`, asm-generic/socket.h.
const SO_MEMINFO: libc::c_int = 55;

/// Has the kernel join datagrams of one sender into a large one with the size of the parts
/// (`UDP_GRO`, Linux 5.0).
///
/// # Errors
/// `ENOPROTOOPT` where the kernel cannot.
pub fn set_gro(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Lets `MSG_ZEROCOPY` be used on a TCP socket (Linux 4.14).
///
/// # Errors
/// Those of setsockopt(2).
pub fn set_zero_copy(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

/// Has calls that wait poll the network card for so long first (`SO_BUSY_POLL`). Loopback has no
/// queue to poll, there it changes nothing.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`, unless the system has a longer time set already.
pub fn set_busy_poll(socket: BorrowedFd<'_>, microseconds: u32) -> io::Result<()> {
    let time = libc::c_int::try_from(microseconds).unwrap_or(libc::c_int::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, time)
}

/// How many packets this socket has dropped since it was made, because its buffer was full: the
/// counter that `SO_RXQ_OVFL` brings along with the next datagram, asked for directly, so that
/// drops after the last datagram are known too.
///
/// Units: packets as they came to the socket; datagrams that the kernel joined count as one.
///
/// # Errors
/// Those of getsockopt(2); `SO_MEMINFO` is of Linux 4.12.
pub fn drops(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: any bytes are valid integers.
    let (numbers, length) = unsafe { get(socket, libc::SOL_SOCKET, SO_MEMINFO) }?;
    let numbers: [u32; MEMINFO_NUMBERS] = numbers;
    if length <= MEMINFO_DROPS * size_of::<u32>() {
        return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    Ok(numbers[MEMINFO_DROPS].into())
}

/// The value of an option, and how many of its bytes the kernel has filled in; the others are zero.
///
/// # Safety
/// Any bytes, zeros too, must be a valid `T`.
pub(super) unsafe fn get<T>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<(T, usize)> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    let (socket, place) = (socket.as_raw_fd(), value.as_mut_ptr().cast());
    // SAFETY: getsockopt(2) writes at most `length` bytes through the pointer, which is valid for
    // that many, and then the length.
    answered(unsafe { libc::getsockopt(socket, level, option, place, &mut length) })?;
    // SAFETY: all bytes were zeroed, and the caller promises that any are valid.
    Ok((unsafe { value.assume_init() }, length as usize))
}

/// Sets an option that is one whole number.
pub(super) fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let (place, length) = ((&raw const value).cast(), size_of_val(&value) as libc::socklen_t);
    // SAFETY: setsockopt(2) reads one integer, whose address and length it is given.
    answered(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, place, length) })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn drops_are_counted_to_the_last() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        assert_eq!(drops(receiver.as_fd()).unwrap(), 0);
        let count = 4000;
        for _ in 0..count {
            sender.send(&[0; 4000]).unwrap();
        }
        receiver.set_nonblocking(true).unwrap();
        let mut buffer = [0; 4096];
        let got = std::iter::from_fn(|| receiver.recv(&mut buffer).ok()).count() as u64;
        let dropped = drops(receiver.as_fd()).unwrap();
        assert!(dropped > 0);
        assert_eq!(got + dropped, count, "loopback loses nothing elsewhere");
    }
}
