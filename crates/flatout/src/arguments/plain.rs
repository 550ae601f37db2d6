//! Command lines of copy and cp without options that need looking up, read without a definition.
//! Making that of some hundred options touches 65 pages for the first time, a third of all that a copy
//! of one small file does (`perf record -e page-faults`, 2026-11-26). What is not plain
//! is left to the definition.

use std::ffi::OsString;

use super::copy::Copy;
use super::cp::Cp;
use super::{Arguments, Command};

/// The command of plain words; `None`: there are others.
pub(super) fn read(argv: &[OsString]) -> Option<Arguments> {
    let (command, words) = argv.get(1..)?.split_first()?;
    let command = match command.to_str()? {
        "copy" => Command::Copy(Box::new(Copy::plain(words)?)),
        cp if cp == super::CP => Command::Cp(Box::new(Cp::plain(words)?)),
        _ => return None,
    };
    Some(Arguments { single: false, command })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn argv(line: &str) -> Vec<OsString> {
        ["flatout"].into_iter().chain(line.split(' ')).map(OsString::from).collect()
    }

    #[test]
    fn plain_words_mean_what_they_mean_by_the_definition() {
        for line in [
            "copy a b",
            "copy -a a b",
            "copy -T a -a b",
            "copy a b c /d/",
            "copy -T --resume=never a b",
            "copy a  b",
            "cp a b",
            "cp -a a b",
            "cp -a -p a b c",
            "cp -p -d a b",
            "cp -rp a b",
            "cp -R -T a b",
            "cp -vx a b",
            "cp -fu a b",
        ] {
            let argv = argv(line);
            let defined = Arguments::try_parse_from(&argv).unwrap();
            let plain = read(&argv).unwrap_or_else(|| panic!("{line} is plain"));
            assert_eq!(format!("{plain:?}"), format!("{defined:?}"), "{line}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_definition() {
        for line in [
            "copy",
            "copy a",
            "copy --help",
            "copy a b --sync",
            "copy a -",
            "copy -- a b",
            "copy -ax a b",
            "copy -aT a b",
            "copy a b -t c",
            "sum a b",
            "--single copy a b",
            "cp a",
            "cp a b -a",
            "cp -t a b",
            "cp -- a b",
            "cp -é a b",
            "cp --sparse=never a b",
        ] {
            assert!(read(&argv(line)).is_none(), "{line}");
        }
    }
}
