//! Against iperf3 and sockperf, over loopback: bytes of one TCP or UDP stream, and round trips.
//!
//! Both rivals are two programs, of which a shell starts the far one for each run and waits until it
//! answers. Both sides run one trial of the same length with blocks, datagrams and messages of the
//! same size; the figure is what the program prints. Where the scheduler puts two ends that wait for
//! one another decides a round trip by a factor of three, so both are tied: together, and apart.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;

use flatout_measure::{Parameters, Unit};
use flatout_sys::process::Account;
use serde_json::Value;

use crate::network::spec::Placement;
use crate::versus::race::{Argv, Checked, Race, Run, Workload};
use crate::versus::rival::{Discipline, Found};
use crate::versus::{Extent, Ground, printed};
use crate::{Error, cores};

/// What starting and ending both ends takes beside the trial; sockperf waits for two seconds.
const AROUND_S: f64 = 0.7;
const AROUND_SOCKPERF_S: f64 = 1.4;
/// Starts the far end, whose output nobody wants, and asks it until it answers. The far end is the
/// child of a guard, which ends it with the shell or with flatout: whenever these are killed, the
/// guard is there before the far end. `$1`: the words of the far end, split at spaces; behind: the
/// program, and the words of the near one. What that remarks on standard error is no part of its
/// answer; why it has none may be a member of it (iperf3).
const SCRIPT: &str = r#"(trap exit TERM
trap 'kill ${far:-$!} $nap' EXIT
"$2" $1 &
far=$!
while kill -0 $PPID; do sleep 1 & nap=$!; wait $nap; done) >/dev/null 2>&1 &
trap "kill $! 2>/dev/null; wait" EXIT
shift
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  sleep 0.1
  said=$("$@") || continue
  case $said in *'"error":'*) continue ;; esac
  printf '%s\n' "$said"
  exit 0
done
said=${said#*'"error":'}
printf '%s\n' "${said%'}'}" >&2
exit 1"#;

/// What is raced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    rival: &'static str,
    /// The row of `bench network`.
    id: &'static str,
    unit: Unit,
    protocol: &'static str,
    /// Bytes of a call or a message.
    block_bytes: u64,
    /// Where both ends are tied.
    placement: Option<Placement>,
    /// Words for flatout besides.
    ours: &'static [&'static str],
    /// Words for the rival besides.
    theirs: &'static [&'static str],
}

/// Without Nagle's algorithm, as flatout.
const STREAM: Work = Work {
    rival: "iperf3",
    id: "network/tcp-throughput",
    unit: Unit::BytesPerSecond,
    protocol: "tcp",
    block_bytes: 64 << 10,
    placement: None,
    ours: &[],
    theirs: &["-N"],
};
const QUESTIONS: Work = Work {
    rival: "sockperf",
    id: "network/tcp-latency",
    unit: Unit::Nanoseconds,
    block_bytes: 64,
    placement: Some(Placement::Together),
    theirs: &["--tcp"],
    ..STREAM
};
const UDP_QUESTIONS: Work =
    Work { id: "network/udp-latency", protocol: "udp", theirs: &[], ..QUESTIONS };
const WORKS: [Work; 7] = [
    STREAM,
    Work {
        block_bytes: 128 << 10,
        placement: Some(Placement::Apart),
        ours: &["--sender", "sendfile"],
        theirs: &["-Z", "-N"],
        ..STREAM
    },
    Work {
        id: "network/udp-throughput",
        protocol: "udp",
        block_bytes: 1460,
        placement: Some(Placement::Apart),
        ours: &["--offload", "none", "--datagram-size", "1460"],
        theirs: &["-u", "-b", "0"],
        ..STREAM
    },
    QUESTIONS,
    UDP_QUESTIONS,
    Work { placement: Some(Placement::Apart), ..QUESTIONS },
    Work { placement: Some(Placement::Apart), ..UDP_QUESTIONS },
];

/// The races against each rival that is there.
pub fn races(ground: &Ground) -> Vec<Race<'static>> {
    // Tens of thousands of round trips are enough.
    let seconds = |work: &Work| match work.unit {
        Unit::BytesPerSecond if ground.extent == Extent::Full => 2,
        _ => 1,
    };
    let cpus = cores::in_order().unwrap_or_default();
    // Round trips apart on one CPU are those together.
    let is_apart = |work: &Work| work.placement == Some(Placement::Apart);
    let is_possible =
        |work: &Work| work.unit != Unit::Nanoseconds || !is_apart(work) || cpus.len() > 1;
    let of = |found: &Found| {
        let works = WORKS.into_iter().filter(|work| work.rival == found.rival.name);
        let races = works
            .filter(is_possible)
            .map(|work| race(ground, found, (work, &cpus), seconds(&work)));
        races.collect::<Vec<_>>()
    };
    ground.of(Discipline::Network).flat_map(of).collect()
}

fn race(
    ground: &Ground,
    found: &Found,
    (work, cpus): (Work, &[usize]),
    seconds: u32,
) -> Race<'static> {
    let mut parameters = Parameters::default().with("protocol", work.protocol);
    parameters.set_known("placement", work.placement.map(Placement::name));
    parameters.set_known("sender", work.theirs.contains(&"-Z").then_some("sendfile"));
    let name = if work.unit == Unit::Nanoseconds { "message_bytes" } else { "block_bytes" };
    let parameters = parameters.with(name, work.block_bytes);
    let test = work.id.strip_prefix("network/").unwrap_or(work.id);
    let far = usize::from(work.placement == Some(Placement::Apart));
    let cpus = [0, far].map(|at| cpus.get(at).copied().unwrap_or(0));
    let around_s = if work.rival == "sockperf" { AROUND_SOCKPERF_S } else { AROUND_S };
    let workload = NetworkWorkload { work, seconds, cpus };
    let race =
        Race::against(ground, found, (test, parameters), f64::from(seconds) + around_s, workload);
    Race { printed: Some(work.unit), ..race }
}

/// One row of `bench network`, and its like.
struct NetworkWorkload {
    work: Work,
    seconds: u32,
    /// The CPUs of the rival's near and far end, where they are tied: those that ours get.
    cpus: [usize; 2],
}

impl NetworkWorkload {
    fn ours(&self, program: &Path) -> Argv {
        let Work { id, protocol, block_bytes, ours, .. } = self.work;
        let measure = if id.ends_with("latency") { "latency" } else { "throughput" };
        let mut words = format!(
            "bench network --quick --runs 1 --measure {measure} --protocol {protocol} --streams 1 \
             --block-size {block_bytes} --duration {}s --max-time {}s --format json",
            self.seconds,
            // Choosing a sender and warming up take their time, too.
            self.seconds + 4,
        );
        if measure == "throughput" {
            words += " --direction up";
        }
        if let Some(placement) = self.work.placement {
            words = format!("{words} --placement {}", placement.name());
        }
        let words = words.split_whitespace().chain(ours.iter().copied());
        std::iter::once(program.into()).chain(words.map(OsString::from)).collect()
    }

    fn theirs(&self, program: &Path, port: u16) -> Argv {
        let Work { rival, block_bytes, theirs, placement, .. } = self.work;
        let [on, far_on] = self.cpus;
        let (far, near) = match rival {
            "iperf3" => {
                let tied = placement.map(|_| format!("-A {on},{far_on}")).unwrap_or_default();
                (
                    format!("-s -1 -B 127.0.0.1 -p {port}"),
                    format!(
                        "-c 127.0.0.1 -p {port} -t {} -l {block_bytes} -J {tied}",
                        self.seconds
                    ),
                )
            }
            _ => {
                let tied = format!("--sender-affinity {on} --receiver-affinity {on}");
                let near = format!("-t {} -m {block_bytes} --full-rtt {tied}", self.seconds);
                let far = format!("server -i 127.0.0.1 -p {port} --cpu-affinity {far_on}");
                (
                    format!("{far} {}", theirs.concat()),
                    format!("ping-pong -i 127.0.0.1 -p {port} {near}"),
                )
            }
        };
        let script = ["sh", "-c", SCRIPT, "sh", &far].map(OsString::from).into_iter();
        let near = near.split_whitespace().chain(theirs.iter().copied()).map(OsString::from);
        script.chain([program.into()]).chain(near.collect::<Vec<_>>()).collect()
    }
}

impl Workload for NetworkWorkload {
    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        let program = &run.contestant.program;
        if run.index == 0 { Ok(self.ours(program)) } else { Ok(self.theirs(program, free_port()?)) }
    }

    fn check(&mut self, run: &Run<'_>, account: &Account) -> Result<Checked, Error> {
        let text = printed::output(&run.contestant.name, account)?;
        let figure = match (run.index, self.work.rival) {
            (0, _) => Some(printed::row(account, |row| row.id == self.work.id)?.1),
            (_, "iperf3") => of_iperf3(text),
            _ => of_sockperf(text),
        };
        Ok(Checked { figure, ..Checked::default() })
    }
}

/// A port of loopback that nobody had a moment ago.
fn free_port() -> Result<u16, Error> {
    let bound = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let port =
        bound.map_err(flatout_io::Error::system("bind a port of", Path::new("127.0.0.1")))?;
    Ok(port.port())
}

/// Bytes that arrived, by the second.
fn of_iperf3(text: &str) -> Option<f64> {
    let document: Value = serde_json::from_str(text).ok()?;
    let end = document.get("end")?;
    // Of UDP it is the sending end that counts what the other one says was lost.
    let sum = end.get("sum").or_else(|| end.get("sum_received"))?;
    let of = |name: &str| sum.get(name).and_then(Value::as_f64);
    let lost_percent = of("lost_percent").unwrap_or(0.0);
    Some(of("bytes")? * (1.0 - lost_percent / 100.0) / of("seconds")?)
}

/// The median of the round trips, in nanoseconds.
fn of_sockperf(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("percentile 50.000"))?;
    let microseconds: f64 = line.rsplit('=').next()?.trim().parse().ok()?;
    Some(microseconds * 1000.0)
}

#[cfg(test)]
mod tests;
