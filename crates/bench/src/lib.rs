//! One folder per limit of the machine: what is run to find it, and what the figure means.
//!
//! Rule: no printing, and no kernel trick of its own: bytes move through `io`, time and warnings
//! belong to `measure`. A bench hands the sampler its cases, or runs one piece of work
//! ([`read`], [`mod@write`]), and returns outcomes. Threads are made here, by [`workers`].

#![forbid(unsafe_code)]

mod area;
mod between_runs;
pub mod cache;
mod calibration;
pub mod choice;
pub mod cluster;
pub mod compute;
mod contention;
pub mod copy;
mod cores;
pub mod corpus;
pub mod cpu;
pub mod disk;
mod error;
mod fact;
mod file_trial;
mod limits;
pub mod memory;
pub mod network;
pub mod option;
pub mod place;
pub mod read;
pub mod roofline;
pub mod scratch;
pub mod slowdown;
mod stream_form;
pub mod syscall;
#[cfg(test)]
mod tests;
pub mod tried;
pub mod tune;
pub mod versus;
pub mod workers;
pub mod write;
pub mod write_limit;

pub use area::{Area, Estimate, Extent, Found, Run};
use area::{Seconds, go_on};
pub use error::Error;
use file_trial::page_cache::{CacheStart, Clearing};
use flatout_io::Error as IoError;
use flatout_measure::units::counted;
use memory::room::Room;
use scratch::Scratch;
use workers::Watch;
use write_limit::WriteLimit;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
