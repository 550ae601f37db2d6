//! Something that changes a source or a target while it is copied.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::case::parent;
use super::item::{Item, Place, Sort, path_of};
use crate::fixture::{Random, random_bytes};

/// A file that grows does not grow for ever.
const MOST_CHANGES: usize = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A source file grows.
    Append,
    /// A source file is cut and written anew, in another length.
    Rewrite,
    /// Another file is renamed over a source file.
    Rename,
    /// A name of the target is a symlink to a file elsewhere, and then again not there.
    Plant,
}

const CHANGES: [Change; 4] = [Change::Append, Change::Rewrite, Change::Rename, Change::Plant];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disturbance {
    pub change: Change,
    pub place: Place,
}

impl Disturbance {
    /// One case in ten has one, if it has a file that can be changed.
    pub fn new(items: &[Item], random: &mut Random) -> Option<Self> {
        if random.below(10) > 0 {
            return None;
        }
        let change = CHANGES[random.below(CHANGES.len())];
        let is_file =
            |item: &&Item| item.place.starts_with(b"a/") && matches!(item.sort, Sort::File { .. });
        let files: Vec<&Item> = items.iter().filter(is_file).collect();
        let source = files.get(random.below(files.len().max(1)))?.place.clone();
        let place = match change {
            Change::Plant => [b"t/", &source[2..]].concat(),
            _ => source,
        };
        let above = parent(&place);
        let is_directory =
            |item: &Item| item.place == above && matches!(item.sort, Sort::Directory);
        items.iter().any(is_directory).then_some(Self { change, place })
    }

    /// Changes it again and again until the copy has ended. What cannot be changed stays.
    pub fn run(&self, world: &Path, is_over: &AtomicBool) {
        let path = path_of(world, &self.place);
        let aside = path_of(world, b"o/aside");
        for round in 0..MOST_CHANGES {
            if is_over.load(Ordering::Acquire) {
                break;
            }
            let bytes = random_bytes(10 + round % 3 * 4000, round as u64);
            let _ = match self.change {
                Change::Append => File::options()
                    .append(true)
                    .open(&path)
                    .and_then(|mut file| std::io::Write::write_all(&mut file, &bytes[..10])),
                Change::Rewrite => fs::write(&path, &bytes),
                Change::Rename => {
                    fs::write(&aside, &bytes).and_then(|()| fs::rename(&aside, &path))
                }
                Change::Plant => symlink(path_of(world, b"o/f"), &aside)
                    .and_then(|()| fs::rename(&aside, &path))
                    .and_then(|()| fs::remove_file(&path)),
            };
            std::thread::yield_now();
        }
        let _ = fs::remove_file(&aside);
    }
}
