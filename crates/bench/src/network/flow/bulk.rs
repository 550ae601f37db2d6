//! Bulk over TCP: four ways to send, two to receive. The kernel is asked for the next block as
//! soon as it has taken the last.

use std::fs::File;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use flatout_sys::socket::ring_send::RingSend;
use flatout_sys::socket::zero_copy::ZeroCopy;
use flatout_sys::{AlignedBuffer, clock, generator, socket};

use super::{Counters, Test, WorkerEnd};
use crate::counted;
use crate::network::channel::ChannelError;
use crate::network::spec::{Receiver, Sender};

/// Longest sleep of a sender that keeps a rate, so that it sees when it should end.
const PACE_NS: u64 = 5_000_000;

/// Sends until told to stop, or the bytes of the test are sent.
pub(super) fn send(test: &Test, stream: &TcpStream, end: &mut WorkerEnd) -> io::Result<()> {
    let spec = &test.spec;
    let block = random_block(spec.block_bytes as usize)?;
    let mut quota = Quota::new(test);
    let to = stream.as_fd();
    let sent = match spec.sender {
        Sender::Write => {
            send_blocks(test, &mut quota, |most| socket::send(to, &block.as_slice()[..most]))
        }
        Sender::SendFile => {
            let file = socket::memory_file(block.as_slice());
            let send = |file: &File, most| socket::send_file(to, file.as_fd(), 0, most);
            file.and_then(|file| send_blocks(test, &mut quota, |most| send(&file, most)))
        }
        Sender::ZeroCopy => send_by_zero_copy(test, to, block.as_slice(), (&mut quota, end)),
        Sender::RingSend => send_by_ring(test, to, block.as_slice(), &mut quota),
    };
    end.report.total_bytes = quota.sent;
    if spec.bytes > 0 && sent.is_ok() {
        // The receiver knows the end by this.
        stream.shutdown(Shutdown::Write)?;
    }
    match sent {
        // Whoever receives decides when a test by time is over; it also sees if that is too early.
        Err(error) if spec.bytes == 0 && is_gone(&error) => Ok(()),
        sent => sent,
    }
}

/// A connection that the peer has ended.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// What is sent: without pattern, so that no link can squeeze it.
pub fn random_block(bytes: usize) -> io::Result<AlignedBuffer> {
    let mut block = AlignedBuffer::new(bytes)?;
    generator::fill_random(block.as_mut_slice(), clock::monotonic_ns(), 0);
    Ok(block)
}

/// How much a stream may send yet, and how soon.
pub(super) struct Quota {
    pub(super) sent: u64,
    whole: u64,
    rate_bytes_per_s: u64,
}

impl Quota {
    pub(super) fn new(test: &Test) -> Self {
        let spec = &test.spec;
        let streams = u64::from(spec.streams.max(1));
        let share = spec.bytes.div_ceil(streams);
        let rate = if spec.load_streams > 0 { 0 } else { spec.rate_per_s };
        let whole = if spec.bytes == 0 { u64::MAX } else { share };
        Self { sent: 0, whole, rate_bytes_per_s: rate.div_ceil(streams) }
    }

    /// Bytes that are to be sent yet.
    pub(super) fn left(&self) -> u64 {
        self.whole.saturating_sub(self.sent)
    }

    /// Bytes of the next block; 0 at the end.
    fn next(&self, block_bytes: usize) -> usize {
        self.left().min(block_bytes as u64) as usize
    }

    /// Whether a rate is to be kept.
    pub(super) fn has_rate(&self) -> bool {
        self.rate_bytes_per_s > 0
    }

    /// Waits until the rate allows the next block.
    pub(super) fn pace(&self, test: &Test) {
        if !self.has_rate() {
            return;
        }
        let due = u128::from(self.sent) * 1_000_000_000 / u128::from(self.rate_bytes_per_s);
        pace_until(test, u64::try_from(due).unwrap_or(u64::MAX));
    }
}

/// Sleeps until so long after the beginning, or the end of the test.
pub(super) fn pace_until(test: &Test, due_ns: u64) {
    loop {
        let now_ns = test.elapsed_ns();
        if now_ns >= due_ns || test.is_over() {
            return;
        }
        let slice_ns = (due_ns - now_ns).min(PACE_NS);
        flatout_sys::thread::sleep(Duration::from_nanos(slice_ns));
    }
}

/// Sends block after block, partial ones completed first, with a call that takes a length.
fn send_blocks(
    test: &Test,
    quota: &mut Quota,
    mut send: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<()> {
    if !test.wait() {
        return Ok(());
    }
    let block_bytes = test.spec.block_bytes as usize;
    while !test.is_over() {
        quota.pace(test);
        match quota.next(block_bytes) {
            0 => break,
            length => match send(length) {
                Ok(sent) => quota.sent += sent as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            },
        }
    }
    Ok(())
}

fn send_by_zero_copy(
    test: &Test,
    to: BorrowedFd<'_>,
    block: &[u8],
    (quota, end): (&mut Quota, &mut WorkerEnd),
) -> io::Result<()> {
    let mut zero = ZeroCopy::new(to)?;
    let sent = send_blocks(test, quota, |most| zero.send(&block[..most]));
    let (calls, copied) = zero.account();
    end.report.calls = calls.into();
    end.report.copied = copied.into();
    sent
}

fn send_by_ring(
    test: &Test,
    to: BorrowedFd<'_>,
    block: &[u8],
    quota: &mut Quota,
) -> io::Result<()> {
    let mut ring = RingSend::new(to, block, &test.stop)?;
    if !test.wait() {
        return Ok(());
    }
    let mut queued = Quota { ..*quota };
    while !test.is_over() {
        queued.pace(test);
        match queued.next(test.spec.block_bytes as usize) {
            0 => break,
            length => {
                queued.sent += length as u64;
                quota.sent += ring.send(length)?;
            }
        }
    }
    if test.spec.bytes > 0 {
        quota.sent += ring.finish()?;
    }
    Ok(())
}

/// Receives until the end, counting.
pub(super) fn receive(
    test: &Test,
    stream: &TcpStream,
    counters: &Counters,
    end: &mut WorkerEnd,
) -> io::Result<()> {
    let spec = &test.spec;
    let mut buffer = AlignedBuffer::new(spec.block_bytes as usize)?;
    let from = stream.as_fd();
    if !test.wait() {
        return Ok(());
    }
    let mut total = 0_u64;
    let result = loop {
        let received = match spec.receiver {
            Receiver::Read => socket::receive(from, buffer.as_mut_slice()),
            Receiver::Discard => socket::discard(from, buffer.as_mut_slice()),
        };
        match received {
            Ok(0) => break Ok(()),
            Ok(length) => {
                total += length as u64;
                counters.bytes.store(total, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    end.report.total_bytes = total;
    end.report.buffer_bytes = socket::buffers(from).map_or(0, |(_, receive)| receive as u64);
    let due_ns = spec.warm_ns.saturating_add(spec.window_ns);
    let is_early = match spec.bytes {
        0 => test.elapsed_ns() < due_ns,
        bytes => total < bytes.div_ceil(spec.streams.max(1).into()),
    };
    if is_early && !test.aborted.load(Ordering::Relaxed) {
        let text =
            format!("the other end closed a data connection after {}", counted(total, "byte"));
        end.failure = Some(ChannelError::Failed(text));
    }
    match result {
        Err(error) if is_gone(&error) => Ok(()),
        result => result,
    }
}
