//! One of the four kernels of STREAM over arrays of its own: ours in the form that is the fastest
//! here, or the loop as a compiler makes it.
//!
//! Source: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance
//! Computers", 1995: the figure is the best repetition, the bytes are those of the arrays.

use std::sync::Mutex;

use flatout_io::cause_text;
use flatout_measure::statistics;
use flatout_sys::stream::arena::Arena;
use flatout_sys::stream::{Arrays, GRANULE_ELEMENTS, Kernel, Level, Stream};

use super::{Figure, Job};
use crate::stream_form::{self, Ground};
use crate::workers::{self, lock};

/// What the second operand is multiplied by; what the arrays hold beforehand.
const FACTOR: f64 = 3.0;
const VALUES: [f64; 3] = [0.0, 1.0, 2.0];

/// One thread's part of the arrays: target, first and second source.
type Part = Mutex<[Arena; 3]>;

pub(super) fn run(kernel: Kernel, job: &Job) -> Result<Figure, String> {
    let stream = match job.plain {
        true => Stream::new(kernel, Level::Portable),
        false => Stream::best(kernel).map(Stream::far),
    };
    let mut stream = stream.ok_or("this CPU has no such kernel")?;
    let granules = job.order as usize / GRANULE_ELEMENTS / job.threads as usize;
    let own = granules.max(1) * GRANULE_ELEMENTS;
    let arena = || Arena::new(own * size_of::<f64>());
    let part = |_| -> std::io::Result<Part> { Ok(Mutex::new([arena()?, arena()?, arena()?])) };
    let parts: Result<Vec<Part>, std::io::Error> = (0..job.threads).map(part).collect();
    let parts =
        parts.map_err(|error| format!("no memory for the arrays: {}", cause_text(&error)))?;
    let held = |part: usize| lock(&parts[part]);
    let each = |work: &(dyn Fn(&mut Arrays<'_>) -> Vec<u64> + Sync)| {
        let work = |index| work(&mut arrays(&mut held(index as usize), own));
        workers::each(job.threads, work).map_err(|error| error.to_string())
    };
    // Each thread touches its part first, which puts it on its memory node.
    let touched = workers::each(job.threads, |index| {
        for (arena, value) in held(index as usize).iter_mut().zip(VALUES) {
            arena.as_mut_slice()[..own].fill(value);
        }
    });
    touched.map_err(|error| error.to_string())?;
    if !job.plain {
        let forms = stream_form::forms(stream);
        let ground = Ground::Slices { threads: job.threads };
        let (times, _) = each(&|arrays| stream_form::race(&forms, arrays, ground))?;
        stream = stream_form::fastest(&forms, &times).unwrap_or(stream);
    }
    let once = |arrays: &mut Arrays<'_>| {
        stream.run(arrays, FACTOR, 1);
        Vec::new()
    };
    let times = job.repeat(|| each(&once).map(|(_, elapsed_ns)| elapsed_ns))?;
    let expected = match kernel {
        Kernel::Copy => VALUES[1],
        Kernel::Scale => FACTOR * VALUES[1],
        Kernel::Add => VALUES[1] + VALUES[2],
        _ => VALUES[1] + FACTOR * VALUES[2],
    };
    let is_wrong = |part| held(part)[0].as_slice()[..own].iter().any(|&is| is != expected);
    if (0..parts.len()).any(is_wrong) {
        return Err(format!("the result is wrong: not every element is {expected}"));
    }
    let uses = kernel.uses();
    let used = [uses.target, uses.first, uses.second].into_iter().filter(|&used| used).count();
    let bytes = (used * own * size_of::<f64>() * job.threads as usize) as f64;
    let rates: Vec<f64> = times.iter().map(|&ns| bytes / ns as f64 * 1e9).collect();
    let by = match job.plain {
        true => "the loops of STREAM, compiled for any CPU of the architecture".to_owned(),
        false => format!("flatout, {}, {}", stream.level().name(), stream.reach().name()),
    };
    let figure = statistics::max(&rates).unwrap_or_default();
    Ok(Figure { figure, repetitions: rates.len(), by, normalised_residual: None })
}

/// The first `own` elements of a part.
fn arrays([target, first, second]: &mut [Arena; 3], own: usize) -> Arrays<'_> {
    Arrays {
        target: &mut target.as_mut_slice()[..own],
        first: &first.as_slice()[..own],
        second: &second.as_slice()[..own],
    }
}
