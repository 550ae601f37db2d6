//! Where it is noted which files a copy has finished, for the same command to go on.
//!
//! `$FLATOUT_RESUME` names the directory; an empty one says that there is none. Else it is
//! `flatout/copies` in `$XDG_STATE_HOME` or `~/.local/state`. A ledger is found by the words of the
//! command and the current directory; what it proves rests on neither.

use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_tree::copy::evidence::{Evidence, Noting};
use flatout_tree::copy::options::{CopyOptions, Unchanged, When};

use crate::arguments::copy::Copy as Arguments;
use crate::own_file;

const NAMED: &str = "FLATOUT_RESUME";
/// The part of the memory for what is known of earlier runs.
const MEMORY_SHARE: u64 = 2;

/// What is known of earlier runs of this command.
pub fn evidence(arguments: &Arguments, options: &CopyOptions) -> Evidence {
    let noting = match arguments.resume {
        Some(When::Always) => Noting::AtOnce,
        _ => Noting::Later,
    };
    // Who compares contents, or sizes and times, asks for no evidence.
    if !matches!(options.unchanged, Unchanged::Recorded | Unchanged::Never) {
        return Evidence::none();
    }
    match place(arguments) {
        Some(directory) => {
            let path = directory.join(name(arguments));
            let memory_bytes = options.max_memory_bytes / MEMORY_SHARE;
            Evidence::open(&path, options, noting, memory_bytes)
        }
        None => Evidence::none(),
    }
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
