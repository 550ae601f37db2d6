//! Many datagrams per system call: sendmmsg(2) and recvmmsg(2), with segmentation on the way out
//! (`UDP_SEGMENT`) and joined datagrams on the way in (`UDP_GRO`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::option;
use crate::buffer::AlignedBuffer;
use crate::cause::answered;

/// Words of control data per received message: room for the size of joined datagrams.
const CONTROL_WORDS: usize = 8;

/// Buffers for several messages, and what the kernel needs to find them. Everything that the
/// headers point to lies on the heap or in a mapping, and so stays where it is.
struct Batch {
    buffer: AlignedBuffer,
    slot_bytes: usize,
    vectors: Vec<libc::iovec>,
    control: Vec<[u64; CONTROL_WORDS]>,
    headers: Vec<libc::mmsghdr>,
}

impl Batch {
    fn new(count: usize, slot_bytes: usize) -> io::Result<Self> {
        let count = count.max(1);
        let bytes = count.checked_mul(slot_bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut buffer = AlignedBuffer::new(bytes)?;
        let vectors: Vec<libc::iovec> = (0..count)
            .map(|index| {
                let slot = &mut buffer.as_mut_slice()[index * slot_bytes..][..slot_bytes];
                libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot_bytes }
            })
            .collect();
        let mut batch = Self {
            buffer,
            slot_bytes,
            vectors,
            control: vec![[0; CONTROL_WORDS]; count],
            headers: Vec::with_capacity(count),
        };
        for index in 0..count {
            // SAFETY: a zeroed mmsghdr is a valid value: no address, no vectors, no control data.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = &raw mut batch.vectors[index];
            header.msg_hdr.msg_iovlen = 1;
            batch.headers.push(header);
        }
        Ok(batch)
    }

    fn slot(&self, index: usize) -> &[u8] {
        &self.buffer.as_slice()[index * self.slot_bytes..][..self.slot_bytes]
    }
}

/// Messages to be sent.
pub struct Outgoing(Batch);

impl Outgoing {
    /// Room for `count` messages of up to `slot_bytes`.
    ///
    /// # Errors
    /// No memory.
    pub fn new(count: usize, slot_bytes: usize) -> io::Result<Self> {
        Batch::new(count, slot_bytes).map(Self)
    }

    /// The bytes of a message, to be filled. What is beyond its length is not sent.
    ///
    /// Panics: when there is no such message.
    pub fn slot_mut(&mut self, index: usize) -> &mut [u8] {
        let bytes = self.0.slot_bytes;
        &mut self.0.buffer.as_mut_slice()[index * bytes..][..bytes]
    }

    /// Sends the first `count` messages of `length_bytes` each over a connected socket, and returns
    /// how many the kernel took.
    ///
    /// # Errors
    /// Those of sendmmsg(2), where it took none.
    pub fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        count: usize,
        length_bytes: usize,
    ) -> io::Result<usize> {
        let count = count.min(self.0.headers.len());
        let length = length_bytes.min(self.0.slot_bytes);
        for vector in &mut self.0.vectors[..count] {
            vector.iov_len = length;
        }
        let (socket, headers) = (socket.as_raw_fd(), self.0.headers.as_mut_ptr());
        // SAFETY: the headers describe vectors and slots that `self` owns, each of them at least
        // `iov_len` long; `&mut self` keeps everybody else away.
        answered(unsafe { libc::sendmmsg(socket, headers, count as _, libc::MSG_NOSIGNAL) })
    }
}

/// Has the kernel cut what is sent over `socket` into datagrams of `bytes` (`UDP_SEGMENT`,
/// Linux 4.18).
///
/// # Errors
/// Those of setsockopt(2).
pub fn set_segment(socket: BorrowedFd<'_>, bytes: u16) -> io::Result<()> {
    option::set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes.into())
}

/// Messages received.
pub struct Incoming {
    batch: Batch,
    received: usize,
}

impl Incoming {
    /// Room for `count` messages of up to `slot_bytes`; longer ones are cut.
    ///
    /// # Errors
    /// No memory.
    pub fn new(count: usize, slot_bytes: usize) -> io::Result<Self> {
        Ok(Self { batch: Batch::new(count, slot_bytes)?, received: 0 })
    }

    /// Receives what is there, at most as many messages as there is room for, and waits for the first one
    /// as long as the socket's timeout says; returns how many.
    ///
    /// # Errors
    /// Those of recvmmsg(2): `WouldBlock` where nothing came.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.received = 0;
        let Batch { headers, control, .. } = &mut self.batch;
        for (header, control) in headers.iter_mut().zip(control.iter_mut()) {
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of_val(control) as _;
        }
        let flags = libc::MSG_WAITFORONE;
        let (socket, none) = (socket.as_raw_fd(), std::ptr::null_mut());
        let (headers, count) = (headers.as_mut_ptr(), headers.len() as libc::c_uint);
        // SAFETY: the headers describe vectors, slots and control words that `self` owns, each as
        // long as said; `&mut self` keeps everybody else away. There is no timeout to write back.
        let received = unsafe { libc::recvmmsg(socket, headers, count, flags, none) };
        self.received = answered(received)?;
        Ok(self.received)
    }

    /// A message of the last call: its bytes, and the length of the datagrams that it was joined
    /// of, where it was (the last may be shorter).
    ///
    /// Panics: when there is no such message.
    pub fn message(&self, index: usize) -> (&[u8], Option<usize>) {
        assert!(index < self.received, "the last call brought fewer messages");
        let header = &self.batch.headers[index];
        let length = (header.msg_len as usize).min(self.batch.slot_bytes);
        (&self.batch.slot(index)[..length], segment_of(&header.msg_hdr))
    }
}

/// The size that `UDP_GRO` tells in the control data.
fn segment_of(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel filled `message`, whose control data the batch owns. The data of this kind
    // is an integer.
    let size: libc::c_int = unsafe { control_data(message, &[(libc::SOL_UDP, libc::UDP_GRO)]) }?;
    usize::try_from(size).ok().filter(|&size| size > 0)
}

/// The first control data of one of these levels and types.
///
/// # Safety
///
/// The kernel must have filled `message`, whose control data must be alive, and have put a `T` there
/// for these levels and types.
pub(super) unsafe fn control_data<T>(
    message: &libc::msghdr,
    kinds: &[(libc::c_int, libc::c_int)],
) -> Option<T> {
    // SAFETY: the macros stay within the control data; what is there is a `T`, read unaligned.
    unsafe {
        let mut head = libc::CMSG_FIRSTHDR(message);
        while !head.is_null() {
            if kinds.contains(&((*head).cmsg_level, (*head).cmsg_type)) {
                return Some(libc::CMSG_DATA(head).cast::<T>().read_unaligned());
            }
            head = libc::CMSG_NXTHDR(message, head);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;
    use crate::socket::option::set_gro;

    fn pair() -> (UdpSocket, UdpSocket) {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        far.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (near, far)
    }

    #[test]
    fn messages_of_one_call_arrive_one_by_one() {
        let (near, far) = pair();
        let mut outgoing = Outgoing::new(5, 100).unwrap();
        (0..5).for_each(|index| outgoing.slot_mut(index).fill(index as u8 + 1));
        assert_eq!(outgoing.send(near.as_fd(), 5, 60).unwrap(), 5);
        let mut incoming = Incoming::new(8, 50).unwrap();
        assert_eq!(incoming.receive(far.as_fd()).unwrap(), 5);
        for index in 0..5 {
            let (bytes, segment) = incoming.message(index);
            assert_eq!((bytes, segment), (&[index as u8 + 1; 50][..], None), "cut to the room");
        }
        far.set_nonblocking(true).unwrap();
        let error = incoming.receive(far.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn segments_are_joined_where_that_was_asked_for() {
        let (near, far) = pair();
        set_segment(near.as_fd(), 100).unwrap();
        let mut outgoing = Outgoing::new(1, 1000).unwrap();
        outgoing.slot_mut(0).iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 100) as u8);
        let mut incoming = Incoming::new(16, 65_536).unwrap();
        outgoing.send(near.as_fd(), 1, 950).unwrap();
        assert_eq!(incoming.receive(far.as_fd()).unwrap(), 10, "cut into ten");
        assert_eq!(incoming.message(9), (&[9; 50][..], None));
        set_gro(far.as_fd()).unwrap();
        outgoing.send(near.as_fd(), 1, 950).unwrap();
        assert_eq!(incoming.receive(far.as_fd()).unwrap(), 1, "and joined again");
        let (bytes, segment) = incoming.message(0);
        assert_eq!((bytes.len(), bytes[949], segment), (950, 9, Some(100)));
    }
}
