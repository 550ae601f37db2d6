//! A copy by all processes that a launcher has started: the first one plans and tells the user, the
//! others take part in each round.

use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_sys::caller;
use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;
use flatout_tree::copy::attributes;
use flatout_tree::copy::event::Watch;
use flatout_tree::copy::evidence::{Evidence, Hosts};
use flatout_tree::copy::operand::{Plan, parent};
use flatout_tree::copy::reference::References;
use flatout_tree::copy::{Copy, Ended, Hire, Membership, Operand, Reporter, Wanted};
use flatout_tree::selection::{Moment, Selection};
use flatout_tree::wire::{goes_by_fields, message, take};

use super::processes::{Alone, Processes};
use super::{Threads, lead, restraint, snapshot};
use crate::arguments::copy::Copy as Arguments;
use crate::group::Group;
use crate::launched::Launched;
use crate::{conclusion, output};

/// What the first process tells all others before the first round. Before each, it tells the paths at
/// which they are to look; `None`: there is none any more.
struct Begin {
    repeats: bool,
    /// Each entry, and what changes of it.
    wanted: [bool; 2],
    job: u64,
    umask: u32,
    modified: (Option<Moment>, Option<Moment>),
    kept: Vec<u64>,
    evidence: Vec<u8>,
}
goes_by_fields!(Begin { repeats, wanted, job, umask, modified, kept, evidence });

const OVER: Option<u8> = None;

/// All processes, this one among them.
struct Members {
    group: Group,
    /// Tells this job from others; of the first process.
    job: u64,
    umask: u32,
    /// Of the first process.
    hosts: Hosts,
    /// Inode numbers of what the user named.
    kept: Vec<u64>,
    /// Files and directories that say what is copied, besides the operands.
    files: Vec<PathBuf>,
}

/// Copies all that is named, together with the other processes of a launcher. What cannot be copied
/// does not stop the rest.
pub fn run(arguments: &Arguments, cancel: CancelToken, launched: &Launched) -> ExitCode {
    if let Some(refusal) = arguments.only_alone() {
        return launched.refuse(&refusal, conclusion::WRONG_USE);
    }
    match Members::join(arguments, launched) {
        Err(code) => code,
        Ok(members) if !members.is_first() => members.follow(arguments, cancel),
        // Nothing is moved: one sees all there is to see.
        Ok(_) if arguments.mirror.dry_run => lead(arguments, cancel, Box::new(Alone)),
        Ok(members) => lead(arguments, cancel, Box::new(members)),
    }
}

impl Members {
    /// The processes that were started together: see [`Group::join`].
    fn join(arguments: &Arguments, launched: &Launched) -> Result<Self, ExitCode> {
        // No other thread makes files meanwhile.
        let umask = attributes::umask();
        let (group, boots) = Group::join(launched)?;
        let job = monotonic_ns() << 16 ^ u64::from(std::process::id());
        let mut files = arguments.selection.files();
        files.extend(arguments.snapshots());
        let (hosts, kept) = (hosts(boots), Vec::new());
        Ok(Self { group, job, umask, hosts, kept, files })
    }

    /// Whether this is the one that tells the user.
    fn is_first(&self) -> bool {
        self.group.is_first()
    }

    fn membership(&self, job: u64, kept: Vec<u64>) -> Membership {
        Membership { rank: self.group.world.rank(), size: self.group.world.size(), job, kept }
    }

    /// Has every process look at the operands, and at other files that say what is copied: they must be
    /// the same everywhere.
    ///
    /// Errors: a process finds something else, or nothing.
    fn look(&self, operands: &[Operand], files: &[PathBuf]) -> Result<(), String> {
        let paths = operands.iter().flat_map(|operand| {
            let Operand { source, target, .. } = operand;
            // A target that is not there yet is looked up by nobody: NFS would go on not to find it.
            let found = target.exists().then(|| target.clone());
            [source.clone(), parent(target)].into_iter().chain(found)
        });
        let paths = paths.chain(files.iter().cloned()).map(|path| path.into_os_string().into_vec());
        let paths: Vec<Vec<u8>> = paths.collect();
        self.group.world.tell_all(&mut message(&[&Some(paths.clone())]));
        self.group.look(&paths, None)
    }

    /// Takes part in all rounds of the first process.
    fn follow(mut self, arguments: &Arguments, cancel: CancelToken) -> ExitCode {
        let mut message = Vec::new();
        self.group.world.tell_all(&mut message);
        let Some(Some(begin)) = take::<Option<Begin>>(&mut message.as_slice()) else {
            return output::exit(conclusion::DONE);
        };
        drop(message);
        // Where it is refused nothing is for others.
        let _refused = caller::set_umask(begin.umask);
        let options = arguments.options(cancel);
        // As large as half of the memory: it goes when it is read.
        let packed = begin.evidence;
        let evidence = Evidence::unpacked(&packed, &options);
        drop(packed);
        let [each, changes] = begin.wanted;
        let reporter = Arc::new(Reporter::new(Wanted { each, changes }));
        let (own, obstacle) = match own(arguments) {
            Ok(own) => (own, None),
            Err(why) => (Default::default(), Some(why)),
        };
        let membership = self.membership(begin.job, begin.kept);
        let limits = restraint::limits(arguments, self.size(), &|_| ());
        let copy = Copy::new(options, &*reporter).with_limits(limits);
        let mut copy = copy.with_members(membership, Some(Arc::clone(&reporter)));
        copy.selection = Selection { modified: begin.modified, ..own.0 };
        (copy.evidence, copy.references, copy.backups) = (evidence, own.1, arguments.backups());
        if begin.repeats {
            copy = copy.with_repeated_names();
        }
        loop {
            let mut message = Vec::new();
            self.group.world.tell_all(&mut message);
            let Some(Some(paths)) = take::<Option<Vec<Vec<u8>>>>(&mut message.as_slice()) else {
                return output::exit(conclusion::DONE);
            };
            // The first one says what is wrong.
            if self.group.look(&paths, obstacle.clone()).is_err() {
                continue;
            }
            let world = &mut self.group.world;
            let ended = std::thread::scope(|scope| {
                let threads = Threads { scope, copy: &copy, answers: None };
                copy.run_shared(Vec::new(), &threads, world)
            });
            if let Err(error) = ended {
                output::complain(&error);
                self.group.world.abort(conclusion::FAILED);
            }
        }
    }
}

impl Processes for Members {
    fn size(&self) -> u64 {
        self.group.world.size() as u64
    }

    fn hosts(&self) -> Option<&Hosts> {
        Some(&self.hosts)
    }

    fn begin(
        &mut self,
        (repeats, plan): (bool, &Plan),
        watch: &dyn Watch,
        (selection, evidence): (&Selection, &Evidence),
    ) {
        let inodes = |operand: &Operand| {
            let source = &operand.source;
            let found = [std::fs::symlink_metadata(source), std::fs::metadata(source)];
            found.map(|found| found.map_or(0, |found| found.ino()))
        };
        self.kept = plan.rounds.iter().flatten().flat_map(inodes).collect();
        let begin = Begin {
            repeats,
            wanted: [watch.wants_each(), watch.wants_changes()],
            job: self.job,
            umask: self.umask,
            modified: selection.modified,
            kept: self.kept.clone(),
            evidence: evidence.packed(),
        };
        let mut message = message(&[&Some(begin)]);
        self.group.world.tell_all(&mut message);
    }

    fn share<'a>(&self, copy: Copy<'a>) -> Copy<'a> {
        copy.with_members(self.membership(self.job, self.kept.clone()), None)
    }

    fn run(
        &mut self,
        copy: &Copy<'_>,
        operands: Vec<Operand>,
        hire: Hire<'_>,
    ) -> Result<Ended, String> {
        self.look(&operands, &self.files)?;
        let ended = copy.run_shared(operands, hire, &mut self.group.world);
        // Nobody else would be told, and some may be gone.
        ended.inspect_err(|error| {
            output::complain(error);
            self.group.world.abort(conclusion::FAILED);
        })
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if self.is_first() {
            self.group.world.tell_all(&mut message(&[&OVER]));
        }
    }
}

/// The hosts that have these numbers of their boots.
fn hosts(mut boots: Vec<String>) -> Hosts {
    boots.sort();
    boots.dedup();
    let is_one = boots.len() <= 1;
    let boots = match boots.pop() {
        Some(boot) if is_one => boot,
        last => {
            let mut hasher = Hasher::new(Algorithm::Xxh3);
            boots.iter().chain(&last).for_each(|boot| hasher.update(boot.as_bytes()));
            hasher.finish().to_string()
        }
    };
    Hosts { boots, is_one }
}

/// What says what is copied, besides the operands.
///
/// Errors: it cannot be read here.
fn own(arguments: &Arguments) -> Result<(Selection, Option<References>), String> {
    let selection = arguments.selection.selected().map_err(|refused| refused.text)?;
    Ok((selection, snapshot::open(arguments)?))
}
