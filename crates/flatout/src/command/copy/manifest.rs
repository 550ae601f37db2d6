//! `--manifest`: what there is in the end, for `flatout sum --check`.
//!
//! It is complete when its last line is there, and that is written only when everything was copied.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_sys::lock::{lock, unlocked};
use flatout_tree::copy::failure::{Failure, Refusal};
use flatout_tree::copy::operand::Plan;
use flatout_tree::inventory::{self, LastLines, Record};

use super::log::Log;
use crate::conclusion::DONE;

/// A manifest in the making.
pub struct Listing {
    file: Log,
    count: AtomicU64,
    /// Where several sources go to one place: what later ones replace must not be listed.
    lines: Option<Mutex<Result<LastLines, Refusal>>>,
}

impl Listing {
    /// Begins with the trees that are going to be complete.
    pub fn begin(file: Log, plan: &Plan) -> Self {
        file.write_line(inventory::FIRST);
        if inventory::sees_trusted() {
            file.write_line(inventory::TRUSTED);
        }
        let mut roots: Vec<&[u8]> = Vec::new();
        for operand in plan.rounds.iter().flatten() {
            let root = std::os::unix::ffi::OsStrExt::as_bytes(operand.target.as_os_str());
            if !roots.contains(&root) {
                let mut line = Vec::new();
                inventory::append_root(operand.target.as_os_str(), &mut line);
                file.write_line(&line);
                roots.push(root);
            }
        }
        let lines = (plan.rounds.len() > 1).then(|| Mutex::new(Ok(LastLines::default())));
        Self { file, count: AtomicU64::new(0), lines }
    }

    /// Lists an entry.
    pub fn add(&self, record: &Record) {
        if let Some(lines) = &self.lines {
            let mut lines = lock(lines);
            if let Ok(Err(refusal)) = lines.as_mut().map(|lines| lines.add(record)) {
                *lines = Err(refusal);
            }
            return;
        }
        let mut line = Vec::new();
        record.append(&mut line);
        self.file.write_line(&line);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends it. Without an end it is known to be a part.
    pub fn finish(self, exit_code: i32) -> Result<(), String> {
        let count = match self.lines {
            None => Ok(self.count.into_inner()),
            Some(lines) => {
                unlocked(lines).and_then(|lines| lines.each(|line| self.file.write_line(line)))
            }
        };
        if let (DONE, Ok(count)) = (exit_code, &count) {
            self.file.write_line(format!("#end {count}\n").as_bytes());
        }
        let finished = self.file.finish();
        count.map_err(|refusal| {
            Failure::of(refusal, "what the manifest lists".into()).to_string()
        })?;
        finished
    }
}
