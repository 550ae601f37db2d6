//! Findings from what the record knows of the machine, its settings and its load.

use flatout_measure::load;
use flatout_measure::record::{Load, Record};
use flatout_measure::warning::{self, NEARLY_FULL_SHARE};
use serde_json::{Map, Value};

use super::Severity::{Note, Warn};
use super::{Finding, codes};
use crate::{label, order, quantity, text::Joined};

/// Share of the CPU time that a hypervisor may take untold.
const LITTLE_STEAL: f64 = 0.01;
/// Clock governors that do not keep the clock at its highest.
const SLOW_GOVERNORS: [&str; 4] = ["powersave", "ondemand", "conservative", "schedutil"];
/// Clock sources that are read by a system call.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "pit"];
/// Mitigations that make each system call, or each switch between programs, dearer: how the kernel
/// calls them, what they are, and what they add to a system call in cycles.
const DEAR_MITIGATIONS: [(&str, Mitigation); 7] = [
    ("PTI", ("page-table isolation", 200.0, 500.0)),
    ("Retpolines", ("retpolines", 20.0, 60.0)),
    ("Safe RET", ("safe returns", 20.0, 100.0)),
    ("Clear CPU buffers", BUFFERS_CLEARED),
    ("Clear buffers", BUFFERS_CLEARED),
    ("untrained return thunk", ("untrained returns", 100.0, 400.0)),
    ("IBRS", ("IBRS", 100.0, 400.0)),
];
const BUFFERS_CLEARED: Mitigation = ("buffers cleared", 50.0, 500.0);
/// Its name, and the least and most cycles that it adds.
pub(in crate::page) type Mitigation = (&'static str, f64, f64);

/// What others took meanwhile.
pub(super) fn of_load(record: &Record) -> Vec<Finding> {
    let Some(seen) = &record.end.load else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(others_cpus) = seen.others_cpus.filter(|_| load::is_busy(seen)) {
        let names = seen.programs.iter().map(|program| &program.name).joined(", ");
        let whom = if names.is_empty() { "them".to_owned() } else { names };
        let rows = match (codes::disturbed_rows(record), record.results.len()) {
            (0, _) => String::new(),
            (disturbed, all) => format!(", {disturbed} of {all} rows were disturbed"),
        };
        let text = format!("other programs took {others_cpus:.1} of {} CPUs{rows}", seen.cpus);
        let advice = format!("rates are too low, times too long: stop {whom} and run again");
        found.push(Finding::new(Warn, text, advice));
    }
    if seen.others_cpus.is_none() {
        let text = "whether other programs were at work cannot be seen";
        found.push(Finding::new(Warn, text, "look at /proc/stat, which is hidden here"));
    }
    if is_stolen(seen) {
        let share = quantity::percent(seen.stolen_ratio);
        let text = format!("steal: the hypervisor took {share} of the CPU time");
        let advice = "a dedicated host, or a size without CPU credits, avoids it";
        found.push(Finding::new(Warn, text, advice));
    }
    found
}

/// Whether the hypervisor took time worth telling.
pub(super) fn is_stolen(seen: &Load) -> bool {
    seen.stolen_ratio > LITTLE_STEAL
}

/// Settings and limits of the machine.
pub(super) fn of_environment(record: &Record) -> Vec<Finding> {
    let environment = &record.start.environment;
    let text = |key: &str| environment[key].as_str();
    let number = |key: &str| environment[key].as_f64();
    let less = |part: &str, whole: &str| {
        let (part, whole) = (number(part)?, number(whole)?);
        (part < whole).then_some((part, whole))
    };
    let areas = label::areas(record);
    let has = |area: &str| areas.contains(&area);
    let mut found = Vec::new();
    let mut find = |severity, text: String, advice: &str| {
        found.push(Finding::new(severity, text, advice));
    };
    if let Some((allowed, online)) = less("cpus_allowed", "cpus_online") {
        let text = format!("only {allowed} of {online} CPUs may be used");
        find(Warn, text, "look at taskset, cpuset.cpus or the container's settings");
    }
    let is_told = record.results.iter().any(|row| warning::has(&row.warnings, warning::CPU_QUOTA));
    if let Some((quota, online)) = less("cpu_quota_cpus", "cpus_online").filter(|_| !is_told) {
        let text = format!("CPU quota of {} of {online} CPUs", quantity::number(quota));
        find(Warn, text, "raise cpu.max (cpu.cfs_quota_us) of the control group");
    }
    if let Some((limit, memory)) = less("memory_limit_bytes", "memory_bytes") {
        let [limit, memory] = [limit, memory].map(|bytes| quantity::value("bytes", bytes));
        let text = format!("memory is limited to {limit} of {memory}");
        find(Note, text, "raise memory.max and memory.high of the control group");
    }
    if let Some(governor) = text("governor").filter(|name| SLOW_GOVERNORS.contains(name)) {
        let advice = "cpupower frequency-set -g performance keeps the clock high";
        find(Note, format!("the clock's governor is {governor}"), advice);
    }
    if let Some(clock) = text("clocksource").filter(|name| SLOW_CLOCKS.contains(name)) {
        let text = format!("the clock source is {clock}, read by a system call");
        find(Warn, text, "boot with clocksource=tsc if the CPU's is stable");
    }
    if text("transparent_hugepages") == Some("never") && (has("memory") || has("cpu")) {
        let text = "transparent huge pages are off".to_owned();
        find(Note, text, "programs with much memory gain from madvise");
    }
    if let Some(disabled) = number("io_uring_disabled").filter(|disabled| *disabled > 0.0) {
        // sysctl(8): 1 leaves it to root.
        let whom = if disabled > 1.0 { "switched off" } else { "for privileged programs only" };
        find(Note, format!("io_uring is {whom}"), "sysctl kernel.io_uring_disabled=0");
    }
    found.extend(storage(environment));
    if has("syscall") {
        found.extend(mitigations(environment));
    }
    found
}

/// The devices below, as far as they were measured.
fn storage(environment: &Value) -> Vec<Finding> {
    // Several places may lie on one disk.
    order::distinct(environment["storage"].as_array().into_iter().flatten().flat_map(of_place))
}

fn of_place(place: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    let number = |key: &str| place.get(key).and_then(Value::as_f64);
    // As df(1): what is reserved for root is neither used nor free. Older records do not know
    // it apart.
    let free = number("free_bytes");
    let used = number("used_bytes").or_else(|| Some(number("size_bytes")? - free?));
    if let (Some(free), Some(used)) = (free, used)
        && free < NEARLY_FULL_SHARE * (used + free)
    {
        let full = quantity::percent(used / (used + free));
        let text = format!("the filesystem is {full} full");
        found.push(Finding::new(Warn, text, "free a tenth of it: many get slow when nearly full"));
    }
    for layer in place["layers"].as_array().into_iter().flatten() {
        let text = |key: &str| layer[key].as_str();
        let name = text("name").unwrap_or("the disk");
        if text("write_cache") == Some("write through") {
            let told = format!("{name} has its write cache off");
            let advice = "writes wait for the medium; a cache with power-loss protection is faster";
            found.push(Finding::new(Note, told, advice));
        }
        if layer["rotational"] == true && text("kind") == Some("disk") {
            let told = format!("{name} rotates: each random request waits for the head");
            found.push(Finding::new(Note, told, "an SSD answers a hundred times as many"));
        }
    }
    found
}

fn mitigations(environment: &Value) -> Option<Finding> {
    let dear = dear_mitigations(environment);
    let text = format!("CPU mitigations make system calls dearer ({})", names(&dear));
    let advice = "keep them where others' code runs; newer CPUs need fewer";
    (!dear.is_empty()).then(|| Finding::new(Note, text, advice))
}

/// The names of mitigations.
pub(in crate::page) fn names(mitigations: &[Mitigation]) -> String {
    mitigations.iter().map(|(name, ..)| *name).joined(", ")
}

/// The mitigations that cost time.
pub(in crate::page) fn dear_mitigations(environment: &Value) -> Vec<Mitigation> {
    let states = environment["mitigations"].as_object().into_iter().flat_map(Map::values);
    let on = states.filter_map(|state| state.as_str()?.strip_prefix("Mitigation: "));
    let parts: Vec<&str> = on.flat_map(|state| state.split(';').map(str::trim)).collect();
    let is_on = |sign: &str| parts.iter().any(|part| part.starts_with(sign));
    let dear = DEAR_MITIGATIONS.iter().filter(|(sign, _)| is_on(sign));
    let mut dear: Vec<Mitigation> = dear.map(|(_, mitigation)| *mitigation).collect();
    // Those of one name stand beside each other.
    dear.dedup();
    dear
}
