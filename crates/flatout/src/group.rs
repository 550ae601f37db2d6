//! The processes that a launcher has started together: they must be of one build, and one of them
//! tells the user.

use std::fs::File;
use std::io::Read;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_mpi::World;

/// Bytes of the program that are read at a time.
const PIECE_BYTES: usize = 64 << 10;
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// All processes, this one among them.
pub struct Group {
    pub world: World,
}

impl Group {
    /// The processes that were started together, and in the first one the numbers of the boots of their
    /// hosts; `None`: this one is alone.
    ///
    /// Errors: they are of different versions, which the first one says.
    pub fn join() -> Result<Option<(Self, Vec<String>)>, String> {
        let Some(world) = World::join()? else { return Ok(None) };
        let version = version();
        let boot = std::fs::read_to_string(BOOT).unwrap_or_default();
        let own = [&version, boot.trim(), &World::host()].join(" ");
        let all = world.gather(own.as_bytes()).into_iter().map(|said| {
            let said = String::from_utf8_lossy(&said).into_owned();
            let mut words = said.split(' ').map(str::to_owned);
            std::array::from_fn::<String, 3, _>(|_| words.next().unwrap_or_default())
        });
        let all: Vec<_> = all.collect();
        let refusal = all.iter().find(|[other, ..]| *other != version).map(|[other, _, host]| {
            let here = World::host();
            format!(
                "the processes are of different versions: {version} on {here}, {other} on {host}"
            )
        });
        let group = Self { world };
        group.agree(refusal)?;
        Ok(Some((group, all.into_iter().map(|[_, boot, _]| boot).collect())))
    }

    /// Whether this is the one that tells the user.
    pub fn is_first(&self) -> bool {
        self.world.rank() == 0
    }

    /// What the first one found to be wrong, if anything, is wrong for all.
    pub fn agree(&self, refusal: Option<String>) -> Result<(), String> {
        let mut said = refusal.unwrap_or_default().into_bytes();
        self.world.tell_all(&mut said);
        match said.is_empty() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&said).into_owned()),
        }
    }
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
