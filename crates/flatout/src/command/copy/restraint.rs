//! What a copy leaves to others: its rate, and its place behind them.

use std::path::Path;

use flatout_io::cause_text;
use flatout_sys::pressure::{Resource, pressure};
use flatout_sys::priority;
use flatout_tree::copy::limits::Limits;

use super::witness::Witness;
use crate::arguments::copy::Copy as Arguments;

/// Limits as they are asked for. With `--background` the priority of this thread, and of those that
/// it starts, is the least from now on. What cannot be had is said.
pub fn limits(arguments: &Arguments, witness: &Witness<'_>) -> Limits {
    let gives_way = arguments.limits.background;
    if gives_way {
        if let Err(error) = priority::give_way() {
            let cause = cause_text(&error);
            witness.remark(&format!("--background: the priority stays as it is: {cause}"));
        }
        let tells = |resource| pressure(Path::new("/"), resource).is_some();
        if !tells(Resource::Cpu) || !tells(Resource::Io) {
            witness.remark("--background: this kernel does not tell who waits (no PSI): the copy has a low priority and does not rest");
        }
    }
    Limits::new(arguments.limits.bwlimit, gives_way)
}
