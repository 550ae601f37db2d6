//! The mmap engine: the file seen through windows, read by raw-pointer kernels.

use std::io;

use flatout_sys::mapping::{WINDOW_ALIGNMENT_BYTES, Window};
use flatout_sys::view::ByteView;

use super::{Pass, Plan, truncated};
use crate::error::Error;
use crate::source::Source;
use crate::stop::Stop;
use crate::tuning::Split;

/// Bytes mapped at a time per lane. Figure: 1 GiB hot, 2 threads, 2-vCPU Xeon, 2026-11-21: windows
/// of 256 KiB gave 12.9 GiB/s, 2 MiB 19.4, 16 MiB 20.1, 128 MiB 20.4; each window unmapped costs
/// a round of interrupts to the other CPUs, and mapped pages count as resident memory.
const WINDOW_BYTES: u64 = 16 << 20;

/// A window as large as any that a lane maps at a time.
///
/// Errors: the file cannot be mapped, or there is no room (`ulimit -v`).
pub(super) fn reserve(source: &Source, block_bytes: usize) -> io::Result<Window> {
    let page_bytes = rustix::param::page_size();
    let largest = (WINDOW_BYTES as usize).max(block_bytes + page_bytes);
    let length = usize::try_from(source.length_bytes()).unwrap_or(usize::MAX);
    Window::map(source.file(), 0, length.clamp(page_bytes, largest))
}

pub(super) fn run(
    source: &Source,
    plan: &Plan,
    stop: &mut Stop,
    consumer: &mut impl FnMut(u64, ByteView<'_>),
) -> Result<Pass, Error> {
    let mut pass = Pass::default();
    let (first, end, step) = plan.lane.blocks(plan.blocks(), plan.split);
    // A contiguous lane maps nothing beyond its own end.
    let reach = match plan.split {
        Split::Contiguous if first < end => {
            let (offset, length) = plan.block(end - 1);
            offset + length as u64
        }
        Split::Contiguous | Split::Interleaved => plan.end_bytes,
    };
    let mut window: Option<Window> = None;
    let mut index = first;
    while index < end {
        let (offset, length) = plan.block(index);
        if !window.as_ref().is_some_and(|window| window.covers(offset, length)) {
            finish(window.take(), source, plan)?;
            window = Some(open(source, offset, length, reach)?);
        }
        if let Some(window) = &window {
            consumer(offset, window.view(offset, length));
        }
        pass.add(length);
        index = index.saturating_add(step);
        if stop.is_due() {
            pass.stopped = index < end;
            break;
        }
    }
    finish(window, source, plan)?;
    // A file cut within its last page raises nothing: the kernel shows zeros there.
    if !pass.stopped && source.length_now_bytes()? < reach {
        return Err(truncated(source, plan));
    }
    Ok(pass)
}

/// Maps the window that starts with a block. It ends at a multiple of its alignment, so that all
/// windows but the first are aligned with the page cache's largest units.
fn open(source: &Source, offset: u64, length: usize, reach: u64) -> Result<Window, Error> {
    let start = offset - offset % rustix::param::page_size() as u64;
    let usual_end = (start + WINDOW_BYTES) / WINDOW_ALIGNMENT_BYTES * WINDOW_ALIGNMENT_BYTES;
    let end = usual_end.max(offset + length as u64).min(reach.max(offset + length as u64));
    Window::map(source.file(), start, (end - start) as usize)
        .map_err(Error::system("map", source.path()))
}

/// Looks whether all pages of the window were there while it was read.
fn finish(window: Option<Window>, source: &Source, plan: &Plan) -> Result<(), Error> {
    if !window.is_some_and(|window| window.was_cut_short()) {
        return Ok(());
    }
    if source.length_now_bytes()? < plan.end_bytes {
        return Err(truncated(source, plan));
    }
    // The length is right, so the page was there and could not be read: see mmap(2), SIGBUS.
    Err(Error::system("read the mapped", source.path())(rustix::io::Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::Lane;

    #[test]
    fn a_file_cut_within_its_last_page_is_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1; 20_000]).unwrap();
        let source = Source::open(file.path()).unwrap();
        let plan = Plan {
            start_bytes: 0,
            end_bytes: 20_000,
            block_bytes: 4096,
            split: Split::Contiguous,
            lane: Lane::ONLY,
        };
        let read = || run(&source, &plan, &mut Stop::never(), &mut |_, _| {});
        assert_eq!(read().unwrap().bytes, 20_000);
        file.as_file().set_len(18_000).unwrap();
        assert!(matches!(read(), Err(Error::Truncated { .. })));
    }
}
