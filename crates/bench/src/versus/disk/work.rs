//! A row of `bench disk` that is raced: how it is asked of flatout, and which row of a record it is.

use std::ffi::OsString;
use std::path::Path;

use flatout_io::{Caching, Engine};

use crate::disk::duel::{Duel, Extents};
use crate::disk::{Pattern, Selection};
use crate::versus::race::Argv;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) pattern: Pattern,
    pub(super) block_bytes: u64,
    pub(super) depth: u32,
    pub(super) threads: u32,
    pub(super) engine: Engine,
    pub(super) caching: Caching,
    pub(super) extents: Extents,
}

/// How much one trial does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trial {
    /// How much of the file is used.
    pub(super) length_bytes: u64,
    /// Where the work can be done again and again: how long.
    pub(super) runtime_ns: u64,
}

impl Work {
    fn selection(&self) -> Selection {
        Selection {
            patterns: vec![self.pattern],
            block_bytes: vec![self.block_bytes],
            threads: vec![self.threads],
            depths: vec![self.depth],
            engine: Some(self.engine),
            caching: Some(self.caching),
            ..Selection::default()
        }
    }

    /// The row at a path: the file, or the directory of fresh ones.
    pub(super) fn duel(&self, path: &Path) -> Option<Duel> {
        Duel::new(&self.selection(), path, self.extents)
    }

    fn writes(&self) -> bool {
        use Pattern::{Mixed, RandomWrite, SequentialMixed, SequentialWrite};
        matches!(self.pattern, SequentialWrite | RandomWrite | Mixed | SequentialMixed)
    }

    /// How flatout is called for one trial at a path.
    pub(super) fn flatout(&self, program: &Path, path: &Path, trial: Trial) -> Argv {
        let mut argv: Argv = vec![program.into(), "bench".into(), "disk".into(), path.into()];
        let block = self.block_bytes.to_string();
        let threads = self.threads.to_string();
        let bytes = trial.length_bytes.to_string();
        let runtime = format!("{}ms", trial.runtime_ns.div_ceil(1_000_000));
        let (engine, caching) = (self.engine.to_string(), self.caching.to_string());
        let options = [
            ("--rw", self.pattern.word()),
            ("--block-size", &block),
            ("--threads", &threads),
            ("--engine", &engine),
            ("--caching", &caching),
            ("--size", &bytes),
            ("--time", &runtime),
            ("--runs", "1"),
            ("--format", "json"),
        ];
        argv.extend(options.iter().flat_map(|(option, value)| [option, value]).map(OsString::from));
        if self.engine == Engine::Uring {
            argv.extend(["--iodepth".into(), self.depth.to_string().into()]);
        }
        if self.extents == Extents::Written && self.writes() {
            argv.push("--overwrite".into());
        }
        argv
    }
}
