//! What the rows of the units are held against, and what limits them.

use std::collections::BTreeMap;

use flatout_measure::{
    Ceiling, Facts, Measured, Outcome, Provenance, Row, Status, blank, ceiling, warning,
};
use flatout_sys::throughput::{Kernel, Number, Operation};

use super::peak::{Factors, Share};
use super::port_count::{Count, why_unknown};
use super::row::UnitRow;
use super::sharing::{self, Verdict};
use super::topology::{self, Topology};
use super::trial::{Placement, Setting};
use super::{caveat, fact};
use crate::counted;

/// CPU time of the threads as a share of their time, below which others had the CPU so often that
/// this is in the slices that count, too. Stolen time is missing in it where the kernel is told.
const CROWDED: f64 = 0.9;
/// The same of threads that take turns, of all cores; what they do before and after their slices is
/// not in it: eight threads on two idle CPUs had 0.81 to 0.93, beside two busy loops 0.67 to 0.75 (AMD
/// EPYC, family 25, model 17, 2026-11-26).
const CROWDED_TURNS: f64 = 0.78;
/// Share of the peak from which on there is nothing to explain: the ports are the limit.
pub(super) const AT_THE_LIMIT: f64 = 0.97;

/// Gives each row its bound, what limits it, and its warnings; `counts` are those of the ports.
pub(super) fn apply(
    rows: &mut [Measured<UnitRow>],
    topology: &Topology,
    counts: &BTreeMap<Kernel, Count>,
) {
    settle_peaks(rows);
    let hidden = sharing_pairs(rows, topology);
    let sets = [&topology.siblings[..], &hidden].concat();
    for Measured { row, outcome, facts, .. } in rows {
        match *row {
            UnitRow::Units { kernel, setting } => {
                let share = share(facts, setting, topology, &sets);
                if setting.placement != Placement::Sustained {
                    caveat::add_of_clock(outcome, facts);
                    caveat::add_of_share(outcome, facts, &share, &hidden);
                }
                caveat::add_of_width(outcome, kernel.is_narrow());
                let peak = (kernel, share, topology.is_mixed);
                hold(outcome, facts, counts.get(&kernel).copied(), peak);
            }
            UnitRow::Clock { .. } => {
                caveat::add_of_clock(outcome, facts);
                let name = "none is known: it is what others are held against";
                let limiter = "power and temperature";
                ceiling::apply(outcome, Ceiling::unknown(name).limited_by(limiter));
            }
            UnitRow::Sharing { .. } => {}
        }
    }
}

/// What was sustained was possible: where the moments of `cpu/throughput` show less, as when others
/// had the CPU in all of them, the trials of `cpu/sustained` stand for both.
fn settle_peaks(rows: &mut [Measured<UnitRow>]) {
    for at in 0..rows.len() {
        let UnitRow::Units { kernel, setting } = rows[at].row else { continue };
        let setting = Setting { placement: Placement::Sustained, ..setting };
        let sustained = UnitRow::Units { kernel, setting };
        let Some(better) = rows.iter().find(|one| one.row == sustained) else { continue };
        let own = rows[at].outcome.median;
        if own.is_none() || better.outcome.median <= own {
            continue;
        }
        let Outcome { id, parameters, .. } = blank(&rows[at].row);
        let outcome = Outcome { id, parameters, ..better.outcome.clone() };
        // The row whose trials these are, where they reached more than the row's own, and what
        // those did.
        let mut facts = better.facts.clone().with("trials_of", sustained.id().into_owned());
        facts.set_known(fact::OWN_TRIALS_PER_S, own);
        (rows[at].outcome, rows[at].facts) = (outcome, facts);
    }
}

/// The pairs of CPUs that were seen to share a core, and those that are numbered alike, unless they were
/// seen to be two: there is time for a few pairs only.
fn sharing_pairs(rows: &mut [Measured<UnitRow>], topology: &Topology) -> Vec<Vec<usize>> {
    let judged = rows.iter_mut().filter_map(|measured| match measured.row {
        UnitRow::Sharing { first, second } => Some(((first, second), judge_sharing(measured))),
        _ => None,
    });
    let judged: BTreeMap<(usize, usize), Verdict> = judged.collect();
    let shared = judged.iter().filter(|(_, verdict)| **verdict == Verdict::Shared);
    let alike = shared.flat_map(|(pair, _)| sharing::numbered_alike(*pair, &topology.cpus));
    let alike = alike.filter(|pair| judged.get(pair) != Some(&Verdict::Apart));
    alike.map(|(first, second)| vec![first, second]).collect()
}

/// Says whether two CPUs share a core.
fn judge_sharing(measured: &mut Measured<UnitRow>) -> Verdict {
    let Measured { outcome, facts, .. } = measured;
    let verdict = match outcome.median {
        Some(_) => sharing::judge_trials(&outcome.samples),
        None => Verdict::Unclear,
    };
    facts.set(fact::VERDICT, verdict.words());
    let bound = Ceiling::unknown("two CPUs that share nothing").limited_by(verdict.words());
    ceiling::apply(outcome, bound);
    verdict
}

/// What the threads of the row had to themselves.
fn share(facts: &Facts, setting: Setting, topology: &Topology, sets: &[Vec<usize>]) -> Share {
    let used = match setting.placement {
        Placement::Pinned => topology.cpus.len().min(setting.threads as usize),
        Placement::Free | Placement::Sustained => topology.cpus.len(),
    };
    let cores = |sets: &[Vec<usize>]| topology::cores(&topology.cpus[..used], sets).max(1) as u32;
    Share {
        threads: setting.threads,
        cpus: topology.count(),
        cores: cores(sets),
        cores_declared: cores(&topology.siblings),
        quota_cpus: topology.quota_cpus,
        cpus_got: facts.number(fact::CPUS_GOT).unwrap_or(0.0),
    }
}

/// Holds a row against its peak.
fn hold(
    outcome: &mut Outcome,
    facts: &mut Facts,
    count: Option<Count>,
    (kernel, share, is_mixed): (Kernel, Share, bool),
) {
    let used = share.cores_used();
    let cores = counted((used * 100.0).round() / 100.0, "core");
    let name = format!("peak of {cores} at the clock in this load");
    let clock_hz = facts.number(fact::CLOCK_HZ);
    let bound = match (clock_hz, count.and_then(|count| Some((count.ports?, count.per_cycle)))) {
        _ if is_mixed => {
            // Ports are counted on some CPUs, and the clock is that of one.
            Ceiling::unknown(format!("{name}; CPUs are of several kinds, whose ports differ"))
        }
        (Some(clock_hz), Some((ports, counted_per_cycle))) => {
            let factors = Factors { kernel, share, clock_hz, ports, counted_per_cycle };
            facts.set(fact::PEAK, factors.words());
            // How a product and a sum share ports is up to the core: on a Zen 4, which multiplies
            // integers on two of four ports and adds on all, 1.5 pairs a cycle were counted, and rows
            // reached 1.52 and more (AMD EPYC, family 25, model 17, 2026-11-26).
            // Under a quota, and where threads take turns, the clock is read before and after alone: it was
            // 3 % below that of the work where a quota held the thread back (Emerald Rapids, 2026-11-29).
            // Which CPUs share a core a hypervisor may change meanwhile.
            let is_sure = kernel.instructions() == 1
                && share.cores == share.cores_declared
                && !share.is_limited_by_quota()
                && !share.is_oversubscribed();
            let from = if is_sure { Provenance::Inferred } else { Provenance::Measured };
            Ceiling::known(name, Some(factors.per_s()), from)
        }
        (None, _) => Ceiling::unknown(format!("{name}, which could not be read")),
        (_, None) => Ceiling::unknown(format!("{name}; {}", why_unknown(kernel, count))),
    };
    // At the clock of each moment, which no change of it can spoil.
    let per_cycle = bound.value.zip(clock_hz).map(|(peak, hz)| peak / hz);
    for (key, of) in [
        (fact::PER_CYCLE_RATIO, fact::OPERATIONS_PER_CYCLE),
        (fact::PER_CYCLE_BEST_DECILE_RATIO, fact::OPERATIONS_PER_CYCLE_BEST_DECILE),
    ] {
        let ratio = facts.number(of).zip(per_cycle).map(|(reached, peak)| reached / peak);
        facts.set_known(key, ratio);
    }
    ceiling::apply(outcome, bound);
    let limiter = limiter(outcome, facts, &share);
    if let Some(bound) = outcome.ceiling.as_mut() {
        bound.limiter = limiter;
    }
}

/// What most likely keeps a row from its peak.
fn limiter(outcome: &Outcome, facts: &Facts, share: &Share) -> String {
    let contention = facts.number(fact::CONTENTION_RATIO);
    let was_alone = contention.is_some_and(|ratio| ratio <= warning::NOTABLE_CONTENTION)
        && !warning::has(&outcome.warnings, warning::DISTURBED);
    let best = facts.number(fact::PER_CYCLE_BEST_DECILE_RATIO);
    let text = match outcome.ceiling.as_ref().and_then(|bound| bound.ratio) {
        // The peak is that of the quota, too.
        _ if share.is_limited_by_quota() => "the CPU quota",
        Some(ratio) if ratio >= AT_THE_LIMIT => "execution ports",
        _ if share.is_oversubscribed() && share.cpus_got < CROWDED_TURNS * share.cores_used() => {
            "threads take turns on too few CPUs, and other programs or the hypervisor took CPU time"
        }
        _ if share.is_oversubscribed() => "threads take turns on too few CPUs",
        _ if caveat::stolen(facts).is_some() => "the hypervisor: stolen time",
        _ if facts.number(fact::CPU_USE_RATIO).is_some_and(|ratio| ratio < CROWDED) => {
            "other programs or the hypervisor, which took CPU time"
        }
        None => "unknown, without a peak",
        _ if contention.is_none() => {
            "an SMT sibling, interrupts, or chains that wait for each other"
        }
        _ if was_alone => "chains that wait for each other, or ports that no work was ready for",
        _ => match best.filter(|&best| best >= AT_THE_LIMIT) {
            Some(best) => {
                let percent = best.min(1.0) * 100.0;
                return format!(
                    "contention by an SMT sibling: the best tenth of the trials reaches \
                     {percent:.1} % of the peak"
                );
            }
            None => "contention by an SMT sibling all the time, or chains that wait for each other",
        },
    };
    text.to_owned()
}

/// The peak of f64 multiply-add with so many threads, for work that is made of it in the widest
/// instructions that there are: a peak of narrower ones is none of its. Unknown where no row has it.
pub(super) fn double_peak(rows: &[Measured<UnitRow>], threads: u32) -> Ceiling {
    let of_work = rows.iter().filter_map(|measured| match measured.row {
        UnitRow::Units { kernel, setting }
            if (kernel.number, kernel.operation) == (Number::F64, Operation::MultiplyAdd)
                && setting.threads == threads
                && setting.placement != Placement::Sustained
                && measured.outcome.status != Status::Unsupported =>
        {
            Some((kernel.level, measured.outcome.ceiling.as_ref()?))
        }
        _ => None,
    });
    let widest = of_work.clone().map(|(level, _)| level).max();
    let bounds = of_work.filter(|(level, _)| Some(*level) == widest);
    let known = bounds.filter_map(|(_, bound)| Some((bound.value?, bound.provenance)));
    let highest = known.max_by(|a, b| a.0.total_cmp(&b.0));
    let name = format!("peak of f64 multiply-add, {}", counted(threads, "thread"));
    match highest {
        Some((value, provenance)) => Ceiling::known(name, Some(value), provenance),
        None => Ceiling::unknown(name),
    }
}

#[cfg(test)]
mod tests;
