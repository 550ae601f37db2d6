//! What a selection and a mirror demand of the operands, looked at before anything is touched.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flatout_io::quote;
use flatout_tree::copy::failure::{Failure, Refusal};
use flatout_tree::copy::operand::{Objection, Plan, Wording, mirrored, parent};
use flatout_tree::copy::rules::Follow;
use flatout_tree::selection::listed::Listed;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::witness::Witness;

/// Why operands cannot be mirrored.
pub fn mirror_obstacle(
    plan: &Plan,
    wording: Option<Wording>,
    snapshots: &[PathBuf],
) -> Option<String> {
    let follows = wording.is_some_and(|wording| wording.follow != Follow::Never);
    let (operand, why) = mirrored::obstacle(plan, follows, snapshots)?;
    let (source, target) = (quote(&operand.source), quote(&operand.target));
    Some(format!("cannot mirror {source} to {target}: {why}, and would be deleted"))
}

/// Says which listed paths are not there; the source is a directory.
pub fn look_for(listed: &Listed, plan: &Plan, wording: Option<Wording>, witness: &Witness<'_>) {
    let follows = wording.is_some_and(|wording| wording.follow == Follow::Always);
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
        for path in listed.paths().map(OsStr::from_bytes) {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            // The copier does not follow symlinks on the way, either.
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let found = match rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve) {
                // O_PATH and O_NOFOLLOW open a symlink itself, which NO_SYMLINKS refuses.
                Err(Errno::LOOP) if !follows => {
                    let path = Path::new(path);
                    let name = path.file_name().unwrap_or_default();
                    let above =
                        rustix::fs::openat2(&root, parent(path), flags, Mode::empty(), resolve);
                    above.and_then(|above| {
                        rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW).map(drop)
                    })
                }
                Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => {
                    rustix::fs::statat(&root, path, AtFlags::SYMLINK_NOFOLLOW).map(drop)
                }
                opened => opened.map(drop),
            };
            if let Err(errno) = found {
                object("find the listed path", errno, &operand.source.join(path));
            }
        }
    }
}
