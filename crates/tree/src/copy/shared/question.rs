//! What one process asks another one, and waits for: whether one more thing may be deleted
//! (`--max-delete`), which the first process counts; and whether a file with several names, of the
//! target or of a snapshot, is free to stand for a source, which that process knows that a hash of its
//! inode number decides.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Letter, Shared};
use crate::copy::stop::Stop;
use crate::copy::{Copy, Identity, Refusal, Trouble};
use crate::lock::lock;
use crate::wire::{goes_by_variants, message, take};

pub(super) const QUESTION: u8 = 11;
pub(super) const ANSWER: u8 = 12;

/// Between two looks whether the copy was stopped while an answer is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether one more thing may be deleted.
    MayDelete,
    /// Nothing: it was not deleted.
    Return,
    /// Whether a file is free to stand for a source.
    Take(Identity, Identity),
}

goes_by_variants!(Question { 1 => MayDelete, 2 => Return, 3 => Take(file, source) });

/// Answers that have come, by the numbers of the questions.
#[derive(Debug, Default)]
pub(super) struct Questions {
    state: Mutex<(u64, HashMap<u64, bool>)>,
    has_come: Condvar,
}

impl Questions {
    /// Another process has answered.
    pub(super) fn answered(&self, message: &mut &[u8]) {
        if let (Some(number), Some(answer)) = (take(message), take(message)) {
            lock(&self.state).1.insert(number, answer);
            self.has_come.notify_all();
        }
    }
}

impl Shared {
    /// Asks another process; `None`: the copy was stopped meanwhile.
    fn ask(&self, whom: usize, question: Question, stop: &Stop) -> Option<bool> {
        let Questions { state, has_come } = &self.questions;
        let mut waiting = lock(state);
        waiting.0 += 1;
        let number = waiting.0;
        let message = message(&[&QUESTION, &number, &question]);
        lock(&self.outbox).push(Letter::Message(whom, message));
        loop {
            if let Some(answer) = waiting.1.remove(&number) {
                return Some(answer);
            }
            if stop.is_due() {
                return None;
            }
            let waited = has_come.wait_timeout(waiting, LOOK);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Copy<'_> {
    /// Takes one of those that may be deleted.
    pub(in crate::copy) fn may_delete_one(&self) -> bool {
        self.ask(0, Question::MayDelete).unwrap_or(false)
    }

    /// Gives one back.
    pub(in crate::copy) fn return_permit(&self) {
        let _is_given_back = self.ask(0, Question::Return);
    }

    /// Has a file of the target or of a snapshot stand for a source; false where it stands for another
    /// one already.
    pub(in crate::copy) fn take(&self, file: Identity, source: Identity) -> Result<bool, Trouble> {
        match &self.shared {
            // Devices have other numbers on other hosts.
            Some(shared) => self.ask(shared.owner(file.1), Question::Take((0, file.1), source)),
            None => self.ask(0, Question::Take(file, source)),
        }
    }

    /// Has the process answer that knows.
    fn ask(&self, whom: usize, question: Question) -> Result<bool, Trouble> {
        match self.shared.as_ref().filter(|shared| shared.rank != whom) {
            Some(shared) => shared
                .ask(whom, question, &self.stop)
                .ok_or_else(|| Trouble::Target(Refusal::interrupted("link"))),
            None => self.answer(question).map_err(Trouble::Target),
        }
    }

    fn answer(&self, question: Question) -> Result<bool, Refusal> {
        match question {
            Question::MayDelete => Ok(self.mirror.permit(self.options.deletion)),
            Question::Return => Ok(self.mirror.return_permit()),
            Question::Take(file, source) => self.taken.take(file, source),
        }
    }

    /// What another process asks; returns what it is told.
    pub(super) fn asked(&self, question: &mut &[u8]) -> Option<Vec<u8>> {
        let (number, question): (u64, Question) = take(question)?;
        // Where that cannot be remembered, it is copied.
        let answer = self.answer(question).unwrap_or(false);
        Some(message(&[&ANSWER, &number, &answer]))
    }
}
