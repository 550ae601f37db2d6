//! The CPU: what its units do per second, held against what its clock and its ports allow.

use flatout_measure::case::Plan;
use flatout_sys::cancel::CancelToken;

use crate::bench::{Bench, Extent, Measured};
use crate::error::Error;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which rows.
    pub extent: Extent,
    /// Numbers of threads; empty: 1, 2, 4, 8 and one per CPU.
    pub threads: Vec<u32>,
    /// Order of the matrices of Linpack; without one it follows from time and memory.
    pub order: Option<u64>,
    /// Trials of Linpack, as the time allows.
    pub trials: Option<u32>,
    /// Seed of the data.
    pub seed: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
}

/// Refuses options out of bounds, in one line.
///
/// # Errors
/// `Usage`.
pub fn check(_options: &Options) -> Result<(), Error> {
    Ok(())
}

/// Measures the area.
///
/// # Errors
/// It cannot be measured at all; what goes wrong with a row is the row's.
pub fn measure(
    _options: &Options,
    _plan: &Plan,
    _bench: &mut Bench<'_>,
) -> Result<Measured, Error> {
    Ok(Measured::default())
}
