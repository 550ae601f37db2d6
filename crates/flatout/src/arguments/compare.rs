//! `flatout compare`.

use std::path::{Path, PathBuf};

use clap::Args;
use flatout_report::comparison::Form;

const AFTER: &str = "\
Each FILE is what --format json or --format html of any command left; - is standard input. Rows are
matched by id and parameters. A row is
  worse, better  significant (Mann-Whitney U; all rows counted in, Benjamini-Hochberg), and the
                 whole 95 % interval of NEW/OLD lies beyond the threshold
  same           the whole interval lies within the threshold
  unclear        neither is shown; about how many more runs would show it is said
Whether more or less is better, each row knows. What differs between the machines comes first.

The threshold is the noise of this machine, if `flatout compare --noise` has learned it, else
10 %, in a virtual machine 25 %. Two runs differ by more than the samples of one run say; only runs
know by how much. It is kept in the file that FLATOUT_NOISE names (empty: none), else in
flatout/noise.json beside the profile.

Exit codes: 0 same or better, 1 worse, 2 wrong use or a FILE that cannot be read, 3 nothing matches,
4 unclear; the first of 1, 4, 3 that some row or NEW calls for.

Examples:
  flatout compare old.json new.json
  flatout compare old.json new.json newer.json     each against the first
  flatout compare old.json new.json --more-old old2.json --more-new new2.json
                                                   two runs of each side, when rows are unclear
  flatout compare old.html new.html --format markdown   for a pull request
  flatout bench syscall --format json | flatout compare old.json -
  flatout compare --noise                          three runs of the short bench, about 5 minutes
  flatout compare --noise a.json b.json c.json     learn from runs that there are already";

#[derive(Debug, Clone, Args)]
#[command(
    after_help = AFTER,
    override_usage = "flatout compare [OPTIONS] OLD NEW [MORE]...\n       \
                      flatout compare --noise [OPTIONS] [FILE]..."
)]
pub struct Compare {
    /// The old results, the new ones, and more that are held against the old ones
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Another run of the old side; can be repeated
    #[arg(long, value_name = "FILE")]
    pub more_old: Vec<PathBuf>,
    /// Another run of the new side, if there is one NEW; can be repeated
    #[arg(long, value_name = "FILE")]
    pub more_new: Vec<PathBuf>,
    /// Differences up to this many percent count as the same [default: the noise learned, or 10]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// Learn how far runs of this machine differ by themselves, from FILEs or from runs made now
    #[arg(long, help_heading = "Noise", conflicts_with_all = ["threshold", "more_old", "more_new"])]
    pub noise: bool,
    /// Runs to make when no FILE is given [default: 3]
    #[arg(
        long,
        value_name = "N",
        help_heading = "Noise",
        requires = "noise",
        value_parser = clap::value_parser!(u32).range(2..=100)
    )]
    pub runs: Option<u32>,
    /// Areas of `flatout bench` to run [default: its short set of everything]
    #[arg(
        long,
        value_name = "AREA,…",
        help_heading = "Noise",
        requires = "noise",
        value_delimiter = ',',
        value_parser = ["disk", "cache", "syscall", "cpu", "memory", "network"],
        hide_possible_values = true
    )]
    pub area: Vec<String>,
    /// Make the runs with --quick
    #[arg(long, help_heading = "Noise", requires = "noise")]
    pub quick: bool,
    /// Form of the results: table, markdown, json, html
    #[arg(long, value_name = "FORMAT", default_value = "table", help_heading = "Output")]
    pub format: Form,
    /// Write the results into FILE (replaced if it exists) instead of to standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

impl Compare {
    /// Says what makes no sense together.
    pub fn contradiction(&self) -> Option<String> {
        let inputs = self.inputs();
        if inputs.iter().filter(|path| **path == Path::new("-")).count() > 1 {
            return Some("- can be given once: standard input is read once".to_owned());
        }
        if self.noise {
            if self.files.len() == 1 {
                return Some("noise is learned from two FILEs at least, or from none".to_owned());
            }
            let is_run_option = self.runs.is_some() || !self.area.is_empty() || self.quick;
            if !self.files.is_empty() && is_run_option {
                return Some("with FILEs nothing is run: no --runs, --area, --quick".to_owned());
            }
            let is_known = matches!(self.format, Form::Table | Form::Json);
            return (!is_known).then(|| "noise is shown as table or json".to_owned());
        }
        match self.files.len() {
            0 | 1 => Some("two FILEs are needed, OLD and NEW".to_owned()),
            2 => None,
            _ if self.more_new.is_empty() => None,
            _ => Some("--more-new goes with one NEW only".to_owned()),
        }
    }

    /// Every file that is read.
    pub fn inputs(&self) -> Vec<&Path> {
        let all = self.files.iter().chain(&self.more_old).chain(&self.more_new);
        all.map(PathBuf::as_path).collect()
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
