//! `flatout sum --check` of what `flatout copy --manifest` listed: bytes and kinds, and with
//! `--strict` all else that is listed, and that there is nothing else.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, BufRead, Read};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use flatout_io::cause_text;
use flatout_tree::copy::attributes::{self, Node};
use flatout_tree::inventory::{self, Line, Record, key};
use flatout_tree::item::{Item, Place, Wanted};
use flatout_tree::manifest::MAX_LINE_BYTES;
use flatout_tree::sum::Summed;
use flatout_tree::visit::visit;
use flatout_tree::walk::{Yielded, place_of};
use rustix::fs::{CWD, Stat};

use super::in_threads;
use super::session::{Judged, Session};
use crate::conclusion::FAILED;
use crate::output;

/// What is known so far.
#[derive(Default)]
struct State {
    lines: u64,
    entries: u64,
    /// As the last line has it.
    end: Option<u64>,
    roots: Vec<OsString>,
    /// With `--strict`, entries that lie in none of them.
    stray: u64,
    /// With `--strict`, the names of all entries: 16 bytes of a digest for each.
    listed: HashSet<u128>,
    /// With `--strict`, which names are one file.
    names: Names,
    /// Attributes that only root sees are listed, and how often some were not looked at.
    lists_trusted: bool,
    unseen: u64,
    /// Files of which something was said already.
    spoiled: HashSet<OsString>,
    is_cut: bool,
}

/// Which names are one file: as listed, and now.
#[derive(Default)]
struct Names {
    /// What was found under the first name of each file that is listed with several.
    listed: HashMap<(u64, u64), (u64, u64)>,
    /// As what each file was listed that has several names now.
    found: HashMap<(u64, u64), (u64, u128)>,
}

impl Names {
    /// What is wrong about the file that bears a name.
    fn difference(&mut self, record: &Record, facts: &Stat) -> Option<&'static str> {
        let found = (facts.st_dev, facts.st_ino);
        if record.is_directory() || record.identity.is_none() && facts.st_nlink == 1 {
            return None;
        }
        if let Some(listed) = record.identity
            && *self.listed.entry(listed).or_insert(found) != found
        {
            return Some("another file than its other names");
        }
        let group = match record.identity {
            Some((device, inode)) => (device, u128::from(inode)),
            // No device has this number.
            None => (u64::MAX, key(record.name.as_bytes())),
        };
        let known = *self.found.entry(found).or_insert(group);
        (known != group).then_some("another name of a file that is listed apart from it")
    }
}

struct Check<'a, 'b> {
    session: RefCell<Session<'b>>,
    state: RefCell<State>,
    path: &'a Path,
    is_strict: bool,
    sees_trusted: bool,
}

/// Checks a tree, and reads the bytes of its files.
pub fn check<'b>(session: Session<'b>, path: &Path, mut input: impl BufRead) -> Session<'b> {
    let (threads, cancel) = (session.arguments.threads, session.cancel);
    let is_strict = session.arguments.strict;
    let check = Check {
        session: RefCell::new(session),
        state: RefCell::default(),
        path,
        is_strict,
        sees_trusted: inventory::sees_trusted(),
    };
    let mut line = Vec::new();
    let items = std::iter::from_fn(|| {
        let goes_on = !check.session.borrow().is_over() && check.read(&mut input, &mut line);
        goes_on.then(|| check.item(&line))
    });
    let items = items.flatten();
    in_threads(threads, cancel, items, |summed| check.found(summed));
    if !check.session.borrow().is_over() {
        check.conclude();
    }
    check.session.into_inner()
}

impl Check<'_, '_> {
    fn read(&self, input: &mut impl BufRead, line: &mut Vec<u8>) -> bool {
        line.clear();
        match input.take(MAX_LINE_BYTES as u64).read_until(b'\n', line) {
            Ok(0) => false,
            Ok(_) => {
                self.state.borrow_mut().lines += 1;
                // The last line of a file that was cut is none.
                if line.pop() != Some(b'\n') {
                    line.clear();
                    self.state.borrow_mut().is_cut = true;
                }
                true
            }
            Err(error) => {
                self.state.borrow_mut().is_cut = true;
                self.session.borrow_mut().cannot("read", self.path, &error);
                false
            }
        }
    }

    /// Takes in a line; a file whose bytes are to be read.
    fn item(&self, line: &[u8]) -> Option<Yielded> {
        let mut state = self.state.borrow_mut();
        match inventory::parse(line) {
            None => {
                let text =
                    format!("{:?}: line {} is not one of a manifest", self.path, state.lines);
                self.session.borrow_mut().fail(FAILED, text);
                None
            }
            Some(Line::Comment) => None,
            Some(Line::Trusted) => {
                state.lists_trusted = true;
                None
            }
            Some(Line::Root(name)) => {
                state.roots.push(name);
                None
            }
            Some(Line::End(count)) => {
                state.end = Some(count);
                None
            }
            Some(Line::Entry(record)) => {
                state.entries += 1;
                if self.is_strict {
                    state.listed.insert(key(record.name.as_bytes()));
                    let path = Path::new(&record.name);
                    let is_in = state.roots.iter().any(|root| is_in_tree(path, root));
                    state.stray += u64::from(!is_in);
                }
                drop(state);
                self.entry(*record)
            }
        }
    }

    /// Looks at an entry.
    fn entry(&self, mut record: Record) -> Option<Yielded> {
        let path = PathBuf::from(&record.name);
        let place = place_of(&path);
        // What the user named may be a symlink to a directory.
        let is_root = record.is_directory() && self.state.borrow().roots.contains(&record.name);
        let (mut found, facts) =
            match look(&place, record.name.as_bytes(), is_root.then_some(c"/.")) {
                Ok(found) => found,
                Err(error) if is_gone(&error) && record.is_file() && record.digest.is_some() => {
                    return item(place, record);
                }
                Err(error) => {
                    let mut session = self.session.borrow_mut();
                    if is_gone(&error) {
                        session.account.missing += 1;
                        if session.arguments.ignore_missing {
                            return None;
                        }
                    }
                    let _stopped = session.wrong(&record.name, &cause_text(&error));
                    return None;
                }
            };
        if !self.sees_trusted || !self.state.borrow().lists_trusted {
            self.state.borrow_mut().unseen += u64::from(record.trusted.is_some());
            (record.trusted, found.trusted) = (None, None);
        }
        let mut differences = record.differences(&found);
        if self.is_strict {
            let is_other = self.state.borrow_mut().names.difference(&record, &facts);
            differences.extend(is_other.map(str::to_owned));
        }
        let is_other = record.is_file() != found.is_file();
        if !self.is_strict && !is_other {
            differences.retain(|what| what.contains(" instead of ") && is_kind_or_text(what));
        }
        let is_right = differences.is_empty();
        let mut session = self.session.borrow_mut();
        if !is_right {
            let _stopped = session.wrong(&record.name, &differences.join(", "));
        }
        match record.digest {
            Some(_) if record.is_file() && found.is_file() => {
                if !is_right {
                    self.state.borrow_mut().spoiled.insert(record.name.clone());
                }
                item(place, record)
            }
            _ => {
                if is_right {
                    let _stopped = session.right(&record.name);
                }
                None
            }
        }
    }

    /// Takes in what was found of the bytes of a file.
    fn found(&self, summed: Summed) -> ControlFlow<()> {
        let mut session = self.session.borrow_mut();
        let is_spoiled = self.state.borrow_mut().spoiled.remove(&summed.shown);
        match session.judged(&summed)? {
            Judged::Matches(_) if !is_spoiled => session.right(&summed.shown),
            Judged::Differs => session.tell_wrong(&summed.shown, "other bytes"),
            Judged::Failed => session.tell(&summed.shown, "FAILED open or read"),
            Judged::Matches(_) | Judged::LeftOut => ControlFlow::Continue(()),
        }
    }

    fn conclude(&self) {
        let state = self.state.borrow();
        let mut session = self.session.borrow_mut();
        match state.end {
            Some(count) if count == state.entries => {}
            Some(count) => {
                let text = format!("{:?} has {} of {count} entries", self.path, state.entries);
                session.fail(FAILED, text);
            }
            None => {
                let text = "has no end: it is cut, or not everything was copied";
                session.fail(FAILED, format!("{:?} {text}", self.path));
            }
        }
        if !self.is_strict {
            return;
        }
        if state.stray > 0 {
            let text =
                "entries that lie in no tree of a #root line: what else lies there is not known";
            session.fail(FAILED, format!("{:?} has {} {text}", self.path, state.stray));
        }
        if state.unseen > 0 {
            let text = "attributes that only root sees (trusted.*) were not compared: entries with";
            output::complain(&format!("{:?}: {text} such: {}", self.path, state.unseen));
        }
        for root in &state.roots {
            let is_directory = std::fs::metadata(root).is_ok_and(|facts| facts.is_dir());
            if !is_directory || session.is_over() {
                continue;
            }
            let visited = visit(Path::new(root), |entry| {
                if session.is_over() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let parts = [root.as_bytes(), entry.above, entry.name.to_bytes()];
                let name = inventory::plain(&parts.join(&b'/'));
                if state.listed.contains(&key(&name)) {
                    return Ok(());
                }
                match session.wrong(&OsString::from_vec(name), "it is not listed") {
                    ControlFlow::Continue(()) => Ok(()),
                    ControlFlow::Break(()) => Err(io::ErrorKind::Interrupted.into()),
                }
            });
            if let Err(error) = visited {
                session.cannot("list", Path::new(root), &error);
            }
        }
    }
}

/// A file whose bytes are to be read.
fn item(place: Place, record: Record) -> Option<Yielded> {
    let wanted = Wanted::Match(record.digest.into_iter().collect());
    Some(Ok(Item { place, shown: record.name, wanted }))
}

fn look(place: &Place, path: &[u8], end: Option<&CStr>) -> io::Result<(Record, Stat)> {
    let (directory, name) = match place {
        Place::In { directory, name } => (directory.as_fd(), name.as_bytes()),
        _ => (CWD, path),
    };
    let end = end.unwrap_or_default().to_bytes();
    let name = &*CString::new([name, end].concat())?;
    let node = Node::Named(attributes::Place { directory, name });
    Record::of(node, path)
}

/// Whether a path is that of a tree, or of something in it.
fn is_in_tree(path: &Path, root: &OsStr) -> bool {
    root == "." && path.is_relative() || path.starts_with(root)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a difference is one of what an entry is, and not of its attributes.
fn is_kind_or_text(what: &str) -> bool {
    !["mode ", "owner ", "time ", "size ", "flags "].iter().any(|word| what.starts_with(word))
}
