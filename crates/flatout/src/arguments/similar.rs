//! What somebody meant who wrote a word that is not known.

/// How alike two words are at least, from 0 to 1: `cahce` and `cache`, `net` and `network`.
const LEAST: f64 = 0.8;

/// The known word that is most like this one, if any is like it, in whatever letters.
pub fn similar<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let likeness = known.into_iter().map(|name| (strsim::jaro(&word, name), name));
    let most = likeness.max_by(|one, other| one.0.total_cmp(&other.0));
    most.filter(|(likeness, _)| *likeness >= LEAST).map(|(_, name)| name)
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
