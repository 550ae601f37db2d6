//! The sessions of a run: one with the server that was named, or, over loopback, one for each
//! family of addresses, with servers of this process's own.

use std::cell::{RefCell, RefMut};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread::{self, Scope};

use flatout_io::cause_text;
use flatout_measure::TrialError;
use flatout_sys::CancelToken;
use flatout_sys::socket::interface;

use super::client::{Client, QUEUE_NS, Report};
use super::server::{Clients, Lifetime, Server, Shortage};
use super::spec::Spec;
use super::token::{self, Key};
use super::topology::Family;
use super::{Options, PORT, address};
use crate::workers::lock;
use crate::{Error, Extent};

/// The open sessions.
pub struct Sessions {
    clients: Vec<RefCell<Client>>,
    /// Why there is none over IPv6 although there should be.
    missing: Option<String>,
}

/// Opens the sessions, does `work` with them, and ends them and the servers that were started.
///
/// # Errors
/// `Network`: there is no server, or it does not know the key.
pub fn with<T>(options: &Options, work: impl FnOnce(&Sessions) -> T) -> Result<T, Error> {
    let stop = CancelToken::manual();
    thread::scope(|scope| {
        let result = Sessions::open(options, &|address| start_server(scope, address, stop));
        let result = result.map(|sessions| {
            let result = work(&sessions);
            sessions.clients.into_iter().for_each(|client| client.into_inner().finish());
            result
        });
        // Servers whose client never came must not be waited for.
        stop.cancel();
        result
    })
}

/// A server of this process's own: where it is, which key it knows, and what it lacks.
type Own = (SocketAddr, Key, Shortage);

/// Starts a server for one session.
fn start_server<'s>(
    scope: &'s Scope<'s, '_>,
    address: IpAddr,
    stop: CancelToken,
) -> Result<Own, Error> {
    let refuse = |why: &str| Error::Network(format!("cannot listen at {address}: {why}"));
    let broken = |error: io::Error| refuse(&cause_text(&error));
    // As in a network namespace in which nobody brought it up. Where somebody took it down again,
    // listening succeeds, and nothing arrives.
    if matches!(interface::bearing(address, 0), Ok(None)) {
        return Err(refuse("the loopback interface (lo) is down or lacks it"));
    }
    let key = Key(token::random::<32>().map_err(broken)?);
    let server = Server::bind(&[(address, 0).into()], key.clone()).map_err(broken)?;
    let (at, shortage) = (server.address().map_err(broken)?, server.shortage());
    let serve = move || server.serve((Lifetime::Once, Clients::UpTo(1)), stop, &mut |_| ());
    let thread = thread::Builder::new().name("server".to_owned());
    // Not counted: it accepts connections.
    flatout_sys::thread::spawn(scope, thread, serve).map_err(broken)?;
    Ok((at, key, shortage))
}

fn connect(
    options: &Options,
    addresses: &[SocketAddr],
    key: &Key,
) -> Result<RefCell<Client>, Error> {
    let mut busy = |text: &str| {
        if let Some(notice) = options.run.notice {
            notice(text);
        }
    };
    let patience_ns = options.run.time_ns.unwrap_or(QUEUE_NS).min(QUEUE_NS);
    let client = Client::connect(addresses, key, options.run.cancel, patience_ns, &mut busy);
    client.map(RefCell::new).map_err(Error::Network)
}

impl Sessions {
    fn open(
        options: &Options,
        start_server: &dyn Fn(IpAddr) -> Result<Own, Error>,
    ) -> Result<Self, Error> {
        if let Some(target) = &options.connect {
            let port = options.port.unwrap_or(PORT);
            let addresses = address::resolve(target, port, options.family());
            let key = options.key.clone().unwrap_or_else(Key::open);
            let client = connect(options, &addresses.map_err(Error::Network)?, &key)?;
            return Ok(Self { clients: vec![client], missing: None });
        }
        let own = |address: IpAddr| {
            let (at, key, shortage) = start_server(address)?;
            // What it says to strangers is less than it knows.
            connect(options, &[at], &key).map_err(|error| match &*lock(&shortage) {
                Some((_, shortage)) => Error::Network(format!("the server at {at} {shortage}")),
                None => error,
            })
        };
        let first = match options.family() {
            Some(Family::V6) => own(Ipv6Addr::LOCALHOST.into()),
            _ => own(Ipv4Addr::LOCALHOST.into()),
        };
        let mut sessions = Self { clients: vec![first?], missing: None };
        let is_whole = options.run.extent == Extent::Full && options.selection.is_empty();
        if is_whole && options.family().is_none() {
            match own(Ipv6Addr::LOCALHOST.into()) {
                Ok(second) => sessions.clients.push(second),
                Err(error) => sessions.missing = Some(error.to_string()),
            }
        }
        Ok(sessions)
    }

    /// The session that most rows use.
    pub fn first(&self) -> RefMut<'_, Client> {
        self.clients[0].borrow_mut()
    }

    /// The family of the second session, be it open or missing.
    pub fn second_family(&self) -> Option<Family> {
        (self.clients.len() > 1 || self.missing.is_some()).then_some(Family::V6)
    }

    /// Keeps all sessions from being idle for too long.
    pub fn keep_alive(&self) {
        self.clients.iter().for_each(|client| client.borrow_mut().keep_alive());
    }

    /// Runs a test in the session of a family, and keeps the others from being idle.
    ///
    /// # Errors
    /// Those of the test; `Unsupported` where there is no such session.
    pub fn run(&self, family: Family, spec: Spec) -> Result<Report, TrialError> {
        let all = self.clients.iter().map(RefCell::borrow_mut);
        let (mut own, others): (Vec<_>, Vec<_>) = all.partition(|client| client.family() == family);
        others.into_iter().for_each(|mut other| other.keep_alive());
        let missing = || self.missing.clone().unwrap_or("there is no such session".to_owned());
        own.first_mut().ok_or_else(|| TrialError::Unsupported(missing()))?.run(spec)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;
    use crate::area::Run;
    use crate::tests::waiting;

    #[test]
    fn flows_over_loopback_tell_that_they_waited() {
        let usual = Options::augment_args(Command::new("network")).get_matches_from(["network"]);
        let options = Options {
            run: Run { extent: Extent::Quick, ..Run::default() },
            ..Options::from_arg_matches(&usual).unwrap()
        };
        let spec = Spec { warm_ns: 1_000_000, window_ns: 10_000_000, ..Spec::one_stream() };
        let spec = Spec { tail_ns: 50_000_000, ..spec };
        let run = || {
            with(&options, |sessions| sessions.first().run(spec).map(drop).unwrap()).unwrap();
        };
        let test = "network::sessions::tests::flows_over_loopback_tell_that_they_waited";
        waiting::is_seen(test, vec![Box::new(run)]);
    }
}
