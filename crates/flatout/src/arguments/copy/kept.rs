//! `--preserve` and `--no-preserve`, in the order in which they were given, as cp does.

use clap::{Arg, ArgAction};
use flatout_tree::copy::options::Preserve;

use crate::arguments::cp::words::{ATTRIBUTES, attributes};
use crate::arguments::in_order::{InOrder, Said};

/// What a bare `--preserve` means to cp.
const BARE: &str = "mode,ownership,timestamps";

/// Which attributes are kept.
pub type Kept = InOrder<Change>;

/// What one option changes.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// `--preserve`.
    Add(Preserve),
    /// `--no-preserve`.
    Remove(Preserve),
}

impl Kept {
    /// What is kept in the end: all, unless `--preserve` names some; a further `--preserve` adds to
    /// what is kept by then, and `--no-preserve` takes away from it. Who names the mode there wants
    /// that of a new file.
    pub fn attributes(&self) -> Preserve {
        let mut is_first = true;
        self.0.iter().fold(Preserve::ALL, |kept, change| match *change {
            Change::Remove(list) if list.has(Preserve::MODE) => {
                kept.without(list).with(Preserve::PLAIN_MODE)
            }
            Change::Remove(list) => kept.without(list),
            // The first list counts from nothing, unless something was taken away before it.
            Change::Add(list) => {
                let base = if is_first && kept == Preserve::ALL { Preserve::NOTHING } else { kept };
                is_first = false;
                let with = base.with(list);
                if list.has(Preserve::MODE) { with.without(Preserve::PLAIN_MODE) } else { with }
            }
        })
    }
}

impl Said for Change {
    fn options() -> Vec<Arg> {
        let option = |name: &'static str, long: &'static str, change: fn(Preserve) -> Self| {
            let option = Arg::new(name).long(long).action(ArgAction::Append).value_name("LIST");
            let parser =
                move |list: &str| attributes(&format!("--{long}"), list, &ATTRIBUTES).map(change);
            option.value_parser(parser).help_heading("Fidelity")
        };
        let preserve = option("preserve", "preserve", Self::Add)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(BARE)
            .help("Keep only these attributes; without a list: mode,ownership,timestamps; a second time: these, too [default: all]");
        let no_preserve = option("no_preserve", "no-preserve", Self::Remove);
        vec![preserve, no_preserve.help("Do not keep these attributes")]
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn kept(words: &[&str]) -> Preserve {
        let command = Kept::augment_args(Command::new("copy"));
        let matches = command.try_get_matches_from([&["copy"], words].concat()).unwrap();
        Kept::from_arg_matches(&matches).unwrap().attributes()
    }

    #[test]
    fn lists_are_taken_in_the_order_given() {
        let (mode, links) = (Preserve::MODE, Preserve::LINKS);
        // Who says that modes are not to be kept wants those of new files.
        let plain = Preserve::PLAIN_MODE;
        let bare = mode.with(Preserve::OWNERSHIP).with(Preserve::TIMESTAMPS);
        let all = Preserve::ALL;
        let cases: [(&[&str], Preserve); 11] = [
            (&[], all),
            (&["--preserve"], bare),
            (&["--preserve=mode"], mode),
            (&["--preserve=mode", "--preserve=links"], mode.with(links)),
            (&["--preserve", "--preserve=links"], bare.with(links)),
            (&["--preserve=links", "--preserve"], bare.with(links)),
            (&["--no-preserve=mode"], all.without(mode).with(plain)),
            (&["--no-preserve=mode", "--preserve=mode"], all),
            (&["--preserve=mode,links", "--no-preserve=mode"], links.with(plain)),
            (&["--no-preserve=all", "--preserve"], bare),
            (&["--preserve=mode", "--no-preserve=mode", "--preserve=links"], links.with(plain)),
        ];
        for (words, expected) in cases {
            assert_eq!(kept(words), expected, "{words:?}");
        }
    }
}
