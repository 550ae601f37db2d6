//! `flatout copy`: trees, and all that can be wrong with them.

mod fault;
mod likeness;
mod memory;
mod shortage;
