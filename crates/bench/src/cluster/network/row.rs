//! The rows, who does what in each, and what a trial of it says of each pair.

use flatout_measure::{
    Facts, Further, Label, Measured, MeasuredFurther, Parameters, Row, Sample, Unit, Value,
    Warning, warning,
};

use super::super::outlying::{self, Outlying};
use super::super::{fact, team};
use super::member::{Reply, Setting};
use super::{BULK_BYTES, PING_BYTES, SWEPT_BYTES, WINDOW, tournament};
use crate::{Extent, between_runs};

const FROM: &str = "from";
const TO: &str = "to";

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    /// All pairs of a round at once.
    Latency,
    OneWay,
    BothWays,
    /// Everybody to everybody.
    All,
    /// All to one, each in turn.
    ToOne,
    /// Between two alone, for lengths of messages.
    SweptLatency(usize, usize),
    SweptRate(usize, usize),
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NetworkRow {
    pub(super) test: Test,
    pub(super) bytes: usize,
    pub(super) window: usize,
    pub(super) processes: usize,
    pub(super) hosts: usize,
}

/// All rows; lengths of messages of latencies, of rates, and of the sweep.
pub(super) fn rows(hosts: &[String], extent: Extent) -> Vec<NetworkRow> {
    let processes = hosts.len();
    let row = |test, bytes, window| {
        let hosts = team::host_count(hosts);
        NetworkRow { test, bytes, window, processes, hosts }
    };
    // All windows of one process take as much memory as that of a pair.
    let shared = (WINDOW / (processes - 1).max(1)).max(1);
    let mut rows = vec![
        row(Test::Latency, PING_BYTES, 1),
        row(Test::OneWay, BULK_BYTES, WINDOW),
        row(Test::BothWays, BULK_BYTES, WINDOW),
        row(Test::All, BULK_BYTES, shared),
        row(Test::ToOne, BULK_BYTES, shared),
    ];
    if extent == Extent::Full {
        // The way to another host, where there is one.
        let far = hosts.iter().position(|host| *host != hosts[0]).unwrap_or(1);
        for bytes in SWEPT_BYTES {
            rows.push(row(Test::SweptLatency(0, far), bytes, 1));
            rows.push(row(Test::SweptRate(0, far), bytes, WINDOW));
        }
    }
    rows
}

impl Test {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Latency => "network/pair-latency",
            Self::OneWay => "network/pair-one-way",
            Self::BothWays => "network/pair-both-ways",
            Self::All => "network/all-to-all",
            Self::ToOne => "network/all-to-one",
            Self::SweptLatency(..) => "network/message-latency",
            Self::SweptRate(..) => "network/message-rate",
        }
    }

    fn is_latency(self) -> bool {
        matches!(self, Self::Latency | Self::SweptLatency(..))
    }

    /// The two processes that it is of, where it is of two alone.
    fn ends(self) -> Option<(usize, usize)> {
        match self {
            Self::SweptLatency(one, other) | Self::SweptRate(one, other) => Some((one, other)),
            _ => None,
        }
    }

    /// What each process does, step by step.
    pub(super) fn steps(self, size: usize) -> Vec<Vec<Setting>> {
        let rest = vec![Setting::Rest; size];
        let stream = |to: Vec<usize>, from: Vec<usize>| Setting::Stream { to, from };
        let step = |pairs: &[(usize, usize)], how: &dyn Fn(usize, usize) -> [Setting; 2]| {
            let mut step = rest.clone();
            for &(one, other) in pairs {
                [step[one], step[other]] = how(one, other);
            }
            step
        };
        let ping = |one, other| {
            [
                Setting::Ping { with: other, begins: true },
                Setting::Ping { with: one, begins: false },
            ]
        };
        let there = |one, other| [stream(vec![other], vec![]), stream(vec![], vec![one])];
        let back = |one, other| [stream(vec![], vec![other]), stream(vec![one], vec![])];
        let both = |one, other| [stream(vec![other], vec![other]), stream(vec![one], vec![one])];
        let others = |own: usize| (0..size).filter(|&rank| rank != own).collect::<Vec<_>>();
        let rounds = tournament::rounds(size);
        let each = |hows: &[&dyn Fn(usize, usize) -> [Setting; 2]]| {
            let of_round = |round: &Vec<(usize, usize)>| {
                hows.iter().map(|how| step(round, how)).collect::<Vec<_>>()
            };
            rounds.iter().flat_map(of_round).collect::<Vec<_>>()
        };
        match self {
            Self::Latency => each(&[&ping]),
            Self::OneWay => each(&[&there, &back]),
            Self::BothWays => each(&[&both]),
            Self::All => vec![(0..size).map(|own| stream(others(own), others(own))).collect()],
            Self::ToOne => {
                let to = |root: usize, own: usize| match own == root {
                    true => stream(vec![], others(root)),
                    false => stream(vec![root], vec![]),
                };
                (0..size).map(|root| (0..size).map(|own| to(root, own)).collect()).collect()
            }
            Self::SweptLatency(one, other) => vec![step(&[(one, other)], &ping)],
            Self::SweptRate(one, other) => vec![step(&[(one, other)], &there)],
        }
    }
}

impl Row for NetworkRow {
    fn label(&self) -> Label {
        let is_latency = self.test.is_latency();
        let ends = self.test.ends();
        let unit = if is_latency { Unit::Nanoseconds } else { Unit::BytesPerSecond };
        Label::new(self.test.id(), unit)
            .with("transport", "mpi")
            .with("message_bytes", self.bytes)
            .with("processes", self.processes)
            .with("hosts", self.hosts)
            .with_known("window", (!is_latency).then_some(self.window))
            .with_known(FROM, ends.map(|ends| ends.0))
            .with_known(TO, ends.map(|ends| ends.1))
            .deviating_by(between_runs::NETWORK)
    }
}

impl NetworkRow {
    /// What the steps of a trial say: one figure of all, and one of each pair or process.
    pub(super) fn sample(
        &self,
        exchanges: &[(Vec<Setting>, Vec<Reply>)],
        hosts: &[String],
    ) -> Sample {
        let mut further = Vec::new();
        let (mut amount, mut elapsed_ns, mut messages) = (0.0, 0, 0);
        for (step, replies) in exchanges {
            let mut step_ns = 0;
            for (rank, (setting, reply)) in step.iter().zip(replies).enumerate() {
                let bytes = |messages: u64| (messages * self.bytes as u64) as f64;
                messages += 2 * reply.trips + reply.received;
                let pair = |from: usize, to: usize, amount: f64| {
                    let parameters = Parameters::default().with(FROM, from).with(TO, to);
                    Further {
                        parameters,
                        amount,
                        elapsed_ns: reply.elapsed_ns,
                        ..Further::default()
                    }
                };
                match setting {
                    Setting::Ping { with, begins: true } => {
                        let ways = 2.0 * reply.trips as f64;
                        // A latency is that of every pair alone: times are added, not shared.
                        (amount, elapsed_ns) = (amount + ways, elapsed_ns + reply.elapsed_ns);
                        let is_of_all = self.test.ends().is_none();
                        further.extend(is_of_all.then(|| pair(rank, *with, ways)));
                    }
                    Setting::Stream { to, from } => {
                        amount += bytes(reply.received);
                        step_ns = step_ns.max(reply.elapsed_ns);
                        match (self.test, &to[..], &from[..]) {
                            (Test::OneWay, [to], []) => {
                                further.push(pair(rank, *to, bytes(reply.sent)));
                            }
                            (Test::BothWays, [other], _) if rank < *other => {
                                let moved = bytes(reply.sent + reply.received);
                                further.push(pair(rank, *other, moved));
                            }
                            (Test::All | Test::ToOne, _, [_, ..]) => {
                                let name = format!("{rank} {}", hosts[rank]);
                                further.push(Further {
                                    parameters: Parameters::default().with("process", name),
                                    amount: bytes(reply.received),
                                    elapsed_ns: reply.elapsed_ns,
                                    ..Further::default()
                                });
                            }
                            _ => {}
                        }
                    }
                    _ => {}
                }
            }
            elapsed_ns += step_ns;
        }
        let facts = Facts::default().with(fact::MESSAGES, messages);
        let warnings = match self.hosts {
            1 => {
                let text = "all processes are on one host: messages go through its memory";
                vec![Warning::new(warning::LOOPBACK, text)]
            }
            _ => Vec::new(),
        };
        Sample { amount, elapsed_ns, facts, further, warnings, ..Sample::default() }
    }
}

/// Says where some pairs are on one host, and names those that are clearly slow, and of which one way is.
pub(super) fn name_pairs(rows: &mut [Measured<NetworkRow>], hosts: &[String]) {
    for measured in rows {
        let key = |further: &MeasuredFurther| {
            let process = further.parameters.value("process").and_then(Value::text);
            process.map(str::to_owned).or_else(|| pair(further, hosts))
        };
        let named = measured.further.iter().filter_map(|further| Some((key(further)?, further)));
        let slow = outlying::slow(named);
        let warn = |warnings: &mut Vec<Warning>, code, what: &str, all: &[Outlying]| {
            if !all.is_empty() {
                let text = format!("{what}: {}", outlying::named(all));
                warning::add(warnings, Warning::new(code, text));
            }
        };
        let asymmetric = asymmetric(&measured.further, hosts);
        let NetworkRow { test, hosts, processes, .. } = measured.row;
        let warnings = &mut measured.outcome.warnings;
        if 1 < hosts && hosts < processes && test.ends().is_none() {
            let text = "messages between processes of one host go through its memory, and are in the \
                        figure: one process on each host measures the network alone";
            warning::add(warnings, Warning::new(warning::SAME_HOST, text));
        }
        warn(warnings, warning::SLOW_PAIRS, "clearly slower than the others", &slow);
        let text = "one way is clearly slower than the other";
        warn(warnings, warning::ASYMMETRIC_PAIRS, text, &asymmetric);
    }
}

/// What a pair is called.
fn pair(further: &MeasuredFurther, hosts: &[String]) -> Option<String> {
    let end = |name| {
        let rank = further.parameters.value(name)?.count()?;
        Some(format!("{rank} {}", hosts.get(rank as usize)?))
    };
    Some(format!("{} to {}", end(FROM)?, end(TO)?))
}

/// Ways that are slower than the way back.
fn asymmetric(all: &[MeasuredFurther], hosts: &[String]) -> Vec<Outlying> {
    let end = |further: &MeasuredFurther, name| further.parameters.value(name)?.count();
    let mut found = Vec::new();
    for one in all {
        let ends = (end(one, FROM), end(one, TO));
        let back = all.iter().find(|other| (end(other, TO), end(other, FROM)) == ends);
        if let (Some(back), Some(key)) = (back, pair(one, hosts))
            && let Some(share) = outlying::slower(one, back)
        {
            found.push(Outlying { key, share });
        }
    }
    found
}
