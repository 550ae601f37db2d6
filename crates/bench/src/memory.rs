//! Memory: what its levels give per second and how long one access waits.

use flatout_measure::case::Plan;
use flatout_sys::cancel::CancelToken;

use crate::bench::{Bench, Extent, Measured};
use crate::error::Error;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which rows.
    pub extent: Extent,
    /// Numbers of threads; empty: 1, 2, 4 and 8.
    pub threads: Vec<u32>,
    /// Bytes that a row of blocks moves, all threads together; without: 1.28 GB.
    pub bytes: Option<u64>,
    /// Seed of the data and of the orders.
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
