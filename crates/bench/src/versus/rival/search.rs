//! Which rivals are meant, and where their programs are.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flatout_sys::process::End;
use rustix::fs::{Access, access};

use super::{ALL, Discipline, Found, Rival};
use crate::Error;
use crate::versus::run::Runner;

/// Time that a program has to say its version.
const VERSION_LIMIT_NS: u64 = 5_000_000_000;
/// Letters of a version that are kept.
const VERSION_LETTERS: usize = 100;

/// Names that mean several variants.
const FAMILIES: [&str; 2] = ["cp", "rsync"];

/// The rivals that `name` means: itself, or all variants of `cp` or `rsync`.
///
/// Errors: nobody is called so; the names that there are are listed.
pub fn named(name: &str) -> Result<Vec<&'static Rival>, Error> {
    let is_family = FAMILIES.contains(&name);
    let means = |rival: &&Rival| rival.name == name || (is_family && rival.program == name);
    let rivals: Vec<_> = ALL.iter().filter(means).collect();
    if rivals.is_empty() {
        let names: Vec<_> = ALL.iter().map(|rival| rival.name).collect();
        return Err(Error::Usage(format!(
            "{name:?} is no rival that flatout knows; there are {} (cp and rsync mean all their variants)",
            names.join(", ")
        )));
    }
    Ok(rivals)
}

/// Where programs are looked for; where nothing says so, where execvp(3) looks.
pub fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into())
}

/// Looks for a program along `path`, as execvp(3) does. Folders that are not absolute are left
/// out: what they mean depends on where one stands.
pub fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    files_in(path, program).find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}

/// What would be called so in the folders of a list with colons.
fn files_in(folders: &OsStr, name: &str) -> impl Iterator<Item = PathBuf> {
    let folders = folders.as_bytes().split(|&byte| byte == b':').map(OsStr::from_bytes);
    folders.map(Path::new).filter(|folder| folder.is_absolute()).map(move |one| one.join(name))
}

/// Where libraries lie, beside `LD_LIBRARY_PATH`.
const LIBRARIES: &str = concat!(
    "/usr/local/lib:/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib:",
    "/usr/local/lib64:/opt/OpenBLAS/lib"
);

/// Looks for a library. Its version is what its file is called, behind all links.
fn library(rival: &'static Rival) -> Option<Found> {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut files = [&*own, OsStr::new(LIBRARIES)]
        .into_iter()
        .flat_map(|folders| files_in(folders, rival.program));
    let path = files.find(|file| file.is_file())?;
    let real = path.canonicalize().ok();
    let name = real.as_deref().and_then(Path::file_name).unwrap_or_default();
    Some(Found { rival, version: name.to_string_lossy().into_owned(), path })
}

/// Whether a program is of ImageMagick, which has one that is called `stream`, too, and names its library.
fn is_of_magick(program: &Path) -> bool {
    const WORD: &[u8] = b"Magick";
    fs::read(program).is_ok_and(|bytes| bytes.windows(WORD.len()).any(|part| part == WORD))
}

/// Looks for a rival along `path` and asks it for its version; `None` when it is not there, or what is
/// called so is something else: those of cargo say their version, and the rcp of Debian before 12 is scp.
pub fn look(rival: &'static Rival, path: &OsStr, runner: &mut dyn Runner) -> Option<Found> {
    if rival.program.is_empty() {
        return Some(Found { rival, path: PathBuf::new(), version: String::new() });
    }
    if rival.discipline == Discipline::Matrix {
        return library(rival);
    }
    let program = find(rival.program, path)?;
    let version = version(rival, &program, runner);
    let is_it = match rival.discipline {
        Discipline::Stream => !is_of_magick(&program),
        _ => !version.is_empty() || !rival.package.starts_with("cargo "),
    };
    is_it.then_some(Found { rival, path: program, version })
}

/// What the program says about its version; empty when it says nothing, fails or hangs.
fn version(rival: &Rival, program: &Path, runner: &mut dyn Runner) -> String {
    if rival.version.is_empty() {
        return String::new();
    }
    let words = rival.version.iter().map(|word| (*word).into());
    let argv: Vec<OsString> = std::iter::once(program.into()).chain(words).collect();
    let ended = runner.run(&argv, VERSION_LIMIT_NS).ok().filter(|one| one.end == End::Itself);
    let Some(account) = ended else { return String::new() };
    let line = first_line(&account.stdout).or_else(|| first_line(&account.stderr));
    // fcp says its version and exits with 1; others fail because they do not know the option.
    let is_bare = |line: &String| line.starts_with(|letter: char| letter.is_ascii_digit());
    line.filter(|line| account.exit_code == 0 || is_bare(line)).unwrap_or_default()
}

/// The first line with something on it, without letters that move a terminal.
fn first_line(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|letter| !letter.is_control()).take(VERSION_LETTERS).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use flatout_sys::process::Account;

    use super::*;

    /// Answers whatever it is asked.
    struct Answer(Account);

    impl Runner for Answer {
        fn run(&mut self, _: &[OsString], limit_ns: u64) -> Result<Account, String> {
            assert_eq!(limit_ns, VERSION_LIMIT_NS);
            Ok(self.0.clone())
        }
    }

    #[test]
    fn every_rival_of_the_list_is_found_by_its_name_alone() {
        for rival in ALL {
            assert_eq!(named(rival.name).unwrap(), [rival]);
            assert!(!rival.package.is_empty() && !rival.counterpart.is_empty());
        }
        let names = |name| named(name).unwrap().iter().map(|rival| rival.name).collect::<Vec<_>>();
        assert_eq!(names("cp"), ["cp-r", "cp-a"]);
        assert_eq!(names("rsync"), ["rsync-a", "rsync-r"]);
    }

    #[test]
    fn a_name_that_nobody_has_is_refused_with_the_names_that_there_are() {
        for name in ["", "coreutils", "DD", "cp -a"] {
            let error = named(name).unwrap_err();
            assert!(matches!(error, Error::Usage(_)));
            assert!(error.to_string().contains("cp-a, rsync-a"), "{error}");
        }
    }

    #[test]
    fn the_first_that_may_be_executed_counts_and_relative_folders_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let make = |place: &str, mode| {
            let place = folder.path().join(place);
            fs::create_dir_all(&place).unwrap();
            let file = place.join("race-me");
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            file
        };
        let (_, second) = (make("first", 0o644), make("second", 0o755));
        let base = folder.path().display();
        let path = format!("{base}/none:{base}/first::.:{base}/second");
        assert_eq!(find("race-me", path.as_ref()), Some(second));
        assert_eq!(find("race-me", ".:".as_ref()), None);
    }

    #[test]
    fn what_is_called_like_a_rival_of_cargo_and_says_no_version_is_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let look = |name: &str, stdout: &str, exit_code| {
            let file = folder.path().join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
            let account = Account { stdout: stdout.into(), exit_code, ..Account::default() };
            look(named(name).unwrap()[0], folder.path().as_os_str(), &mut Answer(account))
        };
        assert!(look("rcp", "", 1).is_none(), "scp: unknown option");
        assert_eq!(look("rcp", "rcp 0.22", 0).unwrap().version, "rcp 0.22");
        assert!(look("fcp", "0.2.2", 1).is_some() && look("dd", "", 1).is_some());
    }

    #[test]
    fn a_stream_that_is_not_that_of_memory_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stream");
        let look = |content: &str| {
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
            look(
                named("stream").unwrap()[0],
                folder.path().as_os_str(),
                &mut Answer(Account::default()),
            )
        };
        assert!(look("libMagickCore-6.Q16.so.6\0Version: %s\0").is_none());
        assert!(look("Copy:\0Scale:\0Add:\0Triad:\0").is_some());
        assert!(look("#!/bin/sh\nOMP_NUM_THREADS=1 exec ./stream.omp").is_some());
    }

    #[test]
    fn versions_are_the_first_line_wherever_it_is_said_and_nothing_of_those_that_fail() {
        let dd = named("dd").unwrap()[0];
        let said = |stdout: &[u8], stderr: &[u8], exit_code| {
            let (stdout, stderr) = (stdout.to_vec(), stderr.to_vec());
            let account = Account { stdout, stderr, exit_code, ..Account::default() };
            version(dd, Path::new("/bin/dd"), &mut Answer(account))
        };
        assert_eq!(said(b"\n dd \x1b[1m9.1\nmore", b"", 0), "dd [1m9.1");
        assert_eq!(said(b"", b"xxhsum 0.8\n", 0), "xxhsum 0.8");
        assert_eq!(said(b"usage", b"", 1), "");
        assert_eq!(said(b"", b"0.2.2\n", 1), "0.2.2");
        let hung = Account { end: End::TimeOver, stdout: b"1".to_vec(), ..Account::default() };
        assert_eq!(version(dd, Path::new("/bin/dd"), &mut Answer(hung)), "");
    }
}
