//! A row as a race against another program sees it: its parameters, its unit, the words for fio.

use std::path::Path;

use super::forecast::{self, Speed};
use super::place::{Kind, Place};
pub(crate) use super::row::Extents;
use super::row::Row;
use super::{Selection, Terms, fio, plan};
use crate::tried::Tried;
use crate::{Clearing, Extent};
pub(crate) use fio::Trial as FioTrial;

/// Bytes that a trial of a race writes at most: its time ends it before.
const MOST_WRITE_BYTES: u64 = 1 << 40;

/// A row that another program is to do, too.
#[derive(Debug, Clone)]
pub(crate) struct Duel {
    pub(crate) row: Row,
    place: Place,
}

impl Duel {
    /// The row of a selection that has one pattern and one value of each setting, at a path that
    /// may be made later. None where no such row works on such extents.
    pub(crate) fn new(selection: &Selection, path: &Path, extents: Extents) -> Option<Self> {
        let kind = if extents == Extents::Written { Kind::File } else { Kind::Directory };
        let place = Place::to_come(path, kind);
        let rows = plan::rows(Extent::Full, selection, &place);
        let row = rows.into_iter().find(|row| row.extents == extents)?;
        Some(Self { row, place })
    }

    /// Bytes that a trial over `length_bytes` likely writes.
    pub(crate) fn likely_write_bytes(&self, length_bytes: u64, runtime_ns: u64) -> u64 {
        let most = if self.row.extents == Extents::Fresh { length_bytes } else { u64::MAX };
        let usual = Speed { tried: Tried::USUAL, is_buffered: false };
        forecast::likely_trial(&self.row, most, runtime_ns, usual).0 as u64
    }

    /// What follows fio's name for one trial over `length_bytes`, and what fio does otherwise; none
    /// where it cannot do it.
    pub(crate) fn fio(&self, length_bytes: u64, runtime_ns: u64) -> Option<FioTrial> {
        let terms = Terms {
            runtime_ns,
            trial_write_bytes: MOST_WRITE_BYTES,
            most_write_bytes: MOST_WRITE_BYTES,
            clearing: Clearing::File,
        };
        fio::trial(&self.row, &self.place, length_bytes, &terms)
    }
}

#[cfg(test)]
mod tests {
    use flatout_io::{Caching, Engine};
    use flatout_measure::Row as _;

    use super::super::Pattern;
    use super::*;

    fn duel(pattern: Pattern, extents: Extents) -> Duel {
        let selection = Selection {
            patterns: vec![pattern],
            block_bytes: vec![65536],
            threads: vec![1],
            depths: vec![16],
            engine: Some(Engine::Uring),
            caching: Some(Caching::Direct),
            ..Selection::default()
        };
        Duel::new(&selection, Path::new("/nowhere"), extents).unwrap()
    }

    #[test]
    fn a_trial_of_fio_is_as_long_as_that_of_the_row() {
        let words = duel(Pattern::RandomWrite, Extents::Written).fio(1 << 26, 250_000_000);
        let words = words.unwrap().0;
        for word in ["--rw=randwrite", "--runtime=250ms", "--iodepth=16", "--filename=/nowhere"] {
            assert!(words.iter().any(|known| known == word), "{word}: {words:?}");
        }
        assert!(words.iter().any(|word| word == "--allow_file_create=0"));
    }

    #[test]
    fn a_fresh_file_is_made_in_the_directory_and_removed() {
        let duel = duel(Pattern::SequentialWrite, Extents::Fresh);
        assert_eq!(duel.row.parameters().value("extents"), Some(&"fresh".into()));
        let words = duel.fio(1 << 26, 250_000_000).unwrap().0;
        assert!(words.iter().any(|word| word == "--filename=/nowhere/flatout-fio.tmp"));
        assert!(words.iter().any(|word| word == "--unlink=1"), "{words:?}");
    }

    #[test]
    fn what_fio_cannot_do_has_no_words() {
        let copy = duel(Pattern::SequentialCopy, Extents::Fresh);
        assert_eq!(copy.fio(1 << 26, 1), None);
        let read = duel(Pattern::SequentialRead, Extents::Written);
        assert_eq!(read.fio(1, 1), None, "shorter than a block");
    }
}
