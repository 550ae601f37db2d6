//! `flatout copy`: trees copied as `cp -a` does, and more safely; and all that can go wrong then.

mod campaign;
mod copier;
mod fault;
mod filesystem_pairs;
mod forest;
mod interface;
mod kill;
mod likeness;
mod memory;
mod operand;
mod oracle;
mod property;
mod race;
mod shortage;
mod traps;
