//! Results that are written as they come, in whole lines, with bounded memory.
//!
//! A file gets its name when it is complete, as in [`Place::write`]; devices and pipes are
//! written in place.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use flatout_sys::standard;
use rustix::fs::{FileType, Stat};

use super::place::{Place, identity};

pub use super::place::Identity as Inode;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// Where the lines go.
pub struct Stream {
    /// None: to standard output.
    into: Option<Target>,
    buffer: Vec<u8>,
    /// Somebody looks on: nothing is held back.
    is_watched: bool,
}

/// A file, with the name under which it is written until it is complete.
struct Target {
    file: File,
    part: Option<OsString>,
    place: Place,
}

/// Why nothing more can be written.
pub enum Stopped {
    /// The reader has seen enough.
    Closed,
    /// The system said no.
    Failed(String),
}

impl Stream {
    /// A stream to this file, or to standard output.
    pub fn open(path: Option<&Path>) -> Result<Self, String> {
        let begun = |path| {
            let place = Place::find(path)?;
            let (file, part) = place.begin()?;
            Ok::<_, String>(Target { file, part, place })
        };
        let into = path.map(begun).transpose()?;
        let is_watched = into.is_none() && io::stdout().is_terminal();
        Ok(Self { into, buffer: Vec::with_capacity(BUFFER_BYTES + 4096), is_watched })
    }

    /// The regular files that are being written, or will be replaced: they are no input.
    pub fn inodes(&self) -> Vec<Inode> {
        let (open, replaced) = match &self.into {
            None => (rustix::fs::fstat(io::stdout()), None),
            Some(Target { file, place, .. }) => (rustix::fs::fstat(file), place.existing()),
        };
        let is_file = |facts: &Stat| FileType::from_raw_mode(facts.st_mode).is_file();
        let open = open.ok().filter(is_file).map(|facts| identity(&facts));
        open.into_iter().chain(replaced.map(|(replaced, _)| replaced)).collect()
    }

    /// Takes whole lines.
    pub fn write(&mut self, lines: &[u8]) -> Result<(), Stopped> {
        self.buffer.extend_from_slice(lines);
        if self.is_watched || self.buffer.len() >= BUFFER_BYTES {
            return self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        let (result, place) = match &mut self.into {
            None => (standard::write_all(&self.buffer), None),
            Some(Target { file, place, .. }) => (file.write_all(&self.buffer), Some(place)),
        };
        self.buffer.clear();
        result.map_err(|error| match (error.kind(), place) {
            (io::ErrorKind::BrokenPipe, _) => Stopped::Closed,
            (_, None) => Stopped::Failed(super::unwritten(error)),
            (_, Some(place)) => Stopped::Failed(place.failure(&error)),
        })
    }

    /// Writes what is left, hears what the filesystem says to all of it, and gives a file its name.
    pub fn finish(mut self) -> Result<(), Stopped> {
        let flushed = self.flush();
        let Some(Target { file, part, place }) = self.into else {
            flushed?;
            return standard::settle().map_err(|error| Stopped::Failed(super::unwritten(error)));
        };
        let ended = flushed.and_then(|()| {
            let completed = place.complete(file, part.as_deref());
            completed.map_err(|error| Stopped::Failed(place.failure(&error)))
        });
        ended.inspect_err(|_| part.iter().for_each(|part| place.abandon(part)))
    }

    /// Leaves a file as it was; returns whether it is one. What went elsewhere is gone.
    pub fn discard(&self) -> bool {
        let Some(Target { part: Some(part), place, .. }) = &self.into else { return false };
        place.abandon(part);
        true
    }
}
