//! Several requests at a time, by io_uring: the loop that scans, transfers and measured operations
//! share.
//!
//! One turn: fill the idle slots, hand over what is queued, wait for an end, take in all that has
//! ended. A slot that becomes idle gets its next request before the next end is taken in: ends come
//! in clumps, and the device would have nothing to do while all of a clump are consumed.

use std::io;
use std::ops::ControlFlow;

use flatout_sys::clock::monotonic_ns;
use flatout_sys::ring::{Completion, Move, Ring};

use super::progress::Progress;
use super::{Access, After, Direction, Done, NAP_NS, Request, SPIN_NS, Timestamps, Workload};
use crate::stop::Stop;

/// Requests that are handed over at once. The device works on those it has while the next ones are
/// made ready; with all idle slots in one batch it would wait for us, and we then for it.
///
/// Random direct reads of 4 KiB at depth 64 on a virtual disk, 2 CPUs, 2026-11-22, against fio in
/// the same rounds: batches of 2, 4, 8, 16 and all (21 on average) reach 1.01, 1.04, 0.99, 0.97 and
/// 0.88 of its rate, at 0.75, 0.68, 0.68, 0.66 and 0.65 of its CPU time; the spread is ±0.07.
const BATCH_REQUESTS: usize = 4;
/// Bytes after which a batch ends, too: the scheduler merges large requests that touch, of one
/// batch, into ones so large that fewer of them keep the device busy.
///
/// Sequential direct reads of 1 MiB at depth 16, same machine and day, against fio on 2 MiB pages:
/// four in a batch reach 0.91 [0.90, 0.95] of its rate, one at a time 0.97 [0.91, 1.01]. 1 GiB
/// cold, consumed by BLAKE3 in blocks of 512 KiB at depth 8, handed over one by one between the
/// blocks and not after all that had ended: 1.33 [1.19, 1.54] times the rate.
const BATCH_BYTES: usize = 128 << 10;

/// A request in flight.
#[derive(Clone, Copy)]
struct Flight {
    request: Request,
    submitted_ns: u64,
    progress: Progress,
}

struct Run<'a> {
    ring: &'a mut Ring,
    access: Access,
    timestamps: Timestamps,
    flights: Vec<Option<Flight>>,
    idle: Vec<u32>,
    /// Slots whose requests the kernel has not got, and how long these are.
    queued: Vec<u32>,
    queued_bytes: usize,
    /// Whether all that was in flight had ended when its end was waited for.
    ends_at_once: bool,
    /// A request whose time has not come.
    waiting: Option<Request>,
    open: bool,
}

pub(crate) fn run(
    ring: &mut Ring,
    access: Access,
    workload: &mut impl Workload,
    timestamps: Timestamps,
    stop: &mut Stop,
) -> io::Result<()> {
    let mut run = Run {
        access,
        timestamps,
        flights: vec![None; ring.depth() as usize],
        // Taken from the end: the first slots first.
        idle: (0..ring.depth()).rev().collect(),
        queued: Vec::with_capacity(BATCH_REQUESTS),
        queued_bytes: 0,
        ends_at_once: false,
        waiting: None,
        open: !stop.is_cancelled(),
        ring,
    };
    loop {
        run.fill_idle(workload)?;
        if run.ring.in_flight() == 0 && run.waiting.is_none() {
            return Ok(());
        }
        run.wait(stop)?;
        run.ends_at_once = run.ring.is_all_ended();
        let completed_ns = timestamps.now();
        while let Some(completion) = run.ring.reap() {
            run.complete(completion, completed_ns, workload, stop)?;
        }
        if stop.is_cancelled() || (run.waiting.is_some() && stop.remaining_ns() == Some(0)) {
            run.open = false;
        }
        if !run.open {
            run.waiting = None;
        }
    }
}

impl Run<'_> {
    /// Gives idle slots requests, as long as there are some whose time has come.
    fn fill_idle(&mut self, workload: &mut impl Workload) -> io::Result<()> {
        while self.open && !self.idle.is_empty() {
            let Some(request) = self.waiting.take().or_else(|| workload.next()) else { break };
            if request.due_ns > 0 && request.due_ns > monotonic_ns() {
                self.waiting = Some(request);
                break;
            }
            let Some(slot) = self.idle.pop() else { break };
            if request.direction == Direction::Write {
                workload.fill(&request, &mut self.ring.bytes_mut(slot)[..request.length_bytes]);
            }
            self.begin(slot, request)?;
        }
        Ok(())
    }

    fn begin(&mut self, slot: u32, request: Request) -> io::Result<()> {
        self.flights[slot as usize] =
            Some(Flight { request, submitted_ns: 0, progress: Progress::default() });
        self.queue(slot, &request, 0);
        self.queued.push(slot);
        self.queued_bytes += request.length_bytes;
        let is_full = match self.ends_at_once {
            // The page cache answers at once: each call of the kernel less is time won. Batches of
            // four made a hot scan of 4 KiB blocks at depth 16 take 1.155 (1.135–1.217) of the time
            // (2 vCPUs of Zen 4, 2026-11-23).
            true => request.length_bytes >= BATCH_BYTES,
            false => self.queued.len() >= BATCH_REQUESTS || self.queued_bytes >= BATCH_BYTES,
        };
        if is_full {
            self.end_batch();
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Queues what is left of a request behind the bytes that were moved.
    fn queue(&mut self, slot: u32, request: &Request, moved_bytes: usize) {
        self.ring.queue(Move {
            direction: request.direction,
            slot,
            file: request.file,
            offset_bytes: request.offset_bytes + moved_bytes as u64,
            skip_bytes: moved_bytes,
            length_bytes: request.length_bytes - moved_bytes,
            flags: self.access.flags(request.direction).bits(),
        });
    }

    /// Begins a new batch; the requests of the one before are handed over now.
    fn end_batch(&mut self) {
        if self.timestamps == Timestamps::Each && !self.queued.is_empty() {
            let submitted_ns = monotonic_ns();
            for &slot in &self.queued {
                if let Some(flight) = &mut self.flights[slot as usize] {
                    flight.submitted_ns = submitted_ns;
                }
            }
        }
        self.queued.clear();
        self.queued_bytes = 0;
    }

    /// Hands the queued requests over and waits for an end, or until a request is due.
    fn wait(&mut self, stop: &Stop) -> io::Result<()> {
        self.end_batch();
        let Some(request) = self.waiting.filter(|_| !self.idle.is_empty()) else {
            return self.ring.submit_and_wait(1);
        };
        let left_ns = request.due_ns.saturating_sub(monotonic_ns());
        // The kernel wakes a sleeper late; the rest of the time is spent asking.
        let left_ns = left_ns.saturating_sub(SPIN_NS);
        let left_ns = left_ns.min(stop.remaining_ns().unwrap_or(u64::MAX)).min(NAP_NS);
        self.ring.submit_and_wait_for(left_ns)
    }

    /// Takes the kernel's answer to one request in.
    fn complete(
        &mut self,
        completion: Completion,
        completed_ns: u64,
        workload: &mut impl Workload,
        stop: &mut Stop,
    ) -> io::Result<()> {
        let slot = completion.slot;
        let flight = self.flights[slot as usize].as_mut();
        let flight = flight.expect("a completion belongs to a request in flight");
        let answer = completion.result.map(|more| more as usize);
        let step = flight.progress.take((&flight.request, self.access), answer, stop);
        let Flight { request, submitted_ns, progress } = *flight;
        let ControlFlow::Break(result) = step else {
            self.queue(slot, &request, progress.moved);
            return Ok(());
        };
        let bytes = &self.ring.bytes(slot)[..request.length_bytes];
        let after = workload.done(Done { request, result, submitted_ns, completed_ns, bytes });
        match after {
            After::Next => self.open &= !stop.is_due(),
            After::Then(request) => return self.begin(slot, request),
            After::End => self.open = false,
        }
        self.idle.push(slot);
        self.fill_idle(workload)
    }
}
