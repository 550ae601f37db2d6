//! A command line of letters and paths, read without a definition.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{Cp, defined};

impl Cp {
    /// Reads options of letters that take no value, and what is to be copied behind them; `None`:
    /// there is something else.
    pub(in crate::arguments) fn plain(words: &[OsString]) -> Option<Self> {
        let is_option = |word: &&OsString| word.as_bytes().first() == Some(&b'-');
        let (options, paths) = words.split_at(words.iter().take_while(is_option).count());
        if paths.len() < 2 || paths.iter().any(|word| is_option(&word)) {
            return None;
        }
        let mut cp = Self::none(paths.iter().map(PathBuf::from).collect());
        for word in options {
            let letters = word.to_str()?.strip_prefix('-')?;
            for letter in letters.chars() {
                cp.take(defined::plain(letter)?, OsStr::new("")).ok()?;
            }
            letters.chars().next()?;
        }
        Some(cp)
    }
}
