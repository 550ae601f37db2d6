//! Copies that end before they are done, and the run after that.
//!
//! At every moment a file that was there is the old one or the new one, whole, and none that is not
//! whole looks as if it were. The same command again completes the copy and leaves no litter.

mod each_call;
mod interrupt;
mod moment;
mod watched;

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::oracle::{Aspect, Leeway, Portrait, assert_same};
use super::race::arena::{Arena, Before, FILES, TEMPORARY, text, visit};
use super::race::held::{Call, Held};
use crate::bin::{Flatout, Ran};
use crate::fixture::{Random, is_full};
use flatout_sys::launcher::calls::OF_DESCRIPTORS;
use flatout_sys::launcher::supervisor::Stop;

/// The source was read meanwhile.
const READ: Leeway = Leeway::but(&[Aspect::Accessed]);
/// Several pieces of the largest file.
const PIECES: [&str; 4] = ["--engine", "sync", "--block-size", "16K"];

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Tree,
    /// One file of it, over the one that is there.
    File,
}

/// One way to copy.
#[derive(Debug, Clone, Copy)]
struct Way {
    what: What,
    before: Before,
    options: &'static [&'static str],
}

const WAYS: [Way; 9] = [
    Way { what: What::Tree, before: Before::Nothing, options: &["--threads", "1"] },
    Way { what: What::Tree, before: Before::Nothing, options: &["--threads", "1", "--atomic"] },
    Way { what: What::Tree, before: Before::Older, options: &["--threads", "1"] },
    Way { what: What::Tree, before: Before::Older, options: &["--threads", "1", "--in-place"] },
    Way { what: What::Tree, before: Before::Older, options: &["--threads", "2", "--sync"] },
    Way { what: What::Tree, before: Before::Same, options: &["--threads", "1"] },
    Way { what: What::Tree, before: Before::Same, options: &["--always", "--verify"] },
    Way { what: What::File, before: Before::Older, options: &["--threads", "1"] },
    Way {
        what: What::Tree,
        before: Before::Older,
        options: &["--threads", "1", "--in-place", "--delta"],
    },
];

impl Way {
    fn copy<'a>(&self, arena: &'a Arena) -> Flatout<'a> {
        let options = [self.options, &PIECES].concat();
        match self.what {
            What::Tree => arena.copy(&options),
            What::File => arena.copy_of(&options, ["above/tree/big", "below/copy/big"]),
        }
    }

    fn is_in_place(&self) -> bool {
        self.options.contains(&"--in-place")
    }

    /// Begins a copy that stops at each of its calls.
    fn hold<'a>(&self, arena: &'a Arena) -> Result<Held<'a>, String> {
        Held::start(self.copy(arena), OF_DESCRIPTORS)
    }

    /// Fails unless every file that was there is whole.
    #[track_caller]
    fn assert_whole(&self, arena: &Arena, context: &dyn Display) {
        if self.before == Before::Nothing || self.is_in_place() {
            return;
        }
        for name in FILES {
            let found = fs::read(arena.target().join(name))
                .unwrap_or_else(|error| panic!("{name}: {error}\n{context}"));
            let is_whole = found == text("old", name) || found == text("new", name);
            assert!(is_whole, "{name} is damaged: {} bytes\n{context}", found.len());
        }
    }

    /// Copies once more, and finds everything right.
    #[track_caller]
    fn assert_completes(&self, arena: &Arena, source: &Portrait, context: &dyn Display) {
        let ran = self.copy(arena).run();
        let context = format!("{context}\nthe run after it: {ran}");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{context}");
        arena.assert_no_litter(&context);
        match self.what {
            What::Tree => assert_same(source, &Portrait::of(&arena.target()), READ, context),
            What::File => {
                let found = fs::read(arena.target().join("big")).unwrap();
                assert!(found == text("new", "big"), "{context}");
            }
        }
    }
}

/// Fails when a file that is not whole has length and time of its source.
#[track_caller]
fn assert_not_mistaken(arena: &Arena, context: &dyn Display) {
    let (source, target) = (arena.source(), arena.target());
    visit(&target, &mut |path, facts| {
        let original = source.join(path.strip_prefix(&target).unwrap());
        let Ok(wanted) = original.symlink_metadata() else { return };
        let state = |facts: &fs::Metadata| (facts.len(), facts.mtime(), facts.mtime_nsec());
        if facts.is_file() && state(facts) == state(&wanted) {
            let is_whole = fs::read(path).unwrap() == fs::read(&original).unwrap();
            assert!(is_whole, "{} looks done\n{context}", path.display());
        }
    });
}

/// Fails when a name has appeared before its file was complete.
#[track_caller]
fn assert_complete(arena: &Arena, context: &dyn Display) {
    let (source, target) = (arena.source(), arena.target());
    visit(&target, &mut |path, facts| {
        let is_temporary = path.file_name().unwrap().to_string_lossy().starts_with(TEMPORARY);
        if !facts.is_file() || is_temporary {
            return;
        }
        let original = source.join(path.strip_prefix(&target).unwrap());
        let wanted = original.symlink_metadata().unwrap();
        let state = |facts: &fs::Metadata, path: &Path| {
            (facts.mtime(), facts.permissions().mode(), fs::read(path).unwrap())
        };
        let is_complete = state(facts, path) == state(&wanted, &original);
        assert!(is_complete, "{} is not complete\n{context}", path.display());
    });
}

/// Lets a copy go on until call `index` after the first that has to do with the trees. Says which
/// call it is; none: the copy has ended before.
fn advance(held: &mut Held<'_>, index: usize) -> Option<Stop> {
    let (mut has_begun, mut count) = (false, 0);
    while let Some(stop) = held.next() {
        has_begun |= Call::of(&stop).is_some();
        if has_begun {
            if count == index {
                return Some(stop);
            }
            count += 1;
        }
        held.go_on(stop);
    }
    None
}

/// Some of so many calls; in a full run all.
fn sampled(calls: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut indices: Vec<usize> = (0..calls).collect();
    while !is_full() && indices.len() > most {
        indices.swap_remove(random.below(indices.len()));
    }
    indices
}

/// How many calls a copy makes, and how it ends undisturbed.
fn count_calls(arena: &Arena, way: &Way) -> Result<(usize, Ran), String> {
    arena.reset(way.before);
    let mut held = way.hold(arena)?;
    let (mut has_begun, mut count) = (false, 0);
    while let Some(stop) = held.next() {
        has_begun |= Call::of(&stop).is_some();
        count += usize::from(has_begun);
        held.go_on(stop);
    }
    Ok((count, held.finish()))
}
