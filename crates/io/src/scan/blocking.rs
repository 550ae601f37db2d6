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
    let mut pass = Pass::default();
    let (first, end, step) = plan.lane.blocks(plan.blocks(), plan.split);
    let mut index = first;
    while index < end {
        let (offset, length) = plan.block(index);
        let asked = request_length(source, plan, length);
        let got = match read_once(source, &mut buffer[..asked], offset) {
            // More than there was when the file was opened: somebody extends it.
            Ok(got) if got >= length => length,
            Ok(got) => read_rest(source, &mut buffer[..asked], offset, got, stop)?.min(length),
            Err(Errno::INTR) => {
                read_rest(source, &mut buffer[..asked], offset, 0, stop)?.min(length)
            }
            Err(errno) => return Err(Error::system("read", source.path())(errno)),
        };
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

#[inline]
fn read_once(source: &Source, buffer: &mut [u8], offset_bytes: u64) -> Result<usize, Errno> {
    match source.caching() {
        Caching::Buffered | Caching::Direct => {
            rustix::io::pread(source.file(), buffer, offset_bytes)
        }
        Caching::Dontcache => {
            let mut buffers = [IoSliceMut::new(buffer)];
            rustix::io::preadv2(source.file(), &mut buffers, offset_bytes, DONTCACHE)
        }
    }
}

/// The rest of a block after a short read; returns what there is of it.
#[cold]
fn read_rest(
    source: &Source,
    buffer: &mut [u8],
    offset_bytes: u64,
    mut got: usize,
    stop: &Stop,
) -> Result<usize, Error> {
    while got < buffer.len() && !stop.is_cancelled() {
        match read_once(source, &mut buffer[got..], offset_bytes + got as u64) {
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
