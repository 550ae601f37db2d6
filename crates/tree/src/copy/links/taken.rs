//! Files of the target with several names, and the one source whose copy each of them is.
//!
//! Where names of the target are one file and those of the source are two, only one of the two may
//! find its copy there: the other would be written over, or lost.

use std::sync::Mutex;

use super::table::Table;
use crate::copy::{Identity, Refusal};
use crate::lock::lock;

/// Shared by all threads.
#[derive(Debug)]
pub(in crate::copy) struct Taken(Mutex<Table>);

impl Taken {
    /// None taken yet. What is remembered takes `memory_bytes` at most (some KiB at least); what is
    /// more goes to files.
    pub(in crate::copy) fn new(memory_bytes: u64) -> Self {
        let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        Self(Mutex::new(Table::without_paths(memory_bytes)))
    }

    /// Takes a file of the target for a source; false where it stands for another one already.
    ///
    /// Errors: the temporary file cannot be read or written.
    pub(in crate::copy) fn take(
        &self,
        target: Identity,
        source: Identity,
    ) -> Result<bool, Refusal> {
        let mut table = lock(&self.0);
        match table.see(target)? {
            Some(known) => Ok(known.mark == source),
            // It may be asked for as often as anybody likes.
            None => table.insert(target, u32::MAX, b"", source).map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_target_is_the_copy_of_one_source() {
        let taken = Taken::new(0);
        for target in 0..500 {
            assert!(taken.take((1, target), (2, target)).unwrap());
            assert!(taken.take((1, target), (2, target)).unwrap(), "again");
            assert!(!taken.take((1, target), (2, target + 1)).unwrap());
            assert!(!taken.take((1, target), (3, target)).unwrap(), "another filesystem");
        }
    }
}
