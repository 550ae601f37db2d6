//! What stands for the other processes of a copy where this program was built without MPI: there
//! are none.

use std::process::ExitCode;

use flatout_sys::cancel::CancelToken;
use flatout_tree::copy::event::Watch;
use flatout_tree::copy::evidence::{Evidence, Hosts};
use flatout_tree::copy::operand::Plan;
use flatout_tree::copy::{Copy, Ended, Hire, Operand};
use flatout_tree::selection::Selection;

use crate::arguments::copy::Copy as Arguments;

/// There is none of it.
pub enum Members {}

impl Members {
    /// Nobody is there.
    pub fn join(_arguments: &Arguments) -> Result<Option<Self>, String> {
        Ok(None)
    }

    pub fn is_first(&self) -> bool {
        match *self {}
    }

    pub fn size(&self) -> u64 {
        match *self {}
    }

    pub fn hosts(&self) -> &Hosts {
        match *self {}
    }

    pub fn begin(&mut self, _: (bool, &Plan), _watch: &dyn Watch, _: (&Selection, &Evidence)) {
        match *self {}
    }

    pub fn share<'a>(&self, _copy: Copy<'a>) -> Copy<'a> {
        match *self {}
    }

    pub fn run(
        &mut self,
        _copy: &Copy<'_>,
        _operands: Vec<Operand>,
        _hire: Hire<'_>,
    ) -> Result<Ended, String> {
        match *self {}
    }

    pub fn follow(self, _arguments: &Arguments, _cancel: CancelToken) -> ExitCode {
        match self {}
    }
}
