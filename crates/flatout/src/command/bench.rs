//! `flatout bench`: the areas asked for, one record.

use flatout_sys::cancel::CancelToken;

use crate::arguments::bench::Bench;
use crate::conclusion::{Conclusion, Draft, View};

/// Measures.
pub fn run(arguments: &Bench, _cancel: CancelToken) -> Conclusion {
    Draft::begin(arguments.seed.unwrap_or(1)).conclude(View::Report)
}
