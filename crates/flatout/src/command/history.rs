//! Records that runs left: of a file, and of a folder, for what is usual on a machine.

use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

use flatout_io::escape;
use flatout_measure::record::Record;
use flatout_report::document;
use flatout_sys::standard;

use crate::output::cannot;

/// What a document is called.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { escape(path) }
}

/// The record of a document; `-` is standard input.
pub fn document(path: &Path) -> Result<Record, String> {
    if path != Path::new("-") {
        return document::read(path);
    }
    let input = standard::input().map_err(cannot("open standard input"))?;
    document::parse_from(input, path)
}

/// The files in a folder whose names end so, in the order of their names. Pipes, devices and folders
/// are no results that a run left: opening a pipe waits for a writer.
///
/// Errors: it cannot be read.
pub fn files(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, String> {
    let listed = std::fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let listed = listed.map_err(cannot(format_args!("read {folder:?}")))?;
    let mut files: Vec<PathBuf> = listed.iter().map(DirEntry::path).collect();
    let is_meant = |ending: &std::ffi::OsStr| endings.iter().any(|meant| ending == *meant);
    files.retain(|file| file.extension().is_some_and(is_meant));
    // What cannot be looked at stays: whoever reads it says why.
    files.retain(|file| file.metadata().map_or(true, |found| found.is_file()));
    files.sort();
    Ok(files)
}

/// The records of the JSON files in a folder; other files are not looked at, and what is no record is
/// left out.
///
/// Errors: the folder cannot be read.
pub fn read(folder: Option<&Path>) -> Result<Vec<Record>, String> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let files = files(folder, &["json"])?;
    Ok(files.iter().filter_map(|file| document::read(file).ok()).collect())
}
