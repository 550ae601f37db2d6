//! A number and how far it can be trusted: units, sampler, statistics, histogram, guard, environment, record.
//!
//! Rule: this room knows no workload. It times what it is handed, decides when enough trials
//! have run, and writes down what is known about the figure and what is not. Where time or
//! chance enters, it comes through a trait ([`clock::Clock`], [`guard::Witness`]), so that every
//! decision here is tested without a disk and without waiting.
//!
//! Start reading at [`record`], the data that everything else fills.

#![forbid(unsafe_code)]

pub mod case;
pub mod ceiling;
pub mod clock;
pub mod comparison;
pub mod environment;
pub mod evidence;
pub mod fact;
#[cfg(test)]
#[path = "tests/fixture.rs"]
mod fixture;
pub mod guard;
pub mod histogram;
pub mod load;
pub mod overhead;
pub mod progress;
pub mod random;
pub mod record;
pub mod row;
pub mod sampler;
pub mod schema;
pub mod shape;
pub mod statistics;
pub mod units;
pub mod verdict;
pub mod warning;

pub use case::{
    Case, Further, Latencies, Measured, MeasuredFurther, Plan, Sample, TrialError, blank,
    record_counted,
};
pub use evidence::{DERIVED_FROM, EVIDENCE, Evidence, Happened};
pub use fact::{Facts, Key, Merge, Value};
pub use flatout_sys::cause::cause_text;
pub use flatout_sys::words;
pub use guard::Spoil;
pub use histogram::{Histogram, LoopKind};
pub use progress::Event;
pub use random::SplitMix64;
pub use record::{Better, Ceiling, Chart, Outcome, Provenance, Series, Status, Warning};
pub use row::{Label, Parameters, Row, Unit};
pub use sampler::{CLOCK_READS, Sampler};
pub use units::size_text;
