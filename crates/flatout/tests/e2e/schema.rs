//! The schemas that documents promise to follow.

use std::process::Command;

use flatout_measure::schema::validator::{assert_schema, faults};
use serde_json::Value;

use crate::bin::Folder;
use crate::fixture::random_file;
use crate::skip::skip;

/// Fails unless the document of a run follows the schema that is kept in the repository.
#[track_caller]
pub fn assert_valid(document: &Value) {
    assert_follows("flatout-1", document);
}

/// Fails unless the document follows the schema of this name.
#[track_caller]
pub fn assert_follows(name: &str, document: &Value) {
    let text = std::fs::read_to_string(path(name)).unwrap();
    let schema = serde_json::from_str(&text).unwrap();
    assert_schema(&schema);
    assert_eq!(faults(&schema, document), Vec::<String>::new());
}

fn path(name: &str) -> String {
    format!("{}/../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"))
}

/// The validator of the tests is our own, so one that is not looks at a document of each schema.
#[test]
fn another_validator_agrees() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 5000, 1);
    let run = folder.flatout(["read", "data", "--trials", "8", "--format", "json"]).run();
    run.exits(0).document();
    let records = [folder.join("a.json"), folder.join("b.json")];
    records.iter().for_each(|path| std::fs::write(path, &run.stdout).unwrap());
    let compared = folder.flatout(["compare", "a.json", "b.json", "--format", "json"]).run();
    std::fs::write(folder.join("compared.json"), &compared.exits(0).stdout).unwrap();
    let fault = run.stdout.replace("\"flatout/1\"", "\"flatout/0\"");
    std::fs::write(folder.join("fault.json"), fault).unwrap();

    let agrees = |document: &str, schema: &str| {
        let mut command = Command::new("/usr/bin/jsonschema");
        command.arg("-i").arg(folder.join(document)).arg(path(schema)).output()
    };
    let Ok(first) = agrees("a.json", "flatout-1") else {
        skip!("jsonschema (python3-jsonschema) is not installed");
    };
    let said = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(first.status.success(), "{said}");
    assert!(agrees("compared.json", "flatout-comparison-1").unwrap().status.success());
    assert!(!agrees("fault.json", "flatout-1").unwrap().status.success());
}
