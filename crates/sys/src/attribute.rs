//! One small file of the kernel's: a text or a number, or nothing; and the lines of one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Most of the kernel's files are shorter.
const USUAL_BYTES: usize = 4 << 10;

/// All of a file.
///
/// Cost: open, two reads, close. `fs::read` asks for the length first, which is 0 of all of these,
/// and then reads 32 bytes, 32 more, 64 and so on: some ten calls.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    beginning(path, u64::MAX)
}

/// The same, but no more than so many bytes.
pub fn beginning(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    File::open(path)?.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as text, `None` when it is missing: names in it, of programs and mapped files, may be any bytes.
pub fn whole(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&bytes(path).ok()?).into_owned())
}

/// The text without the blanks around it; `None` when it is missing or empty.
pub fn text(folder: &Path, name: &str) -> Option<String> {
    let bytes = bytes(&folder.join(name)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number in decimal digits.
pub fn number(folder: &Path, name: &str) -> Option<u64> {
    text(folder, name)?.parse().ok()
}

/// `0` or `1`.
pub fn flag(folder: &Path, name: &str) -> Option<bool> {
    match number(folder, name)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// A path, whatever bytes it is made of, without the line feed after it.
pub fn path(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut bytes = bytes(&folder.join(name)).ok()?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    (!bytes.is_empty()).then(|| std::ffi::OsString::from_vec(bytes).into())
}

/// The names of a folder's entries, sorted; empty when there is no such folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What follows a name at the beginning of a line, without the blanks around it.
pub fn after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The number that follows a name at the beginning of a line.
pub fn number_after(text: &str, name: &str) -> Option<u64> {
    after(text, name)?.parse().ok()
}

/// The bytes that follow a name at the beginning of a line, as `12 kB`.
pub fn kib_after(text: &str, name: &str) -> Option<u64> {
    of_kib(after(text, name)?)
}

/// Whether a name is the prefix and a number.
pub fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Bytes, of `12 kB`.
pub fn of_kib(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
