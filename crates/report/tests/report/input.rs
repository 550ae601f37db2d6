//! Records that were damaged: what is still taken for one can be shown in every form, and nothing
//! panics. `fuzz/` does the same for longer.

use std::path::Path;

use flatout_report::{Format, Style, document, render, summary};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{FIXTURES, FULL};

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"));
    std::fs::read_to_string(path).expect("fixtures are part of the repository")
}

/// Reads it, and shows it in every form if that succeeds.
fn read_and_show(bytes: &[u8]) -> bool {
    match document::parse(bytes, Path::new("x")) {
        Ok(record) => {
            for format in Format::ALL {
                render(&record, format, &Style { width_columns: 60, ..FULL });
            }
            record.results.iter().for_each(|row| drop(summary(row)));
            true
        }
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            false
        }
    }
}

/// What takes the place of a member.
fn replacement(kind: u8) -> Value {
    match kind % 12 {
        0 => Value::Null,
        1 => json!(-1),
        2 => json!(0),
        3 => json!(u64::MAX),
        4 => json!(1e308),
        5 => json!(5e-324),
        6 => json!(""),
        7 => json!("\u{1b}]0;x\u{7}<script>\u{202e}|`\n"),
        8 => json!([]),
        9 => json!({}),
        10 => json!([[1.0, 2.0], [1.0, 2.0], [-3.0, 1e300]]),
        _ => json!(true),
    }
}

/// The value behind the `number`-th place of the document, counted round and round.
fn place(value: &mut Value, number: usize) -> &mut Value {
    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => 0,
        }
    }
    fn find(value: &mut Value, mut left: usize) -> &mut Value {
        if left == 0 {
            return value;
        }
        left -= 1;
        let children: Box<dyn Iterator<Item = &mut Value>> = match value {
            Value::Array(items) => Box::new(items.iter_mut()),
            Value::Object(members) => Box::new(members.values_mut()),
            _ => unreachable!("counted"),
        };
        for child in children {
            let size = count(child);
            if left < size {
                return find(child, left);
            }
            left -= size;
        }
        unreachable!("counted")
    }
    let all = count(value);
    find(value, number % all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_record_with_other_members_is_refused_or_shown(
        name in prop::sample::select(vec!["disk", "read", "write", "hostile", "versus"]),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut document: Value = serde_json::from_str(&text(name)).unwrap();
        for (number, kind) in changes {
            *place(&mut document, number) = replacement(kind);
        }
        read_and_show(document.to_string().as_bytes());
    }

    #[test]
    fn a_record_with_other_bytes_is_refused_or_shown(
        name in prop::sample::select(vec!["disk", "read", "hostile"]),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<usize>()),
    ) {
        let mut bytes = text(name).into_bytes();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut % bytes.len());
        }
        read_and_show(&bytes);
    }
}

#[test]
fn whole_records_are_read_and_shown() {
    for name in FIXTURES {
        assert!(read_and_show(text(name).as_bytes()), "{name}");
    }
}
