//! The file in which `flatout compare --noise` leaves what it learned.
//!
//! `$FLATOUT_NOISE` names it; an empty one says that there is none. Else it is
//! `flatout/noise.json` beside the profile. It holds one entry for each machine.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use flatout_measure::comparison::noise::{Learned, SCHEMA};
use serde_json::{Value, json};

use crate::{output, profile};

/// A machine with a thousand rows takes some 200 KiB.
const MOST_BYTES: u64 = 16 << 20;

/// Where it lies, if there is a place for it.
fn path() -> Option<PathBuf> {
    profile::beside("FLATOUT_NOISE", "noise.json")
}

/// What is known; nothing where there is no file. One that cannot be read is complained about.
pub fn load() -> Vec<Learned> {
    match read() {
        Ok(known) => known,
        Err(error) => {
            output::complain(&format!("{error}; going on without"));
            Vec::new()
        }
    }
}

fn read() -> Result<Vec<Learned>, String> {
    let Some(path) = path() else { return Ok(Vec::new()) };
    let fail = |cause: String| format!("cannot use the noise in {path:?}: {cause}");
    let mut text = String::new();
    match File::open(&path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error.to_string())),
        Ok(length) if length as u64 > MOST_BYTES => {
            return Err(fail(format!("it has more than {MOST_BYTES} bytes")));
        }
        Ok(_) => {}
    }
    let value: Value = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
    if value.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
        return Err(fail(format!("its schema is not {SCHEMA}")));
    }
    let machines = value.get("machines").cloned().unwrap_or_default();
    serde_json::from_value(machines).map_err(|error| fail(error.to_string()))
}

/// Refuses a place that cannot be written to, or holds something else, before anything is
/// measured. Returns it.
pub fn check() -> Result<PathBuf, String> {
    let path = path().ok_or(
        "there is no place for the noise: none of FLATOUT_NOISE, XDG_CONFIG_HOME and HOME names one",
    )?;
    read().map_err(|error| format!("{error}; it is left as it is"))?;
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(directory)
            .map_err(|error| format!("cannot make the directory {directory:?}: {error}"))?;
    }
    output::check_place(&path)?;
    Ok(path)
}

/// Puts what was learned of a machine in the place of what was known of it.
pub fn save(learned: &Learned) -> Result<PathBuf, String> {
    let path = check()?;
    let mut known = read()?;
    known.retain(|other| !other.is_of(&Value::Object(learned.machine.clone())));
    known.push(learned.clone());
    // A link to where somebody keeps it stays one.
    let path = path.canonicalize().unwrap_or(path);
    let text = serde_json::to_string_pretty(&json!({ "schema": SCHEMA, "machines": known }))
        .map_err(|error| error.to_string())?;
    output::replace(&path, format!("{text}\n").as_bytes())?;
    Ok(path)
}
