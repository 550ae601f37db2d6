//! Takes out of a record what names a person's machine: host, serial numbers, paths.
//!
//! A page is made to be passed on, so it goes through here unless its owner asks otherwise. Known
//! members are hidden by their names; then their values, and anything that looks like an absolute
//! path, are hidden wherever they occur in a sentence.

use flatout_measure::record::Record;
use serde_json::{Map, Value};

/// What a page may tell about where it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Identity {
    /// No host name, no serial numbers, no paths.
    #[default]
    Hidden,
    /// Everything that the record holds.
    Shown,
}

/// What stands in place of a hidden value.
const HIDDEN: &str = "(hidden)";

/// Names, or ends of names after an underscore, of members that identify.
const NAMES: [&str; 17] = [
    "host",
    "hostname",
    "nodename",
    "serial",
    "uuid",
    "id",
    "path",
    "file",
    "dir",
    "directory",
    "mount",
    "source",
    "target",
    "user",
    "home",
    "address",
    "mac",
];

/// Absolute paths that are the same on every machine.
const COMMON_ROOTS: [&str; 3] = ["/proc/", "/sys/", "/dev/"];

/// The record without host name, serial numbers and paths.
pub fn hidden(record: &Record) -> Record {
    let mut record = record.clone();
    let mut secrets = Vec::new();
    hide_members(&mut record.start.environment, &mut secrets);
    for outcome in &mut record.results {
        hide_in_map(&mut outcome.parameters, &mut secrets);
        hide_in_map(&mut outcome.audit, &mut secrets);
    }
    // The longest first, so that no part of a path is left beside a replaced shorter one.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    let clean = |text: &mut String| *text = cleaned(text, &secrets);

    record.start.argv.iter_mut().for_each(clean);
    clean_strings(&mut record.start.environment, &clean);
    for outcome in &mut record.results {
        outcome.parameters.values_mut().for_each(|value| clean_strings(value, &clean));
        outcome.audit.values_mut().for_each(|value| clean_strings(value, &clean));
        outcome.warnings.iter_mut().for_each(|warning| clean(&mut warning.text));
        outcome.series.iter_mut().for_each(|series| clean(&mut series.name));
        if let Some(ceiling) = &mut outcome.ceiling {
            clean(&mut ceiling.name);
            clean(&mut ceiling.limiter);
        }
    }
    record.end.errors.iter_mut().for_each(clean);
    record.end.verdict.iter_mut().for_each(|answer| clean(&mut answer.text));
    record
}

fn identifies(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let named = |name: &str| {
        key.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    };
    NAMES.iter().any(|name| named(name)) || key == "host_name" || key.contains("serial_")
}

fn hide_in_map(members: &mut Map<String, Value>, secrets: &mut Vec<String>) {
    for (key, value) in members.iter_mut() {
        match value {
            Value::String(text) if identifies(key) => {
                // Short words would be found inside innocent ones.
                if text.len() >= 3 {
                    secrets.push(text.clone());
                }
                *text = HIDDEN.to_owned();
            }
            Value::Array(items) if identifies(key) => {
                secrets.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
                *value = HIDDEN.into();
            }
            nested => hide_members(nested, secrets),
        }
    }
}

fn hide_members(value: &mut Value, secrets: &mut Vec<String>) {
    match value {
        Value::Object(members) => hide_in_map(members, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_members(item, secrets)),
        _ => {}
    }
}

fn clean_strings(value: &mut Value, clean: &dyn Fn(&mut String)) {
    match value {
        Value::String(text) => clean(text),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_strings(item, clean)),
        Value::Object(members) => members.values_mut().for_each(|item| clean_strings(item, clean)),
        _ => {}
    }
}

/// The text without the secrets as whole words, and without absolute paths.
fn cleaned(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        text = without_word(&text, secret);
    }
    without_paths(&text)
}

fn without_word(text: &str, word: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, found) = rest.split_at(at);
        let after = &found[word.len()..];
        let joined_before =
            before.chars().next_back().or(out.chars().next_back()).is_some_and(is_part);
        let joined = joined_before || after.chars().next().is_some_and(is_part);
        out.push_str(before);
        out.push_str(if joined { word } else { HIDDEN });
        rest = after;
    }
    out + rest
}

/// Replaces what starts with a slash after a space, a quote or an equals sign, up to the next of these.
fn without_paths(text: &str) -> String {
    let ends =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ';' | '(' | ')' | '`');
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends) {
        let word = piece.trim_end_matches(ends);
        let rest = &piece[word.len()..];
        let bare = word.trim_end_matches([':', '.']);
        let is_path = word.starts_with('~') && word.contains('/')
            || word.starts_with('/') && bare.len() > 1
            || word.starts_with("./")
            || word.starts_with("../");
        if is_path && !COMMON_ROOTS.iter().any(|root| word.starts_with(root)) {
            out.push_str(HIDDEN);
            out.push_str(&word[bare.len()..]);
        } else {
            out.push_str(word);
        }
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_but_shares_stay() {
        let cases = [
            ("open /home/anna/x: permission denied", "open (hidden): permission denied"),
            ("--dir=/mnt/data", "--dir=(hidden)"),
            ("bytes/s and 3 / 4 and disk/read", "bytes/s and 3 / 4 and disk/read"),
            ("/proc/self/io tells", "/proc/self/io tells"),
            ("in ../x, ~/y.", "in (hidden), (hidden)."),
        ];
        for (text, expected) in cases {
            assert_eq!(without_paths(text), expected);
        }
    }

    #[test]
    fn secrets_are_hidden_as_whole_words() {
        let secrets = ["box".to_owned(), "my file.bin".to_owned()];
        assert_eq!(cleaned("box, boxes, my file.bin!", &secrets), "(hidden), boxes, (hidden)!");
    }

    #[test]
    fn names_of_members_decide() {
        assert!(identifies("host_name") && identifies("file") && identifies("dimm_serial"));
        assert!(!identifies("file_bytes") && !identifies("grid") && !identifies("valid"));
    }
}
