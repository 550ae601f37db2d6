//! Trees copied: names, bytes and attributes, as faithfully as `cp -a`.
//!
//! The thread that has the operands calls [`Copy::run`]; the threads that it hires call
//! [`Copy::work`]. Every entry is a single name that is looked up in a directory held by
//! descriptor, in the source as in the target: no symlink inside a tree is followed, whoever
//! plants it and when.

pub mod attributes;
pub mod event;
pub mod failure;
pub mod options;
