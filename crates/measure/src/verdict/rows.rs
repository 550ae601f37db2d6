//! Rows, counts and shares as words in a sentence.

use serde_json::Value;

use crate::record::Outcome;
use crate::units::wide_text;

/// Rows that a sentence names before it only counts the others.
const NAMED_MOST: usize = 3;

/// A row in words: its id, and what tells it from others with the same id.
pub(super) fn name(row: &Outcome) -> String {
    let parameters: Vec<String> = row
        .parameters
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        })
        .collect();
    if parameters.is_empty() {
        row.id.clone()
    } else {
        format!("{} {}", row.id, parameters.join(" "))
    }
}

/// The first few items, then how many more there are.
pub(super) fn list(items: &[String]) -> String {
    let shown = items[..items.len().min(NAMED_MOST)].join(", ");
    match items.len().saturating_sub(NAMED_MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A number with the noun, and often the verb, that fits it.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Half the width of an interval as a percentage.
pub(super) fn half(share: f64) -> String {
    wide_text(share).map_or_else(|| percent(share), str::to_owned)
}

/// A share with two significant digits below 10 %, whole above.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        size if size < 0.01 => "less than 0.01 %".to_owned(),
        size if size < 1.0 => format!("{percent:.2} %"),
        size if size < 10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_is_named_by_id_and_parameters() {
        let mut row = Outcome { id: "a/b".to_owned(), ..Outcome::default() };
        assert_eq!(name(&row), "a/b");
        row.parameters.insert("block_bytes".to_owned(), json!(4096));
        row.parameters.insert("engine".to_owned(), json!("uring"));
        assert_eq!(name(&row), "a/b block_bytes=4096 engine=uring");
    }

    #[test]
    fn long_lists_are_cut() {
        let items: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        assert_eq!(list(&items[..2]), "a, b");
        assert_eq!(list(&items), "a, b, c and 2 more");
        assert_eq!(list(&[]), "");
    }

    #[test]
    fn shares_are_rounded_to_what_they_are_worth() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.000_01, "less than 0.01 %"),
            (0.0012, "0.12 %"),
            (0.018, "1.8 %"),
            (0.874, "87 %"),
            (3.4, "340 %"),
        ] {
            assert_eq!(percent(share), text);
            assert_eq!(half(share), text);
        }
        assert_eq!(half(23.18), ">999 %");
    }
}
