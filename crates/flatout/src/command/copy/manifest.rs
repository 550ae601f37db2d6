//! `--manifest`: what there is in the end, for `flatout sum --check`.
//!
//! It is complete when its last line is there, and that is written only when everything was copied.

use std::sync::atomic::{AtomicU64, Ordering};

use flatout_tree::copy::operand::Plan;
use flatout_tree::inventory::{self, Record};

use super::log::Log;
use crate::conclusion::DONE;

/// A manifest in the making.
pub struct Listing {
    file: Log,
    count: AtomicU64,
}

impl Listing {
    /// Begins with the trees that are going to be complete.
    pub fn begin(file: Log, plan: &Plan) -> Self {
        file.write_line(inventory::FIRST);
        for operand in plan.rounds.iter().flatten() {
            let mut line = Vec::new();
            inventory::append_root(operand.target.as_os_str(), &mut line);
            file.write_line(&line);
        }
        Self { file, count: AtomicU64::new(0) }
    }

    /// Lists an entry.
    pub fn add(&self, record: &Record) {
        let mut line = Vec::new();
        record.append(&mut line);
        self.file.write_line(&line);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends it. Without an end it is known to be a part.
    pub fn finish(self, exit_code: i32) -> Result<(), String> {
        if exit_code == DONE {
            self.file.write_line(format!("#end {}\n", self.count.into_inner()).as_bytes());
        }
        self.file.finish()
    }
}
