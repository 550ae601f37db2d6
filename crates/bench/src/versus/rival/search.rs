//! Which rivals are meant, and where their programs are.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::{ALL, Found, Rival};
use crate::error::Error;
use crate::versus::heat::Invocation;
use crate::versus::run::{Runner, Spent};

/// Time that a program has to say its version.
const VERSION_LIMIT_NS: u64 = 5_000_000_000;
/// Letters of a version that are kept.
const VERSION_LETTERS: usize = 100;

/// Names that mean several variants.
const FAMILIES: [&str; 2] = ["cp", "rsync"];

/// The rivals that `name` means: itself, or all variants of `cp` or `rsync`.
///
/// Errors: nobody is called so; the names that there are are listed.
pub fn named(name: &str) -> Result<Vec<&'static Rival>, Error> {
    let is_family = FAMILIES.contains(&name);
    let means = |rival: &&Rival| rival.name == name || (is_family && rival.program == name);
    let rivals: Vec<_> = ALL.iter().filter(means).collect();
    if rivals.is_empty() {
        let names: Vec<_> = ALL.iter().map(|rival| rival.name).collect();
        return Err(Error::Usage(format!(
            "{name:?} is no rival that flatout knows; there are {} (cp and rsync mean all their variants)",
            names.join(", ")
        )));
    }
    Ok(rivals)
}

/// Looks for a program along `path`, as execvp(3) does. Folders that are not absolute are left
/// out: what they mean depends on where one stands.
pub fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    path.as_bytes()
        .split(|&byte| byte == b':')
        .map(|folder| Path::new(OsStr::from_bytes(folder)))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}

/// Looks for a rival along `path` and asks it for its version; `None` when it is not there.
pub fn look(rival: &'static Rival, path: &OsStr, runner: &mut dyn Runner) -> Option<Found> {
    let program = find(rival.program, path)?;
    let version = version(rival, &program, runner);
    Some(Found { rival, path: program, version })
}

/// What the program says about its version; empty when it says nothing, fails or hangs.
fn version(rival: &Rival, program: &Path, runner: &mut dyn Runner) -> String {
    if rival.version.is_empty() {
        return String::new();
    }
    let words = rival.version.iter().map(|word| (*word).into());
    let argv = std::iter::once(program.into()).chain(words).collect();
    let invocation = Invocation { argv, ..Invocation::default() };
    match runner.run(&invocation, VERSION_LIMIT_NS) {
        Ok(Spent { finished, .. }) if finished.exit_code == 0 => first_line(&finished.stdout)
            .or_else(|| first_line(&finished.stderr))
            .unwrap_or_default(),
        _ => String::new(),
    }
}

/// The first line with something on it, without letters that move a terminal.
fn first_line(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|letter| !letter.is_control()).take(VERSION_LETTERS).collect())
}
