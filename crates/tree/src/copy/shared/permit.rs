//! How many things all processes may delete together (`--max-delete`): the first one counts, and the
//! others ask it for each.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Letter, Shared};
use crate::copy::job::Copy;
use crate::copy::stop::Stop;
use crate::lock::lock;

pub(super) const PERMIT: u8 = 11;
/// What is asked, and answered with the same: one more; and what is said without an answer.
const YES: u8 = 1;
const NO: u8 = 0;

/// Between two looks whether the copy was stopped while an answer is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Answers that have come. Whoever waits takes any of them.
#[derive(Debug, Default)]
pub(super) struct Permits {
    answers: Mutex<Vec<bool>>,
    has_come: Condvar,
}

impl Permits {
    fn wait(&self, stop: &Stop) -> bool {
        let mut answers = lock(&self.answers);
        loop {
            if let Some(answer) = answers.pop() {
                return answer;
            }
            if stop.is_due() {
                return false;
            }
            let waited = self.has_come.wait_timeout(answers, LOOK);
            answers = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Copy<'_> {
    /// Takes one of so many that may be deleted.
    pub(in crate::copy) fn may_delete_one(&self, most: u64) -> bool {
        let Some(shared) = self.shared.as_ref().filter(|shared| shared.rank != 0) else {
            return self.mirror.permit(most);
        };
        lock(&shared.outbox).push(Letter::Permit(YES));
        shared.permits.wait(&self.stop)
    }

    /// Gives one back.
    pub(in crate::copy) fn return_permit(&self) {
        match self.shared.as_ref().filter(|shared| shared.rank != 0) {
            Some(shared) => lock(&shared.outbox).push(Letter::Permit(NO)),
            None => self.mirror.return_permit(),
        }
    }

    /// Reads what another process asks for, gives back, or answers. Returns what is to be answered.
    pub(super) fn permit(&self, shared: &Shared, word: u8) -> Option<u8> {
        if shared.rank != 0 {
            lock(&shared.permits.answers).push(word == YES);
            shared.permits.has_come.notify_one();
            return None;
        }
        if word != YES {
            self.mirror.return_permit();
            return None;
        }
        let most = self.options.deletion.and_then(|deletion| deletion.most);
        Some(if most.is_none_or(|most| self.mirror.permit(most)) { YES } else { NO })
    }
}
