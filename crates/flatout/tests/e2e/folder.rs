//! A folder of a test of its own, in which programs are run.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

use tempfile::TempDir;

use crate::bin::{Flatout, executable};
use crate::interruption;

/// What tests that go on at the same time take in memory, with much to spare.
const MEMORY_BYTES: u64 = 1 << 30;

/// A folder of its own for one test, removed at its end.
pub struct Folder(TempDir);

impl Folder {
    /// A new folder where temporary files go.
    pub fn new() -> Self {
        Self::inside(&std::env::temp_dir())
    }

    /// A new folder on a chosen filesystem.
    pub fn inside(place: &Path) -> Self {
        static PROCESS: Once = Once::new();
        PROCESS.call_once(|| {
            flatout_sys::launcher::give_freed_memory_back();
            // Whatever whoever starts the tests keeps to himself.
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        });
        Self(tempfile::Builder::new().prefix("flatout-e2e-").tempdir_in(place).unwrap())
    }

    /// A new folder in memory, or why it cannot be had; containers often give it 64 MiB in all.
    pub fn in_memory() -> Result<Self, String> {
        let place = Path::new("/dev/shm");
        let may_write = rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok();
        let facts = rustix::fs::statvfs(place).ok().filter(|_| may_write);
        let free_bytes = facts.map_or(0, |facts| facts.f_bavail * facts.f_frsize);
        match free_bytes >= MEMORY_BYTES {
            true => Ok(Self::inside(place)),
            false => Err(format!("{free_bytes} bytes of {place:?} can be had")),
        }
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in here.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Lets everybody in, and puts the program here, for those who may not reach where it was built.
    /// This process never writes it: a test that forks meanwhile would hold it open for writing, and
    /// keep it from being started (ETXTBSY).
    pub fn admit_all(&self) -> PathBuf {
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = self.join("program");
        if !program.exists() && fs::hard_link(executable(), &program).is_err() {
            let copied = Command::new("cp").arg(executable()).arg(&program).status();
            assert!(copied.unwrap().success());
        }
        program
    }

    /// Names of all that is in here.
    pub fn names(&self) -> BTreeSet<String> {
        Self::names_in(self.path())
    }

    /// Names of all that is in a folder.
    pub fn names_in(path: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// The program with these arguments, to be run in here.
    pub fn flatout<I: IntoIterator<Item = A>, A: AsRef<OsStr>>(&self, arguments: I) -> Flatout<'_> {
        let arguments = arguments.into_iter().map(|word| word.as_ref().to_owned()).collect();
        self.program(executable().as_os_str(), arguments)
    }

    /// The program under a wrapper such as `strace -f`, which gets its path and arguments.
    pub fn under(&self, wrapper: &[&str], arguments: &[&str]) -> Flatout<'_> {
        let mut words: Vec<OsString> = wrapper[1..].iter().map(OsString::from).collect();
        words.push(executable().into());
        words.extend(arguments.iter().map(OsString::from));
        self.program(OsStr::new(wrapper[0]), words)
    }

    /// Any program, for what the other two cannot say.
    pub fn program(&self, program: &OsStr, arguments: Vec<OsString>) -> Flatout<'_> {
        let mut command = interruption::interruptible(program);
        command.args(arguments).current_dir(self.path());
        // What somebody measured on this machine is not to decide what tests see.
        command
            .env_remove("NO_COLOR")
            .env("LC_ALL", "C")
            .env("FLATOUT_PROFILE", "")
            .env("FLATOUT_NOISE", "")
            .env("FLATOUT_RESUME", "")
            .env_remove("FLATOUT_INSTRUCTION_SET")
            .process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Flatout::new(command, self)
    }
}
