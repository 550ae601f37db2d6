//! The far end: a listener that anybody may connect to, a queue of those who know the key, and one
//! session at a time.
//!
//! One thread does all handshakes and never waits for anybody; the session has a thread of its own.
//! Whoever has proved nothing costs a socket and at most 50 bytes, for ten seconds.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};

use flatout_io::cause_text;
use flatout_sys::cancel::{Ready, wait_any_readable};
use flatout_sys::{CancelToken, monotonic_ns};
use rustix::io::Errno;

use super::channel::{self, Channel, ChannelError, Inbox};
use super::frame::{Frame, VERSION};
use super::session::{Arrival, Session};
use super::token::{Key, PROOF_BYTES, PROOF_MARK, Proof, random};
use crate::workers;

/// How long a connection may take to prove itself.
pub(super) const HANDSHAKE_NS: u64 = 10_000_000_000;
/// Handshakes at once; one more ends the oldest.
const MAX_HANDSHAKES: usize = 256;
/// Clients that wait at once.
const MAX_WAITING: usize = 16;
/// What accept(2) answers where this machine has no room for a connection.
const SHORTAGES: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
/// How often handshakes are looked at when nothing comes.
const ROUND_NS: u64 = 50_000_000;

/// How long the server lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// One session.
    Once,
    /// Until it is stopped.
    Forever,
}

/// What a server tells who runs it.
#[derive(Debug)]
pub enum Notice {
    /// A client's session begins.
    Begins(SocketAddr),
    /// It has ended, after so many tests or for a reason.
    Ended(SocketAddr, Result<u32, ChannelError>),
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    key: Key,
    shortage: Shortage,
}

/// What a server lacked last, on one line, as descriptors for connections: those who wait for it cannot
/// see that.
#[derive(Debug, Clone, Default)]
pub struct Shortage(Arc<Mutex<Option<String>>>);

impl Shortage {
    /// `None`: nothing was lacking.
    pub fn text(&self) -> Option<String> {
        workers::lock(&self.0).clone()
    }

    /// What was lacking so far does not matter any more.
    pub fn forget(&self) {
        *workers::lock(&self.0) = None;
    }
}

impl Server {
    /// Listens at the first of `addresses` that can be had.
    ///
    /// # Errors
    /// Those of socket(2), bind(2) and listen(2).
    pub fn bind(addresses: &[SocketAddr], key: Key) -> io::Result<Self> {
        let listener = TcpListener::bind(addresses)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, key, shortage: Shortage::default() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What it lacks, also when it is gone.
    pub fn shortage(&self) -> Shortage {
        self.shortage.clone()
    }

    /// Serves until its lifetime is over or the user stops it. No thread is left then.
    ///
    /// # Errors
    /// A thread cannot be started, the kernel has no random numbers, or no descriptor for the one session.
    pub fn serve(
        &self,
        lifetime: Lifetime,
        cancel: CancelToken,
        notice: &mut dyn FnMut(Notice),
    ) -> io::Result<()> {
        thread::scope(|scope| {
            let mut acceptor = Acceptor {
                server: self,
                cancel,
                handshakes: VecDeque::new(),
                waiting: VecDeque::new(),
                active: None,
                is_paused: false,
            };
            while !cancel.is_cancelled() {
                acceptor.wait();
                acceptor.accept(lifetime)?;
                acceptor.advance_handshakes();
                // Clients that wait may only wait or leave.
                acceptor.waiting.retain_mut(|one| matches!(one.channel.poll(), Ok(None)));
                if let Some((peer, end)) = acceptor.ended() {
                    notice(Notice::Ended(peer, end));
                    if lifetime == Lifetime::Once {
                        break;
                    }
                }
                if let Some(peer) = acceptor.start_next(scope)? {
                    notice(Notice::Begins(peer));
                }
            }
            for client in &mut acceptor.waiting {
                refuse(&mut client.channel, "the server ends".to_owned());
            }
            Ok(())
        })
    }
}

/// A connection that has proved nothing yet.
struct Handshake {
    since_ns: u64,
    state: State,
}

/// How far a handshake has come.
enum State {
    /// Nothing was answered.
    Begun(TcpStream, Inbox),
    /// The first message was made with the key; a greeting has to follow.
    Answered(Channel),
}

impl State {
    fn stream(&self) -> &TcpStream {
        match self {
            Self::Begun(stream, _) => stream,
            Self::Answered(channel) => channel.stream(),
        }
    }
}

/// A client that knows the key and waits for its session.
struct Waiting {
    peer: SocketAddr,
    channel: Channel,
}

/// The session that runs.
struct Active<'s> {
    peer: SocketAddr,
    key: [u8; 32],
    arrivals: Sender<Arrival>,
    thread: ScopedJoinHandle<'s, Result<u32, ChannelError>>,
}

struct Acceptor<'a, 's> {
    server: &'a Server,
    cancel: CancelToken,
    handshakes: VecDeque<Handshake>,
    waiting: VecDeque<Waiting>,
    active: Option<Active<'s>>,
    /// Whether accepting failed for want of descriptors: it is left alone for a round.
    is_paused: bool,
}

impl<'s> Acceptor<'_, 's> {
    fn wait(&mut self) {
        let mut sources: Vec<BorrowedFd<'_>> = Vec::new();
        if !self.is_paused {
            sources.push(self.server.listener.as_fd());
        }
        sources.extend(self.handshakes.iter().map(|handshake| handshake.state.stream().as_fd()));
        sources.extend(self.waiting.iter().map(|client| client.channel.stream().as_fd()));
        // An error here is one of the descriptors, which whoever owns it finds by reading.
        let _ = wait_any_readable(&sources, Some(ROUND_NS));
        self.is_paused = false;
    }

    fn accept(&mut self, lifetime: Lifetime) -> io::Result<()> {
        for _ in 0..MAX_HANDSHAKES {
            // accept(2) asks for a descriptor first, and lacks it where nobody is there, too.
            if !matches!(
                wait_any_readable(&[self.server.listener.as_fd()], Some(0)),
                Ok(Ready::Readable)
            ) {
                return Ok(());
            }
            match self.server.listener.accept() {
                // Small frames follow one another: none may wait for the answer to the one before.
                Ok((stream, _))
                    if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_ok() =>
                {
                    if self.handshakes.len() >= MAX_HANDSHAKES {
                        self.handshakes.pop_front();
                    }
                    let state = State::Begun(stream, Inbox::default());
                    self.handshakes.push_back(Handshake { since_ns: monotonic_ns(), state });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    // Else a connection that is gone already, or what befell it on its way (accept(2)).
                    if Errno::from_io_error(&error).is_some_and(|errno| SHORTAGES.contains(&errno))
                    {
                        let text = format!("cannot accept connections: {}", cause_text(&error));
                        *workers::lock(&self.server.shortage.0) = Some(text);
                        let frees_nothing = self.active.is_none() && self.waiting.is_empty();
                        if lifetime == Lifetime::Once && frees_nothing && self.handshakes.is_empty()
                        {
                            return Err(error);
                        }
                    }
                    self.handshakes.pop_front();
                    self.is_paused = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// One step of each handshake; whoever does anything wrong is gone without a word.
    fn advance_handshakes(&mut self) {
        for Handshake { since_ns, state } in std::mem::take(&mut self.handshakes) {
            let is_late = monotonic_ns().saturating_sub(since_ns) > HANDSHAKE_NS;
            let stays = match state {
                _ if is_late => None,
                State::Begun(stream, inbox) => self.first(stream, inbox),
                State::Answered(channel) => self.greeting(channel),
            };
            self.handshakes.extend(stays.map(|state| Handshake { since_ns, state }));
        }
    }

    /// Takes the first bytes of a connection: a proof of the session that runs, which gets it, or a
    /// message that was made with the key.
    fn first(&self, stream: TcpStream, mut inbox: Inbox) -> Option<State> {
        let is_open = matches!(inbox.fill(&stream, PROOF_BYTES), Ok(true));
        let Some(first) = inbox.first() else {
            return is_open.then_some(State::Begun(stream, inbox));
        };
        if first[..2] == PROOF_MARK.to_be_bytes() {
            let active = self.active.as_ref()?;
            let proof = Proof::decode(&first, &active.key)?;
            // A session that has just ended needs it no more.
            let _ = active.arrivals.send((proof, stream));
            return None;
        }
        let (answer, noise) = channel::answer(&first, &self.server.key).ok()?;
        // Fifty bytes fit into the buffer of a new connection.
        let written = (&stream).write(&answer).ok()?;
        let channel = Channel::of(stream, noise, inbox, self.cancel);
        (written == answer.len()).then_some(State::Answered(channel))
    }

    /// What a client says first once its handshake was answered: the version that it speaks.
    fn greeting(&mut self, mut channel: Channel) -> Option<State> {
        match channel.poll().ok()? {
            None => return Some(State::Answered(channel)),
            Some(Frame::Hello { version: VERSION }) => self.enqueue(channel),
            Some(Frame::Hello { .. }) => {
                refuse(&mut channel, "another version of flatout".to_owned());
            }
            Some(_) => {}
        }
        None
    }

    /// Puts a client at the end of the queue.
    fn enqueue(&mut self, mut channel: Channel) {
        let Ok(peer) = channel.stream().peer_addr() else { return };
        if self.waiting.len() >= MAX_WAITING {
            refuse(&mut channel, format!("busy, and {MAX_WAITING} wait already"));
            return;
        }
        self.waiting.push_back(Waiting { peer, channel });
        if self.active.is_some() {
            self.tell_position(self.waiting.len() - 1);
        }
    }

    fn tell_position(&mut self, index: usize) {
        let waiting = u16::try_from(index + 1).unwrap_or(u16::MAX);
        let _ = self.waiting[index].channel.send(&Frame::Waiting { waiting });
    }

    /// How the session ended, if it has.
    fn ended(&mut self) -> Option<(SocketAddr, Result<u32, ChannelError>)> {
        let active = self.active.take_if(|active| active.thread.is_finished())?;
        Some((active.peer, workers::join(active.thread)))
    }

    /// Starts the session of the client that has waited longest, if none runs.
    fn start_next<'e>(&mut self, scope: &'s Scope<'s, 'e>) -> io::Result<Option<SocketAddr>> {
        if self.active.is_some() {
            return Ok(None);
        }
        let Some(Waiting { peer, mut channel }) = self.waiting.pop_front() else { return Ok(None) };
        let key = random::<32>()?;
        let (arrivals, incoming) = mpsc::channel();
        let (start, begun) = mpsc::channel::<Session>();
        // Not counted: it coordinates, and sleeps while flows run.
        let session = move || begun.recv().map_err(|_| ChannelError::Cancelled)?.serve();
        let thread = thread::Builder::new().name("session".to_owned());
        let thread = match flatout_sys::thread::spawn(scope, thread, session) {
            Ok(thread) => thread,
            Err(error) => {
                refuse(&mut channel, format!("cannot start a thread: {}", cause_text(&error)));
                return Err(error);
            }
        };
        let (cancel, shortage) = (self.cancel, self.server.shortage());
        // Who takes it cannot be gone.
        let _ = start.send(Session { channel, key, arrivals: incoming, cancel, shortage });
        self.active = Some(Active { peer, key, arrivals, thread });
        (0..self.waiting.len()).for_each(|index| self.tell_position(index));
        Ok(Some(peer))
    }
}

fn refuse(channel: &mut Channel, text: String) {
    // Who does not hear it sees the end of the connection.
    let _ = channel.send(&Frame::Refused { text });
}
