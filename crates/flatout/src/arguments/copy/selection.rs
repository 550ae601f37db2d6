//! What is copied: `--include`, `--exclude` and the like. The order in which rules are given counts.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, Args, ValueHint};
use flatout_bench::option::size;
use flatout_io::{cause_text, escape, quote};
use flatout_sys::cancel::CancelToken;
use flatout_sys::input;
use flatout_tree::selection::listed::Listed;
use flatout_tree::selection::rule::{Rule, Verdict};
use flatout_tree::selection::{Moment, Selection as Selected};
use rustix::fs::{FileType, Stat};

use super::age::age;
use crate::arguments::in_order::{InOrder, Said};
use crate::conclusion::Refused;
use crate::output::place::{Identity, identity};

const HEADING: &str = "Selection";

#[derive(Debug, Clone, Default, Args)]
pub struct Selection {
    #[command(flatten)]
    filters: InOrder<Filter>,
    /// Leave out what .gitignore files exclude; those in SOURCE, as git does
    #[arg(long, help_heading = HEADING)]
    gitignore: bool,
    /// Copy only the paths below SOURCE that FILE lists, a line each; DIR is the directory alone, DIR/ with
    /// all that is in it; - is standard input
    #[arg(long, value_name = "FILE", value_parser = super::path(), value_hint = ValueHint::FilePath, help_heading = HEADING)]
    pub files_from: Option<PathBuf>,
    /// Names and patterns in files end with NUL, not with the line
    #[arg(long, help_heading = HEADING)]
    zero: bool,
    /// Leave out files that are smaller
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = HEADING)]
    min_size: Option<u64>,
    /// Leave out files that are larger
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = HEADING)]
    max_size: Option<u64>,
    /// Copy what was modified within this time (90s, 5m, 12h, 7d, 4w) or since this date
    /// (2026-11-24, '2026-11-24 18:30', in the zone of TZ, else /etc/localtime); directories always
    #[arg(long, value_name = "AGE", value_parser = age, help_heading = HEADING)]
    newer: Option<Moment>,
    /// Copy what was modified before that
    #[arg(long, value_name = "AGE", value_parser = age, help_heading = HEADING)]
    older: Option<Moment>,
}

/// A rule, or a file of them.
#[derive(Debug, Clone)]
enum Filter {
    Rule(Rule),
    /// Those before it do not count.
    Forget,
    File(PathBuf),
}

impl Filter {
    /// One rule, as rsync(1) has it: `+ ` and `- ` before the pattern say what becomes of what it means,
    /// whichever option it is given to; `!` alone forgets what came before.
    fn new(verdict: Verdict, text: &[u8]) -> Result<Self, &'static str> {
        if text == b"!" {
            return Ok(Self::Forget);
        }
        let (verdict, pattern) = match (text.strip_prefix(b"+ "), text.strip_prefix(b"- ")) {
            (Some(pattern), _) => (Verdict::Include, pattern),
            (_, Some(pattern)) => (Verdict::Exclude, pattern),
            _ => (verdict, text),
        };
        Rule::new(verdict, pattern).map(Self::Rule)
    }
}

impl Selection {
    /// The files that it is read from; `-` is standard input.
    pub fn files(&self) -> Vec<PathBuf> {
        let rules = self.filters.0.iter().filter_map(|filter| match filter {
            Filter::File(path) => Some(path),
            Filter::Rule(_) | Filter::Forget => None,
        });
        rules.chain(&self.files_from).cloned().collect()
    }

    /// Whether what can be read once is to be read twice: a pipe, by whatever names, or standard input,
    /// which `--interactive` reads, too.
    pub fn reads_twice(&self, asks: bool) -> bool {
        let kind = FileType::from_raw_mode;
        let of_input = || rustix::fs::fstat(std::io::stdin()).ok();
        let facts = |path: &PathBuf| match path.as_os_str().as_bytes() {
            b"-" => of_input(),
            _ => rustix::fs::stat(path).ok().filter(|it| kind(it.st_mode) == FileType::Fifo),
        };
        let asked = asks.then(of_input);
        let all = self.files().iter().map(facts).chain(asked).flatten().collect::<Vec<Stat>>();
        let mut all: Vec<Identity> = all.iter().map(identity).collect();
        all.sort_unstable();
        all.windows(2).any(|two| two[0] == two[1])
    }

    /// What leaves nothing to be copied.
    pub fn contradiction(&self) -> Option<String> {
        let is_empty = self.min_size? > self.max_size?;
        is_empty.then(|| "--min-size is more than --max-size: nothing would be copied".to_owned())
    }

    /// What is selected, with what its files say.
    ///
    /// Errors: one of them cannot be read, or has something in it that makes no sense, which is wrong use as
    /// on the command line.
    pub fn selected(&self) -> Result<Selected, Refused> {
        let mut rules = Vec::new();
        for filter in &self.filters.0 {
            match filter {
                Filter::Rule(rule) => rules.push(rule.clone()),
                Filter::Forget => rules.clear(),
                Filter::File(path) => self.read_rules(path, &mut rules)?,
            }
        }
        Ok(Selected {
            rules,
            obeys_gitignore: self.gitignore,
            listed: self.files_from.as_ref().map(|path| self.read_list(path)).transpose()?,
            sizes: (self.min_size, self.max_size),
            modified: (self.newer, self.older),
        })
    }

    fn end(&self) -> u8 {
        if self.zero { 0 } else { b'\n' }
    }

    /// What ends so.
    fn unit(&self) -> &'static str {
        if self.zero { "entry" } else { "line" }
    }

    fn read_rules(&self, path: &PathBuf, rules: &mut Vec<Rule>) -> Result<(), Refused> {
        let text = read(path, self.end())?;
        for (index, line) in text.split(|&byte| byte == self.end()).enumerate() {
            let line = if self.zero { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
            let is_comment = !self.zero && matches!(line.first(), Some(b'#' | b';'));
            if line.is_empty() || is_comment {
                continue;
            }
            match Filter::new(Verdict::Exclude, line) {
                Ok(Filter::Rule(rule)) => rules.push(rule),
                Ok(_) => rules.clear(),
                Err(why) => {
                    let place = format!("{}, {} {}", quote(path), self.unit(), index + 1);
                    let pattern = escape(OsString::from_vec(line.to_vec()));
                    let text = format!("{place}: the pattern {pattern} makes no sense: {why}");
                    return Err(Refused::wrong_use(text));
                }
            }
        }
        Ok(())
    }

    fn read_list(&self, path: &PathBuf) -> Result<Listed, Refused> {
        let text = read(path, self.end())?;
        let paths = || text.split(|&byte| byte == self.end());
        Listed::new(paths()).map_err(|(name, why)| {
            let index = paths().position(|path| path == name).unwrap_or_default();
            let place = format!("{}, {} {}", quote(path), self.unit(), index + 1);
            let name = escape(OsString::from_vec(name));
            Refused::wrong_use(format!("{place}: {name} is no path below the source: {why}"))
        })
    }
}

/// A line or entry of a list is shorter; no path and no pattern is as long.
const MOST_ENTRY_BYTES: usize = 1 << 20;
/// A list is shorter: some ten million paths. It is kept in memory.
const MOST_LIST_BYTES: usize = 1 << 30;

/// All of a file; `-` is standard input.
fn read(path: &PathBuf, end: u8) -> Result<Vec<u8>, Refused> {
    let cannot = |error| format!("cannot read {}: {}", quote(path), cause_text(&error));
    let opened = input::open(path, CancelToken::signals()).map_err(cannot)?;
    let mut file = BufReader::with_capacity(64 << 10, opened);
    let (mut text, mut entries) = (Vec::new(), 0_u64);
    loop {
        entries += 1;
        let begin = text.len();
        let mut entry = (&mut file).take(MOST_ENTRY_BYTES as u64);
        match entry.read_until(end, &mut text).map_err(cannot)? {
            0 => return Ok(text),
            MOST_ENTRY_BYTES => {
                let place = format!("{}, entry {entries}", quote(path));
                return Err(Refused::wrong_use(format!("{place}: it has 1 MiB or more")));
            }
            _ if text.len() > MOST_LIST_BYTES => {
                return Err(Refused::wrong_use(format!("{} has more than 1 GiB", quote(path))));
            }
            // Nothing of it would be taken but what stands before the first one.
            _ if end != 0 && text[begin..].contains(&0) => {
                let place = format!("{}, line {entries}", quote(path));
                let text = format!("{place}: it has a NUL in it (--zero)");
                return Err(Refused::wrong_use(text));
            }
            _ => {}
        }
    }
}

impl Said for Filter {
    fn options() -> Vec<Arg> {
        let option = |name: &'static str, value: &'static str| {
            let option = Arg::new(name).long(name).action(ArgAction::Append).value_name(value);
            option.help_heading(HEADING)
        };
        let rule = |verdict| {
            let rule = move |text: OsString| Self::new(verdict, text.as_bytes());
            OsStringValueParser::new().try_map(rule)
        };
        let include = option("include", "GLOB")
            .value_parser(rule(Verdict::Include))
            .help("Copy what matches GLOB, even if a later --exclude matches it, too");
        let exclude = option("exclude", "GLOB").value_parser(rule(Verdict::Exclude)).help(
            "Leave out what matches GLOB, with all that is in it; patterns are those of rsync, and the first one that matches a name decides",
        );
        let exclude_from = option("exclude-from", "FILE")
            .value_parser(super::path().map(Self::File))
            .value_hint(ValueHint::FilePath)
            .help("Leave out what matches the patterns in FILE, one in a line; # begins a comment, '+ ' an --include; - is standard input");
        vec![include, exclude, exclude_from]
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn selected(words: &[&str]) -> Result<Selected, String> {
        let command = Selection::augment_args(Command::new("copy"));
        let matches = command.try_get_matches_from([&["copy"], words].concat());
        let matches = matches.map_err(|error| error.to_string())?;
        let selection = Selection::from_arg_matches(&matches).unwrap();
        selection.selected().map_err(|refused| format!("{}: {}", refused.code, refused.text))
    }

    fn rule(verdict: Verdict, pattern: &str) -> Rule {
        Rule::new(verdict, pattern.as_bytes()).unwrap()
    }

    #[test]
    fn rules_are_taken_in_the_order_given_with_those_of_files_in_their_place() {
        use Verdict::{Exclude, Include};
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("rules");
        std::fs::write(&file, "# a comment\n; another\n\n*.o\n+ keep\r\n- drop\n").unwrap();
        let words = ["--exclude=a", "--exclude-from", file.to_str().unwrap(), "--include", "b"];
        let found = selected(&words).unwrap();
        let expected = [
            rule(Exclude, "a"),
            rule(Exclude, "*.o"),
            rule(Include, "keep"),
            rule(Exclude, "drop"),
            rule(Include, "b"),
        ];
        assert_eq!(found.rules, expected);
        std::fs::write(&file, "#x\0a\nb\0").unwrap();
        let words = ["--zero", "--exclude-from", file.to_str().unwrap()];
        let expected = [rule(Exclude, "#x"), rule(Exclude, "a\nb")];
        assert_eq!(selected(&words).unwrap().rules, expected);
        std::fs::write(&file, "# one\n\n[a\n").unwrap();
        let refusal = selected(&["--exclude-from", file.to_str().unwrap()]).unwrap_err();
        let expected = ", line 3: the pattern [a makes no sense: a [ has no ]";
        assert!(refusal.starts_with("2: ") && refusal.ends_with(expected), "{refusal}");
        assert!(selected(&["--exclude=[a"]).unwrap_err().contains("a [ has no ]"));
        assert!(selected(&["--exclude="]).is_err());
    }

    #[test]
    fn what_stands_before_a_pattern_counts_more_than_the_option() {
        use Verdict::{Exclude, Include};
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("rules");
        let found = |words: &[&str]| selected(words).unwrap().rules;
        let words = ["--exclude=+ a", "--include=- b", "--exclude=- !", "--include=+c"];
        let expected =
            [rule(Include, "a"), rule(Exclude, "b"), rule(Exclude, "!"), rule(Include, "+c")];
        assert_eq!(found(&words), expected);
        assert_eq!(found(&["--exclude=a", "--include=!", "--exclude=b"]), [rule(Exclude, "b")]);
        std::fs::write(&file, "a\n!\nb\n").unwrap();
        let words = ["--exclude=c", "--exclude-from", file.to_str().unwrap(), "--exclude=d"];
        assert_eq!(found(&words), [rule(Exclude, "b"), rule(Exclude, "d")]);
        assert!(selected(&["--exclude=+ "]).is_err());
    }

    /// As `find -print0` writes it.
    #[test]
    fn a_list_with_a_nul_is_none_of_lines() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("list");
        std::fs::write(&file, "a\nb\0c\0").unwrap();
        for option in ["--files-from", "--exclude-from"] {
            let refusal = selected(&[option, file.to_str().unwrap()]).unwrap_err();
            let expected = ", line 2: it has a NUL in it (--zero)";
            assert!(refusal.starts_with("2: ") && refusal.ends_with(expected), "{refusal}");
        }
    }

    #[test]
    fn a_list_with_something_outside_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("list");
        std::fs::write(&file, "a/b\n../c\n").unwrap();
        let words = ["--files-from", file.to_str().unwrap()];
        let refusal = selected(&words).unwrap_err();
        let expected = ", line 2: ../c is no path below the source: it has .. in it";
        assert!(refusal.starts_with("2: ") && refusal.ends_with(expected), "{refusal}");
        std::fs::write(&file, "a\nb\0c\0").unwrap();
        let listed = selected(&[&words[..], &["--zero"]].concat()).unwrap().listed.unwrap();
        assert_eq!(listed.paths().collect::<Vec<_>>(), [&b"a\nb"[..], b"c"]);
    }
}
