//! The processes that a launcher has started together: they must be of one build, and one of them
//! tells the user.

use std::fs::File;
use std::io::Read;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::time::Duration;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_mpi::World;

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
