//! Moving bytes: engines, ways to open, digests, capability probes, and tuning as data.
//!
//! Rule: no policy, no statistics, no thread of its own; threads belong to the caller, who runs
//! one lane in each. What the kernel or a filesystem can't do is a value ([`Fallback`]), never an
//! error. Bytes move through three interfaces, because one cannot fit all:
//!
//! - [`scan`]: a consumer sees borrowed blocks, in any order, with their offset;
//! - [`operations`]: requests are submitted and reaped with timestamps, into a sink;
//! - [`transfer`]: bytes go from one file to another.

#![forbid(unsafe_code)]

mod around;
pub mod digest;
mod error;
mod fallback;
mod interruption;
mod name;
pub mod operations;
mod order;
mod profile;
pub mod scan;
mod source;
mod stop;
mod target;
pub mod transfer;
mod tuning;

pub use error::{Error, cause_text};
pub use fallback::Fallback;
pub use interruption::{MAX_INTERRUPTIONS, unless_interrupted};
pub use name::{escape, quote};
pub use order::Order;
pub use profile::{
    Evidence, MachineProfile, PROFILE_SCHEMA, Profile, ProfileEntry, ProfileKey, SizeClass, Work,
};
pub use source::{Kind, STANDARD_INPUT, Source};
pub use stop::Stop;
pub use target::{Existing, Target, TargetOptions};
pub use tuning::{Caching, Engine, Lane, Split, Tuning};
