//! A stand-in for the copier: it has cp(1) copy the operands. It keeps no promise but the shape
//! of the interface.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_io::transfer::Method;

use super::event::{Action, Event, Watch};
use super::failure::{Failure, Refusal};
use super::options::{CopyOptions, Reach};

/// A source, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// What is copied, as it was given.
    pub source: PathBuf,
    /// Its name from now on.
    pub target: PathBuf,
}

/// What a copy waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing.
    #[default]
    Nothing,
    /// Bytes of the source.
    Reading,
    /// Room for bytes of the target.
    Writing,
    /// Names and attributes.
    Metadata,
    /// Storage.
    Device,
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Regular files copied.
    pub files: u64,
    /// Directories completed.
    pub directories: u64,
    /// Symlinks, FIFOs, sockets and devices made.
    pub others: u64,
    /// Names that became further names of a file.
    pub linked: u64,
    /// Files that were there already.
    pub unchanged: u64,
    /// Entries that could not be copied.
    pub failed: u64,
    /// Files that were begun again.
    pub retried: u64,
    /// Bytes that the kernel has taken.
    pub bytes_accepted: u64,
    /// Files and bytes by method.
    pub by_method: [(Method, u64, u64); 5],
    /// What it waits for.
    pub waiting: Waiting,
}

/// How a copy ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// By the wish to stop.
    pub interrupted: bool,
    /// Because there was no room.
    pub out_of_space: bool,
    /// What was done.
    pub totals: Snapshot,
}

/// A copy.
pub struct Copy<'a> {
    options: CopyOptions,
    watch: &'a dyn Watch,
    waiting: Mutex<Vec<Operand>>,
    files: AtomicU64,
    failed: AtomicU64,
}

impl<'a> Copy<'a> {
    /// Nothing to do yet.
    pub fn new(options: CopyOptions, watch: &'a dyn Watch) -> Self {
        let waiting = Mutex::new(Vec::new());
        let (files, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { options, watch, waiting, files, failed }
    }

    /// Copies the operands.
    pub fn run(
        &self,
        operands: Vec<Operand>,
        mut hire: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Ended {
        if let Ok(mut waiting) = self.waiting.lock() {
            *waiting = operands;
        }
        if hire(1).is_continue() {
            self.work();
        }
        let interrupted = self.options.cancel.is_cancelled();
        Ended { interrupted, out_of_space: false, totals: self.progress() }
    }

    /// Works until all is done.
    pub fn work(&self) {
        let Ok(mut waiting) = self.waiting.lock() else { return };
        for operand in waiting.drain(..) {
            self.copy(&operand);
        }
    }

    fn copy(&self, operand: &Operand) {
        let cp = std::process::Command::new("cp")
            .arg(match self.options.reach {
                Reach::Everything => "-aT",
                Reach::OneFilesystem => "-axT",
            })
            .arg("--")
            .args([&operand.source, &operand.target])
            .output();
        if cp.is_ok_and(|output| output.status.success()) {
            self.files.fetch_add(1, Ordering::Relaxed);
            let source = operand.source.clone().into_os_string();
            let action = Action::Copied;
            let (bytes, method, elapsed_ns) = (0, Some(Method::Sync), 0);
            self.watch.event(&Event::Done { action, source, bytes, method, elapsed_ns });
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            let refusal = Refusal::because("copy", "cp failed");
            let path = operand.source.clone().into_os_string();
            self.watch.event(&Event::Failed(&Failure { refusal, path }));
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Snapshot {
        use Method::{CopyFileRange, Mmap, Reflink, Sync, Uring};
        let methods = [Reflink, CopyFileRange, Sync, Mmap, Uring];
        let files = self.files.load(Ordering::Relaxed);
        let failed = self.failed.load(Ordering::Relaxed);
        Snapshot {
            files,
            directories: 0,
            others: 0,
            linked: 0,
            unchanged: 0,
            failed,
            retried: 0,
            bytes_accepted: 0,
            by_method: methods.map(|method| (method, 0, 0)),
            waiting: Waiting::Nothing,
        }
    }

    /// What was tried and refused, a line each.
    pub fn refused(&self) -> Vec<String> {
        Vec::new()
    }
}
