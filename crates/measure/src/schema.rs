//! The JSON Schema of the record, for other programs. Tests hold it and [`crate::record`]
//! together: what the structs write is valid, and each knows the members of the other.

/// The schema of `flatout/1`, JSON Schema draft 2020-12.
pub const JSON_SCHEMA: &str = include_str!("../../../docs/schema/flatout-1.schema.json");

#[cfg(any(test, feature = "validator"))]
#[path = "tests/validator.rs"]
pub mod validator;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::fixture::{full_record, record, row};
    use crate::record::{Better, Outcome, Provenance, Record, Status};

    fn schema() -> Value {
        serde_json::from_str(JSON_SCHEMA).unwrap()
    }

    fn is_valid(document: &Value) -> bool {
        validator::faults(&schema(), document).is_empty()
    }

    fn full() -> Value {
        serde_json::to_value(full_record()).unwrap()
    }

    #[test]
    fn the_schema_is_a_schema() {
        validator::assert_schema(&schema());
    }

    #[test]
    fn what_the_structs_write_is_valid() {
        let rows = |rows| serde_json::to_value(record(rows)).unwrap();
        let blank = Outcome { id: "a/b".to_owned(), ..Outcome::default() };
        for document in [full(), rows(Vec::new()), rows(vec![row("a/b"), blank])] {
            assert_eq!(validator::faults(&schema(), &document), Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        let text = serde_json::to_string(&full_record()).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), full_record());
    }

    #[test]
    fn every_status_and_provenance_is_known_to_the_schema() {
        for status in Status::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
            let document = record(vec![Outcome { status, ..row("a/b") }]);
            assert!(is_valid(&serde_json::to_value(document).unwrap()), "{status:?}");
        }
        for provenance in Provenance::ALL {
            assert_eq!(serde_json::to_value(provenance).unwrap(), provenance.name());
            let mut document = record(vec![row("a/b")]);
            document.results[0].ceiling.as_mut().unwrap().provenance = provenance;
            let document = serde_json::to_value(document).unwrap();
            assert!(is_valid(&document), "{provenance:?}");
        }
        for better in Better::ALL {
            assert_eq!(serde_json::to_value(better).unwrap(), better.name());
        }
    }

    /// Structs of the full record and what the schema calls them.
    const PLACES: [(&str, &str); 12] = [
        ("", ""),
        ("/start", "/$defs/start"),
        ("/results/0", "/$defs/outcome"),
        ("/results/0/latency", "/$defs/latency"),
        ("/results/0/series/0", "/$defs/series"),
        ("/results/0/ceiling", "/$defs/ceiling"),
        ("/results/0/warnings/0", "/$defs/warning"),
        ("/charts/0", "/$defs/chart"),
        ("/end", "/$defs/end"),
        ("/end/load", "/$defs/load"),
        ("/end/load/programs/0", "/$defs/program_load"),
        ("/end/verdict/0", "/$defs/answer"),
    ];

    #[test]
    fn structs_and_schema_have_the_same_members() {
        let (full, schema) = (full(), schema());
        let keys = |value: Option<&Value>| -> BTreeSet<String> {
            value.unwrap().as_object().unwrap().keys().cloned().collect()
        };
        for (place, definition) in PLACES {
            assert_eq!(
                keys(full.pointer(place)),
                keys(schema.pointer(&format!("{definition}/properties"))),
                "{place}"
            );
            assert_eq!(schema.pointer(definition).unwrap()["additionalProperties"], false);
        }
    }

    #[test]
    fn a_member_too_many_is_refused_everywhere() {
        for (place, _) in PLACES {
            let mut document = full();
            let object = document.pointer_mut(place).unwrap().as_object_mut().unwrap();
            object.insert("surplus".to_owned(), json!(1));
            assert!(!is_valid(&document), "{place}");
        }
    }

    #[test]
    fn a_required_member_missing_is_refused_everywhere() {
        let schema = schema();
        for (place, definition) in PLACES {
            let required = schema.pointer(&format!("{definition}/required")).unwrap();
            for member in required.as_array().unwrap() {
                let mut document = full();
                let object = document.pointer_mut(place).unwrap().as_object_mut().unwrap();
                assert!(object.remove(member.as_str().unwrap()).is_some());
                assert!(!is_valid(&document), "{place} without {member}");
            }
        }
    }

    #[test]
    fn a_mutilated_document_is_refused() {
        for (place, value) in [
            ("/schema", json!("flatout/2")),
            ("/start/seed", json!(-1)),
            ("/start/time", json!("yesterday")),
            ("/results/0/id", json!("no area")),
            ("/results/0/better", json!("bigger")),
            ("/results/0/median", json!("100")),
            ("/results/0/ci95", json!([1.0])),
            ("/results/0/n", json!(1.5)),
            ("/results/0/samples/0", json!(null)),
            ("/results/0/status", json!("fine")),
            ("/results/0/audit", json!([])),
            ("/results/0/latency/loop_kind", json!("half-open")),
            ("/results/0/latency/percentiles_ns", json!({"median": 1})),
            ("/results/0/series/0/points/0", json!([1, 2, 3])),
            ("/results/0/ceiling/provenance", json!("rumour")),
            ("/results/0/warnings/0/code", json!("Not Snake")),
            ("/end/exit_code", json!("0")),
            ("/end/verdict/0/rests_on", json!([])),
        ] {
            let mut document = full();
            *document.pointer_mut(place).unwrap() = value;
            assert!(!is_valid(&document), "{place}");
        }
    }
}
