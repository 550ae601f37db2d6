//! `--max-write` where whole files are written, by this program or by others: before each piece of work
//! it is asked whether so much is left. The disk area counts blocks (`disk/trial.rs`).

use std::cell::Cell;

use flatout_measure::{TrialError, Warning, size_text, warning};
use flatout_sys::usage::process_io;

/// What is written at most where time ends the work and so much was announced: where the place is faster than
/// was seen, a little more, and the rest of the time is left.
pub fn announced_at_most(likely_bytes: u64) -> u64 {
    likely_bytes.saturating_add(likely_bytes / 4)
}

/// Bytes that may be written, and how many were.
pub struct WriteLimit {
    most_bytes: u64,
    taken_bytes: Cell<u64>,
    /// What may have been taken at the end of the part that is under way.
    part_ends_bytes: Cell<u64>,
    /// Where it counts, what the kernel had counted at the beginning.
    begun_bytes: Option<u64>,
}

impl WriteLimit {
    /// A limit, none where nobody set one, of which `taken_bytes` are spoken for.
    pub fn new(most_bytes: Option<u64>, taken_bytes: u64) -> Self {
        let most_bytes = most_bytes.unwrap_or(u64::MAX);
        Self {
            most_bytes,
            taken_bytes: Cell::new(taken_bytes),
            part_ends_bytes: Cell::new(u64::MAX),
            begun_bytes: None,
        }
    }

    /// The same, where what is taken is a guess: what the kernel counts for this process, and for those
    /// that it has waited for, counts where it is more. Files in memory it does not count.
    pub fn counting(self) -> Self {
        Self { begun_bytes: counted_bytes(), ..self }
    }

    /// How often as many bytes may yet be written, once at least: a piece that is too large is refused
    /// when it is taken.
    pub fn rounds(&self, bytes: u64) -> u32 {
        match self.most_bytes {
            u64::MAX => u32::MAX,
            most => {
                let left = most.saturating_sub(self.spent_bytes());
                left.checked_div(bytes).map_or(u32::MAX, |rounds| rounds.clamp(1, 1 << 20) as u32)
            }
        }
    }

    /// Begins with a part of the work that writes `bytes` of `rest_bytes` in each round: it gets its share of
    /// what is left, whatever becomes of its trials.
    pub(crate) fn begin_part(&self, bytes: u64, rest_bytes: u64) {
        if self.most_bytes == u64::MAX {
            return;
        }
        let spent = self.spent_bytes();
        let left = self.most_bytes.saturating_sub(spent) as f64;
        let share = left * bytes as f64 / rest_bytes.max(1) as f64;
        self.part_ends_bytes.set(spent.saturating_add(share as u64));
    }

    /// Lets no more be written than `bytes` in all, those included that are taken already.
    pub(crate) fn end_at(&self, bytes: u64) {
        self.part_ends_bytes.set(bytes);
    }

    fn spent_bytes(&self) -> u64 {
        let counted = self.begun_bytes.zip(counted_bytes()).map(|(begun, now)| now - begun);
        self.taken_bytes.get().max(counted.unwrap_or(0))
    }

    /// Counts what was written without being asked for.
    pub(crate) fn spend(&self, bytes: u64) {
        self.taken_bytes.set(self.taken_bytes.get().saturating_add(bytes));
    }

    /// Takes what is about to be written.
    ///
    /// Errors: [`TrialError::NoMore`], so much is not left.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), TrialError> {
        let most_bytes = self.most_bytes.min(self.part_ends_bytes.get());
        if bytes == 0 || most_bytes == u64::MAX {
            return Ok(());
        }
        let then = self.spent_bytes().saturating_add(bytes);
        if then > most_bytes {
            let text = format!(
                "another trial would make it more than {} in all, of what was announced, or the share of --max-write until here",
                size_text(most_bytes)
            );
            return Err(TrialError::NoMore(Warning::new(warning::WRITE_LIMIT, text)));
        }
        self.taken_bytes.set(then);
        Ok(())
    }
}

fn counted_bytes() -> Option<u64> {
    process_io().map(|io| io.device_write_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_begun_for_which_not_enough_is_left() {
        const TB: u64 = 1 << 40;
        let limit = WriteLimit::new(Some(10 * TB), 3 * TB);
        assert_eq!((limit.rounds(2 * TB), limit.rounds(9 * TB), limit.rounds(0)), (3, 1, u32::MAX));
        assert!(limit.take(4 * TB).is_ok());
        let shared = WriteLimit::new(Some(10 * TB), 2 * TB);
        shared.begin_part(TB, 4 * TB);
        assert!(shared.take(3 * TB).is_err(), "the part may have a fourth of 8 TB");
        assert!(shared.take(2 * TB).is_ok());
        assert!(shared.take(1).is_err());
        shared.begin_part(3 * TB, 3 * TB);
        assert!(shared.take(6 * TB).is_ok());
        assert!(
            matches!(limit.take(4 * TB), Err(TrialError::NoMore(why)) if why.code == warning::WRITE_LIMIT)
        );
        assert!(limit.take(3 * TB).is_ok() && limit.take(1).is_err());
        let none = WriteLimit::new(None, u64::MAX);
        none.begin_part(1, 2);
        assert!(none.take(u64::MAX).is_ok() && none.rounds(1) == u32::MAX);
        let announced = WriteLimit::new(None, TB);
        announced.end_at(3 * TB);
        assert!(announced.take(2 * TB).is_ok() && announced.take(1).is_err());
    }
}
