//! `flatout completions`: a script for a shell, made of the definition of the command line.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::{Arg, Command, ValueEnum, ValueHint};
use clap_complete::{generate, shells};
use flatout_bench::versus::rival;
use flatout_report::text::Joined;

use crate::arguments::bench::Name;
use crate::arguments::completions::{Completions, Shell};
use crate::{arguments, conclusion, output};

/// Prints the script.
pub fn run(arguments: &Completions) -> ExitCode {
    output::deliver(None, &script(arguments.shell), conclusion::DONE)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut command = arguments::shown_definition().mut_subcommand("bench", |bench| {
        areas()
            .into_iter()
            .fold(bench, |bench, area| bench.mut_subcommand(area, |area| area.arg(further())))
    });
    for name in ["help", "man"] {
        command = with_pages(command, name);
    }
    // What is defined when its command is named, is defined now.
    command.build();
    command = told(command);
    for (name, operand, words) in words() {
        let known = PossibleValuesParser::new(words);
        command = command.mut_subcommand(name, |command| {
            command.mut_arg(operand, |operand| operand.value_parser(known))
        });
    }
    let name = command.get_name().to_owned();
    let lists = command.get_subcommands().flat_map(|one| lists(one, one.get_name()));
    let lists: Vec<List> = lists.collect();
    let mut script = Vec::new();
    match shell {
        Shell::Bash => {
            generate(shells::Bash, &mut command, name, &mut script);
            let own =
                String::from_utf8_lossy(&script).replace(" -F _flatout ", " -F _flatout_words ");
            let lists = lists.iter().map(|list| format!("--{}", list.option)).joined("|");
            let of_areas = BASH.replace("AREAS", &areas().join("|")).replace("LISTS", &lists);
            script = format!("{of_areas}{own}").into_bytes();
        }
        Shell::Zsh => {
            generate(shells::Zsh, &mut command, name, &mut script);
            script = zsh(&script, &lists);
        }
        Shell::Fish => {
            generate(shells::Fish, &mut command, name, &mut script);
            // What is generated for fish has options and commands only.
            let areas = areas().join(" ");
            let bench = "__fish_flatout_using_subcommand bench; and __fish_seen_subcommand_from";
            let line = format!("-n '{bench} {areas}' -a '{areas}' -d 'Another area'");
            let no_files = format!("-n '{bench} {areas}; and not {PLACED}' -f");
            let operands = words().into_iter().map(|(name, _, words)| {
                let words = words.join(" ");
                format!("-n '__fish_flatout_using_subcommand {name}' -f -a '{words}'")
            });
            let lists = lists.into_iter().map(|List { command, option, words }| {
                let using = format!("-n '__fish_flatout_using_subcommand {command}' -l {option}");
                format!("{using} -r -f -a '(__fish_flatout_list {words})'")
            });
            let further = ["help", "man"].map(|name| {
                let using = format!("-n '__fish_flatout_using_subcommand {name}");
                format!("{using}' -f\ncomplete -c flatout {using}; and {SEEN} bench' -a '{areas}'")
            });
            script.extend(FISH.as_bytes());
            let own = [line, no_files].into_iter().chain(operands).chain(lists).chain(further);
            for line in own {
                script.extend(format!("complete -c flatout {line}\n").into_bytes());
            }
        }
    }
    script
}

/// Whether a word stands there.
const SEEN: &str = "__fish_seen_subcommand_from";
/// Whether an area is named that a place may follow.
const PLACED: &str = "__fish_seen_subcommand_from disk copy";

/// The words that may follow the items of a list.
const FISH: &str = include_str!("completions/own.fish");

/// Completes the last item of a list, and
/// offers options where an option is begun, files where they belong, and words behind `--option=`,
/// which is three words to bash: what is generated for bash offers options everywhere, and then no
/// files. What is generated knows the options of one area: where several are named it is asked for
/// each, and who does not know the option before the word has nothing to say.
const BASH: &str = include_str!("completions/own.bash");

/// Values of options that the parser takes as text, since they stand in lists or have short forms.
const VALUES: [(&str, &[&str]); 10] = [
    ("preserve", PRESERVED),
    ("no-preserve", PRESERVED),
    ("no_preserve", PRESERVED),
    ("protocols", &["tcp", "udp"]),
    ("directions", &["up", "down", "both"]),
    ("reflink", WHEN),
    ("sparse", WHEN),
    ("backup", &["none", "simple", "existing", "numbered"]),
    ("update", &["all", "none", "none-fail", "older"]),
    (
        "corpus",
        &["small-files", "one-directory", "source-tree", "sparse", "large", "large-one", "all"],
    ),
];
const PRESERVED: &[&str] = &["mode", "ownership", "timestamps", "links", "context", "xattr", "all"];
const WHEN: &[&str] = &["auto", "always", "never"];

/// Tells of each value what it is: a word, a path, or neither.
fn told(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let takes_values = argument.get_num_args().is_some_and(|count| count.takes_values());
        if !takes_values || !argument.get_possible_values().is_empty() {
            return argument;
        }
        let id = argument.get_id().to_string();
        if let Some((_, words)) = VALUES.iter().find(|(known, _)| *known == id) {
            let argument = argument.default_missing_value(None);
            return argument.value_parser(PossibleValuesParser::new(*words));
        }
        let value = argument.get_value_names().and_then(|names| names.first());
        let value = value.map(|name| name.to_string()).unwrap_or_default();
        let hint = match (argument.get_value_hint(), value.as_str()) {
            (ValueHint::Unknown, "FILE" | "SOURCE" | "PATH" | "OLD" | "NEW") => ValueHint::AnyPath,
            (ValueHint::Unknown, "DIR" | "DIRECTORY") => ValueHint::DirPath,
            (ValueHint::Unknown, "COMMAND") => ValueHint::CommandString,
            (ValueHint::Unknown, "HOST[:PORT]") => ValueHint::Hostname,
            (ValueHint::Unknown, _) if !argument.is_positional() => ValueHint::Other,
            (known, _) => known,
        };
        argument.value_hint(hint)
    });
    command.mut_subcommands(told)
}

/// Operands that are words of ours: command, the operand's name, the words.
fn words() -> [(&'static str, &'static str, Vec<&'static str>); 2] {
    let variants = ["cp", "rsync"].into_iter();
    let rivals = variants.chain(rival::ALL.iter().map(|rival| rival.name)).collect();
    [("versus", "rivals", rivals), ("completions", "shell", vec!["bash", "zsh", "fish"])]
}

/// Has the commands, and behind bench the areas, as commands of `help` or of `man`.
fn with_pages(program: Command, name: &str) -> Command {
    let plain = |name: &str, about: Option<&StyledStr>| {
        // The definition keeps names for ever, and is made once.
        let page = Command::new(&*name.to_owned().leak()).about(about.cloned().unwrap_or_default());
        page.disable_help_flag(true).disable_help_subcommand(true)
    };
    let pages: Vec<Command> = program
        .get_subcommands()
        // To fish its own name stands there already.
        .filter(|command| command.get_name() != name)
        .map(|command| {
            let page = plain(command.get_name(), command.get_about());
            let areas = command.get_subcommands();
            page.subcommands(
                areas.map(|area| plain(area.get_name(), area.get_about()).arg(further())),
            )
        })
        .collect();
    program.mut_subcommand(name, |old| plain(name, old.get_about()).subcommands(pages))
}

/// An option that takes several words with commas between them.
struct List {
    command: String,
    option: String,
    words: String,
}

/// Those of a command, and of its areas.
fn lists(of: &Command, command: &str) -> Vec<List> {
    let own = of.get_arguments().filter_map(|argument| {
        let is_called_so = argument.get_value_names().is_some_and(|names| names[0] == "LIST");
        let is_list = is_called_so || argument.get_value_delimiter().is_some();
        let words = argument.get_possible_values();
        let words = words.iter().map(|word| word.get_name()).joined(" ");
        let option = argument.get_long().filter(|_| is_list && !words.is_empty())?;
        let [command, option] = [command, option].map(str::to_owned);
        Some(List { command, option, words })
    });
    own.chain(of.get_subcommands().flat_map(|area| lists(area, command))).collect()
}

fn areas() -> Vec<&'static str> {
    Name::value_variants().iter().map(|area| area.word()).collect()
}

/// A further area behind the first.
fn further() -> Arg {
    let areas = PossibleValuesParser::new(areas());
    Arg::new("area").value_name("AREA").num_args(0..).help("Another area").value_parser(areas)
}

/// Corrects what is generated for zsh: an area is offered wherever a place may stand, since its
/// functions know one kind of word per place; options go on behind an operand; and the name of a
/// value has no colon, which ends it. Where several areas are named it is asked for each. Of a list
/// the last item is completed.
fn zsh(script: &[u8], lists: &[List]) -> Vec<u8> {
    let areas = areas().join(" ");
    let either = format!(":{{_alternative \"areas:area:({areas})\" \"files:file:_files\"}}'");
    let line = |line: &str| match line.starts_with("'::place -- ") {
        true => line.replace(":_files'", &either),
        false => line.replace("'*::", "'*:").replace(":HOST[:PORT]:", ":HOST:"),
    };
    let script = String::from_utf8_lossy(script);
    let mut script: String = script.lines().map(|one| line(one) + "\n").collect();
    for List { option, words, .. } in lists {
        let items = format!("{{compset -P \"*,\"; compadd - {words}}}");
        let named = format!("--{option}=[");
        let starts: Vec<_> = script.match_indices(&named).map(|(at, _)| at).collect();
        for at in starts.into_iter().rev() {
            let spec = script[at..].split("' \\\n").next().unwrap_or_default();
            let begin = spec.find(":((").or(spec.rfind(":("));
            if let Some(begin) = begin.filter(|_| spec.ends_with(')')) {
                script.replace_range(at + begin + 1..at + spec.len(), &items);
            }
        }
    }
    let wrapped = format!("{}_flatout_area() {{", ZSH.replace("AREAS", &areas));
    script.replacen("_flatout() {", &wrapped, 1).into_bytes()
}

/// Asks for each area that is named.
const ZSH: &str = include_str!("completions/own.zsh");

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
