//! One case run twice from the same beginning, by `cp -a` and by the program under test, and all
//! that can be seen before and after.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;

use super::super::copier::is_control;
use super::super::oracle::{Kind, Portrait};
use super::case::Case;
use super::item::{Place, clear, make, path_of};
use super::mapping::{Pair, pairs};
use crate::bin::Folder;

/// How long cp may take, in seconds: it waits for ever for a reader of a FIFO that it has just made.
const CP_LIMIT_SECONDS: &str = "1";
/// What timeout(1) ends with when it is over.
const IS_TOO_LATE: i32 = 124;

/// A time later than any that a case gives is one of this run.
const OWN_TIMES_END: i64 = 1_600_000_000;

/// Where cases are run, one after the other, always at the same path.
pub struct Arena {
    folder: Folder,
    program: PathBuf,
}

/// What a copier left.
#[derive(Debug)]
pub struct Outcome {
    pub after: Portrait,
    pub code: Option<i32>,
    /// Everything that it said.
    pub stderr: String,
}

/// A case and what came of it.
pub struct Trial<'a> {
    pub case: &'a Case,
    pub before: Portrait,
    /// Where each symlink leads in the end; none if it dangles, loops or leaves the world.
    pub leads: BTreeMap<Place, Option<Place>>,
    /// The places that each symlink leads to, one after the other; the last one need not exist.
    pub hops: BTreeMap<Place, Vec<Place>>,
    /// The places of all names on the way of each symlink, be they in the middle of a text or not.
    pub ways: BTreeMap<Place, Vec<Place>>,
    /// What is to be copied, and where to.
    pub pairs: Vec<Pair>,
    pub cp: Outcome,
    pub flatout: Outcome,
}

impl Trial<'_> {
    /// Whether what cp made can be compared with.
    pub fn has_model(&self) -> bool {
        self.case.disturbance.is_none() && self.cp.code != Some(IS_TOO_LATE)
    }
}

impl Arena {
    pub fn new() -> Self {
        let folder = Folder::new();
        let program = folder.admit_all();
        Self { folder, program }
    }

    /// Runs a case with both.
    pub fn run<'a>(&self, case: &'a Case) -> Trial<'a> {
        let world = self.folder.join("w");
        make(&world, &case.items);
        let before = portrait(&world);
        let leads = leads(&world, &before);
        let hops = hops(&world, &before);
        let ways = ways(&world, &before);
        let pairs = pairs(case, &before, &leads);
        let cp = self.outcome_of_cp(case, &before);
        clear(&world);
        make(&world, &case.items);
        let flatout = match is_control() {
            true => self.outcome_of_cp(case, &before),
            false => self.outcome(case, self.program.as_os_str(), &["copy"]),
        };
        clear(&world);
        Trial { case, before, leads, hops, ways, pairs, cp, flatout }
    }

    fn outcome_of_cp(&self, case: &Case, before: &Portrait) -> Outcome {
        // It waits for a reader of each FIFO that it writes to.
        let readers = readers(&self.folder.join("w"), before);
        let words = [CP_LIMIT_SECONDS, "cp", "-a"];
        let outcome = self.outcome(case, "timeout".as_ref(), &words);
        drop(readers);
        outcome
    }

    fn outcome(&self, case: &Case, program: &OsStr, first: &[&str]) -> Outcome {
        let world = self.folder.join("w");
        let mut words: Vec<OsString> = Vec::new();
        let script = format!("umask {:04o}; exec \"$@\"", case.umask);
        words.extend(["-c", &script, "sh"].map(OsString::from));
        words.push(program.to_owned());
        words.extend(first.iter().map(OsString::from));
        words.extend(case.words().into_iter().map(OsString::from_vec));
        let run = self.folder.program("sh".as_ref(), words).with(|command| {
            command.current_dir(&world);
            if let Some(runner) = case.runner {
                command.uid(runner).gid(runner);
            }
        });
        let is_over = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            if let Some(disturbance) = &case.disturbance {
                scope.spawn(|| disturbance.run(&world, &is_over));
            }
            let ran = run.run();
            is_over.store(true, Ordering::Release);
            ran
        });
        assert_eq!(ran.signal, None, "{ran}");
        Outcome { after: portrait(&world), code: ran.code, stderr: ran.stderr }
    }
}

/// All of a world. Times of the run are all the same, and the access times of what has not been
/// given one are none.
fn portrait(world: &Path) -> Portrait {
    let mut portrait = Portrait::of(world);
    for (place, entry) in &mut portrait.entries {
        for time in [&mut entry.modified, &mut entry.accessed] {
            if time.0 > OWN_TIMES_END {
                *time = (i64::MAX, 0);
            }
        }
        // Whoever reads a source or what a link leads to changes when it was read.
        if place.first() != Some(&b't') {
            entry.accessed = (0, 0);
        }
    }
    portrait
}

fn leads(world: &Path, before: &Portrait) -> BTreeMap<Place, Option<Place>> {
    let world = world.canonicalize().unwrap();
    let links = before.entries.iter().filter(|(_, entry)| entry.kind == Kind::Symlink);
    let lead = |place: &Place| {
        let end = path_of(&world, place).canonicalize().ok()?;
        Some(end.strip_prefix(&world).ok()?.as_os_str().as_bytes().to_vec())
    };
    links.map(|(place, _)| (place.clone(), lead(place))).collect()
}

/// Symlinks that are followed at most, so that a loop has an end.
const MOST_HOPS: usize = 8;

fn hops(world: &Path, before: &Portrait) -> BTreeMap<Place, Vec<Place>> {
    let world = world.canonicalize().unwrap();
    let links = before.entries.iter().filter(|(_, entry)| entry.kind == Kind::Symlink);
    let hops_of = |place: &Place| {
        let mut path = path_of(&world, place);
        let mut hops = Vec::new();
        while hops.len() < MOST_HOPS
            && let Ok(text) = fs::read_link(&path)
            && let Some(next) = path.parent().map(|parent| parent.join(text))
            && let (Some(parent), Some(name)) = (next.parent(), next.file_name())
            && let Ok(parent) = parent.canonicalize()
        {
            path = parent.join(name);
            let Ok(place) = path.strip_prefix(&world) else { break };
            hops.push(place.as_os_str().as_bytes().to_vec());
        }
        hops
    };
    links.map(|(place, _)| (place.clone(), hops_of(place))).collect()
}

/// Names that are gone at most, so that a loop has an end.
const MOST_NAMES: usize = 100;

fn ways(world: &Path, before: &Portrait) -> BTreeMap<Place, Vec<Place>> {
    let world = world.canonicalize().unwrap();
    let links = before.entries.iter().filter(|(_, entry)| entry.kind == Kind::Symlink);
    let way_of = |place: &Place| {
        let path = path_of(&world, place);
        let mut here = path.parent().unwrap().to_owned();
        // What is still to go, the next name last.
        let mut ahead: Vec<OsString> = Vec::new();
        let put = |ahead: &mut Vec<OsString>, text: &Path| {
            let names = text.components().rev();
            ahead.extend(names.map(|name| name.as_os_str().to_owned()));
        };
        put(&mut ahead, &fs::read_link(&path).unwrap());
        let mut way = Vec::new();
        for _ in 0..MOST_NAMES {
            let Some(name) = ahead.pop() else { break };
            if name == ".." {
                here.pop();
                continue;
            }
            let next = here.join(name);
            way.extend(next.strip_prefix(&world).map(|it| it.as_os_str().as_bytes().to_vec()).ok());
            match fs::read_link(&next) {
                Ok(text) => put(&mut ahead, &text),
                Err(_) => here = next,
            }
        }
        way
    };
    links.map(|(place, _)| (place.clone(), way_of(place))).collect()
}

fn readers(world: &Path, before: &Portrait) -> Vec<File> {
    let fifos = before.entries.iter().filter(|(_, entry)| entry.kind == Kind::Fifo);
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let open = |(place, _): (&Place, _)| {
        OpenOptions::new().read(true).custom_flags(flags).open(path_of(world, place)).ok()
    };
    fifos.filter_map(open).collect()
}
