//! What a selection and a mirror demand of the operands, looked at before anything is touched.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flatout_io::quote;
use flatout_tree::copy::failure::{Failure, Refusal};
use flatout_tree::copy::operand::{Objection, Plan, Wording, mirrored, parent};
use flatout_tree::copy::rules::Follow;
use flatout_tree::selection::listed::Listed;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

use super::witness::Witness;

/// Bytes of a path that are given to the kernel at once.
const PIECE_BYTES: usize = 4095;

/// Why operands cannot be mirrored.
pub fn mirror_obstacle(
    plan: &Plan,
    wording: Option<Wording>,
    snapshots: &[PathBuf],
) -> Option<String> {
    let follows = wording.is_some_and(|wording| wording.rules.follow != Follow::Never);
    let (operand, why) = mirrored::obstacle(plan, follows, snapshots)?;
    let (source, target) = (quote(&operand.source), quote(&operand.target));
    Some(format!("cannot mirror {source} to {target}: {why}, and would be deleted"))
}

/// Says which listed paths are not there; the source is a directory.
pub fn look_for(listed: &Listed, plan: &Plan, wording: Option<Wording>, witness: &Witness<'_>) {
    let follows = wording.is_some_and(|wording| wording.rules.follow == Follow::Always);
    for operand in plan.rounds.iter().flatten() {
        let object = |operation, errno, path: &Path| {
            let path = path.as_os_str().to_owned();
            let failure = Failure::of(Refusal::of(operation)(errno), path);
            witness.object(&Objection::Failed(failure));
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = match rustix::fs::openat(CWD, &operand.source, flags, Mode::empty()) {
            Ok(root) => root,
            Err(errno) => {
                object("take listed paths from", errno, &operand.source);
                continue;
            }
        };
        for path in listed.paths() {
            if let Err(errno) = find(root.as_fd(), path, follows) {
                let path = Path::new(OsStr::from_bytes(path));
                object("find the listed path", errno, &operand.source.join(path));
            }
        }
    }
}

/// Looks for a path of any length, which is given to the kernel in pieces.
fn find(root: BorrowedFd<'_>, path: &[u8], follows: bool) -> Result<OwnedFd> {
    if path.len() <= PIECE_BYTES {
        return open(root, OsStr::from_bytes(path), follows);
    }
    let cut = path[..=PIECE_BYTES].iter().rposition(|&byte| byte == b'/');
    let (piece, rest) = path.split_at(cut.ok_or(Errno::NAMETOOLONG)?);
    let above = open(root, OsStr::from_bytes(piece), follows)?;
    find(above.as_fd(), &rest[1..], follows)
}

/// Pins what a path leads to. As the copier does it, no symlink on the way is followed, unless all are.
fn open(root: BorrowedFd<'_>, path: &OsStr, follows: bool) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
        // O_PATH and O_NOFOLLOW open a symlink itself, which NO_SYMLINKS refuses.
        Err(Errno::LOOP) if !follows => {
            let path = Path::new(path);
            let name = path.file_name().unwrap_or_default();
            let above = rustix::fs::openat2(root, parent(path), flags, Mode::empty(), resolve)?;
            rustix::fs::openat(&above, name, flags, Mode::empty())
        }
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => {
            rustix::fs::openat(root, path, flags, Mode::empty())
        }
        opened => opened,
    }
}
