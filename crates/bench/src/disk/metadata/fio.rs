//! The fio job of the one row of names that fio (3.33) does alike, and why others have none. Lines for
//! creating, looking up and removing had 0.05 to 0.6 of the rows' rates (ext4, Zen 4, 2026-11-26): fio's
//! engines for names walk whole paths, to files of another kind, and count work of their own.

use flatout_measure::Facts;

use super::row::{Directories, MetadataRow, Test};
use super::test_files::TestFiles;
use super::{SMALL_FILE_BYTES, room};
use crate::disk::fact;
use crate::disk::fio::word::{file_name, quoted};

/// Files of a run of fio, which counts whole milliseconds.
const FILES: u32 = 500;

/// Said of the other rows.
const NOTHING_ALIKE: &str = "no line of fio does the same without other work that counts";

/// A command, or the reason that there is none.
pub(super) fn facts(row: &MetadataRow, files: &TestFiles<'_>) -> Facts {
    match command(row, files) {
        Some(command) => Facts::default().with(fact::FIO_COMMAND, command),
        None => Facts::default().with(fact::FIO_NOTE, NOTHING_ALIKE),
    }
}

/// Of the row of fsync: not in memory, where nothing is made durable and what fio does around each file
/// would count, nor in many directories, since fio puts the files of all its jobs into one.
fn command(row: &MetadataRow, files: &TestFiles<'_>) -> Option<String> {
    let is_alike = row.test == Test::Fsync && row.directories == Directories::One;
    if !is_alike || files.filesystem.in_memory {
        return None;
    }
    let options = files.options;
    let bytes = SMALL_FILE_BYTES;
    let number = room::files_of(row.test, options).max(FILES).div_ceil(row.threads);
    let directory = file_name(&options.directory)?;
    Some(format!(
        "fio --name=fsync --ioengine=sync --rw=write --bs={bytes} --filesize={bytes} --fsync=1 \
         --create_on_open=1 --file_service_type=sequential --directory={} --nrfiles={number} \
         --openfiles=1 --fallocate=none --thread --numjobs={} --group_reporting --unlink=1",
        quoted(&directory),
        row.threads
    ))
}
