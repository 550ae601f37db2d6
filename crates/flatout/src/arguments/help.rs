//! `flatout help`, and what `--help` shows: the definition as [`super::shown_definition`] has it.

pub mod text;

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, Command};
use flatout_bench::option::distinct;
use flatout_report::text::Joined;

use super::bench::{self, Name};
use super::similar::unknown;
use super::{CP, MOST_COLUMNS, shown_definition};

pub(super) const AFTER: &str = "\
Examples:
  flatout help copy
  flatout help bench disk";

/// Options that `-h` leaves out, of whatever command.
const RARE: &str = "archive atomic always backup delete-excluded delta exclude-from force include interactive \
    itemize log max-delete max-fds max-memory max-size min-size newer no-preserve older preserve \
    reflink-dest resume sparse suffix symbolic-link update zero \
    caching drop-caches history seed split \
    datagram-size measure offload placement receiver sender wait \
    block-count color identify";
const RARE_OF_COPY: &str = "block-size engine iodepth";

// Of help and of man. A comment for people would be shown as what the command does.
#[derive(Debug, Clone, Args)]
pub struct Page {
    /// The command, and an area of bench [default: what there is]
    #[arg(value_name = "COMMAND")]
    pub words: Vec<String>,
}

/// The definition of a command, or of areas of bench, by its words.
///
/// Errors: one line that names the word that means nothing.
pub fn definition(words: &[String]) -> Result<Command, String> {
    let mut command = shown_definition();
    command.build();
    for (depth, word) in words.iter().enumerate() {
        if depth == 1 && words[0] == "bench" && words.len() > 2 {
            return together(&words[1..]);
        }
        let found = command.find_subcommand(word);
        command = found.cloned().ok_or_else(|| unknown(&command, word))?;
    }
    Ok(command)
}

/// The help of a definition, as wide as the terminal: all of it, or what fits a screen, as `-h` has it.
pub fn render(command: Command, is_long: bool) -> String {
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = flatout_sys::terminal::width_columns(&std::io::stdout()).map(usize::from);
    // None at all is how terminals say that they do not know.
    let is_known = |&columns: &usize| columns > 0;
    let columns = terminal.filter(is_known).or_else(|| asked().filter(is_known));
    let columns = columns.map_or(MOST_COLUMNS, |columns| columns.min(MOST_COLUMNS));
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).replace('-', " ");
    // To cp it is no option.
    let has_rest = command.get_subcommands().next().is_none() && name != "flatout cp";
    if is_long || !has_rest {
        let shown = command.mut_args(|argument| match argument.get_id() == "help" && has_rest {
            true => argument.help("Print help; -h: on one screen"),
            false => argument.hide_short_help(false),
        });
        let mut shown = shown.after_help(text::wrapped(&notes, columns)).term_width(columns);
        return shown.render_help().to_string();
    }
    let is_copy = name == "flatout copy";
    let examples = notes.split("\n\n").filter(|part| part.starts_with("Examples:"));
    let after = text::wrapped(&examples.joined("\n\n"), columns);
    let mut shown = command
        .mut_args(|argument| {
            let is = |names: &str| names.split(' ').any(|name| argument.get_long() == Some(name));
            let is_rare = is(RARE) || is_copy && is(RARE_OF_COPY);
            let argument = argument.hide_possible_values(true).help_heading(None::<&str>);
            if is_rare { argument.hide_short_help(true) } else { argument }
        })
        .mut_arg("help", |argument| argument.help("Print help; --help: all of it"))
        .after_help("")
        .max_term_width(usize::MAX)
        .term_width(usize::MAX);
    let whole = shown.render_help().to_string();
    let whole = whole.replace(" [default: see below]", "").replace(": see below", "");
    let options = text::shortened(whole.replace(", see below", "").trim_end(), columns);
    format!("{options}\n\n{after}\n\nAll options and defaults: {name} --help\n")
}

/// The definition of several areas.
fn together(words: &[String]) -> Result<Command, String> {
    for word in words {
        definition(&["bench".to_owned(), word.clone()])?;
    }
    let areas: Vec<Name> = words.iter().filter_map(|word| Name::of(word)).collect();
    let name = format!("flatout bench {}", words.join(" "));
    let command = bench::shown(&areas).max_term_width(MOST_COLUMNS);
    let mut command = command.bin_name(name.clone()).display_name(name);
    command.build();
    Ok(command)
}

/// The command of a command line, and the areas where that is bench; words that mean neither are
/// not among them.
pub fn words(argv: &[OsString]) -> Vec<String> {
    let definition = shown_definition();
    let mut words = argv.iter().skip(1).filter_map(|word| word.to_str());
    let command = words.find(|word| !word.starts_with('-'));
    let command = command.filter(|word| definition.find_subcommand(word).is_some());
    let Some(command) = command else { return Vec::new() };
    let mut found = vec![command.to_owned()];
    if command == "bench" {
        let areas = words.take_while(|word| *word != "--").filter(|word| Name::of(word).is_some());
        found.extend(distinct(areas, PartialEq::eq).into_iter().map(str::to_owned));
    }
    found
}

/// The command line that shows the help for this one.
pub fn pointer(argv: &[OsString]) -> String {
    let words = words(argv);
    ["flatout"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]).joined(" ")
}

/// The same of cp, by the name by which it was called.
pub fn pointer_of_cp() -> &'static str {
    match std::env::args_os().next() {
        Some(name) if is_cp(&name) => "cp --help",
        _ => "flatout cp --help",
    }
}

/// Whether a program of this path is called cp.
pub fn is_cp(path: impl AsRef<Path>) -> bool {
    path.as_ref().file_name() == Some(CP.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_command_line_tells_whose_help_is_wanted() {
        for (line, wanted) in [
            ("flatout", &[][..]),
            ("flatout --help", &[]),
            ("flatout nothing", &[]),
            ("flatout copy a b", &["copy"]),
            ("flatout copy bench b", &["copy"]),
            ("flatout bench --quick", &["bench"]),
            ("flatout bench --quick disk /data --rw x", &["bench", "disk"]),
            ("flatout bench cpu memory cpu", &["bench", "cpu", "memory"]),
            ("flatout transfer a b", &[]),
        ] {
            assert_eq!(words(&argv(line)), wanted, "{line}");
        }
    }

    #[test]
    fn an_area_shows_its_options_and_those_that_all_have() {
        let help = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            definition(&words).unwrap().render_help().to_string()
        };
        let disk = help(&["bench", "disk"]);
        assert!(disk.contains("--rw <") && disk.contains("--max-time"), "{disk}");
        assert!(!disk.contains("--connect") && !disk.contains("--order"), "{disk}");
        let both = help(&["bench", "cpu", "network"]);
        assert!(both.contains("Usage: flatout bench cpu network [OPTIONS]"), "{both}");
        assert!(both.contains("--connect") && both.contains("--order"), "{both}");
        assert!(definition(&["bench".into(), "dsik".into()]).unwrap_err().contains("'disk'"));
        assert!(definition(&["bnech".into()]).unwrap_err().contains("'flatout bench'"));
    }
}
