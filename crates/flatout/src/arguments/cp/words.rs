//! The words that options of cp take. Each may be abbreviated as long as it is clear.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

use flatout_tree::copy::backup::{Backups, Naming};
use flatout_tree::copy::options::{Preserve, When};
use flatout_tree::copy::rules::Skip;

/// Finds a word, or the only one that begins so; several that mean the same count as one.
fn find<T: Copy + PartialEq>(option: &str, word: &str, known: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, found)) = known.iter().find(|(name, _)| *name == word) {
        return Ok(*found);
    }
    let mut begun = known.iter().filter(|(name, _)| name.starts_with(word)).map(|(_, one)| *one);
    let what = match begun.next() {
        Some(found) if begun.all(|other| other == found) => return Ok(found),
        Some(_) => "ambiguous",
        None => "invalid",
    };
    let names = known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    Err(format!("{what} argument '{word}' for '{option}'; valid arguments are {names}"))
}

/// `--sparse` and `--reflink`.
pub fn when(option: &str, word: &str) -> Result<When, String> {
    let known = [("auto", When::Auto), ("always", When::Always), ("never", When::Never)];
    find(option, word, &known)
}

/// `--update`: what is left as it is.
pub fn update(word: &str) -> Result<Skip, String> {
    let known = [
        ("all", Skip::Nothing),
        ("none", Skip::Existing),
        ("none-fail", Skip::ExistingFails),
        ("older", Skip::NotOlder),
    ];
    find("--update", word, &known)
}

/// `--backup` and its variable; `None`: there are no backups.
pub fn naming(option: &str, word: &str) -> Result<Option<Naming>, String> {
    let known = [
        ("none", None),
        ("off", None),
        ("simple", Some(Naming::Simple)),
        ("never", Some(Naming::Simple)),
        ("existing", Some(Naming::Existing)),
        ("nil", Some(Naming::Existing)),
        ("numbered", Some(Naming::Numbered)),
        ("t", Some(Naming::Numbered)),
    ];
    find(option, word, &known)
}

/// `--backup`, its word and the suffix, or what the environment says instead.
///
/// Errors: a word that means no kind of backup.
pub fn backups(
    control: Option<&OsStr>,
    suffix: Option<&OsString>,
) -> Result<Option<Backups>, String> {
    let Some(control) = control else { return Ok(None) };
    let naming = match control.is_empty() {
        true => match std::env::var_os("VERSION_CONTROL").filter(|word| !word.is_empty()) {
            Some(word) => naming("$VERSION_CONTROL", &word.to_string_lossy())?,
            None => naming("--backup", "existing")?,
        },
        false => naming("--backup", &control.to_string_lossy())?,
    };
    let set = std::env::var_os("SIMPLE_BACKUP_SUFFIX");
    let suffix = suffix.cloned().or(set).map(OsStringExt::into_vec);
    // What would name a file in another directory is none.
    let is_suffix = |suffix: &Vec<u8>| !suffix.is_empty() && !suffix.contains(&b'/');
    let suffix = suffix.filter(is_suffix).unwrap_or_else(|| b"~".to_vec());
    Ok(naming.map(|naming| Backups { naming, suffix }))
}

/// Words of `--preserve` and `--no-preserve`, those of [`OF_CP`] first.
pub const ATTRIBUTES: [(&str, Preserve); 9] = [
    ("mode", Preserve::MODE),
    ("timestamps", Preserve::TIMESTAMPS),
    ("ownership", Preserve::OWNERSHIP),
    ("links", Preserve::LINKS),
    ("context", Preserve::CONTEXT),
    ("xattr", Preserve::XATTR),
    ("all", Preserve::ALL),
    ("flags", Preserve::FLAGS),
    ("project", Preserve::PROJECT),
];
/// Those that cp has.
pub const OF_CP: &[(&str, Preserve)] = ATTRIBUTES.split_at(7).0;

/// `--preserve` and `--no-preserve`.
pub fn attributes(
    option: &str,
    list: &str,
    known: &[(&str, Preserve)],
) -> Result<Preserve, String> {
    let mut found = list.split(',').map(|word| find(option, word, known));
    found.try_fold(Preserve::NOTHING, |all, one| Ok(all.with(one?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_abbreviated_as_long_as_they_are_clear() {
        assert_eq!(when("--sparse", "al"), Ok(When::Always));
        assert!(when("--sparse", "a").unwrap_err().starts_with("ambiguous"));
        assert!(when("--sparse", "x").unwrap_err().starts_with("invalid"));
        assert_eq!(update("none"), Ok(Skip::Existing));
        assert_eq!(naming("--backup", "n"), Err(naming("--backup", "n").unwrap_err()));
        assert_eq!(naming("--backup", "nu"), Ok(Some(Naming::Numbered)));
        assert_eq!(naming("--backup", "off"), Ok(None));
        assert_eq!(
            attributes("--preserve", "mo,t", OF_CP),
            Ok(Preserve::MODE.with(Preserve::TIMESTAMPS))
        );
    }
}
