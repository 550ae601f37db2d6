//! `flatout sum -r` by all processes that a launcher has started.
//!
//! Each goes through the names by itself, which are the same in the same order for all, and reads
//! pieces of some files, one after the other, whose numbers the first process gives out to whoever asks.
//! That compares the names with its own and writes the lines in order. Where another process finds other
//! names, the first one reads what is left alone: then the tree was changed meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use flatout_mpi::World;
use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;
use flatout_tree::copy::{Post, Silence};
use flatout_tree::sum::Summed;
use flatout_tree::walk::Yielded;
use flatout_tree::wire::{message, take};

use super::session::Session;
use super::{in_threads, items, open_stream};
use crate::arguments::sum::{Sum as Arguments, SumFormat};
use crate::group::Group;
use crate::launched::Launched;
use crate::output::stream::{Inode, Stream};
use crate::{conclusion, output};

/// Files of a piece.
const PIECE_FILES: usize = 64;
/// Between two looks at what has come, when there was nothing.
const PAUSE: Duration = Duration::from_micros(100);

/// What a process found out about a piece.
type Done = Option<(u64, Vec<Summed>)>;

/// Reads together with the others.
pub fn run(arguments: &Arguments, cancel: CancelToken, launched: &Launched) -> ExitCode {
    let mut group = match Group::join(launched) {
        Ok((group, _)) => group,
        Err(code) => return code,
    };
    let stream = match begin(arguments, &group) {
        Ok(stream) => stream,
        Err(error) if group.is_first() => {
            let wants_json = arguments.format() == SumFormat::Json;
            return output::cannot_begin(error.into(), wants_json);
        }
        Err(_) => return output::exit(conclusion::FAILED),
    };
    // The file that is written is read by nobody.
    let inodes = stream.iter().flat_map(|stream| stream.inodes());
    let mut said = message(&[&inodes.collect::<Vec<Inode>>()]);
    group.world.tell_all(&mut said);
    let left_out: Vec<Inode> = take(&mut said.as_slice()).unwrap_or_default();
    let Some(stream) = stream else {
        follow(arguments, cancel, left_out, &mut group.world);
        return output::exit(conclusion::DONE);
    };
    let mut session = Session::begin(arguments, cancel, stream);
    lead(&mut session, left_out, &mut group.world);
    output::exit(session.end())
}

/// Where the first process writes, once all find what is to be read as it does.
///
/// Errors: they do not, or it cannot write.
fn begin(arguments: &Arguments, group: &Group) -> Result<Option<Stream>, String> {
    let operands = arguments.operands().into_iter();
    let paths: Vec<Vec<u8>> = operands.map(|path| path.into_os_string().into_vec()).collect();
    group.look(&paths, None)?;
    let stream = group.is_first().then(|| open_stream(arguments)).transpose();
    group.agree(stream.as_ref().err().cloned())?;
    stream
}

/// Reads pieces until there are none: `results` takes what came of one, `pieces` gives the number of
/// the next.
fn read(
    arguments: &Arguments,
    cancel: CancelToken,
    left_out: Vec<Inode>,
    (results, pieces): (&Sender<Done>, &Receiver<Option<u64>>),
) {
    let mut items = items(arguments, left_out);
    let (mut at, mut done) = (0, None);
    loop {
        let _nobody_wants_it = results.send(done.take());
        let Ok(Some(piece)) = pieces.recv() else { return };
        if let Some(skipped) = (piece - at).checked_sub(1) {
            let _others_read_them = items.nth((skipped + 1) as usize * PIECE_FILES - 1);
        }
        let mut found = Vec::with_capacity(PIECE_FILES);
        let files = items.by_ref().take(PIECE_FILES);
        in_threads(arguments.threads, cancel, files, |summed| {
            found.push(summed);
            ControlFlow::Continue(())
        });
        (at, done) = (piece + 1, Some((piece, found)));
    }
}

/// A process that is not the first one.
fn follow(arguments: &Arguments, cancel: CancelToken, left_out: Vec<Inode>, world: &mut World) {
    let mut silence = Silence::new(world.rank(), world.size(), monotonic_ns());
    let (numbers, pieces) = channel();
    let (results, found) = channel::<Done>();
    std::thread::scope(|scope| {
        scope.spawn(move || read(arguments, cancel, left_out, (&results, &pieces)));
        let mut is_over = false;
        while !is_over {
            while let Ok(done) = found.try_recv() {
                world.send(0, &packed(done));
            }
            if silence.is_due(monotonic_ns()) {
                world.send(0, &[BEAT]);
            }
            match world.receive() {
                None => pause(world, silence.who(monotonic_ns(), |_| false)),
                Some((from, answer)) => {
                    silence.heard(from, monotonic_ns());
                    let number: Option<u64> = take(&mut answer.as_slice());
                    is_over = number.is_none() && answer != [BEAT];
                    if answer != [BEAT] {
                        let _nobody_wants_it = numbers.send(number);
                    }
                }
            }
        }
    });
}

/// Nothing has come; ends all where one is gone.
fn pause(world: &World, gone: Option<usize>) {
    if let Some(rank) = gone {
        output::complain(&format!("process {rank} does not answer any more: given up"));
        world.abort(conclusion::FAILED);
    }
    flatout_sys::thread::sleep(PAUSE);
}

/// The first process: it gives out the pieces, and takes what came of them in order.
struct Lead<'w, N> {
    world: &'w mut World,
    own: Sender<Option<u64>>,
    names: N,
    /// Names of all that was given out, and what came of it.
    out: BTreeMap<u64, (Vec<OsString>, Option<Vec<Summed>>)>,
    next: u64,
    /// Who waits for a piece, and who has left.
    asking: VecDeque<usize>,
    left: BTreeSet<usize>,
    is_over: bool,
}

fn lead(session: &mut Session<'_>, left_out: Vec<Inode>, world: &mut World) {
    let (arguments, cancel) = (session.arguments, session.cancel);
    let (own, pieces) = channel();
    let (results, found) = channel::<Done>();
    let mut lead = Lead {
        world,
        own,
        names: items(arguments, left_out.clone()),
        out: BTreeMap::new(),
        next: 0,
        asking: VecDeque::new(),
        left: BTreeSet::new(),
        is_over: false,
    };
    let alone_from = std::thread::scope(|scope| {
        let left_out = left_out.clone();
        scope.spawn(move || read(arguments, cancel, left_out, (&results, &pieces)));
        lead.serve(session, &found)
    });
    if let Some(piece) = alone_from {
        output::complain("names changed while they were read: one process reads the rest");
        let items = items(arguments, left_out).skip(piece as usize * PIECE_FILES);
        super::read(session, items);
    }
}

impl<N: Iterator<Item = Yielded>> Lead<'_, N> {
    /// Serves all until all is read; returns the first piece of which another process has found other
    /// names.
    fn serve(&mut self, session: &mut Session<'_>, found: &Receiver<Done>) -> Option<u64> {
        let size = self.world.size();
        let mut alone_from = None;
        let mut silence = Silence::new(0, size, monotonic_ns());
        while self.left.len() < size {
            let mut is_quiet = true;
            while let Some((from, message)) = self.world.receive() {
                silence.heard(from, monotonic_ns());
                is_quiet = false;
                if message == [BEAT] {
                    self.world.send(from, &[BEAT]);
                    continue;
                }
                self.take(from, unpacked(&message));
            }
            while let Ok(done) = found.try_recv() {
                self.take(0, done);
                is_quiet = false;
            }
            if !self.is_over {
                alone_from = self.write(session);
            }
            self.is_over |= alone_from.is_some() || session.is_over();
            self.give(2 * size);
            if is_quiet {
                pause(self.world, silence.who(monotonic_ns(), |rank| self.left.contains(&rank)));
            }
        }
        alone_from
    }

    fn take(&mut self, from: usize, done: Done) {
        if let Some((piece, found)) = done
            && let Some((_, result)) = self.out.get_mut(&piece)
        {
            *result = Some(found);
        }
        self.asking.push_back(from);
    }

    /// Writes what comes next, as far as it is there.
    fn write(&mut self, session: &mut Session<'_>) -> Option<u64> {
        while let Some(entry) = self.out.first_entry() {
            let (names, Some(found)) = entry.get() else { return None };
            if !found.iter().map(|summed| &summed.shown).eq(names) && !session.is_over() {
                return Some(*entry.key());
            }
            let (_, found) = entry.remove();
            for summed in found.into_iter().flatten() {
                if session.digested(summed).is_break() {
                    self.is_over = true;
                    return None;
                }
            }
        }
        None
    }

    /// Gives pieces to those that wait, or lets them go when there are none. So many may be out at most.
    fn give(&mut self, most_out: usize) {
        while !self.asking.is_empty() && (self.is_over || self.out.len() < most_out) {
            let names: Vec<OsString> = match self.is_over {
                true => Vec::new(),
                false => self.names.by_ref().take(PIECE_FILES).map(shown).collect(),
            };
            let Some(to) = self.asking.pop_front() else { return };
            let number = (!names.is_empty()).then_some(self.next);
            match to {
                0 => drop(self.own.send(number)),
                to => {
                    let message = number.map(u64::to_le_bytes);
                    self.world.send(to, message.as_ref().map_or(&[OVER], |number| number));
                }
            }
            match number {
                None => _ = self.left.insert(to),
                Some(number) => {
                    self.out.insert(number, (names, None));
                    self.next += 1;
                }
            }
        }
    }
}

/// The answer to one that may leave.
const OVER: u8 = 0;
/// One is still there, and so is the first one.
const BEAT: u8 = 1;

fn shown(item: Yielded) -> OsString {
    match item {
        Ok(item) => item.shown,
        Err((shown, _)) => shown,
    }
}

/// What came of a piece, as a message.
fn packed(done: Done) -> Vec<u8> {
    done.map_or_else(Vec::new, |done| message(&[&done]))
}

/// What [`packed`] made.
fn unpacked(mut message: &[u8]) -> Done {
    take(&mut message)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::ffi::OsStringExt;

    use flatout_io::digest::{Algorithm, Digest};
    use flatout_tree::sum::{Failure, Found};

    use super::*;

    #[test]
    fn what_was_found_arrives_as_it_was_sent() {
        let shown = || OsString::from_vec(b"a\xff\n".to_vec());
        let digest = Digest::new(Algorithm::Xxh3, &[7; 16]);
        let found = Found { digest, matches: true, length_bytes: 9, elapsed_ns: 8 };
        let source = io::Error::from_raw_os_error(13);
        let results = [
            Ok(found),
            Err(Failure::System {
                operation: "open",
                shown: shown(),
                source: io::Error::from_raw_os_error(2),
            }),
            Err(Failure::System { operation: "open", shown: shown(), source }),
            Err(Failure::System {
                operation: "look up",
                shown: shown(),
                source: io::ErrorKind::Other.into(),
            }),
            Err(Failure::Changed { shown: shown() }),
            Err(Failure::Interrupted),
        ];
        let sent: Vec<Summed> =
            results.into_iter().map(|result| Summed { shown: shown(), result }).collect();
        let text = |summed: &Summed| match &summed.result {
            Ok(found) => format!("{:?} {found:?}", summed.shown),
            Err(failure) => format!("{:?} {failure}", summed.shown),
        };
        let expected: Vec<String> = sent.iter().map(text).collect();
        let message = packed(Some((3, sent)));
        let (piece, came) = unpacked(&message).unwrap();
        let came: Vec<String> = came.iter().map(text).collect();
        assert_eq!((piece, &came[..3], &came[4..]), (3, &expected[..3], &expected[4..]));
        assert!(came[3].contains("cannot look up"), "{}", came[3]);
        assert!(unpacked(&packed(None)).is_none());
        assert!(unpacked(&message[..message.len() - 1]).is_none());
    }
}
