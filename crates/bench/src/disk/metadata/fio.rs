//! The fio job of the one row of names that fio (3.33) does alike, and why others have none. Lines for
//! creating, looking up and removing had 0.05 to 0.6 of the rows' rates (ext4, Zen 4, 2026-11-26).

use flatout_measure::Facts;

use super::row::{Directories, MetadataRow, Test};
use super::test_files::TestFiles;
use super::{SMALL_FILE_BYTES, room};
use crate::disk::fact;
use crate::disk::fio::word::{file_name, quoted};

/// Files of a run of fio, which counts whole milliseconds.
const FILES: u32 = 500;

/// A command, or the reason that there is none.
pub(super) fn facts(row: &MetadataRow, files: &TestFiles<'_>) -> Facts {
    match command(row, files) {
        Ok(command) => Facts::default().with(fact::FIO_COMMAND, command),
        Err(why) => Facts::default().with(fact::FIO_NOTE, why),
    }
}

fn command(row: &MetadataRow, files: &TestFiles<'_>) -> Result<String, &'static str> {
    match row.test {
        Test::Fsync if files.filesystem.in_memory => {
            return Err(
                "nothing is made durable in memory: what fio does around each file would count",
            );
        }
        Test::Fsync if row.directories == Directories::Many => {
            return Err("fio puts the files of all its jobs into one directory");
        }
        Test::Fsync => {}
        Test::Create | Test::Stat | Test::Unlink => {
            return Err(
                "fio's engines for names walk whole paths, to files of another kind, and count their \
                 own work, which takes longer than the call",
            );
        }
        Test::Rename => return Err("fio has no engine that renames"),
        Test::Readdir => return Err("fio has no engine that lists directories"),
        Test::OpenClose => return Err("fio has no engine that opens and closes"),
    }
    let options = files.options;
    let bytes = SMALL_FILE_BYTES;
    let number = room::files_of(row.test, options).max(FILES).div_ceil(row.threads);
    let name = file_name(&options.directory);
    let directory = name.ok_or("fio cannot be told the name of this directory")?;
    Ok(format!(
        "fio --name=fsync --ioengine=sync --rw=write --bs={bytes} --filesize={bytes} --fsync=1 \
         --create_on_open=1 --file_service_type=sequential --directory={} --nrfiles={number} \
         --openfiles=1 --fallocate=none --thread --numjobs={} --group_reporting --unlink=1",
        quoted(&directory),
        row.threads
    ))
}
