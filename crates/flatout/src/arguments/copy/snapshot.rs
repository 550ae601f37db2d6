//! `--link-dest` and `--reflink-dest`, and what makes no sense with them.

use flatout_tree::copy::options::When;

use super::Copy;

/// Snapshots at most. Each is open all the time, and is searched for each file.
const MOST: usize = 8;

impl Copy {
    /// Says which options make no sense together with a snapshot.
    pub(super) fn wrong_snapshot(&self) -> Option<String> {
        let Self { link_dest, reflink_dest, .. } = self;
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
