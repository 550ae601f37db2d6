//! Makes a case that fails smaller, and shows it.

use std::fmt::Write;

use super::super::oracle::{Entry, Kind, Portrait};
use super::case::Case;
use super::item::{Item, Place, Sort};
use super::judgement::judge;
use super::trial::Arena;

/// Leaves out, one after the other, all items without which a group of findings is still there.
pub fn reduce(arena: &Arena, case: &Case, group: &str) -> Case {
    let mut smallest = case.clone();
    let is_found =
        |case: &Case| judge(&arena.run(case)).iter().any(|finding| finding.group == group);
    for index in (0..case.items.len()).rev() {
        let place = case.items[index].place.clone();
        let mut smaller = smallest.clone();
        smaller.items.retain(|item| !is_below(&place, &item.place));
        if case.operands.iter().any(|operand| operand.starts_with(&place)) {
            continue;
        }
        if smaller.items.len() < smallest.items.len() && is_found(&smaller) {
            smallest = smaller;
        }
    }
    for index in 0..smallest.items.len() {
        for change in [plain_mode, plain_owner, plain_lists] {
            let mut smaller = smallest.clone();
            change(&mut smaller.items[index], case.runner.unwrap_or(0));
            if is_found(&smaller) {
                smallest = smaller;
            }
        }
    }
    let mut plain = smallest.clone();
    plain.umask = 0o022;
    if is_found(&plain) { plain } else { smallest }
}

fn plain_mode(item: &mut Item, _: u32) {
    item.attributes.mode = if matches!(item.sort, Sort::Directory) { 0o755 } else { 0o644 };
}

fn plain_owner(item: &mut Item, owner: u32) {
    item.attributes.owner = (owner, owner);
}

fn plain_lists(item: &mut Item, _: u32) {
    item.attributes.access = None;
    item.attributes.default = None;
    item.attributes.note = None;
}

fn is_below(root: &Place, place: &Place) -> bool {
    place.strip_prefix(&root[..]).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// The whole case for a person: what is there, what each made of it, and the words.
pub fn show(arena: &Arena, case: &Case) -> String {
    let trial = arena.run(case);
    let mut text = String::new();
    let words: Vec<String> =
        case.words().iter().map(|word| word.escape_ascii().to_string()).collect();
    let who = case.runner.map_or("the user of the tests".into(), |id| format!("user {id}"));
    let _ = writeln!(text, "  by {who}, umask {:03o}: {}", case.umask, words.join(" "));
    if let Some(disturbance) = &case.disturbance {
        let _ = writeln!(text, "  meanwhile: {disturbance:?}");
    }
    let _ = writeln!(text, "  before:\n{}", listing(&trial.before));
    for (name, outcome) in [("cp -a", &trial.cp), ("flatout", &trial.flatout)] {
        let _ = writeln!(text, "  {name}: code {:?}\n{}", outcome.code, indented(&outcome.stderr));
        let changed = Portrait {
            entries: (outcome.after.entries.iter())
                .filter(|(place, entry)| {
                    trial.before.entries.get(*place).map(line) != Some(line(entry))
                })
                .map(|(place, entry)| (place.clone(), entry.clone()))
                .collect(),
        };
        let _ = write!(text, "{}", listing(&changed));
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn listing(portrait: &Portrait) -> String {
    let lines = portrait.entries.iter();
    lines
        .map(|(place, entry)| {
            format!("    {:<14} {}\n", place.escape_ascii().to_string(), line(entry))
        })
        .collect()
}

fn line(entry: &Entry) -> String {
    let Entry { kind, mode, owner, modified, names, .. } = entry;
    let time = if modified.0 == i64::MAX { "now".into() } else { modified.0.to_string() };
    let more = match kind {
        Kind::Symlink => format!(" -> {}", entry.text.escape_ascii()),
        Kind::File => format!(
            " {} bytes {:04x}{}",
            entry.length_bytes,
            entry.digest & 0xffff,
            if *names > 1 { format!(" inode {}", entry.identity.1) } else { String::new() }
        ),
        _ => String::new(),
    };
    let attributes: Vec<String> = (entry.attributes.iter())
        .map(|(name, value)| format!(" {}={:x?}", name.escape_ascii(), value))
        .collect();
    format!("{kind:?} {mode:04o} {}:{} @{time}{more}{}", owner.0, owner.1, attributes.concat())
}
