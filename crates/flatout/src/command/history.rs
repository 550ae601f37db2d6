//! Earlier records of a folder, for what is usual on a machine.

use std::path::{Path, PathBuf};

use flatout_io::cause_text;
use flatout_measure::record::Record;
use flatout_report::document;

/// The records of the JSON files in a folder, in the order of their names; other files are not
/// looked at, and what is no record is left out.
///
/// Errors: the folder cannot be read.
pub fn read(folder: Option<&Path>) -> Result<Vec<Record>, String> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let listed = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let listed =
        listed.map_err(|error| format!("cannot read {folder:?}: {}", cause_text(&error)))?;
    let mut files: Vec<PathBuf> = listed.iter().map(std::fs::DirEntry::path).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files.iter().filter_map(|file| document::read(file).ok()).collect())
}
