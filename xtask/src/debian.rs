//! Debian: where this run takes place, and the programs that some tests call.
//!
//! As root on Debian a missing program is installed from its package. Anywhere else, and when the
//! installation fails, the tests that need it skip and say so.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Extent;

/// A program that tests call, and the package that brings it. A path stands where a test calls that
/// very file, whatever else of this name there is.
const NEEDED: [(&str, &str); 18] = [
    ("strace", "strace"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("fio", "fio"),
    ("b3sum", "b3sum"),
    ("xxhsum", "xxhash"),
    ("rsync", "rsync"),
    ("ip", "iproute2"),
    ("chromium", "chromium"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("man", "man-db"),
    ("fakeroot", "fakeroot"),
    ("/usr/bin/jsonschema", "python3-jsonschema"),
    ("mpirun", "openmpi-bin"),
    (MPI, "libopenmpi-dev"),
    // It brings the library and the headers, and no compiler.
    (CLANG, "libclang-dev"),
];

/// What the full tests need besides: another MPI library, and a Slurm.
const NEEDED_IN_FULL: [(&str, &str); 4] = [
    (MPICH, "libmpich-dev"),
    (MPICH_RUN, "mpich"),
    ("slurmctld", "slurm-wlm"),
    ("munged", "munge"),
];

/// The compiler and the launcher of MPICH, whichever MPI library is the usual one.
pub const MPICH: &str = "mpicc.mpich";
pub const MPICH_RUN: &str = "mpirun.mpich";

/// What a program is compiled with that speaks MPI, and what the build reads its headers with.
const MPI: &str = "mpicc";
const CLANG: &str = "/usr/lib/llvm-*/lib/libclang.so";

/// Folders of administration programs, which a user's search path may lack.
const ALWAYS_SEARCHED: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/bin"];

/// Where this run takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// What can be installed is.
    RootOnDebian,
    /// Tests run as far as they can.
    Elsewhere,
}

/// Finds out where this is and, where that is allowed, installs what is missing.
pub fn prepare(extent: Extent) -> Place {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let is_it = is_root && Path::new("/etc/debian_version").exists();
    let place = if is_it { Place::RootOnDebian } else { Place::Elsewhere };
    let path = std::env::var("PATH").unwrap_or_default();
    let missing = missing_packages(extent, |program| is_installed(&path, program));
    if missing.is_empty() {
        return place;
    }
    let names = missing.join(" ");
    match place {
        Place::Elsewhere => println!("==> packages: {names} not installed, some tests will skip"),
        Place::RootOnDebian => match install(&missing) {
            Ok(()) => println!("==> packages: installed {names}"),
            Err(why) => println!("==> packages: {names} not installed, tests will skip: {why}"),
        },
    }
    place
}

fn missing_packages(extent: Extent, is_installed: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let more = if extent == Extent::Full { &NEEDED_IN_FULL[..] } else { &[] };
    let missing = NEEDED.iter().chain(more).filter(|(program, _)| !is_installed(program));
    missing.map(|(_, package)| *package).collect()
}

/// Whether every test has what it needs here: root on Debian who may mount, a kernel that has all calls
/// that they make, and all packages.
pub fn lacks_nothing(place: Place, extent: Extent) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let told = |file| std::fs::read_to_string(file).unwrap_or_default();
    place == Place::RootOnDebian
        && may_mount(&told("/proc/self/status"))
        && is_new(&told("/proc/sys/kernel/osrelease"))
        && missing_packages(extent, |program| is_installed(&path, program)).is_empty()
}

/// CAP_SYS_ADMIN among the effective ones of `/proc/self/status`.
fn may_mount(status: &str) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|bits| bits >> 21 & 1 == 1)
}

/// Whether the kernel is 6.9 or newer.
fn is_new(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 9)
}

/// Whether the feature mpi can be built here.
pub fn can_build_mpi() -> bool {
    are_installed(&[MPI, CLANG])
}

/// Whether it can be built with MPICH, too.
pub fn can_build_mpich() -> bool {
    are_installed(&[MPICH, MPICH_RUN, CLANG])
}

fn are_installed(programs: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    programs.iter().all(|program| is_installed(&path, program))
}

/// Whether a program is in the search path, or a file where it is wanted; `*` stands for the rest of a
/// name.
fn is_installed(path: &str, program: &str) -> bool {
    if let Some((start, rest)) = program.split_once('*') {
        let (folder, start) = start.rsplit_once('/').unwrap_or(("", start));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let fits = |name: &str| name.starts_with(start);
        let mut named = entries.filter(|entry| entry.file_name().to_str().is_some_and(fits));
        return named.any(|entry| Path::new(&format!("{}{rest}", entry.path().display())).exists());
    }
    path.split(':')
        .chain(ALWAYS_SEARCHED)
        .any(|folder| !folder.is_empty() && Path::new(folder).join(program).is_file())
}

/// Installs from the lists that are there; fetches new lists only when those do not do.
fn install(packages: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments).or_else(|_| {
        apt_get(&["update"])?;
        apt_get(&arguments)
    })
}

/// Waits for no mirror and no lock for long: a test that skips is better than a run that hangs.
fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let limits = [
        "Acquire::http::Timeout=20",
        "Acquire::https::Timeout=20",
        "Acquire::Retries=1",
        "DPkg::Lock::Timeout=60",
    ];
    let output = Command::new("apt-get")
        .args(limits.iter().flat_map(|limit| ["-o", limit]))
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("apt-get cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = complaint.lines().rfind(|line| line.starts_with("E:")).unwrap_or("no reason given");
    Err(format!("`apt-get {}`: {}: {last}", arguments[0], output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_missing_programs_are_installed() {
        let missing =
            |is_installed: fn(&str) -> bool| missing_packages(Extent::Sampled, is_installed);
        assert_eq!(missing(|_| true), Vec::<&str>::new());
        assert_eq!(missing(|program| program != "mkfs.xfs"), ["xfsprogs"]);
        assert_eq!(missing(|_| false).len(), NEEDED.len());
        let all = NEEDED.len() + NEEDED_IN_FULL.len();
        assert_eq!(missing_packages(Extent::Full, |_| false).len(), all);
    }

    #[test]
    fn a_kernel_and_rights_are_read() {
        for (release, is) in [("6.9.0", true), ("7.0-rc1", true), ("6.1.0-37-amd64", false)] {
            assert_eq!(is_new(release), is, "{release}");
        }
        assert!(may_mount("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(!may_mount("CapEff:\t00000000a80425fb\n") && !may_mount(""));
    }

    #[test]
    fn programs_are_searched_in_the_path() {
        assert!(is_installed("/nowhere::/bin", "sh"));
        assert!(!is_installed("/nowhere:", "no-such-program"));
        assert!(is_installed("", "/proc/sel*/status") && !is_installed("", "/proc/sel*/no-such"));
    }
}
