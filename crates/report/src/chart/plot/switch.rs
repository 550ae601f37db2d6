//! Which lines of a picture can be switched off together: all that are hot, all of one engine.
//!
//! A parameter makes a switch where it has several values and every line has one of them. Where
//! two parameters part the lines in the same way, the second tells nothing new.

use super::Plot;
use crate::order;

/// A parameter that tells lines apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// The parameter in words.
    pub noun: String,
    /// Its values, in order of appearance.
    pub values: Vec<String>,
}

/// The picture with its switches; `labels` has, per line, one word for each of the `nouns`.
pub(super) fn add(mut plot: Plot, nouns: &[String], labels: &[Vec<String>]) -> Plot {
    let mut parted: Vec<Vec<usize>> = Vec::new();
    for (at, noun) in nouns.iter().enumerate() {
        let words: Vec<&str> =
            labels.iter().map(|line| line.get(at).map_or("", String::as_str)).collect();
        let mut values: order::Places<&str> = order::Places::default();
        let parts: Vec<usize> = words.iter().map(|word| values.of(*word)).collect();
        let values = values.into_items();
        if values.len() < 2 || words.contains(&"") || parted.contains(&parts) {
            continue;
        }
        for (line, word) in plot.lines.iter_mut().zip(&words) {
            line.values.push((*word).to_owned());
        }
        let values = values.into_iter().map(str::to_owned).collect();
        plot.switches.push(Switch { noun: noun.clone(), values });
        parted.push(parts);
    }
    // Colour by the switch with the most values, pattern by what the other switches say: so both mean
    // something. Without a switch lines keep what they have.
    let most = plot.switches.iter().map(|switch| switch.values.len()).max();
    let Some(by) = plot.switches.iter().position(|switch| Some(switch.values.len()) == most) else {
        return plot;
    };
    // In the order of its values, which is that of the lines.
    let mut hues: order::Places<String> = order::Places::default();
    let mut dashes: order::Places<Vec<String>> = order::Places::default();
    for line in &mut plot.lines {
        let mut others = line.values.clone();
        let own = others.remove(by);
        line.hue = hues.of(own);
        line.dash = dashes.of(others);
    }
    plot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::plot::PlotLine;

    #[test]
    fn what_tells_nothing_new_is_no_switch() {
        let labels = [["sync", "hot", "", "a"], ["uring", "hot", "depth 16", "b"]];
        let labels = labels.map(|line| line.map(str::to_owned).to_vec());
        let lines = vec![PlotLine::default(), PlotLine::default()];
        let nouns = ["engine", "cache state", "depth", "other"].map(str::to_owned);
        let plot = add(Plot { lines, ..Plot::default() }, &nouns, &labels);
        let expected =
            Switch { noun: "engine".to_owned(), values: vec!["sync".into(), "uring".into()] };
        assert_eq!(plot.switches, [expected]);
        assert_eq!(plot.lines[1].values, ["uring"]);
        assert_eq!((plot.lines[1].hue, plot.lines[1].dash), (1, 0));
    }
}
