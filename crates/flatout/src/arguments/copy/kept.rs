//! `--preserve` and `--no-preserve`, in the order in which they were given, as cp does.

use clap::parser::ValuesRef;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use flatout_tree::copy::options::Preserve;

use super::words::attributes;

const PRESERVE: &str = "preserve";
const NO_PRESERVE: &str = "no_preserve";
/// What a bare `--preserve` means to cp.
const BARE: &str = "mode,ownership,timestamps";

/// Which attributes are kept.
#[derive(Debug, Clone, Default)]
pub struct Kept(Vec<Change>);

#[derive(Debug, Clone, Copy)]
enum Change {
    Add(Preserve),
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

impl FromArgMatches for Kept {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let of = |name: &str, change: fn(Preserve) -> Change| {
            let lists: Option<ValuesRef<'_, Preserve>> = matches.get_many(name);
            let indices = matches.indices_of(name).into_iter().flatten();
            indices.zip(lists.into_iter().flatten().map(|list| change(*list))).collect::<Vec<_>>()
        };
        let mut changes = [of(PRESERVE, Change::Add), of(NO_PRESERVE, Change::Remove)].concat();
        changes.sort_by_key(|(index, _)| *index);
        Ok(Self(changes.into_iter().map(|(_, change)| change).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Kept {
    fn augment_args(command: Command) -> Command {
        let option = |name: &'static str| {
            let option = Arg::new(name).action(ArgAction::Append).value_name("LIST");
            option.value_parser(attributes).help_heading("Fidelity")
        };
        let preserve = option(PRESERVE)
            .long("preserve")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(BARE)
            .help("Keep only these attributes; without a list: mode,ownership,timestamps; a second time: these, too [default: all]");
        let no_preserve =
            option(NO_PRESERVE).long("no-preserve").help("Do not keep these attributes");
        command.arg(preserve).arg(no_preserve)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
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
