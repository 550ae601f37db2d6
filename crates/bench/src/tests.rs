//! What the tests of several areas use.

pub(crate) mod caches;
mod readers;
pub(crate) mod threads;
pub(crate) mod waiting;
