//! Trees copied: names, bytes and attributes, as faithfully as `cp -a`.
//!
//! The thread that has the operands calls [`Copy::run`]; the threads that it hires call
//! [`Copy::work`]. Every entry is a single name that is looked up in a directory held by
//! descriptor, in the source as in the target: no symlink inside a tree is followed, whoever
//! plants it and when.
//!
//! Read next: `copy/dispatch.rs`, how work is cut and given out; `copy/visit.rs`, a directory;
//! `copy/file.rs`, a file; `copy/attributes.rs`, what else there is to keep.

pub mod attributes;
pub mod backup;
mod bond;
pub mod change;
pub mod content;
mod descriptors;
mod directory;
mod dispatch;
mod entry;
pub mod event;
pub mod evidence;
mod existing;
pub mod failure;
mod file;
mod granularity;
mod inventory;
mod job;
mod lane;
pub mod limits;
mod links;
mod listing;
mod mirror;
mod notices;
pub mod operand;
pub mod options;
mod parents;
mod peculiar;
mod plan;
pub mod reason;
pub mod reference;
mod referent;
pub mod rules;
mod sequence;
mod shared;
mod sieve;
mod special;
mod standing;
mod stop;
mod tally;
mod targets;
mod temporary;
#[cfg(test)]
mod tests;
mod visit;
mod written;

// The words that most files of this room use.
use attributes::{Inheritance, Made, Node};
use directory::{Directory, Pair, Side};
pub(crate) use directory::{Identity, identity};
use dispatch::Work;
use entry::{Entry, Outcome, Trouble, obstacle, refused, source, target};
use event::{Action, Event};
use failure::{Failure, Refusal};
pub use job::{Copy, Ended, Hire, Hiring, Operand};
use lane::Lane;
use links::mark;
use options::{
    Appearance, Assurance, CopyOptions, Durability, Effect, Inventory, Overwrite, Preserve, Reach,
    Unchanged, When,
};
use rules::{Clearing, Follow, Form, Rules, Skip, Specials};
pub use shared::{Membership, Post, Reporter, Silence, Wanted};
pub use tally::Snapshot;
use tally::count;

use crate::file_data::kind_of;
