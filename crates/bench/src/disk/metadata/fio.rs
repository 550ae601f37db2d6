//! The nearest fio job of each row, so that anybody can check. fio's engines for names time the call
//! alone as clat; what they do around it counts in their IOPS.

use flatout_measure::fact::Facts;

use super::row::{Directories, MetadataRow, Test};
use super::{MetadataOptions, room};
use crate::disk::fact;
use crate::disk::fio::word::{file_name, quoted};

/// A command where fio has one, and what is different about it.
pub(super) fn facts(row: &MetadataRow, options: &MetadataOptions) -> Facts {
    let refused = |why: &'static str| Facts::default().with(fact::FIO_NOTE, why);
    match row.test {
        Test::Rename => return refused("fio has no engine that renames"),
        Test::Readdir => return refused("fio has no engine that lists directories"),
        Test::OpenClose => return refused("fio has no engine that opens and closes"),
        Test::Create | Test::Stat | Test::Fsync | Test::Unlink => {}
    }
    let Some(command) = command(row, options) else {
        return refused("fio cannot be told the name of this directory");
    };
    let spread = "fio puts the files of all its jobs into one directory";
    let content = "fio's files hold 4 KiB, these are empty; fio walks whole paths";
    let own_work = "to be compared is 1 divided by fio's mean clat, for each job: fio's IOPS count its \
                    own work, which takes longer than the call";
    let notes = [
        (row.test != Test::Fsync).then_some(own_work),
        (row.directories == Directories::Many).then_some(spread),
        matches!(row.test, Test::Stat | Test::Unlink).then_some(content),
    ];
    let notes: Vec<&str> = notes.into_iter().flatten().collect();
    let mut facts = Facts::default().with(fact::FIO_COMMAND, command);
    facts.set_known(fact::FIO_NOTE, Some(notes.join("; ")).filter(|note| !note.is_empty()));
    facts
}

/// Tried with fio 3.33.
fn command(row: &MetadataRow, options: &MetadataOptions) -> Option<String> {
    let files = room::fio_files(row.test, options).div_ceil(row.threads);
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
