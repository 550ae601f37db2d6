//! How fio and a shell read a word.

use std::path::Path;

use crate::versus::run;

/// A name as fio reads it; none where it would take another file.
///
/// A colon would begin another name. At `#` and `;` fio cuts a value, as in its job files, and
/// blanks at the ends are lost; nothing escapes them (tried with 3.33).
pub(in crate::disk) fn file_name(path: &Path) -> Option<String> {
    let name = path.to_str()?;
    let is_cut = name.contains(['#', ';']) || name.trim() != name;
    // A dash alone is the standard input.
    let here = if name == "-" { "./" } else { "" };
    (!is_cut).then(|| format!("{here}{}", name.replace(':', "\\:")))
}

/// A word as a shell reads it.
pub(in crate::disk) fn quoted(word: &str) -> String {
    run::quoted(word.as_ref()).to_string_lossy().into_owned()
}

/// A time as fio reads it, rounded up.
pub(super) fn duration(ns: u64) -> String {
    match ns.div_ceil(1_000_000) {
        ms if ms % 1000 == 0 => (ms / 1000).to_string(),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("--rw=read"), "--rw=read");
        assert_eq!(quoted("--filename=/a b/it's"), "'--filename=/a b/it'\\''s'");
    }

    #[test]
    fn a_name_is_one_name_for_fio_or_none() {
        let name = |text: &str| file_name(Path::new(text));
        assert_eq!(name("a:b").as_deref(), Some("a\\:b"));
        assert_eq!(name("a\\b").as_deref(), Some("a\\b"));
        assert_eq!(name("-").as_deref(), Some("./-"));
        assert_eq!(name("a b'c\"d").as_deref(), Some("a b'c\"d"));
        for cut in ["a#b", "a;b", "a ", " a", "a\t"] {
            assert_eq!(name(cut), None, "{cut:?}");
        }
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(file_name(Path::new(std::ffi::OsStr::from_bytes(b"\xff"))), None);
    }

    #[test]
    fn times_are_whole_milliseconds_or_seconds() {
        assert_eq!(duration(5_000_000_000), "5");
        assert_eq!(duration(500_000_000), "500ms");
        assert_eq!(duration(1_500_000_001), "1501ms");
        assert_eq!(duration(1), "1ms");
    }
}
