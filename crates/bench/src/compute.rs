//! What `versus` races against libraries and loops instead of programs: a product of matrices, a
//! factorisation, a stream through memory, timed in this process by one side or the other.

use std::path::PathBuf;

use clap::Args;
use flatout_measure::{TrialError, size_text};
use flatout_sys::blas::Library;
use flatout_sys::dgemm::{Kernels, Level};
use flatout_sys::stream::Kernel;
use serde::{Deserialize, Serialize};

use crate::option::{Words, time, words};
use crate::{Room, cpu, memory, workers};

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// DGEMM, C = A B, of one order.
    Product,
    /// LU factorisation with partial pivoting.
    Factor,
    /// One of the four kernels of STREAM.
    Stream(Kernel),
}

const WORK: &Words<Work> = &[
    ("product", Work::Product, "Product of two matrices"),
    ("factor", Work::Factor, "LU factorisation"),
    ("copy", Work::Stream(Kernel::Copy), "c = a"),
    ("scale", Work::Stream(Kernel::Scale), "b = q c"),
    ("add", Work::Stream(Kernel::Add), "c = a + b"),
    ("triad", Work::Stream(Kernel::Triad), "a = b + q c"),
];

/// Time one product of matrices, factorisation or stream through memory
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Job {
    /// What is timed
    #[arg(id = "what", value_name = "WHAT", value_parser = words(WORK))]
    pub work: Work,
    /// Order of the matrices, or elements of each array of a stream
    #[arg(long, value_name = "N")]
    pub order: u64,
    /// Threads
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1)]
    pub threads: u32,
    /// Time of the repetitions together
    #[arg(id = "duration", long = "duration", value_name = "TIME", value_parser = time, default_value = "1s")]
    pub time_ns: u64,
    /// Seed of the numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The library that does it instead of flatout: OpenBLAS
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Streams as the plain loops of STREAM
    #[arg(long)]
    pub plain: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Operations or bytes per second.
    pub figure: f64,
    /// Repetitions that count.
    pub repetitions: usize,
    /// Who did it.
    pub by: String,
    /// How far the result of matrices is off, as HPL counts it.
    pub normalised_residual: Option<f64>,
}

/// Kernels that OpenBLAS takes where it does not know a CPU, or knows that it has none better.
const OLD_CORES: [&str; 6] = ["Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "generic"];

impl Job {
    /// The kernels for which OpenBLAS is to be asked (`OPENBLAS_CORETYPE`), since by itself it takes old
    /// ones: it does not know this CPU (0.3.21 an Emerald Rapids, of which it had an eighth so).
    pub fn better_core(&self) -> Option<&'static str> {
        let library = Library::load(self.library.as_deref()?).ok()?;
        let is_old = OLD_CORES.iter().any(|old| library.core().eq_ignore_ascii_case(old));
        match Kernels::best().level() {
            Level::Avx512 if is_old => Some("SkylakeX"),
            Level::Avx2 if is_old => Some("Haswell"),
            _ => None,
        }
    }

    /// Does the work and checks its result.
    ///
    /// Errors: one line.
    pub fn run(&self) -> Result<Figure, TrialError> {
        if self.threads == 0 || self.threads > workers::MAX_THREADS || self.order == 0 {
            return Err(TrialError::Failed("orders and threads begin at 1".to_owned()));
        }
        let order = u128::from(self.order);
        let numbers = match self.work {
            Work::Product => 3 * order * order,
            Work::Factor => order * order,
            Work::Stream(_) => 3 * order,
        };
        let free_bytes = Room::now().free_bytes;
        if numbers > u128::from(free_bytes / 8) {
            let order = self.order;
            let free = size_text(free_bytes);
            let text = format!("--order {order}: {numbers} numbers of 8 bytes, {free} are free");
            return Err(TrialError::Failed(text));
        }
        match self.work {
            Work::Product | Work::Factor => cpu::duel::run(self),
            Work::Stream(kernel) => memory::duel::run(kernel, self),
        }
    }

    /// The times of repetitions, each as `once` says it. The first counts only where it alone takes as
    /// long as all should: what it finds cold is little then.
    pub(crate) fn repeat(
        &self,
        mut once: impl FnMut() -> Result<u64, TrialError>,
    ) -> Result<Vec<u64>, TrialError> {
        let first_ns = once()?;
        if first_ns >= self.time_ns {
            return Ok(vec![first_ns]);
        }
        let (mut times, mut all_ns) = (Vec::new(), 0);
        while times.is_empty() || all_ns < self.time_ns {
            let elapsed_ns = once()?;
            all_ns += elapsed_ns.max(1);
            times.push(elapsed_ns);
        }
        Ok(times)
    }
}
