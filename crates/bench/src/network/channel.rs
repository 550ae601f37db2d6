//! The control channel: frames over TCP, encrypted and authenticated with Noise
//! (`NNpsk0_25519_ChaChaPoly_BLAKE2s`, the token's key as the pre-shared one).
//!
//! A frame on the wire is two bytes of length and at most 4096 bytes. Every wait has a deadline.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use flatout_io::cause_text;
use flatout_sys::cancel::wait_readable;
use flatout_sys::{CancelToken, monotonic_ns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use snow::{Builder, HandshakeState, TransportState};

use super::frame::{Frame, MAX_FRAME_BYTES, TAG_BYTES};
use super::session::SESSION_OVER;
use super::token::{Key, PROOF_BYTES};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"flatout network 1";
/// Both messages of the handshake: a public key and a tag.
const SHAKE_BYTES: usize = 48;
/// Longest frame with its length.
const LONGEST: usize = MAX_FRAME_BYTES + 2;
/// How long a frame may take to be handed to the kernel.
const SEND_NS: u64 = 2_000_000_000;
/// How often a wait asks whether the user wants to stop.
const ASK_NS: u64 = 50_000_000;

/// Why there is no next frame, or nothing came of a test.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The peer closed the connection.
    #[error("the other end closed the connection")]
    Closed,
    /// Nothing came in time.
    #[error("the other end did not answer in {0} ms")]
    Silent(u64),
    /// What came is no frame of this protocol, or not encrypted with the key.
    #[error("the other end sent what is no frame of this protocol")]
    Garbage,
    /// The user wants to stop.
    #[error("interrupted")]
    Cancelled,
    /// Those with whom this client was measured together have enough, or are gone.
    #[error("the other clients have gone")]
    OthersLeft,
    /// The other end refused, and why.
    #[error("the other end refused: {0}")]
    Refused(String),
    /// This end could not do it.
    #[error("{0}")]
    Failed(String),
    /// The kernel of an end has no such call, or denies it.
    #[error("{0}")]
    Unsupported(String),
    /// The two ends no longer know what the other one does: the session is over.
    #[error("{0}")]
    Broken(String),
    /// The network failed.
    #[error("the control connection failed: {}", cause_text(.0))]
    Io(#[from] io::Error),
}

/// Collects bytes until a whole message is there.
#[derive(Debug, Default)]
pub struct Inbox(Vec<u8>);

impl Inbox {
    /// Reads what is there without waiting, until it holds `most` bytes. False at the end of the
    /// connection.
    ///
    /// Errors: those of recv(2) but `WouldBlock`.
    pub fn fill(&mut self, stream: &TcpStream, most: usize) -> io::Result<bool> {
        let mut bytes = [0; LONGEST];
        let room = most.min(LONGEST).saturating_sub(self.0.len());
        if room == 0 {
            return Ok(true);
        }
        let mut stream = stream;
        match stream.read(&mut bytes[..room]) {
            Ok(0) => Ok(false),
            Ok(length) => {
                self.0.extend_from_slice(&bytes[..length]);
                Ok(true)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// The next message without its length, if it is whole.
    ///
    /// Errors: its length is beyond the limit.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, ChannelError> {
        let Some((head, rest)) = self.0.split_first_chunk::<2>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*head));
        if !(TAG_BYTES..=MAX_FRAME_BYTES).contains(&length) {
            return Err(ChannelError::Garbage);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let message = rest[..length].to_vec();
        self.0.drain(..2 + length);
        Ok(Some(message))
    }

    /// As [`Inbox::take`], after a look at what has arrived.
    fn poll(&mut self, stream: &TcpStream) -> Result<Option<Vec<u8>>, ChannelError> {
        if let Some(message) = self.take()? {
            return Ok(Some(message));
        }
        let is_open = self.fill(stream, LONGEST)?;
        match self.take()? {
            None if !is_open => Err(ChannelError::Closed),
            message => Ok(message),
        }
    }

    /// The next message, waiting for it at most `wait_ns`.
    fn wait(
        &mut self,
        stream: &TcpStream,
        cancel: CancelToken,
        wait_ns: u64,
    ) -> Result<Vec<u8>, ChannelError> {
        let deadline_ns = monotonic_ns().saturating_add(wait_ns);
        loop {
            if cancel.is_cancelled() {
                return Err(ChannelError::Cancelled);
            }
            if let Some(message) = self.poll(stream)? {
                return Ok(message);
            }
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                return Err(ChannelError::Silent(wait_ns / 1_000_000));
            }
            wait_readable(stream.as_fd(), Some(ASK_NS.min(left_ns)))?;
        }
    }

    /// The first bytes of a connection, as many as a proof or the first message of a handshake
    /// has; the rest stays.
    pub fn first(&mut self) -> Option<Vec<u8>> {
        (self.0.len() >= PROOF_BYTES).then(|| self.0.drain(..PROOF_BYTES).collect())
    }
}

/// One end of an open channel.
#[derive(Debug)]
pub struct Channel {
    stream: TcpStream,
    noise: TransportState,
    inbox: Inbox,
    cancel: CancelToken,
}

fn builder(key: &Key) -> Result<Builder<'_>, snow::Error> {
    Builder::new(PATTERN.parse()?).prologue(PROLOGUE)?.psk(0, &key.0)
}

/// The server's side of a handshake: what to answer to the first message, and the channel's state.
///
/// Errors: the message was not made with the key. Nothing is answered then.
pub fn answer(first: &[u8], key: &Key) -> Result<(Vec<u8>, TransportState), ChannelError> {
    let answer = || -> Result<_, snow::Error> {
        let mut noise = builder(key)?.build_responder()?;
        let mut payload = [0; MAX_FRAME_BYTES];
        noise.read_message(&first[2..], &mut payload)?;
        let message = message(&mut noise)?;
        Ok((message, noise.into_transport_mode()?))
    };
    if first.get(..2) != Some(&(SHAKE_BYTES as u16).to_be_bytes()[..]) {
        return Err(ChannelError::Garbage);
    }
    answer().map_err(|_| ChannelError::Garbage)
}

fn message(noise: &mut HandshakeState) -> Result<Vec<u8>, snow::Error> {
    let mut message = [0; MAX_FRAME_BYTES];
    let length = noise.write_message(&[], &mut message)?;
    Ok([&(length as u16).to_be_bytes()[..], &message[..length]].concat())
}

impl Channel {
    /// Opens a channel as the client, over a connection that does not block.
    ///
    /// Errors: the server hangs up, which it does without a word where the key is another one, or
    /// does not answer by `deadline_ns`.
    pub fn open(
        stream: TcpStream,
        key: &Key,
        cancel: CancelToken,
        deadline_ns: u64,
    ) -> Result<Self, ChannelError> {
        let broken = |_| ChannelError::Garbage;
        let mut noise = builder(key).and_then(Builder::build_initiator).map_err(broken)?;
        let first = message(&mut noise).map_err(broken)?;
        send_all(&stream, &first, SEND_NS)?;
        let mut inbox = Inbox::default();
        let answer = inbox.wait(&stream, cancel, deadline_ns.saturating_sub(monotonic_ns()))?;
        noise.read_message(&answer, &mut [0; MAX_FRAME_BYTES]).map_err(broken)?;
        let noise = noise.into_transport_mode().map_err(broken)?;
        Ok(Self { stream, noise, inbox, cancel })
    }

    /// A channel whose handshake is over.
    pub fn of(stream: TcpStream, noise: TransportState, inbox: Inbox, cancel: CancelToken) -> Self {
        Self { stream, noise, inbox, cancel }
    }

    /// The connection below.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a frame.
    ///
    /// Errors: the connection is broken, or takes nothing for two seconds.
    pub fn send(&mut self, frame: &Frame) -> Result<(), ChannelError> {
        self.send_within(frame, SEND_NS)
    }

    /// As [`Channel::send`], without waiting: the end of a connection that does not take it at once.
    pub fn send_now(&mut self, frame: &Frame) -> Result<(), ChannelError> {
        self.send_within(frame, 0)
    }

    fn send_within(&mut self, frame: &Frame, wait_ns: u64) -> Result<(), ChannelError> {
        let mut message = [0; LONGEST];
        let length = self
            .noise
            .write_message(&frame.encode(), &mut message[2..])
            .map_err(|_| ChannelError::Garbage)?;
        message[..2].copy_from_slice(&(length as u16).to_be_bytes());
        send_all(&self.stream, &message[..2 + length], wait_ns)
    }

    /// Takes a frame that has arrived as a whole, without waiting.
    ///
    /// Errors: the connection has ended, or holds what is no frame.
    pub fn poll(&mut self) -> Result<Option<Frame>, ChannelError> {
        let message = self.inbox.poll(&self.stream)?;
        message.map(|message| self.decode(&message)).transpose()
    }

    fn decode(&mut self, message: &[u8]) -> Result<Frame, ChannelError> {
        let mut plain = [0; MAX_FRAME_BYTES];
        let length =
            self.noise.read_message(message, &mut plain).map_err(|_| ChannelError::Garbage)?;
        Frame::decode(&plain[..length]).ok_or(ChannelError::Garbage)
    }

    /// The next frame, waiting for it at most `wait_ns`. That the other end will not or cannot is an
    /// error.
    pub fn receive(&mut self, wait_ns: u64) -> Result<Frame, ChannelError> {
        let message = self.inbox.wait(&self.stream, self.cancel, wait_ns)?;
        match self.decode(&message)? {
            Frame::Refused { text } if text == SESSION_OVER => Err(ChannelError::Broken(text)),
            Frame::Refused { text } => Err(ChannelError::Refused(text)),
            Frame::Unsupported { text } => {
                Err(ChannelError::Unsupported(format!("the other end: {text}")))
            }
            frame => Ok(frame),
        }
    }
}

/// Sends all bytes over a connection that does not block.
fn send_all(stream: &TcpStream, mut bytes: &[u8], wait_ns: u64) -> Result<(), ChannelError> {
    let deadline_ns = monotonic_ns().saturating_add(wait_ns);
    while !bytes.is_empty() {
        let mut to = stream;
        match to.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if monotonic_ns() >= deadline_ns {
                    return Err(ChannelError::Silent(wait_ns / 1_000_000));
                }
                let mut waits = [PollFd::new(stream, PollFlags::OUT)];
                let _ = poll(&mut waits, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 }));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        (near, far)
    }

    fn soon() -> u64 {
        monotonic_ns() + 5_000_000_000
    }

    fn first_of(stream: &TcpStream, inbox: &mut Inbox) -> Vec<u8> {
        loop {
            if let Some(first) = inbox.first() {
                return first;
            }
            wait_readable(stream.as_fd(), None).unwrap();
            assert!(inbox.fill(stream, PROOF_BYTES).unwrap(), "the client is there");
        }
    }

    /// Both ends of an open channel.
    fn channels() -> (Channel, Channel) {
        let (near, far) = pair();
        let cancel = CancelToken::manual();
        std::thread::scope(|scope| {
            let client =
                scope.spawn(|| Channel::open(near, &Key::of("k"), cancel, soon()).unwrap());
            let mut inbox = Inbox::default();
            let first = first_of(&far, &mut inbox);
            let (message, noise) = answer(&first, &Key::of("k")).unwrap();
            send_all(&far, &message, SEND_NS).unwrap();
            (client.join().unwrap(), Channel::of(far, noise, inbox, cancel))
        })
    }

    #[test]
    fn frames_go_both_ways_in_order() {
        let (mut client, mut server) = channels();
        for number in 0..50 {
            client.send(&Frame::Ping { number }).unwrap();
        }
        for number in 0..50 {
            assert_eq!(server.receive(1_000_000_000).unwrap(), Frame::Ping { number });
        }
        server.send(&Frame::Refused { text: "no".to_owned() }).unwrap();
        let error = client.receive(1_000_000_000).unwrap_err();
        assert_eq!(error.to_string(), "the other end refused: no");
        assert!(matches!(client.receive(1_000_000), Err(ChannelError::Silent(1))));
        drop(server);
        assert!(matches!(client.receive(1_000_000_000), Err(ChannelError::Closed)));
    }

    #[test]
    fn who_takes_in_nothing_is_not_waited_for() {
        let (_client, mut server) = channels();
        let frame = Frame::Refused { text: "x".repeat(200) };
        let error = (0..1_000_000).find_map(|_| server.send_now(&frame).err());
        assert!(matches!(error, Some(ChannelError::Silent(0))), "{error:?}");
    }

    #[test]
    fn a_wrong_key_gets_no_answer() {
        let (near, far) = pair();
        let cancel = CancelToken::manual();
        let client = std::thread::spawn(move || {
            Channel::open(near, &Key::of("another"), cancel, soon()).unwrap_err()
        });
        let first = first_of(&far, &mut Inbox::default());
        assert!(answer(&first, &Key::of("k")).is_err());
        drop(far);
        assert!(matches!(client.join().unwrap(), ChannelError::Closed | ChannelError::Io(_)));
    }

    #[test]
    fn a_replayed_handshake_proves_nothing() {
        let (near, far) = pair();
        let cancel = CancelToken::manual();
        let thief = std::thread::scope(|scope| {
            let client = scope.spawn(|| Channel::open(near, &Key::of("k"), cancel, soon()));
            let first = first_of(&far, &mut Inbox::default());
            drop(far);
            assert!(client.join().unwrap().is_err());
            first
        });
        // The server answers, but who has only recorded the message cannot go on from there.
        let (_, mut noise) = answer(&thief, &Key::of("k")).unwrap();
        let forged = [0_u8; 64];
        assert!(noise.read_message(&forged, &mut [0; 128]).is_err());
    }

    #[test]
    fn what_is_no_frame_ends_the_channel() {
        let (client, mut server) = channels();
        let mut raw = client.stream();
        raw.write_all(&[0, 20]).unwrap();
        raw.write_all(&[1; 20]).unwrap();
        assert!(matches!(server.receive(1_000_000_000), Err(ChannelError::Garbage)));
        let (client, mut server) = channels();
        let mut raw = client.stream();
        raw.write_all(&[0xff, 0xff]).unwrap();
        assert!(matches!(server.receive(1_000_000_000), Err(ChannelError::Garbage)));
        let (client, mut server) = channels();
        let mut raw = client.stream();
        raw.write_all(&[0, 100, 1, 2]).unwrap();
        drop(client);
        assert!(matches!(server.receive(1_000_000_000), Err(ChannelError::Closed)), "cut short");
    }
}
