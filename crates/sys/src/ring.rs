//! io_uring behind a safe face: the ring owns what the kernel may still touch.
//!
//! Callers hold slots, numbers of buffers that belong to the ring. A slot is either idle (its
//! bytes can be read and written) or in flight (they can't). Dropping the ring cancels what is
//! in flight and waits for it, so the kernel never writes into memory that was given back.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::{io, slice};

use io_uring::squeue::Flags;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use crate::attribute;
use crate::buffer::AlignedBuffer;
use crate::cause::cause_text;

/// Most requests that a ring of this room holds at once.
pub const MAX_DEPTH: u32 = 4096;

/// Direction of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// From the file.
    #[default]
    Read,
    /// To the file.
    Write,
}

/// What the kernel has to say about one request.
pub struct Completion {
    /// The slot whose request ended; it is idle again.
    pub slot: u32,
    /// Bytes moved, or what went wrong.
    pub result: io::Result<u32>,
}

/// One request: bytes between a slot and a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Move {
    /// Which way.
    pub direction: Direction,
    /// The slot.
    pub slot: u32,
    /// Which of the files that the ring holds, from 0 on.
    pub file: u32,
    /// Where in the file.
    pub offset_bytes: u64,
    /// Bytes of the slot that are left alone before the first one moved.
    pub skip_bytes: usize,
    /// How much.
    pub length_bytes: usize,
    /// Flags of preadv2(2) and pwritev2(2), 0 for none.
    pub flags: u32,
}

/// A ring, a buffer per slot, and the files that it holds.
///
/// It stays in the thread that made it: the kernel is told that one thread submits, and then
/// runs completions in that thread alone.
pub struct Ring {
    ring: IoUring,
    buffers: ManuallyDrop<AlignedBuffer>,
    slot_bytes: usize,
    in_flight: Vec<bool>,
    in_flight_count: u32,
    most_in_flight: u32,
    completed: VecDeque<(u32, i32)>,
    fixed_buffers: bool,
    borrowed: Vec<RawFd>,
    one_thread: PhantomData<*const ()>,
}

impl Ring {
    /// Makes a ring of `depth` slots of `slot_bytes` each for these files, which the kernel holds as long as
    /// there is the ring; without any, for those of [`Ring::with_files`].
    ///
    /// Errors: those of io_uring_setup(2): `EPERM` (sysctl or seccomp), `ENOSYS` (no such call),
    /// `ENOMEM`; of the buffer's mmap; and of the table of files.
    /// Cost: setup, two registrations, one mapping. Registered buffers count as locked memory;
    /// where that is refused, plain ones are used.
    pub fn new(files: &[BorrowedFd<'_>], depth: u32, slot_bytes: usize) -> io::Result<Self> {
        let depth = depth.clamp(1, MAX_DEPTH);
        let ring = set_up(depth)?;
        let total = slot_bytes.checked_mul(depth as usize);
        let mut buffers = AlignedBuffer::new(total.ok_or(io::ErrorKind::OutOfMemory)?)?;
        let vectors: Vec<libc::iovec> = buffers
            .as_mut_slice()
            .chunks_mut(slot_bytes.max(1))
            .take(depth as usize)
            .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() })
            .collect();
        // SAFETY: the vectors describe `buffers`, which this ring owns and drops after itself.
        let fixed_buffers = unsafe { ring.submitter().register_buffers(&vectors) }.is_ok();
        if !files.is_empty() {
            let files: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
            ring.submitter().register_files(&files)?;
        }
        Ok(Self {
            ring,
            buffers: ManuallyDrop::new(buffers),
            slot_bytes,
            in_flight: vec![false; depth as usize],
            in_flight_count: 0,
            most_in_flight: 0,
            completed: VecDeque::with_capacity(depth as usize),
            fixed_buffers,
            borrowed: Vec::new(),
            one_thread: PhantomData,
        })
    }

    /// Does work on these files instead of those that the ring was made for; what is in flight at its end is
    /// cancelled and waited for. They are not put into the kernel's table: before Linux 6.4 that lets go of
    /// them up to a second late, and until then nobody can start a program that was written.
    pub fn with_files<T>(
        &mut self,
        files: &[BorrowedFd<'_>],
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.borrowed = files.iter().map(AsRawFd::as_raw_fd).collect();
        let done = work(self);
        // What was never handed over would be when the descriptors mean other files.
        self.drain();
        self.borrowed.clear();
        done
    }

    /// Number of slots.
    pub fn depth(&self) -> u32 {
        self.in_flight.len() as u32
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Requests that the kernel has not answered yet.
    pub fn in_flight(&self) -> u32 {
        self.in_flight_count
    }

    /// Most requests that were handed over and not answered at one time.
    pub fn most_in_flight(&self) -> u32 {
        self.most_in_flight
    }

    /// Whether all requests in flight had ended when the last wait was over.
    pub fn is_all_ended(&self) -> bool {
        self.completed.len() == self.in_flight_count as usize
    }

    /// The bytes of an idle slot.
    ///
    /// Panics: when the slot is in flight.
    pub fn bytes(&self, slot: u32) -> &[u8] {
        assert!(!self.in_flight[slot as usize], "the kernel still owns this slot");
        // SAFETY: an idle slot is written by nobody while `self` is borrowed; only its own range
        // is referenced, since other slots may be in the kernel's hands.
        unsafe { slice::from_raw_parts(self.slot_start(slot), self.slot_bytes) }
    }

    /// The bytes of an idle slot, to be filled.
    ///
    /// Panics: when the slot is in flight.
    pub fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        assert!(!self.in_flight[slot as usize], "the kernel still owns this slot");
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.slot_start(slot), self.slot_bytes) }
    }

    fn slot_start(&self, slot: u32) -> *mut u8 {
        assert!(slot < self.depth());
        // SAFETY: slot < depth, and the buffer is depth × slot_bytes long.
        unsafe { self.buffers.start().add(slot as usize * self.slot_bytes) }
    }

    /// Queues a request between the slot and the file.
    ///
    /// Panics: when the slot is in flight or too short.
    pub fn queue(&mut self, request: Move) {
        let Move { slot, skip_bytes, length_bytes, offset_bytes, .. } = request;
        assert!(!self.in_flight[slot as usize], "the kernel still owns this slot");
        assert!(skip_bytes <= self.slot_bytes && length_bytes <= self.slot_bytes - skip_bytes);
        let length = u32::try_from(length_bytes).expect("slots are limited to 2^32 bytes");
        // SAFETY: skip_bytes ≤ slot_bytes, so the pointer stays inside the slot.
        let start = unsafe { self.slot_start(slot).add(skip_bytes) };
        let flags = request.flags as i32;
        let borrowed = self.borrowed.get(request.file as usize);
        // The number of a descriptor, or a place in the kernel's table.
        let file = Fd(borrowed.copied().unwrap_or(request.file as RawFd));
        let table = if borrowed.is_some() { Flags::empty() } else { Flags::FIXED_FILE };
        macro_rules! entry {
            ($new:expr) => {
                $new.offset(offset_bytes).rw_flags(flags).build()
            };
        }
        let index = slot as u16;
        let entry = match (request.direction, self.fixed_buffers) {
            (Direction::Read, true) => entry!(opcode::ReadFixed::new(file, start, length, index)),
            (Direction::Read, false) => entry!(opcode::Read::new(file, start, length)),
            (Direction::Write, true) => entry!(opcode::WriteFixed::new(file, start, length, index)),
            (Direction::Write, false) => entry!(opcode::Write::new(file, start, length)),
        };
        let entry = entry.user_data(u64::from(slot)).flags(table);
        // SAFETY: the buffer is the ring's own and stays mapped until the request has ended:
        // `in_flight` keeps callers away from it, and drop waits. The file is in the kernel's
        // table, or borrowed for longer than it takes (`with_files`).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has an entry for each slot");
        self.in_flight[slot as usize] = true;
        self.in_flight_count += 1;
    }

    /// Hands the queued requests to the kernel, and waits for nothing.
    ///
    /// Errors: as [`Ring::submit_and_wait`].
    pub fn submit(&mut self) -> io::Result<()> {
        self.most_in_flight = self.most_in_flight.max(self.in_flight_count);
        entered(self.ring.submit())
    }

    /// Hands the queued requests to the kernel and waits until at least `wanted` have ended.
    /// [`Ring::reap`] gives them out, and all others that had ended by then.
    ///
    /// Errors: those of io_uring_enter(2). `EINTR` is reported as success with fewer completions,
    /// so that the caller can look whether it should stop.
    pub fn submit_and_wait(&mut self, wanted: u32) -> io::Result<()> {
        self.most_in_flight = self.most_in_flight.max(self.in_flight_count);
        entered(self.ring.submit_and_wait(wanted.min(self.in_flight_count) as usize))?;
        self.collect();
        Ok(())
    }

    /// As [`Ring::submit_and_wait`] for one request, but waits no longer than `timeout_ns`.
    ///
    /// Errors: those of io_uring_enter(2); the end of the time is none. Needs Linux 5.11.
    pub fn submit_and_wait_for(&mut self, timeout_ns: u64) -> io::Result<()> {
        self.most_in_flight = self.most_in_flight.max(self.in_flight_count);
        let time = Timespec::new()
            .sec(timeout_ns / 1_000_000_000)
            .nsec((timeout_ns % 1_000_000_000) as u32);
        let arguments = SubmitArgs::new().timespec(&time);
        entered(self.ring.submitter().submit_with_args(1, &arguments))?;
        self.collect();
        Ok(())
    }

    fn collect(&mut self) {
        let queue = self.ring.completion();
        self.completed.extend(queue.filter_map(|entry: cqueue::Entry| {
            let slot = entry.user_data();
            (slot != CANCEL_TAG).then(|| (slot as u32, entry.result()))
        }));
    }

    /// The next request that had ended when the last wait was over, if any. Its slot is idle from
    /// now on.
    pub fn reap(&mut self) -> Option<Completion> {
        let (slot, result) = self.completed.pop_front()?;
        self.in_flight[slot as usize] = false;
        self.in_flight_count -= 1;
        Some(Completion { slot, result: answer(result) })
    }

    /// Cancels what is in flight and waits for it. False when the kernel refuses to wait, which it
    /// never does for a valid ring.
    fn drain(&mut self) -> bool {
        // One by one: before Linux 5.19 nothing cancels all of them at once.
        for slot in (0..self.depth()).filter(|&slot| self.in_flight[slot as usize]) {
            let cancel = opcode::AsyncCancel::new(u64::from(slot)).build().user_data(CANCEL_TAG);
            // SAFETY: the cancel request refers to no memory. A full queue (requests never handed
            // over) leaves the plain waiting below.
            let _ = unsafe { self.ring.submission().push(&cancel) };
        }
        while self.in_flight_count > 0 {
            if self.submit_and_wait(1).is_err() {
                return false;
            }
            while self.reap().is_some() {}
        }
        true
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let idle = self.in_flight_count == 0 || self.drain();
        if idle {
            // SAFETY: dropped once, here, and used by nobody afterwards. While requests are in
            // flight it is leaked instead: better than written to after it was given back.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

const CANCEL_TAG: u64 = u64::MAX;

/// What io_uring_enter(2) said: a signal, the end of the time and completions that must be reaped
/// before the kernel takes more (`EBUSY`) are no errors.
pub(crate) fn entered(answer: io::Result<usize>) -> io::Result<()> {
    match answer.as_ref().err().and_then(io::Error::raw_os_error) {
        Some(libc::EINTR | libc::ETIME | libc::EBUSY) => Ok(()),
        _ => answer.map(drop),
    }
}

/// The answer to a cancelled request.
const ECANCELED: i32 = -libc::ECANCELED;

/// What a request that we did not cancel was answered. The kernel cancels what needs a thread of its
/// own that it cannot start (`create_io_worker` of Linux 6.18).
fn answer(result: i32) -> io::Result<u32> {
    match result {
        0.. => Ok(result.unsigned_abs()),
        ECANCELED => Err(io::Error::other(
            "the kernel could not start a thread for the ring (ulimit -u, or pids.max of a control group)",
        )),
        _ => Err(io::Error::from_raw_os_error(-result)),
    }
}

/// Sets a ring up, with the newest of the flags that this kernel knows: one submitting thread and
/// deferred completions (6.1), or none.
pub(crate) fn set_up(depth: u32) -> io::Result<IoUring> {
    let newest = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(depth);
    if !newest.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL)) {
        return newest;
    }
    IoUring::new(depth)
}

/// Whether io_uring can be used here, and if not, why. Cost: one setup and close.
pub fn probe() -> Result<(), String> {
    set_up(1).map(drop).map_err(|error| refusal(&error))
}

/// Says in words why io_uring_setup(2) was refused.
pub fn refusal(error: &io::Error) -> String {
    let disabled = attribute::number(Path::new("/proc/sys/kernel"), "io_uring_disabled");
    match (error.raw_os_error(), disabled.unwrap_or(0)) {
        (Some(libc::ENOSYS), _) => "the kernel has no io_uring (ENOSYS)".to_owned(),
        (Some(libc::EPERM), disabled @ (1 | 2)) => {
            format!("the sysctl kernel.io_uring_disabled is {disabled} (EPERM)")
        }
        (Some(libc::EPERM), _) => "a seccomp or security policy denies it (EPERM)".to_owned(),
        (Some(libc::ENOMEM), _) => "there is no memory for the ring (ENOMEM)".to_owned(),
        _ => format!("io_uring_setup: {}", cause_text(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_request_for_which_the_kernel_has_no_thread_says_so() {
        assert_eq!(answer(7).unwrap(), 7);
        assert_eq!(answer(-libc::EIO).unwrap_err().raw_os_error(), Some(libc::EIO));
        assert!(answer(-libc::ECANCELED).unwrap_err().to_string().contains("ulimit -u"));
    }

    fn written(name: &str, bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("flatout-ring-{}-{name}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn requests_move_bytes_both_ways_and_slots_become_idle() {
        if let Err(why) = probe() {
            eprintln!("skipped: {why}");
            return;
        }
        let file = written("both", &[1; 8192]);
        let mut ring = Ring::new(&[file.as_fd()], 4, 4096).unwrap();
        ring.queue(Move { slot: 0, offset_bytes: 0, length_bytes: 4096, ..Move::default() });
        ring.queue(Move { slot: 1, offset_bytes: 4096, length_bytes: 4096, ..Move::default() });
        ring.submit_and_wait(2).unwrap();
        let mut seen = Vec::new();
        while let Some(done) = ring.reap() {
            assert_eq!(done.result.unwrap(), 4096);
            assert!(ring.bytes(done.slot).iter().all(|&byte| byte == 1));
            seen.push(done.slot);
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1]);
        ring.bytes_mut(2).fill(9);
        ring.queue(Move {
            direction: Direction::Write,
            slot: 2,
            offset_bytes: 8192,
            skip_bytes: 96,
            length_bytes: 4000,
            ..Move::default()
        });
        ring.submit_and_wait(1).unwrap();
        assert_eq!(ring.reap().unwrap().result.unwrap(), 4000);
        assert_eq!(file.metadata().unwrap().len(), 12_192);
    }

    #[test]
    fn dropping_a_ring_with_requests_in_flight_waits_for_them() {
        if let Err(why) = probe() {
            eprintln!("skipped: {why}");
            return;
        }
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let mut ring = Ring::new(&[reader.as_fd()], 2, 16).unwrap();
        ring.queue(Move { slot: 0, offset_bytes: u64::MAX, length_bytes: 16, ..Move::default() });
        ring.submit_and_wait(0).unwrap();
        assert_eq!(ring.in_flight(), 1);
        drop(ring);
    }

    #[test]
    fn files_are_taken_and_let_go_one_after_the_other() {
        if let Err(why) = probe() {
            eprintln!("skipped: {why}");
            return;
        }
        let files = [written("first", &[1; 100]), written("second", &[2; 100])];
        let mut ring = Ring::new(&[], 1, 16).unwrap();
        let read = |ring: &mut Ring| {
            ring.queue(Move { length_bytes: 16, ..Move::default() });
            ring.submit_and_wait(1).unwrap();
            ring.reap().unwrap().result.map(|_| ring.bytes(0)[15])
        };
        for (file, byte) in files.iter().zip([1, 2]) {
            assert_eq!(ring.with_files(&[file.as_fd()], read).unwrap(), byte);
        }
        assert_eq!(read(&mut ring).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!((ring.in_flight(), ring.most_in_flight()), (0, 1));
    }

    #[test]
    fn what_is_on_its_way_has_ended_when_the_files_are_given_back() {
        if let Err(why) = probe() {
            eprintln!("skipped: {why}");
            return;
        }
        let file = written("back", &[1; 16]);
        let mut ring = Ring::new(&[], 2, 16).unwrap();
        ring.with_files(&[file.as_fd()], |ring| {
            ring.queue(Move { length_bytes: 16, ..Move::default() });
            ring.submit().unwrap();
            ring.queue(Move { slot: 1, length_bytes: 16, ..Move::default() });
        });
        assert_eq!((ring.in_flight(), ring.bytes(0).len()), (0, 16));
    }

    fn ring_with_a_slot_in_flight(name: &str) -> Ring {
        if let Err(why) = probe() {
            eprintln!("skipped: {why}");
            panic!("the kernel still owns this slot");
        }
        let file = written(name, &[1; 16]);
        let mut ring = Ring::new(&[file.as_fd()], 1, 16).unwrap();
        ring.queue(Move { length_bytes: 16, ..Move::default() });
        ring
    }

    #[test]
    #[should_panic(expected = "the kernel still owns this slot")]
    fn a_slot_in_flight_cannot_be_touched() {
        ring_with_a_slot_in_flight("owned").bytes_mut(0);
    }

    #[test]
    #[should_panic(expected = "the kernel still owns this slot")]
    fn a_slot_in_flight_cannot_be_sent_again() {
        ring_with_a_slot_in_flight("sent").queue(Move { length_bytes: 16, ..Move::default() });
    }
}
