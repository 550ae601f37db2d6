//! The far end: a listener that anybody may connect to, sessions side by side, and a queue of those
//! who know the key and come when it has as many as it serves at once.
//!
//! One thread does all handshakes and never waits for anybody (`server/acceptor.rs`); each session
//! has a thread of its own. What sessions have to know of one another: `server/occupancy.rs`.

mod acceptor;
pub(super) mod group;
pub(super) mod occupancy;

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

use flatout_sys::CancelToken;
use flatout_sys::socket::shared_udp;

use super::channel::ChannelError;
use super::session::{IDLE_NS, SESSION_NS};
use super::token::Key;
use acceptor::{Acceptor, refuse};
use group::PATIENCE_NS;

/// How long a connection may take to prove itself.
pub(super) const HANDSHAKE_NS: u64 = 10_000_000_000;
/// Clients that are served at once unless told otherwise.
pub const CLIENTS: u16 = 16;
/// Most that can be.
pub const MAX_CLIENTS: u16 = 256;
/// Clients that wait at once.
const MAX_WAITING: usize = 16;
/// How often a free port is looked for that is free for UDP, too.
const PORT_ATTEMPTS: u32 = 16;

/// How long the server lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// One session, or those of one group.
    Once,
    /// Until it is stopped.
    Forever,
}

impl Lifetime {
    /// How long a client may say nothing between tests. One that measures at another server beside it,
    /// as over loopback, does so for as long as a test takes.
    fn idle_ns(self) -> u64 {
        match self {
            Self::Once => PATIENCE_NS,
            Self::Forever => IDLE_NS,
        }
    }
}

/// Which clients are served at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// So many at most, each for itself.
    UpTo(u16),
    /// So many, whose tests begin at the same moment.
    Together(u16),
}

/// What a server tells who runs it.
pub enum Notice {
    /// A client's session begins, beside so many others.
    Begins(SocketAddr, usize),
    /// It has ended, after so many tests or for a reason.
    Ended(SocketAddr, Result<u32, ChannelError>),
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    /// Where proofs of streams of datagrams come; nothing is sent from here.
    datagrams: UdpSocket,
    key: Key,
    shortage: Shortage,
    /// The longest session.
    session_ns: u64,
}

/// When a server lacked something last, and what, on one line, as descriptors for connections: those who
/// wait for it cannot see that.
pub type Shortage = Arc<Mutex<Option<(u64, String)>>>;

impl Server {
    /// Listens at the first of `addresses` that can be had. A port that the kernel picks for TCP may be
    /// another program's of UDP.
    ///
    /// # Errors
    /// Those of socket(2), setsockopt(2), bind(2) and listen(2).
    pub fn bind(addresses: &[SocketAddr], key: Key) -> io::Result<Self> {
        let mut attempts = PORT_ATTEMPTS;
        let (listener, datagrams) = loop {
            let listener = TcpListener::bind(addresses)?;
            attempts -= 1;
            match shared_udp(listener.local_addr()?) {
                Ok(datagrams) => break (listener, datagrams),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
                Err(error) => return Err(error),
            }
        };
        listener.set_nonblocking(true)?;
        datagrams.set_nonblocking(true)?;
        let shortage = Shortage::default();
        Ok(Self { listener, datagrams, key, shortage, session_ns: SESSION_NS })
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
    /// The kernel has no random numbers, or no thread or descriptor for the one session.
    pub fn serve(
        &self,
        (lifetime, clients): (Lifetime, Clients),
        cancel: CancelToken,
        notice: &mut dyn FnMut(Notice),
    ) -> io::Result<()> {
        thread::scope(|scope| {
            let mut acceptor = Acceptor::new(self, (lifetime, clients), cancel);
            while !cancel.is_cancelled() {
                acceptor.wait();
                acceptor.accept()?;
                acceptor.advance_handshakes();
                acceptor.take_datagrams();
                acceptor.look_at_waiting();
                let mut has_ended = false;
                while let Some((peer, end)) = acceptor.ended() {
                    has_ended = true;
                    notice(Notice::Ended(peer, end));
                }
                if has_ended && acceptor.active.is_empty() && lifetime == Lifetime::Once {
                    break;
                }
                acceptor.gather();
                while let Some(peer) = acceptor.start_next(scope)? {
                    notice(Notice::Begins(peer, acceptor.active.len() - 1));
                }
            }
            for (_, channel) in &mut acceptor.waiting {
                refuse(channel, "the server ends".to_owned());
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
