//! The nearest fio job of each row, so that anybody can check.

use super::row::{Directories, Row, Test};
use super::{Options, room};

/// Keys and texts for the audit: a command where fio has one, and what is different about it.
pub(super) fn audit(row: &Row, options: &Options) -> Vec<(&'static str, String)> {
    let refusal = match row.test {
        Test::Rename => Some("fio has no engine that renames"),
        Test::Readdir => Some("fio has no engine that lists directories"),
        Test::OpenClose => Some("fio has no engine that opens and closes"),
        Test::Create | Test::Stat | Test::Fsync | Test::Unlink => None,
    };
    if let Some(text) = refusal {
        return vec![("fio_note", text.to_owned())];
    }
    let mut notes = Vec::new();
    if row.directories == Directories::Many {
        notes.push("fio puts the files of all its jobs into one directory");
    }
    if matches!(row.test, Test::Stat | Test::Unlink) {
        notes.push("fio's files hold 4 KiB, these are empty; fio walks whole paths");
    }
    let mut entries = vec![("fio_command", command(row, options))];
    if !notes.is_empty() {
        entries.push(("fio_note", notes.join("; ")));
    }
    entries
}

/// Tried with fio 3.33.
fn command(row: &Row, options: &Options) -> String {
    let files = room::files_of(row.test, options).div_ceil(row.threads);
    let bytes = options.small_file_bytes;
    // fio takes a colon for the end of a directory's name.
    let directory = options.directory.to_string_lossy().replace(':', "\\:");
    let engine = match row.test {
        Test::Create => "--ioengine=filecreate --create_on_open=1 --filesize=4k".to_owned(),
        Test::Stat => "--ioengine=filestat --filesize=4k".to_owned(),
        Test::Unlink => "--ioengine=filedelete --filesize=4k".to_owned(),
        _ => format!(
            "--ioengine=sync --rw=write --bs={bytes} --filesize={bytes} --fsync=1 --create_on_open=1 \
             --file_service_type=sequential"
        ),
    };
    let name = row.test.id().trim_start_matches("disk/");
    format!(
        "fio --name={name} {engine} --directory={} --nrfiles={files} --openfiles=1 --fallocate=none \
         --thread --numjobs={} --group_reporting --unlink=1",
        quoted(&directory),
        row.threads
    )
}

/// One word for a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_the_shell() {
        assert_eq!(quoted("/tmp/a-b"), "/tmp/a-b");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
