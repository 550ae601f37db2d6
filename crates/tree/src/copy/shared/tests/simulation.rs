//! Copies by very many processes, in virtual time: a third kind of work for the same order
//! ([`Ready`]), the same questions ([`Thief`]), the same halves. Nothing is copied; what a step costs is
//! given. What the processes say to each other is that of `member.rs`: `ASK`, `GIVE`, `DONE`.

mod process;
mod tests;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use crate::copy::content::{Ranges, halves};
use crate::copy::dispatch::ready::{Kind, Piece};
use process::Process;

/// What a step costs, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    /// A file, or another entry that is no directory.
    pub(super) file: u64,
    /// A range of a large file.
    pub(super) range: u64,
    /// A directory: opened on both sides, listed, completed.
    pub(super) directory: u64,
    /// A directory that is made by whoever lists the one above it.
    pub(super) make: u64,
    /// A name of a listing.
    pub(super) name: u64,
    /// A step of the way to a directory of another process.
    pub(super) step: u64,
    /// A message on its way, and until it is looked for.
    pub(super) latency: u64,
    /// A message sent or read by the thread that does that.
    pub(super) message: u64,
}

/// What lies in a directory.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) files: u32,
    /// Ranges of a large file; 0: there is none.
    pub(super) ranges: u32,
    pub(super) below: Vec<Rc<Shape>>,
}

impl Shape {
    /// Entries, those of directories below it included.
    pub(super) fn entries(&self) -> u64 {
        let below: u64 = self.below.iter().map(|shape| 1 + shape.entries()).sum();
        u64::from(self.files) + u64::from(self.ranges > 0) + below
    }

    /// What all of it costs, done by one thread without others.
    pub(super) fn cost(&self, costs: &Costs) -> u64 {
        let names = u64::from(self.files) + self.below.len() as u64;
        let files = u64::from(self.files) * costs.file + u64::from(self.ranges) * costs.range;
        let below: u64 = self.below.iter().map(|shape| costs.make + shape.cost(costs)).sum();
        costs.directory + names * costs.name + files + below
    }
}

/// A directory of one process.
#[derive(Debug)]
pub(super) struct Directory {
    parent: Option<Handle>,
    depth: u64,
    pending: Cell<usize>,
    below: RefCell<Vec<Rc<Shape>>>,
    /// Who gave it, and by which number.
    guest: Option<(usize, u64)>,
}

impl Directory {
    /// Directories that a process knows for this one: a guest's way is open, too.
    fn levels(&self) -> usize {
        1 + self.guest.map_or(0, |_| self.depth as usize)
    }
}

pub(super) type Handle = Rc<Directory>;

fn directory(parent: Option<&Handle>, guest: Option<(usize, u64)>, depth: u64) -> Handle {
    let (parent, below) = (parent.cloned(), RefCell::default());
    Rc::new(Directory { parent, depth, pending: Cell::new(1), below, guest })
}

fn expect(directory: &Handle, more: usize) {
    directory.pending.set(directory.pending.get() + more);
}

/// A large file, or a part of one.
#[derive(Debug)]
pub(super) struct Large {
    left: Cell<Ranges>,
    /// Threads at work on it, and parts that other processes have.
    busy: Cell<u32>,
    directory: Handle,
    is_done: Cell<bool>,
}

#[derive(Debug, Clone)]
pub(super) enum Work {
    Visit(Handle, Rc<Shape>),
    Names(Handle, u32),
    Listing(Handle, u32),
    Below(Handle),
    File(Handle, u32),
    Large(Rc<Large>),
    Part(Handle, Ranges),
    Joined(Rc<Large>),
    Parcel(usize, Parcel),
    Returned(Handle, usize),
}

/// Work on its way.
#[derive(Debug, Clone)]
pub(super) struct Parcel {
    number: u64,
    depth: u64,
    pieces: Vec<Sent>,
}

#[derive(Debug, Clone)]
enum Sent {
    Visit(Rc<Shape>),
    Names(u32),
    Part(Ranges),
}

#[derive(Debug)]
enum Message {
    Ask,
    Give(Vec<Parcel>, Option<usize>),
    Done(u64),
}

impl Piece for Work {
    type Directory = Handle;

    fn kind(&self) -> Kind {
        match self {
            Self::Below(_) => Kind::Below,
            Self::Large(_) => Kind::Large,
            Self::Names(..) => Kind::Names,
            Self::Listing(..) => Kind::Listing,
            Self::Visit(..) => Kind::Visit,
            Self::Part(..) | Self::Joined(_) | Self::Parcel(..) => Kind::Part,
            _ => Kind::Other,
        }
    }

    fn is_in(&self, near: &Handle) -> bool {
        match self {
            Self::Names(directory, _) | Self::Listing(directory, _) => Rc::ptr_eq(directory, near),
            _ => false,
        }
    }

    fn parts(&self) -> u64 {
        match self {
            Self::Below(directory) => directory.below.borrow().len() as u64,
            Self::Large(large) => (large.left.get().1 - large.left.get().0).into(),
            _ => 0,
        }
    }

    fn part(&self) -> Option<Self> {
        match self {
            Self::Below(directory) => {
                let shape = directory.below.borrow_mut().pop()?;
                Some(Self::Visit(Rc::clone(directory), shape))
            }
            other => Some(other.clone()),
        }
    }
}

impl Large {
    fn has_more(&self) -> bool {
        self.left.get().0 < self.left.get().1
    }

    fn give(&self) -> Option<Ranges> {
        let (stays, goes) = halves(self.left.get())?;
        self.left.set(stays);
        self.busy.set(self.busy.get() + 1);
        Some(goes)
    }
}

/// What happens, and where.
#[derive(Debug)]
enum Event {
    /// A thread has done what it was at, unless it has begun with something else.
    Thread(usize, u64),
    Message(usize, Message),
    /// It is time to ask again.
    Wake,
}

/// Happenings to come, by their time; those of one time in the order in which they were found.
#[derive(Debug, Default)]
struct Agenda {
    now: u64,
    count: u64,
    order: BinaryHeap<Reverse<(u64, u64)>>,
    events: std::collections::HashMap<u64, (usize, Event)>,
}

impl Agenda {
    fn add(&mut self, delay: u64, rank: usize, event: Event) {
        self.count += 1;
        self.order.push(Reverse((self.now + delay, self.count)));
        self.events.insert(self.count, (rank, event));
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        let Reverse((now, number)) = self.order.pop()?;
        self.now = now;
        self.events.remove(&number)
    }
}

/// What came of a simulated copy.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) elapsed_ns: u64,
    pub(super) messages: u64,
    /// Entries that each process did, ranges counted as such.
    pub(super) entries: Vec<u64>,
    /// Of one process: pieces that waited, parcels that it had given away, directories that it knew.
    pub(super) most: [usize; 3],
}

/// Copies a tree by so many processes with so many threads each.
pub(super) fn copy(tree: &Rc<Shape>, size: usize, threads: usize, costs: Costs) -> Outcome {
    let mut processes: Vec<Process> =
        (0..size).map(|rank| Process::new(rank, size, threads, costs)).collect();
    let mut agenda = Agenda::default();
    let base = directory(None, None, 0);
    processes[0].begin(Work::Visit(base, Rc::clone(tree)));
    (0..size).for_each(|rank| agenda.add(0, rank, Event::Wake));
    while let Some((rank, event)) = agenda.next() {
        processes[rank].happen(event, &mut agenda);
        if processes[0].is_over {
            break;
        }
    }
    Outcome {
        elapsed_ns: agenda.now,
        messages: processes.iter().map(|process| process.sent).sum(),
        entries: processes.iter().map(|process| process.entries).collect(),
        most: [0, 1, 2].map(|what| processes.iter().map(|one| one.most[what]).max().unwrap_or(0)),
    }
}
