//! Takes out of a record what names a person's machine: host, serial numbers, paths.
//!
//! A page is made to be passed on, so it goes through here unless its owner asks otherwise. Known
//! members are hidden by their names; then their values, and anything that looks like an absolute
//! path, are hidden wherever they occur in a sentence. Of the file that was read or written the
//! last name stays, since the page is about it.

pub(crate) mod forms;

use std::collections::{BTreeMap, HashMap};

use flatout_measure::record::Record;
use serde_json::{Map, Value};

use self::forms::{
    hide_hosts, hide_place, is_address, without_places, without_uuids, without_values,
};
use crate::{label, order, page::commands};

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

/// Shorter texts are hidden where they stand, but would be found inside innocent sentences.
const SHORTEST_SECRET: usize = 3;

/// Names, or ends of names after an underscore, of members that identify.
const NAMES: &str = "host hostname nodename serial uuid id path file filename dir directory mount \
    source target user home address mac place backing upper group mount_point";

/// Absolute paths that are the same on every machine.
const COMMON_ROOTS: [&str; 3] = ["/proc/", "/sys/", "/dev/"];

/// Below these names tell a serial number, a volume or whatever a user likes.
const UNCOMMON_ROOTS: [&str; 3] = ["/dev/disk/", "/dev/mapper/", "/dev/shm/"];

/// Whether a place is called so on every machine; `.` and `/` are.
fn is_common(path: &str) -> bool {
    let below = |roots: &[&str]| roots.iter().any(|root| path.starts_with(root));
    matches!(path, "." | "/") || below(&COMMON_ROOTS) && !below(&UNCOMMON_ROOTS)
}

/// What a system call goes to: kinds of targets, not places.
const KINDS: [&str; 3] = ["file", "zero", "null"];

/// Whether a member that identifies by its name does so by its value: a source may be a mere word,
/// such as `tmpfs`.
fn tells(key: &str, text: &str) -> bool {
    let is_word = key.ends_with("source") && !text.contains(['/', ':']);
    let is_kind = key == "target" && KINDS.contains(&text);
    let is_place =
        ["source", "place", "backing", "upper", "group", "mount_point", "filename"].contains(&key);
    !(is_word || is_kind || is_place && is_common(text))
}

/// What is told instead of each text that must not be told, by the length of these.
type Secrets = BTreeMap<usize, HashMap<String, String>>;

/// Has something else told instead of a text, unless that is known of it already.
fn keep(secrets: &mut Secrets, text: &str, shown: impl Into<String>) {
    if !text.is_empty() {
        let known = secrets.entry(text.len()).or_default();
        known.entry(text.to_owned()).or_insert_with(|| shown.into());
    }
}

/// Hides a text everywhere, unless it is too short for that.
fn hide(secrets: &mut Secrets, text: &str) {
    if text.len() >= SHORTEST_SECRET {
        keep(secrets, text, HIDDEN);
    }
}

/// Keeps the hosts of several processes, by which rows name these (`3 HOST`): which of them are one, a
/// page tells nevertheless.
fn keep_hosts(record: &Record, secrets: &mut Secrets) {
    let processes = record.results.iter().filter_map(|row| row.parameter_text("process"));
    let names = processes.filter_map(|process| Some(process.split_once(' ')?.1));
    for (name, number) in order::distinct(names).into_iter().zip(1..) {
        keep(secrets, name, format!("host {number}"));
    }
}

/// The record without host name, serial numbers and paths.
pub fn hidden(record: &Record) -> Record {
    let mut record = record.clone();
    let mut secrets = Secrets::new();
    keep_hosts(&record, &mut secrets);
    hide_members(&mut record.start.environment, &mut secrets);
    hide_hosts(&mut record.start.argv, &mut secrets);
    for outcome in &mut record.results {
        let file = label::file(outcome).map(str::to_owned);
        hide_in_map(&mut outcome.parameters, &mut secrets);
        hide_in_map(&mut outcome.audit, &mut secrets);
        if let Some(file) = file {
            let shown = base_name(&file).to_owned();
            outcome.parameters.insert("file".to_owned(), shown.clone().into());
            // Of files that were moved the last names stay, whatever else is said of them.
            if file.len() >= SHORTEST_SECRET {
                secrets.entry(file.len()).or_default().insert(file, shown);
            }
        }
    }
    let clean = |text: &mut String| *text = cleaned(text, &secrets);

    if let Some(program) = record.start.argv.first_mut() {
        *program = "flatout".to_owned();
    }
    record.start.argv.iter_mut().for_each(clean);
    record.start.argv.iter_mut().for_each(hide_place);
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

/// The last name of a path; the whole of one that every machine has.
pub(crate) fn base_name(path: &str) -> &str {
    if is_common(path) {
        return path;
    }
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn identifies(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let named = |name: &str| {
        key.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    };
    NAMES.split(' ').any(named) || key == "host_name" || key.contains("serial_")
}

fn hide_in_map(members: &mut Map<String, Value>, secrets: &mut Secrets) {
    for (key, value) in members.iter_mut() {
        match value {
            Value::String(text) if key == "options" => *text = without_values(text, secrets),
            Value::String(text) if key == commands::KEY => *text = without_places(text),
            Value::String(text) if identifies(key) && !tells(key, text) => {}
            Value::String(text) if identifies(key) => {
                hide(secrets, text);
                *text = HIDDEN.to_owned();
            }
            Value::Array(items) if identifies(key) => {
                let texts = items.iter().filter_map(Value::as_str);
                texts.for_each(|text| keep(secrets, text, HIDDEN));
                *value = HIDDEN.into();
            }
            nested => hide_members(nested, secrets),
        }
    }
}

fn hide_members(value: &mut Value, secrets: &mut Secrets) {
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

/// The text without the secrets as whole words, and without addresses and absolute paths.
fn cleaned(text: &str, secrets: &Secrets) -> String {
    let mut text = text.to_owned();
    // The longest first, so that no part of a path is left beside a replaced shorter one.
    for (length, known) in secrets.iter().rev() {
        if *length <= text.len() {
            text = without_words(text, *length, known);
        }
    }
    without_uuids(&without_paths(&text))
}

/// The text without words of one length. It takes time in proportion to the text, however many words
/// there are.
fn without_words(text: String, length: usize, known: &HashMap<String, String>) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut copied, mut at, mut before) = (String::new(), 0, 0, None);
    while let Some(c) = text[at..].chars().next() {
        let end = at + length;
        let word = text.get(at..end).filter(|_| !before.is_some_and(is_part));
        let word = word.filter(|_| !text[end..].starts_with(is_part));
        if let Some(shown) = word.and_then(|word| known.get(word)) {
            out.push_str(&text[copied..at]);
            out.push_str(shown);
            (copied, at, before) = (end, end, out.chars().next_back());
        } else {
            at += c.len_utf8();
            before = Some(c);
        }
    }
    if copied == 0 { text } else { out + &text[copied..] }
}

/// Replaces addresses, and what starts with a slash after a space, a quote or an equals sign, up to the next of these.
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
        if is_path && !is_common(word) || is_address(bare) {
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
        let mut secrets = Secrets::new();
        ["box", "my file.bin"].into_iter().for_each(|text| hide(&mut secrets, text));
        assert_eq!(cleaned("box, boxes, my file.bin!", &secrets), "(hidden), boxes, (hidden)!");
    }

    #[test]
    fn what_every_machine_has_is_no_secret() {
        assert!(
            !tells("clock_source", "tsc")
                && !tells("source", "/dev/vda")
                && !tells("source", "tmpfs")
                && !tells("place", ".")
        );
        assert!(tells("source", "server:/export") && tells("source", "pool/anna"));
        assert!(tells("source", "/dev/mapper/luks-1") && tells("place", "data"));
        assert!(tells("upper", "/var/lib/x") && tells("group", "/user.slice"));
    }

    #[test]
    fn names_of_members_decide() {
        assert!(identifies("host_name") && identifies("file") && identifies("dimm_serial"));
        assert!(!identifies("file_bytes") && !identifies("grid") && !identifies("valid"));
    }

    #[test]
    fn hosts_of_processes_are_told_apart_and_not_named() {
        let mut record: Record = serde_json::from_value(serde_json::json!({
            "schema": "flatout/1",
            "start": {"tool": "", "argv": [], "seed": 1, "time": "", "environment": {"host": "n1"}},
            "results": [],
            "end": {"elapsed_s": 1.0, "exit_code": 0, "errors": ["process 1 on n2: no"]},
        }))
        .unwrap();
        for (at, process) in ["0 n1", "1 n2", "2 n1"].into_iter().enumerate() {
            let mut row = flatout_measure::record::Outcome::default();
            row.parameters.insert("process".to_owned(), process.into());
            row.audit.insert("slowest_process".to_owned(), format!("{at} n2").into());
            record.results.push(row);
        }
        let hidden = hidden(&record);
        let of = |at: usize| hidden.results[at].parameter_text("process").unwrap();
        assert_eq!([of(0), of(1), of(2)], ["0 host 1", "1 host 2", "2 host 1"]);
        assert_eq!(hidden.results[0].audit["slowest_process"], "0 host 2");
        assert_eq!(hidden.end.errors, ["process 1 on host 2: no"]);
    }

    #[test]
    fn of_a_path_the_last_name_stays() {
        assert_eq!(base_name("/home/anna/big file.bin"), "big file.bin");
        assert_eq!(base_name("data/x/"), "x");
        assert_eq!(base_name("-"), "-");
        assert_eq!(base_name("/dev/zero"), "/dev/zero");
    }
}
