//! Bulk over UDP: numbered datagrams, many per call, and the account of those that came.
//!
//! A datagram begins with 16 bytes: the number of the test, that of the flow, two bytes of zero,
//! and its own number, in network order.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use flatout_sys::monotonic_ns;
use flatout_sys::socket::datagrams::{Incoming, Outgoing, set_segment};
use flatout_sys::socket::{self, LONGEST_DATAGRAM_BYTES};

use super::bulk::Quota;
use super::{Counters, GRACE_NS, Test, WorkerEnd};
use crate::network::account::Ledger;
use crate::network::spec::{HEADER_BYTES, MAX_SEGMENTS, Spec};
use crate::network::token::{PROOF_BYTES, PROOF_MARK};

/// Datagrams per call. Above 32 the rate no longer rose: 16 0.97, 32 1, 64 1.00 of the rate at
/// 1460 bytes (2 vCPUs of Sapphire Rapids, loopback, 2026-11-22).
const BATCH: usize = 32;
/// Bytes of all datagrams of a call, so that large ones do not wait for one another.
const BATCH_BYTES: usize = 256 << 10;
const RECEIVED_BYTES: usize = 4 * BATCH_BYTES;
/// Receive buffer that is asked for; the kernel grants what `net.core.rmem_max` allows.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// How often a receiver who gets nothing looks whether it should end.
const LOOK: Duration = Duration::from_millis(5);
/// Messages that are taken after the sender has ended without the socket's being found empty: several times
/// what it holds. Whoever sends on means no good.
const MOST_AFTER: u64 = 1 << 17;
const HEADER: usize = HEADER_BYTES as usize;

/// How blocks become messages, and these datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    datagram_bytes: usize,
    /// Datagrams of a message: more than one where the kernel cuts.
    per_message: usize,
    messages: usize,
}

impl Cut {
    fn of(spec: &Spec) -> Self {
        let datagram_bytes = spec.datagram_bytes as usize;
        let block = (spec.block_bytes as usize).clamp(datagram_bytes, LONGEST_DATAGRAM_BYTES);
        let per_message = match spec.offload.cuts() {
            true => (block / datagram_bytes).clamp(1, MAX_SEGMENTS as usize),
            false => 1,
        };
        let message_bytes = datagram_bytes * per_message;
        let most = if spec.offload.cuts() { BATCH / 8 } else { BATCH };
        Self { datagram_bytes, per_message, messages: (BATCH_BYTES / message_bytes).clamp(1, most) }
    }

    fn message_bytes(&self) -> usize {
        self.datagram_bytes * self.per_message
    }
}

fn write_header(datagram: &mut [u8], spec: &Spec, flow: u16, number: u64) {
    datagram[..4].copy_from_slice(&spec.test.to_be_bytes());
    datagram[4..6].copy_from_slice(&flow.to_be_bytes());
    datagram[6..8].fill(0);
    datagram[8..HEADER].copy_from_slice(&number.to_be_bytes());
}

/// The number of a datagram of this flow; `None` of any other.
fn number_of(datagram: &[u8], spec: &Spec, flow: u16) -> Option<u64> {
    let (head, number) = datagram.get(..HEADER)?.split_last_chunk::<8>()?;
    let mut own = [0; HEADER];
    write_header(&mut own, spec, flow, 0);
    own.starts_with(head).then(|| u64::from_be_bytes(*number))
}

/// Sends until told to stop, or the bytes of the test are sent.
pub(super) fn send(
    test: &Test,
    socket: &UdpSocket,
    flow: u16,
    end: &mut WorkerEnd,
) -> io::Result<()> {
    let spec = &test.spec;
    let cut = Cut::of(spec);
    let to = socket.as_fd();
    if spec.offload.cuts() {
        set_segment(to, cut.datagram_bytes as u16)?;
    }
    let mut outgoing = Outgoing::new(cut.messages, cut.message_bytes())?;
    for index in 0..cut.messages {
        flatout_sys::generator::fill_random(outgoing.slot_mut(index), monotonic_ns(), 0);
    }
    if !test.wait() {
        return Ok(());
    }
    let result = send_all(test, to, flow, (&mut outgoing, cut), &mut end.report.account.sent);
    end.report.total_bytes = end.report.account.sent * cut.datagram_bytes as u64;
    result
}

fn send_all(
    test: &Test,
    to: BorrowedFd<'_>,
    flow: u16,
    (outgoing, cut): (&mut Outgoing, Cut),
    sent: &mut u64,
) -> io::Result<()> {
    let per_message = cut.per_message as u64;
    let mut quota = Quota::new(test);
    while !test.is_over() && quota.left() > 0 {
        let left = quota.left().div_ceil(cut.message_bytes() as u64);
        let mut count = cut.messages.min(usize::try_from(left).unwrap_or(usize::MAX));
        if quota.has_rate() {
            // One by one: a rate is not kept by bursts.
            count = 1;
            quota.pace(test);
        }
        for index in 0..count {
            let datagrams = outgoing.slot_mut(index).chunks_mut(cut.datagram_bytes);
            let first = *sent + index as u64 * per_message;
            for (number, datagram) in (first..).zip(datagrams) {
                write_header(datagram, &test.spec, flow, number);
            }
        }
        match outgoing.send(to, count, cut.message_bytes()) {
            Ok(messages) => {
                *sent += messages as u64 * per_message;
                quota.sent += (messages * cut.message_bytes()) as u64;
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Errors that say nothing about the next call: a full queue, a signal, or that the peer's socket
/// was away for a moment (the receiver's account tells if it stays away).
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused
    ) || error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}

/// How many messages are received at once, and how long each may be.
fn batch(spec: &Spec) -> (usize, usize) {
    let room = match spec.offload.joins() {
        true => 65_536,
        false => (spec.datagram_bytes as usize).max(PROOF_BYTES) + 1,
    };
    ((RECEIVED_BYTES / room).clamp(1, 2 * BATCH), room)
}

/// Receives until all that was sent has come, or does not come any more.
pub(super) fn receive(
    test: &Test,
    socket: &UdpSocket,
    (flow, counters): (u16, &Counters),
    end: &mut WorkerEnd,
) -> io::Result<()> {
    let spec = &test.spec;
    let from = socket.as_fd();
    if spec.offload.joins() {
        socket::set_gro(from)?;
    }
    end.report.buffer_bytes = socket::ask_receive_buffer(from, RECEIVE_BUFFER_BYTES)? as u64;
    socket.set_read_timeout(Some(LOOK))?;
    let drops_before = socket::drops(from)?;
    let per_packet = if spec.offload.joins() { MAX_SEGMENTS.into() } else { 1 };
    let (count, room) = batch(spec);
    let mut incoming = Incoming::new(count, room)?;
    let (mut ledger, mut received_bytes) = (Ledger::default(), 0);
    if !test.wait() {
        return Ok(());
    }
    let mut last_ns = 0;
    let mut empty_since_ns = None;
    let mut after = 0;
    loop {
        let received = incoming.receive(from);
        let is_closing = test.closing.load(Ordering::Acquire);
        match received {
            Ok(count) => {
                after += if is_closing { count as u64 } else { 0 };
                let messages = (0..count).map(|index| incoming.message(index));
                received_bytes +=
                    messages.map(|one| note(one, spec, flow, &mut ledger)).sum::<u64>();
                counters.bytes.store(received_bytes, Ordering::Relaxed);
                last_ns = test.elapsed_ns();
            }
            Err(error) if is_passing(&error) => {
                if is_closing {
                    // The sender has ended, and nothing is left in the socket.
                    ledger.begin_late();
                    empty_since_ns.get_or_insert_with(monotonic_ns);
                }
            }
            Err(error) => return Err(error),
        }
        if test.aborted.load(Ordering::Relaxed) {
            break;
        }
        let is_whole = is_closing && {
            // What the socket has dropped will not come, and need not be waited for.
            let drops = socket::drops(from)?.saturating_sub(drops_before);
            let known = ledger.unique().saturating_add(drops.saturating_mul(per_packet));
            known >= counters.expected.load(Ordering::Acquire)
                && (empty_since_ns.is_some() || drops == 0)
        };
        let grace_ns = GRACE_NS.max(spec.tail_ns.saturating_mul(2));
        let waited = empty_since_ns.is_some_and(|since| monotonic_ns() - since > grace_ns);
        if is_closing && (is_whole || waited || after > MOST_AFTER) {
            break;
        }
    }
    let sent = counters.expected.load(Ordering::Acquire);
    let drops = socket::drops(from)?.saturating_sub(drops_before);
    end.report.account = ledger.close(sent, drops, per_packet);
    end.report.total_bytes = received_bytes;
    end.report.worker_ns = last_ns.max(1);
    Ok(())
}

/// Takes note of a message, which may be several datagrams joined. Returns the bytes of new ones.
fn note(
    (message, segment): (&[u8], Option<usize>),
    spec: &Spec,
    flow: u16,
    ledger: &mut Ledger,
) -> u64 {
    let mut new_bytes = 0;
    for datagram in message.chunks(segment.unwrap_or(message.len()).max(1)) {
        let length = datagram.len();
        match number_of(datagram, spec, flow) {
            Some(number) if length == spec.datagram_bytes as usize => {
                new_bytes += if ledger.take(number) { length as u64 } else { 0 };
            }
            // A proof that was repeated once more than needed is on its way at the beginning.
            _ if length == PROOF_BYTES && datagram.starts_with(&PROOF_MARK.to_be_bytes()) => {}
            _ => ledger.take_foreign(),
        }
    }
    new_bytes
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;
    use crate::network::account::REMEMBERED;
    use crate::network::flow::End;
    use crate::network::spec::{Direction, MAX_DATAGRAM_BYTES, MAX_STREAMS, Offload, Protocol};

    fn spec(block_bytes: u32, datagram_bytes: u32, offload: Offload) -> Spec {
        Spec { block_bytes, datagram_bytes, offload, ..Spec::one_stream() }
    }

    #[test]
    fn blocks_are_cut_as_the_kernel_allows() {
        let plain = Cut::of(&spec(65_536, 65_507, Offload::Plain));
        assert_eq!((plain.per_message, plain.messages), (1, 4));
        let small = Cut::of(&spec(1460, 1460, Offload::Gro));
        assert_eq!((small.per_message, small.messages), (1, BATCH));
        let gso = Cut::of(&spec(65_536, 1472, Offload::Gso));
        assert_eq!((gso.per_message, gso.message_bytes()), (44, 44 * 1472));
        let tiny = Cut::of(&spec(65_536, 16, Offload::Both));
        assert_eq!(tiny.per_message, 64);
        let whole = Cut::of(&spec(1000, 1472, Offload::Gso));
        assert_eq!(whole.per_message, 1);
    }

    #[test]
    fn what_a_server_counts_for_its_memory_has_room_for_datagrams() {
        for offload in Offload::ALL {
            for bytes in [16, 64, 1460, 9000, MAX_DATAGRAM_BYTES] {
                let spec = Spec { protocol: Protocol::Udp, ..spec(bytes, bytes, offload) };
                let (count, room) = batch(&spec);
                let (cut, ledger_bytes) = (Cut::of(&spec), REMEMBERED / 8);
                let received_bytes = (count * room) as u64 + ledger_bytes;
                let sent_bytes = (cut.messages * cut.message_bytes()) as u64;
                assert!(received_bytes.max(sent_bytes) <= spec.buffer_bytes(), "{spec:?}");
                let most = Spec { streams: MAX_STREAMS, direction: Direction::Both, ..spec };
                assert_eq!(most.check(), Ok(()));
            }
        }
    }

    #[test]
    fn an_end_that_sends_on_after_its_last_word_is_not_waited_for() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let [near, far] = [any; 2].map(|any| UdpSocket::bind(any).unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        let spec = Spec { test: 7, protocol: Protocol::Udp, ..spec(100, 100, Offload::Plain) };
        let test = Test::new((End::Server, 0), spec);
        let counters = Counters::default();
        counters.expected.store(1, Ordering::Relaxed);
        test.closing.store(true, Ordering::Relaxed);
        test.begin();
        let is_over = AtomicBool::new(false);
        let account = thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let _room = near.send(&[0; 100]);
                    }
                });
            }
            let mut end = WorkerEnd::default();
            let received = receive(&test, &far, (0, &counters), &mut end);
            is_over.store(true, Ordering::Relaxed);
            received.map(|()| end.report.account).unwrap()
        });
        assert_eq!((account.sent, account.unique), (1, 0));
        assert!(account.foreign > 0, "{account:?}");
    }

    #[test]
    fn only_datagrams_of_the_flow_are_counted() {
        let spec = Spec { test: 7, ..spec(100, 100, Offload::Plain) };
        let (mut ledger, mut bytes) = (Ledger::default(), 0);
        let mut take = |message: &[u8], segment| {
            bytes += note((message, segment), &spec, 3, &mut ledger);
        };
        let mut joined = vec![0; 250];
        write_header(&mut joined, &spec, 3, 0);
        write_header(&mut joined[100..], &spec, 3, 1);
        write_header(&mut joined[200..], &spec, 3, 2);
        take(&joined, Some(100));
        let mut other = vec![0; 100];
        write_header(&mut other, &spec, 4, 9);
        take(&other, None);
        take(&[1, 2, 3], None);
        let account = ledger.close(3, 0, 1);
        assert_eq!((account.unique, account.foreign, account.lost), (2, 3, 1));
        assert_eq!(bytes, 200, "what is cut short does not count");
    }
}
