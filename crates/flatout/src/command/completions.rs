//! `flatout completions`: a script for a shell, made of the definition of the command line.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ValueEnum};
use clap_complete::{generate, shells};
use flatout_bench::versus::rival;

use crate::arguments::bench::Name;
use crate::arguments::completions::{Completions, Shell};
use crate::{arguments, conclusion, output};

/// Prints the script.
pub fn run(arguments: &Completions) -> ExitCode {
    output::print(&script(arguments.shell), conclusion::DONE)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut command = arguments::shown_definition().mut_subcommand("bench", |bench| {
        areas()
            .into_iter()
            .fold(bench, |bench, area| bench.mut_subcommand(area, |area| area.arg(further())))
    });
    // What is defined when its command is named, is defined now.
    command.build();
    for (name, operand, words) in words() {
        let known = PossibleValuesParser::new(words);
        command = command.mut_subcommand(name, |command| {
            command.mut_arg(operand, |operand| operand.value_parser(known))
        });
    }
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    match shell {
        Shell::Bash => {
            generate(shells::Bash, &mut command, name, &mut script);
            let own =
                String::from_utf8_lossy(&script).replace(" -F _flatout ", " -F _flatout_words ");
            script = format!("{BASH}{own}").into_bytes();
        }
        Shell::Zsh => {
            generate(shells::Zsh, &mut command, name, &mut script);
            script = or_area(&script);
        }
        Shell::Fish => {
            generate(shells::Fish, &mut command, name, &mut script);
            // What is generated for fish has options and commands only.
            let areas = areas().join(" ");
            let seen = format!("__fish_seen_subcommand_from {areas}");
            let bench = format!("__fish_flatout_using_subcommand bench; and {seen}");
            let line = format!("complete -c flatout -n '{bench}' -a '{areas}' -d 'Another area'\n");
            script.extend(line.into_bytes());
            for (name, _, words) in words() {
                let (when, words) = ("__fish_flatout_using_subcommand", words.join(" "));
                let line = format!("complete -c flatout -n '{when} {name}' -f -a '{words}'\n");
                script.extend(line.into_bytes());
            }
        }
    }
    script
}

/// Offers options where an option is begun, and files where they belong: what is generated for bash
/// offers options everywhere, and then no files.
const BASH: &str = r#"_flatout_words() {
    _flatout "$@"
    [[ $2 == -* ]] && return
    local word words=()
    for word in "${COMPREPLY[@]}"; do
        [[ $word == -* ]] || words+=("$word")
    done
    COMPREPLY=("${words[@]}")
    if [[ $3 != -* && ${COMP_WORDS[1]} == bench && " ${COMP_WORDS[*]} " == *" "@(disk|copy)" "* ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$2")
    fi
}

"#;

/// What `help` and `man` have something of.
const COMMANDS: [&str; 14] = [
    "bench",
    "read",
    "write",
    "copy",
    "cp",
    "sum",
    "versus",
    "compare",
    "tune",
    "report",
    "serve",
    "completions",
    "help",
    "man",
];

/// Operands that are words of ours: command, the operand's name, the words.
fn words() -> [(&'static str, &'static str, Vec<&'static str>); 3] {
    let all: Vec<&str> = COMMANDS.into_iter().chain(areas()).collect();
    let rivals = rival::ALL.iter().map(|rival| rival.name).collect();
    [("help", "words", all.clone()), ("man", "words", all), ("versus", "rivals", rivals)]
}

fn areas() -> Vec<&'static str> {
    Name::value_variants().iter().map(|area| area.word()).collect()
}

/// A further area behind the first.
fn further() -> Arg {
    let areas = PossibleValuesParser::new(areas());
    Arg::new("area").value_name("AREA").num_args(0..).help("Another area").value_parser(areas)
}

/// Offers zsh an area wherever a place may stand: its functions know one kind of word per place.
fn or_area(script: &[u8]) -> Vec<u8> {
    let areas = areas().join(" ");
    let either = format!(":{{_alternative \"areas:area:({areas})\" \"files:file:_files\"}}'");
    let line = |line: &str| match line.starts_with("'::place -- ") {
        true => line.replace(":_files'", &either),
        false => line.to_owned(),
    };
    let script = String::from_utf8_lossy(script);
    script.lines().map(|one| line(one) + "\n").collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_commands_are_known() {
        let shown = arguments::shown_definition();
        let names: Vec<&str> = shown.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(names, COMMANDS);
    }

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
