//! The uring engine: several blocks in flight, consumed in the order of their arrival.

use std::collections::VecDeque;

use flatout_sys::ring::Ring;
use flatout_sys::view::ByteView;

use super::{Pass, Plan, request_length, truncated};
use crate::error::Error;
use crate::operations::{Access, After, Completion, Done, Request, Timestamps, Workload, run_ring};
use crate::source::Source;
use crate::stop::Stop;

/// Blocks that come before one which is late, in depths of the ring: consumers that need an order
/// keep what they learnt of each until its turn.
const MAX_LEAD: usize = 4;

/// The blocks of a lane.
struct Blocks<'a, C> {
    source: &'a Source,
    plan: &'a Plan,
    /// The next block, their end and the distance of two.
    next: u64,
    end: u64,
    step: u64,
    /// Whether they have arrived, from the first one on that has not; and its offset.
    arrived: VecDeque<bool>,
    oldest_bytes: u64,
    most_ahead: usize,
    /// Asked whether a block that came short was given up.
    stop: Stop,
    pass: Pass,
    failure: Option<Error>,
    consumer: &'a mut C,
}

pub(super) fn run<C: FnMut(u64, ByteView<'_>)>(
    source: &Source,
    ring: &mut Ring,
    plan: &Plan,
    stop: &mut Stop,
    consumer: &mut C,
) -> Result<Pass, Error> {
    let mut blocks = Blocks::new(source, plan, ring.depth(), stop, consumer);
    let access = Access { caching: source.caching(), completion: Completion::Accepted };
    run_ring(ring, access, &mut blocks, Timestamps::None, stop)
        .map_err(Error::system("read", source.path()))?;
    let Blocks { next, end, mut pass, failure, .. } = blocks;
    pass.stopped |= next < end;
    failure.map_or(Ok(pass), Err)
}

impl<'a, C> Blocks<'a, C> {
    fn new(
        source: &'a Source,
        plan: &'a Plan,
        depth: u32,
        stop: &Stop,
        consumer: &'a mut C,
    ) -> Self {
        let (next, end, step) = plan.lane.blocks(plan.blocks(), plan.split);
        Self {
            source,
            plan,
            next,
            end,
            step,
            arrived: VecDeque::new(),
            oldest_bytes: plan.start_bytes + next * plan.block_bytes,
            most_ahead: depth as usize * MAX_LEAD,
            stop: stop.clone(),
            pass: Pass::default(),
            failure: None,
            consumer,
        }
    }

    /// Takes down that the block at an offset is no longer on its way.
    fn arrive(&mut self, offset_bytes: u64) {
        let distance_bytes = self.step * self.plan.block_bytes;
        let position = (offset_bytes - self.oldest_bytes) / distance_bytes;
        self.arrived[position as usize] = true;
        while self.arrived.front() == Some(&true) {
            self.arrived.pop_front();
            self.oldest_bytes += distance_bytes;
        }
    }
}

impl<C: FnMut(u64, ByteView<'_>)> Workload for Blocks<'_, C> {
    fn next(&mut self) -> Option<Request> {
        if self.next >= self.end || self.arrived.len() >= self.most_ahead {
            return None;
        }
        let (offset, length) = self.plan.block(self.next);
        self.next = self.next.saturating_add(self.step);
        self.arrived.push_back(false);
        Some(Request::read(offset, request_length(self.source, self.plan, length)))
    }

    fn fill(&mut self, _: &Request, _: &mut [u8]) {}

    fn done(&mut self, done: Done<'_>) -> After {
        let offset = done.request.offset_bytes;
        self.arrive(offset);
        let length = self.plan.block_bytes.min(self.plan.end_bytes - offset) as usize;
        match done.result {
            Ok(got) if got >= length => {
                if self.failure.is_none() {
                    (self.consumer)(offset, ByteView::of(&done.bytes[..length]));
                    self.pass.add(length);
                }
                return After::Next;
            }
            Ok(_) if self.stop.is_cancelled() => self.pass.stopped = true,
            Ok(_) => self.failure = Some(truncated(self.source, self.plan)),
            Err(error) => {
                self.failure = Some(Error::system("read", self.source.path())(error));
            }
        }
        After::End
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::{Lane, Split};

    #[test]
    fn a_late_block_is_not_left_too_far_behind() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1; 10_000]).unwrap();
        let source = Source::open(file.path()).unwrap();
        let lane = Lane { index: 1, count: 2 };
        let split = Split::Interleaved;
        let plan = Plan { start_bytes: 500, end_bytes: 10_000, block_bytes: 100, split, lane };
        let mut seen = Vec::new();
        let mut consumer = |offset: u64, _: ByteView<'_>| seen.push(offset);
        let mut blocks = Blocks::new(&source, &plan, 2, &Stop::never(), &mut consumer);
        let arrive = |blocks: &mut Blocks<'_, _>, request: Request| {
            let bytes = &[1; 100][..];
            let (result, submitted_ns, completed_ns) = (Ok(bytes.len()), 0, 0);
            blocks.done(Done { request, result, submitted_ns, completed_ns, bytes })
        };
        let late = blocks.next().unwrap();
        let mut others = 0;
        while let Some(request) = blocks.next() {
            assert_eq!(arrive(&mut blocks, request), After::Next);
            others += 1;
        }
        assert_eq!(others, 2 * MAX_LEAD - 1);
        assert_eq!(arrive(&mut blocks, late), After::Next);
        while let Some(request) = blocks.next() {
            arrive(&mut blocks, request);
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq((600..10_000).step_by(200)));
    }
}
