//! Requests of the kernel to a filesystem, counted by kind, and the one that goes wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::io::Errno;

/// What the kernel asks for, as fuse(4) names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Lookup,
    Getattr,
    Setattr,
    Readlink,
    Mknod,
    Mkdir,
    Unlink,
    Rmdir,
    Symlink,
    Rename,
    Link,
    Open,
    Create,
    Read,
    Write,
    Flush,
    Fsync,
    Fallocate,
    Lseek,
    Opendir,
    Readdir,
    Getxattr,
    Setxattr,
    Listxattr,
    Removexattr,
}

/// How it goes wrong.
#[derive(Debug, Clone, Copy)]
pub enum Effect {
    /// It is refused.
    Error(Errno),
    /// Of the bytes, only some go through.
    Short,
    /// It takes this long.
    Slow(Duration),
}

/// The request that goes wrong: the n-th of a kind, counted from 1.
#[derive(Debug, Clone, Copy)]
pub struct Trap {
    pub kind: Kind,
    pub nth: u32,
    pub effect: Effect,
    /// Whether all that come after it go wrong, too.
    pub lasts: bool,
}

/// What a request is told before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portion {
    Whole,
    /// Only a part of the bytes may go through.
    Part,
}

/// Requests so far, and the trap that is set.
#[derive(Default)]
pub struct Counter {
    pub seen: BTreeMap<Kind, u32>,
    pub trap: Option<Trap>,
    pub sprung: bool,
}

impl Counter {
    /// Counts a request. Says how long it is to take, and what comes of it then.
    pub fn admit(&mut self, kind: Kind) -> (Duration, Result<Portion, Errno>) {
        let count = self.seen.entry(kind).or_default();
        *count += 1;
        let is_trapped = |trap: &Trap| {
            trap.kind == kind && (*count == trap.nth || trap.lasts && *count > trap.nth)
        };
        let Some(trap) = self.trap.filter(is_trapped) else {
            return (Duration::ZERO, Ok(Portion::Whole));
        };
        self.sprung = true;
        match trap.effect {
            Effect::Error(errno) => (Duration::ZERO, Err(errno)),
            Effect::Short => (Duration::ZERO, Ok(Portion::Part)),
            Effect::Slow(delay) => (delay, Ok(Portion::Whole)),
        }
    }
}

#[test]
fn the_request_that_was_chosen_goes_wrong() {
    let trap = Trap { kind: Kind::Read, nth: 2, effect: Effect::Short, lasts: false };
    let mut counter = Counter { trap: Some(trap), ..Counter::default() };
    let mut reads = || counter.admit(Kind::Read).1.ok().unwrap();
    assert_eq!([reads(), reads(), reads()], [Portion::Whole, Portion::Part, Portion::Whole]);
    let _whole = counter.admit(Kind::Write);
    assert_eq!(counter.seen, BTreeMap::from([(Kind::Read, 3), (Kind::Write, 1)]));
}
