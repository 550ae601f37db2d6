//! Names for which a filesystem may have others: udf has one of its own for what is no UTF-8, and does not
//! find that again by the name which it was given.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Mutex;

use super::lists;
use crate::copy::{Entry, Trouble, refused};
use crate::lock::lock;

/// Whether a filesystem may have another name for this one.
pub(super) fn is_odd(name: &CStr) -> bool {
    name.to_str().is_err()
}

/// By device of a target: whether it has odd names as they are.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<HashMap<u64, bool>>);

impl Kept {
    /// Errors: what had such a name before got another one.
    pub(super) fn expect(&self, entry: Entry<'_>) -> Result<(), Trouble> {
        let known = lock(&self.0).get(&entry.pair.found.target.0).copied();
        match known {
            Some(false) if is_odd(entry.target) => {
                Err(refused("create", "this filesystem has another name for it"))
            }
            _ => Ok(()),
        }
    }

    /// Looks whether what was made has its name.
    ///
    /// Cost: the directory is listed for the first one of a filesystem.
    pub(super) fn look(&self, entry: Entry<'_>) -> Result<(), Trouble> {
        if is_odd(entry.target) {
            let (device, directory) = (entry.pair.found.target.0, entry.pair.target());
            let mut known = lock(&self.0);
            let kept = known.entry(device);
            kept.or_insert_with(|| lists(directory, |name| name == entry.target) != Some(false));
        }
        self.expect(entry)
    }
}
