//! Network: bytes per second and round trips over TCP and UDP, between this machine and another
//! that runs `flatout serve`, or over loopback.
//!
//! `client.rs` and `server.rs` are the two ends, `channel.rs` what they say to each other,
//! `flow.rs` one test as either end runs it. Which rows there are stands in `row.rs`, what a trial
//! becomes in `sample.rs`, what it is held against in `finish.rs`. docs/network.md explains the
//! protocol and each figure.

pub mod account;
pub mod bottleneck;
pub mod ceiling;
pub mod channel;
pub mod client;
mod finish;
pub mod flow;
pub mod frame;
mod memcpy;
mod row;
mod sample;
mod sender;
pub mod server;
pub mod session;
pub mod spec;
pub mod token;
mod wire;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;

use flatout_measure::case::{Case, Plain, Sample, Trial, TrialError};
use flatout_measure::record::{Chart, Outcome};
use flatout_measure::row::Unit;
use flatout_measure::sampler::Sampler;
use flatout_sys::affinity;
use flatout_sys::cancel::CancelToken;

use crate::area::{Area, Estimate, Extent, Found, Pace, Seconds};
use crate::error::Error;
use client::{Client, Family};
use finish::Place;
use memcpy::Copies;
use row::Row;
use sample::Ends;
use sender::Best;
use server::{Lifetime, Server};
use spec::{Spec, Work};
use token::Key;

pub use row::Selection;

/// Time before the window, and the window, of a throughput trial; both grow with the round trip.
/// So short that the whole grid has six trials of each row within half a minute.
const WARM_NS: u64 = 15_000_000;
const WINDOW_NS: u64 = 60_000_000;
/// The same of a latency trial.
const LATENCY_WARM_NS: u64 = 2_000_000;
const LATENCY_WINDOW_NS: u64 = 30_000_000;
/// Time after the window; at least two round trips.
const TAIL_NS: u64 = 3_000_000;
/// Round trips that a connection gets before the window, and in it.
const WARM_ROUND_TRIPS: u64 = 20;
const WINDOW_ROUND_TRIPS: u64 = 40;

/// How many times its budget the sampler may take until each row has its least trials: budgets are
/// so much shorter, because this area's time is a promise.
const STRETCH: u64 = 2;
/// How much longer a window gets in which nothing came, and where that ends.
const LONGER: u64 = 4;
const LONGEST_WINDOW_NS: u64 = 8_000_000_000;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which rows.
    pub extent: Extent,
    /// The server, `HOST:PORT`; without: one of this process's own on loopback.
    pub connect: Option<String>,
    /// The key of the server's token; without: that of a server on loopback without one.
    pub key: Option<Key>,
    /// Which addresses of the host are taken.
    pub family: Option<Family>,
    /// What is fixed of the rows.
    pub selection: Selection,
    /// The window of a trial; without: what the round trip suggests.
    pub window_ns: Option<u64>,
    /// The wish to stop.
    pub cancel: CancelToken,
    /// Hears that the server is busy.
    pub notice: fn(&str),
}

/// Refuses options out of bounds, in one line. Nothing is sent.
///
/// # Errors
/// `Usage`.
fn check(options: &Options) -> Result<(), Error> {
    let family = options.family.unwrap_or(Family::V4);
    for row in row::rows(options.extent, &options.selection, family, false) {
        let times = Times { round_trip_ns: 0, window_ns: options.window_ns };
        times.of(row.spec).check().map_err(Error::Usage)?;
    }
    if options.window_ns.is_some_and(|window_ns| window_ns < 1_000_000) {
        return Err(Error::Usage("--duration: it must be from 1ms".to_owned()));
    }
    Ok(())
}

/// How long the parts of a trial take.
#[derive(Debug, Clone, Copy)]
struct Times {
    round_trip_ns: u64,
    window_ns: Option<u64>,
}

impl Times {
    fn of(self, spec: Spec) -> Spec {
        let (warm_ns, usual_ns) = match spec.work {
            Work::Throughput => (WARM_NS, WINDOW_NS),
            Work::Latency => (LATENCY_WARM_NS, LATENCY_WINDOW_NS),
        };
        let trips = |count: u64| self.round_trip_ns.saturating_mul(count);
        let window_ns = self.window_ns.unwrap_or(usual_ns.max(trips(WINDOW_ROUND_TRIPS)));
        let warm_ns =
            warm_ns.max(trips(WARM_ROUND_TRIPS)).max(self.window_ns.map_or(0, |ns| ns / 5));
        Spec { warm_ns, window_ns, tail_ns: TAIL_NS.max(trips(2)), ..spec }
    }
}

/// Time of the area.
const SECONDS: Seconds = Seconds { few_quick: 2, few: 5, quick: 6, full: 26 };

impl Area for Options {
    fn plan(&mut self, pace: Pace) -> Result<Estimate, Error> {
        check(self)?;
        let usual_ns = SECONDS.nanoseconds(self.extent, pace);
        Ok(Estimate { usual_ns, ..Estimate::default() })
    }

    /// # Errors
    /// `Network`: there is no server, or it does not know the key.
    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        measure(self, sampler)
    }
}

fn measure(options: &Options, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
    let stop = CancelToken::manual();
    thread::scope(|scope| {
        let mut hire = |address: IpAddr| -> Result<(SocketAddr, Key), Error> {
            let broken = |error: std::io::Error| {
                Error::Network(format!("cannot listen at {address}: {error}"))
            };
            let key = Key(token::random::<32>().map_err(broken)?);
            let server = Server::bind((address, 0).into(), key.clone()).map_err(broken)?;
            let at = server.address().map_err(broken)?;
            let serve = move || server.serve(Lifetime::Once, stop, &mut |_| ());
            thread::Builder::new()
                .name("server".to_owned())
                .spawn_scoped(scope, serve)
                .map_err(broken)?;
            Ok((at, key))
        };
        let result = sessions(options, &mut hire).and_then(|(clients, missing)| {
            let measured = measure_with(options, &clients, missing, sampler);
            clients.into_iter().for_each(|(_, client)| client.into_inner().finish());
            measured
        });
        // Servers whose client never came must not be waited for.
        stop.cancel();
        result
    })
}

/// A session for each family, and why the second is missing.
type Sessions = (Vec<(Family, RefCell<Client>)>, Option<String>);

/// Opens the session, or on loopback that over IPv6, too.
fn sessions(
    options: &Options,
    hire: &mut dyn FnMut(IpAddr) -> Result<(SocketAddr, Key), Error>,
) -> Result<Sessions, Error> {
    let mut busy = |waiting: u16| {
        (options.notice)(&format!("the server is busy, {waiting} waiting (with this one)"));
    };
    let mut connect = |addresses: &[SocketAddr], key: &Key| {
        let client = Client::connect(addresses, key, options.cancel, &mut busy);
        let client = client.map_err(Error::Network)?;
        Ok::<_, Error>((Family::of(client.server()), RefCell::new(client)))
    };
    if let Some(target) = &options.connect {
        let addresses = client::resolve(target, options.family).map_err(Error::Network)?;
        let key = options.key.clone().unwrap_or_else(Key::open);
        return Ok((vec![connect(&addresses, &key)?], None));
    }
    let first: IpAddr = match options.family {
        Some(Family::V6) => Ipv6Addr::LOCALHOST.into(),
        _ => Ipv4Addr::LOCALHOST.into(),
    };
    let (address, key) = hire(first)?;
    let mut clients = vec![connect(&[address], &key)?];
    let wants_second =
        options.extent == Extent::Full && options.selection.is_empty() && options.family.is_none();
    let mut missing = None;
    if wants_second {
        let second = hire(Ipv6Addr::LOCALHOST.into()).and_then(|(at, key)| connect(&[at], &key));
        match second {
            Ok(second) => clients.push(second),
            Err(error) => missing = Some(error.to_string()),
        }
    }
    Ok((clients, missing))
}

fn measure_with(
    options: &Options,
    clients: &[(Family, RefCell<Client>)],
    missing: Option<String>,
    sampler: &mut Sampler<'_>,
) -> Result<Found, Error> {
    let (family, client) = &clients[0];
    let times =
        Times { round_trip_ns: client.borrow().round_trip_ns, window_ns: options.window_ns };
    let own = client.borrow().address().map(|address| address.ip());
    let interface = own.and_then(ceiling::interface_of);
    let is_loopback = interface.as_ref().is_some_and(|interface| interface.is_loopback);
    let cpus = affinity::allowed_cpu_count();
    let ends = Ends { is_one_machine: client.borrow().shares_machine, near_cpus: cpus };
    let started_ns = sampler.clock.now_ns();
    let has_second = clients.len() > 1 || missing.is_some();
    let mut rows = row::rows(options.extent, &options.selection, *family, has_second);
    let best = sender::choose(&rows, &mut client.borrow_mut(), times)?;
    for row in rows.iter_mut().filter(|row| row.is_best_sender) {
        row.spec.sender = best.sender;
        if row.is_best_placement {
            row.spec.placement = best.placement;
        }
    }
    let mut cases: Vec<Case<'_, Plain>> = rows
        .iter()
        .map(|row| {
            let session = clients.iter().position(|(family, _)| *family == row.family);
            case(row, (clients, session), (times, ends), &best, missing.as_deref())
        })
        .collect();
    if is_loopback
        && rows.iter().any(|row| row.spec.work == Work::Throughput)
        && options.extent != Extent::Few
    {
        cases.extend([Copies::One, Copies::Two].map(|copies| memcpy_case(copies, clients)));
    }
    let spent_ns = sampler.clock.now_ns().saturating_sub(started_ns);
    let budget_ns = sampler.plan.budget_ns.saturating_sub(spent_ns) / STRETCH;
    let mut outcomes: Vec<Outcome> = sampler.within(budget_ns).run_recorded(cases);
    finish::finish(&mut outcomes, &rows, &Place { interface, is_loopback, cpus });
    Ok(Found { outcomes, charts: charts(), storage: None })
}

/// The case of a row; it has no session where there is none of its family.
fn case<'a>(
    row: &Row,
    (clients, session): (&'a [(Family, RefCell<Client>)], Option<usize>),
    (times, ends): (Times, Ends),
    best: &Best,
    missing: Option<&str>,
) -> Case<'a, Plain> {
    let spec = times.of(row.spec);
    let reason = row.is_best_sender.then(|| best.reason.clone());
    let trial: Trial<'a> = match session {
        Some(session) => Box::new(move |_| {
            // The others must not be idle for too long.
            for (index, (_, client)) in clients.iter().enumerate() {
                if index != session {
                    client.borrow_mut().keep_alive();
                }
            }
            let mut sample = patiently(&mut clients[session].1.borrow_mut(), spec, ends)?;
            if let Some(reason) = &reason {
                sample.audit.insert("sender".to_owned(), spec.sender.name().into());
                sample.audit.insert("placement".to_owned(), spec.placement.name().into());
                sample.audit.insert("sender_reason".to_owned(), reason.as_str().into());
            }
            Ok(sample)
        }),
        None => {
            let why = missing.unwrap_or("there is no such session").to_owned();
            Box::new(move |_| Err(TrialError::Unsupported(why.clone())))
        }
    };
    let unit = match row.spec.work {
        Work::Throughput => Unit::BytesPerSecond,
        Work::Latency => Unit::Nanoseconds,
    };
    Case { row: Plain { id: row.id(), parameters: row.parameters(), unit }, trial }
}

/// Runs a test. One in whose window nothing came, because others had the CPUs or the way is long,
/// is run again with longer ones.
fn patiently(client: &mut Client, spec: Spec, ends: Ends) -> Result<Sample, TrialError> {
    let mut spec = spec;
    loop {
        let sample = sample::sample(&client.run(spec)?, ends)?;
        if sample.amount > 0.0 {
            return Ok(sample);
        }
        spec.window_ns = spec.window_ns.saturating_mul(LONGER);
        if spec.bytes > 0 || spec.window_ns > LONGEST_WINDOW_NS || spec.check().is_err() {
            let window_ms = spec.window_ns / LONGER / 1_000_000;
            let text = format!("nothing arrived within a window of {window_ms} ms");
            return Err(TrialError::Failed(text));
        }
    }
}

/// A case of the cross-core copy. The sessions are kept alive meanwhile.
fn memcpy_case(copies: Copies, clients: &[(Family, RefCell<Client>)]) -> Case<'_, Plain> {
    let count = if copies == Copies::One { 1 } else { 2 };
    Case {
        row: Plain {
            id: row::MEMCPY,
            parameters: row::memcpy_parameters(count),
            unit: Unit::BytesPerSecond,
        },
        trial: Box::new(move |_| {
            clients.iter().for_each(|(_, client)| client.borrow_mut().keep_alive());
            memcpy::trial(copies, WARM_NS, WINDOW_NS)
        }),
    }
}

/// The pictures of the rows.
pub fn charts() -> Vec<Chart> {
    row::charts()
}
