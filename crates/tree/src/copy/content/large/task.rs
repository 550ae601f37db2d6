//! What is done with each range of a file.

use flatout_io::transfer::{Method, Moved, Route};

use crate::copy::Refusal;
use crate::copy::content::difference::Amending;
use crate::copy::content::methods::Pair;
use crate::copy::content::{Content, Tally};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::copy) enum Task {
    /// It is moved by a method.
    Move(Method),
    /// What differs is written, and holes are made where the source has them.
    Amend(Amending),
}

impl Content<'_> {
    /// Does it with one range.
    pub(in crate::copy::content) fn task(
        &mut self,
        task: Task,
        route: Route<'_>,
        pair: &Pair,
        tally: &mut Tally,
    ) -> Result<Moved, Refusal> {
        match task {
            Task::Move(method) => self.range(route, method, pair, tally),
            Task::Amend(amending) => self.amend_range(route, amending, tally),
        }
    }
}
