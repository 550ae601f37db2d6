//! Rows, counts and shares as words in a sentence.

use serde_json::Value;

use crate::record::Outcome;

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
}
