//! The threads of a copy: started when there is work for them.

use std::thread::{Builder, Scope};

use flatout_sys::thread::spawn;
use flatout_tree::copy::{Copy, Ended, Hiring, Operand};

use super::inquiry::Answers;

/// Has operands copied by as many threads as are of use.
pub(in crate::command) fn in_threads(copy: &Copy<'_>, operands: Vec<Operand>) -> Ended {
    std::thread::scope(|scope| copy.run(operands, &Threads { scope, copy, answers: None }))
}

/// Starts threads that copy, as far as they can be had, and the one that answers.
#[derive(Clone, Copy)]
pub(super) struct Threads<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) copy: &'env Copy<'env>,
    pub(super) answers: Option<&'env Answers<'env>>,
}

impl Hiring for Threads<'_, '_> {
    fn hire(&self, number: u32) -> bool {
        let (threads, named) = (*self, Builder::new().name(format!("copy {number}")));
        let work = move || threads.copy.work(&threads);
        spawn(self.scope, named, work).is_ok()
    }

    fn takes_time(&self) {
        if let Some(answers) = self.answers {
            answers.begin(self.scope);
        }
    }
}
