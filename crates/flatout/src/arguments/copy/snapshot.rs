//! `--link-dest` and `--reflink-dest`: earlier snapshots, from which unchanged files are taken.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use flatout_tree::copy::options::When;

use super::{Copy, path};

/// Snapshots at most. Each is open all the time, and is searched for each file.
const MOST: usize = 8;

#[derive(Debug, Clone, Default, Args)]
pub struct Snapshot {
    /// Make unchanged files hard links to those in DIR: of the same size, time, owner, mode and extended
    /// attributes; may be repeated. DIR stands for TARGET: a relative one is looked up from here
    #[arg(long, value_name = "DIR", value_parser = path(), value_hint = ValueHint::DirPath, help_heading = "Snapshots", action = clap::ArgAction::Append)]
    pub link_dest: Vec<PathBuf>,
    /// Have files that are in DIR with the same size and time share its extents instead of being
    /// copied; may be repeated. Attributes are those of the source
    #[arg(long, value_name = "DIR", value_parser = path(), value_hint = ValueHint::DirPath, help_heading = "Snapshots", action = clap::ArgAction::Append)]
    pub reflink_dest: Vec<PathBuf>,
}

impl Copy {
    /// Says which options make no sense together with a snapshot.
    pub(super) fn wrong_snapshot(&self) -> Option<String> {
        let Snapshot { link_dest, reflink_dest } = &self.snapshot;
        let option = match (link_dest.is_empty(), reflink_dest.is_empty()) {
            (true, true) => return None,
            (false, _) => "--link-dest",
            _ => "--reflink-dest",
        };
        if self.always {
            return Some(format!("--always copies everything: {option} contradicts it"));
        }
        if self.in_place && !link_dest.is_empty() {
            let why = "it would write into files of DIR";
            return Some(format!("--in-place contradicts --link-dest: {why}"));
        }
        if !reflink_dest.is_empty() {
            if self.reflink == Some(When::Never) {
                return Some("--reflink=never contradicts --reflink-dest".to_owned());
            }
            if matches!(self.sparse, Some(When::Always | When::Never)) {
                let why = "shared extents keep their holes";
                return Some(format!("--sparse contradicts --reflink-dest: {why}"));
            }
        }
        (link_dest.len() + reflink_dest.len() > MOST)
            .then(|| format!("{option}: {MOST} directories at most"))
    }
}
