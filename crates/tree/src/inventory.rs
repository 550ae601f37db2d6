//! An inventory: a line for each entry of a tree, with all of it that should stay as it is.
//!
//! The format is that of mtree(5), with full paths, and keywords of its own for digests. Names are
//! bytes: whatever is no printable ASCII is an octal escape, so that a line is one entry. Pure but
//! for [`Record::of`] and [`Record::read`], which look at an entry.
//!
//! ```text
//! #mtree flatout 1
//! #trusted
//! #root ./copy
//! ./copy/file type=file uid=0 gid=0 mode=0644 time=1.000000002 size=5 blake3=HEX xattrs=HEX
//! ./copy/two type=file uid=0 gid=0 … trusted=HEX chattr=ad resdevice=linux,8,1 inode=77
//! ./copy/link type=link uid=0 gid=0 mode=0777 time=1.000000002 link=text
//! #end 2
//! ```

mod line;
mod replaced;

use std::ffi::{CStr, CString, OsString};
use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use flatout_io::digest::{Algorithm, Digest, Hasher};
use flatout_io::transfer::read_full;
use flatout_sys::cancel::CancelToken;
use rustix::fs::{FileType, Stat};

use crate::copy::attributes::{Node, Place, all_flags_of, digests_of, flag_letters};
use crate::file_data::{self, kind_of};

pub use line::{FIRST, Line, TRUSTED, append_root, parse, plain};
pub use replaced::LastLines;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;
const MODE_BITS: u32 = 0o7777;

/// Shows something of an entry.
type Say = fn(&Record) -> String;

/// An entry, as it is or should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its path, without what means nothing in one.
    pub name: OsString,
    kind: FileType,
    owner: (u32, u32),
    mode: u32,
    time: (i64, u64),
    length_bytes: u64,
    /// Of the bytes of a file; of others, and where it was not asked for: none.
    pub digest: Option<Digest>,
    /// Of its extended attributes and lists, if it has any.
    attributes: Option<Digest>,
    /// Of those that only root sees (`trusted.*`).
    pub trusted: Option<Digest>,
    /// Flags of chattr(1) that copies can keep; `None`: they are not known.
    flags: Option<u32>,
    /// Device and inode of what is no directory and has, or may get, other names.
    pub identity: Option<(u64, u64)>,
    /// Where a symlink points.
    text: Option<Vec<u8>>,
    /// The device that it stands for.
    device: Option<(u32, u32)>,
}

impl Record {
    /// Looks at an entry without opening it. Its bytes are not read.
    ///
    /// Cost: three calls, one for each extended attribute, and of files and directories three for
    /// their flags.
    /// Errors: those of the kernel.
    pub fn of(node: Node<'_>, path: &[u8]) -> io::Result<(Self, Stat)> {
        let facts = node.stat()?;
        let kind = kind_of(facts);
        let text = match (kind, node) {
            (FileType::Symlink, Node::Named(Place { directory, name })) => {
                Some(rustix::fs::readlinkat(directory, name, Vec::new())?)
            }
            _ => None,
        };
        let is_device = matches!(kind, FileType::BlockDevice | FileType::CharacterDevice);
        let device = || (rustix::fs::major(facts.st_rdev), rustix::fs::minor(facts.st_rdev));
        let [attributes, trusted] = digests_of(node)?;
        let has_flags = kind.is_file() || kind.is_dir();
        let has_names = facts.st_nlink > 1 && !kind.is_dir();
        let record = Self {
            name: OsString::from_vec(plain(path)),
            kind,
            owner: (facts.st_uid, facts.st_gid),
            mode: facts.st_mode & MODE_BITS,
            time: (facts.st_mtime as _, facts.st_mtime_nsec as _),
            length_bytes: if kind.is_file() { facts.st_size as u64 } else { 0 },
            digest: None,
            attributes,
            trusted,
            flags: if has_flags { all_flags_of(node)? } else { Some(0) },
            identity: has_names.then_some((facts.st_dev, facts.st_ino)),
            text: text.map(CString::into_bytes),
            device: is_device.then(device),
        };
        Ok((record, facts))
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind.is_file()
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind.is_dir()
    }

    /// The digest of the bytes that the file has, which must be what was looked at.
    ///
    /// Errors: those of the kernel; it is another one by now; interrupted.
    pub fn read(
        &self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        cancel: CancelToken,
    ) -> io::Result<Digest> {
        let file = file_data::open(directory, name)?;
        let mut hasher = Hasher::new(Algorithm::Blake3);
        let mut buffer = vec![0; BUFFER_BYTES.min(self.length_bytes as usize + 1)];
        let mut length_bytes = 0;
        loop {
            if cancel.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let got = read_full(file.as_fd(), &mut buffer, length_bytes)?;
            hasher.update(&buffer[..got]);
            length_bytes += got as u64;
            if got < buffer.len() {
                break;
            }
        }
        let facts = rustix::fs::fstat(&file)?;
        let time = (facts.st_mtime as i64, facts.st_mtime_nsec as u64);
        if length_bytes != self.length_bytes || time != self.time {
            return Err(io::Error::other("it changes while it is read"));
        }
        Ok(hasher.finish())
    }

    /// What is otherwise than it should be, in words; the bytes of a file are not among it, but its
    /// length is.
    pub fn differences(&self, found: &Self) -> Vec<String> {
        let mut all = Vec::new();
        if self.kind != found.kind {
            let words = [found, self].map(|one| line::kind_word(one.kind));
            return vec![format!("{} instead of {}", words[0], words[1])];
        }
        let facts: [(&str, Say); 6] = [
            ("mode", |it| format!("{:04o}", it.mode)),
            ("owner", |it| format!("{}:{}", it.owner.0, it.owner.1)),
            ("time", |it| format!("{}.{:09}", it.time.0, it.time.1)),
            ("size", |it| it.length_bytes.to_string()),
            ("link", |it| {
                it.text.clone().map(OsString::from_vec).map(flatout_io::quote).unwrap_or_default()
            }),
            ("device", |it| {
                it.device.map(|(major, minor)| format!("{major}:{minor}")).unwrap_or_default()
            }),
        ];
        for (what, say) in facts {
            let [found, wanted] = [found, self].map(say);
            if found != wanted {
                all.push(format!("{what} {found} instead of {wanted}"));
            }
        }
        if self.attributes != found.attributes {
            all.push("other extended attributes or lists".to_owned());
        }
        if self.trusted != found.trusted {
            all.push("other trusted attributes".to_owned());
        }
        if let (Some(wanted), Some(flags)) = (self.flags, found.flags)
            && wanted != flags
        {
            let [flags, wanted] = [flags, wanted].map(flag_letters);
            all.push(format!("flags {flags:?} instead of {wanted:?}"));
        }
        all
    }

    /// Appends its line.
    pub fn append(&self, line: &mut Vec<u8>) {
        line::escape(self.name.as_bytes(), line);
        let mut words = format!(
            " type={} uid={} gid={} mode={:04o} time={}.{:09}",
            line::kind_word(self.kind),
            self.owner.0,
            self.owner.1,
            self.mode,
            self.time.0,
            self.time.1
        );
        // Writing to a string does not fail.
        let mut more = |text: std::fmt::Arguments<'_>| {
            let _never = words.write_fmt(text);
        };
        if self.is_file() {
            more(format_args!(" size={}", self.length_bytes));
        }
        if let Some(digest) = &self.digest {
            more(format_args!(" blake3={digest}"));
        }
        if let Some((major, minor)) = self.device {
            more(format_args!(" device=linux,{major},{minor}"));
        }
        if let Some(digest) = &self.attributes {
            more(format_args!(" xattrs={digest}"));
        }
        if let Some(digest) = &self.trusted {
            more(format_args!(" trusted={digest}"));
        }
        if let Some(flags) = self.flags.filter(|&flags| flags != 0) {
            more(format_args!(" chattr={}", flag_letters(flags)));
        }
        if let Some((device, inode)) = self.identity {
            let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
            more(format_args!(" resdevice=linux,{major},{minor} inode={inode}"));
        }
        line.extend_from_slice(words.as_bytes());
        if let Some(text) = &self.text {
            line.extend_from_slice(b" link=");
            line::escape_text(text, line);
        }
        line.push(b'\n');
    }
}

/// A number that stands for a name: half of a digest of 256 bits would say no more.
pub fn key(name: &[u8]) -> u128 {
    let mut hasher = Hasher::new(Algorithm::Xxh3);
    hasher.update(name);
    let digest = hasher.finish();
    digest.as_bytes().iter().fold(0, |key, &byte| key << 8 | u128::from(byte))
}

/// Whether this process is shown attributes of the class trusted: it needs CAP_SYS_ADMIN (bit 21)
/// where users are numbered as the kernel numbers them (xattr(7), user_namespaces(7)).
pub fn sees_trusted() -> bool {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let status = read("/proc/self/status");
    let granted = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let granted = granted.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    let map = read("/proc/self/uid_map");
    granted >> 21 & 1 == 1 && map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests;
