//! The record for programs: JSON, CSV, OpenMetrics, Go's benchmark lines, fio's JSON.

use std::borrow::Cow;

use flatout_measure::record::Record;
use serde_json::Value;

use crate::identity::{self, Identity};

pub mod csv;
pub mod fio_json;
pub(crate) mod go_bench;
pub mod json;
pub(crate) mod openmetrics;

/// The record as far as it may be told.
pub(crate) fn told(record: &Record, identity: Identity) -> Cow<'_, Record> {
    match identity {
        Identity::Hidden => Cow::Owned(identity::hidden(record)),
        Identity::Shown => Cow::Borrowed(record),
    }
}

/// A value without the quotes of a text.
fn raw(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
