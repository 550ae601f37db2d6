//! The clients that wait at a server, as one of them is told of them.

use serde::{Deserialize, Serialize};

/// What a client waits for until its session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// How many wait before it, itself included; of those that are measured together, how many are there.
    pub waiting: u16,
    /// How many are measured together; 0: each for itself.
    pub together: u16,
}

impl Line {
    /// What it waits for.
    pub fn text(self) -> String {
        let Self { waiting, together } = self;
        match together {
            0 => format!("the server is busy, {waiting} waiting (with this one)"),
            _ => format!("together with others: {waiting} of {together} clients are there"),
        }
    }
}
