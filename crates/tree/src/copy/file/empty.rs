//! An empty file over an empty one that has all but the times of the source: these are set, and no new file
//! takes its place. Whoever looks sees the same before and after but for these, which change at once.

use std::os::fd::AsFd;

use rustix::fs::Stat;

use super::source::{Opened, State};
use crate::copy::attributes::{are_kept_everywhere, timestamps};
use crate::copy::temporary::is_temporary;
use crate::copy::{Assurance, Copy, Entry, Inventory, Preserve, identity, kind_of};
use crate::file_data;

/// Sets the times of what bears the name, if that is all it takes; `false`: a new file is to take its place.
///
/// Cost: eight calls, none of which makes or removes a name.
pub(super) fn is_retimed(copy: &Copy<'_>, entry: Entry<'_>, opened: &Opened, found: &Stat) -> bool {
    let options = &copy.options;
    is_empty(found)
        && is_empty(&opened.facts)
        && options.assurance == Assurance::Accepted
        && options.inventory == Inventory::None
        && options.preserve.has(Preserve::TIMESTAMPS)
        && are_kept_everywhere(&opened.facts)
        && copy.references.is_none()
        && !is_temporary(entry.target)
        && retime(copy, entry, opened, found).is_some()
}

/// With one name and without room behind its end. Files of the kernel, which lie on no device, say so whatever
/// they hold.
fn is_empty(facts: &Stat) -> bool {
    kind_of(facts).is_file()
        && (facts.st_size, facts.st_blocks, facts.st_nlink) == (0, 0, 1)
        && rustix::fs::major(facts.st_dev) != 0
}

fn retime(copy: &Copy<'_>, entry: Entry<'_>, opened: &Opened, found: &Stat) -> Option<()> {
    let Opened { file: source, facts, moment, .. } = opened;
    let file = file_data::open(entry.pair.target(), entry.target).ok()?;
    let now = rustix::fs::fstat(&file).ok()?;
    if !is_empty(&now)
        || identity(&now) != identity(found)
        || !copy.attributes.is_as_copied(source.as_fd(), file.as_fd(), facts, &now)
        || opened.state(0).ok()? != State::Same
    {
        return None;
    }
    rustix::fs::futimens(&file, &timestamps(facts)).ok()?;
    copy.targets.begin_writing(file.as_fd());
    // Somebody may have written to it meanwhile.
    let seen = rustix::fs::fstat(&file).ok().filter(is_empty)?;
    if copy.evidence.is_noting() && copy.methods.keep_change_times((facts.st_dev, seen.st_dev)) {
        copy.evidence.note((facts, entry.pair.source()), *moment, (&seen, entry.pair.target()));
    }
    Some(())
}
