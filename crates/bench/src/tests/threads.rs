//! Processes as threads, for tests: messages through channels, in order, one queue for each pair.

use std::sync::mpsc::{Receiver, Sender, channel};

use flatout_tree::copy::Post;

use crate::cluster::{Seat, Window, Wire};

/// A message, and who sent it.
type Letter = (usize, Vec<u8>);

/// One of several threads that take each other for processes.
pub(crate) struct Thread {
    seat: Seat,
    words: Receiver<Letter>,
    to: Vec<(Sender<Letter>, Sender<Vec<u8>>)>,
    from: Vec<Receiver<Vec<u8>>>,
}

/// So many of them.
pub(crate) fn threads(size: usize) -> Vec<Thread> {
    let mut words: Vec<_> = (0..size).map(|_| channel()).collect();
    let data: Vec<Vec<_>> = (0..size).map(|_| (0..size).map(|_| channel()).collect()).collect();
    let mut senders: Vec<Vec<Sender<Vec<u8>>>> = Vec::new();
    let mut receivers: Vec<Vec<Receiver<Vec<u8>>>> = (0..size).map(|_| Vec::new()).collect();
    for row in data {
        let (out, into): (Vec<_>, Vec<_>) = row.into_iter().unzip();
        senders.push(out);
        into.into_iter().enumerate().for_each(|(to, into)| receivers[to].push(into));
    }
    let posts: Vec<_> = words.iter().map(|(sender, _)| sender.clone()).collect();
    let parts = words.drain(..).zip(senders).zip(receivers).enumerate();
    parts
        .map(|(rank, (((_, words), out), from))| {
            let to = posts.iter().cloned().zip(out).collect();
            Thread { seat: Seat { rank, size }, words, to, from }
        })
        .collect()
}

impl Post for Thread {
    fn send(&mut self, to: usize, message: &[u8]) {
        let _it_is_gone = self.to[to].0.send((self.seat.rank, message.to_vec()));
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        self.words.try_recv().ok()
    }
}

impl Wire for Thread {
    fn seat(&self) -> Seat {
        self.seat
    }

    fn put(&mut self, to: usize, message: &[u8]) {
        self.to[to].1.send(message.to_vec()).unwrap();
    }

    fn take(&mut self, from: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.from[from].recv().unwrap());
    }

    fn window(&mut self, window: Window<'_>) {
        for &to in window.to {
            (0..window.count).for_each(|_| self.put(to, window.message));
        }
        let mut into = window.into.chunks_mut(window.message.len());
        for &from in window.from {
            (0..window.count).for_each(|_| self.take(from, into.next().unwrap()));
        }
    }
}
