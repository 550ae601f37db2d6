//! End-to-end tests: the built program on real files, filesystems and kernels.
//!
//! The frame is `bin` (runs the program), `fixture` (files and what must come out of them),
//! `filesystem` (loop mounts), `faulty` (a filesystem with faults), `throttle` (a limit to the
//! bytes of a second), `schema` (what documents follow), `skip` (says so when a test cannot run
//! here) and `pairwise` (samples combinations). Every other module tests one subject.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "shown with the test that fails")]

mod bin;
mod faulty;
mod filesystem;
mod fixture;
mod folder;
mod pairwise;
mod schema;
mod skip;
mod throttle;

mod bench;
mod bench_copy;
mod breakdown;
mod compare;
mod compute;
mod copy;
mod cp;
mod digest;
mod disk;
mod fallback;
mod help;
mod input;
mod instruction_set;
mod interruption;
mod invocation;
mod launched;
mod limit;
mod live;
mod machine;
mod network;
mod read;
mod report;
mod residency;
mod shell;
mod standard_output;
mod standstill;
mod sum;
mod trace;
mod transfer;
mod tune;
mod versus;
mod write;
