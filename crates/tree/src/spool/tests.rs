//! Tests of the spool and of the names in it.

use std::ffi::CString;
use std::process::Command;

use flatout_sys::launcher::{Resource, limit};
use rustix::fs::FileType;

use super::names::{Batch, Names};
use super::*;
use crate::copy::failure::Cause;

/// Set in a process whose files have a limit.
const LIMITED_FILES: &str = "FLATOUT_TEST_LIMITED_FILES";

/// Small, so that little goes to a file early.
const LITTLE_BYTES: usize = 64;

impl Spool {
    /// Bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tail.capacity()
    }

    /// Whether anything went to a file.
    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }
}

fn name(number: u64) -> CString {
    CString::new(format!("{number}{}", "x".repeat((number * 7 % 250) as usize))).unwrap()
}

fn filled(memory_bytes: usize, count: u64) -> Names {
    let mut names = Names::new(memory_bytes);
    for number in 0..count {
        names.push(&name(number), kind(number)).unwrap();
    }
    names
}

fn kind(number: u64) -> FileType {
    use FileType::*;
    let all =
        [RegularFile, Directory, Symlink, Fifo, Socket, CharacterDevice, BlockDevice, Unknown];
    all[(number % 8) as usize]
}

#[test]
fn bytes_are_found_again_in_memory_and_in_the_file() {
    for memory_bytes in [0, 1, 7, LITTLE_BYTES, 1 << 20] {
        let mut spool = Spool::new(memory_bytes);
        let mut all = Vec::new();
        for length in 0..100_u8 {
            let (one, other) = (vec![length; length.into()], [length; 3]);
            assert_eq!(spool.append(&[&one, &other]).unwrap(), all.len() as u64);
            all.extend_from_slice(&one);
            all.extend_from_slice(&other);
            assert!(spool.memory_bytes() <= memory_bytes);
        }
        assert_eq!(spool.length_bytes(), all.len() as u64);
        assert_eq!(spool.has_file(), memory_bytes < all.len());
        for offset in 0..all.len() {
            let mut found = [0; 50];
            let count = spool.read(offset as u64, &mut found).unwrap();
            let expected = &all[offset..all.len().min(offset + 50)];
            assert_eq!(&found[..count], expected, "{memory_bytes} {offset}");
        }
        assert_eq!(spool.read(u64::MAX, &mut [0; 4]).unwrap(), 0);
    }
}

#[test]
fn a_cut_spool_goes_on_where_it_was_cut() {
    for cut in [0, 1, 63, 64, 65, 150, 199, 200, 300] {
        let mut spool = Spool::new(LITTLE_BYTES);
        for _ in 0..20 {
            spool.append(&[b"0123456789"]).unwrap();
        }
        spool.cut(cut);
        let offset = spool.append(&[b"end"]).unwrap();
        assert_eq!(offset, cut.min(200));
        let mut found = vec![0; 300];
        let count = spool.read(0, &mut found).unwrap();
        let mut expected = b"0123456789".repeat(20);
        expected.truncate(cut as usize);
        expected.extend_from_slice(b"end");
        assert_eq!(&found[..count], expected, "{cut}");
    }
}

#[test]
fn names_come_from_the_back_in_pieces_and_all_of_them_once() {
    for memory_bytes in [LITTLE_BYTES, 10_000, 1 << 20] {
        let mut names = filled(memory_bytes, 3_000);
        let mut high = 3_000;
        while !names.is_empty() {
            let most = 1 + (high as usize * 31) % 900;
            let batch = names.take_back(most).unwrap();
            assert!((1..=most).contains(&batch.count()));
            high -= batch.count() as u64;
            for (number, (found, found_kind)) in (high..).zip(batch.iter()) {
                assert_eq!((found, found_kind), (name(number).as_c_str(), kind(number)));
            }
            assert_eq!(names.count(), high);
            assert!(names.spool.memory_bytes() <= memory_bytes);
        }
        assert_eq!(high, 0);
        assert!(names.take_back(1).unwrap().is_empty());
    }
}

#[test]
fn names_may_come_while_others_are_taken() {
    let mut names = filled(LITTLE_BYTES, 100);
    assert_eq!(names.take_back(25).unwrap().count(), 25);
    assert_eq!(names.take_back(15).unwrap().count(), 15);
    for number in 60..80 {
        names.push(&name(number), kind(number)).unwrap();
    }
    for number in (0..80).rev() {
        let batch = names.take_back(1).unwrap();
        assert_eq!(batch.iter().next(), Some((name(number).as_c_str(), kind(number))));
    }
    assert!(names.is_empty());
}

#[test]
fn the_longest_name_is_taken_and_a_longer_one_refused() {
    let longest = CString::new(vec![b'n'; 4095]).unwrap();
    let mut names = Names::new(LITTLE_BYTES);
    for _ in 0..4 {
        names.push(&longest, FileType::RegularFile).unwrap();
    }
    for _ in 0..4 {
        let batch = names.take_back(1).unwrap();
        assert_eq!(batch.iter().next(), Some((longest.as_c_str(), FileType::RegularFile)));
        assert_eq!(batch.count(), 1);
    }
    let longer = CString::new(vec![b'n'; 4096]).unwrap();
    assert!(names.push(&longer, FileType::RegularFile).is_err());
    assert!(Batch::default().push(&longer, FileType::RegularFile).is_err());
    assert!(names.is_empty());
}

#[test]
fn a_million_names_take_little_memory() {
    let mut names = Names::new(128 << 10);
    for number in 0..1_000_000 {
        names.push(&CString::new(format!("name-{number}")).unwrap(), FileType::Directory).unwrap();
    }
    assert!(names.spool.has_file() && names.spool.memory_bytes() <= 128 << 10);
    let mut seen = 0;
    while !names.is_empty() {
        let batch = names.take_back(1_000).unwrap();
        assert!(batch.bytes.capacity() <= 64 << 10);
        seen += batch.count();
    }
    assert_eq!(seen, 1_000_000);
}

#[test]
fn a_file_that_takes_no_more_is_an_error_and_what_was_there_is_not_lost() {
    if std::env::var_os(LIMITED_FILES).is_none() {
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.args(["spool::tests::a_file_that_takes_no_more"]).env(LIMITED_FILES, "1");
        let output = limit(&mut own, Resource::FileSize, 10_000).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    flatout_sys::cancel::outlive_file_limit();
    let mut names = Names::new(3_000);
    let (refusal, count) = (0..)
        .find_map(|number| Some((names.push(&name(number), kind(number)).err()?, number)))
        .unwrap();
    assert_eq!(refusal.cause, Cause::Aside(rustix::io::Errno::FBIG));
    assert_eq!(refusal.operation, "write the temporary file for");
    assert!(names.push(&name(count), kind(count)).is_err());
    assert_eq!(names.count(), count);
    for number in (0..count).rev() {
        let batch = names.take_back(1).unwrap();
        assert_eq!(batch.iter().next(), Some((name(number).as_c_str(), kind(number))));
    }
    names.push(c"again", FileType::Fifo).unwrap();
}
