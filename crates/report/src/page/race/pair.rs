//! Pairs: how many times as fast one is as another, and whether that is a loss, a tie or a win.

use flatout_measure::record::Outcome;
use serde_json::{Map, Value};

use crate::{label, order, quantity, style::Tone, text::Joined};

/// The contestant whose losses come first of all.
const OURS: &str = "flatout";

/// What came of a pair, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Loss,
    Tie,
    Win,
    /// There is no interval: too few rounds.
    Undecided,
    /// There is no figure.
    None,
}

impl Verdict {
    const ALL: [(Self, &str, &str); 5] = [
        (Self::Loss, "loss", "losses"),
        (Self::Tie, "tie", "ties"),
        (Self::Win, "win", "wins"),
        (Self::Undecided, "undecided", "undecided"),
        (Self::None, "without a figure", "without a figure"),
    ];

    /// What the interval says; without one nothing is decided, whatever the row says.
    fn of(outcome: &Outcome) -> Self {
        match (label::figure(outcome), outcome.ci95) {
            (None, _) => Self::None,
            (_, None) => Self::Undecided,
            (_, Some([_, high])) if high < 1.0 => Self::Loss,
            (_, Some([low, _])) if low > 1.0 => Self::Win,
            _ => Self::Tie,
        }
    }

    pub fn tone(self) -> Tone {
        match self {
            Self::Loss => Tone::Bad,
            Self::Win => Tone::Good,
            Self::Tie => Tone::Plain,
            Self::Undecided | Self::None => Tone::Dim,
        }
    }

    /// The word for one of it.
    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(known, ..)| *known == self).map_or("", |(_, word, _)| word)
    }
}

/// One pair.
pub(crate) struct Pair<'a> {
    pub outcome: &'a Outcome,
    pub subject: &'a str,
    pub against: &'a str,
    pub verdict: Verdict,
    /// Test and parameters as far as they tell it from others.
    pub work: Vec<String>,
}

/// Pairs that belong together: all of flatout's, or all against one baseline.
pub(crate) struct Pairs<'a> {
    /// Who is held against whom.
    pub heading: String,
    /// Losses first, then ties, then wins; the lowest ratio first within each.
    pub pairs: Vec<Pair<'a>>,
}

/// The lists of these rows, flatout's first.
pub(super) fn lists<'a>(rows: &[&'a Outcome]) -> Vec<Pairs<'a>> {
    let pair = |(outcome, work): (&&'a Outcome, Vec<String>)| Pair {
        outcome,
        subject: text(outcome, "subject"),
        against: text(outcome, "against"),
        verdict: Verdict::of(outcome),
        work,
    };
    let pairs = rows.iter().zip(works(rows)).map(pair);
    let (ours, others): (Vec<Pair<'a>>, Vec<Pair<'a>>) =
        pairs.partition(|pair| pair.subject == OURS);
    let ours = (!ours.is_empty()).then(|| Pairs::new(format!("{OURS} against its rivals"), ours));
    let baselines = order::grouped(others.into_iter().map(|pair| (pair.against, pair)));
    let others = baselines
        .into_iter()
        .map(|(against, pairs)| Pairs::new(format!("the others against {against}"), pairs));
    ours.into_iter().chain(others).collect()
}

fn text<'a>(outcome: &'a Outcome, key: &str) -> &'a str {
    outcome.parameter_text(key).unwrap_or("?")
}

/// Test and parameters of each row, without what all pairs of its test have in common.
fn works(rows: &[&Outcome]) -> Vec<Vec<String>> {
    let is_work = |row: &Outcome, key: &str| match key {
        "test" | "subject" | "against" => false,
        "bytes" | "files" => !label::is_of_equal_files(row),
        _ => true,
    };
    let own: Vec<Map<String, Value>> = rows
        .iter()
        .map(|outcome| {
            let own = outcome.parameters.iter().filter(|(key, _)| is_work(outcome, key));
            own.map(|(key, value)| (key.clone(), value.clone())).collect()
        })
        .collect();
    let tests = rows.iter().map(|row| text(row, "test"));
    let named: Vec<(&str, &Map<String, Value>)> = tests.zip(&own).collect();
    let words = label::own_words(&named).into_iter().zip(&named);
    words
        .map(|(words, (test, _))| std::iter::once((*test).to_owned()).chain(words).collect())
        .collect()
}

impl<'a> Pairs<'a> {
    fn new(heading: String, mut pairs: Vec<Pair<'a>>) -> Self {
        let ratio = |pair: &Pair<'_>| label::figure(pair.outcome).unwrap_or(f64::INFINITY);
        pairs.sort_by(|a, b| a.verdict.cmp(&b.verdict).then_with(|| ratio(a).total_cmp(&ratio(b))));
        Self { heading, pairs }
    }

    /// Of several trees, by state of the cache: the geometric mean of the ratios to the fastest rival
    /// of each.
    fn means(&self) -> String {
        let ratios = self.pairs.iter().filter(|pair| pair.subject == OURS).filter_map(|pair| {
            let [state, corpus] =
                ["cache_state", "corpus"].map(|key| pair.outcome.parameters.get(key));
            let key = (label::parameter("cache_state", state?), corpus?.to_string());
            Some((key, label::figure(pair.outcome)?))
        });
        let least = order::grouped(ratios).into_iter().map(|((state, _), ratios)| {
            (state, ratios.into_iter().fold(f64::INFINITY, f64::min).ln())
        });
        let means = order::grouped(least).into_iter().filter(|(_, logs)| logs.len() > 1);
        let text = |(state, logs): (String, Vec<f64>)| {
            let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
            format!("; {state}, against the fastest, geometric mean {}", quantity::number(mean))
        };
        means.map(text).collect()
    }

    /// How many there are of each: `3 losses, 2 ties, 9 wins`.
    pub fn count(&self) -> String {
        let number = |verdict| self.pairs.iter().filter(|pair| pair.verdict == verdict).count();
        let words = Verdict::ALL.iter().filter_map(|(verdict, one, many)| {
            let number = number(*verdict);
            let word = if number == 1 { one } else { many };
            let is_always_told = matches!(verdict, Verdict::Loss | Verdict::Tie | Verdict::Win);
            let is_told = number > 0 || is_always_told;
            is_told.then(|| format!("{} {word}", quantity::count(number as u64)))
        });
        words.joined(", ") + &self.means()
    }
}

impl Pair<'_> {
    /// Loss, tie or win; where there is no figure, why.
    pub fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::None => label::no_figure(self.outcome.status),
            known => known.word(),
        }
    }

    pub fn ratio(&self) -> Option<String> {
        label::figure(self.outcome).map(|ratio| quantity::value("ratio", ratio))
    }

    /// The interval: `[1.38, 1.47]`. An end beside 1 keeps as many digits as show on which side.
    pub fn interval(&self) -> Option<String> {
        label::figure(self.outcome)?;
        let [low, high] = self.outcome.ci95?;
        Some(format!("[{}, {}]", end(low), end(high)))
    }
}

fn end(value: f64) -> String {
    let short = quantity::number(value);
    let is_beside_one = value != 1.0 && short == quantity::number(1.0);
    if is_beside_one { format!("{value:.4}") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_beside_one_shows_its_side() {
        assert_eq!(end(1.38), "1.38");
        assert_eq!(end(1.0), "1.00");
        assert_eq!(end(1.0041), "1.0041");
        assert_eq!(end(0.9997), "0.9997");
        assert_eq!(end(0.98), "0.980");
        assert_eq!(end(f64::NAN), "?");
    }
}
