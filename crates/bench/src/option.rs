//! Options of the command line as typed values, for clap: sizes, times, rates, words that mean
//! something, flags with two meanings. An area defines its options where it uses them.

use clap::builder::{
    BoolValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser,
};
use flatout_io::{Caching, Split};
use flatout_measure::{size_text, units};

use crate::write;

pub use crate::limits::MAX_BLOCK_BYTES;
pub use flatout_measure::units::parse_size as size;

/// Bytes of a file at most.
pub const MAX_BYTES: u64 = i64::MAX as u64;

/// Least and most of something per second.
const LEAST_RATE: f64 = 0.1;
const MOST_RATE: f64 = 1e12;

/// What the user wants, where `auto` says that it is left to flatout.
pub type Wish<T> = Option<T>;

/// Words of an option, each with its value and a line of help.
pub type Words<T> = [(&'static str, T, &'static str)];

/// `--caching`.
pub const CACHING: &Words<Wish<Caching>> = &[
    ("auto", None, "The fastest way known"),
    ("buffered", Some(Caching::Buffered), "Through the page cache"),
    ("direct", Some(Caching::Direct), "Around the page cache (O_DIRECT)"),
    (
        "dontcache",
        Some(Caching::Dontcache),
        "Through the page cache, leaving nothing there (RWF_DONTCACHE, Linux 6.14)",
    ),
];

/// `--direct`, as fio has it.
pub const DIRECT: &Words<Caching> = &[
    ("1", Caching::Direct, "Around the page cache (O_DIRECT)"),
    ("0", Caching::Buffered, "Through the page cache"),
];

/// `--split`.
pub const SPLIT: &Words<Split> = &[
    ("contiguous", Split::Contiguous, "Each thread gets ranges of consecutive blocks"),
    ("interleaved", Split::Interleaved, "Thread i of n gets the blocks i, i+n, i+2n, …"),
];

/// `--sync` of areas that write again and again.
pub const SYNC: &Words<write::Sync> = &[
    ("end", write::Sync::End, "Once, after each trial"),
    ("each", write::Sync::Each, "Each write by itself"),
];

/// A size from one byte to so many.
pub fn size_to(most_bytes: u64) -> impl TypedValueParser<Value = u64> {
    // The ends of a type are no limits of ours.
    let is_type = most_bytes >= MAX_BYTES;
    let within = move |text: String| match size(&text)? {
        0 if is_type => Err("it must be 1 byte or more".to_owned()),
        bytes if bytes > most_bytes && is_type => Err("it is too large".to_owned()),
        bytes if (1..=most_bytes).contains(&bytes) => Ok(bytes),
        _ => Err(format!("it must be from 1 byte to {}", size_text(most_bytes))),
    };
    StringValueParser::new().try_map(within)
}

/// A number from 1 to `most`.
pub fn count_to(most: u32) -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=most.into())
}

/// Something per second: a number, or a size. An area may take less.
///
/// # Errors
/// It is neither, or out of bounds.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().or_else(|_| size(text).map(|bytes| bytes as f64))?;
    let is_within = (LEAST_RATE..=MOST_RATE).contains(&rate);
    is_within.then_some(rate).ok_or(format!("it must be from {LEAST_RATE} to {MOST_RATE}"))
}

/// A time in nanoseconds; zero makes no sense for a limit.
///
/// # Errors
/// It is none, or zero.
pub fn time(text: &str) -> Result<u64, String> {
    match units::parse_time(text)? {
        0 => Err("the time must be longer than 0".to_owned()),
        ns => Ok(ns),
    }
}

/// Words as an option takes them; help and completions list them.
pub fn words<T: Clone + Send + Sync + 'static>(
    words: &'static Words<T>,
) -> impl TypedValueParser<Value = T> {
    let names = words.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|text| {
        let known = words.iter().find(|(name, ..)| *name == text);
        known.map(|(_, value, _)| value.clone()).ok_or("unknown word")
    })
}

/// A flag: what it means when it is not given, and when it is.
pub fn flag<T: Clone + Send + Sync + 'static>(
    [absent, given]: [T; 2],
) -> impl TypedValueParser<Value = T> {
    BoolValueParser::new().map(move |is_given| if is_given { &given } else { &absent }.clone())
}

/// What was chosen, or else the usual.
pub fn chosen_or<T: Clone>(chosen: &[T], usual: &[T]) -> Vec<T> {
    if chosen.is_empty() { usual.to_vec() } else { chosen.to_vec() }
}

/// Each value once, in order.
pub fn each_once<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
}

/// The first of those that are the same, in their order.
pub fn distinct<T>(all: impl IntoIterator<Item = T>, is_same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    all.into_iter().fold(Vec::new(), |mut kept, one| {
        if !kept.iter().any(|known| is_same(known, &one)) {
            kept.push(one);
        }
        kept
    })
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, Args, Command, FromArgMatches};

    use super::*;
    use crate::copy;

    #[derive(Debug, PartialEq, Args)]
    #[group(skip)]
    struct Two {
        #[arg(long, value_parser = words(CACHING), default_value = "auto")]
        caching: Wish<Caching>,
        #[arg(long, action = ArgAction::SetTrue, value_parser = flag(["off", "on"]))]
        light: &'static str,
    }

    fn parsed<A: Args + FromArgMatches>(words: &[&str]) -> Result<A, clap::Error> {
        let command = A::augment_args(Command::new("test").no_binary_name(true));
        A::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    #[test]
    fn words_and_flags_have_values() {
        assert_eq!(parsed::<Two>(&[]).unwrap(), Two { caching: None, light: "off" });
        let given = Two { caching: Some(Caching::Direct), light: "on" };
        assert_eq!(parsed::<Two>(&["--caching", "direct", "--light"]).unwrap(), given);
        let error = parsed::<Two>(&["--caching", "no"]).unwrap_err().to_string();
        assert!(error.contains("[possible values: auto, buffered, direct, dontcache]"), "{error}");
    }

    #[test]
    fn a_size_that_only_a_type_bounds_has_no_such_bound_told() {
        let refused = |most_bytes, text: &str| {
            let size = clap::Arg::new("size").value_parser(size_to(most_bytes));
            let command = Command::new("test").no_binary_name(true).arg(size);
            command.try_get_matches_from([text]).unwrap_err().to_string()
        };
        assert!(refused(MAX_BYTES, "0").contains("it must be 1 byte or more"));
        assert!(refused(u64::MAX, "0").contains("it must be 1 byte or more"));
        assert!(refused(MAX_BYTES, "8192P").contains("it is too large"));
        assert!(refused(4096, "0").contains("it must be from 1 byte to 4 KiB"));
    }

    #[test]
    fn numbers_that_make_a_grid_count_once() {
        let words = ["--files", "9,1,9", "--file-size", "0,1K"];
        let mut selection: copy::Selection = parsed(&words).unwrap();
        selection.each_once();
        assert_eq!((selection.files, selection.file_bytes), (vec![1, 9], vec![0, 1024]));
    }
}
