//! What the processes of a copy say to each other, by one thread in each of them.
//!
//! One that has nothing to do sends `ASK` to another and gets `GIVE`, maybe of nothing and with the name of another one; `DONE` says
//! that a parcel is complete, after `PART` with what came of it where it was ranges of a file. All but the first tell what happens by `TOLD`, one message at a time,
//! so that nobody is flooded. When everything is done the first one sends `END`; each process then has its threads leave, waits for
//! storage where that is asked for, with a `BEAT` every second, and sends `FINAL`; `CLOSE` ends the round when all have. Until then everybody answers.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flatout_sys::clock::monotonic_ns;

use super::account::tell;
use super::parcel::Parcel;
use super::question::{ANSWER, QUESTION};
use super::silence::{Silence, during};
use super::thief::Thief;
use super::{Letter, Shared};
use crate::copy::job::{Ended, Hire};
use crate::copy::{Copy, Operand, Work};
use crate::lock::lock;
use crate::wire::{message, put, take};

/// The way to the other processes.
pub trait Post {
    /// Sends a message, and does not wait until it is read. Messages from one process to another
    /// arrive in order.
    fn send(&mut self, to: usize, message: &[u8]);
    /// The next message and who sent it, if one is there.
    fn receive(&mut self) -> Option<(usize, Vec<u8>)>;
}

/// Between two looks at what has come, when there was nothing.
const PAUSE: Duration = Duration::from_micros(100);
/// What is done is told so often.
const TELL_EVERY_NS: u64 = 100_000_000;

const ASK: u8 = 1;
const GIVE: u8 = 2;
pub(super) const DONE: u8 = 3;
const TOLD: u8 = 4;
const HEARD: u8 = 5;
const STOP: u8 = 6;
pub(super) const END: u8 = 7;
const FINAL: u8 = 8;
pub(super) const CLOSE: u8 = 9;
pub(super) const PART: u8 = 10;
const BEAT: u8 = 13;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Working,
    /// There is nothing more to do; threads leave.
    Ending,
    /// The others were told how it ended here.
    Final,
    Closed,
}

impl Copy<'_> {
    /// Copies operands together with the other processes of [`Copy::with_members`], each of which
    /// calls this as often: the first one with the operands, the others with none. Returns when all of
    /// it is done; the totals of the first one are those of all.
    ///
    /// Cost: a thread that looks for messages, beside those that copy.
    /// Errors: no thread can be started.
    pub fn run_shared(
        &self,
        operands: Vec<Operand>,
        hire: Hire<'_>,
        post: &mut dyn Post,
    ) -> Result<Ended, String> {
        self.begin(operands);
        self.dispatch.hold();
        let is_hired = self.hire_one(hire);
        let mut member = Member::new(self, hire, post);
        member.stopped = !is_hired;
        member.serve();
        let Member { ended, silent, .. } = member;
        if !is_hired {
            return Err("no thread can be started".to_owned());
        }
        if let Some(rank) = silent {
            return Err(format!("process {rank} does not answer any more: given up"));
        }
        Ok(Ended { totals: self.progress(), ..ended.expect("the round was closed") })
    }
}

struct Member<'m, 'a> {
    copy: &'m Copy<'a>,
    shared: &'m Shared,
    hire: Hire<'m>,
    post: &'m mut dyn Post,
    thief: Thief,
    /// Notices that were told.
    said: HashSet<String>,
    has_asked: bool,
    waits_to_be_heard: bool,
    told_ns: u64,
    phase: Phase,
    /// Who has sent `FINAL`; of the first process only.
    final_of: Vec<bool>,
    stopped: bool,
    has_passed_on: bool,
    silence: Silence,
    silent: Option<usize>,
    ended: Option<Ended>,
}

impl<'m, 'a> Member<'m, 'a> {
    fn new(copy: &'m Copy<'a>, hire: Hire<'m>, post: &'m mut dyn Post) -> Self {
        let shared = copy.shared.as_ref().expect("the copy has members");
        Self {
            copy,
            shared,
            hire,
            post,
            thief: Thief::new(shared.rank, shared.size),
            said: HashSet::new(),
            has_asked: false,
            waits_to_be_heard: false,
            told_ns: 0,
            phase: Phase::Working,
            final_of: (0..shared.size).map(|rank| rank == 0).collect(),
            stopped: false,
            has_passed_on: false,
            silence: Silence::new(shared.rank, shared.size, monotonic_ns()),
            silent: None,
            ended: None,
        }
    }

    fn is_first(&self) -> bool {
        self.shared.rank == 0
    }

    fn send(&mut self, to: usize, message: &[u8]) {
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
        self.post.send(to, message);
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.shared.rank;
        (0..self.shared.size).filter(move |&other| other != rank)
    }

    fn serve(&mut self) {
        while self.phase != Phase::Closed {
            let mut is_quiet = true;
            // What comes behind the end of a round is of the next one.
            while self.phase != Phase::Closed
                && let Some((from, message)) = self.post.receive()
            {
                is_quiet = false;
                self.silence.heard(from, monotonic_ns());
                self.read(from, &message);
            }
            self.look_who_is_silent();
            self.send_letters();
            self.pass_on_a_stop();
            match self.phase {
                Phase::Working => self.work(),
                Phase::Ending => self.end(),
                Phase::Final => self.close(),
                Phase::Closed => {}
            }
            self.tell();
            if is_quiet && self.phase != Phase::Closed {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn look_who_is_silent(&mut self) {
        let silent = self.silence.who(monotonic_ns(), |rank| self.final_of[rank]);
        if silent.is_some() && (self.is_first() || self.phase == Phase::Working) {
            self.silent = silent;
            self.copy.stop.break_off();
            self.begin_to_end();
            self.phase = Phase::Closed;
        }
    }

    fn read(&mut self, from: usize, mut message: &[u8]) {
        let message = &mut message;
        match take(message) {
            Some(ASK) => self.answer(from),
            Some(GIVE) => {
                let is_answer = take(message) == Some(true);
                self.take_doubt(message);
                let named: Option<u64> = take(message);
                let named = named.and_then(|named| Some(named.checked_sub(1)? as usize));
                let mut has_given = false;
                while let Some(parcel) = take::<Parcel>(message) {
                    has_given = true;
                    self.copy.dispatch.offer(vec![Work::Parcel(from, Box::new(parcel))]);
                }
                if is_answer {
                    self.has_asked = false;
                    match has_given {
                        true => self.thief.was_given(from),
                        false => self.thief.was_refused(named, monotonic_ns()),
                    }
                }
                // Before a round has begun here, they wait for it.
                if self.phase == Phase::Working {
                    self.copy.find_hands(self.hire);
                }
            }
            Some(DONE) => {
                if let Some(number) = take(message) {
                    self.take_doubt(message);
                    self.copy.returned(self.shared, number);
                }
            }
            Some(PART) => {
                if let (Some(number), Some(done)) = (take(message), take(message)) {
                    self.shared.part_is_done(number, done);
                }
            }
            Some(TOLD) => {
                self.take_account(from, message);
                self.send(from, &[HEARD]);
            }
            Some(HEARD) => self.waits_to_be_heard = false,
            Some(STOP) => self.stopped = true,
            Some(END) => self.begin_to_end(),
            Some(FINAL) => {
                let [interrupted, out_of_space, is_void] = take(message).unwrap_or_default();
                if is_void {
                    self.copy.evidence.forget();
                }
                self.take_account(from, message);
                self.final_of[from] = true;
                let ended = self.ended.get_or_insert_default();
                ended.interrupted |= interrupted;
                ended.out_of_space |= out_of_space;
            }
            Some(CLOSE) => self.phase = Phase::Closed,
            Some(QUESTION) => {
                if let Some(answer) = self.copy.asked(message) {
                    self.send(from, &answer);
                }
            }
            Some(ANSWER) => self.shared.questions.answered(message),
            _ => {}
        }
    }

    fn take_account(&mut self, from: usize, message: &mut &[u8]) {
        let totals = take(message);
        lock(&self.shared.others)[from] = totals.zip(take(message));
        if let Some(events) = take::<Vec<u8>>(message) {
            tell(&events, self.copy.watch, &mut self.said);
        }
        self.copy.evidence.note_for_another(message);
    }

    /// Gives half of what waits here.
    fn answer(&mut self, to: usize) {
        let mut parcels = Vec::new();
        if self.phase == Phase::Working && !self.copy.stop.is_due() {
            parcels = self.copy.parcels(self.shared);
        }
        let named = self.thief.other_for(to).map_or(0, |named| named as u64 + 1);
        if !parcels.is_empty() {
            self.thief.gave(to);
        }
        self.give(to, (true, named), &parcels);
    }

    fn give(&mut self, to: usize, (is_answer, named): (bool, u64), parcels: &[Parcel]) {
        let is_incomplete = self.copy.mirror.is_incomplete();
        let mut message = message(&[&GIVE, &is_answer, &is_incomplete, &named]);
        parcels.iter().for_each(|parcel| put(&mut message, &[parcel]));
        self.send(to, &message);
    }

    fn send_letters(&mut self) {
        for letter in std::mem::take(&mut *lock(&self.shared.outbox)) {
            match letter {
                Letter::Bound(to, parcel) => self.give(to, (false, 0), &[parcel]),
                Letter::Message(to, message) => self.send(to, &message),
            }
        }
    }

    /// What one could not read, nobody deletes the like of: at least not above it, where all that is
    /// below must be done first.
    fn take_doubt(&self, message: &mut &[u8]) {
        if take(message) == Some(true) {
            self.copy.mirror.found_incomplete();
        }
    }

    /// Where one is stopped, all are.
    fn pass_on_a_stop(&mut self) {
        self.stopped |= self.copy.stop.is_due();
        if !self.stopped || self.has_passed_on {
            return;
        }
        self.has_passed_on = true;
        self.copy.stop.break_off();
        if self.is_first() {
            self.others().for_each(|other| self.send(other, &[STOP]));
        } else {
            self.send(0, &[STOP]);
        }
    }

    fn work(&mut self) {
        // In this order: whoever is busy may give something away.
        let is_idle = self.copy.dispatch.is_idle();
        let is_out = || !lock(&self.shared.given).out.is_empty();
        let has_letters = || !lock(&self.shared.outbox).is_empty();
        if self.is_first() && (self.stopped || is_idle && !has_letters() && !is_out()) {
            self.others().for_each(|other| self.send(other, &[END]));
            return self.begin_to_end();
        }
        if self.copy.dispatch.is_hungry()
            && !self.has_asked
            && !self.stopped
            && let Some(whom) = self.thief.whom(monotonic_ns())
        {
            self.has_asked = true;
            self.send(whom, &[ASK]);
        }
    }

    fn begin_to_end(&mut self) {
        if self.phase == Phase::Working {
            self.phase = Phase::Ending;
            self.copy.dispatch.finished();
        }
    }

    fn beat(&mut self) {
        if self.silence.is_due(monotonic_ns()) {
            self.send(0, &[BEAT]);
        }
    }

    fn end(&mut self) {
        self.beat();
        if self.has_asked || self.waits_to_be_heard || self.copy.has_workers() {
            return;
        }
        let copy = self.copy;
        let mut own = during(|| copy.end(), || self.beat());
        own.interrupted |= self.stopped;
        if self.is_first() {
            let ended = self.ended.get_or_insert(own);
            ended.interrupted |= own.interrupted;
            ended.out_of_space |= own.out_of_space;
        } else {
            let is_void = self.copy.evidence.is_void();
            let mut message = message(&[&FINAL, &[own.interrupted, own.out_of_space, is_void]]);
            self.put_account(&mut message);
            self.send(0, &message);
            self.ended = Some(own);
        }
        self.phase = Phase::Final;
    }

    fn close(&mut self) {
        if self.is_first() && self.final_of.iter().all(|&is_final| is_final) {
            self.others().for_each(|other| self.send(other, &[CLOSE]));
            self.phase = Phase::Closed;
        }
    }

    fn put_account(&mut self, message: &mut Vec<u8>) {
        let sent = self.shared.sent.load(Ordering::Relaxed);
        let events = self.shared.reporter.as_ref().map(|reporter| reporter.take());
        put(message, &[&self.copy.own_progress(), &sent, &events.unwrap_or_default()]);
        message.extend(self.copy.evidence.take_notes());
    }

    fn tell(&mut self) {
        let now_ns = monotonic_ns();
        if self.is_first()
            || self.waits_to_be_heard
            || self.phase != Phase::Working
            || now_ns - self.told_ns < TELL_EVERY_NS
        {
            return;
        }
        (self.told_ns, self.waits_to_be_heard) = (now_ns, true);
        let mut message = vec![TOLD];
        self.put_account(&mut message);
        self.send(0, &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::Membership;
    use crate::copy::tests::{Heard, options};

    /// Nobody is there.
    struct Nobody;

    impl Post for Nobody {
        fn send(&mut self, _: usize, _: &[u8]) {}

        fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
            None
        }
    }

    #[test]
    fn one_that_is_gone_is_given_up_by_who_has_nothing_more_to_do() {
        const SECOND_NS: u64 = 1_000_000_000;
        let heard = Heard::default();
        let membership = Membership { rank: 0, size: 2, job: 7, kept: Vec::new() };
        let copy = Copy::new(options(), &heard).with_members(membership, None);
        let (hire, mut nobody) = (|_: u32| false, Nobody);
        copy.dispatch.hold();
        let mut member = Member::new(&copy, &hire, &mut nobody);
        member.begin_to_end();
        member.phase = Phase::Final;
        let begun_ns = monotonic_ns().saturating_sub(90 * SECOND_NS);
        member.silence = Silence::new(0, 2, begun_ns);
        for second in (5..90).step_by(5) {
            let _not_before_its_time = member.silence.who(begun_ns + second * SECOND_NS, |_| true);
        }
        member.look_who_is_silent();
        assert_eq!((member.silent, member.phase), (Some(1), Phase::Closed));
    }
}
