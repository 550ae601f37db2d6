//! `flatout completions`: a script for a shell, made of the definition of the command line.

use std::process::ExitCode;

use clap_complete::{generate, shells};

use crate::arguments::completions::{Completions, Shell};
use crate::{arguments, conclusion, output};

/// Prints the script.
pub fn run(arguments: &Completions) -> ExitCode {
    output::print(&script(arguments.shell), conclusion::DONE)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut command = arguments::shown_definition();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    match shell {
        Shell::Bash => generate(shells::Bash, &mut command, name, &mut script),
        Shell::Zsh => generate(shells::Zsh, &mut command, name, &mut script),
        Shell::Fish => generate(shells::Fish, &mut command, name, &mut script),
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_completed_and_no_hidden_one() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell)).unwrap();
            for word in ["bench", "report", "copy", "openmetrics", "identify"] {
                assert!(script.contains(word), "{shell:?}: {word}");
            }
            assert!(!script.contains("transfer"), "{shell:?}");
        }
    }
}
