//! What somebody meant who wrote a word that is not known.

use clap::Command;

use super::bench::Name;

/// How alike two words are at least, from 0 to 1: `cahce` and `cache`, `net` and `network`.
const LEAST: f64 = 0.8;

/// The known word that is most like this one, if any is like it, in whatever letters.
pub fn similar<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let likeness = known.into_iter().map(|name| (strsim::jaro(&word, name), name));
    let most = likeness.max_by(|one, other| one.0.total_cmp(&other.0));
    most.filter(|(likeness, _)| *likeness >= LEAST).map(|(_, name)| name)
}

/// What others call the commands.
const OTHER_WORDS: [(&str, &[&str]); 7] = [
    ("bench", &["benchmark", "measure", "run", "test"]),
    ("copy", &["mirror", "rsync"]),
    ("sum", &["b3sum", "checksum", "cksum", "hash", "md5sum", "sha256sum", "verify", "xxhsum"]),
    ("versus", &["race"]),
    ("compare", &["cmp", "diff"]),
    ("report", &["print", "show", "view"]),
    ("--version", &["version"]),
];

/// Says that a definition has no command, or area, of this name, and what may have been meant.
pub fn unknown(definition: &Command, word: &str) -> String {
    let known: Vec<&str> = definition.get_subcommands().map(Command::get_name).collect();
    let (noun, program) = match definition.get_name() {
        "flatout" => ("command", "flatout "),
        "bench" => ("area", ""),
        other => return format!("'{other}' has no commands, such as '{word}'"),
    };
    let is_called = |(_, words): &&(&str, &[&str])| words.contains(&word);
    let called = OTHER_WORDS.iter().find(is_called).map(|(command, _)| *command);
    let area = Name::of(word).or_else(|| Name::called(word));
    let meant = match area.map(Name::word) {
        Some(area) if noun == "command" => format!("bench {area}"),
        Some(area) => area.to_owned(),
        None => match called.or_else(|| similar(word, known.iter().copied())) {
            Some(meant) => meant.to_owned(),
            None => {
                return format!("there is no {noun} '{word}'; there are {}", known.join(", "));
            }
        },
    };
    format!("there is no {noun} '{word}'; did you mean '{program}{meant}'?")
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let areas = ["cache", "disk", "syscall", "cpu", "memory", "network", "copy"];
        for (word, meant) in [
            ("cahce", Some("cache")),
            ("dsik", Some("disk")),
            ("net", Some("network")),
            ("mem", Some("memory")),
            ("DISK", Some("disk")),
            ("data", None),
            ("/data", None),
            ("", None),
        ] {
            assert_eq!(similar(word, areas), meant, "{word}");
        }
    }
}
