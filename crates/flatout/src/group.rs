//! The processes that a launcher has started together: they must be of one build, and one of them
//! tells the user.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;
use std::time::Duration;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_io::quote;
use flatout_mpi::World;
use flatout_sys::filesystem;
use flatout_tree::wire::{message, take};
use rustix::fs::{Mode, OFlags};

use crate::launched::Launched;
use crate::{conclusion, output};

/// Bytes of the program that are read at a time.
const PIECE_BYTES: usize = 64 << 10;
/// A launcher ends all processes when one ends with an error: the first one has this time to say why.
const UNTIL_SAID: Duration = Duration::from_secs(3);
/// Variables that decide how backups are called.
const OBEYED: [&str; 2] = ["SIMPLE_BACKUP_SUFFIX", "VERSION_CONTROL"];
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// All processes, this one among them.
pub struct Group {
    pub world: World,
}

impl Group {
    /// The processes that were started together, and in the first one the numbers of the boots of their
    /// hosts.
    ///
    /// Errors: they do not know each other, or are of different versions, which the first one has said.
    pub fn join(launched: &Launched) -> Result<(Self, Vec<String>), ExitCode> {
        let refuse = |why: String, code| launched.refuse(&why, code);
        let world = World::join(output::complain, launched.is_first());
        let world = world.map_err(|error| refuse(error, conclusion::FAILED))?;
        let world = world.ok_or_else(|| refuse(launched.is_not_joined(), conclusion::WRONG_USE))?;
        let version = version();
        let boot = std::fs::read_to_string(BOOT).unwrap_or_default();
        let own = [&version, boot.trim(), &World::host(), &words()].join(" ");
        let all = world.gather(own.as_bytes(), Duration::ZERO).into_iter().map(|said| {
            let said = String::from_utf8_lossy(&said).into_owned();
            let mut words = said.split(' ').map(str::to_owned);
            std::array::from_fn::<String, 4, _>(|_| words.next().unwrap_or_default())
        });
        let all: Vec<_> = all.collect();
        let here = World::host();
        let mut refusal = all.iter().find(|[other, ..]| *other != version).map(|[other, _, host, _]| {
            format!(
                "the processes are of different versions: {version} on {here}, {other} on {host}"
            )
        });
        let is_other = |(rank, said): &(usize, &[String; 4])| said[3] != all[0][3] && *rank > 0;
        if let Some((rank, [_, _, host, _])) = all.iter().enumerate().find(is_other) {
            refusal.get_or_insert(format!(
                "process {rank} on {host} was started with other words than the first one"
            ));
        }
        // MPI would end only together, when the others have waited.
        let group = ManuallyDrop::new(Self { world });
        group.agree(refusal).map_err(|error| refuse(error, conclusion::FAILED))?;
        let boots = all.into_iter().map(|[_, boot, ..]| boot).collect();
        Ok((ManuallyDrop::into_inner(group), boots))
    }

    /// Whether this is the one that tells the user.
    pub fn is_first(&self) -> bool {
        self.world.rank() == 0
    }

    /// Has every process look at the same paths, at which all must find the same files. `obstacle`: why this
    /// one cannot take part.
    ///
    /// Errors: a process finds something else, or cannot take part, which the first one knows.
    pub fn look(&self, paths: &[Vec<u8>], obstacle: Option<String>) -> Result<(), String> {
        let own: Vec<Seen> = paths.iter().map(|path| seen(OsStr::from_bytes(path))).collect();
        let answer: Answer = (World::host(), obstacle.map_or(Ok(own.clone()), Err));
        let all = self.world.gather(&message(&[&answer]), Duration::ZERO);
        let refuses = |(rank, said): (usize, &Vec<u8>)| {
            let (host, theirs): Answer = take(&mut said.as_slice())?;
            let why = match theirs {
                Err(why) => format!(": {why}"),
                Ok(theirs) => {
                    let differs = |(theirs, own)| !is_same(theirs, own);
                    let at = theirs.iter().zip(&own).position(differs)?;
                    let path = quote(OsStr::from_bytes(&paths[at]));
                    format!(" does not find {path} as this one does")
                }
            };
            Some(format!("process {rank} on {host}{why}"))
        };
        self.agree(all.iter().enumerate().find_map(refuses))
    }

    /// The host of each process, which the first one gets to know.
    pub fn hosts(&self) -> Vec<String> {
        let boot = std::fs::read_to_string(BOOT).unwrap_or_default();
        let all = self.world.gather(&message(&[&(boot, World::host())]), Duration::ZERO);
        told_apart(&all.iter().filter_map(|said| take(&mut said.as_slice())).collect::<Vec<_>>())
    }

    /// What the first one found to be wrong, if anything, is wrong for all.
    pub fn agree(&self, refusal: Option<String>) -> Result<(), String> {
        let mut said = refusal.unwrap_or_default().into_bytes();
        self.world.tell_all(&mut said);
        if said.is_empty() {
            return Ok(());
        }
        if !self.is_first() {
            flatout_sys::thread::sleep(UNTIL_SAID);
        }
        Err(String::from_utf8_lossy(&said).into_owned())
    }
}

/// The names of machines, by the number of whose boot those are told apart that have the same.
fn told_apart(all: &[(String, String)]) -> Vec<String> {
    let named = |(boot, name): &(String, String)| {
        let mut boots: Vec<&String> = Vec::new();
        for (other, _) in all.iter().filter(|(_, other)| other == name) {
            if !boots.contains(&other) {
                boots.push(other);
            }
        }
        match boots.iter().position(|other| *other == boot) {
            Some(at @ 1..) => format!("{name} ({})", at + 1),
            _ => name.clone(),
        }
    };
    all.iter().map(named).collect()
}

/// The inode number of a path, 0 where there is nothing; and what tells its filesystem from those of other
/// machines, if only this one can have it.
type Seen = (u64, Vec<u8>);
/// The host, and what it finds; or why it cannot take part.
type Answer = (String, Result<Vec<Seen>, String>);

fn seen(path: &OsStr) -> Seen {
    let inode = std::fs::symlink_metadata(path).map_or(0, |found| found.ino());
    (inode, own_filesystem(path).unwrap_or_default())
}

fn own_filesystem(path: &OsStr) -> Option<Vec<u8>> {
    let there = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let is_own = filesystem::is_of_one_machine(there.as_fd()).ok()?;
    let (boot, found) = (std::fs::read(BOOT).ok()?, rustix::fs::fstat(&there).ok()?);
    is_own.then(|| [&boot[..], &found.st_dev.to_le_bytes()].concat())
}

/// Whether two processes have found one file. Roots of filesystems have the same inode number, and those of
/// machines that were installed alike have all the same; but who serves a filesystem sees a disk where others
/// see a network.
fn is_same((inode, own): &Seen, (other, others): &Seen) -> bool {
    inode == other && (own == others || own.is_empty() || others.is_empty())
}

/// A digest of what this program is asked: its words, and what it obeys besides.
fn words() -> String {
    let mut hasher = Hasher::new(Algorithm::Xxh3);
    let obeyed = OBEYED.map(|name| std::env::var_os(name).unwrap_or_default());
    for word in std::env::args_os().skip(1).chain(obeyed) {
        hasher.update(word.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finish().to_string()
}

/// The version of this program, and a digest of it: what processes say to each other is what this very
/// build understands.
fn version() -> String {
    let mut hasher = Hasher::new(Algorithm::Xxh3);
    let mut piece = vec![0; PIECE_BYTES];
    if let Ok(mut program) = File::open("/proc/self/exe") {
        while let Ok(length @ 1..) = program.read(&mut piece) {
            hasher.update(&piece[..length]);
        }
    }
    let digest = hasher.finish().to_string();
    format!("{}-{}", env!("CARGO_PKG_VERSION"), &digest[..digest.len().min(8)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_machines_have_for_themselves_is_not_one_file_whatever_its_number() {
        let [served, here, there] = [&b""[..], b"boot 1", b"boot 2"].map(<[u8]>::to_vec);
        let two = |one: &Vec<u8>, other: &Vec<u8>| is_same(&(2, one.clone()), &(2, other.clone()));
        assert!(two(&served, &served) && two(&here, &here));
        assert!(two(&here, &served) && two(&served, &here), "who serves it has the disk");
        assert!(!two(&here, &there));
        assert!(!is_same(&(2, served.clone()), &(3, served)));
    }

    #[test]
    fn machines_of_one_name_are_two_hosts() {
        let all = [("1", "node"), ("2", "node"), ("1", "node"), ("3", "other"), ("1", "alpha")];
        let names = told_apart(&all.map(|(boot, name)| (boot.to_owned(), name.to_owned())));
        assert_eq!(names, ["node", "node (2)", "node", "other", "alpha"]);
    }

    #[test]
    fn processes_of_one_machine_find_one_filesystem() {
        let own = |path: &str| own_filesystem(OsStr::new(path));
        assert_eq!(own("/dev/shm"), own("/dev/shm/."));
        assert_eq!(own("/nowhere"), None);
        assert!(own("/dev").is_some_and(|it| Some(it) != own("/proc")), "memory of this machine");
    }
}
