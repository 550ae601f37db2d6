//! Where it is noted which files a copy has finished, for the same command to go on.
//!
//! `$FLATOUT_RESUME` names the directory; an empty one says that there is none. Else it is
//! `flatout/copies` in `$XDG_STATE_HOME` or `~/.local/state`. A ledger is found by the words of the
//! command and the current directory; what it proves rests on neither.

use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_tree::copy::Operand;
use flatout_tree::copy::evidence::{Evidence, Hosts, Noting};
use flatout_tree::copy::operand::Plan;
use flatout_tree::copy::options::{CopyOptions, Effect, Unchanged, When};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::arguments::copy::Copy as Arguments;
use crate::own_file;

const NAMED: &str = "FLATOUT_RESUME";
/// The part of the memory for what is known of earlier runs.
const MEMORY_SHARE: u64 = 2;
/// A file below this size is copied within the second after which notes begin, and as any small one.
const SMALL_BYTES: u64 = 4 << 20;

/// What is known of earlier runs of this command, by processes of these hosts if it is not one alone.
pub fn evidence(
    arguments: &Arguments,
    options: &CopyOptions,
    plan: &Plan,
    hosts: Option<&Hosts>,
) -> Evidence {
    let noting = match arguments.resume {
        Some(When::Always) => Noting::AtOnce,
        _ => Noting::Later,
    };
    // Who compares contents, or sizes and times, asks for no evidence.
    if !matches!(options.unchanged, Unchanged::Recorded | Unchanged::Never) {
        return Evidence::none();
    }
    // By the rules of cp nothing counts as done that is not known to it.
    if arguments.rules().is_some() || noting == Noting::Later && is_one_new_file(plan) {
        return Evidence::none();
    }
    match place(arguments) {
        Some(directory) => {
            let path = directory.join(name(arguments));
            let memory_bytes = options.max_memory_bytes / MEMORY_SHARE;
            let evidence = Evidence::open(&path, options, noting, (memory_bytes, hosts));
            match options.effect {
                Effect::Done => evidence,
                Effect::Planned => evidence.without_notes(),
            }
        }
        None => Evidence::none(),
    }
}

/// Whether there is one small file to copy, to where nothing is: nothing can have been done, it is done
/// before anything is noted, and no setting that was measured is for it. Scripts copy such files by the
/// thousand.
pub fn is_one_new_file(plan: &Plan) -> bool {
    let mut operands = plan.rounds.iter().flatten();
    let (Some(operand), None) = (operands.next(), operands.next()) else { return false };
    is_small(operand, SMALL_BYTES) && rustix::fs::lstat(&operand.target).err() == Some(Errno::NOENT)
}

/// Whether a source is a file below this size.
pub fn is_small(operand: &Operand, bytes: u64) -> bool {
    rustix::fs::lstat(&operand.source).is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode).is_file() && (found.st_size as u64) < bytes
    })
}

/// Where finished files are noted; `None`: nowhere.
pub fn place(arguments: &Arguments) -> Option<PathBuf> {
    match arguments.resume {
        Some(When::Never) => None,
        _ => own_file::place(own_file::STATE, [NAMED, "copies"], |name| env::var_os(name)),
    }
}

/// A name for the operands, as they were given here. `-T` is none of them: who goes on with a new
/// tree must give it.
fn name(arguments: &Arguments) -> String {
    let mut hasher = Hasher::new(Algorithm::Xxh3);
    let mut word = |bytes: &[u8]| {
        hasher.update(bytes);
        hasher.update(&[0]);
    };
    word(env::current_dir().unwrap_or_default().as_os_str().as_bytes());
    let operands = arguments.target_directory.iter().chain(&arguments.paths);
    operands.for_each(|path| word(path.as_os_str().as_bytes()));
    hasher.finish().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_small_file_to_where_nothing_is_needs_no_evidence() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("small"), "x").unwrap();
        std::fs::File::create(at("large")).unwrap().set_len(SMALL_BYTES).unwrap();
        std::fs::create_dir(at("tree")).unwrap();
        let plan = |operands: &[(&str, &str)]| {
            let operand = |&(from, to)| Operand { source: at(from), target: at(to) };
            Plan { rounds: vec![operands.iter().map(operand).collect()], ..Plan::default() }
        };
        for (operands, is_one) in [
            (&[("small", "new")][..], true),
            (&[("small", "tree")], false),
            (&[("large", "new")], false),
            (&[("tree", "new")], false),
            (&[("gone", "new")], false),
            (&[("small", "new"), ("small", "newer")], false),
            (&[], false),
        ] {
            assert_eq!(is_one_new_file(&plan(operands)), is_one, "{operands:?}");
        }
    }
}
