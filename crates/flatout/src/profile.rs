//! The file in which `flatout tune` leaves what it measured, and in which others look it up.
//!
//! `$FLATOUT_PROFILE` names it; an empty one says that there is none. Else it is
//! `flatout/profile.json` in `$XDG_CONFIG_HOME` or `~/.config`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_io::{MachineProfile, Profile, ProfileEntry};

use crate::output;

/// A table is a few KiB for each place; what is longer is something else.
const MOST_BYTES: u64 = 4 << 20;
/// Hexadecimal digits that stand for a machine.
const MACHINE_DIGITS: usize = 16;

/// The variable that names the table, and the table's name if it does not.
const NAMED: &str = "FLATOUT_PROFILE";
const FILE: &str = "profile.json";

/// Where the table lies, if there is a place for it.
pub fn path() -> Option<PathBuf> {
    beside(NAMED, FILE)
}

/// Where a file of the program lies: the one that the variable `named` names, none if that is
/// empty, else `file` in its directory.
pub fn beside(named: &str, file: &str) -> Option<PathBuf> {
    place([named, file], |name| std::env::var_os(name))
}

fn place([named, file]: [&str; 2], variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(named) = variable(named) {
        return (!named.is_empty()).then(|| PathBuf::from(named));
    }
    // A relative path is to be ignored, says the XDG specification.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    let directory = absolute("XDG_CONFIG_HOME").or_else(home)?;
    Some(directory.join("flatout").join(file))
}

/// The table, if there is one. One that makes no sense is complained about, and is none; one that
/// this user may not read is somebody else's: `HOME` is often that of another user.
///
/// Cost: an open that mostly fails; else a few KiB are read.
pub fn load() -> Option<Arc<MachineProfile>> {
    match read()? {
        Ok(profile) => Some(Arc::new(MachineProfile { profile, machine: machine() })),
        Err(Unusable { is_private: true, .. }) => None,
        Err(Unusable { text, .. }) => {
            output::complain(&format!("{text}; going on with the defaults"));
            None
        }
    }
}

/// Why a table cannot be used.
struct Unusable {
    text: String,
    /// This user may not read it.
    is_private: bool,
}

/// The table; `None` where there is none yet, or no place for one.
fn read() -> Option<Result<Profile, Unusable>> {
    let path = path()?;
    let fail = |cause: String| Unusable {
        text: format!("cannot use the profile {path:?}: {cause}"),
        is_private: false,
    };
    let read = File::open(&path).and_then(|file| {
        let mut text = String::new();
        file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
        Ok(text)
    });
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            let is_private = error.kind() == io::ErrorKind::PermissionDenied;
            Some(Err(Unusable { is_private, ..fail(error.to_string()) }))
        }
        Ok(text) if text.len() as u64 > MOST_BYTES => {
            Some(Err(fail(format!("it has more than {MOST_BYTES} bytes"))))
        }
        Ok(text) => Some(Profile::parse(&text).map_err(fail)),
    }
}

/// What tells this machine from others that share a home directory: a digest of its machine-id,
/// which is not to be shown to others itself (machine-id(5)).
pub fn machine() -> String {
    let id = fs::read("/etc/machine-id").unwrap_or_default();
    if id.is_empty() {
        return "unknown".to_owned();
    }
    let mut hasher = Hasher::new(Algorithm::Blake3);
    hasher.update(b"flatout profile ");
    hasher.update(id.trim_ascii());
    hasher.finish().to_string().chars().take(MACHINE_DIGITS).collect()
}

/// Refuses a place that cannot be written to, or holds something else, before anything is
/// measured. Returns it.
pub fn check() -> Result<PathBuf, String> {
    let path = path().ok_or(
        "there is no place for the profile: none of FLATOUT_PROFILE, XDG_CONFIG_HOME and HOME \
         names one; --no-save measures without leaving one",
    )?;
    if let Some(Err(Unusable { text, .. })) = read() {
        return Err(format!("{text}; it is left as it is, FLATOUT_PROFILE names another place"));
    }
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(directory)
            .map_err(|error| format!("cannot make the directory {directory:?}: {error}"))?;
    }
    output::check_place(&path)?;
    Ok(path)
}

/// Puts the entries into the table; those with the same key go.
///
/// Errors: it cannot be written, or has become something else meanwhile.
pub fn save(entries: &[ProfileEntry]) -> Result<PathBuf, String> {
    let path = check()?;
    let mut profile = read().transpose().map_err(|error| error.text)?.unwrap_or_default();
    entries.iter().cloned().for_each(|entry| profile.put(entry));
    // A link to where somebody keeps it stays one.
    let path = path.canonicalize().unwrap_or(path);
    let text = serde_json::to_string_pretty(&profile).map_err(|error| error.to_string())?;
    output::replace(&path, format!("{text}\n").as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_one_named_or_that_of_the_user() {
        let with = |pairs: &[(&str, &str)]| {
            let find = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|p| p.1.into());
            place([NAMED, FILE], find).map(|path| path.to_string_lossy().into_owned())
        };
        let home = ("HOME", "/home/x");
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[home]).as_deref(), Some("/home/x/.config/flatout/profile.json"));
        let both = with(&[home, ("XDG_CONFIG_HOME", "/c")]);
        assert_eq!(both.as_deref(), Some("/c/flatout/profile.json"));
        let relative = with(&[home, ("XDG_CONFIG_HOME", "c")]);
        assert_eq!(relative.as_deref(), Some("/home/x/.config/flatout/profile.json"));
        assert_eq!(with(&[home, ("FLATOUT_PROFILE", "p.json")]).as_deref(), Some("p.json"));
        assert_eq!(with(&[home, ("FLATOUT_PROFILE", "")]), None, "none is wanted");
    }

    #[test]
    fn a_machine_has_one_name() {
        assert_eq!(machine(), machine());
        assert!(!machine().is_empty());
    }
}
