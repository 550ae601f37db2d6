//! What the rows say in the end: means of their facts, the peak and the share of it, doubts.

use flatout_measure::ceiling;
use flatout_measure::record::{Ceiling, Outcome, Provenance, Status, Warning};
use flatout_measure::warning;
use flatout_sys::throughput::Kernel;
use serde_json::{Value, json};

use super::census::{self, Census};
use super::clock::{AGREEMENT, agrees};
use super::fact;
use super::peak::{Factors, Share};
use super::row::Row;
use super::sharing::{self, Verdict};
use super::site::{self, Site};
use super::trial::{Placement, Setting};
use crate::crew;

/// Facts that stand for each trial and were summed over them.
const MEANS: [&str; 3] = ["cpu_use_ratio", "cpus_got", "stolen_ratio"];
/// How far twice the work may be from twice the time.
const DOUBLING: f64 = 0.02;
/// The same where a neighbour was on the core: he comes and goes. Work that was not done would show as a
/// factor.
const DOUBLING_DISTURBED: f64 = 0.15;
/// A fall of the clock from before the work to after it that is said.
const CLOCK_FALL: f64 = 0.03;
/// Stolen share of the time that is said, and the least ticks that it must be: the kernel counts in
/// ticks of 10 ms, and trials take 1 to 80 ms.
const STOLEN: f64 = 0.05;
const STOLEN_TICKS: f64 = 3.0;
/// Share of the time with a neighbour on the core from which on that is said.
const NEIGHBOUR: f64 = 0.1;
/// CPU time of the threads as a share of their time, below which others had the CPU so often that
/// this is in the slices that count, too. Stolen time is missing in it where the kernel is told.
const CROWDED: f64 = 0.9;
/// Share of the peak from which on the ports are the limit.
const AT_THE_LIMIT: f64 = 0.97;

/// Completes the outcomes; `rows` has the row of each, in the same order.
pub(super) fn finish(rows: &[Row], outcomes: &mut [Outcome], site: &Site, census: &Census) {
    outcomes.iter_mut().for_each(average);
    let mut sets = site.declared.clone();
    for (row, outcome) in rows.iter().zip(outcomes.iter_mut()) {
        if let Row::Sharing { first, second } = *row {
            let verdict = match outcome.median {
                Some(_) => sharing::judge_trials(&outcome.samples),
                None => Verdict::Unclear,
            };
            outcome.audit.insert("verdict".to_owned(), json!(verdict.words()));
            if verdict == Verdict::Shared {
                sets.push(vec![first, second]);
            }
            let name = "two CPUs that share nothing".to_owned();
            let limiter = verdict.words().to_owned();
            ceiling::apply(outcome, Ceiling { name, limiter, ..Ceiling::default() });
        }
    }
    for (row, outcome) in rows.iter().zip(outcomes.iter_mut()) {
        match *row {
            Row::Throughput { kernel, setting } => {
                let share = share(outcome, setting, site, &sets);
                doubt_clock(outcome);
                doubt_share(outcome, &share, &sets);
                hold(outcome, kernel, share, census);
            }
            Row::Clock { .. } => {
                doubt_clock(outcome);
                let name = "none is known: it is what others are held against".to_owned();
                let limiter = "what power, heat and load let the core run at".to_owned();
                ceiling::apply(outcome, Ceiling { name, limiter, ..Ceiling::default() });
            }
            Row::Sharing { .. } => {}
        }
    }
}

fn number(outcome: &Outcome, key: &str) -> Option<f64> {
    outcome.audit.get(key)?.as_f64()
}

fn average(outcome: &mut Outcome) {
    fact::settle(outcome);
    let Some(trials) = number(outcome, "trials_summed").filter(|&trials| trials > 0.0) else {
        return;
    };
    for key in MEANS {
        if let Some(sum) = number(outcome, key) {
            outcome.audit.insert(key.to_owned(), json!(sum / trials));
        }
    }
    outcome.audit.remove("clock_reads");
    let shared = number(outcome, "shared_ns").zip(number(outcome, "watched_ns"));
    let shared = shared.filter(|(_, watched_ns)| *watched_ns > 0.0);
    let ratio = shared.map(|(shared_ns, watched_ns)| json!(shared_ns / watched_ns));
    outcome.audit.extend(ratio.map(|ratio| ("neighbour_ratio".to_owned(), ratio)));
}

fn degrade(outcome: &mut Outcome, code: &str, text: String) {
    if outcome.status == Status::Ok {
        outcome.status = Status::Degraded;
    }
    warning::add(&mut outcome.warnings, Warning::new(code, text));
}

/// What the threads of the row had to themselves.
fn share(outcome: &Outcome, setting: Setting, site: &Site, sets: &[Vec<usize>]) -> Share {
    let used = match setting.placement {
        Placement::Pinned => site.cpus.len().min(setting.threads as usize),
        Placement::Free => site.cpus.len(),
    };
    Share {
        threads: setting.threads,
        cpus: site.count(),
        cores: site::cores(&site.cpus[..used], sets).max(1) as u32,
        quota_cpus: site.quota_cpus,
        cpus_got: number(outcome, "cpus_got").unwrap_or(0.0),
    }
}

/// Whether the clock can be believed, and whether it fell.
fn doubt_clock(outcome: &mut Outcome) {
    if outcome.median.is_none() {
        return;
    }
    let agreement = number(outcome, "chain_agreement_ratio");
    if let Some(ratio) = agreement.filter(|ratio| !agrees(*ratio)) {
        let text = format!(
            "two kinds of dependency chain read clocks that differ by {:.1} %, more than {:.0} %: \
             the peak is as doubtful",
            (1.0 - ratio) * 100.0,
            AGREEMENT * 100.0
        );
        degrade(outcome, warning::CLOCK_DISAGREES, text);
    }
    let (before, after) = (number(outcome, "clock_before_hz"), number(outcome, "clock_after_hz"));
    if let Some((before, after)) = before.zip(after)
        && after < before * (1.0 - CLOCK_FALL)
    {
        let text = format!(
            "the clock fell by {:.1} % from before the work to after it: power, heat, or a \
             neighbour",
            (1.0 - after / before) * 100.0
        );
        warning::add(&mut outcome.warnings, Warning::new(warning::CLOCK_DRIFT, text));
    }
}

/// The share of the time that was stolen, if it is one to speak of.
fn stolen(outcome: &Outcome) -> Option<f64> {
    let ticks = number(outcome, "stolen_ticks")?;
    number(outcome, "stolen_ratio").filter(|ratio| *ratio > STOLEN && ticks >= STOLEN_TICKS)
}

/// What took CPU time away, and whether the time followed the work.
fn doubt_share(outcome: &mut Outcome, share: &Share, sets: &[Vec<usize>]) {
    if outcome.median.is_none() {
        return;
    }
    let warn = |outcome: &mut Outcome, code: &str, text: String| {
        warning::add(&mut outcome.warnings, Warning::new(code, text));
    };
    let contained = crew::contained(share.threads, share.cpus, share.quota_cpus);
    if let Some(doubt) = contained.filter(|_| share.is_limited_by_quota()) {
        warning::add(&mut outcome.warnings, doubt);
    }
    if share.cores < share.threads.min(share.cpus) {
        let sets: Vec<String> = sets.iter().map(|set| format!("{set:?}")).collect();
        let text = format!("some CPUs share a core: {}", sets.join(", "));
        warn(outcome, warning::CORES_SHARED, text);
    }
    if let Some(ratio) = stolen(outcome) {
        let text = format!("the hypervisor took {:.1} % of the CPU time", ratio * 100.0);
        warn(outcome, warning::STOLEN_TIME, text);
    }
    let is_apart = !warning::has(&outcome.warnings, warning::DISTURBED);
    let beside = number(outcome, "neighbour_ratio").filter(|ratio| *ratio > NEIGHBOUR && is_apart);
    if let Some(ratio) = beside {
        let text = format!(
            "another hardware thread used the core for {:.0} % of the time: slices count in which it \
             did not",
            ratio * 100.0
        );
        warn(outcome, warning::CORE_NEIGHBOUR, text);
    }
    let doubling = number(outcome, "doubling_ratio").filter(|_| !share.is_oversubscribed());
    let is_quiet = is_apart && beside.is_none();
    let most = if is_quiet { DOUBLING } else { DOUBLING_DISTURBED };
    if let Some(ratio) = doubling.filter(|ratio| (ratio / 2.0 - 1.0).abs() > most) {
        let text = format!("twice the work took {ratio:.3} times the time, not twice");
        degrade(outcome, warning::NOT_LINEAR, text);
    }
}

/// Holds a row against its peak.
fn hold(outcome: &mut Outcome, kernel: Kernel, share: Share, census: &Census) {
    let count = census.of(kernel);
    let clock_hz = number(outcome, "clock_hz");
    let known = count.and_then(|count| Some((count.ports?, count.per_cycle))).zip(clock_hz);
    let used = share.cores_used();
    let plural = if used == 1.0 { "" } else { "s" };
    let name = format!("peak of {} core{plural} at the clock in this load", round(used));
    let limit = match known {
        Some(((ports, counted_per_cycle), clock_hz)) => {
            let factors = Factors { kernel, share, clock_hz, ports, counted_per_cycle };
            outcome.audit.insert("peak".to_owned(), json!(factors.words()));
            let value = Some(factors.per_s());
            Ceiling { name, value, provenance: Provenance::Inferred, ..Ceiling::default() }
        }
        None if clock_hz.is_none() => {
            let name = format!("{name}, which could not be read");
            Ceiling { name, ..Ceiling::default() }
        }
        None => {
            let name = format!("{name}; {}", census::why_unknown(kernel, count));
            Ceiling { name, ..Ceiling::default() }
        }
    };
    let share_of = |rate: Option<f64>, peak: Option<f64>| Some(rate? / peak?);
    // At the clock of each moment, which no change of it can spoil.
    let cycles_peak = limit.value.zip(clock_hz).map(|(peak, hz)| peak / hz);
    let ratios = [
        ("per_cycle_ratio", "operations_per_cycle"),
        ("per_cycle_best_decile_ratio", "operations_per_cycle_best_decile"),
    ];
    let ratios = ratios.map(|(key, of)| (key, share_of(number(outcome, of), cycles_peak)));
    for (key, ratio) in ratios {
        outcome.audit.extend(ratio.map(|ratio| (key.to_owned(), json!(ratio))));
    }
    ceiling::apply(outcome, limit);
    name_limiter(outcome, &share);
}

fn round(cores: f64) -> String {
    if cores.fract() == 0.0 { format!("{cores}") } else { format!("{cores:.2}") }
}

/// Says what most likely keeps a row from its peak.
fn name_limiter(outcome: &mut Outcome, share: &Share) {
    let get = |key: &str| number(outcome, key);
    let (stolen, used) = (stolen(outcome), get("cpu_use_ratio"));
    let best = get("per_cycle_best_decile_ratio").filter(|best| *best >= AT_THE_LIMIT);
    let was_alone = get("neighbour_ratio").is_some_and(|ratio| ratio <= NEIGHBOUR)
        && !warning::has(&outcome.warnings, warning::DISTURBED);
    let Some(ceiling) = outcome.ceiling.as_ref() else { return };
    let limiter = match ceiling.ratio {
        Some(ratio) if ratio >= AT_THE_LIMIT => "execution ports".to_owned(),
        _ if share.is_limited_by_quota() => "the CPU quota".to_owned(),
        _ if share.is_oversubscribed() => "threads take turns on too few CPUs".to_owned(),
        _ if stolen.is_some() => "the hypervisor: stolen time".to_owned(),
        _ if used.is_some_and(|ratio| ratio < CROWDED) => {
            "other programs, or the hypervisor, took CPU time".to_owned()
        }
        None => "unknown, without a peak".to_owned(),
        _ if was_alone => {
            "chains that wait for each other, or ports that no work was ready for".to_owned()
        }
        _ => match best {
            Some(best) => format!(
                "a neighbour on the same core: the best tenth of the trials reaches {:.1} % of the \
                 peak",
                best.min(1.0) * 100.0
            ),
            None => "a neighbour on the same core all the time, or chains that wait for each other"
                .to_owned(),
        },
    };
    if let Some(ceiling) = outcome.ceiling.as_mut() {
        ceiling.limiter = limiter;
    }
}

/// The peak of f64 multiply-add with so many threads, for work that is made of it; unknown where
/// no row has it.
pub(super) fn double_peak(outcomes: &[Outcome], threads: u32) -> Ceiling {
    let is = |outcome: &&Outcome| {
        let has = |key: &str, value: Value| outcome.parameters.get(key) == Some(&value);
        outcome.id == "cpu/throughput"
            && has("type", json!("f64"))
            && has("operation", json!("multiply-add"))
            && has("threads", json!(threads))
    };
    let peaks = outcomes.iter().filter(is).filter_map(|outcome| outcome.ceiling.as_ref());
    let highest = peaks
        .filter(|ceiling| ceiling.value.is_some())
        .max_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
    let name = format!(
        "peak of f64 multiply-add, {threads} thread{}",
        if threads == 1 { "" } else { "s" }
    );
    match highest {
        Some(peak) => Ceiling { name, ratio: None, limiter: String::new(), ..peak.clone() },
        None => Ceiling { name, ..Ceiling::default() },
    }
}

#[cfg(test)]
mod tests;
