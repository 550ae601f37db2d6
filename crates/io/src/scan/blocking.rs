//! The sync engine: one pread(2) per block.

use std::io::IoSliceMut;

use flatout_sys::view::ByteView;
use rustix::io::Errno;

use super::{Pass, Plan, request_length, truncated};
use crate::around::DONTCACHE;
use crate::error::Error;
use crate::operations::{Access, Completion, Request, perform};
use crate::source::Source;
use crate::stop::Stop;
use crate::tuning::Caching;

pub(super) fn run(
    source: &Source,
    buffer: &mut [u8],
    plan: &Plan,
    stop: &mut Stop,
    consumer: &mut impl FnMut(u64, ByteView<'_>),
) -> Result<Pass, Error> {
    let file = source.file();
    match source.caching() {
        Caching::Buffered | Caching::Direct => {
            run_with(source, buffer, plan, stop, consumer, |buffer, offset_bytes| {
                rustix::io::pread(file, buffer, offset_bytes)
            })
        }
        Caching::Dontcache => {
            run_with(source, buffer, plan, stop, consumer, |buffer, offset_bytes| {
                let mut buffers = [IoSliceMut::new(buffer)];
                rustix::io::preadv2(file, &mut buffers, offset_bytes, DONTCACHE)
            })
        }
    }
}

/// The loop over blocks: bursts of whole blocks with nothing in between but the read and the
/// consumer, and the slow way for whatever does not fit. After a system call the CPU has forgotten
/// most branches, so at 1 byte a block each one that is not here is worth a percent.
fn run_with(
    source: &Source,
    buffer: &mut [u8],
    plan: &Plan,
    stop: &mut Stop,
    consumer: &mut impl FnMut(u64, ByteView<'_>),
    read: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
) -> Result<Pass, Error> {
    let access = Access { caching: source.caching(), completion: Completion::Accepted };
    let mut pass = Pass::default();
    let blocks = plan.blocks();
    let (first, end, step) = plan.lane.blocks(blocks, plan.split);
    let whole = plan.block_bytes as usize;
    let whole_blocks = plan.end_bytes.saturating_sub(plan.start_bytes) / plan.block_bytes;
    let mut index = first;
    while index < end {
        let burst = end.min(whole_blocks).saturating_sub(index).div_ceil(step);
        let burst = burst.min(u64::from(stop.burst())) as u32;
        let mut offset = plan.start_bytes + index * plan.block_bytes;
        let mut done = 0;
        while done < burst {
            if read(&mut buffer[..whole], offset) != Ok(whole) {
                break;
            }
            consumer(offset, ByteView::of(&buffer[..whole]));
            offset += step * plan.block_bytes;
            done += 1;
        }
        pass.bytes += u64::from(done) * plan.block_bytes;
        pass.blocks += u64::from(done);
        index += u64::from(done) * step;
        if done < burst || burst == 0 {
            let (offset, length) = plan.block(index);
            let asked = request_length(source, plan, length);
            // Short reads and signals.
            let request = Request::read(offset, asked);
            let got = perform(source.file(), access, &request, &mut buffer[..asked], stop)
                .map_err(Error::system("read", source.path()))?
                .min(length);
            if got > 0 {
                consumer(offset, ByteView::of(&buffer[..got]));
                pass.add(got);
            }
            if got < length {
                if stop.is_cancelled() {
                    return Ok(Pass { stopped: true, ..pass });
                }
                return Err(truncated(source, plan));
            }
            index += step;
            done += 1;
        }
        if stop.passed(done) {
            pass.stopped = index < end;
            break;
        }
    }
    Ok(pass)
}
