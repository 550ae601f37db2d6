//! One process of a simulated copy.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Agenda, Costs, Event, Handle, Large, Message, Parcel, Sent, Work, directory, expect};
use crate::copy::content::Ranges;
use crate::copy::dispatch::ready::Ready;
use crate::copy::shared::MOST_GIVEN;
use crate::copy::shared::thief::{Thief, share};

/// Names of a batch, of a piece of a listing, and of a listing that memory takes (`visit.rs`).
const BATCH: u32 = 32;
const LISTED: u32 = 1000;
const MOST_NAMES: u32 = 10_000;

enum Out {
    Pieces(Handle, usize),
    Part(Rc<Large>),
}

/// A thread.
#[derive(Default)]
struct Lane {
    /// What is done when its time is over, since when, and by which number of an event.
    work: Option<Work>,
    begun: u64,
    number: u64,
    near: Option<Handle>,
    /// The large file whose parts it waits for.
    waits: Option<Rc<Large>>,
}

pub(super) struct Process {
    rank: usize,
    costs: Costs,
    ready: Ready<Work>,
    lanes: Vec<Lane>,
    thief: Thief,
    has_asked: bool,
    given: HashMap<u64, Out>,
    next_number: u64,
    /// Until when the thread that speaks with the others is at work.
    speaks_until: u64,
    wakes_at: u64,
    pub(super) is_over: bool,
    pub(super) sent: u64,
    pub(super) entries: u64,
    known: usize,
    pub(super) most: [usize; 3],
}

impl Process {
    pub(super) fn new(rank: usize, size: usize, threads: usize, costs: Costs) -> Self {
        Self {
            rank,
            costs,
            ready: Ready::default(),
            lanes: (0..threads).map(|_| Lane::default()).collect(),
            thief: Thief::new(rank, size),
            has_asked: false,
            given: HashMap::new(),
            next_number: 0,
            speaks_until: 0,
            wakes_at: 0,
            is_over: false,
            sent: 0,
            entries: 0,
            known: 0,
            most: [0; 3],
        }
    }

    pub(super) fn begin(&mut self, work: Work) {
        self.ready.add(work);
    }

    pub(super) fn happen(&mut self, event: Event, agenda: &mut Agenda) {
        match event {
            Event::Thread(lane, number) if self.lanes[lane].number == number => {
                self.end(lane, agenda);
            }
            Event::Thread(..) | Event::Wake => {}
            Event::Message(from, message) => self.read(from, message, agenda),
        }
        self.give_work(agenda);
        let now = [self.ready.divisible(), self.given.len(), self.known];
        self.most.iter_mut().zip(now).for_each(|(most, now)| *most = now.max(*most));
        self.ask(agenda);
    }

    /// Threads without work take some.
    fn give_work(&mut self, agenda: &mut Agenda) {
        for index in 0..self.lanes.len() {
            while self.lanes[index].work.is_none() {
                let lane = &self.lanes[index];
                let work = match &lane.waits {
                    Some(large) if large.has_more() => Some(Work::Large(Rc::clone(large))),
                    Some(_) => self.ready.part(),
                    None => self.ready.next(lane.near.as_ref()),
                };
                let Some(work) = work else { break };
                self.start(index, work, agenda);
            }
        }
    }

    /// Begins a piece of work: it is over when its time is.
    fn start(&mut self, index: usize, work: Work, agenda: &mut Agenda) {
        let Costs { file, range, directory, make, name, step, .. } = self.costs;
        let cost = match &work {
            Work::Visit(_, shape) => {
                let below = shape.below.len() as u64;
                directory + below * make + (u64::from(shape.files) + below) * name
            }
            Work::Names(_, count) => u64::from(*count) * file,
            Work::Listing(_, left) => u64::from(LISTED.min(*left)) * name,
            Work::File(..) => file,
            Work::Part(..) => 2 * step,
            Work::Large(large) | Work::Joined(large) => match large.left.get() {
                (first, end) if first < end => {
                    large.left.set((first + 1, end));
                    large.busy.set(large.busy.get() + 1);
                    self.entries += 1;
                    range
                }
                _ if matches!(work, Work::Joined(_)) => 0,
                _ => return,
            },
            Work::Parcel(_, parcel) => parcel.depth * 2 * step,
            Work::Below(_) | Work::Returned(..) => 0,
        };
        self.lanes[index].work = Some(match work {
            // No range was taken.
            Work::Joined(large) if cost == 0 => Work::Joined(large),
            Work::Joined(large) => Work::Large(large),
            work => work,
        });
        self.lanes[index].begun = agenda.now;
        self.wait(index, cost, agenda);
    }

    /// A thread is at work for so long.
    fn wait(&mut self, index: usize, delay: u64, agenda: &mut Agenda) {
        let lane = &mut self.lanes[index];
        lane.number += 1;
        agenda.add(delay, self.rank, Event::Thread(index, lane.number));
    }

    /// Leaves half of the names that a thread has before it to whoever asks the next time.
    fn split(&mut self, agenda: &mut Agenda) {
        for index in 0..self.lanes.len() {
            let Lane { work: Some(Work::Names(directory, count)), begun, .. } = &self.lanes[index]
            else {
                continue;
            };
            let done = ((agenda.now - begun) / self.costs.file.max(1)) as u32 + 1;
            let goes = count.saturating_sub(done) / 2;
            if goes > 0 {
                let (directory, stays) = (Rc::clone(directory), count - goes);
                let delay = begun + u64::from(stays) * self.costs.file - agenda.now;
                self.lanes[index].work = Some(Work::Names(Rc::clone(&directory), stays));
                self.offer(&directory, goes);
                return self.wait(index, delay, agenda);
            }
        }
    }

    /// A thread has done what it was at.
    fn end(&mut self, index: usize, agenda: &mut Agenda) {
        let Some(work) = self.lanes[index].work.take() else { return };
        match work {
            Work::Visit(above, shape) => {
                let directory = directory(Some(&above), None, above.depth + 1);
                self.known += 1;
                let first = BATCH.min(shape.files);
                self.list(&directory, shape.files - first);
                if shape.ranges > 0 {
                    expect(&directory, 1);
                    self.ready.add(Work::File(Rc::clone(&directory), shape.ranges));
                }
                if !shape.below.is_empty() {
                    expect(&directory, shape.below.len());
                    directory.below.borrow_mut().extend(shape.below.iter().cloned());
                    self.ready.add(Work::Below(Rc::clone(&directory)));
                }
                self.lanes[index].near = Some(Rc::clone(&directory));
                self.start(index, Work::Names(directory, first), agenda);
            }
            Work::Names(directory, count) => {
                self.entries += u64::from(count);
                self.lanes[index].near = Some(Rc::clone(&directory));
                self.piece_done(&directory, agenda);
            }
            Work::Listing(directory, left) => {
                let listed = LISTED.min(left);
                self.offer(&directory, listed);
                if left > listed {
                    self.ready.add(Work::Listing(Rc::clone(&directory), left - listed));
                } else {
                    self.piece_done(&directory, agenda);
                }
                self.lanes[index].near = Some(directory);
            }
            Work::File(directory, ranges) => {
                let large = self.large(directory, (0, ranges));
                self.lanes[index].waits = Some(large);
            }
            Work::Part(directory, ranges) => {
                let large = self.large(directory, ranges);
                self.start(index, Work::Large(large), agenda);
            }
            Work::Large(large) => {
                large.busy.set(large.busy.get() - 1);
                if large.has_more() {
                    return self.start(index, Work::Large(large), agenda);
                }
                self.look_whether_done(&large, agenda);
            }
            Work::Joined(large) => self.look_whether_done(&large, agenda),
            Work::Parcel(giver, parcel) => {
                let guest = Some((giver, parcel.number));
                let directory = directory(None, guest, parcel.depth);
                self.known += directory.levels();
                directory.pending.set(parcel.pieces.len());
                for piece in parcel.pieces {
                    let directory = Rc::clone(&directory);
                    self.ready.add(match piece {
                        Sent::Visit(shape) => Work::Visit(directory, shape),
                        Sent::Names(count) => Work::Names(directory, count),
                        Sent::Part(ranges) => Work::Part(directory, ranges),
                    });
                }
            }
            Work::Returned(directory, pieces) => {
                (0..pieces).for_each(|_| self.piece_done(&directory, agenda));
            }
            Work::Below(_) => {}
        }
    }

    fn large(&mut self, directory: Handle, ranges: Ranges) -> Rc<Large> {
        let (left, busy, is_done) = (Cell::new(ranges), Cell::new(0), Cell::new(false));
        let large = Rc::new(Large { left, busy, directory, is_done });
        self.ready.add(Work::Large(Rc::clone(&large)));
        large
    }

    fn look_whether_done(&mut self, large: &Rc<Large>, agenda: &mut Agenda) {
        if large.busy.get() > 0 || large.has_more() || large.is_done.replace(true) {
            return;
        }
        for lane in &mut self.lanes {
            if lane.waits.as_ref().is_some_and(|waits| Rc::ptr_eq(waits, large)) {
                lane.waits = None;
            }
        }
        self.piece_done(&large.directory, agenda);
    }

    /// Names of a directory that was listed.
    fn list(&mut self, directory: &Handle, names: u32) {
        if names > MOST_NAMES {
            expect(directory, 1);
            self.ready.add(Work::Listing(Rc::clone(directory), names));
        } else {
            self.offer(directory, names);
        }
    }

    fn offer(&mut self, directory: &Handle, mut names: u32) {
        while names > 0 {
            let count = names.min(BATCH);
            expect(directory, 1);
            self.ready.add(Work::Names(Rc::clone(directory), count));
            names -= count;
        }
    }

    fn piece_done(&mut self, directory: &Handle, agenda: &mut Agenda) {
        let mut directory = Rc::clone(directory);
        loop {
            directory.pending.set(directory.pending.get() - 1);
            if directory.pending.get() > 0 {
                return;
            }
            self.known = self.known.saturating_sub(directory.levels());
            if let Some((giver, number)) = directory.guest {
                return self.send(giver, Message::Done(number), agenda);
            }
            let Some(parent) = directory.parent.clone() else {
                self.is_over = true;
                return;
            };
            directory = parent;
        }
    }

    fn send(&mut self, to: usize, message: Message, agenda: &mut Agenda) {
        self.sent += 1;
        self.speaks_until = self.speaks_until.max(agenda.now) + self.costs.message;
        let delay = self.speaks_until - agenda.now + self.costs.latency;
        agenda.add(delay, to, Event::Message(self.rank, message));
    }

    fn read(&mut self, from: usize, message: Message, agenda: &mut Agenda) {
        self.speaks_until = self.speaks_until.max(agenda.now) + self.costs.message;
        match message {
            Message::Ask => {
                let parcels = self.parcels();
                if parcels.is_empty() {
                    self.split(agenda);
                }
                let named = self.thief.other_for(from);
                if !parcels.is_empty() {
                    self.thief.gave(from);
                }
                self.send(from, Message::Give(parcels, named), agenda);
            }
            Message::Give(parcels, named) => {
                self.has_asked = false;
                match parcels.is_empty() {
                    true => self.thief.was_refused(named, agenda.now),
                    false => self.thief.was_given(from),
                }
                parcels.into_iter().for_each(|parcel| self.ready.add(Work::Parcel(from, parcel)));
            }
            Message::Done(number) => match self.given.remove(&number) {
                Some(Out::Pieces(directory, pieces)) => {
                    self.ready.add(Work::Returned(directory, pieces));
                }
                Some(Out::Part(large)) => {
                    large.busy.set(large.busy.get() - 1);
                    self.ready.add(Work::Joined(large));
                }
                None => unreachable!("it was given"),
            },
        }
    }

    fn parcels(&mut self) -> Vec<Parcel> {
        let count = share(self.ready.divisible(), MOST_GIVEN);
        let mut by_directory: Vec<(Handle, Vec<Sent>)> = Vec::new();
        for work in self.ready.give(count, &|_| true) {
            let (directory, piece) = match work {
                Work::Visit(directory, shape) => (directory, Sent::Visit(shape)),
                Work::Names(directory, count) => (directory, Sent::Names(count)),
                other => {
                    self.ready.add(other);
                    continue;
                }
            };
            match by_directory.iter_mut().find(|(known, _)| Rc::ptr_eq(known, &directory)) {
                Some((_, pieces)) => pieces.push(piece),
                None => by_directory.push((directory, vec![piece])),
            }
        }
        let mut parcels = Vec::new();
        for (directory, pieces) in by_directory {
            let out = Out::Pieces(Rc::clone(&directory), pieces.len());
            parcels.push(self.give(out, &directory, pieces));
        }
        if parcels.is_empty()
            && let Some(Work::Large(large)) = self.ready.largest(|_| true)
            && let Some(ranges) = large.give()
        {
            let large = Rc::clone(large);
            let directory = Rc::clone(&large.directory);
            parcels.push(self.give(Out::Part(large), &directory, vec![Sent::Part(ranges)]));
        }
        parcels
    }

    fn give(&mut self, out: Out, directory: &Handle, pieces: Vec<Sent>) -> Parcel {
        let number = self.next_number;
        self.next_number += 1;
        self.given.insert(number, out);
        Parcel { number, depth: directory.depth, pieces }
    }

    fn ask(&mut self, agenda: &mut Agenda) {
        let is_hungry =
            self.lanes.iter().all(|lane| lane.work.is_none()) && self.ready.count() == 0;
        if !is_hungry || self.has_asked {
            return;
        }
        match self.thief.whom(agenda.now) {
            Some(whom) => {
                self.has_asked = true;
                self.send(whom, Message::Ask, agenda);
            }
            None if self.thief.not_before_ns > self.wakes_at.max(agenda.now) => {
                self.wakes_at = self.thief.not_before_ns;
                agenda.add(self.wakes_at - agenda.now, self.rank, Event::Wake);
            }
            None => {}
        }
    }
}
