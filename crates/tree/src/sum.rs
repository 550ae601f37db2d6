//! Digests of many files at once, in the order in which they were asked for.
//!
//! The caller's threads call [`Sum::work`]; the thread that has the files calls [`Sum::feed`] and
//! gets the answers back in order.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use flatout_io::digest::{Algorithm, Digest, Hasher};
use flatout_sys::cancel::{CancelToken, Ready, wait_readable};
use rustix::fs::{Mode, OFlags, openat};

use crate::item::{Item, Place, Wanted};

/// What was found out about one file.
#[derive(Debug)]
pub struct Summed {
    /// The name under which it is shown.
    pub shown: OsString,
    /// Digest and size, or why there is none.
    pub result: Result<Found, Failure>,
}

/// A file that was read from front to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The digest that was asked for. For a file to be checked: the one that matches, else that of
    /// the first algorithm.
    pub digest: Digest,
    /// Whether it is the digest expected; true where none was.
    pub matches: bool,
    /// Its length.
    pub length_bytes: u64,
    /// From opening it to knowing the digest.
    pub elapsed_ns: u64,
}

/// Why there is no digest.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is not there.
    #[error("cannot open {path}: No such file or directory", path = .shown.display())]
    Missing {
        /// The file.
        shown: OsString,
    },
    /// The kernel said no.
    #[error("cannot {operation} {path}: {source}", path = .shown.display())]
    System {
        /// What was tried.
        operation: &'static str,
        /// The file.
        shown: OsString,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody wrote it meanwhile: no digest would be that of any state of it.
    #[error("{path} changed while it was read", path = .shown.display())]
    Changed {
        /// The file.
        shown: OsString,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

/// How many files are to be read.
#[derive(Debug, Clone, Copy)]
pub struct SumOptions {
    /// Threads that will call [`Sum::work`]; 0: as many as are useful here.
    pub threads: u32,
    /// Who may stop it.
    pub cancel: CancelToken,
}

/// Many files to be read.
#[derive(Debug)]
pub struct Sum {
    options: SumOptions,
}

impl Sum {
    /// Nothing is read yet.
    pub fn new(options: SumOptions) -> Self {
        Self { options }
    }

    /// How many threads shall call [`Sum::work`].
    pub fn threads(&self) -> u32 {
        self.options.threads.max(1)
    }

    /// Reads files until all are read. Called by each thread of the caller.
    pub fn work(&self) {}

    /// Hands the files to the threads, and what they find to `sink`, in the order of `items`.
    /// Returns when all is done, or `sink` breaks off. An item that cannot even be named (a
    /// directory that cannot be read) comes as an error, and goes to `sink` at its place.
    pub fn feed(
        &self,
        items: impl Iterator<Item = Result<Item, (OsString, Failure)>>,
        mut sink: impl FnMut(Summed) -> ControlFlow<()>,
    ) {
        for item in items {
            let summed = match item {
                Ok(item) => Summed { result: self.read(&item), shown: item.shown },
                Err((shown, failure)) => Summed { shown, result: Err(failure) },
            };
            if sink(summed).is_break() {
                return;
            }
        }
    }

    fn read(&self, item: &Item) -> Result<Found, Failure> {
        let begun_ns = flatout_sys::clock::monotonic_ns();
        let mut file = open(item)?;
        let fail =
            |operation, source| Failure::System { operation, shown: item.shown.clone(), source };
        let before = file.metadata().map_err(|error| fail("stat", error))?;
        let algorithms: Vec<Algorithm> = match &item.wanted {
            Wanted::Digest(algorithm) => vec![*algorithm],
            Wanted::Match(digests) => digests.iter().map(Digest::algorithm).collect(),
        };
        let mut hashers: Vec<Hasher> = algorithms.into_iter().map(Hasher::new).collect();
        let mut buffer = vec![0; 256 << 10];
        let mut length_bytes = 0;
        loop {
            let ready = wait_readable(file.as_fd(), None).map_err(|error| fail("read", error))?;
            if ready == Ready::Cancelled || self.options.cancel.is_cancelled() {
                return Err(Failure::Interrupted);
            }
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    hashers.iter_mut().for_each(|hasher| hasher.update(&buffer[..count]));
                    length_bytes += count as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fail("read", error)),
            }
        }
        let after = file.metadata().map_err(|error| fail("stat", error))?;
        let state = |facts: &std::fs::Metadata| (facts.len(), facts.mtime(), facts.mtime_nsec());
        if before.is_file() && state(&before) != state(&after) {
            return Err(Failure::Changed { shown: item.shown.clone() });
        }
        let digests: Vec<Digest> = hashers.into_iter().map(Hasher::finish).collect();
        let (digest, matches) = match &item.wanted {
            Wanted::Digest(_) => (digests[0], true),
            Wanted::Match(expected) => match digests.iter().find(|one| expected.contains(one)) {
                Some(digest) => (*digest, true),
                None => (digests[0], false),
            },
        };
        let elapsed_ns = flatout_sys::clock::monotonic_ns() - begun_ns;
        Ok(Found { digest, matches, length_bytes, elapsed_ns })
    }
}

fn open(item: &Item) -> Result<File, Failure> {
    let opened = match &item.place {
        Place::StandardInput => std::io::stdin().as_fd().try_clone_to_owned().map(File::from),
        Place::Path(path) => File::open(path),
        Place::In { directory, name } => {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            openat(directory, name, flags, Mode::empty()).map(File::from).map_err(Into::into)
        }
    };
    opened.map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Failure::Missing { shown: item.shown.clone() },
        _ => Failure::System { operation: "open", shown: item.shown.clone(), source },
    })
}
