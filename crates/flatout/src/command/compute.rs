//! `flatout compute`: times one product, factorisation or stream, checks its result, and prints a
//! line of JSON.

use std::process::ExitCode;

use serde_json::json;

use crate::arguments::compute::Compute;
use crate::{conclusion, output};

/// Does the work.
pub fn run(arguments: &Compute) -> ExitCode {
    match arguments.job().run() {
        Ok(found) => output::print(format!("{}\n", json!(found)).as_bytes(), conclusion::DONE),
        Err(text) => output::give_up(conclusion::FAILED, &text),
    }
}
