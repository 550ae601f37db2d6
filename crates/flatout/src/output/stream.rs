//! Results that are written as they come, in whole lines, with bounded memory.
//!
//! A file gets its name when it is complete, as in [`super::replace`]; devices and pipes are
//! written in place.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flatout_io::cause_text;
use flatout_sys::standard_output;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// Where the lines go.
pub struct Stream {
    out: Out,
    buffer: Vec<u8>,
    /// Somebody looks on: nothing is held back.
    is_watched: bool,
}

enum Out {
    Standard,
    InPlace { file: File, path: PathBuf },
    Beside { file: File, part: PathBuf, path: PathBuf },
}

/// Why nothing more can be written.
#[derive(Debug)]
pub enum Stopped {
    /// The reader has seen enough.
    Closed,
    /// The system said no.
    Failed(String),
}

/// Device and inode number of a file.
pub type Inode = (u64, u64);

impl Stream {
    /// A stream to this file, or to standard output.
    pub fn open(path: Option<&Path>) -> Result<Self, String> {
        let out = match path {
            None => Out::Standard,
            Some(path) => Self::open_file(path)
                .map_err(|error| format!("cannot write {path:?}: {}", cause_text(&error)))?,
        };
        let is_watched = matches!(out, Out::Standard) && io::stdout().is_terminal();
        Ok(Self { out, buffer: Vec::with_capacity(BUFFER_BYTES + 4096), is_watched })
    }

    fn open_file(path: &Path) -> io::Result<Out> {
        let path = path.to_owned();
        if super::is_special(&path) {
            return Ok(Out::InPlace { file: File::options().write(true).open(&path)?, path });
        }
        let part = super::part_of(&path).map_err(io::Error::other)?;
        Ok(Out::Beside { file: File::create_new(&part)?, part, path })
    }

    /// The regular files that are being written, or will be replaced: they are no input.
    pub fn inodes(&self) -> Vec<Inode> {
        let (open, replaced) = match &self.out {
            Out::Standard => (io::stdout().as_fd().try_clone_to_owned().map(File::from), None),
            Out::InPlace { file, .. } => (file.try_clone(), None),
            Out::Beside { file, path, .. } => (file.try_clone(), Some(path)),
        };
        let open = open.and_then(|file| file.metadata()).ok();
        let replaced = replaced.and_then(|path| std::fs::metadata(path).ok());
        let regular = [open, replaced].into_iter().flatten().filter(|facts| facts.is_file());
        regular.map(|facts| (facts.dev(), facts.ino())).collect()
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
        let (result, name) = match &mut self.out {
            Out::Standard => (standard_output::write_all(&self.buffer), None),
            Out::InPlace { file, path } | Out::Beside { file, path, .. } => {
                (file.write_all(&self.buffer), Some(path))
            }
        };
        self.buffer.clear();
        result.map_err(|error| match (error.kind(), name) {
            (io::ErrorKind::BrokenPipe, _) => Stopped::Closed,
            (_, None) => Stopped::Failed(super::unwritten(error)),
            (_, Some(path)) => {
                Stopped::Failed(format!("cannot write {path:?}: {}", cause_text(&error)))
            }
        })
    }

    /// Writes what is left and gives a file its name.
    pub fn finish(mut self) -> Result<(), Stopped> {
        if let Err(stopped) = self.flush() {
            self.discard();
            return Err(stopped);
        }
        let Out::Beside { part, path, .. } = &self.out else { return Ok(()) };
        std::fs::rename(part, path).map_err(|error| {
            let text = format!("cannot write {path:?}: {}", cause_text(&error));
            self.discard();
            Stopped::Failed(text)
        })
    }

    /// Leaves a file as it was; returns whether it is one. What went elsewhere is gone.
    pub fn discard(&self) -> bool {
        let Out::Beside { part, .. } = &self.out else { return false };
        // The part is ours alone; what cannot be removed does no harm.
        let _ = std::fs::remove_file(part);
        true
    }
}
