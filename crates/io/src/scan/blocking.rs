//! The sync engine: one pread(2) per block.

use std::io::IoSliceMut;

use flatout_sys::view::ByteView;
use rustix::io::Errno;

use super::{Pass, Plan, request_length, truncated};
use crate::error::Error;
use crate::source::{DONTCACHE, Source};
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

/// The loop over blocks. Everything that does not change from block to block is settled before
/// it: at 1 byte a block, each nanosecond here is a third of a percent.
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
    let mut index = first;
    while index < end {
        let offset = plan.start_bytes + index * plan.block_bytes;
        let length = if index + 1 == blocks { plan.block(index).1 } else { whole };
        let asked = if length == whole { whole } else { request_length(source, plan, length) };
        let got = match read(&mut buffer[..asked], offset) {
            Ok(got) if got == whole => length,
            Ok(got) => read_rest(source, &mut buffer[..asked], offset, got, stop, &read)?,
            Err(Errno::INTR) => read_rest(source, &mut buffer[..asked], offset, 0, stop, &read)?,
            Err(errno) => return Err(Error::system("read", source.path())(errno)),
        };
        // More than there was when the file was opened: somebody extends it.
        let got = got.min(length);
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
        index = index.saturating_add(step);
        if stop.is_due() {
            pass.stopped = index < end;
            break;
        }
    }
    Ok(pass)
}

/// The rest of a block after a short read; returns what there is of it.
#[cold]
fn read_rest(
    source: &Source,
    buffer: &mut [u8],
    offset_bytes: u64,
    mut got: usize,
    stop: &Stop,
    read: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
) -> Result<usize, Error> {
    while got < buffer.len() && !stop.is_cancelled() {
        match read(&mut buffer[got..], offset_bytes + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(Errno::INTR) => {}
            // A direct read that stopped within a sector has met the end of the file.
            Err(Errno::INVAL) if source.caching() == Caching::Direct && got > 0 => break,
            Err(errno) => return Err(Error::system("read", source.path())(errno)),
        }
    }
    Ok(got)
}
