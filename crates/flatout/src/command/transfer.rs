//! `flatout transfer`: the bytes of one file into another, and nothing else of it. Exactly the
//! work of `dd if=SOURCE of=TARGET bs=BLOCK`.

use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

use flatout_io::transfer::{Method, Route, Transfer as Mover, TransferError};
use flatout_io::{Caching, Error, Existing, Source, Stop, Target, TargetOptions};
use flatout_sys::cancel::CancelToken;

use crate::arguments::transfer::Transfer;
use crate::conclusion::{self, Refused};
use crate::output;
use crate::output::place::identity;

/// Moves the bytes. A target that did not exist before is removed when that fails.
pub fn run(arguments: &Transfer, cancel: CancelToken) -> ExitCode {
    match transfer(arguments, cancel) {
        Ok(()) if cancel.is_cancelled() => output::give_up(conclusion::INTERRUPTED, "interrupted"),
        Ok(()) => output::exit(conclusion::DONE),
        Err(Refused { code, text }) => output::give_up(code, &text),
    }
}

fn transfer(arguments: &Transfer, cancel: CancelToken) -> Result<(), Refused> {
    let Transfer { source, target, block_size } = arguments;
    let failed = |error: Error| Refused::from(error.to_string());
    let mut mover = Mover::new(*block_size, 0);
    mover
        .buffer(*block_size)
        .map_err(|_| format!("no memory for a block of {block_size} bytes"))?;
    let opened = Source::open(source).map_err(failed)?;
    let options = TargetOptions {
        existing: Existing::Overwrite,
        caching: Caching::Buffered,
        block_bytes: *block_size,
    };
    let (made, _) = Target::open(target, options).map_err(failed)?;
    // What was opened is compared, not the names: the source may be `-`, and a name may change its
    // meaning between a look and the opening.
    if is_same(&opened, &made).map_err(failed)? {
        return Err(Refused::wrong_use(format!("cannot write to {target:?}: it is the source")));
    }
    let moved = fill(&mut mover, &opened, &made, cancel);
    if moved.is_err() || cancel.is_cancelled() {
        made.remove_if_created().map_err(failed)?;
    }
    moved.map_err(failed)
}

fn fill(
    mover: &mut Mover,
    source: &Source,
    target: &Target,
    cancel: CancelToken,
) -> Result<(), Error> {
    target.set_length(0)?;
    let mut stop = Stop::new(cancel, None);
    let route = Route {
        source: source.file(),
        target: target.file(),
        offset_bytes: 0,
        length_bytes: u64::MAX,
        moved: &AtomicU64::new(0),
    };
    let moved = mover.run(Method::Sync, route, &mut stop);
    moved.map(drop).map_err(|error| match error {
        TransferError::Source(errno) => Error::system("read", source.path())(errno),
        TransferError::Target(errno) => Error::system("write", target.path())(errno),
    })
}

/// Whether both are one file, which cutting the target off would empty.
fn is_same(source: &Source, target: &Target) -> Result<bool, Error> {
    let inode = |file, path| {
        let facts = rustix::fs::fstat(file).map_err(Error::system("examine", path))?;
        Ok(identity(&facts))
    };
    Ok(inode(source.file(), source.path())? == inode(target.file(), target.path())?)
}
