//! `--log`: a line of JSON for each thing done or not done, as it happens.
//!
//! It has its name as soon as it is begun: after a kill it says how far the copy came, except for
//! the last lines, which were still in memory.

use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::sync::Mutex;

use flatout_report::json;
use flatout_sys::descriptor;
use flatout_sys::lock::{lock, unlocked};
use flatout_tree::copy::options::Durability;
use serde_json::Value;

use crate::output::place::Place;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// A log that is written by many threads.
pub struct Log {
    place: Place,
    durability: Durability,
    state: Mutex<State>,
}

struct State {
    file: BufWriter<File>,
    /// The first error; nothing is written after it.
    error: Option<String>,
}

impl Log {
    /// Begins a log in an empty file, which is on storage when it ends if that is wanted.
    pub fn new(place: Place, file: File, durability: Durability) -> Self {
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let state = Mutex::new(State { file, error: None });
        Self { place, durability, state }
    }

    /// Writes a line.
    pub fn write(&self, value: &Value) {
        self.write_line(json::line(value).as_bytes());
    }

    /// Writes a line that is no JSON, with its end.
    pub fn write_line(&self, line: &[u8]) {
        let mut state = lock(&self.state);
        if state.error.is_none()
            && let Err(error) = state.file.write_all(line)
        {
            state.error = Some(self.place.failure(&error));
        }
    }

    /// Writes what is left, and hears what the filesystem has to say to that.
    pub fn finish(self) -> Result<(), String> {
        let State { file, error } = unlocked(self.state);
        if let Some(error) = error {
            return Err(error);
        }
        end(file, self.durability).map_err(|error| self.place.failure(&error))
    }
}

fn end(file: BufWriter<File>, durability: Durability) -> io::Result<()> {
    let file = file.into_inner().map_err(IntoInnerError::into_error)?;
    if durability == Durability::Durable {
        // With the name, which is new.
        rustix::fs::syncfs(&file)?;
    }
    descriptor::close(file.into())
}
