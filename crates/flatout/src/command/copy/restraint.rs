//! What a copy leaves to others: its rate, and its place behind them.

use std::path::Path;

use flatout_io::cause_text;
use flatout_sys::pressure::{Resource, pressure};
use flatout_sys::priority;
use flatout_tree::copy::limits::Limits;

use crate::arguments::copy::Copy as Arguments;

/// Limits as they are asked for. With `--background` the priority of this thread, and of those that
/// it starts, is the least from now on. What cannot be had is said. Each of several processes has its
/// part of the rate.
pub fn limits(arguments: &Arguments, processes: u64, remark: &dyn Fn(&str)) -> Limits {
    let gives_way = arguments.background;
    if gives_way {
        if let Err(error) = priority::give_way() {
            let cause = cause_text(&error);
            remark(&format!("--background: the priority stays as it is: {cause}"));
        }
        let tells = |resource| pressure(Path::new("/"), resource).is_some();
        if !tells(Resource::Cpu) || !tells(Resource::Io) {
            remark(
                "--background: this kernel does not tell who waits (no PSI): the copy has a low priority and does not rest",
            );
        }
    }
    let part = arguments.bwlimit.filter(|&rate| rate > 0).map(|rate| (rate / processes).max(1));
    Limits::new(part, gives_way)
}
