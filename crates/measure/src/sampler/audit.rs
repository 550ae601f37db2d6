//! Joins the counted facts of several trials into those of one row.

use serde_json::{Map, Number, Value};

/// Sums numbers and keeps the last of everything else.
pub(super) fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        let merged = match (into.get(key), value) {
            (Some(Value::Number(a)), Value::Number(b)) => Value::Number(sum(a, b)),
            _ => value.clone(),
        };
        into.insert(key.clone(), merged);
    }
}

/// Whole numbers stay whole as long as they fit.
fn sum(a: &Number, b: &Number) -> Number {
    if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64())
        && let Some(total) = a.checked_add(b)
    {
        return total.into();
    }
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64())
        && let Some(total) = a.checked_add(b)
    {
        return total.into();
    }
    let float = |number: &Number| number.as_f64().unwrap_or(0.0);
    Number::from_f64(float(a) + float(b)).unwrap_or_else(|| b.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn numbers_are_summed_and_the_last_of_others_kept() {
        let mut into = map(&json!({"bytes": 3, "share": 0.5, "engine": "a", "low": -2}));
        merge(&mut into, &map(&json!({"bytes": 4, "share": 0.25, "engine": "b", "low": 1})));
        let expected = json!({"bytes": 7, "share": 0.75, "engine": "b", "low": -1});
        assert_eq!(Value::Object(into), expected);
    }

    #[test]
    fn sums_that_do_not_fit_become_floats() {
        assert_eq!(sum(&u64::MAX.into(), &1.into()).as_f64(), Some(2_f64.powi(64)));
    }
}
