//! What a command line names, as operands: which source goes to which name. The rules are those
//! of `cp -a`; what it would refuse, or undo half-way, is refused before anything is touched.
//!
//! Nothing is changed here; what is found may change: the copier looks again.

mod as_cp;
pub mod mirrored;
mod place;
mod repeated;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use flatout_io::quote;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::reason::{INSIDE, OVER_OTHER, SAME};
use super::{Failure, Identity, Operand, Reach, Refusal, identity, kind_of};
pub use as_cp::Wording;
use place::exact_target;
pub use place::{parent, way_up_from, without_slashes};

/// Where the sources go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Into it where it is a directory, else to exactly this name.
    Named(PathBuf),
    /// Into this directory (`-t`).
    Into(PathBuf),
    /// To exactly this name (`-T`).
    Exactly(PathBuf),
}

/// What is to be done.
#[derive(Debug, Default)]
pub struct Plan {
    /// What can be copied at once; a round begins when the one before it has ended. There are
    /// several only where trees of several sources are merged, or one is read where another one is
    /// written: a later one replaces what an earlier one brought or read.
    pub rounds: Vec<Vec<Operand>>,
    /// What is not copied.
    pub objections: Vec<Objection>,
    /// Sources that were named before, and are copied once.
    pub repeated: Vec<PathBuf>,
}

/// Why an operand is not copied.
#[derive(Debug, thiserror::Error)]
pub enum Objection {
    /// The system does not let us.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// It would destroy something, or never end.
    #[error("cannot copy {from} to {to}: {reason}", from = quote(&.operand.source), to = quote(&.operand.target))]
    Refused {
        /// What was to go where.
        operand: Operand,
        /// Why it does not.
        reason: &'static str,
    },
    /// It is a directory, and those are not asked for.
    #[error("-r not specified; omitting directory {}", quote(.directory))]
    Omitted {
        /// The directory.
        directory: PathBuf,
    },
    /// Another source has put something there, and it is not to be lost.
    #[error("cannot copy {from} to {to}: {other} goes there too, and neither may replace the other", from = quote(&.operand.source), to = quote(&.operand.target), other = quote(.other))]
    Clash {
        /// What was to go where.
        operand: Operand,
        /// The source that was named before.
        other: PathBuf,
    },
}

impl Objection {
    /// The path that an account of failures names.
    pub fn path(&self) -> &Path {
        match self {
            Self::Failed(failure) => Path::new(&failure.path),
            Self::Omitted { directory } => directory,
            Self::Refused { operand, .. } | Self::Clash { operand, .. } => &operand.source,
        }
    }
}

const OVER_DIRECTORY: &str = "the target is a directory, the source is none";
const DANGLING: &str = "the target is a symlink that leads nowhere";
const SPECIAL: &str = "the target is a device, FIFO or socket, and remains one";

/// Finds out what goes where. Each source is looked at in turn; one that cannot be copied does not
/// hold up the others. `wording`: the rules are those of cp.
///
/// Cost: two or three system calls per source, and one per directory above a directory's target.
pub fn plan(
    sources: &[PathBuf],
    destination: &Destination,
    reach: Reach,
    wording: Option<Wording>,
) -> Plan {
    let place = match destination {
        Destination::Exactly(path) => Ok(Naming::Exactly(path)),
        Destination::Named(path) if sources.len() < 2 => {
            Ok(into(path).unwrap_or(Naming::Exactly(path)))
        }
        Destination::Into(path) | Destination::Named(path) => into(path),
    };
    let place = match place {
        Ok(place) => place,
        Err(failure) => return Plan { objections: vec![failure.into()], ..Plan::default() },
    };
    let mut planner = Planner {
        place,
        reach,
        wording,
        plan: Plan::default(),
        taken: HashMap::with_capacity(sources.len()),
        wholes: Vec::new(),
        overlaps: Overlaps {
            read: HashMap::with_capacity(sources.len()),
            wording,
            ..Overlaps::default()
        },
    };
    for source in sources {
        let added = match wording {
            Some(wording) => planner.add_as_cp(source, wording),
            None => planner.add(source),
        };
        if let Err(objection) = added {
            planner.plan.objections.push(objection);
        }
    }
    planner.plan
}

#[derive(Debug, Clone, Copy)]
enum Naming<'a> {
    Into(&'a Path),
    Exactly(&'a Path),
}

fn into(path: &Path) -> Result<Naming<'_>, Failure> {
    match rustix::fs::stat(path) {
        Ok(facts) if kind_of(facts).is_dir() => Ok(Naming::Into(path)),
        found => Err(failed("copy into", path)(found.err().unwrap_or(Errno::NOTDIR))),
    }
}

pub(super) fn failed(operation: &'static str, path: &Path) -> impl FnOnce(Errno) -> Failure {
    let path = path.as_os_str().to_owned();
    move |errno| Failure::of(Refusal::of(operation)(errno), path)
}

/// A name, which may be a path (`--parents`): `./a//b` is `a/b`.
fn plain(name: &OsStr) -> &Path {
    Path::new(name).strip_prefix(".").unwrap_or(Path::new(name))
}

fn refused(operand: &Operand, reason: &'static str) -> Result<(), Objection> {
    Err(Objection::Refused { operand: operand.clone(), reason })
}

/// A source that goes somewhere: there may be as many as words of a command line.
#[derive(Debug)]
struct Accepted {
    inode: Identity,
    is_directory: bool,
    /// Where its operand is among those of its round.
    index: usize,
    round: usize,
}

struct Planner<'a> {
    place: Naming<'a>,
    reach: Reach,
    /// By the rules of cp what is named later replaces, or is refused when its turn comes.
    wording: Option<Wording>,
    plan: Plan,
    /// By the name in the target directory.
    taken: HashMap<&'a Path, Vec<Accepted>>,
    /// Those whose contents go straight into the target directory, as those of `source/.` do.
    wholes: Vec<Accepted>,
    overlaps: Overlaps,
}

/// Where operands read and write, each with the last round in which one does.
#[derive(Default)]
struct Overlaps {
    /// Sources, and the directories in which they lie.
    read: HashMap<Identity, usize>,
    /// Targets that are there.
    written: HashMap<Identity, usize>,
    parents: (PathBuf, Vec<Identity>),
    wording: Option<Wording>,
}

impl Overlaps {
    /// The round in which an operand can be copied after those that it would disturb, or that would
    /// disturb it: one of both reads in a tree in which the other one writes. Not before `round`.
    fn add(&mut self, operand: &Operand, facts: &Stat, round: usize) -> usize {
        let reads = place::way_to(&operand.source, facts, &mut self.parents);
        let found = as_cp::written(&operand.target, self.wording);
        let writes = found.as_ref().map(identity);
        // A directory may be mounted under several names, a file that is written in place have them.
        let is_written = |found: Stat| self.wording.is_some() || kind_of(found).is_dir();
        let merged = writes.filter(|_| found.is_some_and(is_written));
        let readers = writes.iter().filter_map(|inode| self.read.get(inode));
        let writers = reads.iter().chain(&merged).filter_map(|inode| self.written.get(inode));
        let round = readers.chain(writers).map(|last| last + 1).fold(round, usize::max);
        let note = |all: &mut HashMap<Identity, usize>, inode| {
            let last = all.entry(inode).or_default();
            *last = round.max(*last);
        };
        reads.into_iter().for_each(|inode| note(&mut self.read, inode));
        writes.into_iter().for_each(|inode| note(&mut self.written, inode));
        round
    }
}

impl<'a> Planner<'a> {
    fn add(&mut self, source: &'a Path) -> Result<(), Objection> {
        let facts = rustix::fs::lstat(source).map_err(failed("stat", source))?;
        let name = place::last_name(source);
        let target = self.target(name, &facts)?;
        let mut operand = Operand { source: source.to_owned(), target };
        self.examine(&mut operand, &facts)?;
        self.accept(operand, name, &facts)
    }

    /// What a source of this name is called in the target.
    fn target(&self, name: Option<&OsStr>, facts: &Stat) -> Result<PathBuf, Failure> {
        match self.place {
            Naming::Into(directory) => {
                Ok(without_slashes(directory).join(name.unwrap_or(".".as_ref())))
            }
            Naming::Exactly(path) => {
                let making = self.wording.map_or("create", |wording| wording.making(facts));
                exact_target(path, facts, making)
            }
        }
    }

    /// Takes in an operand that may be copied.
    fn accept(
        &mut self,
        operand: Operand,
        name: Option<&'a OsStr>,
        facts: &Stat,
    ) -> Result<(), Objection> {
        let round = match self.place {
            Naming::Into(_) => self.round(&operand, name, facts)?,
            Naming::Exactly(_) => Some(0),
        };
        match round {
            Some(round) => self.put(operand, round),
            None => self.plan.repeated.push(operand.source),
        }
        Ok(())
    }

    fn put(&mut self, operand: Operand, round: usize) {
        if self.plan.rounds.len() <= round {
            self.plan.rounds.resize_with(round + 1, Vec::new);
        }
        self.plan.rounds[round].push(operand);
    }

    /// Looks at what is there already.
    fn examine(&self, operand: &mut Operand, facts: &Stat) -> Result<(), Objection> {
        let found = match rustix::fs::lstat(&operand.target) {
            Ok(found) => Some(found),
            Err(Errno::NOENT) => {
                let above = rustix::fs::stat(parent(&operand.target));
                above.map_err(failed("create", &operand.target))?;
                None
            }
            Err(errno) => return Err(failed("create", &operand.target)(errno).into()),
        };
        let is_directory = kind_of(facts).is_dir();
        if let Some(found) = &found {
            if place::is_same(operand, facts, found) {
                return refused(operand, SAME);
            }
            match (is_directory, kind_of(found).is_dir()) {
                (true, false) => return refused(operand, OVER_OTHER),
                (false, true) => return refused(operand, OVER_DIRECTORY),
                _ => {}
            }
            if kind_of(facts).is_file() {
                self.examine_for_bytes(operand, found)?;
            }
        }
        if is_directory {
            let start = match found {
                Some(_) => operand.target.clone(),
                None => parent(&operand.target),
            };
            if place::lies_inside(&start, facts, self.reach) {
                return refused(operand, INSIDE);
            }
        }
        Ok(())
    }

    /// Looks at the target of a regular file. A symlink that the user names is followed, as cp
    /// does; one that is found in a directory is not.
    fn examine_for_bytes(&self, operand: &mut Operand, found: &Stat) -> Result<(), Objection> {
        let is_named = matches!(self.place, Naming::Exactly(_));
        let found = if kind_of(found).is_symlink() && is_named {
            match rustix::fs::stat(&operand.target) {
                Ok(behind) if kind_of(behind).is_dir() => return refused(operand, OVER_DIRECTORY),
                // A file with other names would lose what they hold, or its bond to them: cp replaces
                // the symlink then.
                Ok(behind) if behind.st_nlink > 1 => FileType::Symlink,
                Ok(behind) => {
                    if let Ok(path) = operand.target.canonicalize() {
                        operand.target = path;
                    }
                    kind_of(behind)
                }
                Err(Errno::NOENT) => return refused(operand, DANGLING),
                Err(errno) => return Err(failed("stat", &operand.target)(errno).into()),
            }
        } else {
            kind_of(found)
        };
        if found.is_file() || found.is_symlink() { Ok(()) } else { refused(operand, SPECIAL) }
    }

    /// The round in which an operand can be copied without disturbing what earlier ones bring to the
    /// same place; `None` where it was named before. In a tree that is merged into another one, what
    /// is named later replaces, as with cp; two names on the command line do not.
    fn round(
        &mut self,
        operand: &Operand,
        name: Option<&'a OsStr>,
        facts: &Stat,
    ) -> Result<Option<usize>, Objection> {
        let inode = identity(facts);
        let is_directory = kind_of(facts).is_dir();
        let repeats = !is_directory && self.wording.is_some_and(|wording| wording.repeats);
        // cp takes them in the order given.
        let last = self.wording.map(|_| self.plan.rounds.len().saturating_sub(1));
        let mut round = last.unwrap_or(0);
        for (earlier, earlier_name) in self.earlier(name) {
            let source = &self.plan.rounds[earlier.round][earlier.index].source;
            let is_one = earlier_name == name.map(plain) && earlier.inode == inode;
            if is_one && !repeats && place::is_same_source(source, &operand.source) {
                return Ok(None);
            }
            let merges = match (earlier_name, name) {
                (None, None) => true,
                _ if self.wording.is_some() => true,
                // One of them fills the directory in which the other is but a name.
                (None, Some(name)) => place::is_there(&source.join(name))?,
                (Some(name), None) => place::is_there(&operand.source.join(name))?,
                (Some(_), Some(_)) if earlier.is_directory && is_directory => true,
                (Some(_), Some(_)) => {
                    let other = source.clone();
                    return Err(Objection::Clash { operand: operand.clone(), other });
                }
            };
            if merges {
                round = round.max(earlier.round + 1);
            }
        }
        let round = self.overlaps.add(operand, facts, round);
        let index = self.plan.rounds.get(round).map_or(0, Vec::len);
        let accepted = Accepted { inode, is_directory, index, round };
        match name {
            // There are as many as operands, and few have the name of another.
            Some(name) => {
                let all = self.taken.entry(plain(name));
                all.or_insert_with(|| Vec::with_capacity(1)).push(accepted);
            }
            None => self.wholes.push(accepted),
        }
        Ok(Some(round))
    }

    /// Earlier sources that may bring something to the same place, each with its name there.
    fn earlier<'s>(&'s self, name: Option<&'a OsStr>) -> Vec<(&'s Accepted, Option<&'a Path>)> {
        let with_name = |(&name, all): (&&'a Path, &'s Vec<Accepted>)| {
            all.iter().map(move |accepted| (accepted, Some(name)))
        };
        let wholes = self.wholes.iter().map(|accepted| (accepted, None));
        match name {
            Some(name) => wholes
                .chain(self.taken.get_key_value(plain(name)).into_iter().flat_map(with_name))
                .collect(),
            None => wholes.chain(self.taken.iter().flat_map(with_name)).collect(),
        }
    }
}
