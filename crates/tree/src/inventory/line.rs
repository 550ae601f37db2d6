//! Lines of an inventory, read and written.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use flatout_io::digest::Algorithm;
use rustix::fs::FileType;

use super::Record;
use crate::copy::attributes::flags_of_letters;
use crate::manifest::digest_of_digits;

/// How an inventory begins.
pub const FIRST: &[u8] = b"#mtree flatout 1\n";

/// Attributes of the class trusted are listed, too: who listed them could see them.
pub const TRUSTED: &[u8] = b"#trusted\n";

const KINDS: [(FileType, &str); 7] = [
    (FileType::RegularFile, "file"),
    (FileType::Directory, "dir"),
    (FileType::Symlink, "link"),
    (FileType::Fifo, "fifo"),
    (FileType::Socket, "socket"),
    (FileType::CharacterDevice, "char"),
    (FileType::BlockDevice, "block"),
];

/// What each line of an entry says.
const ALWAYS: [&[u8]; 4] = [b"uid=", b"gid=", b"mode=", b"time="];

pub(super) fn kind_word(kind: FileType) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("unknown", |(_, word)| word)
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A tree whose entries are all listed.
    Root(OsString),
    /// An entry.
    Entry(Box<Record>),
    /// Attributes of the class trusted are listed, too.
    Trusted,
    /// The end, and how many entries there are.
    End(u64),
    /// Nothing.
    Comment,
}

/// Appends the line of a tree that is listed as a whole.
pub fn append_root(name: &OsStr, line: &mut Vec<u8>) {
    line.extend_from_slice(b"#root ");
    escape(&plain(name.as_bytes()), line);
    line.push(b'\n');
}

/// Reads a line without its end; `None`: it says nothing that is known.
pub fn parse(line: &[u8]) -> Option<Line> {
    if let Some(name) = line.strip_prefix(b"#root ") {
        return unescape(name).map(|name| Line::Root(named(&name)));
    }
    if let Some(count) = line.strip_prefix(b"#end ") {
        return Some(Line::End(number(count)?));
    }
    if line == &TRUSTED[..TRUSTED.len() - 1] {
        return Some(Line::Trusted);
    }
    if line.is_empty() || line[0] == b'#' {
        return Some(Line::Comment);
    }
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let name = named(&unescape(words.next()?)?);
    let has = |key: &[u8]| words.clone().any(|word| word.starts_with(key));
    if !ALWAYS.into_iter().all(has) {
        return None;
    }
    let mut record = Record {
        name,
        kind: FileType::Unknown,
        owner: (0, 0),
        mode: 0,
        time: (0, 0),
        length_bytes: 0,
        digest: None,
        attributes: None,
        trusted: None,
        flags: Some(0),
        identity: None,
        text: None,
        device: None,
    };
    for word in words {
        set(&mut record, word)?;
    }
    is_whole(&record).then(|| Line::Entry(Box::new(record)))
}

/// Whether a line says what makes an entry what it is: without it everything would be right.
fn is_whole(record: &Record) -> bool {
    match record.kind {
        FileType::RegularFile => record.digest.is_some(),
        FileType::Symlink => record.text.is_some(),
        FileType::CharacterDevice | FileType::BlockDevice => record.device.is_some(),
        FileType::Unknown => false,
        _ => true,
    }
}

fn set(record: &mut Record, word: &[u8]) -> Option<()> {
    let equals = word.iter().position(|&byte| byte == b'=')?;
    let (key, value) = (&word[..equals], &word[equals + 1..]);
    let blake3 = || digest_of_digits(Algorithm::Blake3, value);
    match key {
        b"type" => {
            let known = KINDS.iter().find(|(_, word)| word.as_bytes() == value)?;
            record.kind = known.0;
        }
        b"uid" => record.owner.0 = number(value)?,
        b"gid" => record.owner.1 = number(value)?,
        b"mode" => {
            let text = std::str::from_utf8(value).ok()?;
            record.mode = u32::from_str_radix(text, 8).ok()?;
        }
        b"time" => {
            let point = value.iter().position(|&byte| byte == b'.')?;
            record.time = (number(&value[..point])?, number(&value[point + 1..])?);
        }
        b"size" => record.length_bytes = number(value)?,
        b"blake3" => record.digest = Some(blake3()?),
        b"xattrs" => record.attributes = Some(blake3()?),
        b"trusted" => record.trusted = Some(blake3()?),
        b"chattr" => record.flags = Some(flags_of_letters(value)?),
        b"resdevice" => {
            let (major, minor) = device(value)?;
            record.identity = Some((rustix::fs::makedev(major, minor), 0));
        }
        b"inode" => record.identity.as_mut()?.1 = number(value)?,
        b"link" => record.text = Some(unescape(value)?),
        b"device" => record.device = Some(device(value)?),
        // Younger versions may say more.
        _ => {}
    }
    Some(())
}

fn device(text: &[u8]) -> Option<(u32, u32)> {
    let mut parts = text.split(|&byte| byte == b',').skip(1);
    Some((number(parts.next()?)?, number(parts.next()?)?))
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A path without what means nothing in one.
pub fn plain(path: &[u8]) -> Vec<u8> {
    let mut out = if path.starts_with(b"/") { vec![b'/'] } else { Vec::new() };
    for part in path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        crate::path::push(&mut out, part);
    }
    if out.is_empty() { vec![b'.'] } else { out }
}

fn named(name: &[u8]) -> OsString {
    OsString::from_vec(plain(name))
}

/// Appends a path. One that is relative begins with `./`: a name alone would be another kind of line
/// (mtree(5)).
pub(super) fn escape(name: &[u8], line: &mut Vec<u8>) {
    if !name.starts_with(b"/") && name != b"." {
        line.extend_from_slice(b"./");
    }
    escape_text(name, line);
}

pub(super) fn escape_text(text: &[u8], line: &mut Vec<u8>) {
    for &byte in text {
        if byte.is_ascii_graphic() && !b"\\#=".contains(&byte) {
            line.push(byte);
        } else {
            let digit = |shift: u8| b'0' + (byte >> shift & 7);
            line.extend_from_slice(&[b'\\', digit(6), digit(3), digit(0)]);
        }
    }
}

fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        if *first != b'\\' {
            out.push(*first);
            rest = after;
            continue;
        }
        let value = after.get(..3)?.iter().try_fold(0_u32, |value, digit| {
            (b'0'..=b'7').contains(digit).then(|| value * 8 + u32::from(digit - b'0'))
        })?;
        out.push(u8::try_from(value).ok().filter(|&byte| byte != 0)?);
        rest = &after[3..];
    }
    (!out.is_empty()).then_some(out)
}
