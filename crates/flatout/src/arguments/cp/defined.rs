//! The options of GNU cp, a line each.

use std::ffi::OsString;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, ArgAction};

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// A value after `=`, or none.
    Maybe(&'static str),
    Value(&'static str),
}

use Takes::{Maybe, Nothing, Value};

/// The value of an option that was given without one; no word of a command line has a NUL.
pub const ABSENT: &str = "\0";

/// The name of an option that was given, and its value.
pub type Given = (&'static str, OsString);

/// An option: its letters, the first of them shown; its name, where it has none the letter with its
/// hyphen; what it takes; what it is for.
pub struct Defined(&'static [char], pub &'static str, pub Takes, &'static str);

macro_rules! options {
    ($([$($letter:literal)*] $name:literal $takes:ident $(($value:literal))?: $help:literal;)*) => {
        &[$(Defined(&[$($letter),*], $name, $takes $(($value))?, $help)),*]
    };
}

/// All of them, in the order in which help shows them.
pub const OPTIONS: &[Defined] = options! {
    ['a'] "archive" Nothing: "The same as -dR --preserve=all";
    [] "attributes-only" Nothing: "Copy attributes, not the data";
    [] "backup" Maybe("CONTROL"):
        "Keep what is overwritten under another name: none, simple, existing, numbered";
    ['b'] "-b" Nothing: "Like --backup, without a value";
    [] "copy-contents" Nothing: "Read FIFOs and devices when copying recursively";
    [] "debug" Nothing: "Say how each file is copied; implies -v";
    ['d'] "-d" Nothing: "The same as --no-dereference --preserve=links";
    ['f'] "force" Nothing: "Remove what cannot be opened for writing, and try again";
    ['i'] "interactive" Nothing: "Ask before overwriting";
    ['H'] "-H" Nothing: "Follow symlinks that are named as SOURCE";
    [] "keep-directory-symlink" Nothing:
        "Take a symlink of the target that leads to a directory for it";
    ['l'] "link" Nothing: "Make hard links instead of copies";
    ['L'] "dereference" Nothing: "Follow all symlinks of SOURCE";
    ['n'] "no-clobber" Nothing: "Do not overwrite what is there";
    ['P'] "no-dereference" Nothing: "Follow no symlinks of SOURCE";
    ['p'] "-p" Nothing: "The same as --preserve=mode,ownership,timestamps";
    [] "preserve" Maybe("LIST"):
        "Keep these, too: mode, ownership, timestamps, links, context, xattr, all; without a list as -p";
    [] "no-preserve" Value("LIST"): "Do not keep these";
    [] "parents" Nothing: "Copy to the whole path of SOURCE below DIR";
    ['r' 'R'] "recursive" Nothing: "Copy directories and what is in them";
    [] "reflink" Maybe("WHEN"):
        "Share the bytes with the source: auto, always, never; without a value: always";
    [] "remove-destination" Nothing: "Remove what is there before it is opened";
    [] "sparse" Value("WHEN"): "Make holes: auto, always, never";
    [] "strip-trailing-slashes" Nothing: "Take no notice of slashes at the end of SOURCE";
    ['s'] "symbolic-link" Nothing: "Make symlinks instead of copies";
    ['S'] "suffix" Value("SUFFIX"): "What follows the name of a backup [default: ~]";
    ['t'] "target-directory" Value("DIR"): "Copy all sources into DIR";
    ['T'] "no-target-directory" Nothing: "Take TARGET for the name of the copy";
    [] "update" Maybe("WHICH"):
        "Leave what is there: all (replace), none, none-fail, older (replace what is); without a value: older";
    ['u'] "-u" Nothing: "The same as --update=older";
    ['v'] "verbose" Nothing: "Say what is done";
    ['x'] "one-file-system" Nothing: "Do not enter other filesystems";
    ['Z'] "-Z" Nothing: "Nothing: there is no SELinux here";
    [] "context" Maybe("CTX"): "Nothing: there is no SELinux here";
};

/// The option of a letter that takes no value.
pub fn plain(letter: char) -> Option<&'static str> {
    let defined = OPTIONS.iter().find(|option| option.0.contains(&letter))?;
    (defined.2 == Nothing).then_some(defined.1)
}

impl Defined {
    /// The same for the parser, whose values are [`Given`].
    pub fn argument(&self) -> Arg {
        let &Self(letters, name, takes, help) = self;
        let parser = OsStringValueParser::new().map(move |value| (name, value));
        let mut argument = Arg::new(name).help(help).value_parser(parser);
        if let Some((first, others)) = letters.split_first() {
            argument = argument.short(*first).visible_short_aliases(others.to_vec());
        }
        if !name.starts_with('-') {
            argument = argument.long(name);
        }
        // It may be repeated.
        let argument = argument.action(ArgAction::Append);
        match takes {
            Nothing => argument.num_args(0).default_missing_value(ABSENT),
            Maybe(value) => argument
                .value_name(value)
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value(ABSENT),
            Value(value) => argument.value_name(value).allow_hyphen_values(true),
        }
    }
}

/// The words of a command line, with `--` before the first operand where POSIX wants all that follows
/// to be operands.
pub fn in_order(words: Vec<OsString>) -> Vec<OsString> {
    if std::env::var_os("POSIXLY_CORRECT").is_none() {
        return words;
    }
    let takes_next = |word: &str| {
        let of = |option: &&Defined| matches!(option.2, Value(_));
        match word.strip_prefix("--") {
            Some(name) => OPTIONS
                .iter()
                .filter(of)
                .any(|option| option.1.starts_with(name) && !name.is_empty()),
            // Of letters together, the last one may have its value in the next word.
            None => word.chars().last().is_some_and(|letter| {
                OPTIONS.iter().filter(of).any(|option| option.0.contains(&letter))
                    && !word[..word.len() - 1].contains(['S', 't'])
            }),
        }
    };
    let mut at = 0;
    while let Some(word) = words.get(at).map(|word| word.to_string_lossy()) {
        if word == "--" || !word.starts_with('-') || word == "-" {
            break;
        }
        at += if takes_next(&word) { 2 } else { 1 };
    }
    let mut words = words;
    if words.get(at).is_some_and(|word| word != "--") {
        words.insert(at, OsString::from("--"));
    }
    words
}
