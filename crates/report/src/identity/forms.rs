//! Texts with a form of their own, cleaned by that form: mount options, lines for a shell,
//! identifiers.

use std::net::{IpAddr, SocketAddr};

use super::{HIDDEN, Secrets, hide, is_common};
use crate::text::Joined;

/// Mount options whose values name a host or a person.
const OPTIONS: [&str; 8] =
    ["addr", "clientaddr", "mountaddr", "ip", "username", "user", "domain", "uid"];

/// Options of a line for a shell whose values are places, and what stands in place of these, so
/// that the line stays one that a shell reads.
const LINE_OPTIONS: [(&str, &str); 2] = [("--filename=", "FILE"), ("--directory=", "DIRECTORY")];

/// Hides what the command line says of another machine: `--connect HOST[:PORT]`, `-cHOST`.
pub(super) fn hide_hosts(argv: &mut [String], secrets: &mut Secrets) {
    let mut is_value = false;
    for word in argv {
        let place = match word.as_str() {
            _ if is_value => Some(0),
            word if word.starts_with("--connect=") => Some("--connect=".len()),
            "--connect" => Some(word.len()),
            word => behind_letter(word),
        };
        is_value = !is_value && !word.ends_with('=') && place == Some(word.len());
        let Some(place) = place.filter(|_| !is_value) else { continue };
        let host = word.split_off(place);
        word.push_str(HIDDEN);
        let name = host.rsplit_once(':').map_or(&*host, |(name, _)| name);
        [&*host, name].into_iter().for_each(|text| hide(secrets, text));
    }
}

/// Where the value of `-c` begins in a word of letters, of which those before take none.
fn behind_letter(word: &str) -> Option<usize> {
    let (flags, _) = word.strip_prefix('-')?.split_once('c')?;
    flags.chars().all(|flag| "qvR".contains(flag)).then_some("-c".len() + flags.len())
}

/// Hides a value of the command line that names a place by way of folders, from the current one on:
/// nothing else has a slash there.
pub(super) fn hide_place(word: &mut String) {
    let start = word.find('=').map_or(0, |at| at + 1);
    if word[start..].contains('/') && !is_common(&word[start..]) {
        word.replace_range(start.., HIDDEN);
    }
}

/// Whether a word is the address of a machine, with or without a port; every machine has loopback.
pub(super) fn is_address(word: &str) -> bool {
    let bare = word.trim_matches(['[', ']']);
    let address = bare.parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(word.parse::<SocketAddr>().ok()?.ip()));
    address.is_some_and(|address| !address.is_loopback() && !address.is_unspecified())
}

/// Mount options without the values that name a host or a person.
pub(super) fn without_values(options: &str, secrets: &mut Secrets) -> String {
    let clean = |option: &str| match option.split_once('=') {
        Some((key, value)) if OPTIONS.contains(&key) => {
            hide(secrets, value);
            format!("{key}={HIDDEN}")
        }
        _ => option.to_owned(),
    };
    options.split(',').map(clean).joined(",")
}

/// A line for a shell in which no value of [`LINE_OPTIONS`] tells a place, quoted or not.
pub(super) fn without_places(line: &str) -> String {
    let clean = |word: &str| {
        let bare = bare(word);
        let known = LINE_OPTIONS.iter().find_map(|(option, shown)| {
            let place = bare.strip_prefix(option)?;
            (!is_common(place)).then(|| format!("{option}{shown}"))
        });
        known.unwrap_or_else(|| word.to_owned())
    };
    shell_words(line).into_iter().map(clean).joined(" ")
}

/// A word of a line without what quotes it.
pub(crate) fn bare(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect()
}

/// The words of a line as a shell sees them, quotes kept.
pub(crate) fn shell_words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut quote, mut is_escaped) = (0, None, false);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            _ if is_escaped => is_escaped = false,
            ('\\', None | Some('"')) => is_escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => {
                words.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[start..]);
    words.retain(|word| !word.is_empty());
    words
}

/// Replaces universally unique identifiers, such as stand in the name of an encrypted volume.
pub(super) fn without_uuids(text: &str) -> String {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    const LENGTH: usize = 36;
    let is_uuid = |text: &str| {
        let groups = text
            .split('-')
            .map(|group| (group.len(), group.bytes().all(|byte| byte.is_ascii_hexdigit())));
        groups.eq(GROUPS.map(|length| (length, true)))
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = match rest.get(..LENGTH).filter(|text| is_uuid(text)) {
            Some(found) => {
                out.push_str(HIDDEN);
                found.len()
            }
            None => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_line_for_a_shell_are_neutral_words() {
        let cases = [
            (
                "fio --name=x --directory=data --rw=read",
                "fio --name=x --directory=DIRECTORY --rw=read",
            ),
            ("fio '--filename=my dir/it'\\''s' --bs=4k", "fio --filename=FILE --bs=4k"),
            ("fio --filename=\"a \\\" b\" --bs=4k", "fio --filename=FILE --bs=4k"),
            ("fio --filename=my\\ dir/x", "fio --filename=FILE"),
            ("fio --filename=/dev/vda --readonly", "fio --filename=/dev/vda --readonly"),
            ("fio --filename=/dev/disk/by-id/ata-X_123", "fio --filename=FILE"),
            ("fio --directory='open quote", "fio --directory=DIRECTORY"),
        ];
        for (line, expected) in cases {
            assert_eq!(without_places(line), expected);
        }
    }

    #[test]
    fn options_of_a_mount_tell_no_host() {
        let mut secrets = Secrets::new();
        let found = without_values("rw,addr=192.0.2.7,vers=4.2,username=anna", &mut secrets);
        assert_eq!(found, "rw,addr=(hidden),vers=4.2,username=(hidden)");
        assert_eq!(secrets.len(), 2);
    }

    #[test]
    fn hosts_and_addresses_go_but_loopback_stays() {
        let argv = |words: &str| -> Vec<String> { words.split(' ').map(str::to_owned).collect() };
        for (line, expected) in [
            ("bench --connect db.corp:78 -q", "bench --connect (hidden) -q"),
            ("bench --connect=db.corp -q", "bench --connect=(hidden) -q"),
            ("bench -cdb.corp", "bench -c(hidden)"),
            ("bench -c db.corp cpu", "bench -c (hidden) cpu"),
            ("bench -qvc db.corp cpu", "bench -qvc (hidden) cpu"),
            ("bench -Rcdb.corp cpu", "bench -Rc(hidden) cpu"),
            ("bench -ocpu -vq", "bench -ocpu -vq"),
            ("bench --csv x", "bench --csv x"),
        ] {
            let (mut argv, mut secrets) = (argv(line), Secrets::new());
            hide_hosts(&mut argv, &mut secrets);
            assert_eq!(argv.join(" "), expected);
            let is_known = secrets.values().any(|known| known.contains_key("db.corp"));
            assert_eq!(is_known, line != expected);
        }
        for (word, expected) in [
            ("clients/acme/x.html", "(hidden)"),
            ("--history=clients/acme", "--history=(hidden)"),
            ("x.html", "x.html"),
            ("/dev/vda", "/dev/vda"),
            ("--filename=/dev/vda", "--filename=/dev/vda"),
        ] {
            let mut found = word.to_owned();
            hide_place(&mut found);
            assert_eq!(found, expected);
        }
        for (word, expected) in [
            ("10.0.0.5", true),
            ("10.0.0.5:7878", true),
            ("[fd00::1]:80", true),
            ("127.0.0.1:7878", false),
            ("::1", false),
            ("6.18.44", false),
        ] {
            assert_eq!(is_address(word), expected, "{word}");
        }
    }

    #[test]
    fn identifiers_go_but_words_stay() {
        let text = "luks-0b51c8d2-5a4e-4c1b-9a55-0f7d1f1b2c3d, encrypted; dm-crypt-é-a-b";
        assert_eq!(without_uuids(text), "luks-(hidden), encrypted; dm-crypt-é-a-b");
    }
}
