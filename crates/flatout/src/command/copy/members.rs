//! A copy by all processes that a launcher has started: the first one plans and tells the user, the
//! others take part in each round.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use flatout_io::quote;
use flatout_mpi::World;
use flatout_sys::cancel::CancelToken;
use flatout_tree::copy::{Copy, Ended, Operand, Reporter};

use super::hire;
use crate::arguments::copy::Copy as Arguments;
use crate::{conclusion, output};

/// What the first process tells all others before a round, and when there is none any more.
const ROUND: u8 = 1;
const OVER: u8 = 0;

/// All processes, this one among them.
pub struct Members {
    world: World,
    /// The others do not wait for another round.
    is_over: bool,
}

impl Members {
    /// The processes that were started together; `None`: this one is alone.
    ///
    /// Errors: they are of different versions, which the first one says.
    pub fn join() -> Result<Option<Self>, String> {
        let Some(world) = World::join()? else { return Ok(None) };
        let mut members = Self { world, is_over: false };
        let own = format!("{} {}", env!("CARGO_PKG_VERSION"), World::host());
        let all = members.world.gather(own.as_bytes());
        let version = |said: &[u8]| {
            String::from_utf8_lossy(said).split(' ').next().unwrap_or_default().to_owned()
        };
        let other = all.iter().find(|said| version(said) != env!("CARGO_PKG_VERSION"));
        let refusal = other.map(|said| {
            format!(
                "the processes are of different versions: {} here, {}",
                env!("CARGO_PKG_VERSION"),
                String::from_utf8_lossy(said)
            )
        });
        let agreed = members.agree(refusal);
        members.is_over = agreed.is_err();
        agreed.map(|()| Some(members))
    }

    /// Whether this is the one that tells the user.
    pub fn is_first(&self) -> bool {
        self.world.rank() == 0
    }

    /// A copy that they share.
    pub fn share<'a>(&self, copy: Copy<'a>) -> Copy<'a> {
        copy.with_members(self.world.rank(), self.world.size(), None)
    }

    /// What the first one found to be wrong, if anything, is wrong for all.
    fn agree(&self, refusal: Option<String>) -> Result<(), String> {
        let mut said = refusal.unwrap_or_default().into_bytes();
        self.world.tell_all(&mut said);
        match said.is_empty() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&said).into_owned()),
        }
    }

    /// Has every process look at the operands: they must be the same everywhere.
    ///
    /// Errors: a process finds something else, or nothing.
    pub fn look(&self, operands: &[Operand]) -> Result<(), String> {
        let paths = |operand: &Operand| {
            let above = operand.target.parent().unwrap_or(Path::new(""));
            let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            [operand.source.as_os_str().as_bytes().to_vec(), above.as_os_str().as_bytes().to_vec()]
        };
        let paths: Vec<Vec<u8>> = operands.iter().flat_map(paths).collect();
        let mut message = vec![ROUND];
        message.extend(paths.join(&0));
        self.world.tell_all(&mut message);
        let found = seen(&message[1..]);
        let all = self.world.gather(&found);
        let other =
            all.iter().enumerate().find(|(_, seen)| without_host(seen) != without_host(&found));
        let refusal = other.map(|(rank, seen)| {
            let pairs = numbers(seen).zip(numbers(&found));
            let differs = pairs.zip(&paths).find(|((theirs, ours), _)| theirs != ours);
            let path = differs.map_or("?".to_owned(), |(_, path)| quote(OsStr::from_bytes(path)));
            format!("process {rank} on {} does not find {path} as this one does", host(seen))
        });
        self.agree(refusal)
    }

    /// Copies operands together with the others, which follow.
    ///
    /// Errors: they cannot.
    pub fn run(&mut self, copy: &Copy<'_>, operands: Vec<Operand>) -> Result<Ended, String> {
        self.look(&operands)?;
        let world = &mut self.world;
        std::thread::scope(|scope| {
            copy.run_shared(operands, &|number| hire(scope, copy, number), world)
        })
    }

    /// Takes part in all rounds of the first process.
    pub fn follow(mut self, arguments: &Arguments, cancel: CancelToken) -> ExitCode {
        let reporter = Arc::new(Reporter::new(arguments.wants_each()));
        let copy = Copy::new(arguments.options(cancel), &*reporter);
        let (rank, size) = (self.world.rank(), self.world.size());
        let copy = copy.with_members(rank, size, Some(Arc::clone(&reporter)));
        loop {
            let mut message = Vec::new();
            self.world.tell_all(&mut message);
            if message.first() != Some(&ROUND) {
                return output::exit(conclusion::DONE);
            }
            self.world.gather(&seen(&message[1..]));
            // The first one says what is wrong.
            if self.agree(None).is_err() {
                continue;
            }
            let world = &mut self.world;
            let ended = std::thread::scope(|scope| {
                copy.run_shared(Vec::new(), &|number| hire(scope, &copy, number), world)
            });
            if let Err(error) = ended {
                output::complain(&error);
                self.world.abort(conclusion::FAILED);
            }
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.world.abort(conclusion::FAILED);
        }
        if self.is_first() && !self.is_over {
            self.world.tell_all(&mut vec![OVER]);
        }
    }
}

/// The host, and the inode number of each path; 0 where there is nothing.
fn seen(paths: &[u8]) -> Vec<u8> {
    let mut seen = World::host().into_bytes();
    seen.push(0);
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
    without_host(seen).chunks(size_of::<u64>())
}
