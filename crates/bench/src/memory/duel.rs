//! One of the four kernels of STREAM, timed again and again in one process: ours in the form that is
//! the fastest here, or the loop as a compiler makes it. What `versus` races.
//!
//! Source: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance
//! Computers", 1995: the figure is the best repetition, the bytes are those of the arrays.

use flatout_measure::{TrialError, statistics};
use flatout_sys::CancelToken;
use flatout_sys::stream::{GRANULE_BYTES, Kernel, Level, Stream};

use super::row::part;
use super::test_memory::{Extents, Parts, TestMemory};
use super::trial::{self, StreamTest, Way};
use crate::compute::{Figure, Job};

/// Times `job`, in bytes per second; each repetition has another factor and is checked.
///
/// Errors: one line.
pub(crate) fn run(kernel: Kernel, job: &Job) -> Result<Figure, TrialError> {
    let stream = match job.plain {
        true => Stream::new(kernel, Level::Portable),
        false => Stream::best(kernel).map(Stream::far),
    };
    let lacks = || TrialError::Failed("this CPU has no such kernel".to_owned());
    let stream = stream.ok_or_else(lacks)?;
    let share_bytes = part(job.order * size_of::<f64>() as u64, job.threads);
    let parts = Parts {
        threads: job.threads,
        share_bytes: share_bytes.max(GRANULE_BYTES as u64),
        sources: 1 + u64::from(kernel.uses().second),
    };
    let memory = TestMemory::new(Extents::of(parts), job.threads, job.seed, CancelToken::manual())?;
    let test = StreamTest { stream, way: Way::Once };
    let test = if job.plain { test } else { test.fastest(&memory, parts) };
    let (mut seed, mut bytes) = (job.seed, 0.0);
    let times = job.repeat(|| {
        seed = seed.wrapping_add(1);
        let sample = trial::run(&memory, &test, parts, seed)?;
        bytes = sample.amount;
        Ok(sample.elapsed_ns)
    })?;
    let rates: Vec<f64> = times.iter().map(|&ns| bytes / ns as f64 * 1e9).collect();
    let by = match job.plain {
        true => "the loops of STREAM, compiled for any CPU of the architecture".to_owned(),
        false => format!("flatout, {}, {}", test.stream.level().name(), test.stream.reach().name()),
    };
    let figure = statistics::max(&rates).unwrap_or_default();
    Ok(Figure { figure, repetitions: rates.len(), by, normalised_residual: None })
}
