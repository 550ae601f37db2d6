//! `flatout copy`: trees copied as `cp -a` does, and more safely.

mod interface;
mod operand;
