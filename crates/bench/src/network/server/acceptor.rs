//! The thread that does what nobody may wait for: it accepts connections, does their handshakes,
//! keeps the queue, hands data connections to the sessions that they prove, and starts sessions.
//!
//! Whoever has proved nothing costs a socket and at most 50 bytes, for ten seconds.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, Scope, ScopedJoinHandle};

use flatout_io::cause_text;
use flatout_sys::cancel::{Ready, wait_any_readable};
use flatout_sys::{CancelToken, monotonic_ns};
use rustix::io::Errno;

use super::group::Group;
use super::occupancy::Occupancy;
use super::{Clients, HANDSHAKE_NS, Lifetime, MAX_WAITING, Server};
use crate::network::channel::{self, Channel, ChannelError, Inbox};
use crate::network::frame::{Frame, VERSION};
use crate::network::session::{Arrival, Session};
use crate::network::spec::MAX_FLOWS;
use crate::network::token::{PROOF_BYTES, PROOF_MARK, Proof, random};
use crate::workers;

/// Handshakes at once; one more ends the oldest.
const MAX_HANDSHAKES: usize = 256;
/// Datagrams that are looked at before everything else gets its turn.
const MAX_DATAGRAMS: usize = 256;
/// What accept(2) answers where this machine has no room for a connection.
const SHORTAGES: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
/// How often handshakes are looked at when nothing comes.
const ROUND_NS: u64 = 50_000_000;

/// How far the handshake of a connection has come that has proved nothing yet.
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

/// A session that runs.
pub(super) struct Active<'s> {
    peer: SocketAddr,
    key: [u8; 32],
    arrivals: SyncSender<(Proof, Arrival)>,
    thread: ScopedJoinHandle<'s, Result<u32, ChannelError>>,
}

pub(super) struct Acceptor<'a, 's> {
    server: &'a Server,
    lifetime: Lifetime,
    clients: Clients,
    /// Where clients are measured together, those that are now, and how many of them are not yet.
    group: Option<(Arc<Group>, u16)>,
    cancel: CancelToken,
    occupancy: Occupancy,
    /// Each with the time at which it began.
    handshakes: VecDeque<(u64, State)>,
    /// Clients that know the key and wait for their sessions.
    pub(super) waiting: VecDeque<(SocketAddr, Channel)>,
    pub(super) active: Vec<Active<'s>>,
    /// Whether accepting failed for want of descriptors: it is left alone for a round.
    is_paused: bool,
}

impl<'a, 's> Acceptor<'a, 's> {
    /// One that nobody has connected to.
    pub(super) fn new(
        server: &'a Server,
        (lifetime, clients): (Lifetime, Clients),
        cancel: CancelToken,
    ) -> Self {
        Self {
            server,
            lifetime,
            clients,
            group: None,
            cancel,
            occupancy: Occupancy::default(),
            handshakes: VecDeque::new(),
            waiting: VecDeque::new(),
            active: Vec::new(),
            is_paused: false,
        }
    }

    /// Waits until there is something to do, for a round at most.
    pub(super) fn wait(&mut self) {
        let mut sources: Vec<BorrowedFd<'_>> = vec![self.server.datagrams.as_fd()];
        if !self.is_paused {
            sources.push(self.server.listener.as_fd());
        }
        sources.extend(self.handshakes.iter().map(|(_, state)| state.stream().as_fd()));
        sources.extend(self.waiting.iter().map(|(_, channel)| channel.stream().as_fd()));
        // An error here is one of the descriptors, which whoever owns it finds by reading.
        let _ = wait_any_readable(&sources, Some(ROUND_NS));
        self.is_paused = false;
    }

    /// Takes the connections that have come.
    pub(super) fn accept(&mut self) -> io::Result<()> {
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
                    self.handshakes.push_back((monotonic_ns(), state));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    // Else a connection that is gone already, or what befell it on its way (accept(2)).
                    if Errno::from_io_error(&error).is_some_and(|errno| SHORTAGES.contains(&errno))
                    {
                        let text = format!("cannot accept connections: {}", cause_text(&error));
                        *workers::lock(&self.server.shortage) = Some((monotonic_ns(), text));
                        let frees_nothing = self.active.is_empty() && self.waiting.is_empty();
                        let is_one = self.lifetime == Lifetime::Once;
                        if self.handshakes.pop_front().is_none() && is_one && frees_nothing {
                            return Err(error);
                        }
                    }
                    self.is_paused = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// One step of each handshake; whoever does anything wrong is gone without a word.
    pub(super) fn advance_handshakes(&mut self) {
        for (since_ns, state) in std::mem::take(&mut self.handshakes) {
            let is_late = monotonic_ns().saturating_sub(since_ns) > HANDSHAKE_NS;
            let stays = match state {
                _ if is_late => None,
                State::Begun(stream, inbox) => self.first(stream, inbox),
                State::Answered(channel) => self.greeting(channel),
            };
            self.handshakes.extend(stays.map(|state| (since_ns, state)));
        }
    }

    /// Takes the first bytes of a connection: a proof of a session that runs, which gets it, or a
    /// message that was made with the key.
    fn first(&self, stream: TcpStream, mut inbox: Inbox) -> Option<State> {
        let is_open = matches!(inbox.fill(&stream, PROOF_BYTES), Ok(true));
        let Some(first) = inbox.first() else {
            return is_open.then_some(State::Begun(stream, inbox));
        };
        if first[..2] == PROOF_MARK.to_be_bytes() {
            let (proof, active) = self.proved(&first)?;
            // A session that has just ended needs it no more; one that has enough of them gets none.
            let _ = active.arrivals.try_send((proof, Arrival::Stream(stream)));
            return None;
        }
        let (answer, noise) = channel::answer(&first, &self.server.key).ok()?;
        // Fifty bytes fit into the buffer of a new connection.
        let written = (&stream).write(&answer).ok()?;
        let channel = Channel::of(stream, noise, inbox, self.cancel);
        (written == answer.len()).then_some(State::Answered(channel))
    }

    /// The session that a proof is of.
    fn proved(&self, bytes: &[u8]) -> Option<(Proof, &Active<'s>)> {
        self.active.iter().find_map(|active| Some((Proof::decode(bytes, &active.key)?, active)))
    }

    /// Tells sessions who has proved streams of datagrams. Nobody is answered.
    pub(super) fn take_datagrams(&self) {
        let mut bytes = [0; PROOF_BYTES + 1];
        for _ in 0..MAX_DATAGRAMS {
            match self.server.datagrams.recv_from(&mut bytes) {
                Ok((length, peer)) => {
                    if let Some((proof, active)) = self.proved(&bytes[..length]) {
                        // It comes again until the session has taken it.
                        let _ = active.arrivals.try_send((proof, Arrival::Datagrams(peer)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // None is left, or one of those errors that say nothing about the next one (udp(7)).
                Err(_) => return,
            }
        }
    }

    /// What a client says first once its handshake was answered: the version that it speaks.
    fn greeting(&mut self, mut channel: Channel) -> Option<State> {
        match channel.poll().ok()? {
            None => return Some(State::Answered(channel)),
            Some(Frame::Hello { version: VERSION }) => self.enqueue(channel),
            Some(Frame::Hello { version }) => {
                let text = format!(
                    "another version of flatout: the client speaks version {version} of the protocol, the server {VERSION}"
                );
                refuse(&mut channel, text);
            }
            Some(_) => {}
        }
        None
    }

    /// Puts a client at the end of the queue.
    fn enqueue(&mut self, mut channel: Channel) {
        let Ok(peer) = channel.stream().peer_addr() else { return };
        let most = match self.clients {
            Clients::UpTo(_) => MAX_WAITING,
            // The next ones of those that are measured together.
            Clients::Together(clients) => MAX_WAITING.max(clients.into()),
        };
        if self.waiting.len() >= most {
            refuse(&mut channel, format!("busy, and {} wait already", self.waiting.len()));
            return;
        }
        self.waiting.push_back((peer, channel));
        if matches!(self.clients, Clients::Together(_)) || !self.has_room() {
            self.tell_positions();
        }
    }

    /// Clients that wait may only wait or leave; the others are told of those that have left.
    pub(super) fn look_at_waiting(&mut self) {
        let before = self.waiting.len();
        self.waiting.retain_mut(|(_, channel)| matches!(channel.poll(), Ok(None)));
        if self.waiting.len() < before {
            self.tell_positions();
        }
    }

    /// Tells clients that wait how many do, as far as each is concerned. Whoever takes in nothing has left.
    fn tell_positions(&mut self) {
        let (clients, count, mut index) = (self.clients, self.waiting.len(), 0);
        self.waiting.retain_mut(|(_, channel)| {
            index += 1;
            let (waiting, together) = match clients {
                Clients::UpTo(_) => (index, 0),
                Clients::Together(clients) => (count, clients),
            };
            let waiting = u16::try_from(waiting).unwrap_or(u16::MAX);
            channel.send_now(&Frame::Waiting { waiting, together }).is_ok()
        });
    }

    /// Whether a session may begin.
    fn has_room(&self) -> bool {
        match self.clients {
            Clients::UpTo(most) => self.active.len() < most.into(),
            Clients::Together(_) => self.group.as_ref().is_some_and(|(_, missing)| *missing > 0),
        }
    }

    /// Lets clients that are measured together begin once all of them are there, and those before them
    /// have gone.
    pub(super) fn gather(&mut self) {
        if let Clients::Together(clients) = self.clients
            && self.active.is_empty()
        {
            let are_there = self.waiting.len() >= clients.into();
            self.group = are_there.then(|| (Arc::new(Group::new(clients)), clients));
        }
    }

    /// How a session ended that has.
    pub(super) fn ended(&mut self) -> Option<(SocketAddr, Result<u32, ChannelError>)> {
        let index = self.active.iter().position(|active| active.thread.is_finished())?;
        let active = self.active.remove(index);
        Some((active.peer, workers::join(active.thread)))
    }

    /// Starts the session of the client that has waited longest, if there is room for it.
    pub(super) fn start_next<'e>(
        &mut self,
        scope: &'s Scope<'s, 'e>,
    ) -> io::Result<Option<SocketAddr>> {
        if !self.has_room() {
            return Ok(None);
        }
        let Some((peer, mut channel)) = self.waiting.pop_front() else { return Ok(None) };
        let key = random::<32>()?;
        let (arrivals, arrived) = mpsc::sync_channel(2 * MAX_FLOWS);
        let (start, begun) = mpsc::channel::<Session>();
        // Not counted: it coordinates, and sleeps while flows run.
        let session = move || begun.recv().map_err(|_| ChannelError::Cancelled)?.serve();
        let thread = thread::Builder::new().name("session".to_owned());
        let thread = match flatout_sys::thread::spawn(scope, thread, session) {
            Ok(thread) => thread,
            Err(error) => {
                refuse(&mut channel, format!("cannot start a thread: {}", cause_text(&error)));
                // Others are served, and go on.
                return if self.lifetime == Lifetime::Once { Err(error) } else { Ok(None) };
            }
        };
        // Who takes it cannot be gone.
        let _ = start.send(Session {
            channel,
            key,
            arrivals: arrived,
            cancel: self.cancel,
            idle_ns: self.lifetime.idle_ns(),
            most_ns: self.server.session_ns,
            shortage: self.server.shortage(),
            occupancy: self.occupancy.clone(),
            group: self.group.as_mut().map(|(group, missing)| {
                *missing -= 1;
                group.clone()
            }),
        });
        self.active.push(Active { peer, key, arrivals, thread });
        if !self.has_room() {
            self.tell_positions();
        }
        Ok(Some(peer))
    }
}

/// Says why a client is not served.
pub(super) fn refuse(channel: &mut Channel, text: String) {
    // Who does not hear it sees the end of the connection.
    let _ = channel.send_now(&Frame::Refused { text });
}
