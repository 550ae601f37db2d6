//! Who is far from whom: figures of pairs of processes as a matrix, the slow ones shaded.

use std::fmt::Write;

use flatout_measure::record::{Better, Outcome};
use flatout_report::quantity::{self, Scale};

/// From how much of the best figure on a cell has which shade, on a terminal with Unicode and without.
const SHADES: [(f64, [char; 2]); 4] =
    [(0.9, [' ', ' ']), (0.75, ['░', '.']), (0.5, ['▒', 'o']), (0.0, ['▓', '#'])];
/// Processes of whose pairs the figures are shown; of more, the shades alone.
const MOST_WITH_FIGURES: usize = 12;
/// Pairs from which on there is something to compare.
const LEAST_PAIRS: usize = 3;

/// The matrices of all tests that have pairs.
pub(super) fn text(rows: &[Outcome], is_unicode: bool) -> String {
    let mut ids: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.id.starts_with("network/pair-")) {
        if !ids.contains(&row.id.as_str()) {
            ids.push(&row.id);
        }
    }
    ids.into_iter().filter_map(|id| matrix(rows, id, is_unicode)).collect()
}

fn matrix(rows: &[Outcome], id: &str, is_unicode: bool) -> Option<String> {
    let ends = |row: &Outcome| {
        let end = |key| Some(row.parameter_count(key)? as usize);
        Some((end("from")?, end("to")?))
    };
    let own = rows.iter().filter(|row| row.id == id);
    let first = own.clone().next()?;
    let (unit, factor) = flatout_report::unit(id, &first.unit);
    let pair = |row: &Outcome| {
        let (from, to) = ends(row)?;
        Some((from, to, row.median? * factor))
    };
    let pairs: Vec<(usize, usize, f64)> = own.filter_map(pair).collect();
    if pairs.len() < LEAST_PAIRS {
        return None;
    }
    let is_better = |one: f64, other: f64| match first.better {
        Better::Higher => one.max(other),
        Better::Lower => one.min(other),
    };
    let best = pairs.iter().map(|pair| pair.2).reduce(is_better)?;
    let size = pairs.iter().map(|&(from, to, _)| from.max(to) + 1).max()?;
    let scale = Scale::of(unit, best);
    // What has no direction stands on both sides.
    let figure = |from: usize, to: usize| {
        let of = |one, other| pairs.iter().find(|pair| (pair.0, pair.1) == (one, other));
        of(from, to).or_else(|| of(to, from)).map(|pair| pair.2)
    };
    let name = id.trim_start_matches("network/");
    let mut text = String::new();
    let legend = SHADES[1..].iter().zip(&SHADES).map(|((_, shade), (over, _))| {
        format!("{} below {}", shade[usize::from(!is_unicode)], quantity::percent(*over))
    });
    let legend: Vec<String> = legend.collect();
    let _to_memory = writeln!(
        text,
        "\n{name}, {}, from row to column ({} of the best)",
        scale.unit,
        legend.join(", ")
    );
    let has_figures = size <= MOST_WITH_FIGURES;
    if has_figures {
        let heads: String = (0..size).map(|to| format!(" {to:>7}")).collect();
        let _to_memory = writeln!(text, "    {heads}");
    }
    for from in 0..size {
        let _to_memory = write!(text, "{from:>4}");
        for to in 0..size {
            let cell = figure(from, to).filter(|_| from != to);
            let shade = cell.map_or(' ', |cell| shade(cell, best, first.better, is_unicode));
            let number = cell.map_or_else(|| "-".to_owned(), |cell| scale.number(cell));
            let _to_memory = match has_figures {
                true => write!(text, " {shade}{number:>6}"),
                false => write!(text, "{}", if from == to { '-' } else { shade }),
            };
        }
        text.push('\n');
    }
    Some(text)
}

fn shade(figure: f64, best: f64, better: Better, is_unicode: bool) -> char {
    let share = match better {
        Better::Higher => figure / best,
        Better::Lower => best / figure,
    };
    let known = SHADES.iter().find(|(least, _)| share >= *least);
    known.map_or(' ', |(_, shade)| shade[usize::from(!is_unicode)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(better: Better, pairs: &[(u64, u64, f64)]) -> Vec<Outcome> {
        let row = |&(from, to, figure): &(u64, u64, f64)| Outcome {
            id: "network/pair-one-way".to_owned(),
            parameters: [("from", from), ("to", to)]
                .map(|(key, value)| (key.to_owned(), value.into()))
                .into_iter()
                .collect(),
            unit: if better == Better::Higher { "bytes/s" } else { "ns" }.to_owned(),
            median: Some(figure),
            better,
            ..Outcome::default()
        };
        pairs.iter().map(row).collect()
    }

    #[test]
    fn slow_pairs_are_dark_in_both_directions_of_better() {
        let rates = [(0, 1, 1e9), (0, 2, 0.4e9), (1, 2, 0.8e9)];
        let shown = text(&rows(Better::Higher, &rates), true);
        assert_eq!(shown.matches('▓').count(), 2 + 1, "{shown}");
        assert_eq!(shown.matches('░').count(), 2 + 1, "{shown}");
        let times = [(0, 1, 1e3), (0, 2, 2.5e3), (1, 2, 1e3)];
        let shown = text(&rows(Better::Lower, &times), false);
        assert_eq!(shown.matches('#').count(), 2 + 1, "{shown}");
        assert_eq!(text(&rates_of_two(), true), "");
        let many: Vec<(u64, u64, f64)> =
            (0..20).flat_map(|a| (a + 1..20).map(move |b| (a, b, 1e9))).collect();
        let shown = text(&rows(Better::Higher, &many), true);
        assert!(shown.lines().skip(2).all(|line| line.chars().count() == 4 + 20), "{shown}");
    }

    fn rates_of_two() -> Vec<Outcome> {
        rows(Better::Higher, &[(0, 1, 1e9), (1, 0, 1e9)])
    }
}
