//! The stream kernels in plain Rust, for CPUs without a form of their own; and memcpy.
//!
//! The loops go through raw pointers, so that the compiler may make vectors of them, but an empty
//! piece of assembly after each pass stands for "somebody reads this": no pass can be dropped.

use std::arch::asm;

use super::{Body, Kernel, Run};

bodies!(and Memcpy = memcpy);

/// Makes the compiler believe that all memory is looked at here.
#[inline(always)]
fn seen() {
    // SAFETY: there is no instruction in it.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// Words of independent sums.
const LANES: usize = 8;

/// Contract: that of [`Body`].
unsafe fn read(run: &Run) {
    let mut sums = [0_u64; LANES];
    for _ in 0..run.passes {
        for offset in (0..run.length_bytes).step_by(8 * LANES) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the length is a multiple of 8 × LANES, so this word lies within it.
                let word = unsafe { run.first.add(offset).cast::<u64>().add(lane).read() };
                *sum = sum.wrapping_add(word);
            }
        }
        seen();
    }
    for (lane, sum) in sums.into_iter().enumerate() {
        // SAFETY: the caller gives room for 32 words.
        unsafe { run.sums.add(lane).write(sum) };
    }
}

/// Calls `$element` for the index of each element, pass by pass.
macro_rules! each {
    ($run:ident, $element:expr) => {
        for _ in 0..$run.passes {
            for index in 0..$run.length_bytes / 8 {
                $element(index);
            }
            seen();
        }
    };
}

/// Contract: that of [`Body`].
unsafe fn write(run: &Run) {
    let target = run.target.cast::<f64>();
    // SAFETY: the index lies within the length that the caller promises.
    each!(run, |index| unsafe { target.add(index).write(run.value) });
}

/// Contract: that of [`Body`].
unsafe fn copy(run: &Run) {
    let (target, first) = (run.target.cast::<f64>(), run.first.cast::<f64>());
    // SAFETY: as in `write`.
    each!(run, |index| unsafe { target.add(index).write(first.add(index).read()) });
}

/// Contract: that of [`Body`].
unsafe fn scale(run: &Run) {
    let (target, first) = (run.target.cast::<f64>(), run.first.cast::<f64>());
    // SAFETY: as in `write`.
    each!(run, |index| unsafe { target.add(index).write(run.value * first.add(index).read()) });
}

/// Contract: that of [`Body`].
unsafe fn add(run: &Run) {
    let (target, first) = (run.target.cast::<f64>(), run.first.cast::<f64>());
    let second = run.second.cast::<f64>();
    // SAFETY: as in `write`.
    each!(run, |index| unsafe {
        target.add(index).write(first.add(index).read() + second.add(index).read());
    });
}

/// Contract: that of [`Body`].
unsafe fn triad(run: &Run) {
    let (target, first) = (run.target.cast::<f64>(), run.first.cast::<f64>());
    let second = run.second.cast::<f64>();
    // SAFETY: as in `write`.
    each!(run, |index| unsafe {
        let product = run.value * second.add(index).read();
        target.add(index).write(first.add(index).read() + product);
    });
}

/// Contract: that of [`Body`].
unsafe fn memcpy(run: &Run) {
    for _ in 0..run.passes {
        // SAFETY: both ranges are valid for the length, and the target is the caller's alone, so
        // they do not overlap.
        unsafe { libc::memcpy(run.target.cast(), run.first.cast(), run.length_bytes) };
        seen();
    }
}
