//! Wrong use of cp in the words of GNU cp, which are those of getopt_long(3).

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::defined::OPTIONS;

/// What is wrong with an option; `None`: it is something else.
pub fn line(error: &clap::Error, argv: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return None };
    let shown = shown.split([' ', '=', '[']).next()?;
    Some(match (error.kind(), shown.strip_prefix("--")) {
        (ErrorKind::UnknownArgument, Some(begun)) => {
            let mut known = OPTIONS.iter().map(|option| option.1).collect::<Vec<_>>();
            known.extend(["help", "version"]);
            known.retain(|name| name.starts_with(begun));
            known.sort_unstable();
            if known.len() < 2 {
                return Some(format!("unrecognized option '{shown}'"));
            }
            let known: String = known.iter().map(|name| format!(" '--{name}'")).collect();
            format!("option '{shown}' is ambiguous; possibilities:{known}")
        }
        (ErrorKind::UnknownArgument, None) => {
            format!("invalid option -- '{}'", shown.trim_start_matches('-'))
        }
        (ErrorKind::TooManyValues, _) => format!("option '{shown}' doesn't allow an argument"),
        (ErrorKind::InvalidValue, _) => {
            let last = argv.last()?.to_string_lossy();
            match last.strip_prefix("--") {
                Some(_) => format!("option '{last}' requires an argument"),
                None => format!("option requires an argument -- '{}'", last.chars().last()?),
            }
        }
        _ => return None,
    })
}
