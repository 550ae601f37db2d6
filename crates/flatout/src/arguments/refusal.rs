//! A command line that cannot be obeyed, or that asks for help: what is said of it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use flatout_report::text::Joined;

use super::bench::Name;
use super::cp::defined::OPTIONS;
use super::similar::{similar, unknown};
use super::{CP, help};

/// What is wrong with a command line.
pub struct Refusal {
    /// What clap has to say.
    pub error: clap::Error,
    /// The arguments.
    pub argv: Vec<OsString>,
}

impl Refusal {
    /// Whether the command line asks for JSON, so that the refusal must be JSON too.
    pub fn wants_json(&self) -> bool {
        let is_pair = |pair: &[OsString]| pair[0] == "--format" && pair[1] == "json";
        self.argv.windows(2).any(is_pair) || self.argv.iter().any(|word| word == "--format=json")
    }

    /// The help that was asked for.
    pub fn help(&self) -> String {
        let words = help::words(&self.argv);
        let is_long = self.argv.iter().any(|word| word == "--help");
        match help::definition(&words) {
            Ok(command) => help::render(command, is_long),
            Err(error) => error,
        }
    }

    /// One line that says what is wrong, and what may have been meant.
    pub fn line(&self) -> String {
        if self.is_of_cp()
            && let Some(line) = line_of_cp(&self.error, &self.argv)
        {
            return line;
        }
        let line = one_line(&self.error);
        if let Some(word) = self.context(ContextKind::InvalidSubcommand) {
            return unknown(&super::shown_definition(), word);
        }
        if let Some((option, value)) = self.negative() {
            return format!("invalid value '{value}' for '{option}': {NEGATIVE}");
        }
        if let Some(meant) = self.option_meant() {
            return format!("{line}; did you mean '{meant}'?");
        }
        let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
        let Some(meant) = kinds.iter().find_map(|kind| self.context(*kind)) else { return line };
        // Clap finds `xml` like `html`, and `--list` like `--history`.
        let kinds = [ContextKind::InvalidArg, ContextKind::InvalidValue];
        let bare = |word: &'_ str| word.trim_start_matches('-').to_owned();
        let words = kinds.map(|kind| self.context(kind).map(bare));
        if !words.iter().flatten().any(|word| similar(word, [bare(meant).as_str()]).is_some()) {
            return line;
        }
        let shown = help::definition(&help::words(&self.argv)).ok();
        let shown = shown.and_then(|command| visible_name(&command, meant));
        format!("{line}; did you mean '{}'?", shown.as_deref().unwrap_or(meant))
    }

    /// Whether the command is cp, which has words of its own.
    pub fn is_of_cp(&self) -> bool {
        // Asked of everything, the version included: without the definition, which is 110 pages.
        let mut words = self.argv.iter().skip(1);
        words.find(|word| !word.as_encoded_bytes().starts_with(b"-")).is_some_and(|word| word == CP)
    }

    fn context(&self, kind: ContextKind) -> Option<&str> {
        match self.error.get(kind)? {
            ContextValue::String(word) => Some(word.as_str()),
            ContextValue::Strings(words) => words.first().map(String::as_str),
            _ => None,
        }
    }

    /// What is meant by an option that is called like an area, or like a value of an option, or that
    /// another program has under this name.
    fn option_meant(&self) -> Option<String> {
        if self.error.kind() != ErrorKind::UnknownArgument {
            return None;
        }
        let word = self.context(ContextKind::InvalidArg)?.strip_prefix("--")?;
        let words = help::words(&self.argv);
        if words.first().is_some_and(|command| command == "bench") && Name::of(word).is_some() {
            return Some(format!("flatout bench {word}"));
        }
        let command = help::definition(&words).ok()?;
        let takes = |argument: &&Arg| {
            argument.get_possible_values().iter().any(|value| value.get_name() == word)
        };
        if let Some(option) = command.get_opts().filter(takes).find_map(Arg::get_long) {
            return Some(format!("--{option} {word}"));
        }
        let has = |meant: &str| {
            let name = meant.trim_start_matches('-').split([' ', '=']).next();
            command.get_opts().any(|option| option.get_long() == name)
        };
        let is_meant = |(meant, words): &&(&str, &[&str])| words.contains(&word) && has(meant);
        OTHER_OPTIONS.iter().find(is_meant).map(|(meant, _)| (*meant).to_owned())
    }

    /// The value that clap takes for an option, as `-4K` in `-b -4K`, and the option before it.
    fn negative(&self) -> Option<(&str, &str)> {
        let word = self.context(ContextKind::InvalidArg)?;
        let is_number = |text: &str| {
            text.strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        let pairs = self.argv.windows(2).map(|pair| (pair[0].to_str(), pair[1].to_str()));
        let pairs = pairs.filter_map(|(option, value)| Some((option?, value?)));
        let is_meant = |&(option, value): &(&str, &str)| {
            option.starts_with('-')
                && !is_number(option)
                && is_number(value)
                && value.starts_with(word)
        };
        pairs.filter(|_| is_number(word)).find(is_meant)
    }
}

/// What others call the options.
const OTHER_OPTIONS: [(&str, &[&str]); 20] = [
    ("--bind", &["address", "host", "listen"]),
    ("--block-count", &["count"]),
    ("--block-size", &["len", "length"]),
    ("--connect", &["client", "host", "server"]),
    ("--digest", &["algorithm"]),
    ("--directory", &["dir", "path"]),
    ("--direction both", &["bidir"]),
    ("--files", &["nrfiles"]),
    ("--iodepth", &["qd", "queue-depth"]),
    ("--link-dest", &["compare-dest", "copy-dest"]),
    ("--output", &["file", "out"]),
    ("--protocol udp", &["udp"]),
    ("--quick-check", &["size-only"]),
    ("--rate", &["bandwidth", "bitrate", "rate_iops"]),
    ("--runs", &["count", "iterations", "loops", "repeat"]),
    ("--streams", &["parallel"]),
    ("--sync", &["fdatasync", "fsync", "oflag"]),
    ("--threads", &["jobs", "num-threads", "parallel", "workers"]),
    ("--update=none", &["ignore-existing"]),
    ("--verbose", &["progress", "stats"]),
];

/// The option that help shows for this one, which may be an older name of it.
fn visible_name(command: &Command, option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    let is_meant =
        |argument: &&Arg| argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&name));
    let long = command.get_arguments().find(is_meant)?.get_long()?;
    Some(format!("--{long}"))
}

/// What is wrong with an option; `None`: it is something else.
fn line_of_cp(error: &clap::Error, argv: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return None };
    let shown = shown.split([' ', '=', '[']).next()?;
    Some(match (error.kind(), shown.strip_prefix("--")) {
        (ErrorKind::UnknownArgument, Some(begun)) => {
            let mut known = OPTIONS.iter().map(|option| option.1).collect::<Vec<_>>();
            known.extend(["help", "version"]);
            known.retain(|name| name.starts_with(begun));
            known.sort_unstable();
            if known.len() < 2 {
                return Some(format!("unrecognized option '{shown}'"));
            }
            let known: String = known.iter().map(|name| format!(" '--{name}'")).collect();
            format!("option '{shown}' is ambiguous; possibilities:{known}")
        }
        (ErrorKind::UnknownArgument, None) => {
            format!("invalid option -- '{}'", shown.trim_start_matches('-'))
        }
        (ErrorKind::TooManyValues, _) => format!("option '{shown}' doesn't allow an argument"),
        (ErrorKind::InvalidValue, _) => {
            let last = argv.last()?.to_string_lossy();
            match last.strip_prefix("--") {
                Some(_) => format!("option '{last}' requires an argument"),
                None => format!("option requires an argument -- '{}'", last.chars().last()?),
            }
        }
        _ => return None,
    })
}

/// Clap's first paragraph, without its own prefix, as one line.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraph = first.split("\n\n").next().unwrap_or(first);
    // What the standard library says of a number that is none, and clap of one out of range.
    let none = ["invalid digit found in string", "cannot parse integer from empty string"];
    let said = paragraph.split_whitespace().joined(" ");
    let value = said.split('\'').nth(1).and_then(|value| value.strip_prefix('-'));
    let is_negative = value.is_some_and(|value| value.parse::<u64>().is_ok());
    let why = if is_negative { NEGATIVE } else { NO_NUMBER };
    let line = none.iter().fold(said, |line, said| line.replace(said, why));
    let line = line.replace("number too large to fit in target type", TOO_LARGE);
    let Some((before, range)) = line.split_once(" is not in ") else { return line };
    match (before.rsplit_once(": "), range.split_once("..=")) {
        (Some((before, _)), Some((from, to))) => {
            let value = before.split('\'').nth(1).and_then(|value| value.parse::<i128>().ok());
            let is_above = value.zip(to.parse().ok()).is_some_and(|(value, to)| value > to);
            // The ends of a type are no limits of ours.
            let is_type = [u32::MAX.into(), u64::MAX].iter().any(|most| most.to_string() == to);
            if from == "0" && value.is_some_and(|value| value < 0) {
                format!("{before}: {NEGATIVE}")
            } else if is_type && is_above {
                format!("{before}: {TOO_LARGE}")
            } else if is_type {
                format!("{before}: it must be {from} or more")
            } else {
                format!("{before}: it must be from {from} to {to}")
            }
        }
        _ => line,
    }
}

const NO_NUMBER: &str = "it is no whole number";
const TOO_LARGE: &str = "it is too large";
const NEGATIVE: &str = "it is negative";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parse;

    fn refusal(line: &str) -> Refusal {
        *parse(line.split(' ').map(OsString::from)).unwrap_err()
    }

    #[test]
    fn json_is_seen_even_in_a_command_line_that_makes_no_sense() {
        assert!(refusal("flatout read --format json --wrong").wants_json());
        assert!(refusal("flatout --format=json").wants_json());
        assert!(!refusal("flatout read json --wrong").wants_json());
    }

    #[test]
    fn what_was_meant_is_guessed() {
        for (line, meant) in [
            ("flatout bnech", "'flatout bench'"),
            ("flatout dsik", "there are bench, read"),
            ("flatout disk", "'flatout bench disk'"),
            ("flatout bench disk --blocksize 4K", "'--block-size'"),
            ("flatout bench disk --patern read", "'--rw'"),
            ("flatout report --format jsn x", "'json'"),
            ("flatout report --format xml x", "fio-json]"),
            ("flatout bench cpu -j many", "it is no whole number"),
            ("flatout bench -n 99999999999999999999", "'--runs <N>': it is too large"),
            ("flatout bench --runs=", "'--runs <N>': it is no whole number"),
            ("flatout bench disk -b -4K", "invalid value '-4K' for '-b': it is negative"),
            ("flatout bench --max-time -5s", "'-5s' for '--max-time': it is negative"),
            ("flatout bench cpu --order -5", "'--order <N>': it is negative"),
            ("flatout copy --max-fds 1 x y", "it must be 16 or more"),
            ("flatout read x --block-count 0", "it must be 1 or more"),
            ("flatout serve --port -1", "'--port <PORT>': it is negative"),
            ("flatout bench -n 0", "'--runs <N>': it must be from 1 to 10000"),
            ("flatout bench --list", "'--list' found"),
            ("flatout copy --frobnicate a b", "'--frobnicate' found"),
            ("flatout trasnfer", "there are bench"),
            ("flatout iperf3", "'flatout bench network'"),
            ("flatout cp -az x y", "invalid option -- 'z'"),
            ("flatout cp --none x y", "unrecognized option '--none'"),
            ("flatout cp --p x y", "'--p' is ambiguous; possibilities: '--parents' '--preserve'"),
            ("flatout cp x --target", "option '--target' requires an argument"),
            ("flatout cp x -at", "option requires an argument -- 't'"),
            ("flatout cp --recursive=x y z", "option '--recursive' doesn't allow an argument"),
            ("flatout cp --preserve= y z", "ambiguous argument '' for '--preserve'"),
            ("flatout cp --reflink= y z", "ambiguous argument '' for '--reflink'"),
            ("flatout sha256sum x", "'flatout sum'"),
            ("flatout version", "'flatout --version'"),
            ("flatout sum --sha256 x", "'--digest sha256'"),
            ("flatout report --html x", "'--format html'"),
            ("flatout bench --disk", "'flatout bench disk'"),
            ("flatout bench disk --queue-depth 4", "'--iodepth'"),
            ("flatout bench network --parallel 4", "'--streams'"),
            ("flatout bench network --udp", "'--protocol udp'"),
            ("flatout copy --ignore-existing x y", "'--update=none'"),
            ("flatout sum --algorithm sha256 x", "'--digest'"),
            ("flatout serve --host 0.0.0.0", "'--bind'"),
        ] {
            let said = refusal(line).line();
            assert!(said.contains(meant) && !said.contains("transfer'?"), "{line}: {said}");
        }
        let conflict = refusal("flatout versus --cold --state cold").line();
        assert!(!conflict.contains("did you mean"), "{conflict}");
    }
}
