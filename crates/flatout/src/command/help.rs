//! `flatout help`: the help of the program, of a command, or of areas of bench.

use std::process::ExitCode;

use crate::arguments::help::{self, Page};
use crate::{conclusion, output};

/// Prints the help.
pub fn run(arguments: &Page) -> ExitCode {
    match help::definition(&arguments.words) {
        Ok(command) => output::show_help(&help::render(command, true)),
        Err(error) => {
            output::give_up(conclusion::WRONG_USE, &format!("{error} (see flatout --help)"))
        }
    }
}
