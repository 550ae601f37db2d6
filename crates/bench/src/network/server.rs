//! The far end: a door that everybody may knock at, a line for those who know the key, and one
//! session at a time.
//!
//! One thread keeps the door and never waits for anybody; the session has a thread of its own.
//! Whoever has proved nothing costs a socket and at most 50 bytes, for two seconds.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, Scope, ScopedJoinHandle};

use flatout_sys::cancel::{CancelToken, wait_any_readable};
use flatout_sys::clock::monotonic_ns;

use super::channel::{self, Channel, ChannelError, Inbox};
use super::frame::Frame;
use super::session::{self, Arrival, Session};
use super::token::{KNOCK_MARK, Key, Knock, random};

/// How long a connection may take to prove itself.
pub const HANDSHAKE_NS: u64 = 2_000_000_000;
/// Connections at the door at once; one more sends the oldest away.
pub const MAX_GUESTS: usize = 256;
/// Clients in line at once.
pub const MAX_LINE: usize = 16;
/// How often the door is looked after when nothing happens there.
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
}

impl Server {
    /// Listens at `address`.
    ///
    /// # Errors
    /// Those of socket(2), bind(2) and listen(2).
    pub fn bind(address: SocketAddr, key: Key) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, key })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until its lifetime is over or the user stops it. No thread is left then.
    ///
    /// # Errors
    /// A thread cannot be started, or the kernel has no random numbers.
    pub fn serve(
        &self,
        lifetime: Lifetime,
        cancel: CancelToken,
        notice: &mut dyn FnMut(Notice),
    ) -> io::Result<()> {
        thread::scope(|scope| {
            let mut door = Door {
                server: self,
                cancel,
                guests: VecDeque::new(),
                line: VecDeque::new(),
                turn: None,
                is_paused: false,
            };
            while !cancel.is_cancelled() {
                door.wait();
                door.accept();
                door.hear_guests();
                door.hear_line();
                if let Some((peer, end)) = door.ended() {
                    notice(Notice::Ended(peer, end));
                    if lifetime == Lifetime::Once {
                        break;
                    }
                }
                if let Some(peer) = door.admit(scope)? {
                    notice(Notice::Begins(peer));
                }
            }
            door.close();
            Ok(())
        })
    }
}

/// A connection that has proved nothing yet, or a handshake that is half done.
struct Guest {
    stream: TcpStream,
    inbox: Inbox,
    since_ns: u64,
    channel: Option<Channel>,
}

/// A client who has proved that it knows the key.
struct Client {
    peer: SocketAddr,
    channel: Channel,
}

/// The client whose turn it is.
struct Turn<'s> {
    peer: SocketAddr,
    key: [u8; 32],
    arrivals: Sender<Arrival>,
    thread: ScopedJoinHandle<'s, Result<u32, ChannelError>>,
}

struct Door<'a, 's> {
    server: &'a Server,
    cancel: CancelToken,
    guests: VecDeque<Guest>,
    line: VecDeque<Client>,
    turn: Option<Turn<'s>>,
    /// Whether accepting failed for want of descriptors: it is left alone for a round.
    is_paused: bool,
}

/// What became of a guest.
enum Fate {
    Stays(Guest),
    Gone,
    /// A client that goes to the line.
    Client(Channel),
    /// A data connection of the session.
    Data(Knock, TcpStream),
}

impl<'s> Door<'_, 's> {
    fn wait(&mut self) {
        let mut sources: Vec<BorrowedFd<'_>> = Vec::new();
        if !self.is_paused {
            sources.push(self.server.listener.as_fd());
        }
        sources.extend(self.guests.iter().map(|guest| match &guest.channel {
            Some(channel) => channel.stream().as_fd(),
            None => guest.stream.as_fd(),
        }));
        sources.extend(self.line.iter().map(|client| client.channel.stream().as_fd()));
        // An error here is one of the descriptors, which whoever owns it finds by reading.
        let _ = wait_any_readable(&sources, Some(ROUND_NS));
        self.is_paused = false;
    }

    fn accept(&mut self) {
        for _ in 0..MAX_GUESTS {
            match self.server.listener.accept() {
                // Small frames follow one another: none may wait for the answer to the one before.
                Ok((stream, _))
                    if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_ok() =>
                {
                    if self.guests.len() >= MAX_GUESTS {
                        self.guests.pop_front();
                    }
                    let inbox = Inbox::default();
                    let since_ns = monotonic_ns();
                    self.guests.push_back(Guest { stream, inbox, since_ns, channel: None });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // No descriptors, or a connection that is gone already.
                    self.guests.pop_front();
                    self.is_paused = true;
                    return;
                }
            }
        }
    }

    fn hear_guests(&mut self) {
        for guest in std::mem::take(&mut self.guests) {
            match self.hear(guest) {
                Fate::Stays(guest) => self.guests.push_back(guest),
                Fate::Gone => {}
                Fate::Client(channel) => self.queue(channel),
                Fate::Data(knock, stream) => {
                    if let Some(turn) = &self.turn {
                        // A session that has just ended needs it no more.
                        let _ = turn.arrivals.send((knock, stream));
                    }
                }
            }
        }
    }

    /// One step of a guest; whoever does anything wrong is gone without a word.
    fn hear(&self, mut guest: Guest) -> Fate {
        if monotonic_ns().saturating_sub(guest.since_ns) > HANDSHAKE_NS {
            return Fate::Gone;
        }
        if let Some(mut channel) = guest.channel.take() {
            return match channel.poll() {
                Ok(None) => Fate::Stays(Guest { channel: Some(channel), ..guest }),
                Ok(Some(frame)) if session::speaks(&frame) => Fate::Client(channel),
                Ok(Some(Frame::Hello { .. })) => {
                    let text = "another version of flatout".to_owned();
                    let _ = channel.send(&Frame::Refused { text });
                    Fate::Gone
                }
                _ => Fate::Gone,
            };
        }
        let is_open = matches!(guest.inbox.fill(&guest.stream), Ok(true));
        let Some(first) = guest.inbox.first() else {
            return if is_open { Fate::Stays(guest) } else { Fate::Gone };
        };
        if first[..2] == KNOCK_MARK.to_be_bytes() {
            let key = self.turn.as_ref().map(|turn| turn.key);
            let knock = key.and_then(|key| Knock::decode(&first, &key));
            return knock.map_or(Fate::Gone, |knock| Fate::Data(knock, guest.stream));
        }
        self.shake(&first, guest).map_or(Fate::Gone, Fate::Stays)
    }

    /// Answers the first message of a handshake, if it was made with the key.
    fn shake(&self, first: &[u8], guest: Guest) -> Option<Guest> {
        use std::io::Write;
        let (answer, noise) = channel::answer(first, &self.server.key).ok()?;
        let mut to = &guest.stream;
        // Fifty bytes fit into the buffer of a new connection.
        (to.write(&answer).ok()? == answer.len()).then_some(())?;
        let stream = guest.stream.try_clone().ok()?;
        let channel = Channel::of(stream, noise, guest.inbox, self.cancel);
        Some(Guest { channel: Some(channel), inbox: Inbox::default(), ..guest })
    }

    /// Puts a client at the end of the line.
    fn queue(&mut self, mut channel: Channel) {
        let Ok(peer) = channel.stream().peer_addr() else { return };
        if self.line.len() >= MAX_LINE {
            let text = format!("busy, and {MAX_LINE} wait already");
            let _ = channel.send(&Frame::Refused { text });
            return;
        }
        self.line.push_back(Client { peer, channel });
        if self.turn.is_some() {
            let place = self.line.len() - 1;
            self.tell_place(place);
        }
    }

    fn tell_place(&mut self, place: usize) {
        let waiting = u16::try_from(place + 1).unwrap_or(u16::MAX);
        let _ = self.line[place].channel.send(&Frame::Waiting { waiting });
    }

    /// Clients in line may only wait or leave.
    fn hear_line(&mut self) {
        self.line.retain_mut(|client| matches!(client.channel.poll(), Ok(None)));
    }

    /// How the turn ended, if it has.
    fn ended(&mut self) -> Option<(SocketAddr, Result<u32, ChannelError>)> {
        let turn = self.turn.take_if(|turn| turn.thread.is_finished())?;
        let end = turn.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some((turn.peer, end))
    }

    /// Gives the next in line its turn, if nobody has one.
    fn admit<'e>(&mut self, scope: &'s Scope<'s, 'e>) -> io::Result<Option<SocketAddr>> {
        if self.turn.is_some() {
            return Ok(None);
        }
        let Some(Client { peer, channel }) = self.line.pop_front() else { return Ok(None) };
        let key = random::<32>()?;
        let (arrivals, incoming) = mpsc::channel();
        let mut session = Session { channel, key, arrivals: incoming, cancel: self.cancel };
        let thread = thread::Builder::new()
            .name("session".to_owned())
            .spawn_scoped(scope, move || session.serve())?;
        self.turn = Some(Turn { peer, key, arrivals, thread });
        (0..self.line.len()).for_each(|place| self.tell_place(place));
        Ok(Some(peer))
    }

    /// Tells who still waits that there will be no turn.
    fn close(&mut self) {
        for client in &mut self.line {
            let text = "the server ends".to_owned();
            let _ = client.channel.send(&Frame::Refused { text });
        }
    }
}
