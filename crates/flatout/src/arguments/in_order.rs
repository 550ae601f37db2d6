//! Options of which each counts after those before it, whichever of them it is.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// What some options say, each value as one of these.
pub trait Said: Clone + Send + Sync + 'static {
    /// The options.
    fn options() -> Vec<Arg>;
}

/// All that was said, in the order of the command line.
#[derive(Debug, Clone)]
pub struct InOrder<T>(pub Vec<T>);

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What the options of these names say, in the order of the command line.
pub fn said<'n, T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    names: impl Iterator<Item = &'n str>,
) -> Vec<T> {
    let mut said: Vec<(usize, T)> = Vec::new();
    for name in names {
        let values = matches.get_many(name).into_iter().flatten().cloned();
        said.extend(matches.indices_of(name).into_iter().flatten().zip(values));
    }
    said.sort_by_key(|(index, _)| *index);
    said.into_iter().map(|(_, value)| value).collect()
}

impl<T: Said> FromArgMatches for InOrder<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let options = T::options();
        Ok(Self(said(matches, options.iter().map(|option| option.get_id().as_str()))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Said> Args for InOrder<T> {
    fn augment_args(command: Command) -> Command {
        command.args(T::options())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
