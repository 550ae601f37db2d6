//! `flatout copy`: trees, and all that can be wrong with them.

mod copier;
mod filesystem_pairs;
mod forest;
mod oracle;
mod property;
mod traps;
