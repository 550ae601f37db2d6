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
    /// The row at a path: the file, or the directory of fresh ones.
    pub(super) fn duel(&self, path: &Path) -> Option<Duel> {
        let selection = Selection {
            patterns: vec![self.pattern],
            block_bytes: vec![self.block_bytes],
            threads: vec![self.threads],
            depths: vec![self.depth],
            engine: Some(self.engine),
            caching: Some(self.caching),
            ..Selection::default()
        };
        Duel::new(&selection, path, self.extents)
    }

    /// How flatout is called for one trial at a path.
    pub(super) fn flatout(&self, program: &Path, path: &Path, trial: Trial) -> Argv {
        let Self { pattern, block_bytes, depth, threads, engine, caching, .. } = *self;
        let mut words = format!(
            "--rw {} --block-size {block_bytes} --threads {threads} --engine {engine} --caching {caching} \
             --size {} --time {}ms --runs 1 --format json",
            pattern.word(),
            trial.length_bytes,
            trial.runtime_ns.div_ceil(1_000_000),
        );
        if engine == Engine::Uring {
            words += &format!(" --iodepth {depth}");
        }
        use Pattern::{Mixed, RandomWrite, SequentialMixed, SequentialWrite};
        let writes = [SequentialWrite, RandomWrite, Mixed, SequentialMixed].contains(&self.pattern);
        if self.extents == Extents::Written && writes {
            words += " --overwrite";
        }
        let begin = [program.into(), "bench".into(), "disk".into(), path.into()];
        begin.into_iter().chain(words.split(' ').map(OsString::from)).collect()
    }
}
