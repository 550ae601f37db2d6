//! The file in which `flatout compare --noise` leaves what it learned, one entry for each machine:
//! `$FLATOUT_NOISE`, else `flatout/noise.json` beside the profile.

use std::path::PathBuf;
use std::sync::Arc;

use flatout_measure::comparison::noise::{Learned, Noise, SCHEMA};
use serde_json::{Value, json};

use crate::output;
use crate::own_file::{OwnFile, Unusable};

/// A machine with a thousand rows takes some 200 KiB.
pub const FILE: OwnFile<Vec<Learned>> = OwnFile {
    noun: "noise",
    named: "FLATOUT_NOISE",
    file: "noise.json",
    most_bytes: 16 << 20,
    otherwise: "",
    parse,
};

/// What is known; nothing where there is no file. One that cannot be read is complained about.
pub fn load() -> Vec<Learned> {
    match FILE.read() {
        None => Vec::new(),
        Some(Ok(known)) => known,
        Some(Err(Unusable { text, .. })) => {
            output::complain(&format!("{text}; going on without"));
            Vec::new()
        }
    }
}

/// What is known of the machine with this environment, where it was quiet.
pub fn of(environment: &Value) -> Option<Arc<Noise>> {
    let known = load();
    let is_meant = |learned: &&Learned| learned.is_of(environment);
    let own = known.iter().find(is_meant).filter(|own| own.busy_share().is_none());
    own.map(|own| Arc::new(Noise::of(own)))
}

fn parse(text: &str) -> Result<Vec<Learned>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
        return Err(format!("its schema is not {SCHEMA}"));
    }
    let machines = value.get("machines").cloned().unwrap_or_default();
    serde_json::from_value(machines).map_err(|error| error.to_string())
}

/// Puts what was learned of a machine in the place of what was known of it.
pub fn save(learned: &Learned) -> Result<PathBuf, String> {
    FILE.change(|mut known| {
        known.retain(|other| !other.is_of(&Value::Object(learned.machine.clone())));
        known.push(learned.clone());
        json!({ "schema": SCHEMA, "machines": known })
    })
}
