//! What a document breaks of a schema, for tests: the part of JSON Schema 2020-12 that the schemas
//! in docs/schema use. A keyword it does not know is a fault of the schema, not passed over.

use serde_json::{Map, Value};

/// The faults of a document, each with its place; none when it is valid.
///
/// Panics: the schema uses what this validator does not know.
pub fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Validator { root: schema, found: &mut found }.value(schema, document, "");
    found
}

/// Fails where the schema itself is malformed, in parts that no document has reached, too.
pub fn assert_schema(schema: &Value) {
    Validator { root: schema, found: &mut Vec::new() }.schema(schema, "#");
}

struct Validator<'a> {
    root: &'a Value,
    found: &'a mut Vec<String>,
}

impl<'a> Validator<'a> {
    fn value(&mut self, schema: &Value, value: &Value, place: &str) {
        let Value::Object(rules) = schema else {
            match schema {
                Value::Bool(true) => {}
                Value::Bool(false) => self.found.push(format!("{place}: may not be there")),
                _ => panic!("{place}: a schema is an object or a boolean, not {schema}"),
            }
            return;
        };
        for (keyword, rule) in rules {
            if !self.holds(rules, keyword, value, place) {
                self.found.push(format!("{place}: {value} breaks {keyword}: {rule}"));
            }
        }
    }

    /// Whether one keyword is kept by the value itself; faults of its parts are noted on the way.
    fn holds(
        &mut self,
        rules: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        place: &str,
    ) -> bool {
        let rule = &rules[keyword];
        match keyword {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                self.value(self.referred(rule), value, place);
                true
            }
            "oneOf" => {
                let choices = rule.as_array().expect("oneOf is an array");
                choices.iter().filter(|choice| self.is_valid(choice, value)).count() == 1
            }
            "const" => value == rule,
            "enum" => rule.as_array().expect("enum is an array").contains(value),
            "type" => match rule {
                Value::Array(names) => names.iter().any(|name| is_of(name, value)),
                name => is_of(name, value),
            },
            "minimum" => value.as_f64().is_none_or(|number| number >= limit(rule)),
            "maximum" => value.as_f64().is_none_or(|number| number <= limit(rule)),
            "exclusiveMinimum" => value.as_f64().is_none_or(|number| number > limit(rule)),
            "pattern" => value.as_str().is_none_or(|text| pattern(rule).is_match(text)),
            "minItems" => value.as_array().is_none_or(|all| all.len() as f64 >= limit(rule)),
            "maxItems" => value.as_array().is_none_or(|all| all.len() as f64 <= limit(rule)),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.value(rule, item, &format!("{place}/{index}"));
                }
                true
            }
            "required" => value.as_object().is_none_or(|members| {
                let names = rule.as_array().expect("required is an array");
                names.iter().all(|name| members.contains_key(text(name)))
            }),
            "properties" | "additionalProperties" | "propertyNames" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    let place = format!("{place}/{name}");
                    let own = rules.get("properties").and_then(|known| known.get(name));
                    match (keyword, own) {
                        ("properties", Some(own)) => self.value(own, member, &place),
                        ("additionalProperties", None) => self.value(rule, member, &place),
                        ("propertyNames", _) => self.value(rule, &name.as_str().into(), &place),
                        _ => {}
                    }
                }
                true
            }
            _ => panic!("{place}: the validator of the tests does not know `{keyword}`"),
        }
    }

    fn is_valid(&self, schema: &Value, value: &Value) -> bool {
        let mut found = Vec::new();
        Validator { root: self.root, found: &mut found }.value(schema, value, "");
        found.is_empty()
    }

    fn referred(&self, reference: &Value) -> &'a Value {
        let pointer = text(reference).strip_prefix('#').expect("a reference stays in its document");
        self.root.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }

    /// Applies every keyword of the schema to a value of each type, and so on inwards.
    fn schema(&mut self, schema: &Value, place: &str) {
        let samples = [Value::Null, true.into(), 1.5.into(), "a".into()];
        let object = Map::from_iter([("a".to_owned(), Value::Null)]);
        for sample in samples.into_iter().chain([vec![Value::Null].into(), object.into()]) {
            self.value(schema, &sample, place);
        }
        for (keyword, rule) in schema.as_object().into_iter().flatten() {
            let place = format!("{place}/{keyword}");
            match (keyword.as_str(), rule) {
                ("properties" | "$defs", Value::Object(inner)) => {
                    inner
                        .iter()
                        .for_each(|(name, rule)| self.schema(rule, &format!("{place}/{name}")));
                }
                ("oneOf", Value::Array(inner)) => {
                    inner.iter().for_each(|rule| self.schema(rule, &place));
                }
                ("items" | "additionalProperties" | "propertyNames", rule) => {
                    self.schema(rule, &place)
                }
                ("properties" | "$defs" | "oneOf", _) => panic!("{place}: {rule}"),
                _ => {}
            }
        }
    }
}

fn is_of(name: &Value, value: &Value) -> bool {
    match text(name) {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("`{other}` is no type"),
    }
}

fn limit(rule: &Value) -> f64 {
    rule.as_f64().expect("a limit is a number")
}

fn text(rule: &Value) -> &str {
    rule.as_str().expect("a name is a string")
}

fn pattern(rule: &Value) -> regex_lite::Regex {
    regex_lite::Regex::new(text(rule)).expect("a pattern is a regular expression")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_keyword_takes_what_keeps_it_and_refuses_what_does_not() {
        let inner = json!({"a": {"type": "null"}});
        for (schema, good, bad) in [
            (json!(true), json!(1), None),
            (json!(false), json!(1), Some(json!(1))),
            (json!({"type": "integer"}), json!(2.0), Some(json!(2.5))),
            (json!({"type": ["number", "null"]}), json!(null), Some(json!("1"))),
            (json!({"const": {"a": 1}}), json!({"a": 1}), Some(json!({"a": 2}))),
            (json!({"enum": ["x", "y"]}), json!("y"), Some(json!("z"))),
            (json!({"minimum": 0}), json!(0), Some(json!(-1))),
            (json!({"maximum": 1}), json!("no number"), Some(json!(1.1))),
            (json!({"exclusiveMinimum": 0}), json!(0.1), Some(json!(0))),
            (json!({"pattern": "^a+$"}), json!("aa"), Some(json!("ab"))),
            (json!({"minItems": 1}), json!([0]), Some(json!([]))),
            (json!({"maxItems": 1}), json!({}), Some(json!([0, 0]))),
            (json!({"items": {"type": "null"}}), json!([null]), Some(json!([null, 1]))),
            (json!({"required": ["a"]}), json!({"a": 1}), Some(json!({"b": 1}))),
            (json!({"properties": inner}), json!({"b": 1}), Some(json!({"a": 1}))),
            (json!({"additionalProperties": false}), json!({}), Some(json!({"a": 1}))),
            (json!({"properties": inner, "additionalProperties": false}), json!({"a": null}), None),
            (json!({"propertyNames": {"pattern": "^a$"}}), json!({"a": 1}), Some(json!({"b": 1}))),
            (json!({"oneOf": [{"minimum": 2}, {"maximum": 1}]}), json!(2), Some(json!(1.5))),
            (json!({"oneOf": [{"minimum": 1}, {"maximum": 3}]}), json!(0), Some(json!(2))),
            (json!({"$ref": "#/$defs/a", "$defs": inner}), json!(null), Some(json!(1))),
        ] {
            let expected = usize::from(schema == json!(false));
            assert_eq!(faults(&schema, &good).len(), expected, "{schema} {good}");
            if let Some(bad) = bad {
                assert_eq!(faults(&schema, &bad).len(), 1, "{schema} {bad}");
            }
        }
    }

    #[test]
    fn a_fault_names_its_place() {
        let schema = json!({"properties": {"a": {"items": {"type": "string"}}}});
        assert_eq!(faults(&schema, &json!({"a": ["x", 1]})), ["/a/1: 1 breaks type: \"string\""]);
    }

    #[test]
    fn a_malformed_schema_is_no_schema() {
        for bad in [
            json!({"format": "date"}),
            json!({"properties": {"x": {"items": {"typo": 1}}}}),
            json!({"$defs": {"unused": {"type": "real"}}}),
            json!({"oneOf": [{"pattern": "("}]}),
            json!({"$ref": "#/$defs/gone"}),
            json!({"minimum": "0"}),
            json!({"required": "a"}),
            json!("type"),
        ] {
            let result = std::panic::catch_unwind(|| assert_schema(&bad));
            assert!(result.is_err(), "{bad}");
        }
    }
}
