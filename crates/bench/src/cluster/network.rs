//! The network between the processes, by messages of MPI: every pair in turn, all pairs of a round
//! at once, as a tournament; then everybody to everybody, and all to one.
//!
//! One way takes half a round trip of MPI_Send and MPI_Recv, as in osu_latency; a rate is that of windows
//! of 64 messages that are begun before any is waited for, each window answered by four bytes, as
//! in osu_bw and, both ways at once, osu_bibw. Between processes of one host messages go through
//! its memory, and the rows say so.

mod member;
mod row;
mod tournament;

use std::cell::RefCell;

use clap::Args;
use flatout_measure::{Case, Chart, Sample, Sampler, TrialError, record_counted, warning};
use flatout_sys::monotonic_ns;

use super::team::Team;
use super::{Shared, fact, of_the_job};
use crate::calibration::filling;
use crate::option::time;
use crate::{Area, Error, Estimate, Extent, Found, Run};

use member::Setting;
pub(super) use member::{Command, Member};
use row::{NetworkRow, Test};

/// Messages of a window, as OSU has it.
pub(super) const WINDOW: usize = 64;
/// Bytes of the messages of rates, and of latencies.
const BULK_BYTES: usize = 64 << 10;
const PING_BYTES: usize = 8;
/// Further lengths between two processes.
const SWEPT_BYTES: [usize; 5] = [1, 64, 4 << 10, 64 << 10, 1 << 20];
/// Time of one exchange of a pair that is aimed at.
const EXCHANGE_NS: u64 = 20_000_000;
const QUICK_EXCHANGE_NS: u64 = 5_000_000;
const LEAST_EXCHANGE_NS: u64 = 200_000;
/// Exchanges of a round of the tournament: latency, one way and the other, both ways.
const EXCHANGES: u64 = 4;
/// What one takes at least: three windows at half a gigabyte per second.
const LEAST_TAKEN_NS: u64 = 25_000_000;

/// What the user chose.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    /// The timed part of each exchange of a pair.
    #[arg(id = "time", short = 't', long, value_name = "TIME", value_parser = time)]
    pub exchange_ns: Option<u64>,
}

/// The area, as the first process has it.
pub struct Network {
    wire: Shared,
    hosts: Vec<String>,
    options: Options,
    run: Run,
    exchange_ns: u64,
}

impl Network {
    /// The area for these processes, each on its host.
    pub fn new(wire: Shared, hosts: Vec<String>, options: Options) -> Self {
        Self { wire, hosts, options, run: Run::default(), exchange_ns: 0 }
    }

    /// Exchanges of a pair that one trial of each row takes, one after the other.
    fn exchanges(&self, extent: Extent) -> u64 {
        let (size, swept) = (self.hosts.len(), 2 * SWEPT_BYTES.len() as u64);
        let rounds = tournament::rounds(size).len() as u64;
        let swept = if extent == Extent::Full { swept } else { 0 };
        EXCHANGES * rounds + 1 + size as u64 + swept
    }
}

impl Area for Network {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        let usual = if run.extent == Extent::Full { EXCHANGE_NS } else { QUICK_EXCHANGE_NS };
        let trials = u64::from(run.rounds.unwrap_or(run.least_trials)).max(1);
        let exchanges = self.exchanges(run.extent) * trials;
        let exchange_ns = match (self.options.exchange_ns, run.time_ns) {
            (Some(asked_ns), _) => asked_ns,
            (None, Some(time_ns)) => (time_ns / exchanges / 2).min(usual),
            (None, None) => usual,
        };
        let exchange_ns = exchange_ns.max(LEAST_EXCHANGE_NS);
        (self.run, self.exchange_ns) = (run.clone(), exchange_ns);
        let usual_ns = run.time_ns.unwrap_or(exchanges * (exchange_ns + LEAST_TAKEN_NS));
        Ok(Estimate { usual_ns, ..Estimate::default() })
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let (run, exchange_ns) = (&self.run, self.exchange_ns);
        let seat = self.wire.borrow().seat();
        let own = Member::new(seat).map_err(Error::NoRoom)?;
        let team = Team::new(self.wire.clone(), own, self.hosts.clone(), run.cancel);
        let ends_ns = sampler.plan.ends_ns;
        let leader = RefCell::new(Leader { team, exchange_ns, ends_ns });
        let rows = row::rows(&self.hosts, run.extent);
        let cases = rows.into_iter().map(|row| {
            let (leader, mut count) = (&leader, None);
            let trial = move |_| leader.borrow_mut().trial(&row, &mut count);
            Case { row, trial: Box::new(trial) }
        });
        let cases = cases.collect();
        let max_trials = match run.time_ns {
            Some(_) => sampler.plan.max_trials,
            None => sampler.plan.max_trials.min(2 * run.least_trials.max(run.rounds.unwrap_or(0))),
        };
        let mut rows = of_the_job(sampler, max_trials, |sampler| sampler.run(cases));
        row::name_pairs(&mut rows, &self.hosts);
        let chart = |title: &str, test: Test| Chart::new(title, test.id(), "to", &["from"]);
        let charts = vec![
            chart("latency between processes", Test::Latency),
            chart("rate between processes, one way", Test::OneWay),
            chart("rate between processes, both ways", Test::BothWays),
        ];
        let outcomes = record_counted(rows, &[fact::MESSAGES]);
        Ok(Found { outcomes, charts, ..Found::default() })
    }
}

/// The first process.
struct Leader {
    team: Team<Member>,
    exchange_ns: u64,
    /// When all must be over.
    ends_ns: u64,
}

impl Leader {
    /// `known`: how often something is done in a trial so that it takes the time that is aimed at.
    fn trial(&mut self, row: &NetworkRow, known: &mut Option<u64>) -> Result<Sample, TrialError> {
        let steps = row.test.steps(self.team.size());
        let count = match *known {
            Some(count) => count,
            None => *known.insert(self.count(row, &steps[0])?),
        };
        let mut exchanges = Vec::new();
        for step in &steps {
            let replies = self.step(row, step, count)?;
            exchanges.push((step.clone(), replies));
        }
        Ok(row.sample(&exchanges, &self.team.hosts))
    }

    /// How many exchanges take the time that is aimed at.
    fn count(&mut self, row: &NetworkRow, step: &[Setting]) -> Result<u64, TrialError> {
        filling(self.exchange_ns, (1, self.exchange_ns / 4), |count| {
            let replies = self.step(row, step, count)?;
            Ok(replies.iter().map(|reply| reply.elapsed_ns).max().unwrap_or(0))
        })
    }

    /// What all do at one time.
    fn step(
        &mut self,
        row: &NetworkRow,
        step: &[Setting],
        count: u64,
    ) -> Result<Vec<member::Reply>, TrialError> {
        if monotonic_ns() > self.ends_ns {
            return Err(TrialError::NoMore(warning::no_time()));
        }
        self.team.all(|rank| Command {
            setting: step[rank].clone(),
            bytes: row.bytes,
            window: row.window,
            count,
        })
    }
}

#[cfg(test)]
mod tests;
