//! A copy by all processes that a launcher has started: the first one plans and tells the user, the
//! others take part in each round.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_io::quote;
use flatout_mpi::World;
use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;
use flatout_tree::copy::attributes;
use flatout_tree::copy::event::Watch;
use flatout_tree::copy::evidence::{Evidence, Hosts};
use flatout_tree::copy::operand::{Plan, parent};
use flatout_tree::copy::reference::References;
use flatout_tree::copy::{Copy, Ended, Hire, Membership, Operand, Reporter, Wanted};
use flatout_tree::selection::{Moment, Selection};
use rustix::fs::Mode;

use super::{Threads, restraint, snapshot};
use crate::arguments::copy::Copy as Arguments;
use crate::group::Group;
use crate::{conclusion, output};

/// What the first process tells all others before the first round, before each, and when there is
/// none any more.
const BEGIN: u8 = 2;
const ROUND: u8 = 1;
const OVER: u8 = 0;
/// It, three flags, three numbers and two moments.
const BEGIN_BYTES: usize = 1 + 3 + 3 * NUMBER_BYTES + 2 * MOMENT_BYTES;
const NUMBER_BYTES: usize = size_of::<u64>();
const MOMENT_BYTES: usize = 12;
const NO_MOMENT: u32 = u32::MAX;
/// No inode has this number.
const OBSTACLE: [u8; 8] = [u8::MAX; 8];

/// All processes, this one among them.
pub struct Members {
    group: Group,
    /// Tells this job from others; of the first process.
    job: u64,
    umask: u64,
    /// Of the first process.
    hosts: Hosts,
    /// Inode numbers of what the user named.
    kept: Vec<u64>,
    /// Files and directories that say what is copied, besides the operands.
    files: Vec<PathBuf>,
    /// The others do not wait for another round.
    is_over: bool,
}

impl Members {
    /// The processes that were started together; `None`: this one is alone.
    ///
    /// Errors: they are of different versions, which the first one says.
    pub fn join(arguments: &Arguments) -> Result<Option<Self>, String> {
        // No other thread makes files meanwhile.
        let umask = u64::from(attributes::umask());
        let Some((group, boots)) = Group::join()? else { return Ok(None) };
        let job = monotonic_ns() << 16 ^ u64::from(std::process::id());
        let mut files = arguments.selection.files();
        let named = &arguments.snapshot;
        files.extend([&named.link_dest[..], &named.reflink_dest[..]].concat());
        let (hosts, kept) = (hosts(boots), Vec::new());
        Ok(Some(Self { group, job, umask, hosts, kept, files, is_over: false }))
    }

    /// Whether this is the one that tells the user.
    pub fn is_first(&self) -> bool {
        self.group.is_first()
    }

    /// How many there are.
    pub fn size(&self) -> u64 {
        self.group.world.size() as u64
    }

    /// Where they run.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Tells the others what they need before the first round: whether names may be met again, what the
    /// first process wants to know, its umask and its clock's idea of ages, what the user named, and what was
    /// copied before.
    pub fn begin(
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
        let flags = [repeats, watch.wants_each(), watch.wants_changes()].map(u8::from);
        let (newer, older) = selection.modified;
        let numbers = [self.job, self.umask, self.kept.len() as u64].map(u64::to_le_bytes);
        let mut message = [&[BEGIN][..], &flags, numbers.as_flattened()].concat();
        message.extend([packed(newer), packed(older)].as_flattened());
        message.extend(self.kept.iter().flat_map(|inode| inode.to_le_bytes()));
        message.extend(evidence.packed());
        self.group.world.tell_all(&mut message);
    }

    /// A copy that they share.
    pub fn share<'a>(&self, copy: Copy<'a>) -> Copy<'a> {
        copy.with_members(self.membership(self.job, self.kept.clone()), None)
    }

    fn membership(&self, job: u64, kept: Vec<u64>) -> Membership {
        Membership { rank: self.group.world.rank(), size: self.group.world.size(), job, kept }
    }

    /// Has every process look at the operands, and at other files that say what is copied: they must be
    /// the same everywhere.
    ///
    /// Errors: a process finds something else, or nothing.
    pub fn look(&self, operands: &[Operand], files: &[PathBuf]) -> Result<(), String> {
        let paths = |operand: &Operand| {
            let above = parent(&operand.target);
            [&operand.source, &above].map(|path| path.as_os_str().as_bytes().to_vec())
        };
        let mut paths: Vec<Vec<u8>> = operands.iter().flat_map(paths).collect();
        paths.extend(files.iter().map(|path| path.as_os_str().as_bytes().to_vec()));
        let mut message = vec![ROUND];
        message.extend(paths.join(&0));
        self.group.world.tell_all(&mut message);
        let found = seen(&message[1..], None);
        let all = self.group.world.gather(&found, Duration::ZERO);
        let other =
            all.iter().enumerate().find(|(_, seen)| without_host(seen) != without_host(&found));
        let refusal = other.map(|(rank, seen)| {
            if let Some(why) = without_host(seen).strip_prefix(&OBSTACLE) {
                let why = String::from_utf8_lossy(why);
                return format!("process {rank} on {}: {why}", host(seen));
            }
            let pairs = numbers(seen).zip(numbers(&found));
            let differs = pairs.zip(&paths).find(|((theirs, ours), _)| theirs != ours);
            let path = differs.map_or("?".to_owned(), |(_, path)| quote(OsStr::from_bytes(path)));
            format!("process {rank} on {} does not find {path} as this one does", host(seen))
        });
        self.group.agree(refusal)
    }

    /// Copies operands together with the others, which follow.
    ///
    /// Errors: they cannot.
    pub fn run(
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

    /// Takes part in all rounds of the first process.
    pub fn follow(mut self, arguments: &Arguments, cancel: CancelToken) -> ExitCode {
        let mut message = Vec::new();
        self.group.world.tell_all(&mut message);
        let begun = message.split_first_chunk::<BEGIN_BYTES>();
        let Some((&[BEGIN, repeats, each, changes, ref numbers @ ..], rest)) = begun else {
            return output::exit(conclusion::DONE);
        };
        let (numbers, moments) = numbers.split_at(3 * NUMBER_BYTES);
        let [job, umask, count] = [0, 1, 2].map(|index| number(&numbers[index * NUMBER_BYTES..]));
        let (kept, evidence) = rest.split_at(rest.len().min(count as usize * NUMBER_BYTES));
        let kept = kept.chunks_exact(NUMBER_BYTES).map(number).collect();
        rustix::process::umask(Mode::from_raw_mode(umask as u32));
        let options = arguments.options(cancel);
        let evidence = Evidence::unpacked(evidence, &options);
        let reporter = Arc::new(Reporter::new(Wanted { each: each != 0, changes: changes != 0 }));
        let mut copy = Copy::new(options, &*reporter).with_evidence(evidence);
        if repeats != 0 {
            copy = copy.with_repeated_names();
        }
        let (own, obstacle) = match own(arguments) {
            Ok(own) => (own, None),
            Err(why) => (Default::default(), Some(why)),
        };
        let (newer, older) = moments.split_at(MOMENT_BYTES);
        let selection = Selection { modified: (unpacked(newer), unpacked(older)), ..own.0 };
        let copy = copy.with_selection(selection).with_references(own.1);
        let copy = copy.with_backups(arguments.backups());
        let membership = self.membership(job, kept);
        let limits = restraint::limits(arguments, self.size(), &|_| ());
        let copy = copy.with_limits(limits);
        let copy = copy.with_members(membership, Some(Arc::clone(&reporter)));
        loop {
            let mut message = Vec::new();
            self.group.world.tell_all(&mut message);
            if message.first() != Some(&ROUND) {
                return output::exit(conclusion::DONE);
            }
            self.group.world.gather(&seen(&message[1..], obstacle.as_deref()), Duration::ZERO);
            // The first one says what is wrong.
            if self.group.agree(None).is_err() {
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

impl Drop for Members {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.group.world.abort(conclusion::FAILED);
        }
        if self.is_first() && !self.is_over {
            self.group.world.tell_all(&mut vec![OVER]);
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
    Ok((arguments.selection.selected()?, snapshot::open(arguments)?))
}

/// The number at the front.
fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn packed(moment: Option<Moment>) -> [u8; MOMENT_BYTES] {
    let (seconds, nanoseconds) = moment.unwrap_or((0, NO_MOMENT));
    let mut bytes = [0; MOMENT_BYTES];
    bytes[..8].copy_from_slice(&seconds.to_le_bytes());
    bytes[8..].copy_from_slice(&nanoseconds.to_le_bytes());
    bytes
}

fn unpacked(bytes: &[u8]) -> Option<Moment> {
    let (seconds, nanoseconds) = bytes.split_first_chunk()?;
    let nanoseconds = u32::from_le_bytes(nanoseconds.try_into().ok()?);
    (nanoseconds != NO_MOMENT).then_some((i64::from_le_bytes(*seconds), nanoseconds))
}

/// The host, and the inode number of each path, 0 where there is nothing; or why this process cannot
/// take part.
fn seen(paths: &[u8], obstacle: Option<&str>) -> Vec<u8> {
    let mut seen = World::host().into_bytes();
    seen.push(0);
    if let Some(why) = obstacle {
        seen.extend([&OBSTACLE, why.as_bytes()].concat());
        return seen;
    }
    for path in paths.split(|&byte| byte == 0) {
        let found = std::fs::symlink_metadata(OsStr::from_bytes(path));
        seen.extend(found.map_or(0, |found| found.ino()).to_le_bytes());
    }
    seen
}

fn host(seen: &[u8]) -> String {
    String::from_utf8_lossy(seen.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

fn without_host(seen: &[u8]) -> &[u8] {
    let end = seen.iter().position(|&byte| byte == 0);
    end.and_then(|end| seen.get(end + 1..)).unwrap_or_default()
}

fn numbers(seen: &[u8]) -> impl Iterator<Item = &[u8]> {
    without_host(seen).chunks(NUMBER_BYTES)
}
