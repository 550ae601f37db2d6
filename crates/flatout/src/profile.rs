//! The file in which `flatout tune` leaves what it measured, and in which others look it up:
//! `$FLATOUT_PROFILE`, else `flatout/profile.json` in `$XDG_CONFIG_HOME` or `~/.config`.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_io::{MachineProfile, Profile, ProfileEntry};
use flatout_sys::affinity;

use crate::output;
use crate::own_file::{OwnFile, Unusable};

/// The table: a few KiB for each place.
pub const FILE: OwnFile<Profile> = OwnFile {
    noun: "profile",
    named: "FLATOUT_PROFILE",
    file: "profile.json",
    most_bytes: 4 << 20,
    otherwise: "; --no-save measures without leaving one",
    parse: Profile::parse,
};
/// Hexadecimal digits that stand for a machine.
const MACHINE_DIGITS: usize = 16;

/// The table, if there is one. One that makes no sense is complained about, and is none; one that
/// this user may not read is somebody else's: `HOME` is often that of another user.
///
/// Cost: an open that mostly fails; else a few KiB are read.
pub fn load() -> Option<Arc<MachineProfile>> {
    match FILE.read()? {
        Ok(profile) => {
            let (machine, kernel, cpus) = (machine(), kernel(), affinity::allowed_cpu_count());
            Some(Arc::new(MachineProfile { profile, machine, kernel, cpus }))
        }
        Err(Unusable { is_private: true, .. }) => None,
        Err(Unusable { text, .. }) => {
            output::complain(&format!("{text}; going on with the defaults"));
            None
        }
    }
}

/// What tells this machine from others that share a home directory: a digest of its machine-id,
/// which is not to be shown to others itself (machine-id(5)).
pub fn machine() -> String {
    let id = fs::read("/etc/machine-id").unwrap_or_default();
    if id.is_empty() {
        return "unknown".to_owned();
    }
    let mut hasher = Hasher::new(Algorithm::Blake3);
    hasher.update(b"flatout profile ");
    hasher.update(id.trim_ascii());
    hasher.finish().to_string().chars().take(MACHINE_DIGITS).collect()
}

/// The version of the kernel, its first two numbers: another release changes what is fast, a further
/// patch of one hardly does.
pub fn kernel() -> String {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    format!("{}.{}", numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

/// Puts the entries into the table; those with the same key go.
///
/// Errors: those of [`OwnFile::change`].
pub fn save(entries: &[ProfileEntry]) -> Result<PathBuf, String> {
    FILE.change(|mut profile| {
        entries.iter().cloned().for_each(|entry| profile.put(entry));
        profile
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_name_and_its_kernel_two_numbers() {
        assert_eq!(machine(), machine());
        assert!(!machine().is_empty());
        let numbers: Vec<u32> = kernel().split('.').map(|number| number.parse().unwrap()).collect();
        assert!(numbers.len() == 2 && numbers[0] >= 4, "{numbers:?}");
    }
}
