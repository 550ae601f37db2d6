//! What there is in the end, entry by entry (`--manifest`): looked at when an entry is complete.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use flatout_io::digest::Digest;
use rustix::io::Errno;

use super::{
    Copy, Directory, Entry, Event, Failure, Identity, Inventory, Node, Refusal, Side, mark,
};
use crate::inventory::Record;
use crate::lock::lock;

/// Digests of files with several names that are remembered; others are read again.
const MOST_DIGESTS: usize = 1 << 15;

const LIST: &str = "list for the manifest";

/// Digests of copies that may be met under another name.
#[derive(Debug, Default)]
pub(super) struct Digests(Mutex<HashMap<Identity, Digest>>);

impl Copy<'_> {
    /// Tells what an entry that is no directory is now. A file without a digest is read.
    pub(super) fn list(&self, entry: Entry<'_>, digest: Option<Digest>) {
        if self.options.inventory == Inventory::None || self.is_plan() {
            return;
        }
        let path = entry.path(Side::Target);
        let record = Record::of(Node::Named(entry.target_place()), path.as_bytes());
        let record = record.and_then(|(mut record, facts)| {
            // Its other names are still to come.
            let has_names = || entry.facts().is_ok_and(|source| source.st_nlink > 1);
            if record.identity.is_none() && has_names() {
                record.identity = Some((facts.st_dev, facts.st_ino));
            }
            if record.is_file() {
                let (key, is_bound) = (mark(&facts), facts.st_nlink > 1);
                let known = || lock(&self.digests.0).get(&key).copied().filter(|_| is_bound);
                let digest = match digest.or_else(known) {
                    Some(digest) => digest,
                    None => record.read(entry.pair.target(), entry.target, self.options.cancel)?,
                };
                let mut known = lock(&self.digests.0);
                if is_bound && known.len() < MOST_DIGESTS {
                    known.insert(key, digest);
                }
                record.digest = Some(digest);
            }
            Ok(record)
        });
        self.tell_of(record, || path.clone());
    }

    /// The same of a directory that is complete.
    pub(super) fn list_directory(&self, directory: &Directory, target: BorrowedFd<'_>) {
        if self.options.inventory == Inventory::None || self.is_plan() {
            return;
        }
        let path = directory.path(Side::Target, None);
        let record = Record::of(Node::of_directory(target), path.as_bytes());
        let record = record.map(|(record, _)| record);
        self.tell_of(record, || path.clone());
    }

    fn tell_of(&self, record: std::io::Result<Record>, path: impl FnOnce() -> OsString) {
        match record {
            Ok(record) => self.watch.event(&Event::Listed(Box::new(record))),
            Err(error) => {
                let refusal = match Errno::from_io_error(&error) {
                    Some(errno) => Refusal::of(LIST)(errno),
                    None if self.stop.is_due() => Refusal::interrupted(LIST),
                    None => Refusal::because(LIST, "it changes while it is read"),
                };
                self.fail(Failure::of(refusal, path()));
            }
        }
    }
}
