//! The options of GNU cp, a line each.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

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

/// The words of a command line as the parser is to get them. It takes a `=` behind a letter for no part of the
/// value, where getopt(3) does: behind `letters` it gets two. `others` have a value as the parser takes it. Where
/// there are none, there is `--` before the first operand if POSIX wants all that follows to be operands.
pub fn in_order(mut words: Vec<OsString>, [letters, others]: [&[u8]; 2]) -> Vec<OsString> {
    let is_posix = others.is_empty() && std::env::var_os("POSIXLY_CORRECT").is_some();
    let with_value = || OPTIONS.iter().filter(|option| matches!(option.2, Value(_)));
    let mut at = 0;
    while let Some(word) = words.get(at).map(|word| word.as_bytes()) {
        at += match word {
            b"--" => break,
            [b'-', b'-', name @ ..] => {
                1 + usize::from(with_value().any(|option| option.1.as_bytes().starts_with(name)))
            }
            [b'-', given @ ..] if !given.is_empty() => {
                let ends = |it: &u8| {
                    !it.is_ascii_alphabetic() || letters.contains(it) || others.contains(it)
                };
                match given.iter().position(ends).map(|place| given.split_at(place + 1)) {
                    Some((_, b"")) => 2,
                    Some((before @ [.., letter], value @ [b'=', ..]))
                        if letters.contains(letter) =>
                    {
                        words[at] = OsString::from_vec([&word[..1], before, b"=", value].concat());
                        1
                    }
                    _ => 1,
                }
            }
            _ if is_posix => {
                words.insert(at, OsString::from("--"));
                break;
            }
            _ => 1,
        };
    }
    words
}
