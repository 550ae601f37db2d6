//! The account of one UDP stream: which datagrams came, which came twice or out of order, and
//! what became of the others. Pure; the receiver feeds it numbers.

use flatout_measure::{Facts, Key, Warning, warning};
use serde::{Deserialize, Serialize};

use super::fact;
use crate::counted;

/// Datagrams that the account remembers one by one. A datagram that is further behind the newest
/// cannot be told from a duplicate, and is counted apart.
pub const REMEMBERED: u64 = 1 << 20;
const WORD_BITS: u64 = 64;

/// What became of the datagrams of a stream.
///
/// `sent` = `unique` + `lost` + `dropped`, and `received` = `unique` + `duplicate` + `forgotten`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Datagrams that the sender sent.
    pub sent: u64,
    /// Datagrams that came, however often.
    pub received: u64,
    /// Different ones among them.
    pub unique: u64,
    /// Further copies of one that had come.
    pub duplicate: u64,
    /// Those that came after one that was sent later (of `unique`).
    pub reordered: u64,
    /// Those that came when the sender had ended and the socket had been found empty (of `unique`).
    pub late: u64,
    /// Missing ones that the receiver's socket dropped: its buffer was full, or their checksum wrong.
    pub dropped: u64,
    /// Missing ones that never reached the socket.
    pub lost: u64,
    /// Those too far behind the newest to be told from duplicates.
    pub forgotten: u64,
    /// Datagrams that are none of this stream.
    pub foreign: u64,
    /// Packets that the socket dropped, as the kernel counts.
    pub socket_drops: u64,
}

impl Account {
    /// Its numbers as facts.
    pub fn facts(&self) -> Facts {
        Facts::default()
            .with(fact::DATAGRAMS_SENT, self.sent)
            // All that came, copies included.
            .with(Key::sum("datagrams_received"), self.received)
            .with(fact::DATAGRAMS_UNIQUE, self.unique)
            // Further copies.
            .with(Key::sum("datagrams_duplicate"), self.duplicate)
            // Those that came after one that was sent later.
            .with(Key::sum("datagrams_reordered"), self.reordered)
            // Those that came when the sender had ended and the socket had been found empty.
            .with(Key::sum("datagrams_late"), self.late)
            .with(fact::DATAGRAMS_DROPPED, self.dropped)
            .with(fact::DATAGRAMS_LOST, self.lost)
            .with(fact::DATAGRAMS_FORGOTTEN, self.forgotten)
            // Datagrams of something else.
            .with(Key::sum("datagrams_foreign"), self.foreign)
            // Packets that the socket dropped, as the kernel counts.
            .with(Key::sum("socket_drops"), self.socket_drops)
    }

    /// Whether the sums match.
    pub fn is_balanced(&self) -> bool {
        let whole = |parts: [u64; 3]| parts.into_iter().fold(0, u64::saturating_add);
        self.sent == whole([self.unique, self.lost, self.dropped])
            && self.received == whole([self.unique, self.duplicate, self.forgotten])
    }
}

/// A stream as its receiver sees it.
pub struct Ledger {
    account: Account,
    /// One bit per number modulo what is remembered.
    seen: Vec<u64>,
    /// One more than the highest number seen.
    next: u64,
    is_late: bool,
}

impl Default for Ledger {
    fn default() -> Self {
        let seen = vec![0; (REMEMBERED / WORD_BITS) as usize];
        Self { account: Account::default(), seen, next: 0, is_late: false }
    }
}

impl Ledger {
    /// Takes note of a datagram with this number. True if it is new.
    pub fn take(&mut self, number: u64) -> bool {
        self.account.received += 1;
        if number >= self.next {
            self.forget_up_to(number);
            self.next = number.saturating_add(1);
        } else if self.next - number > REMEMBERED {
            self.account.forgotten += 1;
            return false;
        } else {
            if self.seen[word(number)] & bit(number) != 0 {
                self.account.duplicate += 1;
                return false;
            }
            self.account.reordered += 1;
        }
        self.seen[word(number)] |= bit(number);
        self.account.unique += 1;
        self.account.late += u64::from(self.is_late);
        true
    }

    /// Clears the places of the numbers from the next one up to `number`.
    fn forget_up_to(&mut self, number: u64) {
        if number == self.next {
            self.seen[word(number)] &= !bit(number);
            return;
        }
        if number - self.next >= REMEMBERED {
            self.seen.fill(0);
            return;
        }
        for number in self.next..=number {
            self.seen[word(number)] &= !bit(number);
        }
    }

    /// Takes note of a datagram that is none of this stream.
    pub fn take_foreign(&mut self) {
        self.account.foreign += 1;
    }

    /// From now on what is new is late.
    pub fn begin_late(&mut self) {
        self.is_late = true;
    }

    /// Different datagrams so far.
    pub fn unique(&self) -> u64 {
        self.account.unique
    }

    /// The account, once it is known how many were sent, and how many packets the socket dropped
    /// of up to `packet_datagrams` each.
    ///
    /// What is missing was dropped at the socket as far as that dropped any; the rest was lost on
    /// the path. (A copy of a datagram that came may be among the drops, too.)
    pub fn close(&self, sent: u64, socket_drops: u64, packet_datagrams: u64) -> Account {
        let missing = sent.saturating_sub(self.account.unique);
        let dropped = missing.min(socket_drops.saturating_mul(packet_datagrams.max(1)));
        Account { sent, dropped, lost: missing - dropped, socket_drops, ..self.account }
    }
}

fn word(number: u64) -> usize {
    (number % REMEMBERED / WORD_BITS) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % WORD_BITS)
}

/// What the accounts of all trials of a row together say against it.
pub(super) fn warnings(facts: &Facts) -> Vec<Warning> {
    let count = |key| facts.count(key).unwrap_or(0);
    let (dropped, lost) = (count(fact::DATAGRAMS_DROPPED), count(fact::DATAGRAMS_LOST));
    let forgotten = count(fact::DATAGRAMS_FORGOTTEN);
    let mut warnings = Vec::new();
    if dropped > 0 || lost > 0 {
        let text = format!(
            "{} of {} datagrams did not arrive: {dropped} dropped at the receiver's socket, {lost} \
             lost on the path",
            lost.saturating_add(dropped),
            count(fact::DATAGRAMS_SENT),
        );
        warnings.push(Warning::new(warning::DATAGRAMS_LOST, text));
    }
    if forgotten > 0 {
        let text = format!("{} came more than a million too late", counted(forgotten, "datagram"));
        warnings.push(Warning::new(warning::ACCOUNT_INCOMPLETE, text));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn ledger(numbers: impl IntoIterator<Item = u64>) -> Ledger {
        let mut ledger = Ledger::default();
        numbers.into_iter().for_each(|number| _ = ledger.take(number));
        ledger
    }

    #[test]
    fn each_fate_has_its_number() {
        // 3 lost, 5 twice, 7 after 8, 9 missing although the socket dropped one.
        let mut ledger = ledger([0, 1, 2, 4, 5, 5, 6, 8, 7]);
        ledger.begin_late();
        ledger.take(10);
        ledger.take_foreign();
        let account = ledger.close(11, 1, 1);
        let expected = Account {
            sent: 11,
            received: 10,
            unique: 9,
            duplicate: 1,
            reordered: 1,
            late: 1,
            dropped: 1,
            lost: 1,
            forgotten: 0,
            foreign: 1,
            socket_drops: 1,
        };
        assert_eq!(account, expected);
        assert!(account.is_balanced());
    }

    #[test]
    fn numbers_go_round_what_is_remembered() {
        let mut ledger = ledger(0..3 * REMEMBERED);
        assert_eq!(ledger.unique(), 3 * REMEMBERED);
        assert!(!ledger.take(3 * REMEMBERED - 1), "a duplicate");
        assert!(!ledger.take(5), "too far behind");
        ledger.take(10 * REMEMBERED);
        assert!(ledger.take(10 * REMEMBERED - 1), "a jump leaves no trace of older ones");
        let account = ledger.close(10 * REMEMBERED + 1, 0, 1);
        assert_eq!((account.duplicate, account.forgotten, account.reordered), (1, 1, 1));
        assert!(account.is_balanced());
    }

    #[test]
    fn a_number_that_cannot_be_breaks_nothing() {
        let ledger = ledger([u64::MAX, u64::MAX, 0]);
        assert!(ledger.unique() >= 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn it_agrees_with_a_naive_account(numbers in prop::collection::vec(0_u64..200, 0..400)) {
            let account = ledger(numbers.clone()).close(200, 3, 1);
            let mut seen = BTreeSet::new();
            let (mut duplicate, mut reordered) = (0, 0);
            for number in numbers {
                let is_behind = seen.last().is_some_and(|&last| last > number);
                if !seen.insert(number) {
                    duplicate += 1;
                } else if is_behind {
                    reordered += 1;
                }
            }
            prop_assert_eq!((account.duplicate, account.reordered), (duplicate, reordered));
            prop_assert_eq!(account.unique, seen.len() as u64);
            prop_assert!(account.is_balanced());
        }
    }

    #[test]
    fn the_note_counts_what_the_account_of_all_trials_counts() {
        let trial =
            |sent, dropped, lost| Account { sent, dropped, lost, ..Account::default() }.facts();
        let facts = Facts::merged([trial(100, 4, 1), trial(100, 0, 0), trial(100, 0, 0)].iter());
        let warnings = warnings(&facts);
        let expected = "5 of 300 datagrams did not arrive: 4 dropped at the receiver's socket, 1 \
                        lost on the path";
        assert_eq!((warnings[0].code.as_str(), &*warnings[0].text), ("datagrams_lost", expected));
        let whole = Facts::merged([trial(100, 0, 0)].iter());
        assert_eq!(super::warnings(&whole), []);
    }
}
