//! `flatout compare`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use flatout_bench::option::{Wish, count_to};
use flatout_report::Format;
use flatout_report::comparison::FORMATS;

use super::bench::Name;
use super::shared::{Talk, meant, repeated, results};
use super::wrong::first_wrong;

const AFTER: &str = include_str!("help/compare.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(
    after_help = AFTER,
    allow_negative_numbers = true,
    override_usage = "flatout compare [OPTIONS] OLD NEW [MORE]...\n       \
                      flatout compare --runs N [OPTIONS] [OLD_PROGRAM NEW_PROGRAM] [-- ARGS]\n       \
                      flatout compare --noise [OPTIONS] [FILE]... [-- ARGS]\n       \
                      flatout compare --trend [OPTIONS] FILE..."
)]
pub struct Compare {
    /// The old results, the new ones, and more that are held against the old ones
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// What the runs that are made are told to do
    #[arg(last = true, value_name = "ARGS", conflicts_with_all = ["area", "quick"])]
    pub words: Vec<OsString>,
    /// Another run of the old side; can be repeated
    #[arg(long, value_name = "FILE")]
    pub more_old: Vec<PathBuf>,
    /// Another run of the new side, if there is one NEW; can be repeated
    #[arg(long, value_name = "FILE")]
    pub more_new: Vec<PathBuf>,
    /// Rows whose whole interval lies within it are the same [default: 10]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Make N runs of each side now, OLD and NEW in turn; with --noise N runs [default there: 3]
    #[arg(
        short = 'n',
        long,
        aliases = ["rounds", "trials"],
        value_name = "N",
        help_heading = "Runs that are made",
        conflicts_with_all = ["more_old", "more_new"],
        value_parser = count_to(100)
    )]
    pub runs: Option<u32>,
    /// Areas of `flatout bench` to run [default: its short set of everything]
    #[arg(
        long,
        value_name = "AREA,…",
        help_heading = "Runs that are made",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub area: Vec<Name>,
    /// Make the runs with --quick
    #[arg(long, help_heading = "Runs that are made")]
    pub quick: bool,
    /// Give COMMAND to sh before each run of OLD; its state stays until --before-new changes it
    #[arg(long, value_name = "COMMAND", help_heading = "Runs that are made")]
    pub before_old: Option<OsString>,
    /// Give COMMAND to sh before each run of NEW
    #[arg(long, value_name = "COMMAND", help_heading = "Runs that are made")]
    pub before_new: Option<OsString>,
    /// Keep the runs as DIRECTORY/old/1.json and so on, beside those that are there
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath, help_heading = "Runs that are made")]
    pub keep: Option<PathBuf>,
    /// Learn how far runs of this machine differ by themselves, from FILEs or from runs made now
    #[arg(
        long,
        help_heading = "Noise",
        conflicts_with_all = ["threshold", "more_old", "more_new", "before_old", "before_new", "keep"]
    )]
    pub noise: bool,
    /// Say which rows changed their level over all FILEs, in the order of time, and since when
    #[arg(
        long,
        help_heading = "Trend",
        conflicts_with_all = ["threshold", "more_old", "more_new", "runs", "noise"]
    )]
    pub trend: bool,
    /// Form of the results: table, markdown, json, html [default: what FILE ends in]
    #[arg(long = "format", value_name = "FORMAT", value_parser = form(),
        hide_possible_values = true, help_heading = "Output")]
    pub wanted: Option<Format>,
    /// Write the results into FILE (replaced if it exists); - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true,
        value_parser = results(), value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Wish<PathBuf>,
    /// Show all rows, and what differs between the machines
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    #[command(flatten)]
    pub talk: Talk,
}

/// The names of the forms, which help and completions list.
fn form() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(FORMATS.map(Format::name)).try_map(|name| name.parse::<Format>())
}

impl Compare {
    /// The form that was asked for, else the one that the file's name ends in, else a table.
    pub fn format(&self) -> Format {
        self.wanted.or_else(|| meant(self.output.as_deref())).unwrap_or_default()
    }

    /// Says what makes no sense together.
    pub fn contradiction(&self) -> Option<String> {
        let count = self.files.len();
        let says_what_runs = !self.area.is_empty() || self.quick || !self.words.is_empty();
        let has_states = self.before_old.is_some() || self.before_new.is_some();
        let runs_are_made = says_what_runs || has_states || self.keep.is_some();
        let foreign = meant(self.output.as_deref()).filter(|form| !FORMATS.contains(form));
        if let (Some(form), None) = (foreign, self.wanted) {
            return Some(format!("no comparison is shown as {form}: .json, .html and .md are"));
        }
        let wrong = match (self.noise, self.runs) {
            (false, None) if self.trend => first_wrong! {
                runs_are_made => "nothing is run with --trend";
                count == 0 => "--trend needs FILEs: records, or a folder of them";
            },
            (true, runs) => first_wrong! {
                count > 0 && (runs.is_some() || says_what_runs) =>
                    "with FILEs nothing is run: no --runs, --area, --quick, ARGS";
                runs == Some(1) => "noise is learned from two runs at least";
                !matches!(self.format(), Format::Table | Format::Json) =>
                    "noise is shown as table or json";
            },
            (false, Some(_)) => first_wrong! {
                count == 0 && !has_states =>
                    "--runs compares two programs, or two states that --before-old and --before-new bring about";
                count != 0 && count != 2 => "--runs takes two programs, OLD and NEW, or none";
            },
            (false, None) => first_wrong! {
                runs_are_made => "nothing is run without --runs N (or --noise)";
                count < 2 => "two FILEs are needed, OLD and NEW";
                count > 2 && !self.more_new.is_empty() => "--more-new goes with one NEW only";
            },
        };
        wrong.or_else(|| repeated(self.inputs()))
    }

    /// Every file that is read, or folder of them.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().chain(&self.more_old).chain(&self.more_new)
    }
}

/// A share of one from percent, with or without the sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 1000.0 => Ok(percent / 100.0),
        _ => Err("a number of percent above 0 and up to 1000 is needed, such as 5 or 2.5%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_read_with_and_without_its_sign() {
        assert_eq!(percent("5"), Ok(0.05));
        assert_eq!(percent("2.5%"), Ok(0.025));
        assert_eq!(percent("10 %"), Ok(0.1));
        for wrong in ["", "%", "0", "-1", "nan", "inf", "1001", "5 %%", "five"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
