//! A ring for copying: each slot reads from one file and writes what it got to another, as a pair
//! of linked requests of which the kernel begins the second when the first is complete.
//!
//! A read that fails or comes short cancels its write; the caller is told both answers and decides.
//! As with [`crate::ring`], the ring owns the memory that the kernel may still touch, and drop
//! waits for it. It stays in the thread that made it.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};

use io_uring::types::{Fd, Fixed};
use io_uring::{IoUring, opcode, squeue};

use crate::buffer::AlignedBuffer;
use crate::ring::set_up;

/// Most slots of such a ring.
pub const MAX_PAIRS: u32 = 1024;

/// Where the source and the target stand in the kernel's table.
const SOURCE: u32 = 0;
const TARGET: u32 = 1;

/// Marks the answer to a write; the rest of the tag is the slot.
const WRITE_TAG: u64 = 1 << 32;

/// A block on its way from the source to the same place of the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Block {
    /// The slot that carries it.
    pub slot: u32,
    /// Where it lies in both files.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: usize,
}

/// What became of a pair, or of a write alone.
#[derive(Debug)]
pub struct PairEnd {
    /// The slot, idle again.
    pub slot: u32,
    /// Bytes read; `None` where only a write was asked for.
    pub read: Option<io::Result<u32>>,
    /// Bytes written. After a read that failed or came short: `ECANCELED`.
    pub written: io::Result<u32>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// Answers that have not come.
    waiting: u32,
    read: Option<i32>,
    written: i32,
}

/// Two files, a ring, and a buffer per slot.
pub struct PairRing {
    ring: IoUring,
    buffers: ManuallyDrop<AlignedBuffer>,
    slot_bytes: usize,
    slots: Vec<Slot>,
    waiting: u32,
    most_waiting: u32,
    ended: VecDeque<u32>,
    /// Descriptors of our own, where the kernel's table cannot be had.
    files: [RawFd; 2],
    fixed_files: bool,
    fixed_buffers: bool,
    one_thread: PhantomData<*const ()>,
}

impl PairRing {
    /// Makes a ring of `depth` slots of `slot_bytes` each, without files yet.
    ///
    /// Errors: those of io_uring_setup(2) and of the buffer's mmap.
    /// Cost: setup, two registrations, one mapping. Registered buffers count as locked memory;
    /// where that is refused, plain ones are used.
    pub fn new(depth: u32, slot_bytes: usize) -> io::Result<Self> {
        let depth = depth.clamp(1, MAX_PAIRS);
        let ring = set_up(2 * depth)?;
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
        let fixed_files = ring.submitter().register_files(&[-1, -1]).is_ok();
        Ok(Self {
            ring,
            buffers: ManuallyDrop::new(buffers),
            slot_bytes,
            slots: vec![Slot::default(); depth as usize],
            waiting: 0,
            most_waiting: 0,
            ended: VecDeque::with_capacity(depth as usize),
            files: [-1, -1],
            fixed_files,
            fixed_buffers,
            one_thread: PhantomData,
        })
    }

    /// Number of slots.
    pub fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Bytes that a slot carries.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Requests that the kernel has not answered yet: two for each pair.
    pub fn in_flight(&self) -> u32 {
        self.waiting
    }

    /// Most requests that were handed over and not answered at one time.
    pub fn most_in_flight(&self) -> u32 {
        self.most_waiting
    }

    /// Takes two files, which stay open until [`PairRing::release`], the next two, or drop.
    ///
    /// Panics: while requests are in flight.
    pub fn hold(&mut self, source: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
        assert_eq!(self.waiting, 0, "the files of requests in flight stay");
        self.release()?;
        if self.fixed_files {
            let files = [source.as_raw_fd(), target.as_raw_fd()];
            return self.ring.submitter().register_files_update(SOURCE, &files).map(drop);
        }
        let copy = |file| rustix::io::fcntl_dupfd_cloexec(file, 3);
        let (source, target) = (copy(source)?, copy(target)?);
        self.files = [source.into_raw_fd(), target.into_raw_fd()];
        Ok(())
    }

    /// Lets go of the files, so that nobody finds the target open for writing.
    ///
    /// Panics: while requests are in flight.
    pub fn release(&mut self) -> io::Result<()> {
        assert_eq!(self.waiting, 0, "the files of requests in flight stay");
        if self.fixed_files {
            return self.ring.submitter().register_files_update(SOURCE, &[-1, -1]).map(drop);
        }
        for file in std::mem::replace(&mut self.files, [-1, -1]) {
            if file >= 0 {
                // SAFETY: the descriptor is a copy of the ring's own, and is forgotten here.
                unsafe { libc::close(file) };
            }
        }
        Ok(())
    }

    /// Queues a pair: reads what is missing behind the first `have_bytes` of the block, then writes
    /// the whole block.
    ///
    /// Panics: when the slot is in flight or too short, or nothing is missing.
    pub fn send(&mut self, block: Block, have_bytes: usize) {
        assert!(have_bytes < block.length_bytes, "nothing is missing of the block");
        let start = self.claim(block);
        // SAFETY: have_bytes < length ≤ slot_bytes, so the pointer stays inside the slot.
        let behind = unsafe { start.add(have_bytes) };
        let missing = (block.length_bytes - have_bytes) as u32;
        let offset = block.offset_bytes + have_bytes as u64;
        let index = block.slot as u16;
        let read = match (self.fixed_files, self.fixed_buffers) {
            (true, true) => {
                opcode::ReadFixed::new(Fixed(SOURCE), behind, missing, index).offset(offset).build()
            }
            (false, true) => opcode::ReadFixed::new(Fd(self.files[0]), behind, missing, index)
                .offset(offset)
                .build(),
            (true, false) => {
                opcode::Read::new(Fixed(SOURCE), behind, missing).offset(offset).build()
            }
            (false, false) => {
                opcode::Read::new(Fd(self.files[0]), behind, missing).offset(offset).build()
            }
        };
        let read = read.flags(squeue::Flags::IO_LINK).user_data(u64::from(block.slot));
        let write = self.write_entry(block, start, 0);
        self.queue(block.slot, &[read, write]);
        self.slots[block.slot as usize].read = Some(0);
    }

    /// Queues a write alone: what of the block lies behind its first `skip_bytes`, which were
    /// written before.
    ///
    /// Panics: when the slot is in flight or too short, or nothing is left.
    pub fn send_write(&mut self, block: Block, skip_bytes: usize) {
        assert!(skip_bytes < block.length_bytes, "nothing is left of the block");
        let start = self.claim(block);
        let write = self.write_entry(block, start, skip_bytes);
        self.queue(block.slot, &[write]);
    }

    fn write_entry(&self, block: Block, start: *mut u8, skip_bytes: usize) -> squeue::Entry {
        // SAFETY: the callers assert skip_bytes < length ≤ slot_bytes.
        let start = unsafe { start.add(skip_bytes) }.cast_const();
        let length = (block.length_bytes - skip_bytes) as u32;
        let offset = block.offset_bytes + skip_bytes as u64;
        let index = block.slot as u16;
        let entry = match (self.fixed_files, self.fixed_buffers) {
            (true, true) => {
                opcode::WriteFixed::new(Fixed(TARGET), start, length, index).offset(offset).build()
            }
            (false, true) => opcode::WriteFixed::new(Fd(self.files[1]), start, length, index)
                .offset(offset)
                .build(),
            (true, false) => {
                opcode::Write::new(Fixed(TARGET), start, length).offset(offset).build()
            }
            (false, false) => {
                opcode::Write::new(Fd(self.files[1]), start, length).offset(offset).build()
            }
        };
        entry.user_data(u64::from(block.slot) | WRITE_TAG)
    }

    /// The first byte of an idle slot that is long enough for the block.
    fn claim(&self, block: Block) -> *mut u8 {
        let slot = &self.slots[block.slot as usize];
        assert_eq!(slot.waiting, 0, "the kernel still owns this slot");
        assert!(block.length_bytes <= self.slot_bytes && u32::try_from(self.slot_bytes).is_ok());
        // SAFETY: the slot exists, and the buffer is depth × slot_bytes long.
        unsafe { self.buffers.start().add(block.slot as usize * self.slot_bytes) }
    }

    fn queue(&mut self, slot: u32, entries: &[squeue::Entry]) {
        // SAFETY: the buffer is the ring's own and stays mapped until the requests have ended: no
        // slot in flight is claimed again, and drop waits. The files are in the kernel's table, or
        // descriptors that the ring closes when nothing is in flight.
        let pushed = unsafe { self.ring.submission().push_multiple(entries) };
        pushed.expect("the queue has two entries for each slot");
        let count = entries.len() as u32;
        self.slots[slot as usize] = Slot { waiting: count, ..Slot::default() };
        self.waiting += count;
    }

    /// Hands the queued requests to the kernel and waits until at least `wanted` have been answered.
    ///
    /// Errors: those of io_uring_enter(2). `EINTR` is reported as success with fewer answers.
    pub fn submit_and_wait(&mut self, wanted: u32) -> io::Result<()> {
        self.most_waiting = self.most_waiting.max(self.waiting);
        match self.ring.submit_and_wait(wanted.min(self.waiting) as usize) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            // Answers must be reaped before the kernel takes more.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next slot of which all answers have come, if any. It is idle from now on.
    pub fn reap(&mut self) -> Option<PairEnd> {
        for entry in self.ring.completion() {
            let tag = entry.user_data();
            let index = (tag & (WRITE_TAG - 1)) as usize;
            let slot = &mut self.slots[index];
            if tag & WRITE_TAG == 0 {
                slot.read = Some(entry.result());
            } else {
                slot.written = entry.result();
            }
            slot.waiting -= 1;
            self.waiting -= 1;
            if slot.waiting == 0 {
                self.ended.push_back(index as u32);
            }
        }
        let index = self.ended.pop_front()?;
        let slot = &self.slots[index as usize];
        let answer = |result: i32| match result {
            0.. => Ok(result as u32),
            _ => Err(io::Error::from_raw_os_error(-result)),
        };
        Some(PairEnd { slot: index, read: slot.read.map(answer), written: answer(slot.written) })
    }

    /// Waits for what is in flight. False when the kernel refuses to wait.
    fn drain(&mut self) -> bool {
        while self.waiting > 0 {
            if self.submit_and_wait(1).is_err() {
                return false;
            }
            while self.reap().is_some() {}
        }
        true
    }
}

impl Drop for PairRing {
    fn drop(&mut self) {
        if !self.drain() {
            // The buffers are leaked: better than written to after they were given back.
            return;
        }
        if !self.fixed_files {
            for file in self.files.into_iter().filter(|&file| file >= 0) {
                // SAFETY: the descriptors are copies of the ring's own.
                unsafe { libc::close(file) };
            }
        }
        // SAFETY: dropped once, here, and used by nobody afterwards: nothing is in flight.
        unsafe { ManuallyDrop::drop(&mut self.buffers) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    fn run(ring: &mut PairRing) -> PairEnd {
        loop {
            ring.submit_and_wait(1).unwrap();
            if let Some(end) = ring.reap() {
                return end;
            }
        }
    }

    fn files(bytes: &[u8]) -> (File, File) {
        let (source, target) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        source.write_all_at(bytes, 0).unwrap();
        (source, target)
    }

    #[test]
    fn a_short_read_cancels_its_write_and_the_rest_can_be_sent_again() {
        let Ok(mut ring) = PairRing::new(2, 4096) else {
            eprintln!("skipped: io_uring is denied here");
            return;
        };
        let (source, target) = files(&[7; 5000]);
        ring.hold(source.as_fd(), target.as_fd()).unwrap();
        ring.send(Block { slot: 0, offset_bytes: 0, length_bytes: 4096 }, 0);
        let end = run(&mut ring);
        assert_eq!((end.read.unwrap().unwrap(), end.written.unwrap()), (4096, 4096));

        let block = Block { slot: 1, offset_bytes: 4096, length_bytes: 4096 };
        ring.send(block, 0);
        let end = run(&mut ring);
        assert_eq!(end.read.unwrap().unwrap(), 904);
        assert_eq!(end.written.unwrap_err().raw_os_error(), Some(libc::ECANCELED));
        assert_eq!(target.metadata().unwrap().len(), 4096, "the write was not made");

        ring.send_write(Block { length_bytes: 904, ..block }, 0);
        let end = run(&mut ring);
        assert!(end.read.is_none());
        assert_eq!(end.written.unwrap(), 904);
        let mut copy = vec![0; 5000];
        target.read_exact_at(&mut copy, 0).unwrap();
        assert!(copy.iter().all(|&byte| byte == 7));
        ring.release().unwrap();
        assert_eq!(ring.in_flight(), 0);
    }

    #[test]
    fn a_read_that_fails_writes_nothing() {
        let Ok(mut ring) = PairRing::new(1, 4096) else {
            eprintln!("skipped: io_uring is denied here");
            return;
        };
        let folder = File::open("/").unwrap();
        let (_, target) = files(&[]);
        ring.hold(folder.as_fd(), target.as_fd()).unwrap();
        ring.send(Block { slot: 0, offset_bytes: 0, length_bytes: 4096 }, 0);
        let end = run(&mut ring);
        assert!(end.read.unwrap().is_err());
        assert_eq!(end.written.unwrap_err().raw_os_error(), Some(libc::ECANCELED));
        assert_eq!(target.metadata().unwrap().len(), 0);
    }

    #[test]
    #[should_panic(expected = "the kernel still owns this slot")]
    fn a_slot_in_flight_cannot_be_sent_again() {
        let Ok(mut ring) = PairRing::new(1, 16) else {
            panic!("the kernel still owns this slot (io_uring is denied here)");
        };
        let (source, target) = files(&[1; 16]);
        ring.hold(source.as_fd(), target.as_fd()).unwrap();
        let block = Block { slot: 0, offset_bytes: 0, length_bytes: 16 };
        ring.send(block, 0);
        ring.send(block, 0);
    }
}
