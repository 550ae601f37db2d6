//! The sync engine: one pread(2) per block.

use std::io::IoSliceMut;

use flatout_sys::view::ByteView;
use rustix::io::Errno;

use super::{Pass, Plan, request_length, truncated};
use crate::around::DONTCACHE;
use crate::error::Error;
use crate::interruption::MAX_INTERRUPTIONS;
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
            let got = read_rest(source, &mut buffer[..asked], offset, stop, &read)?.min(length);
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

/// A block that did not come at once: short reads and signals. Returns what there is of it.
#[cold]
fn read_rest(
    source: &Source,
    buffer: &mut [u8],
    offset_bytes: u64,
    stop: &Stop,
    read: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
) -> Result<usize, Error> {
    let (mut got, mut interruptions) = (0, 0);
    while got < buffer.len() && !stop.is_cancelled() {
        match read(&mut buffer[got..], offset_bytes + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            // Not all at once: a signal that cancels interrupts, too.
            Err(Errno::INTR) if interruptions < MAX_INTERRUPTIONS => interruptions += 1,
            // A direct read that stopped within a sector has met the end of the file.
            Err(Errno::INVAL) if source.caching() == Caching::Direct && got > 0 => break,
            Err(errno) => return Err(Error::system("read", source.path())(errno)),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_server_that_is_always_interrupted_is_given_up() {
        let source = Source::open(Path::new("/proc/self/exe")).unwrap();
        let calls = std::cell::Cell::new(0);
        let read = |_: &mut [u8], _| {
            calls.set(calls.get() + 1);
            assert!(calls.get() < 10_000, "for ever");
            Err(Errno::INTR)
        };
        let answer = read_rest(&source, &mut [0; 4], 0, &Stop::never(), read);
        assert!(answer.unwrap_err().to_string().contains("Interrupted"));
    }
}
