//! `flatout copy`: trees copied as `cp -a` does, and more safely; and all that can go wrong then.

mod bonds;
mod campaign;
mod cleanup;
mod copier;
mod directories;
mod fault;
mod filesystem_pairs;
mod forest;
mod in_place;
mod interface;
mod kill;
mod likeness;
mod losses;
mod memory;
mod operand;
mod oracle;
mod own_files;
mod permissions;
mod property;
mod race;
mod record;
mod same_file;
mod shortage;
mod surroundings;
mod told;
mod traps;
