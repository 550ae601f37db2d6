//! `flatout sum`: digests of files and trees, printed or checked as they are found.
//!
//! The story: what is to be read becomes items, threads read them, and what they find goes in
//! order into a session, which writes lines or rows. Nothing is kept of a file that is written.

mod account;
mod check;
mod document;
mod inventory;
mod session;
#[cfg(feature = "mpi")]
pub mod together;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use flatout_io::digest::Algorithm;
use flatout_sys::cancel::CancelToken;
use flatout_sys::thread::spawn;
use flatout_tree::item::{Item, Place, Wanted};
use flatout_tree::sum::{Sum, SumOptions, Summed};
use flatout_tree::walk::{Walk, Yielded, place_of};

use crate::arguments::sum::{Sum as Arguments, SumFormat};
use crate::output::stream::{Inode, Stream};
use crate::{output, profile};
use session::Session;

/// Reads all the files. One that cannot be read does not stop the others.
pub fn run(arguments: &Arguments, cancel: CancelToken) -> ExitCode {
    let stream = match open_stream(arguments) {
        Ok(stream) => stream,
        Err(error) => {
            let wants_json = arguments.format() == SumFormat::Json;
            return output::cannot_begin(error.into(), wants_json);
        }
    };
    let mut session = Session::begin(arguments, cancel, stream);
    if arguments.check {
        session = check::run(session);
    } else {
        let items = items(arguments, session.stream.inodes());
        read(&mut session, items);
    }
    output::exit(session.end())
}

/// Opens what lines are written to.
fn open_stream(arguments: &Arguments) -> Result<Stream, String> {
    // `--check --quiet` may have nothing to say, and needs no standard output then.
    let output = arguments.output.as_deref();
    if output.is_some() {
        output::check(output, &arguments.files)?;
    }
    Stream::open(output)
}

/// The files in the order in which they are named, those of a tree in its own. The files with
/// these inode numbers are left out of trees.
fn items(arguments: &Arguments, left_out: Vec<Inode>) -> impl Iterator<Item = Yielded> + use<> {
    let wanted = Wanted::Digest(arguments.digest.unwrap_or(Algorithm::Blake3));
    let is_recursive = arguments.recursive;
    arguments.operands().into_iter().flat_map(move |path| {
        let is_tree = is_recursive && path.as_os_str() != "-";
        let one = (!is_tree).then(|| Ok(item(path.clone(), wanted.clone())));
        let tree = is_tree.then(|| {
            let walk = Walk::new(path, wanted.clone());
            left_out.iter().fold(walk, |walk, inode| walk.without(inode.0, inode.1))
        });
        one.into_iter().chain(tree.into_iter().flatten())
    })
}

/// A file by the name that somebody gave it.
fn item(path: PathBuf, wanted: Wanted) -> Item {
    let place = if path.as_os_str() == "-" { Place::StandardInput } else { place_of(&path) };
    Item { place, shown: path.into_os_string(), wanted }
}

/// Writes the digests of all that is yielded.
fn read(session: &mut Session<'_>, items: impl Iterator<Item = Yielded>) {
    let (threads, cancel) = (session.arguments.threads, session.cancel);
    in_threads(threads, cancel, items, |summed| session.digested(summed));
}

/// Has the items read by threads of ours; what is found goes to `sink`, in order.
fn in_threads(
    threads: Option<u32>,
    cancel: CancelToken,
    items: impl Iterator<Item = Yielded>,
    sink: impl FnMut(Summed) -> ControlFlow<()>,
) {
    let options = SumOptions { threads: threads.unwrap_or(0), profile: profile::load(), cancel };
    let sum = Sum::new(options);
    let mut running = 0;
    std::thread::scope(|scope| {
        // With fewer threads than are useful, or none but this one, it takes longer, no more.
        let hire = |more: u32| {
            let before = running;
            for _ in 0..more {
                let thread = std::thread::Builder::new().name(format!("sum {running}"));
                running += u32::from(spawn(scope, thread, || sum.work()).is_ok());
            }
            running - before
        };
        sum.feed(items, hire, sink);
    });
}
