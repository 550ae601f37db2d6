//! placeholder

pub mod syscall;
