//! Rows that compare: pairs, what they show together, and rows that only say what is not compared.

use crate::record::{Outcome, Status};
use crate::warning::{self, has};

use super::rows::count;

/// Whether the row is a ratio of two others.
pub(super) fn is_pair(row: &Outcome) -> bool {
    row.unit == "ratio" && row.parameters.contains_key("against")
}

/// Whether the row says that there is nothing to compare, and is neither a figure nor the lack of
/// one.
pub(super) fn is_aside(row: &Outcome) -> bool {
    let codes = [warning::CANNOT_COMPARE, warning::MISSING_RIVAL];
    row.status == Status::Unsupported
        && (row.parameters.contains_key("rival")
            || codes.iter().any(|code| has(&row.warnings, code)))
}

/// Whether the row is that of somebody who took part in a race.
pub(super) fn took_part(row: &Outcome) -> bool {
    row.parameters.contains_key("contestant")
}

/// Whether nobody looked at the work of a contestant. A run counts only if what it left was looked
/// at, so that the number of runs is the evidence.
pub(super) fn is_unchecked(row: &Outcome) -> bool {
    let runs = row.fact_count("runs").unwrap_or(0);
    took_part(row) && (runs == 0 || runs < row.n)
}

/// Whether the row tells the trials of another one, as the speed beside a time does.
pub(super) fn repeats_another(row: &Outcome, results: &[Outcome]) -> bool {
    row.id.strip_suffix("-speed").is_some_and(|of| {
        results.iter().any(|other| other.id == of && other.parameters == row.parameters)
    })
}

/// What the pairs of a run show together.
#[derive(Debug, Default)]
pub(super) struct Pairs<'r> {
    /// Pairs, with a figure or without.
    pub all: usize,
    pub slower: usize,
    pub neither: usize,
    pub faster: usize,
    /// The pair with the lowest ratio.
    pub worst: Option<&'r Outcome>,
}

impl<'r> Pairs<'r> {
    pub(super) fn of(results: &'r [Outcome]) -> Self {
        let mut pairs = Self::default();
        for row in results.iter().filter(|row| is_pair(row)) {
            pairs.all += 1;
            let Some(ratio) = row.median else { continue };
            // The whole interval lies on one side of 1, or on neither.
            match row.ci95 {
                Some([_, high]) if high < 1.0 => pairs.slower += 1,
                Some([low, _]) if low > 1.0 => pairs.faster += 1,
                _ => pairs.neither += 1,
            }
            if pairs.worst.and_then(|row| row.median).is_none_or(|worst| ratio < worst) {
                pairs.worst = Some(row);
            }
        }
        pairs
    }

    /// Pairs with a figure.
    pub(super) fn known(&self) -> usize {
        self.slower + self.neither + self.faster
    }

    /// Whether somebody was faster than the first of a pair, which shows that more is possible;
    /// empty where there are no pairs.
    pub(super) fn fastest(&self) -> String {
        match (self.known(), self.slower, self.worst) {
            (0, _, _) | (_, _, None) => String::new(),
            (known, 0, _) if self.faster == 0 => {
                format!(" None of {} is told apart.", count(known, "pair", "pairs"))
            }
            (known, 0, _) => {
                format!(" In none of {} was the other faster.", count(known, "pair", "pairs"))
            }
            (known, slower, Some(worst)) => format!(
                " In {slower} of {} the other was faster: {}.",
                count(known, "pair", "pairs"),
                told(worst)
            ),
        }
    }

    /// The sentence about all of them, and whether they show something.
    pub(super) fn sentence(&self) -> (bool, String) {
        let Some(worst) = self.worst else {
            return (false, format!("None of {} has a figure.", count(self.all, "pair", "pairs")));
        };
        let mut text = format!(
            "Of {} the first is faster in {} and slower in {}, and {} cannot be told apart; the least \
             ratio is {}.",
            count(self.known(), "pair", "pairs"),
            self.faster,
            self.slower,
            self.neither,
            told(worst)
        );
        let lacking = self.all - self.known();
        if lacking > 0 {
            text.push_str(&format!(
                " {} without a figure.",
                count(lacking, "pair is", "pairs are")
            ));
        }
        (self.slower + self.faster > 0, text)
    }
}

/// A pair in words: `0.71 of flatout against dd`.
pub(super) fn told(row: &Outcome) -> String {
    let text = |key: &str| row.parameter_text(key).unwrap_or("?");
    let test = row.parameter_text("test");
    let test = test.map_or_else(String::new, |test| format!(" ({test})"));
    let ratio = row.median.unwrap_or(f64::NAN);
    format!("{ratio:.2}, {} against {}{test}", text("subject"), text("against"))
}
