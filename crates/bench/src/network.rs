//! Network: bytes per second and round trips over TCP and UDP, between this machine and another
//! that runs `flatout serve`, or over loopback.
//!
//! `client.rs` and `server.rs` are the two ends, `channel.rs` what they say to each other,
//! `flow.rs` one test as either end runs it. Which rows there are stands in `row.rs`, what a trial
//! becomes in `sample.rs`, what it is held against in `bound.rs`. docs/network.md explains the
//! protocol and each figure.

mod account;
pub mod address;
mod bound;
pub mod channel;
pub mod client;
mod fact;
mod flow;
pub mod frame;
mod memcpy;
mod row;
mod sample;
mod selection;
mod sender;
pub mod server;
mod session;
mod sessions;
pub mod spec;
mod times;
pub mod token;
mod topology;

use std::path::{Path, PathBuf};

use clap::Args;
use flatout_measure::sampler::fact::{CONTENDED_NS, CONTENTION_RATIO, WATCHED_NS};
use flatout_measure::{Case, Facts, Sample, Sampler, TrialError, Warning, record_counted, warning};
use flatout_sys::{Groups, monotonic_ns};

use crate::contention::{self, ContentionProbe};
use crate::option::time;
use crate::workers::Spent;
use crate::{Area, Error, Estimate, Extent, Found, Run, Seconds, workers};
use client::Report;
use memcpy::Copies;
use row::{NetworkRow, ON_ONE_MACHINE, ON_TWO_MACHINES, SMALL_DATAGRAM_BYTES, TestRow};
use sender::Best;
use sessions::Sessions;
use spec::{Direction, Sender, Spec, Work};
use times::{CONTAINED_NS, Times, WARM_NS, WINDOW_NS};
use token::Key;
use topology::{Family, Topology};

use selection::Selection;

/// Where `flatout serve` listens unless told otherwise.
pub const PORT: u16 = 7878;
/// Part of the time that finding the best way of sending may take.
const CHOOSING_PART: u64 = 4;
/// How much longer a window gets in which nothing came, and where that ends.
const LONGER: u64 = 4;
const LONGEST_WINDOW_NS: u64 = 8_000_000_000;

/// What the user chose.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    /// What all areas of the run have in common.
    #[arg(skip)]
    run: Run,
    /// Where `flatout serve` runs [default: a server of this process, on loopback]
    #[arg(short, long, value_name = "HOST[:PORT]", value_parser = host)]
    connect: Option<String>,
    /// The port of the server, where HOST has none [default: 7878]
    #[arg(short, long, value_name = "PORT", requires = "connect")]
    port: Option<u16>,
    /// The file with the token that the server asks for; - is standard input
    #[arg(long, value_name = "FILE", requires = "connect", value_hint = clap::ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// The key of the server's token; without: that of a server on loopback without one.
    #[arg(skip)]
    key: Option<Key>,
    /// Use IPv4 only
    #[arg(long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(long)]
    ipv6: bool,
    /// What is fixed of the rows.
    #[command(flatten)]
    selection: Selection,
    /// The timed part of each trial [default: 60ms, of latency 30ms; longer on long ways]
    #[arg(id = "time", short = 't', long, aliases = ["runtime", "duration"], value_name = "TIME",
        value_parser = time)]
    window_ns: Option<u64>,
}

/// `HOST[:PORT]`, whose name is resolved later.
fn host(text: &str) -> Result<String, String> {
    match address::parts(text)? {
        (_, Some(0)) => Err("\"0\" is no port: 1 to 65535".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

impl Options {
    /// Which addresses of the host are taken.
    fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        }
    }
}

/// Refuses options out of bounds, in one line. Nothing is sent.
///
/// # Errors
/// `Usage`.
fn check(options: &Options) -> Result<(), Error> {
    if let Some(rate) = options.selection.rate_per_s.filter(|&rate| rate < 1.0) {
        return Err(Error::Usage(format!("--rate {rate}: it must be 1 or more")));
    }
    let family = options.family().unwrap_or(Family::V4);
    let times = Times { window_ns: options.window_ns, ..Times::default() };
    for test in row::tests(options.run.extent, &options.selection, family, None, &ON_ONE_MACHINE) {
        times.of(test.spec).check().map_err(Error::Usage)?;
    }
    if options.window_ns.is_some_and(|window_ns| window_ns < 1_000_000) {
        return Err(Error::Usage("--time: it must be from 1ms".to_owned()));
    }
    Ok(())
}

/// Time of the area.
const SECONDS: Seconds = Seconds { few_quick: 2, few: 5, quick: 9, full: 26 };

impl Area for Options {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        self.run = run.clone();
        let key = self.token_file.as_deref().map(Key::from_file).transpose();
        self.key = key.map_err(Error::Network)?;
        check(self)?;
        Ok(SECONDS.estimate(run))
    }

    /// # Errors
    /// `Network`: there is no server, or it does not know the key.
    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let begun_ns = sampler.clock.now_ns();
        sessions::with(self, |sessions| {
            // Time in line at the server is none of ours, unless all of it was limited.
            if self.run.time_ns.is_none() {
                let waited_ns = sampler.clock.now_ns().saturating_sub(begun_ns);
                sampler.plan.ends_ns = sampler.plan.ends_ns.saturating_add(waited_ns);
            }
            measure(self, sessions, sampler)
        })?
    }
}

/// What all trials need.
struct Setting<'s> {
    sessions: &'s Sessions,
    topology: Topology,
    times: Times,
    best: Best,
    /// What a CPU quota leaves to this end, and to the other one on the same machine.
    quota_cpus: Option<f64>,
    /// When the time of the area is over.
    ends_ns: u64,
    /// The longest window that leaves all rows a trial.
    longest_ns: u64,
    /// What was seen of SMT siblings.
    probe: ContentionProbe,
}

fn measure(
    options: &Options,
    sessions: &Sessions,
    sampler: &mut Sampler<'_>,
) -> Result<Found, Error> {
    let (family, round_trip_ns, topology, together) = {
        let client = sessions.first();
        (client.family(), client.round_trip_ns, Topology::of(&client), client.together)
    };
    let quota_cpus = Groups::discover(Path::new("/")).cpu_quota_cpus();
    let is_contained = workers::contained(2, topology.cpus, quota_cpus).is_some();
    let times = Times { round_trip_ns, window_ns: options.window_ns, is_contained, least_ns: 0 };
    let times = times.within(sampler.plan.ends_ns.saturating_sub(monotonic_ns()));
    let second = sessions.second_family();
    let placements: &[_] = match (topology.is_one_machine, topology.cpus) {
        // Two threads on one CPU are not apart.
        (true, 1) => &ON_ONE_MACHINE[1..],
        (true, _) => &ON_ONE_MACHINE,
        (false, _) => &ON_TWO_MACHINES,
    };
    let mut tests = row::tests(options.run.extent, &options.selection, family, second, placements);
    if let Some(mtu_bytes) = topology.interface.as_ref().and_then(|between| between.mtu_bytes) {
        row::fit(&mut tests, &options.selection, mtu_bytes);
    }
    tests.iter_mut().for_each(|test| test.spec.shares_cpus = topology.is_one_machine);
    if together > 0 && tests.len() > 1 {
        return Err(Error::Network(format!(
            "the server measures {together} clients together, which takes options that leave one row, as --measure throughput --protocol tcp --direction up --streams 1; these leave {}",
            tests.len()
        )));
    }
    // Clients that are measured together would choose at different times, and each otherwise.
    let choosing_ends_ns = if together > 0 { 0 } else { sampler.part_ends_ns(CHOOSING_PART) };
    let best = sender::choose(&tests, sessions, (&topology, times), choosing_ends_ns);
    for test in tests.iter_mut().filter(|test| test.is_best_sender) {
        test.spec.sender = best.sender;
        if test.is_best_placement {
            test.spec.placement = best.placement;
        }
    }
    let has_throughput = tests.iter().any(|test| test.spec.work == Work::Throughput);
    let mut rows: Vec<NetworkRow> = tests.into_iter().map(NetworkRow::Test).collect();
    let has_bound = topology.is_loopback() && together == 0;
    if has_bound && has_throughput && options.run.extent != Extent::Few {
        rows.extend([Copies::One, Copies::Two].map(NetworkRow::Memcpy));
    }
    let ends_ns = sampler.plan.ends_ns;
    let left_ns = ends_ns.saturating_sub(monotonic_ns());
    let longest_ns = (left_ns / 2 / rows.len().max(1) as u64).min(LONGEST_WINDOW_NS);
    let probe = ContentionProbe::learned_here();
    let setting =
        &Setting { sessions, topology, times, best, quota_cpus, ends_ns, longest_ns, probe };
    let case = |row| {
        let (mut own, mut times) = (row, setting.times);
        Case { row, trial: Box::new(move |seed| setting.trial(&mut own, &mut times, seed as u16)) }
    };
    let cases = rows.into_iter().map(case).collect();
    let mut rows = sampler.run(cases);
    bound::apply(&mut rows, &setting.topology);
    let counts = [fact::DATAGRAMS_UNIQUE, crate::fact::BYTES, fact::QUESTIONS];
    let outcomes = record_counted(rows, &counts);
    Ok(Found { outcomes, charts: row::charts(), ..Found::default() })
}

impl Setting<'_> {
    /// A trial of a row, by the CPUs of a turn.
    fn trial(
        &self,
        row: &mut NetworkRow,
        times: &mut Times,
        turn: u16,
    ) -> Result<Sample, TrialError> {
        match row {
            NetworkRow::Test(test) => {
                test.spec.turn = turn;
                self.test(test, times)
            }
            NetworkRow::Memcpy(copies) => {
                self.sessions.keep_alive();
                let (begun, begun_ns) = (Spent::now(), monotonic_ns());
                let window_ns = if self.times.is_contained { CONTAINED_NS } else { WINDOW_NS };
                let sample = memcpy::trial(*copies, [WARM_NS, window_ns], turn)?;
                Ok(self.charged(sample, 2, Spent::since(begun), monotonic_ns() - begun_ns))
            }
        }
    }

    /// A trial of bytes by so many threads, with the time that it takes of a quota in the long run, as rows
    /// of the CPU have it: nothing that the quota holds back is spoiled by it.
    fn charged(&self, sample: Sample, threads: u32, spent: Spent, trial_ns: u64) -> Sample {
        let contained = workers::contained(threads, self.topology.cpus, self.quota_cpus);
        let Some(why) = contained else { return sample };
        let share = spent.charged_ns(trial_ns, self.quota_cpus) as f64 / trial_ns.max(1) as f64;
        let elapsed_ns = (sample.elapsed_ns as f64 * share) as u64;
        let mut sample = Sample { elapsed_ns, is_sustained: true, ..sample };
        warning::add(&mut sample.warnings, why);
        sample
    }

    /// What a test whose ends share a CPU saw of the SMT sibling, which is in the figure.
    fn contention(&self, report: &Report) -> Facts {
        let mut facts = contention::facts(&report.near.windows, 0.0, &self.probe);
        let [contended, watched] =
            [CONTENDED_NS, WATCHED_NS].map(|key| facts.number(key).unwrap_or(0.0));
        facts.set_known(CONTENTION_RATIO, (watched > 0.0).then(|| contended / watched));
        facts
    }

    /// Runs a test. One in whose window nothing came, or so little that its edges show, because
    /// others had the CPUs or the path is slow, is run again with longer ones, and so are the next.
    fn test(&self, test: &mut TestRow, times: &mut Times) -> Result<Sample, TrialError> {
        let mut spec = times.of(test.spec);
        loop {
            let (begun, begun_ns) = (Spent::now(), monotonic_ns());
            let is_chosen = test.is_best_sender && spec.sender != Sender::Write;
            let report = match self.sessions.run(test.family, spec) {
                // The far end may not have the way that was the fastest of this one.
                Err(TrialError::Failed(_) | TrialError::Unsupported(_))
                    if is_chosen && spec.direction != Direction::Up =>
                {
                    test.spec.sender = Sender::Write;
                    spec.sender = test.spec.sender;
                    continue;
                }
                report => report?,
            };
            let (spent, ended_ns) = (Spent::since(begun), monotonic_ns());
            let mut sample = sample::sample(&report, &self.topology)?;
            if !report.near.windows.is_empty() {
                sample.facts.extend(self.contention(&report));
            }
            if self.quota_cpus.is_some() {
                sample.facts.set(fact::THROTTLED_NS, spent.throttled_ns);
                sample.facts.set(fact::TRIALS_NS, ended_ns - begun_ns);
            }
            if spec.work == Work::Throughput && spec.rate_per_s == 0 {
                let threads = self.topology.threads(&spec);
                sample = self.charged(sample, threads, spent, ended_ns - begun_ns);
            }
            if sample.amount > 0.0 {
                let wanted_ns = times.wanted_ns(&report, &sample, self.topology.is_loopback());
                let longer = times.lengthened(wanted_ns.min(self.longest_ns));
                let next = longer.of(test.spec);
                let is_longer = next.window_ns / 4 * 3 > spec.window_ns;
                if is_longer && ended_ns.saturating_add(next.whole_ns()) <= self.ends_ns {
                    (*times, spec) = (longer, next);
                    continue;
                }
                if wanted_ns / 4 * 3 > spec.window_ns {
                    sample.warn(warning::TIME_SHORT, too_little(&spec, wanted_ns));
                }
                if test.is_best_sender {
                    // The way of sending that was measured to be the fastest.
                    sample.facts.set("sender", spec.sender.name());
                    // Where its threads ran.
                    sample.facts.set("placement", spec.placement.name());
                    // What was measured to choose these, of how many.
                    sample.facts.set("ways_compared", self.best.ways);
                    sample.facts.set("sender_reason", self.best.reason.clone());
                }
                return Ok(sample);
            }
            let tried_ns = spec.window_ns;
            spec.window_ns = tried_ns.saturating_mul(LONGER);
            let is_late = ended_ns.saturating_add(spec.window_ns) > self.ends_ns;
            let is_longest = spec.window_ns > LONGEST_WINDOW_NS || spec.check().is_err();
            if spec.bytes > 0 || is_longest {
                return Err(TrialError::Failed(nothing_arrived(&spec, tried_ns)));
            }
            if is_late {
                // A longer one might have had some, beside others, or under a quota.
                let text = nothing_arrived(&spec, tried_ns);
                return Err(TrialError::NoMore(Warning::new(warning::TIME_SHORT, text)));
            }
        }
    }
}

/// Why the edges of a window show in its figure.
fn too_little(spec: &Spec, wanted_ns: u64) -> String {
    let [window_ms, wanted_ms] = [spec.window_ns, wanted_ns].map(|ns| ns / 1_000_000);
    format!(
        "so little came in a window of {window_ms} ms that its edges show: --time {wanted_ms}ms"
    )
}

/// Why there is no figure; of datagrams that go in fragments, what helps: one of them that is lost is
/// all of them.
fn nothing_arrived(spec: &Spec, window_ns: u64) -> String {
    let window_ms = window_ns / 1_000_000;
    let bytes = spec.datagram_bytes;
    let lower = if spec.rate_per_s > 0 { "a lower " } else { "" };
    let help = match bytes > SMALL_DATAGRAM_BYTES {
        true => format!(
            " of datagrams of {bytes} bytes, each lost with any of its fragments: --datagram-size \
             {SMALL_DATAGRAM_BYTES}, or {lower}--rate"
        ),
        false => String::new(),
    };
    format!("nothing arrived within a window of {window_ms} ms{help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_where_nothing_arrived_is_not_there_yet() {
        let of = |bytes, rate_per_s| {
            let spec = row::udp(1, 65_000, bytes, Default::default());
            nothing_arrived(&Spec { rate_per_s, ..spec }, 1_000_000)
        };
        assert!(of(65_000, 0).ends_with(" 1460, or --rate"));
        assert!(of(65_000, 1).ends_with(" 1460, or a lower --rate"));
        assert!(of(SMALL_DATAGRAM_BYTES, 1).ends_with(" 1 ms"));
    }
}
