//! What went wrong, in the words of GNU cp: scripts look for them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flatout_io::cause_text;
use flatout_report::text::is_unsafe;
use flatout_tree::copy::event::CUT_SHORT;
use flatout_tree::copy::failure::{Cause, Failure};
use flatout_tree::copy::operand::Objection;
use flatout_tree::copy::reason::{
    DIRECTORY_OVER, ELSEWHERE, INSIDE, IS_BACKUP, IS_THERE, JUST_MADE, LEADS_NOWHERE, LOOPS,
    OTHER_OVER, OVER_OTHER, SAME, SAME_FILE,
};
use rustix::io::Errno;

use crate::output::is_unicode;

/// A name as a shell takes it back: in quotes, what cannot be shown here spelt out.
pub fn quote(name: impl AsRef<OsStr>) -> String {
    let is_unicode = is_unicode();
    let is_spelt = |letter| is_unsafe(letter) || !is_unicode && !letter.is_ascii();
    quoted(name.as_ref().as_bytes(), is_spelt)
}

/// The same, in quotes only where it must be.
pub fn word(name: impl AsRef<OsStr>) -> String {
    bare(&quote(name)).to_owned()
}

fn quoted(bytes: &[u8], is_spelt: impl Fn(char) -> bool) -> String {
    let text = std::str::from_utf8(bytes).ok();
    if let Some(text) = text.filter(|text| !text.chars().any(&is_spelt)) {
        let is_plain = |letter: char| {
            letter.is_ascii_alphanumeric() || !letter.is_ascii() || " '%+,-./:@]_".contains(letter)
        };
        let rest = text.strip_prefix(['~', '#']).unwrap_or(text);
        let is_double = text.contains('\'') && rest.chars().all(is_plain);
        return match is_double {
            true => format!("\"{text}\""),
            false => format!("'{}'", text.replace('\'', "'\\''")),
        };
    }
    let mut quoted = String::from("'");
    // GNU cp reads a name with a quote in it twice, and begins as it ended the first time.
    let last = bytes.utf8_chunks().last();
    let mut spells = bytes.contains(&b'\'')
        && last.is_some_and(|it| !it.invalid().is_empty() || it.valid().ends_with(&is_spelt));
    let mut switch = |quoted: &mut String, to: bool, mark: &str| {
        if std::mem::replace(&mut spells, to) != to {
            quoted.push_str(mark);
        }
    };
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                // It ends what was spelt out, too.
                '\'' => {
                    switch(&mut quoted, false, "");
                    quoted.push_str("'\\''");
                }
                letter if is_spelt(letter) => {
                    switch(&mut quoted, true, "'$'");
                    spell(&mut quoted, letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                letter => {
                    switch(&mut quoted, false, "''");
                    quoted.push(letter);
                }
            }
        }
        if !chunk.invalid().is_empty() {
            switch(&mut quoted, true, "'$'");
            spell(&mut quoted, chunk.invalid());
        }
    }
    quoted.push('\'');
    quoted
}

/// Bytes as they stand in `$'…'`.
fn spell(quoted: &mut String, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'\r' => quoted.push_str("\\r"),
            byte => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
}

/// Why an entry was not copied.
pub fn of_failure(failure: &Failure) -> String {
    let path = quote(&failure.path);
    let other = failure.other.as_ref().map(quote).unwrap_or_default();
    let (operation, cause) = (failure.refusal.operation, &failure.refusal.cause);
    let said = match cause {
        // cp looks for it first.
        Cause::System(Errno::NAMETOOLONG) if operation == "make the directory" => {
            attempt("stat", &path, &other).map(|it| format!("{it}: {cause}"))
        }
        Cause::System(_) => attempt(operation, &path, &other).map(|it| format!("{it}: {cause}")),
        Cause::Reason(reason) => because(reason, operation, (&path, &other)),
        Cause::Aside(_) => None,
    };
    said.unwrap_or_else(|| failure.to_string())
}

/// What the kernel did not let us do.
fn attempt(operation: &str, path: &str, other: &str) -> Option<String> {
    Some(match operation {
        "examine" | "stat" => format!("cannot stat {path}"),
        "open" if other.is_empty() => format!("cannot access {path}"),
        "open" => format!("cannot open {path} for reading"),
        "open the directory" | "list" => format!("cannot access {path}"),
        "read" => format!("error reading {path}"),
        "write" => format!("error writing {path}"),
        "create" => format!("cannot create regular file {path}"),
        "make the directory" => format!("cannot create directory {path}"),
        "make the symlink" => format!("cannot create symbolic link {path}"),
        "make a symlink to the source at" => {
            format!("cannot create symbolic link {path} to {other}")
        }
        "make the FIFO" => format!("cannot create fifo {path}"),
        "make the socket" | "make the device" => format!("cannot create special file {path}"),
        "link" => format!("cannot create hard link {path} to {other}"),
        "read the symlink" => format!("cannot read symbolic link {path}"),
        "remove" => format!("cannot remove {path}"),
        "back up" => format!("cannot backup {path}"),
        "share the extents of" => format!("failed to clone {path} from {other}"),
        "set the times of" => format!("preserving times for {path}"),
        "set the owner of" => format!("failed to preserve ownership for {path}"),
        "set the mode of" => format!("preserving permissions for {path}"),
        "set the extended attributes of" => format!("setting attributes for {path}"),
        _ => return None,
    })
}

/// What we did not want to do.
fn because(reason: &str, operation: &str, (path, other): (&str, &str)) -> Option<String> {
    Some(match reason {
        SAME | SAME_FILE => format!("{other} and {path} are the same file"),
        DIRECTORY_OVER => format!("cannot overwrite directory {path} with non-directory"),
        INSIDE => format!("cannot copy a directory, {other}, into itself, {path}"),
        OTHER_OVER | OVER_OTHER => {
            format!("cannot overwrite non-directory {path} with directory {other}")
        }
        JUST_MADE if operation == "write through" => {
            format!("will not copy {other} through just-created symlink {path}")
        }
        JUST_MADE => format!("will not overwrite just-created {path} with {other}"),
        IS_THERE => format!("not replacing {path}"),
        LEADS_NOWHERE => format!("not writing through dangling symlink {path}"),
        IS_BACKUP => format!("backing up {path} might destroy source;  {other} not copied"),
        // Quoted only where it must be.
        ELSEWHERE => {
            format!("{}: can make relative symbolic links only in current directory", bare(path))
        }
        LOOPS => format!("cannot copy cyclic symbolic link {path}"),
        _ => return None,
    })
}

/// A quoted name without its quotes, if a shell takes it back without them.
fn bare(quoted: &str) -> &str {
    let inside = quoted.trim_matches('\'');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+,@%-]~#{}".contains(&byte);
    let is_all = inside.bytes().all(|byte| is_plain(byte) || !byte.is_ascii());
    // At its begin these two mean something.
    if is_all && !inside.is_empty() && !inside.starts_with(['~', '#']) { inside } else { quoted }
}

/// What a copy lacks for which cp fails. Its path is shown from the current directory, where it lies below.
pub fn of_incomplete(target: &OsStr, code: &str, cause: Option<Errno>) -> String {
    let below = std::env::current_dir().ok();
    let below = below.and_then(|directory| Path::new(target).strip_prefix(directory).ok());
    let path = quote(below.map_or(target, Path::as_os_str));
    let what = match code {
        "owner_not_kept" => "failed to preserve ownership for",
        "times_not_kept" => "preserving times for",
        "links_not_kept" => "cannot create hard link",
        CUT_SHORT => "less was read than the length of the source tells for",
        "xattr_not_kept" | "capability_not_kept" => "setting attributes for",
        _ => "preserving permissions for",
    };
    let cause = cause.map(|errno| format!(": {}", cause_text(&errno.into())));
    format!("{what} {path}{}", cause.unwrap_or_default())
}

/// Why an operand is not copied. `into`: what says that there are several.
pub fn of_objection(objection: &Objection, into: &str) -> String {
    match objection {
        Objection::Failed(failure) if failure.refusal.operation == "copy into" => {
            format!("{into} {}: {}", quote(&failure.path), failure.refusal.cause)
        }
        Objection::Failed(failure) => of_failure(failure),
        Objection::Omitted { directory } => {
            format!("-r not specified; omitting directory {}", quote(directory))
        }
        Objection::Refused { operand, reason } => {
            let [source, target] = [&operand.source, &operand.target].map(quote);
            let said = because(reason, "", (&target, &source));
            said.unwrap_or_else(|| objection.to_string())
        }
        Objection::Clash { .. } => objection.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_a_shell_takes_them_back() {
        for (name, in_unicode, in_ascii) in [
            (b"a".as_slice(), "'a'", "'a'"),
            (b"", "''", "''"),
            (b"a b$", "'a b$'", "'a b$'"),
            (b"a'b", "\"a'b\"", "\"a'b\""),
            (b"a'$b", "'a'\\''$b'", "'a'\\''$b'"),
            (b"a'b~", "'a'\\''b~'", "'a'\\''b~'"),
            (b"~a'@b", "\"~a'@b\"", "\"~a'@b\""),
            (b"a'=b", "'a'\\''=b'", "'a'\\''=b'"),
            (b"a'\n", "'''a'\\'''$'\\n'", "'''a'\\'''$'\\n'"),
            ("'é".as_bytes(), "\"'é\"", "''\\'''$'\\303\\251'"),
            (b"a\nb", "'a'$'\\n''b'", "'a'$'\\n''b'"),
            (b"\x01\xffx", "''$'\\001\\377''x'", "''$'\\001\\377''x'"),
            (b"\xff'x", "''$'\\377'\\''x'", "''$'\\377'\\''x'"),
            ("größe".as_bytes(), "'größe'", "'gr'$'\\303\\266\\303\\237''e'"),
            ("a\u{2028}".as_bytes(), "'a'$'\\342\\200\\250'", "'a'$'\\342\\200\\250'"),
        ] {
            assert_eq!(quoted(name, is_unsafe), in_unicode);
            let is_spelt = |letter: char| is_unsafe(letter) || !letter.is_ascii();
            assert_eq!(quoted(name, is_spelt), in_ascii);
        }
    }
}
