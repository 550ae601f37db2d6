//! The nearest fio job of each row, so that anybody can check.

use super::row::{Directories, Row, Test};
use super::{Options, room};
use crate::disk::fio::word::{file_name, quoted};

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
    let Some(command) = command(row, options) else {
        return vec![("fio_note", "fio cannot be told the name of this directory".to_owned())];
    };
    let mut entries = vec![("fio_command", command)];
    if !notes.is_empty() {
        entries.push(("fio_note", notes.join("; ")));
    }
    entries
}

/// Tried with fio 3.33.
fn command(row: &Row, options: &Options) -> Option<String> {
    let files = room::files_of(row.test, options).div_ceil(row.threads);
    let bytes = options.small_file_bytes;
    let directory = file_name(&options.directory)?;
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
    Some(format!(
        "fio --name={name} {engine} --directory={} --nrfiles={files} --openfiles=1 --fallocate=none \
         --thread --numjobs={} --group_reporting --unlink=1",
        quoted(&directory),
        row.threads
    ))
}
