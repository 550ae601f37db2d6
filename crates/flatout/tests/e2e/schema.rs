//! The schema that documents promise to follow.

use serde_json::Value;

/// Fails unless the document follows the schema that is kept in the repository.
#[track_caller]
pub fn assert_valid(document: &Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/flatout-1.schema.json");
    let text = std::fs::read_to_string(path).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    let faults: Vec<_> = schema.iter_errors(document).map(|fault| fault.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new());
}
