//! The processes that do a copy: this one alone, unless a launcher has started several
//! (`members.rs`, which is built with MPI only).

use flatout_tree::copy::event::Watch;
use flatout_tree::copy::evidence::{Evidence, Hosts};
use flatout_tree::copy::operand::Plan;
use flatout_tree::copy::{Copy, Ended, Hire, Operand};
use flatout_tree::selection::Selection;

/// Processes that do a copy. What they do not say otherwise is true of one.
pub trait Processes {
    /// How many there are.
    fn size(&self) -> u64 {
        1
    }

    /// Where they run, if there are several.
    fn hosts(&self) -> Option<&Hosts> {
        None
    }

    /// Tells the others what they need before the first round: whether names may be met again, what the
    /// first process wants to know, its umask and its clock's idea of ages, what the user named, and what was
    /// copied before.
    fn begin(&mut self, _: (bool, &Plan), _watch: &dyn Watch, _: (&Selection, &Evidence)) {}

    /// A copy that they share.
    fn share<'a>(&self, copy: Copy<'a>) -> Copy<'a> {
        copy
    }

    /// Does a round.
    ///
    /// Errors: the others cannot take part, or do not any more.
    fn run(
        &mut self,
        copy: &Copy<'_>,
        operands: Vec<Operand>,
        hire: Hire<'_>,
    ) -> Result<Ended, String> {
        Ok(copy.run(operands, hire))
    }
}

/// This process alone.
pub struct Alone;

impl Processes for Alone {}
