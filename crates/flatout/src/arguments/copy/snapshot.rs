//! `--link-dest` and `--reflink-dest`, and what makes no sense with them.

use flatout_tree::copy::options::When;

use super::Copy;
use crate::arguments::wrong::first_wrong;

/// Snapshots at most. Each is open all the time, and is searched for each file.
const MOST: usize = 8;

impl Copy {
    /// Says which options make no sense together with a snapshot.
    pub(super) fn wrong_snapshot(&self) -> Option<String> {
        let Self { link_dest, reflink_dest, .. } = self;
        let (links, shares) = (!link_dest.is_empty(), !reflink_dest.is_empty());
        if !links && !shares {
            return None;
        }
        let option = if links { "--link-dest" } else { "--reflink-dest" };
        let sets_holes = matches!(self.sparse, Some(When::Always | When::Never));
        first_wrong! {
            self.always => format!("--always copies everything: {option} contradicts it");
            self.in_place && links =>
                "--in-place contradicts --link-dest: it would write into files of DIR";
            shares && self.reflink == Some(When::Never) =>
                "--reflink=never contradicts --reflink-dest";
            shares && sets_holes =>
                "--sparse contradicts --reflink-dest: shared extents keep their holes";
            link_dest.len() + reflink_dest.len() > MOST =>
                format!("{option}: {MOST} directories at most");
        }
    }
}
