//! Rivals raced in one run: the same work, the same state of the cache, rounds in random order.
//!
//! A [`rival`] says how it is called; a [`heat`] is one work in one state, with those that take
//! part.

pub mod heat;
pub mod rival;
