//! A file in which the program keeps what it learned: where it lies, how it is read, and how it is
//! replaced as a whole.
//!
//! A variable names it; an empty one says that there is none. Else it lies in the directory of the
//! user that the XDG specification names.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flatout_io::cause_text;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;

use crate::output;
use crate::output::place::Place;

/// Where settings lie: a variable of the XDG specification, and what it is without, below the user's home.
pub const CONFIG: [&str; 2] = ["XDG_CONFIG_HOME", ".config"];
/// Where that lies which can be found out again.
pub const STATE: [&str; 2] = ["XDG_STATE_HOME", ".local/state"];

/// One of these files, which holds a `T`.
pub struct OwnFile<T> {
    /// What messages call it.
    pub noun: &'static str,
    /// The variable that names it.
    pub named: &'static str,
    /// Its name otherwise, below the directory.
    pub file: &'static str,
    /// What is longer is something else.
    pub most_bytes: u64,
    /// What to do where there is no place for it.
    pub otherwise: &'static str,
    /// What its text says.
    pub parse: fn(&str) -> Result<T, String>,
}

/// Why a file cannot be used.
pub struct Unusable {
    pub text: String,
    /// This user may not read it.
    pub is_private: bool,
}

/// The place that the variable `named` names, none if that is empty, else `file` below a directory.
pub fn place(
    [home, below]: [&str; 2],
    [named, file]: [&str; 2],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    if let Some(named) = variable(named) {
        return (!named.is_empty()).then(|| PathBuf::from(named));
    }
    // A relative path is to be ignored, says the XDG specification.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || absolute("HOME").map(|user| user.join(below));
    Some(absolute(home).or_else(usual)?.join("flatout").join(file))
}

/// Opens a file; a pipe, whose writer would be waited for, is none.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

impl<T: Default> OwnFile<T> {
    fn path(&self) -> Option<PathBuf> {
        place(CONFIG, [self.named, self.file], |name| std::env::var_os(name))
    }

    /// What it holds; `None` where there is none yet, or no place for one.
    ///
    /// Cost: an open that mostly fails.
    pub fn read(&self) -> Option<Result<T, Unusable>> {
        let path = self.path()?;
        let fail = |cause: String| Unusable {
            text: format!("cannot use the {} {path:?}: {cause}", self.noun),
            is_private: false,
        };
        let mut text = String::new();
        let read =
            open(&path).and_then(|file| file.take(self.most_bytes + 1).read_to_string(&mut text));
        match read {
            Err(error) => match error.kind() {
                // Nor is there one below what is no directory, as with HOME=/dev/null.
                ErrorKind::NotFound | ErrorKind::NotADirectory => None,
                kind => {
                    let is_private = kind == ErrorKind::PermissionDenied;
                    Some(Err(Unusable { is_private, ..fail(cause_text(&error)) }))
                }
            },
            Ok(length) if length as u64 > self.most_bytes => {
                Some(Err(fail(format!("it has more than {} bytes", self.most_bytes))))
            }
            Ok(_) => Some((self.parse)(&text).map_err(fail)),
        }
    }

    /// Refuses to go without a place, or with one that cannot be written to or holds something else,
    /// before anything is measured.
    pub fn check(&self) -> Result<(), String> {
        self.place_and_content().map(drop)
    }

    fn place_and_content(&self) -> Result<(PathBuf, T), String> {
        let content = self.read().transpose().map_err(|Unusable { text, .. }| {
            format!("{text}; it is left as it is, {} names another place", self.named)
        })?;
        let path = self.path().ok_or_else(|| {
            let (noun, named, otherwise) = (self.noun, self.named, self.otherwise);
            let why = match std::env::var_os(named) {
                Some(_) => format!("{named} is empty, which means none"),
                None => format!("none of {named}, XDG_CONFIG_HOME and HOME names one"),
            };
            format!("there is no place for the {noun}: {why}{otherwise}")
        })?;
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let made = fs::create_dir_all(directory);
            made.map_err(output::cannot(format_args!("make the directory {directory:?}")))?;
        }
        Place::find(&path)?.check()?;
        Ok((path, content.unwrap_or_default()))
    }

    /// Puts what `changed` makes of its content in its place, one process after the other. Returns where it
    /// lies.
    ///
    /// Errors: it cannot be written, or has become something else meanwhile.
    pub fn change<C: Serialize>(&self, changed: impl FnOnce(T) -> C) -> Result<PathBuf, String> {
        let (path, _) = self.place_and_content()?;
        let above = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = File::open(above.unwrap_or(Path::new("."))).ok();
        // Where there are no locks, or the directory cannot be read, who comes last wins.
        let _unread = directory.as_ref().map(|held| flock(held, FlockOperation::LockExclusive));
        let (path, content) = self.place_and_content()?;
        let changed = serde_json::to_string_pretty(&changed(content));
        let text = changed.map_err(|error| error.to_string())?;
        output::replace(&path, format!("{text}\n").as_bytes())?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_one_named_or_that_of_the_user() {
        let with = |home: [&str; 2], pairs: &[(&str, &str)]| {
            let find = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|p| p.1.into());
            let path = place(home, ["FLATOUT_PROFILE", "profile.json"], find);
            path.map(|path| path.to_string_lossy().into_owned())
        };
        let home = ("HOME", "/home/x");
        assert_eq!(with(CONFIG, &[]), None);
        let usual = "/home/x/.config/flatout/profile.json";
        assert_eq!(with(CONFIG, &[home]).as_deref(), Some(usual));
        let both = with(CONFIG, &[home, ("XDG_CONFIG_HOME", "/c")]);
        assert_eq!(both.as_deref(), Some("/c/flatout/profile.json"));
        assert_eq!(with(CONFIG, &[home, ("XDG_CONFIG_HOME", "c")]).as_deref(), Some(usual));
        let named = with(CONFIG, &[home, ("FLATOUT_PROFILE", "p.json")]);
        assert_eq!(named.as_deref(), Some("p.json"));
        assert_eq!(with(CONFIG, &[home, ("FLATOUT_PROFILE", "")]), None, "none is wanted");
        let state = "/home/x/.local/state/flatout/profile.json";
        assert_eq!(with(STATE, &[home, ("XDG_STATE_HOME", "relative")]).as_deref(), Some(state));
        let own = with(STATE, &[home, ("XDG_STATE_HOME", "/state")]);
        assert_eq!(own.as_deref(), Some("/state/flatout/profile.json"));
    }
}
