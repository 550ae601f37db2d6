//! Where it is noted which files a copy has finished, for the same command to go on.
//!
//! `$FLATOUT_RESUME` names the directory; an empty one says that there is none. Else it is
//! `flatout/copies` in `$XDG_STATE_HOME` or `~/.local/state`. A ledger is found by the words of the
//! command and the current directory; what it proves rests on neither.

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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
    if arguments.rules().is_some() || noting == Noting::Later && is_small_new_file(plan) {
        return Evidence::none();
    }
    let Some(directory) = place(arguments) else { return Evidence::none() };
    let path = directory.join(name(arguments));
    let evidence = if hosts.is_none() && new_operand(plan).is_some() {
        Evidence::of_nothing(&path, options, noting)
    } else {
        let memory_bytes = options.max_memory_bytes / MEMORY_SHARE;
        Evidence::open(&path, options, noting, (memory_bytes, hosts))
    };
    match options.effect {
        Effect::Done => evidence,
        Effect::Planned => evidence.without_notes(),
    }
}

/// Whether there is one small file to copy, to where nothing is: it is done before anything is noted,
/// and no setting that was measured is for it. Scripts copy such files by the thousand.
pub fn is_small_new_file(plan: &Plan) -> bool {
    let bytes = new_operand(plan).and_then(file_bytes);
    bytes.is_some_and(|bytes| bytes < SMALL_BYTES)
}

/// The one operand, if it is to be copied to where nothing is: nothing can have been done.
fn new_operand(plan: &Plan) -> Option<&Operand> {
    let mut operands = plan.rounds.iter().flatten();
    let (Some(operand), None) = (operands.next(), operands.next()) else { return None };
    (rustix::fs::lstat(&operand.target).err() == Some(Errno::NOENT)).then_some(operand)
}

/// The size of a source that is a file.
pub fn file_bytes(operand: &Operand) -> Option<u64> {
    let found = rustix::fs::lstat(&operand.source).ok()?;
    FileType::from_raw_mode(found.st_mode).is_file().then_some(found.st_size as u64)
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
///
/// Our own digests ask the CPU first what it can do, which takes 47 us in a virtual machine (of 1.2 ms for a
/// file whose extents are shared).
fn name(arguments: &Arguments) -> String {
    let directory = env::current_dir().unwrap_or_default();
    let halves = [0_u8, 1].map(|half| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(half);
        let operands = arguments.target_directory.iter().chain(&arguments.paths);
        for path in [&directory].into_iter().chain(operands) {
            path.as_os_str().as_bytes().hash(&mut hasher);
        }
        hasher.finish()
    });
    format!("{:016x}{:016x}", halves[0], halves[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_to_where_nothing_is_needs_no_evidence() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("small"), "x").unwrap();
        std::fs::File::create(at("large")).unwrap().set_len(SMALL_BYTES).unwrap();
        std::fs::create_dir(at("tree")).unwrap();
        let plan = |operands: &[(&str, &str)]| {
            let operand = |&(from, to)| Operand { source: at(from), target: at(to) };
            Plan { rounds: vec![operands.iter().map(operand).collect()], ..Plan::default() }
        };
        for (operands, is_new, is_small) in [
            (&[("small", "new")][..], true, true),
            (&[("small", "tree")], false, false),
            (&[("large", "new")], true, false),
            (&[("tree", "new")], true, false),
            (&[("gone", "new")], true, false),
            (&[("small", "new"), ("small", "newer")], false, false),
            (&[], false, false),
        ] {
            let plan = plan(operands);
            assert_eq!(new_operand(&plan).is_some(), is_new, "{operands:?}");
            assert_eq!(is_small_new_file(&plan), is_small, "{operands:?}");
        }
    }
}
