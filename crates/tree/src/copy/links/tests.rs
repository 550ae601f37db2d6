//! Tests of who copies and who links, and of what is remembered.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;
use crate::copy::failure::Cause;

impl Links {
    /// Sources that are remembered.
    pub(super) fn count(&self) -> u64 {
        lock(&self.state).table.count()
    }

    /// Bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        lock(&self.state).table.memory_bytes()
    }

    /// Whether anything went to a file.
    pub(super) fn has_file(&self) -> bool {
        lock(&self.state).table.has_file()
    }
}

fn links(memory_bytes: u64) -> Links {
    Links::new(memory_bytes, CancelToken::manual())
}

fn path(number: u64) -> Vec<u8> {
    format!("directory-{}/{}-{number}", number % 100, "x".repeat(number as usize % 200))
        .into_bytes()
}

fn source(identity: Identity, names: u64) -> Source {
    Source { identity, names, met: Met::default(), was_there: false }
}

fn claim(links: &Links, identity: Identity, names: u64) -> Result<Claim<'_>, Refusal> {
    links.claim(source(identity, names), |_| unreachable!("it is as it was met"))
}

/// Does what the first one does, or says what is known.
fn seen(links: &Links, source: Identity, names: u64) -> Option<Copy> {
    match claim(links, source, names).unwrap() {
        Claim::First(ticket) => {
            ticket.done(&path(source.1), (source.0 + 1, source.1 + 7)).unwrap();
            None
        }
        Claim::Known(copy) => Some(copy),
    }
}

fn expected(source: Identity) -> Copy {
    Copy { path: path(source.1), mark: (source.0 + 1, source.1 + 7), was_there: false }
}

#[test]
fn of_threads_that_claim_at_once_one_copies_and_the_others_link() {
    const THREADS: u64 = 8;
    const SOURCES: u64 = 500;
    let links = links(1 << 20);
    let (first, start) = (AtomicU64::new(0), Barrier::new(THREADS as usize));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for inode in 0..SOURCES {
                    match claim(&links, (1, inode), THREADS).unwrap() {
                        Claim::First(ticket) => {
                            first.fetch_add(1, Ordering::Relaxed);
                            thread::yield_now();
                            ticket.done(&path(inode), (2, inode + 7)).unwrap();
                        }
                        Claim::Known(copy) => assert_eq!(copy, expected((1, inode))),
                    }
                }
            });
        }
    });
    assert_eq!(first.into_inner(), SOURCES);
    assert_eq!(links.count(), 0, "all names were seen, so all is forgotten");
}

#[test]
fn when_the_first_one_fails_another_one_is_first() {
    let links = links(1 << 20);
    let start = Barrier::new(3);
    let answers: Vec<bool> = thread::scope(|scope| {
        let Claim::First(ticket) = claim(&links, (1, 1), 4).unwrap() else { panic!("the first") };
        let others: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    seen(&links, (1, 1), 4).is_some()
                })
            })
            .collect();
        start.wait();
        drop(ticket);
        others.into_iter().map(|other| other.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|&&is_known| is_known).count(), 1, "{answers:?}");
}

#[test]
fn a_thread_is_first_with_several_and_waits_for_nobody() {
    for memory_bytes in [0, 1 << 20] {
        let links = links(memory_bytes);
        let first = |inode| links.claim_first(source((1, inode), 2));
        let tickets: Vec<Ticket<'_>> = (0..5).map(|inode| first(inode).unwrap()).collect();
        assert!(first(3).is_none(), "it is being copied");
        for (inode, ticket) in (0..).zip(tickets).filter(|(inode, _)| *inode != 4) {
            ticket.done(&path(inode), (2, inode + 7)).unwrap();
        }
        assert!(first(3).is_none(), "it is known, and that does not count as a look");
        assert_eq!(seen(&links, (1, 3), 2), Some(expected((1, 3))));
        assert!(first(3).is_some(), "all its names were seen");
        assert!(first(4).is_some(), "it failed");
    }
}

#[test]
fn a_thread_that_dies_leaves_nobody_waiting() {
    let links = links(1 << 20);
    let died = thread::scope(|scope| {
        let dying = scope.spawn(|| {
            let _ticket = claim(&links, (1, 1), 2).unwrap();
            panic!("on purpose");
        });
        dying.join().is_err()
    });
    assert!(died);
    assert_eq!(seen(&links, (1, 1), 2), None);
    assert_eq!(seen(&links, (1, 1), 2), Some(expected((1, 1))));
}

#[test]
fn one_who_waits_stops_when_the_copy_is_cancelled() {
    let cancel = CancelToken::manual();
    let links = Links::new(1 << 20, cancel);
    let ticket = claim(&links, (1, 1), 2).unwrap();
    let refusal = thread::scope(|scope| {
        let waiting = scope.spawn(|| claim(&links, (1, 1), 2).map(drop).unwrap_err());
        cancel.cancel();
        waiting.join().unwrap()
    });
    assert_eq!(refusal.cause, Cause::Reason("interrupted"));
    drop(ticket);
}

#[test]
fn the_device_counts_and_a_last_name_is_forgotten() {
    let links = links(1 << 20);
    for device in [1, 2] {
        assert_eq!(seen(&links, (device, 5), 3), None);
    }
    assert_eq!(seen(&links, (3, 5), 1), None, "it has no other name");
    assert_eq!(links.count(), 2);
    for device in [2, 1, 2, 1] {
        assert_eq!(seen(&links, (device, 5), 3), Some(expected((device, 5))));
    }
    assert_eq!(links.count(), 0);
    assert_eq!(seen(&links, (1, 5), 3), None);
}

#[test]
fn a_copy_that_takes_no_more_links_is_followed_by_another() {
    for memory_bytes in [0, 1 << 20] {
        let links = links(memory_bytes);
        assert_eq!(seen(&links, (1, 5), 3), None);
        assert!(seen(&links, (1, 5), 3).is_some());
        links.copied_again(source((1, 5), 3), b"again", (9, 9)).unwrap();
        let again = Copy { path: b"again".to_vec(), mark: (9, 9), was_there: false };
        assert_eq!(seen(&links, (1, 5), 3), Some(again));
        links.copied_again(source((1, 5), 3), b"too late", (9, 9)).unwrap();
        assert_eq!(links.count(), 0);
    }
}

#[test]
fn what_is_too_much_for_memory_is_found_again_in_a_file() {
    const LIMIT_BYTES: u64 = 64 << 10;
    const SOURCES: u64 = 20_000;
    let links = links(LIMIT_BYTES);
    for inode in 0..SOURCES {
        assert_eq!(seen(&links, (inode % 3, inode), 2), None);
        assert!(links.memory_bytes() as u64 <= LIMIT_BYTES);
    }
    assert!(links.has_file());
    assert_eq!(links.count(), SOURCES);
    for inode in (0..SOURCES).rev() {
        assert_eq!(seen(&links, (inode % 3, inode), 2), Some(expected((inode % 3, inode))));
    }
    assert_eq!(links.count(), 0);
    assert!(links.memory_bytes() as u64 <= LIMIT_BYTES);
}

#[test]
fn a_hundred_thousand_links_to_the_outside_stay_below_six_mebibytes() {
    const LIMIT_BYTES: u64 = 6 << 20;
    let links = links(LIMIT_BYTES);
    for inode in 0..100_000 {
        assert_eq!(seen(&links, (1, inode), 2), None);
        assert!(links.memory_bytes() as u64 <= LIMIT_BYTES);
    }
    for inode in (0..100_000).step_by(997) {
        assert_eq!(seen(&links, (1, inode), 2), Some(expected((1, inode))));
    }
}

#[test]
fn long_paths_are_kept_whole() {
    let links = links(1 << 10);
    let paths: Vec<Vec<u8>> =
        [0, 1, 123, 124, 125, 128, 5_000].map(|length| vec![b'p'; length]).into();
    for (inode, path) in (0..).zip(&paths) {
        let Claim::First(ticket) = claim(&links, (1, inode), 2).unwrap() else { panic!("new") };
        ticket.done(path, (1, 1)).unwrap();
    }
    for (inode, path) in (0..).zip(&paths) {
        assert_eq!(seen(&links, (1, inode), 2).unwrap().path, *path);
    }
}

#[test]
fn another_file_with_an_inode_that_came_free_is_copied_and_its_names_are_links_of_that() {
    for memory_bytes in [0, 1 << 20] {
        let links = links(memory_bytes);
        assert_eq!(seen(&links, (1, 5), 9), None);
        let met = Met { changed_ns: -7, mark: u64::MAX };
        let other = Source { met, ..source((1, 5), 2) };
        let copied = links.claim(other, |was| {
            assert_eq!(was, Met::default());
            false
        });
        let Ok(Claim::First(ticket)) = copied else { panic!("{copied:?}") };
        ticket.done(b"other", (9, 9)).unwrap();
        let changed = Source { met: Met { changed_ns: 8, ..met }, ..other };
        let known = links.claim(changed, |was| was == met);
        let Ok(Claim::Known(copy)) = known else { panic!("{known:?}") };
        assert_eq!(copy, Copy { path: b"other".to_vec(), mark: (9, 9), was_there: false });
        assert_eq!(links.count(), 0, "both names were seen");
    }
}
